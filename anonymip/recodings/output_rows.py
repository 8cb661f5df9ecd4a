"""Rows that records may be published as under a mask, and who may be published as each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError, NoSolution, argument
from anonymip.instances.microdata import RowTypes
from anonymip.objectives.star_costs import pattern_costs
from anonymip.recodings.patterns import PatternGuided
from anonymip.recodings.recoding import ProblemView
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

MAX_PAIRS = 50_000_000  # row types times patterns that are held at once
_DECIMALS = 6  # decimals that costs may have for losses to lie on a grid
_WORD = 64  # bits


@dataclass(frozen=True, eq=False)
class OutputRows:
    """The output rows of a problem under a mask."""

    types: RowTypes  # the t row types with multiplicities
    stars: Flags  # (p, m) bool, the patterns
    costs: Floats  # (p,) float64, loss of one record under each pattern
    #: (t, p) int32, output row of each type under each pattern; -1 where fewer than k records share
    #: it.
    row_of: Codes
    #: (r,) int32, pattern of each output row; rows of one pattern follow each other.
    pattern_of: Codes
    sizes: Ints  # (r,) int64, records that may be published as each
    price: float  # loss of a record suppressed as a whole; infinite where that is not allowed

    @property
    def count(self) -> int:
        """Number of output rows r."""
        return len(self.pattern_of)


def recoding_of(problem: ProblemView) -> PatternGuided:
    """Return the problem's recoding, which must be one of patterns."""
    recoding = problem.recoding
    if not isinstance(recoding, PatternGuided):
        raise InputError(
            f"the problem asks for {recoding.name}, not for patterns",
            remedy=f"Use {argument('recoding', 'pattern')}",
        )
    return recoding


def priced_patterns(problem: ProblemView) -> tuple[Flags, Floats, float]:
    """Return the (p, m) patterns, what a record costs under each, and suppressed as a whole.

    The last is infinite where that is not allowed. Errors are those of :func:`output_rows`.
    """
    recoding, compiled = recoding_of(problem), problem.compiled
    stars = recoding.stars(problem)
    price = float(compiled.suppression_price) if recoding.suppression else np.inf
    return stars, pattern_costs(compiled, stars), price


def grid_of(losses: Floats) -> int:
    """Return the number d such that all losses are multiples of 1 / d; 0 if there is none small."""
    for decimals in range(_DECIMALS + 1):
        if np.array_equal(np.round(losses, decimals), losses):
            return int(10**decimals)
    return 0


def refuse_unshared(problem: ProblemView, record: int, count: int = 1) -> NoReturn:
    """Refuse a problem with a record, one of so many, that can share no row."""
    one, more = f"record {record} shares no row", "suppression"
    if recoding_of(problem).suppression:
        one, more = f"{count:,} records share no row", "more suppressed records"
    raise NoSolution(
        f"{one} with {problem.k - 1} others under any pattern of the mask",
        remedy=f"Allow more patterns, such as the one of stars only, or {more}",
    )


def refuse_isolated(problem: ProblemView) -> None:
    """Refuse a problem where more records can share no row than may be suppressed.

    Complexity: O(t p m) for t row types and p patterns.
    """
    types = problem.microdata.row_types()
    alone = np.ones(len(types.first), np.bool_)
    packed = pack_rows(problem.microdata.codes[types.first], recoding_of(problem).stars(problem))
    for pattern in range(len(packed.masks)):
        labels, count = rows_alike(packed, pattern)
        alone &= np.bincount(labels, types.counts, count)[labels] < problem.k
        if not alone.any():
            return
    records = np.flatnonzero(alone[types.inverse])
    if len(records) > recoding_of(problem).limit(problem.microdata.n):
        refuse_unshared(problem, int(records[0]), len(records))


def output_rows(problem: ProblemView, *, least: int | None = None) -> OutputRows:
    """Return all output rows that at least k records may be published as.

    `problem`: with patterns as its recoding. `least`: another number than k. Complexity: O(t p m)
    time, O(t p) memory. Raises InputError if the problem asks for another recoding, or types times
    patterns are too many; UnsupportedObjective if the loss of a pattern depends on the record.
    """
    microdata, (stars, costs, price) = problem.microdata, priced_patterns(problem)
    types = microdata.row_types()
    t, p = len(types.first), len(stars)
    if t * p > MAX_PAIRS:
        raise InputError(
            f"{t:,} row types under {p:,} patterns are more than {MAX_PAIRS:,} pairs",
            remedy="Use pattern-greedy, or a mask with fewer patterns",
        )
    packed = pack_rows(microdata.codes[types.first], stars)
    row_of = np.empty((t, p), np.int32)
    pattern_of: list[Codes] = [np.empty(0, np.int32)]
    sizes: list[Ints] = [np.empty(0, np.int64)]
    found, least = 0, problem.k if least is None else least
    for j in range(p):
        labels, count = rows_alike(packed, j)
        held = np.bincount(labels, weights=types.counts, minlength=count).astype(np.int64)
        shared = held >= least
        number = np.where(shared, found + np.cumsum(shared) - 1, -1)
        row_of[:, j] = number[labels]
        added = int(shared.sum())
        pattern_of.append(np.full(added, j, np.int32))
        sizes.append(held[shared])
        found += added
    return OutputRows(
        types, stars, costs, row_of, np.concatenate(pattern_of), np.concatenate(sizes), price
    )


def representatives(row_of: Codes, costs: Floats) -> Codes:
    """Return the output row that stands for each: the cheapest that the same row types share.

    `row_of`: (p, t) int32, output row of each row type under each pattern; -1 for none. `costs`:
    (r,) float64, cost of a record in each output row. Returns: (r,) int32, the first among equals;
    rows that no type may become stand for themselves. Complexity: O(t p log(t p)).
    """
    pattern, type_of = np.nonzero(row_of >= 0)
    row = row_of[pattern, type_of]
    # Types ascend within each row, so equal rows are equal slices.
    members = type_of[np.argsort(row, kind="stable")].astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(costs)))]).tolist()
    stands_for = np.arange(len(costs), dtype=np.int32)
    cheapest: dict[bytes, int] = {}
    for at in np.argsort(costs, kind="stable").tolist():
        if start[at] < start[at + 1]:
            types = members[start[at] : start[at + 1]].tobytes()
            stands_for[at] = cheapest.setdefault(types, at)
    return stands_for


class PackedRows(Packed):
    """Rows and patterns as words: ``words[i] & masks[j]`` is what pattern j shows of row i."""

    words: NDArray[np.uint64]  # (t, w) uint64, the codes of each row side by side
    masks: NDArray[np.uint64]  # (p, w) uint64, all bits of the columns that each pattern shows


def pack_rows(codes: Codes, stars: Flags) -> PackedRows:
    """Return rows (t, m), codes, and patterns (p, m), true for stars, as words.

    Complexity: O((t + p) m).
    """
    codes = codes - codes.min(axis=0, initial=0)
    bits = [int(column.max(initial=0)).bit_length() for column in codes.T]
    places: list[tuple[int, int]] = []
    word = used = 0
    for width in bits:
        if used + width > _WORD:
            word, used = word + 1, 0
        places.append((word, used))
        used += width
    words = np.zeros((len(codes), word + 1), np.uint64)
    masks = np.zeros((len(stars), word + 1), np.uint64)
    for a, (at, shift) in enumerate(places):
        words[:, at] |= codes[:, a].astype(np.uint64) << np.uint64(shift)
        ones = np.uint64(((1 << bits[a]) - 1) << shift)
        masks[:, at] |= np.where(stars[:, a], np.uint64(0), ones)
    return PackedRows(words, masks)


def rows_alike(packed: PackedRows, pattern: int = 0) -> tuple[Ints, int]:
    """Return which rows look alike through a pattern.

    Returns: (t,) int64, equal exactly for rows that look alike, numbered by first appearance; how
    many labels there are.
    """
    t = len(packed.words)
    labels, first = np.empty((2, t), np.int64)
    table = np.empty(1 << max(4, int(2 * t).bit_length()), np.int64)
    shown = packed.masks[pattern]
    count = group_rows(packed.words, shown, np.arange(t), t, labels, table, first)
    return labels, int(count)


@kernel
def group_rows(
    words: NDArray[np.uint64],
    shown: NDArray[np.uint64],
    rows: Ints,
    leading: int,
    group: Ints,
    table: Ints,
    first: Ints,
) -> int:
    """Write which rows look alike in the bits shown, as numbers of groups; return how many groups.

    Only the leading rows make groups, numbered by first appearance; others join them, or get -1.
    Written are `group`, one a row, and `first`, a row of each group. The `table` is a workspace: a
    power of two of at least 16 and twice as many entries as rows lead.
    """
    size = 16
    while size < 2 * leading:
        size *= 2
    table[:size] = -1
    bits = np.uint64(size - 1)
    count = 0
    for at in range(len(rows)):
        row = rows[at]
        # Hash what the row shows.
        mixed = np.uint64(0)
        for w in range(len(shown)):
            mixed = (mixed ^ (words[row, w] & shown[w])) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
        # Probe until an empty place or a group that shows the same; the bits themselves decide.
        place = mixed & bits
        while True:
            number = table[place]
            if number < 0 and at >= leading:
                group[at] = -1
                break
            if number < 0:
                table[place] = count
                first[count] = row
                group[at] = count
                count += 1
                break
            other = first[number]
            alike = True
            for w in range(len(shown)):
                if (words[row, w] ^ words[other, w]) & shown[w]:
                    alike = False
                    break
            if alike:
                group[at] = number
                break
            place = (place + np.uint64(1)) & bits
    return count
