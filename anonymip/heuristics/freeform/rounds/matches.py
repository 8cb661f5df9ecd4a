"""The cheapest matches of all records: a heap of the best of each, shortlists of the next ones."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.heuristics.freeform.rounds.blocks import LONGEST, Blocks, find_cheapest
from anonymip.heuristics.freeform.rounds.growing_cover import GrowingCover, PairWeights
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Records on a first shortlist: bounds rule out fewer blocks the longer it is.
_FIRST = 2


class MatchHeap(Packed):
    """Records, each with its best match; the least weight comes first.

    A binary heap; ties go to the match, then the record, that comes first in the order.
    """

    weight: Annotated[Floats, "n"]  # of the match of each record
    match: Annotated[Ints, "n"]  # the other side of it
    records: Annotated[Ints, "n"]  # records of the heap
    size: Annotated[Ints, "1"]  # records in the heap


@kernel
def _precedes(heap: MatchHeap, one: int, other: int) -> bool:
    if heap.weight[one] != heap.weight[other]:
        return heap.weight[one] < heap.weight[other]
    if heap.match[one] != heap.match[other]:
        return heap.match[one] < heap.match[other]
    return one < other


@kernel
def push(heap: MatchHeap, record: int, weight: float, match: int) -> None:
    """Put a record into the heap; it must not be in it. Complexity: O(log n) time."""
    heap.weight[record] = weight
    heap.match[record] = match
    at = heap.size[0]
    heap.size[0] += 1
    while at > 0:
        above = (at - 1) // 2
        if not _precedes(heap, record, heap.records[above]):
            break
        heap.records[at] = heap.records[above]
        at = above
    heap.records[at] = record


@kernel
def pop(heap: MatchHeap) -> int:
    """Take the first record out of the heap and return it; -1 if there is none.

    Complexity: O(log n) time.
    """
    if heap.size[0] == 0:
        return -1
    first = heap.records[0]
    heap.size[0] -= 1
    size = heap.size[0]
    if size > 0:
        moved = heap.records[size]
        at = 0
        while True:
            below = 2 * at + 1
            if below >= size:
                break
            if below + 1 < size and _precedes(heap, heap.records[below + 1], heap.records[below]):
                below += 1
            if not _precedes(heap, heap.records[below], moved):
                break
            heap.records[at] = heap.records[below]
            at = below
        heap.records[at] = moved
    return first


class Shortlists(Packed):
    """The cheapest originals of each published record when it last searched.

    Originals that found all their sets since are passed over; none comes back within a round.
    """

    #: Originals by weight, then by number, and the weights.
    records: Annotated[Ints, "n, min(n, LONGEST)"]
    costs: Annotated[Floats, "n, min(n, LONGEST)"]
    cursor: Annotated[Ints, "n, 2"]  # the next place; places filled


@kernel
def next_original(
    lists: Shortlists, blocks: Blocks, weights: PairWeights, cover: GrowingCover, i: int
) -> tuple[int, float]:
    """Return the original that published record i takes in at the least weight, and the weight.

    The first of them where several do; -1 if it may take in none that looks for a set. An original
    is returned once in a round.
    """
    at, filled = lists.cursor[i, 0], lists.cursor[i, 1]
    while True:
        while at < filled and blocks.places[lists.records[i, at]] == 0:
            at += 1
        if at < filled:
            lists.cursor[i, 0], lists.cursor[i, 1] = at + 1, filled
            return lists.records[i, at], lists.costs[i, at]
        # One that lost some matches to others is likely to lose more.
        longest = min(_FIRST if filled == 0 else LONGEST, lists.records.shape[1])
        at, filled = 0, find_cheapest(blocks, weights, cover, i, False, longest)
        for place in range(filled):
            lists.records[i, place] = blocks.found[place]
            lists.costs[i, place] = blocks.costs[place]
        if filled == 0:
            return -1, np.inf
