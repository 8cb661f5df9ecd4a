"""Records that may be chosen in a round, in blocks of neighbours, and a heap of cheapest matches.

Published records choose the originals that they take in, or originals the published records whose
sets they join; which of the two is a parameter of :class:`Blocks`. The bound of a block adds up
the least penalty of each term in the order in which a weight adds up its own, so rounding cannot
reverse the two, and the answer is that of a scan.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    covers,
    pair_weight,
)
from anonymip.heuristics.freeform.set_growth import (
    SetStates,
    SetTerms,
    fill_table,
    new_table,
    value_rise,
    weigh,
)
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Originals in a block: their terms are weighed side by side, one short pass a term.
_ORIGINALS = 32
#: Published records in a block: each is weighed by itself.
_PUBLISHED = 64
#: A term with more values than this is left out of the bounds of published records: their memory
#: is values times blocks.
_MOST_VALUES = 8_192


class Blocks(Packed):
    """Records that may still be chosen in a round, in order, cut into blocks."""

    #: Whether these are published records, chosen by originals; else originals are chosen.
    published: bool
    length: int  # records of a block
    places: Ints  # (n,) matches that each record is still to find in the round
    items: Annotated[Ints, "n"]  # records that had places when the blocks were made
    #: Least and greatest value of a block of originals; least lower and greatest upper end of the
    #: sets of published records.
    low: Annotated[Floats, "r, count"]
    high: Annotated[Floats, "r, count"]
    #: The terms of originals, side by side so that each term is one short pass.
    values: Annotated[Floats, "r, held"]
    set_codes: Annotated[Codes, "s, held"]
    pair_codes: Annotated[Codes, "p, held"]
    #: Of a block of originals: uint64, a bit for each value, values being counted modulo 64; least
    #: and greatest rank.
    masks: Annotated[NDArray[np.uint64], "s, boxed"]
    pair_low: Annotated[Codes, "p, boxed"]
    pair_high: Annotated[Codes, "p, boxed"]
    #: Of published records: (values, blocks) least penalty of a block for each value of each set
    #: and pair term; (s + p,) where the values of a term begin in it, -1 if left out.
    least: Floats
    least_begin: Ints
    bounds: Annotated[Floats, "count"]  # workspace; empty if no bounds are wanted
    #: Workspaces: penalties of one record; weights of a block.
    table: Floats
    weights: Annotated[Floats, "length"]
    #: What :func:`cheapest` finds, and its weight.
    found: Annotated[Ints, "1"]
    cost: Annotated[Floats, "1"]
    marks: Annotated[Ints, "n"]  # last search in which each original was in the set of the chooser
    cursor: Annotated[Ints, "3"]  # items; those that still have places; searches


def new_blocks(weights: PairWeights, places: Ints, *, published: bool, bounded: bool) -> Blocks:
    """Return the blocks of the records that have places.

    `places`: (n,) matches that each record is to find. `published`: whether published records are
    chosen, else originals. `bounded`: whether bounds are wanted, which hold if no penalty is
    negative and the loss monotone.
    """
    terms = weights.states.terms
    r, n = terms.range_values.shape
    s, p = len(terms.set_codes), len(terms.pair_codes)
    length = _PUBLISHED if published else _ORIGINALS
    count = -(-n // length) if bounded else 0
    held, boxed = (0, 0) if published else (n, count)
    values = np.diff(terms.table_start)
    read = np.where(published & (values <= _MOST_VALUES), values, 0)
    begin = np.where(values <= _MOST_VALUES, np.cumsum(read) - read, -1).astype(np.int64)
    blocks = Blocks.of_sizes(
        n=n,
        r=r,
        count=count,
        published=published,
        length=length,
        places=places.copy(),
        s=s,
        p=p,
        held=held,
        boxed=boxed,
        least=np.empty((int(read.sum()), count)),
        least_begin=begin,
        table=new_table(terms),
    )
    make_blocks(blocks, weights)
    return blocks


@kernel
def make_blocks(blocks: Blocks, weights: PairWeights) -> None:
    """Gather the records that have places and bound each block.

    Complexity: O(n m) time for originals, O(n times the number of values) for published records.
    """
    states, terms = weights.states, weights.states.terms
    # Items keep the order of the records, so that a block holds neighbours.
    kept = 0
    for record in range(len(blocks.places)):
        if blocks.places[record] > 0:
            blocks.items[kept] = record
            if not blocks.published:
                # One by one: numba compiles the assignment of a whole column for a second.
                for r in range(len(blocks.values)):
                    blocks.values[r, kept] = terms.range_values[r, record]
                for s in range(len(blocks.set_codes)):
                    blocks.set_codes[s, kept] = terms.set_codes[s, record]
                for p in range(len(blocks.pair_codes)):
                    blocks.pair_codes[p, kept] = terms.pair_codes[p, record]
            kept += 1
    blocks.cursor[0] = kept
    blocks.cursor[1] = kept
    if len(blocks.bounds) == 0:
        return
    for b in range((kept + blocks.length - 1) // blocks.length):
        held = blocks.items[b * blocks.length : min(kept, (b + 1) * blocks.length)]
        for r in range(len(terms.range_values)):
            low, high = np.inf, -np.inf
            for record in held:
                value = terms.range_values[r, record]
                low = min(low, states.low[record, r] if blocks.published else value)
                high = max(high, states.high[record, r] if blocks.published else value)
            blocks.low[r, b] = low
            blocks.high[r, b] = high
        if blocks.published:
            _bound_penalties(blocks, states, b, held)
        else:
            _bound_codes(blocks, terms, b, held)


@kernel
def _bound_penalties(blocks: Blocks, states: SetStates, b: int, held: Ints) -> None:
    """Write the penalties that no set of a block of published records undercuts."""
    least, begin = np.full(len(blocks.table), np.inf), blocks.least_begin
    for i in held:
        fill_table(states, i, blocks.table)
        for value in range(len(least)):
            least[value] = min(least[value], blocks.table[value])
    # Value by value, so that the bounds of all blocks for one value are a row.
    for term in range(len(begin)):
        if begin[term] >= 0:
            start = states.terms.table_start[term]
            for value in range(states.terms.table_start[term + 1] - start):
                blocks.least[begin[term] + value, b] = least[start + value]


@kernel
def _bound_codes(blocks: Blocks, terms: SetTerms, b: int, held: Ints) -> None:
    """Write which values and ranks a block of originals holds."""
    # Values that share a bit make a bound lower, never too high.
    for s in range(len(terms.set_codes)):
        mask = np.uint64(0)
        for record in held:
            mask |= np.uint64(1) << np.uint64(terms.set_codes[s, record] & 63)
        blocks.masks[s, b] = mask
    for p in range(len(terms.pair_codes)):
        least, most = terms.pair_codes[p, held[0]], terms.pair_codes[p, held[0]]
        for record in held:
            least = min(least, terms.pair_codes[p, record])
            most = max(most, terms.pair_codes[p, record])
        blocks.pair_low[p, b] = least
        blocks.pair_high[p, b] = most


@kernel
def _fill_bounds(blocks: Blocks, weights: PairWeights, chooser: int, count: int) -> None:
    """Add up the least penalty of each term in the order in which a weight adds up its own."""
    states, bounds = weights.states, blocks.bounds
    terms = states.terms
    bounds[:count] = 0.0
    for r in range(len(terms.range_values)):
        # What it costs where the block lies below the chooser, and above it.
        low, high = states.low[chooser, r], states.high[chooser, r]
        below, above = -terms.tables.range_low[r], terms.tables.range_high[r]
        if blocks.published:
            low = high = terms.range_values[r, chooser]
            below, above = above, below
        least, most = blocks.low[r], blocks.high[r]
        # A block within or across the range may hold a record for which nothing widens.
        for b in range(count):
            down, up = low - most[b], least[b] - high
            bounds[b] += below * (down if down > 0.0 else 0.0) + above * (up if up > 0.0 else 0.0)
    if not blocks.published:
        _add_code_bounds(blocks, states, chooser, count)
        return
    sets, begin = len(terms.set_codes), blocks.least_begin
    for term in range(len(begin)):
        if begin[term] >= 0:
            code = (
                terms.set_codes[term, chooser]
                if term < sets
                else terms.pair_codes[term - sets, chooser]
            )
            row = blocks.least[begin[term] + code]
            for b in range(count):
                bounds[b] += row[b]


@kernel
def _add_code_bounds(blocks: Blocks, states: SetStates, i: int, count: int) -> None:
    """Add what the set of published record i pays for the cheapest values of each block."""
    bounds = blocks.bounds
    # A block that shares no bit with the set holds only values that are new to it.
    for s in range(len(states.terms.set_codes)):
        mask = np.uint64(0)
        begin = states.list_start[s]
        for place in range(begin, begin + states.counts[i, s]):
            mask |= np.uint64(1) << np.uint64(states.listed[i, place] & 63)
        rise = value_rise(states, i, s)
        masks = blocks.masks[s]
        for b in range(count):
            bounds[b] += rise if (masks[b] & mask) == np.uint64(0) else 0.0
    for p in range(len(states.terms.pair_codes)):
        low_code, high_code = states.pair_low[i, p], states.pair_high[i, p]
        begin = states.terms.table_start[len(states.terms.set_codes) + p]
        # The rank of the block within the range of the set or nearest to it: none costs less.
        for b in range(count):
            code = max(blocks.pair_low[p, b], min(low_code, blocks.pair_high[p, b]))
            if blocks.pair_low[p, b] > high_code:
                code = blocks.pair_low[p, b]
            bounds[b] += blocks.table[begin + code]


@kernel
def _scan_block(
    blocks: Blocks,
    weights: PairWeights,
    cover: GrowingCover,
    chooser: int,
    both_ways: bool,
    b: int,
) -> None:
    """Look for a record in a block that is cheaper than the one found."""
    # Named once: the loop would look them up again for each record.
    places, items = blocks.places, blocks.items
    begin, end = b * blocks.length, min(blocks.cursor[0], (b + 1) * blocks.length)
    published, weighed = blocks.published, blocks.weights
    marks, search = blocks.marks, blocks.cursor[2]
    # The table holds the penalties of the chooser.
    if not published and weights.matrix.shape[0] > 0:
        for at in range(begin, end):
            weighed[at - begin] = weights.matrix[chooser, items[at]]
    elif not published:
        columns = blocks.values, blocks.set_codes, blocks.pair_codes
        weigh(weights.states, chooser, *columns, begin, blocks.table, weighed[: end - begin])
    rising = not both_ways or len(blocks.bounds) > 0  # what comes on top is not negative
    least, best = blocks.cost[0], blocks.found[0]
    for at in range(begin, end):
        item = items[at]
        if published and places[item] == 0:
            continue
        weight = pair_weight(weights, item, chooser) if published else weighed[at - begin]
        if (weight > least and rising) or places[item] == 0:
            continue
        if both_ways:
            weight += pair_weight(weights, item, chooser)
        if weight > least or (weight == least and item > best):
            continue
        if covers(cover, item, chooser) if published else marks[item] == search:
            continue
        least, best = weight, item
    blocks.cost[0], blocks.found[0] = least, best


@kernel
def cheapest(
    blocks: Blocks, weights: PairWeights, cover: GrowingCover, chooser: int, both_ways: bool
) -> int:
    """Return the record that a chooser may match at the least weight, ``blocks.cost[0]``.

    The first of them where several do; -1 if it may match none that has places.

    `both_ways`: whether the weight is the sum of both ways: each takes in the other. Complexity:
    O(v + (n / l + l b) m) time for v values of all attributes and blocks of l, b being the blocks
    whose bound does not rule them out.
    """
    count = (blocks.cursor[0] + blocks.length - 1) // blocks.length
    bounded, bounds = len(blocks.bounds) > 0, blocks.bounds
    blocks.cursor[2] += 1
    for at in range(0 if blocks.published else cover.sizes[chooser]):
        blocks.marks[cover.members[chooser, at]] = blocks.cursor[2]
    # What each value would cost this set, once for all blocks.
    if not blocks.published and weights.matrix.shape[0] == 0:
        fill_table(weights.states, chooser, blocks.table)
    blocks.cost[0], blocks.found[0], own = np.inf, -1, -1
    if bounded and count > 0:
        _fill_bounds(blocks, weights, chooser, count)
        # First the block that holds the record itself: it is likely to hold cheap ones.
        place = int(np.searchsorted(blocks.items[: blocks.cursor[0]], chooser))
        own = min(count - 1, place // blocks.length)
        _scan_block(blocks, weights, cover, chooser, both_ways, own)
    for b in range(count):
        if b == own:
            continue
        # A block whose bound is above the least, or equal to it with later records, has no better.
        if bounded and (
            bounds[b] > blocks.cost[0]
            or (bounds[b] == blocks.cost[0] and blocks.items[b * blocks.length] > blocks.found[0])
        ):
            continue
        _scan_block(blocks, weights, cover, chooser, both_ways, b)
    return int(blocks.found[0])


@kernel
def take_place(blocks: Blocks, weights: PairWeights, record: int) -> None:
    """Count a match of a record that was chosen; remake the blocks when half of them are full."""
    blocks.places[record] -= 1
    if blocks.places[record] == 0:
        blocks.cursor[1] -= 1
        if 2 * blocks.cursor[1] < blocks.cursor[0] and blocks.cursor[0] > blocks.length:
            make_blocks(blocks, weights)


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
