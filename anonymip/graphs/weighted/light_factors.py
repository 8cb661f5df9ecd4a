"""Edge covers and 2-factors of least weight, by matchings of greatest weight in general graphs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import rustworkx

from anonymip.graphs.weighted.assignment import assign
from anonymip.graphs.weighted.degree_flow import cheapest_degrees
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

#: Weights that are no whole numbers are rounded to so many bits.
_BITS = 44


def heaviest_matching(
    nodes: int, ends: Ints, weights: Floats, *, perfect: bool = False
) -> tuple[Ints, float]:
    """Return a matching of greatest weight, and what rounding may have cost it.

    Edges are pairs of nodes, (e, 2), each once, with weights (e,) of at least 0. If `perfect`, as
    many nodes as possible must be matched, whatever that costs. The (p, 2) edges taken come in
    ascending order; no matching is heavier by more than the slack, which is 0 if all weights are
    whole numbers.

    The algorithm works on whole numbers and ends with duals that prove the matching heaviest,
    which are checked each time. It cannot be interrupted. Complexity: O(n^3) time at worst, far
    less on sparse graphs.
    """
    scale, slack = 1.0, 0.0
    if len(weights) and not (weights == np.floor(weights)).all():
        scale = 2.0 ** (_BITS - np.ceil(np.log2(weights.max())))
        slack = (nodes // 2) / scale
    rounded = np.rint(weights * scale)
    graph: rustworkx.PyGraph[None, int] = rustworkx.PyGraph()
    graph.add_nodes_from([None] * nodes)
    graph.add_edges_from(
        [(int(a), int(b), int(w)) for (a, b), w in zip(ends, rounded, strict=True)]
    )
    found = rustworkx.max_weight_matching(
        graph, max_cardinality=perfect, weight_fn=int, verify_optimum=True
    )
    matched = np.array(sorted((min(a, b), max(a, b)) for a, b in found), np.int64).reshape(-1, 2)
    return matched, slack


#: A graph of more edges a node is thinned by the duals of an assignment first.
_DENSE = 25
#: So many edges a node, those of least slack, are tried first.
_TRIED_FIRST = 6
#: The matrix of the assignment is kept up to so many nodes.
_LARGEST_MATRIX = 6_000


def saving_edges(
    nodes: int, ends: Ints, savings: Floats, budget: Budget | None = None
) -> tuple[Ints, float, Stopped | None]:
    """Return the pairs whose common edge saves most in place of the lightest edge of each.

    An edge cover of least weight gives every node its lightest edge, of weight min_v, except where
    one edge serves two nodes and saves min_u + min_v - w_uv: these edges are a matching of greatest
    saving.

    `ends, savings`: (e, 2), (e,) the pairs with a saving above 0; others are of no use. Returns:
    (p, 2) the matching, none if the budget ended; no matching saves more than this; why it stopped
    early.

    In a dense graph an assignment is solved first: half of its value is the greatest saving of a
    fractional matching, and its duals charge every edge a slack. A matching that uses an edge of
    slack s saves at least s less than the fractional one. So a matching among edges without slack
    leaves a gap, and only edges whose slack is within the gap can close it. Where the matrix of the
    assignment does not fit, the matching is only the heaviest among the 25 greatest savings of each
    node, and `most` is half of the sum of the nodes' greatest savings.
    """
    budget = budget or Budget()
    reason = budget.stop_reason()
    if reason is not None or not len(savings):
        return np.empty((0, 2), np.int64), float(savings.sum()), reason
    if len(savings) > _DENSE * nodes and nodes > _LARGEST_MATRIX:
        kept = _greatest(nodes, ends, savings)
        pairs, _ = heaviest_matching(nodes, ends[kept], savings[kept])
        # Each edge gives half of its saving to either end.
        greatest = np.zeros(nodes)
        for side in (0, 1):
            np.maximum.at(greatest, ends[:, side], savings)
        return pairs, float(greatest.sum()) / 2, None
    if len(savings) <= _DENSE * nodes:
        pairs, slack = heaviest_matching(nodes, ends, savings)
        return pairs, _value(nodes, ends, savings, pairs) + slack, None
    matrix = np.zeros((nodes, nodes))
    matrix[ends[:, 0], ends[:, 1]] = -savings
    matrix[ends[:, 1], ends[:, 0]] = -savings
    _, columns, stopped = assign(matrix, budget, phase="fractional matching")
    if stopped is not None:
        return np.empty((0, 2), np.int64), float(savings.sum()), stopped
    duals = np.maximum(-((matrix - columns).min(axis=1) + columns) / 2, 0.0)
    spare = duals[ends[:, 0]] + duals[ends[:, 1]] - savings
    # Rounding may have left an edge uncovered: all duals rise by what it lacks.
    duals += max(0.0, -float(spare.min())) / 2
    spare = duals[ends[:, 0]] + duals[ends[:, 1]] - savings
    rounding = 1e-9 * float(savings.max())
    gap, tolerated = np.inf, 0.0
    unit = 1.0 if (savings == np.floor(savings)).all() else 0.0
    fractional, ranked, count = float(duals.sum()), np.sort(spare), _TRIED_FIRST * nodes
    while True:
        # No further than the gap, and not much further at a time: most edges are never needed.
        within = float(ranked[min(count, len(ranked) - 1)])
        tolerated = min(within, gap)
        kept = spare <= tolerated + rounding
        pairs, slack = heaviest_matching(nodes, ends[kept], savings[kept])
        value = _value(nodes, ends, savings, pairs)
        # A greater saving of whole numbers is greater by 1, which its slack must leave room for.
        gap = fractional - value - unit
        if gap <= tolerated or kept.all():
            return pairs, min(value + slack + rounding, fractional), None
        count *= 4


def _greatest(nodes: int, ends: Ints, savings: Floats) -> Flags:
    """Return which edges are among the greatest of one of their ends."""
    kept = np.zeros(len(savings), np.bool_)
    for side in (0, 1):
        order = np.lexsort((-savings, ends[:, side]))
        of_node = ends[order, side]
        rank = np.arange(len(order)) - np.searchsorted(of_node, of_node)
        kept[order[rank < _DENSE]] = True
    return kept


def _value(nodes: int, ends: Ints, savings: Floats, pairs: Ints) -> float:
    """Return what a matching saves."""
    keys = ends.min(axis=1) * nodes + ends.max(axis=1)
    order = np.argsort(keys)
    at = np.searchsorted(keys[order], pairs[:, 0] * nodes + pairs[:, 1])
    return float(savings[order[at]].sum())


#: Edges a node that may change in the first round, and in the last.
_FIRST, _LAST = 4, 64


class TwoFactor(NamedTuple):
    """A 2-factor, its (n, 2) edges and weight, and what is proven about it.

    Without one the edges are empty and the weight is infinite. None weighs less than `least`;
    `is_lightest` says whether it is proven lightest, up to rounding.
    """

    edges: Ints
    weight: float
    least: float
    is_lightest: bool


def lightest_two_factor(
    weights: Floats, budget: Budget | None = None
) -> tuple[TwoFactor, Stopped | None]:
    """Return a 2-factor of least weight, and why it stopped early, if it did.

    `weights`: (n, n) symmetric, at least 0, infinite on the diagonal; n of at least 3. `budget`:
    when it ends, the lightest one found so far is returned.

    A flow that gives every node two edges out and two in is half of a fractional 2-factor, and
    its duals y give each edge a reduced weight r = w - y_u - y_v. A 2-factor x weighs
    2 sum y + sum of the negative r + what it pays: r for an edge used although r > 0, -r for one
    not used although r < 0. So edges with abs(r) above the gap between a known 2-factor and the
    fractional one are decided. The others are left to a perfect matching: a node of degree b
    becomes b nodes, an edge becomes a path of three edges of which either the inner one or both
    outer ones are matched. Rounds with more and more edges end when the gap is within them; after
    64 edges a node the lightest 2-factor found is returned without proof. Complexity: O(n^3) for
    the flow, and the matchings.
    """
    n, budget = len(weights), budget or Budget()
    flow, stopped = cheapest_degrees(weights, np.full(n, 2), budget, "fractional 2-factor")
    one, other = np.triu_indices(n, 1)
    lengths = weights[one, other]
    if stopped is not None:
        return TwoFactor(np.empty((0, 2), np.int64), np.inf, 0.0, False), stopped
    duals = (flow.left + flow.right) / 2
    reduced = lengths - duals[one] - duals[other]
    least = float(2 * duals.sum() + np.minimum(reduced, 0.0).sum())
    rounding = 1e-9 * float(np.abs(duals).max())
    # Among equals those of the flow come first, then those between neighbours in the table.
    idle = ~(flow.used[one, other] | flow.used[other, one])
    ranked = np.lexsort((np.minimum(other - one, n - other + one), idle, np.abs(reduced)))
    best = TwoFactor(np.empty((0, 2), np.int64), np.inf, least, False)
    sizes = np.abs(reduced[ranked])
    unit = 1.0 if (lengths == np.floor(lengths)).all() else 0.0
    count = _FIRST * n
    while True:
        count = min(count, len(ranked))
        free = np.zeros(len(ranked), np.bool_)
        free[ranked[:count]] = True
        within = float(abs(reduced[ranked[count]])) if count < len(ranked) else np.inf
        taken, slack = _decide(n, one, other, reduced, free)
        if taken is not None:
            weight = float(lengths[taken].sum())
            if weight < best.weight:
                best = best._replace(edges=np.stack([one[taken], other[taken]], 1), weight=weight)
            # A lighter one would differ in edges within the gap; whole numbers differ by 1.
            gap = weight - unit - least
            if gap < 0 or within >= gap + (rounding if unit else -rounding):
                proven = max(least, weight - slack - rounding)
                return best._replace(least=min(proven, weight), is_lightest=True), None
        reason = budget.stop_reason()
        if reason is not None or count == len(ranked) or count >= _LAST * n:
            return best, reason
        # As many as the gap asks for, or twice as many if these are too many.
        wanted = int(np.searchsorted(sizes, best.weight - unit - least + 2 * rounding, "right"))
        count = max(count + 1, min(wanted, 2 * count))


def _decide(
    n: int, one: Ints, other: Ints, reduced: Floats, free: Flags
) -> tuple[Flags | None, float]:
    """Return which edges the lightest 2-factor takes if only the free ones are open, or None.

    Others are taken if their reduced weight is negative. The second value is the rounding.
    """
    taken = ~free & (reduced < 0)
    lacking = 2 - np.bincount(one[taken], minlength=n) - np.bincount(other[taken], minlength=n)
    if (lacking < 0).any():
        return None, 0.0
    start = np.concatenate([[0], np.cumsum(lacking)])
    open_edges = np.flatnonzero(free)
    inner = start[-1] + 2 * np.arange(len(open_edges))
    high = float(reduced[open_edges].max(initial=0.0))
    low = float(reduced[open_edges].min(initial=0.0))
    ends = [np.stack([inner, inner + 1], 1)]
    # Every 2-factor has as many edges: a constant for each makes all weights positive.
    weights = [np.full(len(open_edges), high - low)]
    for nodes, side in ((one[open_edges], inner), (other[open_edges], inner + 1)):
        for copy in range(2):
            has = copy < lacking[nodes]
            ends.append(np.stack([start[nodes[has]] + copy, side[has]], 1))
            weights.append(high - reduced[open_edges[has]])
    total = int(start[-1]) + 2 * len(open_edges)
    matched, slack = heaviest_matching(
        total, np.concatenate(ends), np.concatenate(weights), perfect=True
    )
    if 2 * len(matched) < total:
        return None, 0.0
    used = matched[matched[:, 0] < start[-1], 1]
    taken[open_edges[(used - start[-1]) // 2]] = True
    return taken, slack


def cycles_of(n: int, edges: Ints) -> list[Ints]:
    """Return the cycles of a 2-factor, or of a permutation's edges, each as its nodes in turn."""
    around: list[list[int]] = [[] for _ in range(n)]
    for one, other in edges.tolist():
        around[one].append(other)
        around[other].append(one)
    seen = np.zeros(n, np.bool_)
    cycles = []
    for first in range(n):
        if seen[first]:
            continue
        cycle, node = [first], around[first][0]
        seen[first] = True
        while not seen[node]:
            seen[node] = True
            cycle.append(node)
            node = next((near for near in around[node] if not seen[near]), first)
        cycles.append(np.array(cycle, np.int64))
    return cycles
