"""The approximation algorithm of Aggarwal et al. for k = 2: rows covered by light edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from anonymip.errors import InputError
from anonymip.graphs.weighted.light_factors import saving_edges
from anonymip.heuristics.approximation.guarantees import (
    cell_costs,
    concluded,
    guide,
    is_binary,
    loss_obstacle,
)
from anonymip.heuristics.approximation.nearest_rows import (
    NearestRows,
    close_pairs,
    nearest_rows,
    pair_distances,
)
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE, OPTIMALITY_RELATIVE

#: Leaves of a star up to which the nearest are paired first; beyond, neighbours in the order.
_PAIRED_BY_DISTANCE = 60
#: All pairs of more distinct rows would take too long to look at.
LARGEST_TABLE = 50_000


def edge_cover(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Cover the records by edges of least weight; its stars are classes of two or three [1]_.

    The paper takes a [1, 2]-factor of least weight. By the triangle inequality it weighs as much as
    the lightest edge cover, whose stars of many leaves can be taken apart without loss. If c is
    its weight, no release loses less than 2 c where all attributes are binary, and less than 1.5 c
    for any loss to which the factors apply; the classes lose at most 3 c. The solution carries
    this bound, and the trace tells the factor that the paper proves: 1.5 for binary tables, 2 for
    suppression over any alphabet. For hierarchies, ranges and sets, for suppression of whole
    records, and under a diversity or limits none is claimed.

    `problem`: with equivalence classes and k = 2. `budget`: when it ends, every record takes its
    nearest neighbour; before these are found, the records are cut into pairs in the variance order.
    Raises InputError if k is not 2, or the table has more than 50,000 distinct rows; NoSolution if
    no classes are found that keep the limits and the diversity.

    The proofs stand in ``docs/approximation.md``. The cover is found by a matching among the pairs
    of rows that are nearer to each other than their nearest neighbours are together. A loss
    without tables, or not monotone, is taken to be GCP. Beyond 6,000 rows with many such pairs the
    matching is not proven greatest: the bound is then weaker, and no factor is claimed. Complexity:
    O(n^2 m) time to look at all pairs, and the matching.

    References
    ----------
    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 5.
    """
    if problem.k != 2:
        raise InputError(
            f"edge-cover makes classes for k = 2, and k is {problem.k}",
            remedy="Use two-factor for k = 3, forest for any k",
        )
    watch, budget, asked = Stopwatch(), budget or Budget(), guide(problem)
    types = len(asked.microdata.row_types(asked.compiled.tables.columns).counts)
    if types > LARGEST_TABLE:
        raise InputError(
            f"edge-cover looks at all pairs, and the table has {types} distinct rows",
            remedy=f"Use forest beyond {LARGEST_TABLE}",
        )
    near, stopped = nearest_rows(asked, budget)
    labels = np.full(problem.n, -1, np.int64)
    weight, is_lightest = None, False
    if stopped is None:
        labels, weight, is_lightest, stopped = _classes(problem.n, near, budget)
    lacks, told = None, "2 times the optimum: suppression"
    if not problem.compiled.has_tables or cell_costs(problem) is None:
        lacks = "the paper proves one for suppression only, and some cells are generalized"
    elif not is_lightest:
        lacks = "the edge cover is not proven lightest"
    elif is_binary(problem):
        told = "1.5 times the optimum: binary table"
    bound = None
    if weight is not None and not problem.may_suppress and loss_obstacle(problem) is None:
        factor = 2.0 if is_binary(problem) else 1.5
        value = factor * max(0.0, weight) * (1.0 - LOSS_RELATIVE)
        bound = value, f"{factor:g} x lightest edge cover"
    given = problem, labels, "edge-cover", watch, budget, stopped
    return concluded(*given, factor=told, lacks=lacks, everyone=True, bound=bound)


def _classes(
    n: int, near: NearestRows, budget: Budget
) -> tuple[Ints, float | None, bool, Stopped | None]:
    """Return (n,) labels, what every edge cover weighs at least, whether the one found is lightest.

    And why it stopped early: the cover then has no matching, and nothing is known of the lightest.
    """
    types = len(near.listed)
    # The type of each row's nearest other row: its own if several rows share it.
    nearest = np.where(near.listed > 1, near.types[:, 1], np.arange(types)).astype(np.int64)
    least = pair_distances(near.rows, np.arange(types), nearest)
    pairs, most = np.empty((0, 2), np.int64), 0.0
    ends, savings, stopped = close_pairs(near, least, budget)
    if stopped is None:
        pairs, most, stopped = saving_edges(types, ends, savings, budget)
    edges, weights = _cover(near, nearest, least, pairs)
    type_of = np.repeat(np.arange(types), near.counts)

    def distances(one: Ints, other: Ints) -> Floats:
        return pair_distances(near.rows, type_of[one], type_of[other])

    labels = np.empty(n, np.int64)
    labels[near.records] = star_classes(n, edges, weights, distances)
    if stopped is not None:
        return labels, None, False, stopped
    saved = least[pairs].sum()
    saved -= pair_distances(near.rows, pairs[:, 0].copy(), pairs[:, 1].copy()).sum()
    is_lightest = bool(most - saved <= OPTIMALITY_RELATIVE * abs(most))
    return labels, float(least.sum()) - most, is_lightest, None


def _cover(near: NearestRows, nearest: Ints, least: Floats, pairs: Ints) -> tuple[Ints, Floats]:
    """Return an edge cover of the rows: matched pairs, and each other row's lightest edge.

    Rows of one type are paired, the last of an odd number with its neighbour. Where many rows take
    their edge to one type, its rows take turns.
    """
    counts = near.counts
    edges = [(int(near.start[a]), int(near.start[b])) for a, b in pairs]
    weights = [float(least[a] + least[b]) for a, b in pairs]
    matched = np.zeros(len(counts), np.bool_)
    matched[pairs.ravel()] = True
    turn = near.start[:-1].copy()
    for kind in range(len(counts)):
        begin, end = int(near.start[kind]), int(near.start[kind + 1])
        if counts[kind] > 1:
            edges += [(at, at + 1) for at in range(begin, end - 1, 2)]
            if (end - begin) % 2:
                edges.append((end - 2, end - 1))
            weights += [0.0] * (len(edges) - len(weights))
        elif not matched[kind]:
            other = nearest[kind]
            edges.append((begin, int(turn[other])))
            weights.append(float(least[kind]))
            turn[other] += 1
            if turn[other] == near.start[other + 1]:
                turn[other] = near.start[other]
    return np.array(edges, np.int64), np.array(weights)


def star_classes(
    n: int, edges: Ints, weights: Floats, distances: Callable[[Ints, Ints], Floats]
) -> Ints:
    """Return (n,) labels of classes of two or three rows, from an edge cover and its weights.

    Edges that the cover does not need go first, the heaviest before others; what remains are
    stars. A star of more than two leaves hands over its leaves in pairs: by the triangle
    inequality the edge between two leaves is no heavier than their edges to the centre. The
    weights of edges between given rows are their `distances`.
    """
    degree = np.bincount(edges.ravel(), minlength=n)
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for at in np.argsort(-weights, kind="stable"):
        one, other = edges[at].tolist()
        if degree[one] > 1 and degree[other] > 1:
            degree[one] -= 1
            degree[other] -= 1
        else:
            neighbours[one].append(other)
            neighbours[other].append(one)
    labels = np.full(n, -1, np.int64)
    classes = 0
    # Centres of several leaves come first; of a single edge either end may be the centre.
    for centre in np.argsort(-degree, kind="stable").tolist():
        if labels[centre] >= 0:
            continue
        pairs, rest = _paired(sorted(neighbours[centre]), distances)
        for group in (*pairs, (centre, *rest)):
            labels[list(group)] = classes
            classes += 1
    return labels


def _paired(
    leaves: Sequence[int], distances: Callable[[Ints, Ints], Floats]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return pairs of leaves, the nearest first, and the one or two that stay with the centre."""
    left = list(leaves)
    pairs: list[tuple[int, int]] = []
    if 2 < len(left) <= _PAIRED_BY_DISTANCE:
        rows = np.array(left, np.int64)
        one, other = np.triu_indices(len(rows), 1)
        for at in np.argsort(distances(rows[one], rows[other]), kind="stable"):
            pair = int(rows[one[at]]), int(rows[other[at]])
            if len(left) > 2 and pair[0] in left and pair[1] in left:
                pairs.append(pair)
                left = [leaf for leaf in left if leaf not in pair]
    while len(left) > 2:
        pairs.append((left.pop(0), left.pop(0)))
    return pairs, left
