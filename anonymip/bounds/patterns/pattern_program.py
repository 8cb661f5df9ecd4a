"""Who may share which output row at which cost, without rows and differences that never matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.problem import Problem
from anonymip.recodings.rows.output_rows import (
    OutputRows,
    grid_of,
    output_rows,
    refuse_unshared,
    representatives,
    rows_alike,
    suppression_cost,
)


@dataclass(frozen=True, eq=False)
class PatternProgram:
    """A pattern problem as a program: row types that may be published alike are merged into one.

    Parameters
    ----------
    k
        Records that an output row needs to be used.
    counts
        (t,) int64, records of each merged row type.
    type_of
        Merged row type of each row type of the table.
    patterns
        (p,) int64, rows of the mask.
    costs
        (p,) float64, cost of a record under each pattern.
    row_of
        (p, t) int32, C-contiguous, output row of each row type under each pattern; -1 for none.
    rows
        Output rows are numbered below this.
    price
        Cost of a record that needs no companions; infinite if there is no such.
    relaxed_pattern
        Pattern of these records, for which the program forgets that it too needs k records; -1 if
        they are suppressed as a whole.
    star_cost
        What a star costs on average in the costliest pattern; 1 if all are free.
    """

    k: int
    counts: NDArray[np.int64]
    type_of: NDArray[np.int64]
    patterns: NDArray[np.int64]
    costs: NDArray[np.float64]
    row_of: NDArray[np.int32]
    rows: int
    price: float
    relaxed_pattern: int
    star_cost: float

    @property
    def type_count(self) -> int:
        """Number of row types t."""
        return len(self.counts)

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @cached_property
    def pairs(self) -> int:
        """Number of pairs of a row type and an output row that it may be published as."""
        return int(np.count_nonzero(self.row_of >= 0))

    @cached_property
    def grid(self) -> int:
        """The number d such that every loss is a multiple of 1 / d; 0 if there is none small."""
        return grid_of(self.losses)

    @property
    def losses(self) -> NDArray[np.float64]:
        """The losses that a record can have."""
        return self.costs if np.isinf(self.price) else np.append(self.costs, self.price)

    @cached_property
    def cheapest(self) -> NDArray[np.float64]:
        """(t,) least cost of publishing a record of each row type; infinite without a way."""
        best = np.full(self.type_count, self.price)
        for cost, rows in zip(self.costs, self.row_of, strict=True):
            best = np.where((rows >= 0) & (cost < best), cost, best)
        return best

    def restricted_to(self, types: NDArray[np.int64]) -> PatternProgram:
        """Return the program of some row types alone, all of whose rows belong to them."""
        row_of = np.ascontiguousarray(self.row_of[:, types])
        used = np.flatnonzero((row_of >= 0).any(axis=1))
        numbers, labels = np.unique(row_of[used], return_inverse=True)
        labels = labels.reshape(len(used), len(types)).astype(np.int32)
        if len(numbers) and numbers[0] < 0:
            labels -= 1
        return replace(
            self,
            counts=self.counts[types],
            type_of=np.empty(0, np.int64),
            patterns=self.patterns[used],
            costs=self.costs[used],
            row_of=np.ascontiguousarray(labels),
            rows=int(labels.max(initial=-1)) + 1,
        )


def pattern_program(
    problem: Problem, rows: OutputRows | None = None, *, relaxed: bool = True
) -> PatternProgram:
    """Return the program of a problem; single use and diversity, which only raise the optimum, out.

    Parameters
    ----------
    problem
        With patterns as its recoding.
    rows
        Its output rows, if they are known.
    relaxed
        Whether the pattern of stars only, if it is allowed, needs no k records. Every record has
        it as a way out, and without it the rest often falls into parts. A release that uses it for
        none or for at least k records is one of the problem itself.

    Notes
    -----
    Of output rows that the same records may be published as only the cheapest is kept. Then row
    types with the same output rows under all patterns are merged: one may take the place of another
    in every release. Where a suppressed record costs no more than one under the pattern of stars
    only, the pattern is not needed. Complexity: O(t p log(t p)).

    Raises
    ------
    NoSolution
        If no release exists, since a record shares no output row with k - 1 others.
    """
    rows = output_rows(problem) if rows is None else rows
    starred = np.flatnonzero(rows.stars.all(axis=1))
    price, relaxed_pattern = suppression_cost(problem), SUPPRESSED
    row_of = np.ascontiguousarray(rows.row_of.T)
    if len(starred):
        cost = float(rows.costs[starred[0]])
        if price <= cost or relaxed:
            row_of[starred[0]] = -1
        if relaxed and cost < price:
            price, relaxed_pattern = cost, int(starred[0])
    counts = rows.types.counts
    best = representatives(row_of, rows.costs[rows.pattern_of])
    # The last entry stands for no row, number -1.
    row_of[np.append(best != np.arange(rows.count), False)[row_of]] = -1
    type_of, type_count = rows_alike(
        np.ascontiguousarray(row_of.T), np.zeros(len(row_of), np.bool_)
    )
    first = np.unique(type_of, return_index=True)[1]
    program = PatternProgram(
        problem.k,
        np.bincount(type_of, weights=counts, minlength=type_count).astype(np.int64),
        type_of,
        np.arange(len(rows.costs)),
        rows.costs,
        np.ascontiguousarray(row_of[:, first]),
        rows.count,
        price,
        relaxed_pattern,
        _star_cost(rows),
    )
    unshared = np.isinf(program.cheapest)[program.type_of]
    if unshared.any():
        refuse_unshared(problem, int(rows.types.first[unshared].min()))
    return program


def _star_cost(rows: OutputRows) -> float:
    costliest = int(np.argmax(rows.costs))
    cost = float(rows.costs[costliest]) / max(1, int(rows.stars[costliest].sum()))
    return cost if cost > 0 else 1.0
