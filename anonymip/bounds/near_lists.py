"""Types near a row: gathered by a k-d tree, and kept in one list for each size of a growing set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.box_tree import BoxTree, box_bound
from anonymip.objectives.kernels.class_loss import ClassState, KernelRows, open_class
from anonymip.objectives.kernels.growing_sets import (
    GrowingSets,
    TermRows,
    add_row,
    empty_set,
    losses_with,
    new_growing_sets,
)
from anonymip.objectives.kernels.nearest_types import DEEPEST
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

_BINS = 64
#: A short list is sorted by insertion.
_SHORT = 12


class NearLists(Packed):
    """Workspace of searches for sets of near types.

    Parameters
    ----------
    types, losses, bounds, within
        (room,) the lists, one behind the other: types, the record loss of the partial set with
        each, and what sets leave at least in which it is the furthest, or that it is beyond.
    begin, end, at
        (k + 1,) where the list lies of what a set of so many rows may take in, and the next.
    duals
        (k + 1,) duals of the rows of the partial set, summed.
    chosen
        (k + 1,) type that a set of so many rows has taken in.
    sets
        (k + 1, ...) what it covers.
    used
        (t,) rows of each type in the partial set.
    top
        (k,) highest duals.
    bin_tops, bin_filled, bin_bounds
        (bins, k), (bins,), (bins,) highest duals of each bin of losses, how many there are, and a
        bound.
    nodes
        (DEEPEST,) nodes of the tree that wait.
    work
        (1,) losses computed.
    best
        (k,) types of the set that leaves least; -1 comes first if none is known.
    """

    types: NDArray[np.int64]
    losses: NDArray[np.float64]
    bounds: NDArray[np.float64]
    within: NDArray[np.float64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    at: NDArray[np.int64]
    duals: NDArray[np.float64]
    chosen: NDArray[np.int64]
    sets: GrowingSets
    used: NDArray[np.int64]
    top: NDArray[np.float64]
    bin_tops: NDArray[np.float64]
    bin_filled: NDArray[np.int64]
    bin_bounds: NDArray[np.float64]
    nodes: NDArray[np.int64]
    work: NDArray[np.int64]
    best: NDArray[np.int64]


def new_near_lists(tables: LossTables, types: int, k: int, words: int) -> NearLists:
    """Return the workspace of sets of k rows out of so many types."""
    room, whole = 4 * types + 64 * k, np.int64
    return NearLists(
        np.zeros(room, whole),
        np.zeros(room),
        np.zeros(room),
        np.zeros(room),
        np.zeros(k + 1, whole),
        np.zeros(k + 1, whole),
        np.zeros(k + 1, whole),
        np.zeros(k + 1),
        np.zeros(k + 1, whole),
        new_growing_sets(tables, k + 1, words),
        np.zeros(types, whole),
        np.zeros(k),
        np.zeros((_BINS, k)),
        np.zeros(_BINS, whole),
        np.zeros(_BINS),
        np.zeros(DEEPEST, whole),
        np.zeros(1, whole),
        np.full(k, -1, whole),
    )


@kernel
def gather_near(
    tables: LossTables,
    rows: KernelRows,
    terms: TermRows,
    tree: BoxTree,
    state: ClassState,
    lists: NearLists,
    floors: NDArray[np.float64],
    own: int,
    radius: float,
) -> int:
    """List the types that may lie with the own one in a set that loses less than `radius`.

    Their losses are those of the pair, or the type's floor if that is higher. Returns how many they
    are. Complexity: O(m) time for each of these and
    for each node of the tree whose box is within the radius.
    """
    open_class(rows, state, own)
    nodes, types = lists.nodes, lists.types
    held, depth = 0, 1
    nodes[0] = 0
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        lists.work[0] += 1
        if box_bound(tree, tables, state, node) >= radius:
            continue
        if tree.left[node] >= 0:
            nodes[depth], nodes[depth + 1] = tree.left[node] + 1, tree.left[node]
            depth += 2
            continue
        for at in range(tree.begin[node], tree.end[node]):
            if tree.items[at] != own and floors[tree.items[at]] < radius:
                types[held] = tree.items[at]
                held += 1
    empty_set(lists.sets, 0)
    add_row(terms, lists.sets, 0, 1, own)
    losses_with(tables, terms, lists.sets, 1, types, 0, held, lists.losses)
    lists.work[0] += held
    kept = 0
    for at in range(held):
        loss = max(lists.losses[at], floors[types[at]])
        if loss < radius:
            types[kept], lists.losses[kept] = types[at], loss
            kept += 1
    return kept


@kernel
def put_top(top: NDArray[np.float64], filled: int, most: int, dual: float, copies: int) -> int:
    """Insert a dual so many times into the `most` highest, falling; return how many there are."""
    for _ in range(copies):
        if filled == most:
            if most == 0 or dual <= top[most - 1]:
                break
            filled -= 1
        place = filled
        while place > 0 and top[place - 1] < dual:
            top[place] = top[place - 1]
            place -= 1
        top[place] = dual
        filled += 1
    return filled


@kernel
def sort_by_loss(
    types: NDArray[np.int64], losses: NDArray[np.float64], begin: int, end: int
) -> None:
    """Sort a part of a list by rising losses; which of equal ones comes first, no matter."""
    count = end - begin
    if count > _SHORT:
        # A heap: the largest goes to the end, again and again.
        for root in range(count // 2 - 1, -1, -1):
            _sift_down(types, losses, begin, root, count)
        for last in range(count - 1, 0, -1):
            first, other = begin, begin + last
            types[first], types[other] = types[other], types[first]
            losses[first], losses[other] = losses[other], losses[first]
            _sift_down(types, losses, begin, 0, last)
        return
    for at in range(begin + 1, end):
        row, loss = types[at], losses[at]
        place = at
        while place > begin and losses[place - 1] > loss:
            types[place], losses[place] = types[place - 1], losses[place - 1]
            place -= 1
        types[place], losses[place] = row, loss


@kernel
def _sift_down(
    types: NDArray[np.int64], losses: NDArray[np.float64], begin: int, root: int, count: int
) -> None:
    """Let an element of a heap of `count` sink to its place."""
    row, loss = types[begin + root], losses[begin + root]
    while True:
        child = 2 * root + 1
        if child >= count:
            break
        if child + 1 < count and losses[begin + child + 1] > losses[begin + child]:
            child += 1
        if losses[begin + child] <= loss:
            break
        types[begin + root], losses[begin + root] = types[begin + child], losses[begin + child]
        root = child
    types[begin + root], losses[begin + root] = row, loss
