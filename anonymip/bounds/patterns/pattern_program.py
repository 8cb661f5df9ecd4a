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
    output_rows,
    refuse_unshared,
    representatives,
    rows_alike,
    suppression_cost,
)

#: Decimals that costs may have for losses to lie on a grid.
_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class PatternProgram:
    """A pattern problem as a program: row types that may be published alike are one kind.

    Parameters
    ----------
    k
        Records that an output row needs to be used.
    counts
        (t,) int64, records of each kind.
    kind_of
        Kind of each row type of the table.
    patterns
        (p,) int64, rows of the mask.
    costs
        (p,) float64, cost of a record under each pattern.
    row_of
        (p, t) int32, C-contiguous, output row of each kind under each pattern; -1 for none.
    rows
        Output rows are numbered below this.
    price
        Cost of a record that needs no companions; infinite if there is no such.
    lone
        Pattern of these records: -1 if they are suppressed as a whole. A pattern means that it is
        relaxed: the program forgets that it too needs k records.
    star_cost
        What a star costs on average in the dearest pattern; 1 if all are free.
    """

    k: int
    counts: NDArray[np.int64]
    kind_of: NDArray[np.int64]
    patterns: NDArray[np.int64]
    costs: NDArray[np.float64]
    row_of: NDArray[np.int32]
    rows: int
    price: float
    lone: int
    star_cost: float

    @property
    def kinds(self) -> int:
        """Number of kinds t."""
        return len(self.counts)

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    @cached_property
    def pairs(self) -> int:
        """Number of pairs of a kind and an output row that it may be published as."""
        return int(np.count_nonzero(self.row_of >= 0))

    @cached_property
    def grid(self) -> int:
        """The number d such that every loss is a multiple of 1 / d; 0 if there is none small."""
        costs = self.costs if np.isinf(self.price) else np.append(self.costs, self.price)
        for decimals in range(_DECIMALS + 1):
            if np.array_equal(np.round(costs, decimals), costs):
                return int(10**decimals)
        return 0

    @cached_property
    def cheapest(self) -> NDArray[np.float64]:
        """(t,) cost of the cheapest way to publish a record of each kind; infinite without one."""
        best = np.full(self.kinds, self.price)
        for cost, rows in zip(self.costs, self.row_of, strict=True):
            best = np.where((rows >= 0) & (cost < best), cost, best)
        return best

    def part(self, kinds: NDArray[np.int64]) -> PatternProgram:
        """Return the program of some kinds alone, all of whose rows belong to them."""
        row_of = np.ascontiguousarray(self.row_of[:, kinds])
        used = np.flatnonzero((row_of >= 0).any(axis=1))
        numbers, labels = np.unique(row_of[used], return_inverse=True)
        labels = labels.reshape(len(used), len(kinds)).astype(np.int32)
        if len(numbers) and numbers[0] < 0:
            labels -= 1
        return replace(
            self,
            counts=self.counts[kinds],
            kind_of=np.empty(0, np.int64),
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
    types with the same output rows under all patterns are one kind: one stands for another in every
    release. Where a suppressed record costs no more than one under the pattern of stars only, the
    pattern is not needed. Complexity: O(t p log(t p)).

    Raises
    ------
    NoSolution
        If no release exists, since a record shares no output row with k - 1 others.
    """
    rows = output_rows(problem) if rows is None else rows
    starred = np.flatnonzero(rows.stars.all(axis=1))
    price, lone = suppression_cost(problem), SUPPRESSED
    row_of = np.ascontiguousarray(rows.row_of.T)
    if len(starred):
        cost = float(rows.costs[starred[0]])
        if price <= cost or relaxed:
            row_of[starred[0]] = -1
        if relaxed and cost < price:
            price, lone = cost, int(starred[0])
    counts = rows.types.counts
    best = representatives(row_of, rows.costs[rows.pattern_of])
    # The last entry stands for no row, number -1.
    row_of[np.append(best != np.arange(rows.count), False)[row_of]] = -1
    kind_of, kinds = rows_alike(np.ascontiguousarray(row_of.T), np.zeros(len(row_of), np.bool_))
    first = np.unique(kind_of, return_index=True)[1]
    program = PatternProgram(
        problem.k,
        np.bincount(kind_of, weights=counts, minlength=kinds).astype(np.int64),
        kind_of,
        np.arange(len(rows.costs)),
        rows.costs,
        np.ascontiguousarray(row_of[:, first]),
        rows.count,
        price,
        lone,
        _star_cost(rows),
    )
    unshared = np.isinf(program.cheapest)[program.kind_of]
    if unshared.any():
        refuse_unshared(problem, int(rows.types.first[unshared].min()))
    return program


def _star_cost(rows: OutputRows) -> float:
    dearest = int(np.argmax(rows.costs))
    cost = float(rows.costs[dearest]) / max(1, int(rows.stars[dearest].sum()))
    return cost if cost > 0 else 1.0
