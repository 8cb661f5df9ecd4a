"""Sets of rows that grow, one a line: what they cover, and the loss with each of many rows more.

For searches: a step down copies one line to the next and a step back forgets it. Values of set
attributes are bits of a few words, so that a line is short however many levels the table has. Where
one class grows among all rows of a table, :mod:`anonymip.objectives.kernels.class_loss` marks its
levels instead.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.objectives.kernels.class_loss import KernelRows, ends_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

_BITS = 63  # values whose bits share a word


class TermRows(Packed, read_only=True):
    """Rows as growing sets read them, term by term of the loss."""

    tables: LossTables  # the loss
    values: Floats  # (t, r) values from the domain's lower end
    #: (t, s) the word that holds the bit of the row's value, and a word of that bit alone.
    set_words: Ints
    set_bits: Ints
    word_start: Ints  # (s + 1,) where the words of each set term begin
    pair_codes: Ints  # (t, p) ranks in the levels


class GrowingSets(Packed):
    """What the sets cover, one a line."""

    #: Ends of the ranges.
    low: Annotated[Floats, "lines, r"]
    high: Annotated[Floats, "lines, r"]
    held: Annotated[Ints, "lines, words"]  # bits of the values in the sets
    counts: Annotated[Ints, "lines, s"]  # number of values in each set
    #: Ranks of the range ends.
    pair_low: Annotated[Ints, "lines, p"]
    pair_high: Annotated[Ints, "lines, p"]


def term_rows(rows: KernelRows) -> TermRows:
    """Return rows with a bit for every value that occurs among them."""
    codes = rows.set_codes
    words, bits = np.zeros(codes.shape, np.int64), np.zeros(codes.shape, np.int64)
    start = np.zeros(codes.shape[1] + 1, np.int64)
    for s in range(codes.shape[1]):
        held, ranks = np.unique(codes[:, s], return_inverse=True)
        words[:, s] = start[s] + ranks // _BITS
        bits[:, s] = np.int64(1) << (ranks % _BITS)
        start[s + 1] = start[s] + -(-len(held) // _BITS)
    values, ranks = rows.range_values.copy(), rows.pair_codes.astype(np.int64)
    return TermRows(rows.tables, values, words, bits, start, ranks)


class ChosenRows(Packed):
    """A few rows of a table as growing sets read them, chosen anew for each search."""

    terms: TermRows  # the same arrays as these
    rows: Ints  # (rows,) the row of the table
    values: Floats
    set_bits: Ints
    pair_codes: Ints


def new_chosen_rows(tables: LossTables, most: int) -> ChosenRows:
    """Return the memory of so many rows, which differ in no more than a word's values of a set."""
    r, s, p = tables.term_counts
    own = np.zeros((most, r)), np.zeros((most, s), np.int64), np.zeros((most, p), np.int64)
    words, start = np.tile(np.arange(s), (most, 1)), np.arange(s + 1)
    terms = TermRows(tables, own[0], words, own[1], start, own[2])
    return ChosenRows(terms, np.zeros(most, np.int64), *own)


@kernel
def choose_row(rows: KernelRows, chosen: ChosenRows, at: int, row: int) -> None:
    """Let a row be the one at a place; its values have the bits that rows before have for them."""
    chosen.rows[at] = row
    # Value by value: to assign rows of arrays takes numba two seconds to compile.
    for r in range(chosen.values.shape[1]):
        chosen.values[at, r] = rows.range_values[row, r]
    for p in range(chosen.pair_codes.shape[1]):
        chosen.pair_codes[at, p] = rows.pair_codes[row, p]
    for s in range(chosen.set_bits.shape[1]):
        used, bit = np.int64(0), np.int64(0)
        for before in range(at):
            if rows.set_codes[chosen.rows[before], s] == rows.set_codes[row, s]:
                bit = chosen.set_bits[before, s]
            used |= chosen.set_bits[before, s]
        # A new value has the next bit.
        chosen.set_bits[at, s] = bit if bit else used + 1


def new_growing_sets(tables: LossTables, lines: int, words: int) -> GrowingSets:
    """Return the memory of sets of rows whose values have their bits in so many words."""
    r, s, p = tables.term_counts
    return GrowingSets.of_sizes(lines=lines, words=words, r=r, s=s, p=p)


@kernel
def empty_set(sets: GrowingSets, line: int) -> None:
    """Let the set of a line hold no row."""
    for r in range(sets.low.shape[1]):
        sets.low[line, r], sets.high[line, r] = np.inf, -np.inf
    for word in range(sets.held.shape[1]):
        sets.held[line, word] = 0
    for s in range(sets.counts.shape[1]):
        sets.counts[line, s] = 0
    for p in range(sets.pair_low.shape[1]):
        sets.pair_low[line, p], sets.pair_high[line, p] = np.iinfo(np.int64).max, -1


@kernel
def add_row(rows: TermRows, sets: GrowingSets, of: int, to: int, row: int) -> None:
    """Let the set of line `to` be that of line `of` and a row more; the two may be one line."""
    for r in range(sets.low.shape[1]):
        value = rows.values[row, r]
        sets.low[to, r] = min(sets.low[of, r], value)
        sets.high[to, r] = max(sets.high[of, r], value)
    for word in range(sets.held.shape[1]):
        sets.held[to, word] = sets.held[of, word]
    for s in range(sets.counts.shape[1]):
        word, bit = rows.set_words[row, s], rows.set_bits[row, s]
        sets.counts[to, s] = sets.counts[of, s] + (sets.held[to, word] & bit == 0)
        sets.held[to, word] |= bit
    for p in range(sets.pair_low.shape[1]):
        code = rows.pair_codes[row, p]
        sets.pair_low[to, p] = min(sets.pair_low[of, p], code)
        sets.pair_high[to, p] = max(sets.pair_high[of, p], code)


@kernel
def losses_with(
    rows: TermRows, sets: GrowingSets, line: int, more: Ints, begin: int, end: int, losses: Floats
) -> None:
    """Write the record losses of the set of a line with each of more[begin:end], at its place.

    Nearly all time of a search is spent here: what the set covers of an attribute is read once for
    all rows. Complexity: O(m) time a row.
    """
    # Places are no negative numbers: what has no sign is not asked for it.
    first, last = np.uint64(begin), np.uint64(end)
    for at in range(first, last):
        losses[at] = rows.tables.constant
    values = rows.values
    for r in range(sets.low.shape[1]):
        low, high, term = sets.low[line, r], sets.high[line, r], np.uint64(r)
        high_loss = rows.tables.range_high[r]
        slope = rows.tables.range_low[r] + high_loss
        # The width is taken first, as in `range_loss`.
        for at in range(first, last):
            value = values[np.uint64(more[at]), term]
            lower = value if value < low else low
            upper = value if value > high else high
            losses[at] += high_loss * (upper - lower) + slope * lower
    words, bits, set_losses = rows.set_words, rows.set_bits, rows.tables.set_losses
    for s in range(sets.counts.shape[1]):
        # A value more is the next place of the table: a branch would be guessed wrong often.
        known, term = np.uint64(rows.tables.set_start[s] + sets.counts[line, s]), np.uint64(s)
        if rows.word_start[s + 1] - rows.word_start[s] == 1:
            held = sets.held[line, rows.word_start[s]]
            for at in range(first, last):
                new = held & bits[np.uint64(more[at]), term] == 0
                losses[at] += set_losses[known + np.uint64(new)]
            continue
        for at in range(first, last):
            row = np.uint64(more[at])
            new = sets.held[line, words[row, term]] & bits[row, term] == 0
            losses[at] += set_losses[known + np.uint64(new)]
    ranks = rows.pair_codes
    for p in range(sets.pair_low.shape[1]):
        low_code, high_code = sets.pair_low[line, p], sets.pair_high[line, p]
        start, stride = rows.tables.pair_start[p], rows.tables.pair_strides[p]
        if stride <= 0:
            for at in range(begin, end):
                rank = ranks[more[at], p]
                losses[at] += ends_loss(rows.tables, p, min(low_code, rank), max(high_code, rank))
            continue
        for at in range(begin, end):
            rank = ranks[more[at], p]
            losses[at] += rows.tables.pair_losses[
                start + min(low_code, rank) * stride + max(high_code, rank)
            ]
