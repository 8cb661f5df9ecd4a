"""Pattern problems as programs, and what dual values of records prove about them, exactly.

A program is without the output rows and the differences of records that never matter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import floor, fsum, log2

import numpy as np

from anonymip.assignments import SUPPRESSED
from anonymip.errors import InputError
from anonymip.problem import Problem
from anonymip.recodings.output_rows import (
    OutputRows,
    grid_of,
    output_rows,
    pack_rows,
    refuse_unshared,
    representatives,
    rows_alike,
)
from anonymip.runtime.arrays import Codes, Floats, Ints


@dataclass(frozen=True, eq=False)
class PatternProgram:
    """A pattern problem as a program: row types that may be published alike are merged into one.

    An output row needs k records to be used. `counts` (t,) int64 are the records of each merged row
    type, `type_of` the merged type of each row type of the table. `patterns` (p,) int64 are rows of
    the mask, `costs` (p,) what a record costs under each. `row_of` (p, t) int32, C-contiguous, is
    the output row of each row type under each pattern, below `rows`; -1 for none. A record that
    needs no companions costs the price, infinite if there is no such; its pattern is the relaxed
    one, for which the program forgets that it too needs k records; -1 if it is suppressed as a
    whole. `star_cost` is what a star costs on average in the costliest pattern; 1 if all are free.
    """

    k: int
    counts: Ints
    type_of: Ints
    patterns: Ints
    costs: Floats
    row_of: Codes
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
    def losses(self) -> Floats:
        """The losses that a record can have."""
        return self.costs if np.isinf(self.price) else np.append(self.costs, self.price)

    @cached_property
    def cheapest(self) -> Floats:
        """(t,) least cost of publishing a record of each row type; infinite without a way."""
        best = np.full(self.type_count, self.price)
        for cost, rows in zip(self.costs, self.row_of, strict=True):
            best = np.where((rows >= 0) & (cost < best), cost, best)
        return best

    def restricted_to(self, types: Ints) -> PatternProgram:
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

    `problem`: with patterns as its recoding. `rows`: its output rows, if they are known. `relaxed`:
    whether the pattern of stars only, if it is allowed, needs no k records. Every record has it as
    a way out, and without it the rest often falls into parts. A release that uses it for none or
    for at least k records is one of the problem itself. Raises NoSolution if no release exists,
    since a record shares no output row with k - 1 others.

    Of output rows that the same records may be published as only the cheapest is kept. Then row
    types with the same output rows under all patterns are merged: one may take the place of another
    in every release. Where a suppressed record costs no more than one under the pattern of stars
    only, the pattern is not needed. Complexity: O(t p log(t p)).
    """
    rows = output_rows(problem) if rows is None else rows
    starred = np.flatnonzero(rows.stars.all(axis=1))
    price, relaxed_pattern = rows.price, SUPPRESSED
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
    type_of, type_count = rows_alike(pack_rows(row_of.T, np.zeros((1, len(row_of)), np.bool_)))
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


#: Finest unit of duals, and the bits that sums of them may fill.
_FINEST, _BITS = 30, 61


@dataclass(frozen=True, eq=False)
class PatternDuals:
    """The Lagrangian function of a program at given duals; all numbers are exact.

    Whole numbers are in parts of a unit of the loss, 1 / `unit`. `multipliers` (t,) int64 are the
    dual value of a record of each row type, none above the cost of a record without companions;
    below zero for those whom others need as companions. `row_losses` (rows,) int64 is the least
    that a used row costs above the duals of its records. (pairs,) are the pairs of a row type and
    an output row, by pattern; `reduced_costs` (pairs,) int64 how much more than the value any
    release costs that publishes a record of the row type as the output row.
    """

    program: PatternProgram
    unit: int
    multipliers: Ints
    row_losses: Ints
    pair_rows: Ints
    pair_types: Ints
    pair_patterns: Ints
    reduced_costs: Ints

    @property
    def value(self) -> int:
        """The bound in parts of a unit of the loss."""
        records = int((self.program.counts * self.multipliers).sum())
        return records + int(np.minimum(self.row_losses, 0).sum())

    def values(self, labels: Ints, parts: int) -> Ints:
        """Return (parts,) the bound of each part, given the part of each row type."""
        total = np.zeros(parts, np.int64)
        np.add.at(total, labels, self.program.counts * self.multipliers)
        part_of = np.zeros(self.program.rows, np.int64)
        part_of[self.pair_rows] = labels[self.pair_types]
        np.add.at(total, part_of, np.minimum(self.row_losses, 0))
        return total

    def lifted(self, value: int) -> float:
        """Return a value in units of the loss, raised to the next loss that is possible."""
        grid = self.program.grid
        if grid:
            return -(-value * grid // self.unit) / grid
        found = value / self.unit
        return found if int(found * self.unit) <= value else float(np.nextafter(found, -np.inf))

    @property
    def bound(self) -> float:
        """The bound in units of the loss, raised to the next loss that is possible."""
        return self.lifted(self.value)


def pattern_duals(program: PatternProgram, multipliers: Floats) -> PatternDuals:
    """Return what given dual values of records prove: (t,), in units of the loss.

    Let every record pay its dual, whoever publishes it. An output row that is used takes k records
    at least, and its reduced cost is least if it takes all records that cost less than their duals
    and, if these are fewer than k, those that cost least above them. So no release costs less than
    the duals of all records and these losses where they are below zero.

    Costs are rounded down and duals to multiples of a power of two, which proves no less truly:
    sums of whole numbers are all that is left, and nothing depends on how the duals were found. The
    rows decide independently, hence the same numbers say what each row and each record in it adds.
    Complexity: O(p t log t).
    """
    unit, largest = _unit(program)
    scaled = np.floor(program.costs * unit).astype(np.int64)
    most = program.k * largest
    duals = np.rint(np.clip(multipliers, -most, most) * unit).astype(np.int64)
    if np.isfinite(program.price):
        duals = np.minimum(duals, floor(program.price * unit))
    row_losses = np.zeros(program.rows, np.int64)
    found: list[tuple[Ints, ...]] = []
    for pattern, (cost, row_of) in enumerate(zip(scaled, program.row_of, strict=True)):
        types = np.flatnonzero(row_of >= 0)
        types = types[np.lexsort((-duals[types], row_of[types]))]
        if not len(types):
            continue
        rows = row_of[types].astype(np.int64)
        reduced = _reduced_costs(
            program.k, cost - duals[types], program.counts[types], rows, row_losses
        )
        found.append((rows, types, np.full(len(types), pattern), reduced))
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else []
    empty = np.empty(0, np.int64)
    rows, types, patterns, reduced = columns or [empty] * 4
    return PatternDuals(program, unit, duals, row_losses, rows, types, patterns, reduced)


def loss_of(duals: PatternDuals, amounts: Ints) -> float:
    """Return the loss of a release: of its pairs, and of the records that are in none."""
    program = duals.program
    others = program.records - int(amounts.sum())
    used = np.flatnonzero(amounts)
    losses = fsum(program.costs[duals.pair_patterns[used]] * amounts[used])
    return losses + (program.price * others if others else 0.0)


def _unit(program: PatternProgram) -> tuple[int, float]:
    """Return a power of two for which no sum overflows, and the largest cost, at least 1.

    Raises InputError if sums of whole costs overflow.
    """
    finite = abs(program.price) if np.isfinite(program.price) else 0.0
    largest = max(1.0, float(np.abs(program.costs).max(initial=0.0)), finite)
    # Duals are kept within k of the largest costs; sums run over all records.
    bits = log2(largest) + log2(4.0 * program.records * program.k)
    if bits > _BITS:
        raise InputError(
            f"a record may lose {largest:.3g}, too much for bounds of {program.records:,} records "
            f"with k = {program.k}, which are sums of whole numbers",
            remedy="Give all losses in a larger unit",
        )
    return 1 << min(_FINEST, floor(_BITS - bits)), largest


def _reduced_costs(k: int, net: Ints, counts: Ints, rows: Ints, row_losses: Ints) -> Ints:
    """Write the losses of one pattern's rows; return the reduced cost of each pair.

    Pairs are sorted by row, and within a row by `net`, the cost of a record less its dual.
    """
    opens = np.concatenate([[True], rows[1:] != rows[:-1]])
    begin = np.flatnonzero(opens)
    group = np.cumsum(opens) - 1
    ahead = np.cumsum(counts) - counts
    ahead -= ahead[begin][group]
    taken = np.where(net < 0, counts, np.clip(k - ahead, 0, counts))
    losses = np.add.reduceat(taken * net, begin)
    row_losses[rows[begin]] = losses
    # Whoever comes in addition takes the place of the last one who only fills up to k.
    last = np.maximum.reduceat(np.where(taken > 0, np.maximum(net, 0), 0), begin)
    joining = np.where(taken > 0, 0, net - last[group])
    return np.maximum(losses, 0)[group] + np.maximum(joining, 0)
