"""Shortlists of originals: the cheapest few of each published record, found in one search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.blocks.original_blocks import (
    BLOCK,
    OriginalBlocks,
    fill_bounds,
    weigh_block,
)
from anonymip.heuristics.freeform.rounds.growing_cover import GrowingCover, PairWeights
from anonymip.heuristics.freeform.set_growth import fill_table
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Originals on a first shortlist: bounds rule out fewer blocks the longer it is.
_FIRST = 2
#: Originals on later ones: a record that lost some originals to others is likely to lose more.
_LONGEST = 32


class Shortlists(Packed):
    """The cheapest originals of each published record when it last searched.

    Originals that found all their sets since are passed over; none comes back within a round.

    Parameters
    ----------
    records, costs
        (n, longest) originals by weight, then by number, and the weights.
    cursor
        (n, 2) the next place; places filled.
    marks
        (n,) last published record whose search left an original out, being in its set.
    """

    records: NDArray[np.int64]
    costs: NDArray[np.float64]
    cursor: NDArray[np.int64]
    marks: NDArray[np.int64]


def new_shortlists(n: int) -> Shortlists:
    """Return empty shortlists of n published records for a round."""
    longest = min(n, _LONGEST)
    return Shortlists(
        np.empty((n, longest), np.int64),
        np.empty((n, longest)),
        np.zeros((n, 2), np.int64),
        np.full(n, -1, np.int64),
    )


@kernel
def next_original(
    lists: Shortlists,
    blocks: OriginalBlocks,
    weights: PairWeights,
    cover: GrowingCover,
    left: NDArray[np.int64],
    i: int,
) -> tuple[int, float]:
    """Return the original that published record i takes in at the least weight, and the weight.

    The first of them where several do; -1 if it may take in none that looks for a set. An original
    is returned once in a round.

    Parameters
    ----------
    left
        (n,) sets that each original is still to join.
    """
    while True:
        at, filled = lists.cursor[i, 0], lists.cursor[i, 1]
        while at < filled and left[lists.records[i, at]] == 0:
            at += 1
        if at < filled:
            lists.cursor[i, 0] = at + 1
            return lists.records[i, at], lists.costs[i, at]
        longest = _FIRST if filled == 0 else lists.records.shape[1]
        _fill(lists, blocks, weights, cover, left, i, min(longest, lists.records.shape[1]))
        if lists.cursor[i, 1] == 0:
            return -1, np.inf


@kernel
def _fill(
    lists: Shortlists,
    blocks: OriginalBlocks,
    weights: PairWeights,
    cover: GrowingCover,
    left: NDArray[np.int64],
    i: int,
    longest: int,
) -> None:
    """Put the cheapest originals on the list of a published record."""
    lists.cursor[i, 0], lists.cursor[i, 1] = 0, 0
    for at in range(cover.sizes[i]):
        lists.marks[cover.members[i, at]] = i
    count = (blocks.cursor[0] + BLOCK - 1) // BLOCK
    bounded = len(blocks.bounds) > 0
    if weights.matrix.shape[0] == 0:
        fill_table(weights.terms, weights.states, i, blocks.table)
    own = -1
    if bounded:
        fill_bounds(blocks, weights.terms, weights.states, i, count)
        # First the block that holds the record itself: it is likely to hold cheap ones.
        own = int(np.searchsorted(blocks.items[: blocks.cursor[0]], i)) // BLOCK
        if own < count:
            _scan(lists, blocks, weights, left, i, longest, own)
    for b in range(count):
        if b == own:
            continue
        if bounded and lists.cursor[i, 1] == longest:
            worst, last = lists.costs[i, longest - 1], lists.records[i, longest - 1]
            bound = blocks.bounds[b]
            if bound > worst or (bound == worst and blocks.items[b * BLOCK] > last):
                continue
        _scan(lists, blocks, weights, left, i, longest, b)


@kernel
def _scan(
    lists: Shortlists,
    blocks: OriginalBlocks,
    weights: PairWeights,
    left: NDArray[np.int64],
    i: int,
    longest: int,
    b: int,
) -> None:
    """Insert the originals of a block that are cheaper than those on the list, or find room."""
    begin, end = b * BLOCK, min(blocks.cursor[0], (b + 1) * BLOCK)
    if weights.matrix.shape[0] > 0:
        for at in range(begin, end):
            blocks.weights[at - begin] = weights.matrix[i, blocks.items[at]]
    else:
        weigh_block(blocks, weights.terms, weights.states, i, begin, end)
    # The list is sorted by weight, then by number; its last entry is the one to undercut.
    records, costs, held = lists.records[i], lists.costs[i], lists.cursor[i, 1]
    worst, last = (costs[longest - 1], records[longest - 1]) if held == longest else (np.inf, -1)
    for at in range(begin, end):
        weight, record = blocks.weights[at - begin], blocks.items[at]
        if weight > worst or (weight == worst and record > last):
            continue
        if left[record] == 0 or lists.marks[record] == i:
            continue
        # Later entries move one place back, and off a full list.
        place = held if held < longest else longest - 1
        while place > 0 and (
            costs[place - 1] > weight
            or (costs[place - 1] == weight and records[place - 1] > record)
        ):
            costs[place], records[place] = costs[place - 1], records[place - 1]
            place -= 1
        costs[place], records[place] = weight, record
        held = min(held + 1, longest)
        if held == longest:
            worst, last = costs[longest - 1], records[longest - 1]
    lists.cursor[i, 1] = held
