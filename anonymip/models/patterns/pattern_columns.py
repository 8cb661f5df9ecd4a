"""Who may be published as which output row: the columns and rows of the pattern models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.problem import Problem
from anonymip.recodings.output_rows import (
    output_rows,
    recoding_of,
    refuse_unshared,
    representatives,
    suppression_cost,
)

#: Pairs of a row type and an output row that a model may have.
MAX_PAIRS = 2_000_000


@dataclass(frozen=True, eq=False)
class PatternColumns:
    """The pairs of a row type and an output row that it may become.

    Under a rule of diversity records of a row type have the same sensitive values too. Output rows
    are the *instances* of patterns. `counts` and `first` (t,) int64 are the records of each row
    type and the first of them, `type_of` (n,) int64 the row type of each record; `costs` (p,) what
    a record costs under each pattern, `patterns` (r,) int64 the pattern of each output row.
    `row_of` (t, p) int32 is the output row that a row type becomes under a pattern, -1 for none;
    rows that stand for others have another pattern than the one asked for. `types` and `rows` (e,)
    int64 are the pairs, by row. A record that is suppressed as a whole costs the price; infinite
    where that is not allowed.
    """

    problem: Problem
    counts: NDArray[np.int64]
    first: NDArray[np.int64]
    type_of: NDArray[np.int64]
    costs: NDArray[np.float64]
    patterns: NDArray[np.int64]
    row_of: NDArray[np.int32]
    types: NDArray[np.int64]
    rows: NDArray[np.int64]
    price: float

    @property
    def count(self) -> int:
        """Number of output rows r."""
        return len(self.patterns)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """(r + 1,) where the pairs of each row begin; the last entry ends them."""
        return np.searchsorted(self.rows, np.arange(self.count + 1))

    @cached_property
    def names(self) -> list[tuple[int, int]]:
        """Pattern of each row, and the first record that may become it."""
        leading = self.first[self.types[self.starts[:-1]]]
        return list(zip(self.patterns.tolist(), leading.tolist(), strict=True))

    def refuse_many(self) -> None:
        """Raise InputError if the columns are too many for a model."""
        if len(self.rows) > MAX_PAIRS:
            raise InputError(
                f"the pattern model has {len(self.rows):,} pairs of a row type and an output "
                f"row, more than {MAX_PAIRS:,}",
                remedy="Use pattern-ilp with the formulation parts, pattern-greedy, or a mask with "
                "fewer patterns",
            )

    def of_row(self, row: int) -> NDArray[np.int64]:
        """Return the row types that may become a row, ascending."""
        return self.types[self.starts[row] : self.starts[row + 1]]


def pattern_columns(
    problem: Problem, *, least: int, merged: bool = False, keep_equal: bool = False
) -> PatternColumns:
    """Return the columns of a problem's model.

    Parameters
    ----------
    problem
        With patterns as its recoding.
    least
        Records that must be able to share an output row; others are left out.
    merged
        Whether of output rows that the same records may become only the cheapest is kept, the
        first among equals. All records of the others may move there, and what was diverse stays so.
    keep_equal
        Whether only rows with a costlier pattern than such a one are left out.

    Raises
    ------
    InputError
        If the problem asks for another recoding, or has too many types and patterns.
    NoSolution
        If a record may become no output row, and none may be suppressed.

    Notes
    -----
    Complexity: O(t p m).
    """
    recoding = recoding_of(problem)
    found = output_rows(problem, least=least)
    type_of, first = _row_types(problem, found.types.inverse)
    row_of = found.row_of[found.types.inverse[first]]
    if merged and not recoding.single_use:
        costs = found.costs[found.pattern_of]
        stands_for = representatives(found.row_of.T, costs)
        if keep_equal:
            own = np.arange(found.count, dtype=np.int32)
            stands_for = np.where(costs[stands_for] < costs, stands_for, own)
        row_of = np.append(stands_for, -1)[row_of]
    stands = np.zeros(found.count + 1, np.bool_)
    stands[row_of] = True
    kept = np.flatnonzero(stands[:-1])
    number = np.full(found.count + 1, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    row_of = number[row_of]
    price = suppression_cost(problem)
    types, patterns = np.nonzero(row_of >= 0)
    pairs = np.sort(row_of[types, patterns].astype(np.int64) * len(first) + types)
    if merged:
        # A row type comes to a row once for each of the rows that it stands for.
        pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs
    rows, types = np.divmod(pairs, len(first))
    if np.isinf(price):
        isolated = np.bincount(types, minlength=len(first)) == 0
        if isolated.any():
            refuse_unshared(problem, int(first[isolated].min()))
    return PatternColumns(
        problem,
        np.bincount(type_of),
        first,
        type_of,
        found.costs,
        found.pattern_of[kept].astype(np.int64),
        row_of,
        types,
        rows,
        price,
    )


def _row_types(
    problem: Problem, type_of: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row type of each record, and the first record of each."""
    marks = type_of[:, None]
    if problem.diversity is not None:
        marks = np.concatenate([marks, problem.microdata.sensitive_codes], axis=1)
    _, first, inverse = np.unique(marks, axis=0, return_index=True, return_inverse=True)
    return inverse.ravel().astype(np.int64), first.astype(np.int64)
