"""Originals in blocks of neighbours, with bounds on what a set would pay for any of a block.

The counterpart of :mod:`anonymip.heuristics.freeform.rounds.blocks.published_blocks`: one
published record looks for the original that it takes in at the least weight.
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
from anonymip.heuristics.freeform.set_growth import SetStates, fill_table
from anonymip.heuristics.freeform.set_terms import SetTerms
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Originals in a block.
BLOCK = 32


class OriginalBlocks(Packed):
    """Originals that still look for a set, in order, cut into blocks.

    Parameters
    ----------
    items
        (n,) originals that looked for a set when the blocks were made.
    values, set_codes, pair_codes
        (r | s | p, n) the terms of the items, side by side so that each term is one short pass.
    low, high
        (r, blocks) least and greatest value of a block.
    masks
        (s, blocks) uint64, a bit for each value of a block, values being counted modulo 64.
    pair_low, pair_high
        (p, blocks) least and greatest rank of a block.
    bounds
        (blocks,) workspace; empty if no bounds are wanted.
    table, weights
        Workspaces: penalties of one record; (32,) weights of a block.
    cursor
        (2,) items; those that still look for a set.
    """

    items: NDArray[np.int64]
    values: NDArray[np.float64]
    set_codes: NDArray[np.int32]
    pair_codes: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    masks: NDArray[np.uint64]
    pair_low: NDArray[np.int32]
    pair_high: NDArray[np.int32]
    bounds: NDArray[np.float64]
    table: NDArray[np.float64]
    weights: NDArray[np.float64]
    cursor: NDArray[np.int64]


def new_original_blocks(terms: SetTerms, *, bounded: bool) -> OriginalBlocks:
    """Return the memory of the blocks; :func:`make_original_blocks` fills it.

    Parameters
    ----------
    terms
        Of the loss.
    bounded
        Whether bounds are wanted, which hold if the loss is monotone.
    """
    r, n = terms.range_values.shape
    blocks = -(-n // BLOCK) if bounded else 0
    s, p = len(terms.set_sizes), len(terms.pair_sizes)
    return OriginalBlocks(
        np.empty(n, np.int64),
        np.empty((r, n)),
        np.empty((s, n), np.int32),
        np.empty((p, n), np.int32),
        np.empty((r, blocks)),
        np.empty((r, blocks)),
        np.empty((s, blocks), np.uint64),
        np.empty((p, blocks), np.int32),
        np.empty((p, blocks), np.int32),
        np.empty(blocks),
        np.empty(int(terms.table_start[-1])),
        np.empty(BLOCK),
        np.zeros(2, np.int64),
    )


@kernel
def make_original_blocks(blocks: OriginalBlocks, terms: SetTerms, left: NDArray[np.int64]) -> None:
    """Gather the originals that look for a set and bound each block.

    Parameters
    ----------
    left
        (n,) sets that each original is still to join.

    Notes
    -----
    Complexity: O(n m) time.
    """
    # Items keep the order of the records, so that a block holds neighbours.
    kept = 0
    for record in range(len(left)):
        if left[record] > 0:
            blocks.items[kept] = record
            # One by one: numba compiles the assignment of a whole column for a second.
            for r in range(len(blocks.values)):
                blocks.values[r, kept] = terms.range_values[r, record]
            for s in range(len(blocks.set_codes)):
                blocks.set_codes[s, kept] = terms.set_codes[s, record]
            for p in range(len(blocks.pair_codes)):
                blocks.pair_codes[p, kept] = terms.pair_codes[p, record]
            kept += 1
    # All items still look for a set.
    blocks.cursor[0] = kept
    blocks.cursor[1] = kept
    if len(blocks.bounds) == 0:
        return
    for b in range((kept + BLOCK - 1) // BLOCK):
        # Least and greatest value, rank, or set of values modulo 64 of each term in the block.
        held = blocks.items[b * BLOCK : min(kept, (b + 1) * BLOCK)]
        for r in range(len(terms.range_up)):
            low, high = np.inf, -np.inf
            for record in held:
                low = min(low, terms.range_values[r, record])
                high = max(high, terms.range_values[r, record])
            blocks.low[r, b] = low
            blocks.high[r, b] = high
        # Values that share a bit make a bound lower, never too high.
        for s in range(len(terms.set_sizes)):
            mask = np.uint64(0)
            for record in held:
                mask |= np.uint64(1) << np.uint64(terms.set_codes[s, record] & 63)
            blocks.masks[s, b] = mask
        for p in range(len(terms.pair_sizes)):
            least, most = terms.pair_codes[p, held[0]], terms.pair_codes[p, held[0]]
            for record in held:
                least = min(least, terms.pair_codes[p, record])
                most = max(most, terms.pair_codes[p, record])
            blocks.pair_low[p, b] = least
            blocks.pair_high[p, b] = most


@kernel
def fill_bounds(
    blocks: OriginalBlocks, terms: SetTerms, states: SetStates, i: int, count: int
) -> None:
    """Add up the least penalty of each term in the order in which a weight adds up its own."""
    bounds = blocks.bounds
    bounds[:count] = 0.0
    for r in range(len(terms.range_up)):
        low, high = states.low[i, r], states.high[i, r]
        down, up = terms.range_down[r], terms.range_up[r]
        least, most = blocks.low[r], blocks.high[r]
        # A block within or across the range of the set may hold a record that widens nothing.
        for b in range(count):
            below, above = low - most[b], least[b] - high
            bounds[b] += down * (below if below > 0.0 else 0.0) + up * (
                above if above > 0.0 else 0.0
            )
    # A block that shares no bit with the set holds only values that are new to it.
    for s in range(len(terms.set_sizes)):
        mask = np.uint64(0)
        begin = states.list_start[s]
        for place in range(begin, begin + states.counts[i, s]):
            mask |= np.uint64(1) << np.uint64(states.listed[i, place] & 63)
        # A further value costs the same whichever it is.
        rise = 0.0
        if states.counts[i, s] < terms.set_sizes[s]:
            at = terms.set_start[s] + states.counts[i, s]
            rise = terms.set_losses[at + 1] - terms.set_losses[at]
        masks = blocks.masks[s]
        for b in range(count):
            bounds[b] += rise if (masks[b] & mask) == np.uint64(0) else 0.0
    for p in range(len(terms.pair_sizes)):
        low_code, high_code = states.pair_low[i, p], states.pair_high[i, p]
        begin = terms.table_start[len(terms.set_sizes) + p]
        # The rank of the block within the range of the set or nearest to it: none costs less.
        for b in range(count):
            code = max(blocks.pair_low[p, b], min(low_code, blocks.pair_high[p, b]))
            if blocks.pair_low[p, b] > high_code:
                code = blocks.pair_low[p, b]
            bounds[b] += blocks.table[begin + code]


@kernel
def weigh_block(
    blocks: OriginalBlocks, terms: SetTerms, states: SetStates, i: int, begin: int, end: int
) -> None:
    """Fill in the weights of the items from `begin` on; the table holds the penalties."""
    weights = blocks.weights[: end - begin]
    weights[:] = 0.0
    for r in range(len(terms.range_up)):
        low, high, cap = states.low[i, r], states.high[i, r], terms.range_cap[r]
        down, up = terms.range_down[r], terms.range_up[r]
        values = blocks.values[r, begin:end]
        for at in range(len(weights)):
            below, above = low - values[at], values[at] - high
            weights[at] += down * (below if below > 0.0 else 0.0) + up * (
                above if above > 0.0 else 0.0
            )
        if cap < np.inf:
            for at in range(len(weights)):
                if max(high, values[at]) - min(low, values[at]) > cap:
                    weights[at] = np.inf
    sets = len(terms.set_sizes)
    for term in range(sets + len(terms.pair_sizes)):
        codes = (
            blocks.set_codes[term, begin:end]
            if term < sets
            else blocks.pair_codes[term - sets, begin:end]
        )
        entries = blocks.table[terms.table_start[term] : terms.table_start[term + 1]]
        for at in range(len(weights)):
            weights[at] += entries[codes[at]]


@kernel
def _scan_block(
    blocks: OriginalBlocks,
    weights: PairWeights,
    cover: GrowingCover,
    left: NDArray[np.int64],
    i: int,
    both_ways: bool,
    b: int,
    best: int,
    least: float,
) -> tuple[int, float]:
    """Return the better of the best so far and the best of a block."""
    begin, end = b * BLOCK, min(blocks.cursor[0], (b + 1) * BLOCK)
    rising = not both_ways or len(blocks.bounds) > 0  # what comes on top is not negative
    if weights.matrix.shape[0] > 0:
        for at in range(begin, end):
            blocks.weights[at - begin] = weights.matrix[i, blocks.items[at]]
    else:
        weigh_block(blocks, weights.terms, weights.states, i, begin, end)
    for at in range(begin, end):
        weight, record = blocks.weights[at - begin], blocks.items[at]
        if left[record] == 0 or (weight > least and rising):
            continue
        if both_ways:
            weight += pair_weight(weights, record, i)
        better = weight < least or (weight == least and record < best)
        if better and not covers(cover, i, record):
            best, least = record, weight
    return best, least


@kernel
def cheapest_original(
    blocks: OriginalBlocks,
    weights: PairWeights,
    cover: GrowingCover,
    left: NDArray[np.int64],
    i: int,
    both_ways: bool,
) -> tuple[int, float]:
    """Return the original that published record i takes in at the least weight, and the weight.

    The first of them where several do; -1 if it may take in none that looks for a set.

    Parameters
    ----------
    left
        (n,) sets that each original is still to join.
    both_ways
        Whether the weight is the sum of both ways: the original takes in record i too.

    Notes
    -----
    Complexity: O(v + (n / 32 + 32 b) m) time for v values of all attributes, b being the blocks
    whose bound does not rule them out.
    """
    # What each value would cost this set, once for all blocks.
    count = (blocks.cursor[0] + BLOCK - 1) // BLOCK
    bounded = len(blocks.bounds) > 0
    if weights.matrix.shape[0] == 0:
        fill_table(weights.terms, weights.states, i, blocks.table)
    if bounded:
        fill_bounds(blocks, weights.terms, weights.states, i, count)
    best, least = -1, np.inf
    if not bounded:
        for b in range(count):
            best, least = _scan_block(blocks, weights, cover, left, i, both_ways, b, best, least)
        return best, least
    # First the block that holds the record itself: it is likely to hold a cheap one.
    own = int(np.searchsorted(blocks.items[: blocks.cursor[0]], i)) // BLOCK
    if own < count:
        best, least = _scan_block(blocks, weights, cover, left, i, both_ways, own, best, least)
    # A block whose bound is above the best, or equal to it with later records, has no better one.
    for b in range(count):
        bound = blocks.bounds[b]
        if bound > least or b == own or (bound == least and blocks.items[b * BLOCK] > best):
            continue
        best, least = _scan_block(blocks, weights, cover, left, i, both_ways, b, best, least)
    return best, least


@kernel
def leave_blocks(
    blocks: OriginalBlocks, terms: SetTerms, left: NDArray[np.int64], record: int
) -> None:
    """Count a set found by an original; remake the blocks when half of them found all."""
    left[record] -= 1
    if left[record] == 0:
        blocks.cursor[1] -= 1
        if 2 * blocks.cursor[1] < blocks.cursor[0] and blocks.cursor[0] > BLOCK:
            make_original_blocks(blocks, terms, left)
