"""Records and the output rows that may publish them: the columns and rows of the pattern models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from anonymip.assignments import SUPPRESSED, Patterns
from anonymip.bounds.patterns.pattern_duals import PatternProgram
from anonymip.errors import InputError
from anonymip.problem import Problem
from anonymip.recodings.output_rows import (
    output_rows,
    recoding_of,
    refuse_unshared,
    representatives,
)
from anonymip.runtime.arrays import Codes, Flags, Ints

#: Pairs of a row type and an output row that a model may have.
MAX_PAIRS = 2_000_000


@dataclass(frozen=True, eq=False)
class PatternColumns:
    """The pairs of a row type and an output row that it may become, as a program that duals know.

    Under a rule of diversity records of a row type have the same sensitive values too, and no row
    types are merged. Output rows are the *instances* of patterns. `first` (t,) int64 is the first
    record of each row type. `asked` (p, t) int32 is the output row that a row type becomes under a
    pattern, -1 for none; where another row stands for it, that has another pattern.
    """

    problem: Problem
    program: PatternProgram
    first: Ints
    asked: Codes

    @property
    def count(self) -> int:
        """Number of output rows r."""
        return self.program.rows

    @cached_property
    def _pairs(self) -> tuple[Ints, ...]:
        """(e,) output row, row type and pattern of each pair, by row."""
        patterns, types = np.nonzero(self.program.row_of >= 0)
        rows = self.program.row_of[patterns, types].astype(np.int64)
        order = np.lexsort((types, rows))
        return rows[order], types[order], patterns[order]

    @property
    def rows(self) -> Ints:
        """(e,) output row of each pair, ascending."""
        return self._pairs[0]

    @property
    def types(self) -> Ints:
        """(e,) row type of each pair, ascending within a row."""
        return self._pairs[1]

    @cached_property
    def patterns(self) -> Ints:
        """(r,) pattern of each output row."""
        return self._pairs[2][self.starts[:-1]]

    def only(self, kept: Flags) -> PatternColumns:
        """Return the pairs of (p, t) some patterns and row types, and the output rows of these."""
        row_of = np.where(kept, self.program.row_of, -1)
        rows = np.unique(row_of[row_of >= 0])
        number = np.full(self.count + 1, -1, np.int32)
        number[rows] = np.arange(len(rows), dtype=np.int32)
        # A row type keeps the rows of its own pairs; where another row stands for one, that counts.
        held = kept[np.append(self.patterns, 0)[self.asked], np.arange(len(self.first))] & (
            self.asked >= 0
        )
        program = replace(self.program, row_of=number[row_of], rows=len(rows))
        return replace(self, program=program, asked=np.where(held, number[self.asked], -1))

    @cached_property
    def starts(self) -> Ints:
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

    def of_row(self, row: int) -> Ints:
        """Return the row types that may become a row, ascending."""
        return self.types[self.starts[row] : self.starts[row + 1]]


def patterns_by_amounts(type_of: Ints, types: Ints, patterns: Ints, amounts: Ints) -> Patterns:
    """Return the patterns of (n,) records, given the row type of each; those of a type in order.

    Of (e,) row types and patterns so many records each, all of them together.
    """
    order = np.argsort(types, kind="stable")
    index = np.empty(len(type_of), np.int32)
    index[np.argsort(type_of, kind="stable")] = np.repeat(patterns[order], amounts[order])
    return Patterns(index)


def pattern_columns(
    problem: Problem, *, strong: bool = True, keep_equal: bool = False
) -> PatternColumns:
    """Return the columns of a problem's model.

    `strong`: whether output rows that fewer than k records may become are left out, and of those
    that the same records may become only the cheapest is kept, the first among equals. All records
    of the others may move there, and what was diverse stays so. `keep_equal`: whether of these only
    rows with a costlier pattern than such a one are left out, as releases with the most output rows
    need it. Raises InputError if the problem asks for another recoding, or has too many types and
    patterns; NoSolution if more records may become no output row than may be suppressed.

    Complexity: O(t p m).
    """
    recoding = recoding_of(problem)
    found = output_rows(problem, least=problem.k if strong else 1)
    marks = found.types.inverse[:, None]
    if problem.diversity is not None:
        marks = np.concatenate([marks, problem.microdata.sensitive_codes], axis=1)
    _, first, type_of = np.unique(marks, axis=0, return_index=True, return_inverse=True)
    type_of = type_of.ravel()
    asked, costs = found.row_of[found.types.inverse[first]].T, found.costs[found.pattern_of]
    if strong and not recoding.single_use:
        stands_for = representatives(found.row_of.T, costs)
        if keep_equal:
            own = np.arange(found.count, dtype=np.int32)
            stands_for = np.where(costs[stands_for] < costs, stands_for, own)
        asked = np.append(stands_for, -1)[asked]
    stands = np.zeros(found.count + 1, np.bool_)
    stands[asked] = True
    kept = np.flatnonzero(stands[:-1])
    number = np.full(found.count + 1, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    asked = np.ascontiguousarray(number[asked])
    row_of = np.full(asked.shape, -1, np.int32)
    types = np.nonzero(asked >= 0)[1]
    rows = asked[asked >= 0]
    row_of[found.pattern_of[kept][rows], types] = rows
    isolated = np.flatnonzero(np.asarray((row_of < 0).all(axis=0))[type_of])
    if len(isolated) > problem.most_suppressed:
        refuse_unshared(problem, int(isolated[0]), len(isolated))
    positive = found.costs[found.costs > 0]
    program = PatternProgram(
        problem.k,
        np.bincount(type_of),
        type_of,
        np.arange(len(found.costs)),
        found.costs,
        row_of,
        len(kept),
        found.price,
        SUPPRESSED,
        float(positive.min(initial=np.inf)) if len(positive) else 1.0,
    )
    return PatternColumns(problem, program, first, asked)
