"""The approximation algorithm of Aggarwal et al. for any k: a forest of neighbours, cut up."""

from __future__ import annotations

import heapq
from functools import partial
from math import fsum

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from anonymip.heuristics.approximation.guarantees import concluded, guide, loss_obstacle
from anonymip.heuristics.approximation.nearest_rows import NearestRows, nearest_rows
from anonymip.objectives.kernels.class_loss import pair_loss
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_over
from anonymip.solution import Solution
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE


def forest(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Span the records by a forest of neighbours and cut its trees into classes [1]_.

    No release loses less than the records' distances to their (k-1)-th nearest neighbours; the
    forest weighs no more than these, and the classes lose at most max{2k - 1, 3k - 5} times its
    weight. The solution carries the sum of the distances as its bound, so that loss <= factor x
    bound shows in every answer, and the trace tells the factor.

    The guarantee holds for every monotone loss that is 0 for records published exactly and
    whose loss for overlapping classes together is no more than for both: hierarchies, weights,
    suppression, ranges and sets alike. With suppression of records a row of stars takes the place
    of all that is costlier; no factor is claimed where that is a gain, or where only some records
    may be suppressed and something is costlier. Diversity and limits are mended afterwards, and
    then no factor is claimed; neither is one for other losses. A loss without tables, or not
    monotone, is taken to be GCP while the forest grows.

    `problem`: with equivalence classes. `budget`: when it ends, the records are cut into sets of k
    in the variance order, or the trees are cut no further. Raises NoSolution if no classes are
    found that keep the limits and the diversity.

    The proof, with the repair of the paper's decomposition, stands in ``docs/approximation.md``.
    Complexity: one search of a tree for each distinct row and O(n k log n) time, O(n k) memory.

    References
    ----------
    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 4.
    """
    watch, budget = Stopwatch(), budget or Budget()
    near, stopped = nearest_rows(guide(problem), budget)
    bound, labels = None, np.full(problem.n, -1, np.int64)
    if stopped is None:
        parent, weight = grow_forest(near, problem.k)
        labels[near.records], stopped = cut_trees(parent, weight, problem.k, budget)
        if loss_obstacle(problem) is None:
            # What each record loses at least: its (k-1)-th neighbour, or a row of stars. What is
            # left of a difference by rounding must not lift the bound.
            charges = np.maximum(near.farthest - problem.rounding, 0.0)
            if problem.may_suppress:
                charges = np.minimum(charges, problem.compiled.suppression_price)
            value = fsum(np.repeat(charges, near.counts))
            value -= LOSS_RELATIVE * abs(value)
            bound = value, "nearest neighbours of the forest"
    told = f"{largest_part(problem.k)} times the optimum: factor max{{2k - 1, 3k - 5}}"
    given = problem, labels, "forest", watch, budget, stopped
    return concluded(*given, factor=told, lacks=_lacks(problem), everyone=False, bound=bound)


def _lacks(problem: Problem) -> str | None:
    """Return why suppressed records leave no factor; None if they do not, or there are none.

    A row of stars in place of all that is costlier needs as many of them as there may be such
    records. Nothing is costlier where a price is no less than what all lose alike.
    """
    price, most = problem.compiled.suppression_price, problem.most_suppressed
    if most and price < 0:
        return "a suppressed record has a negative loss"
    if 0 < most < problem.n and problem.whole - problem.n * price > problem.rounding:
        return "only so many records may be suppressed"
    return None


def largest_part(k: int) -> int:
    """Return max{2k - 1, 3k - 5}: no part is larger, and this is the factor of the algorithm."""
    return max(2 * k - 1, 3 * k - 5)


def cut_trees(parent: Ints, weight: Floats, k: int, budget: Budget) -> tuple[Ints, Stopped | None]:
    """Return (n,) the part of each row, and why it stopped early, if it did.

    First every edge is cut that leaves at least k rows on both sides, the heaviest first. A tree
    that is left with 2k rows or more has a centre whose branches have fewer than k rows each. Of
    these, groups of k to 2k - 2 rows are made parts of their own, connected by a Steiner copy of
    the centre; the centre itself stays with k - 1 rows or more. No part with a copy is ever cut
    again, so that its Steiner vertex needs no counting.

    `parent, weight`: (n,) trees of at least k rows, as :func:`grow_forest` returns them; both are
    overwritten. `budget`: when it ends, trees are cut no further: parts are then larger, never
    smaller.

    Parts have at most max{2k - 1, 3k - 5} rows, and their trees weigh no more than the forest:
    the proof stands in ``docs/approximation.md``. Algorithm DECOMPOSE-COMPONENT of the paper
    (Section 4.2) cuts parts with a Steiner vertex again and does not always find a cut: with k = 4
    and branches of 3, 3, 3 and 2 rows it leaves 3, 3 and 2 at a Steiner vertex. Complexity:
    O(n log n) time and, for each row, its depth in the tree.
    """
    size = np.ones(len(parent), np.int64)
    _add_up(parent, _order_from_leaves(parent), size)
    heaviest = np.argsort(-weight, kind="stable")
    step = partial(_cut_edges, parent, size, heaviest, k)
    stopped = run_over(step, len(parent), budget, "cutting trees", first=1_000)
    if stopped is None:
        _root_at_centres(parent, weight, size, k)
    order = _order_from_leaves(parent)
    size[:] = 1
    _add_up(parent, order, size)
    labels = np.full(len(parent), -1, np.int64)
    # The branches of one row lie together, the nearest first.
    branches = np.lexsort((weight, parent))
    # Only trees of which every edge was looked at have a centre.
    least = 2 * k if stopped is None else len(parent) + 1
    _label_parts(parent, size, branches, order, k, least, labels)
    return labels, stopped


def _order_from_leaves(parent: Ints) -> Ints:
    """Return the rows in an order in which every one comes before its parent."""
    n = len(parent)
    # All trees hang on one more vertex, from which they are walked through row by row.
    tree = csr_array(
        (np.ones(n, np.int8), (np.where(parent < 0, n, parent), np.arange(n))), (n + 1,) * 2
    )
    order = breadth_first_order(tree, n, return_predecessors=False)
    return order[:0:-1].astype(np.int64)


@kernel
def _add_up(parent: Ints, order: Ints, size: Ints) -> None:
    """Turn ones into the number of rows below each row, itself included."""
    for row in order:
        if parent[row] >= 0:
            size[parent[row]] += size[row]


@kernel
def _cut_edges(parent: Ints, size: Ints, heaviest: Ints, k: int, begin: int, end: int) -> None:
    """Look at some of the edges and cut those that leave k rows on both sides.

    An edge that cannot be cut when it is looked at cannot be cut later: its sides only shrink.
    """
    for row in heaviest[begin:end]:
        if parent[row] >= 0 and size[row] >= k:
            root = parent[row]
            while parent[root] >= 0:
                root = parent[root]
            if size[root] - size[row] >= k:
                above = parent[row]
                while above >= 0:
                    size[above] -= size[row]
                    above = parent[above]
                parent[row] = -1


@kernel
def _root_at_centres(parent: Ints, weight: Floats, size: Ints, k: int) -> None:
    """Root every tree at a row whose branches have fewer than k rows if it has 2k or more.

    Every edge has fewer than k rows on one side. The rows with k or more rows below them
    therefore lie on one path down from the root, and its end is the centre.
    """
    goes_on = np.zeros(len(parent), np.bool_)
    for row in range(len(parent)):
        if parent[row] >= 0 and size[row] >= k:
            goes_on[parent[row]] = True
    for row in range(len(parent)):
        if size[row] >= k and not goes_on[row]:
            below, above, carried = -1, row, 0.0
            while above >= 0:
                following, own = parent[above], weight[above]
                parent[above], weight[above] = below, carried
                below, above, carried = above, following, own


@kernel
def _label_parts(
    parent: Ints, size: Ints, branches: Ints, order: Ints, k: int, least: int, labels: Ints
) -> None:
    """Label the parts: trees of fewer than `least` rows whole, others by branches."""
    n = len(parent)
    parts = 0
    at = 0
    while at < n and parent[branches[at]] < 0:
        labels[branches[at]] = parts
        parts += 1
        at += 1
    while at < n:
        centre, begin = parent[branches[at]], at
        while at < n and parent[branches[at]] == centre:
            at += 1
        if parent[centre] < 0 and size[centre] >= least:
            parts = _label_branches(size, branches[begin:at], k, labels, labels[centre], parts)
    for place in range(n - 1, -1, -1):
        row = order[place]
        if labels[row] < 0:
            labels[row] = labels[parent[row]]


@kernel
def _label_branches(size: Ints, branches: Ints, k: int, labels: Ints, own: int, parts: int) -> int:
    """Label the branches of one centre, whose part is `own`; return how many parts there are."""
    # What stays with the centre so that it has k rows: a branch of k - 1, or else the nearest.
    kept = 0
    for row in branches:
        if size[row] == k - 1:
            labels[row] = own
            kept = size[row]
            break
    if kept == 0:
        for row in branches:
            if kept < k - 1:
                labels[row] = own
                kept += size[row]
    # The other branches are gathered into parts of k rows or more; fewer than k rows may be left.
    group = 0
    for row in branches:
        if labels[row] < 0:
            labels[row] = parts
            group += size[row]
            if group >= k:
                parts += 1
                group = 0
    if group == 0:
        return parts
    if group == k - 1 and kept >= k:
        # The rest suffices for the centre, and what was kept for itself.
        for row in branches:
            if labels[row] == own:
                labels[row] = parts
            elif labels[row] == parts:
                labels[row] = own
        return parts + 1
    for row in branches:
        if labels[row] == parts:
            labels[row] = own
    return parts


def grow_forest(near: NearestRows, k: int) -> tuple[Ints, Floats]:
    """Return a forest of trees of at least k rows, each edge to one of k - 1 nearest neighbours.

    That is (n,) the row to which the one edge leads that is charged to a row, -1 for the root of a
    tree, and the weight of that edge, 0 for a root. Rows are numbered type by type.

    A component of fewer than k rows has one row without an edge of its own, and one of that row's
    k - 1 nearest neighbours lies outside; the edge goes to the nearest such. Of all small
    components the one whose edge is lightest comes first: the paper leaves the order open.

    Each row is charged one edge at most, no longer than to its (k-1)-th nearest neighbour, which it
    also loses in any release: the forest weighs no more than the optimum (Section 4.1, Lemma 3).
    Complexity: O(n k log n) time.
    """
    n = len(near.records)
    parent, weight = np.full(n, -1, np.int64), np.zeros(n)
    _grow(near, np.repeat(np.arange(len(near.counts)), near.counts), k, parent, weight)
    return parent, weight


@kernel
def _root(joined: Ints, row: int) -> int:
    """Return the representative of a component, halving the path to it."""
    while joined[row] != row:
        joined[row] = joined[joined[row]]
        row = joined[row]
    return row


@kernel
def _nearest_outside(near: NearestRows, type_of: Ints, joined: Ints, row: int) -> int:
    """Return the first of a row's nearest neighbours that lies outside its component.

    A component of fewer than k rows is left after fewer than k of them.
    """
    own, kind = _root(joined, row), type_of[row]
    for at in range(near.listed[kind]):
        other = near.types[kind, at]
        for candidate in range(near.start[other], near.start[other + 1]):
            if _root(joined, candidate) != own:
                return candidate
    return -1


@kernel
def _grow(near: NearestRows, type_of: Ints, k: int, parent: Ints, weight: Floats) -> None:
    n = len(type_of)
    joined, size = np.arange(n), np.ones(n, np.int64)
    queue = [(0.0, 0) for _ in range(0)]
    for row in range(n):
        other = _nearest_outside(near, type_of, joined, row)
        queue.append((pair_loss(near.rows, type_of[row], type_of[other]), row))
    heapq.heapify(queue)
    while len(queue) > 0:
        noted, row = heapq.heappop(queue)
        own = _root(joined, row)
        if parent[row] >= 0 or size[own] >= k:
            continue
        other = _nearest_outside(near, type_of, joined, row)
        distance = pair_loss(near.rows, type_of[row], type_of[other])
        if distance > noted:
            # What was nearest has come inside since.
            heapq.heappush(queue, (distance, row))
            continue
        parent[row], weight[row] = other, distance
        its = _root(joined, other)
        small, large = (own, its) if size[own] < size[its] else (its, own)
        joined[small] = large
        size[large] += size[small]
