"""Output rows in use with their records, and moves of records between them that can be undone."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.problem import Problem
from anonymip.recodings.output_rows import PackedRows
from anonymip.recodings.rules.diversity import sensitive_scales
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Columns of ``rows``: pattern (-1 where no row is), number of records, one of them.
PATTERN, SIZE, HEAD = range(3)
#: Places in ``rule``.
_NUMERATOR, _DENOMINATOR, _DISTINCT, _FAR, _PARTS, _RECORDS = range(6)
#: What a column of ``tallied`` is for: shares and kinds, or closeness on a scale.
_SHARES, _UNORDERED, _ORDERED = range(3)
#: Products of the closeness rule stay below.
_LARGEST = 2**62


class OpenRows(Packed):
    """Output rows in use, for kernels."""

    #: The records as words, and what each pattern shows of them.
    words: NDArray[np.uint64]
    masks: NDArray[np.uint64]
    row_of: Annotated[Ints, "n", -1]  # row of each record; -1 for none
    links: Annotated[Ints, "n, 2", -1]  # the records before and after it in its row; -1 for none
    rows: Annotated[Ints, "capacity, 3", -1]  # pattern, size and first record of each row
    used: Annotated[Ints, "p"]  # rows in use of each pattern
    free: Ints  # (rows + 1,) how many rows are not in use, and which
    #: (n, c) int64 values that the diversity counts, numbered across columns; no column without
    #: one.
    tallied: Ints
    tallies: Annotated[Ints, "capacity, values"]  # how often each value occurs in each row
    starts: Ints  # (c + 1,) where the values of each column begin
    kinds: Ints  # (c,) what each column is counted for
    totals: Ints  # (values,) how often each value occurs in the table
    rule: Ints  # the numbers of the diversity


def open_rows(problem: Problem, packed: PackedRows, pattern_of: Ints) -> OpenRows:
    """Return the rows that patterns of records make.

    `problem`: gives k and the diversity. `packed`: all records. `pattern_of`: (n,) pattern of each
    record; -1 for none. Complexity: O(n m + n log n).
    """
    n = problem.n
    placed = np.flatnonzero(pattern_of >= 0)
    shown = packed.words[placed] & packed.masks[pattern_of[placed]]
    keys = np.concatenate([pattern_of[placed, None].astype(np.uint64), shown], axis=1)
    labels = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    # One more is open while the records of another one move to it.
    capacity = n // problem.k + 2
    columns, kinds, rule = _counted(problem)
    widths = [int(column.max()) + 1 for column in columns]
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    tallied = np.empty((n, len(columns)), np.int64)
    for at, column in enumerate(columns):
        tallied[:, at] = column + starts[at]
    values = int(starts[-1])
    state = OpenRows.of_sizes(
        n=n,
        capacity=capacity,
        p=len(packed.masks),
        values=values,
        words=packed.words,
        masks=packed.masks,
        free=np.concatenate([[capacity], np.arange(capacity - 1, -1, -1)]).astype(np.int64),
        tallied=tallied,
        starts=starts,
        kinds=np.array(kinds, np.int64),
        totals=np.bincount(tallied.ravel(), minlength=values).astype(np.int64),
        rule=rule,
    )
    _fill(state, placed, labels.astype(np.int64), pattern_of[placed].astype(np.int64))
    return state


def pattern_of_records(state: OpenRows) -> Ints:
    """Return the pattern of each record, -1 for records in no row."""
    placed = state.row_of >= 0
    return np.where(placed, state.rows[state.row_of, PATTERN], -1)


def _counted(problem: Problem) -> tuple[list[Ints], list[int], Ints]:
    """Return the columns that the diversity counts, what for, and its numbers."""
    diversity = problem.diversity
    if diversity is None:
        return [], [], np.zeros(6, np.int64)
    codes = problem.microdata.sensitive_codes
    columns = [column.astype(np.int64) for column in codes.T]
    kinds = [_SHARES] * len(columns)
    far, parts = diversity.farthest
    if diversity.t is not None:
        scales = sensitive_scales(problem.microdata, ordered=diversity.ordered)
        columns += [scale.codes for scale in scales]
        kinds += [_ORDERED if scale.ordered else _UNORDERED for scale in scales]
        if max(scale.steps for scale in scales) * problem.n**2 * parts >= _LARGEST:
            # Coarser, never looser: what passes here passes the rule.
            coarse = Fraction(floor(Fraction(far, parts) * 1000), 1000)
            far, parts = coarse.as_integer_ratio()
    rule = [*diversity.ratio, diversity.distinct, far, parts, problem.n]
    return columns, kinds, np.array(rule, np.int64)


@kernel
def _fill(state: OpenRows, placed: Ints, labels: Ints, patterns: Ints) -> None:
    """Open a row for each label and put its records in."""
    row_of_label = np.full(len(placed), -1, np.int64)
    for at in range(len(placed)):
        if row_of_label[labels[at]] < 0:
            row_of_label[labels[at]] = open_row(state, patterns[at])
        move(state, placed[at], row_of_label[labels[at]])


@kernel
def open_row(state: OpenRows, pattern: int) -> int:
    """Open an empty row and return its number."""
    row = state.free[state.free[0]]
    state.free[0] -= 1
    state.rows[row, PATTERN] = pattern
    state.rows[row, SIZE] = 0
    state.rows[row, HEAD] = -1
    state.used[pattern] += 1
    return row


@kernel
def close_row(state: OpenRows, row: int) -> None:
    """Give up an empty row."""
    state.used[state.rows[row, PATTERN]] -= 1
    state.rows[row, PATTERN] = -1
    state.free[0] += 1
    state.free[state.free[0]] = row


@kernel
def move(state: OpenRows, record: int, row: int) -> None:
    """Move a record to a row, or out of all with -1."""
    rows, links = state.rows, state.links
    old = state.row_of[record]
    if old >= 0:
        before, after = links[record, 0], links[record, 1]
        if before >= 0:
            links[before, 1] = after
        else:
            rows[old, HEAD] = after
        if after >= 0:
            links[after, 0] = before
        rows[old, SIZE] -= 1
        for c in range(state.tallied.shape[1]):
            state.tallies[old, state.tallied[record, c]] -= 1
    state.row_of[record] = row
    links[record, 0] = links[record, 1] = -1
    if row >= 0:
        first = rows[row, HEAD]
        links[record, 1] = first
        if first >= 0:
            links[first, 0] = record
        rows[row, HEAD] = record
        rows[row, SIZE] += 1
        for c in range(state.tallied.shape[1]):
            state.tallies[row, state.tallied[record, c]] += 1


@kernel
def fits(state: OpenRows, record: int, row: int) -> bool:
    """Return whether a record may be published as a row in use."""
    pattern, other = state.rows[row, PATTERN], state.rows[row, HEAD]
    for w in range(state.words.shape[1]):
        if (state.words[record, w] ^ state.words[other, w]) & state.masks[pattern, w]:
            return False
    return True


@kernel
def is_diverse(state: OpenRows, row: int) -> bool:
    """Return whether a row keeps the diversity; an empty one does."""
    size, rule = state.rows[row, SIZE], state.rule
    if size == 0:
        return True
    for c in range(len(state.kinds)):
        begin, end = state.starts[c], state.starts[c + 1]
        if state.kinds[c] == _SHARES:
            # Enough distinct values, and none too frequent.
            held = largest = 0
            for value in range(begin, end):
                count = state.tallies[row, value]
                held += count > 0
                largest = max(largest, count)
            if held < rule[_DISTINCT] or largest * rule[_NUMERATOR] > size * rule[_DENOMINATOR]:
                return False
        else:
            # Closeness in whole numbers: differences of shares times size and records; on a
            # line their running sum is added up, elsewhere each one by itself.
            steps, difference, distance = 2, 0, 0
            if state.kinds[c] == _ORDERED:
                steps = max(1, end - begin - 1)
            for value in range(begin, end):
                if state.kinds[c] == _UNORDERED:
                    difference = 0
                difference += (
                    state.tallies[row, value] * rule[_RECORDS] - state.totals[value] * size
                )
                distance += abs(difference)
            if distance * rule[_PARTS] > size * steps * rule[_RECORDS] * rule[_FAR]:
                return False
    return True
