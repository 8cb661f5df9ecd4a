"""Published records in blocks of neighbours, with bounds on what any of a block would pay.

Finds the published record that takes in an original at the least weight without a look at all.
The bound of a block adds up the least penalty of each term in the order in which a weight adds up
its own, so rounding cannot reverse the two, and the answer is that of a scan.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    covers,
    pair_weight,
)
from anonymip.heuristics.freeform.set_growth import fill_table
from anonymip.heuristics.freeform.set_terms import SetTerms
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Records in a block.
_BLOCK = 64
#: A term with more values than this is left out of the bounds: their memory is values times blocks.
_MOST_VALUES = 8_192


class PublishedBlocks(Packed):
    """Published records with room, in order, cut into blocks of 64.

    Parameters
    ----------
    items
        (n,) published records that had room when the blocks were made.
    low, high
        (r, blocks) least lower end, greatest upper end of a block.
    penalties
        (values, blocks) least penalty of a block for each value of each set and pair term.
    begin
        (s + p,) where the values of a term begin in `penalties`; -1: left out.
    bounds
        (blocks,) workspace.
    table
        Workspace: penalties of one record.
    cursor
        (2,) items; those that still have room.
    """

    items: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    penalties: NDArray[np.float64]
    begin: NDArray[np.int64]
    bounds: NDArray[np.float64]
    table: NDArray[np.float64]
    cursor: NDArray[np.int64]


def new_blocks(terms: SetTerms, *, bounded: bool) -> PublishedBlocks:
    """Return the memory of the blocks; :func:`make_blocks` fills it.

    Parameters
    ----------
    terms
        Of the loss.
    bounded
        Whether bounds are wanted, which hold if no penalty is negative.
    """
    r, n = terms.range_values.shape
    blocks = -(-n // _BLOCK) if bounded else 0
    values = np.diff(terms.table_start)
    read = np.where(values <= _MOST_VALUES, values, 0)
    begin = np.where(values <= _MOST_VALUES, np.cumsum(read) - read, -1).astype(np.int64)
    return PublishedBlocks(
        np.empty(n, np.int64),
        np.empty((r, blocks)),
        np.empty((r, blocks)),
        np.empty((int(read.sum()), blocks)),
        begin,
        np.empty(blocks),
        np.empty(int(terms.table_start[-1])),
        np.zeros(2, np.int64),
    )


@kernel
def make_blocks(blocks: PublishedBlocks, weights: PairWeights, room: NDArray[np.int64]) -> None:
    """Gather the published records that have room and bound each block.

    Complexity: O(n times the number of values) time.
    """
    kept = 0
    for i in range(len(room)):
        if room[i] > 0:
            blocks.items[kept] = i
            kept += 1
    blocks.cursor[0] = kept
    blocks.cursor[1] = kept
    if len(blocks.bounds) == 0:
        return
    terms, states = weights.terms, weights.states
    least = np.empty_like(blocks.table)
    for b in range((kept + _BLOCK - 1) // _BLOCK):
        # Ends of ranges and penalties that no set of the block undercuts.
        blocks.low[:, b] = np.inf
        blocks.high[:, b] = -np.inf
        least[:] = np.inf
        for at in range(b * _BLOCK, min(kept, (b + 1) * _BLOCK)):
            i = blocks.items[at]
            for r in range(len(terms.range_up)):
                blocks.low[r, b] = min(blocks.low[r, b], states.low[i, r])
                blocks.high[r, b] = max(blocks.high[r, b], states.high[i, r])
            fill_table(terms, states, i, blocks.table)
            for value in range(len(least)):
                least[value] = min(least[value], blocks.table[value])
        # Value by value, so that the bounds of all blocks for one value are a row.
        for term in range(len(blocks.begin)):
            if blocks.begin[term] >= 0:
                start = terms.table_start[term]
                for value in range(terms.table_start[term + 1] - start):
                    blocks.penalties[blocks.begin[term] + value, b] = least[start + value]


@kernel
def _fill_bounds(blocks: PublishedBlocks, terms: SetTerms, record: int, count: int) -> None:
    bounds = blocks.bounds
    bounds[:count] = 0.0
    for r in range(len(terms.range_up)):
        value, down, up = terms.range_values[r, record], terms.range_down[r], terms.range_up[r]
        low, high = blocks.low[r], blocks.high[r]
        for b in range(count):
            bounds[b] += down * max(low[b] - value, 0.0) + up * max(value - high[b], 0.0)
    sets = len(terms.set_sizes)
    for term in range(len(blocks.begin)):
        if blocks.begin[term] >= 0:
            code = (
                terms.set_codes[term, record]
                if term < sets
                else terms.pair_codes[term - sets, record]
            )
            row = blocks.penalties[blocks.begin[term] + code]
            for b in range(count):
                bounds[b] += row[b]


@kernel
def _scan_block(
    blocks: PublishedBlocks,
    weights: PairWeights,
    cover: GrowingCover,
    room: NDArray[np.int64],
    record: int,
    b: int,
    best: int,
    least: float,
) -> tuple[int, float]:
    for at in range(b * _BLOCK, min(blocks.cursor[0], (b + 1) * _BLOCK)):
        i = blocks.items[at]
        if room[i] == 0:
            continue
        weight = pair_weight(weights, i, record)
        better = weight < least or (weight == least and i < best)
        if better and not covers(cover, i, record):
            best, least = i, weight
    return best, least


@kernel
def cheapest_published(
    blocks: PublishedBlocks,
    weights: PairWeights,
    cover: GrowingCover,
    room: NDArray[np.int64],
    record: int,
) -> int:
    """Return the published record with room that takes in an original at the least weight.

    The first of them where several do; -1 if none may take it in.

    Notes
    -----
    Complexity: O((n / 64 + 64 b) m) time, b being the blocks whose bound does not rule them out.
    """
    count = (blocks.cursor[0] + _BLOCK - 1) // _BLOCK
    best, least = -1, np.inf
    if len(blocks.bounds) == 0:
        for b in range(count):
            best, least = _scan_block(blocks, weights, cover, room, record, b, best, least)
        return best
    _fill_bounds(blocks, weights.terms, record, count)
    # First the block that holds the record itself: it is likely to hold a cheap one.
    own = min(count - 1, np.searchsorted(blocks.items[: blocks.cursor[0]], record) // _BLOCK)
    if count > 0:
        best, least = _scan_block(blocks, weights, cover, room, record, own, best, least)
    # A block whose bound is above the best, or equal to it with later records, has no better one.
    for b in range(count):
        bound = blocks.bounds[b]
        if b == own or bound > least or (bound == least and blocks.items[b * _BLOCK] > best):
            continue
        best, least = _scan_block(blocks, weights, cover, room, record, b, best, least)
    return best


@kernel
def fill_room(
    blocks: PublishedBlocks, weights: PairWeights, room: NDArray[np.int64], i: int
) -> None:
    """Take one place of published record i; remake the blocks when half of them are full."""
    room[i] -= 1
    if room[i] == 0:
        blocks.cursor[1] -= 1
        if 2 * blocks.cursor[1] < blocks.cursor[0] and blocks.cursor[0] > _BLOCK:
            make_blocks(blocks, weights, room)
