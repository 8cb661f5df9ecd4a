"""Algorithm FOREST: trees of at least k rows whose edges lead to near neighbours."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.approximation.nearest_rows import NearestRows
from anonymip.objectives.kernels.class_loss import pair_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class Forest(Packed):
    """Rooted trees that span all rows, which are numbered type by type.

    Parameters
    ----------
    parent
        (n,) row to which the one edge leads that is charged to a row; -1 for the root of a tree.
    weight
        (n,) weight of that edge; 0 for a root.
    """

    parent: NDArray[np.int64]
    weight: NDArray[np.float64]


def grow_forest(tables: LossTables, near: NearestRows, k: int) -> Forest:
    """Return a forest of trees of at least k rows, each edge to one of k - 1 nearest neighbours.

    A component of fewer than k rows has one row without an edge of its own, and one of that row's
    k - 1 nearest neighbours lies outside; the edge goes to the nearest such. Of all small
    components the one whose edge is lightest comes first: the paper leaves the order open.

    Notes
    -----
    Each row is charged one edge at most, no longer than to its (k-1)-th nearest neighbour, which it
    also loses in any release: the forest weighs no more than the optimum (Lemma 3 of [1]_).
    Complexity: O(n k log n) time.

    References
    ----------
    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 4.1.
    """
    n = len(near.records)
    forest = Forest(np.full(n, -1, np.int64), np.zeros(n))
    type_of = np.repeat(np.arange(len(near.listed)), np.diff(near.start))
    _grow(tables, near, type_of, k, forest)
    return forest


@kernel
def _root(joined: NDArray[np.int64], row: int) -> int:
    """Return the representative of a component, halving the path to it."""
    while joined[row] != row:
        joined[row] = joined[joined[row]]
        row = joined[row]
    return row


@kernel
def _nearest_outside(
    near: NearestRows, type_of: NDArray[np.int64], joined: NDArray[np.int64], row: int
) -> int:
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
def _grow(
    tables: LossTables, near: NearestRows, type_of: NDArray[np.int64], k: int, forest: Forest
) -> None:
    n = len(type_of)
    joined, size = np.arange(n), np.ones(n, np.int64)
    queue = [(0.0, 0) for _ in range(0)]
    for row in range(n):
        other = _nearest_outside(near, type_of, joined, row)
        queue.append((pair_loss(tables, near.rows, type_of[row], type_of[other]), row))
    heapq.heapify(queue)
    while len(queue) > 0:
        noted, row = heapq.heappop(queue)
        own = _root(joined, row)
        if forest.parent[row] >= 0 or size[own] >= k:
            continue
        other = _nearest_outside(near, type_of, joined, row)
        weight = pair_loss(tables, near.rows, type_of[row], type_of[other])
        if weight > noted:
            # What was nearest has come inside since.
            heapq.heappush(queue, (weight, row))
            continue
        forest.parent[row] = other
        forest.weight[row] = weight
        its = _root(joined, other)
        small, large = (own, its) if size[own] < size[its] else (its, own)
        joined[small] = large
        size[large] += size[small]
