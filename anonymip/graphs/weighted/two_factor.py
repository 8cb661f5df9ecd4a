"""2-factors of least weight: every node lies on one cycle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymip.graphs.weighted.degree_flow import degree_flow
from anonymip.graphs.weighted.general_matching import heaviest_matching
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

#: Edges a node that may change in the first round, and in the last.
_FIRST, _LAST = 4, 64


class TwoFactor(NamedTuple):
    """A 2-factor and what is proven about it.

    Parameters
    ----------
    edges
        (n, 2) its edges; empty if none was found.
    weight
        Its weight; infinite if none was found.
    least
        No 2-factor weighs less.
    is_lightest
        Whether it is proven lightest, up to rounding.
    """

    edges: NDArray[np.int64]
    weight: float
    least: float
    is_lightest: bool


def lightest_two_factor(
    weights: NDArray[np.float64], budget: Budget | None = None
) -> tuple[TwoFactor, Stopped | None]:
    """Return a 2-factor of least weight, and why it stopped early, if it did.

    Parameters
    ----------
    weights
        (n, n) symmetric, at least 0, infinite on the diagonal; n of at least 3.
    budget
        When it ends, the lightest one found so far is returned.

    Notes
    -----
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
    flow, stopped = degree_flow(weights, np.full(n, 2), budget, "fractional 2-factor")
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
    n: int,
    one: NDArray[np.int64],
    other: NDArray[np.int64],
    reduced: NDArray[np.float64],
    free: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_] | None, float]:
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


def cycles_of(n: int, edges: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the cycles of a 2-factor, each as its nodes in turn."""
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
