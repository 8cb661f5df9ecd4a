"""What dual values of records prove about a pattern problem, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, fsum, log2

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.patterns.pattern_program import PatternProgram

#: Finest unit of duals, and the bits that sums of them may fill.
_FINEST, _BITS = 30, 61


@dataclass(frozen=True, eq=False)
class PatternDuals:
    """The Lagrangian function of a program at given duals; all numbers are exact.

    Parameters
    ----------
    unit
        Whole numbers below mean this part of one unit of the loss: 1 / unit.
    multipliers
        (t,) int64, dual value of a record of each row type, none above the cost of a record without
        companions; below zero for those whom others need as companions.
    row_losses
        (rows,) int64, least that a used row costs above the duals of its records.
    pair_rows, pair_types, pair_patterns
        (pairs,) the pairs of a row type and an output row, by pattern.
    reduced_costs
        (pairs,) int64, how much more than the value any release costs that publishes a record of
        the row type as the output row.
    """

    program: PatternProgram
    unit: int
    multipliers: NDArray[np.int64]
    row_losses: NDArray[np.int64]
    pair_rows: NDArray[np.int64]
    pair_types: NDArray[np.int64]
    pair_patterns: NDArray[np.int64]
    reduced_costs: NDArray[np.int64]

    @property
    def value(self) -> int:
        """The bound in parts of a unit of the loss."""
        records = int((self.program.counts * self.multipliers).sum())
        return records + int(np.minimum(self.row_losses, 0).sum())

    def values(self, labels: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
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


def pattern_duals(program: PatternProgram, multipliers: NDArray[np.float64]) -> PatternDuals:
    """Return what given dual values of records prove.

    Let every record pay its dual, whoever publishes it. An output row that is used takes k records
    at least, and its reduced cost is least if it takes all records that cost less than their duals
    and, if these are fewer than k, those that cost least above them. So no release costs less than
    the duals of all records and these losses where they are below zero.

    Parameters
    ----------
    program
        Of the problem.
    multipliers
        (t,) duals in units of the loss; they are rounded, which proves no less truly.

    Notes
    -----
    Costs are rounded down and duals to multiples of a power of two, so sums of whole numbers are
    all that is left: nothing depends on how the duals were found. The rows decide independently,
    hence the same numbers say what each row and each record in it adds. Complexity: O(p t log t).
    """
    unit, largest = _unit(program)
    scaled = np.floor(program.costs * unit).astype(np.int64)
    most = program.k * largest
    duals = np.rint(np.clip(multipliers, -most, most) * unit).astype(np.int64)
    if np.isfinite(program.price):
        duals = np.minimum(duals, floor(program.price * unit))
    row_losses = np.zeros(program.rows, np.int64)
    found: list[tuple[NDArray[np.int64], ...]] = []
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


def loss_of(duals: PatternDuals, amounts: NDArray[np.int64]) -> float:
    """Return the loss of a release: of its pairs, and of the records that are in none."""
    program = duals.program
    others = program.records - int(amounts.sum())
    used = np.flatnonzero(amounts)
    losses = fsum(program.costs[duals.pair_patterns[used]] * amounts[used])
    return losses + (program.price * others if others else 0.0)


def _unit(program: PatternProgram) -> tuple[int, float]:
    """Return a power of two for which no sum overflows, and the largest cost, at least 1."""
    finite = program.price if np.isfinite(program.price) else 0.0
    largest = max(1.0, float(program.costs.max(initial=0.0)), finite)
    # Duals are kept within k of the largest costs; sums run over all records.
    bits = log2(largest) + log2(4.0 * program.records * program.k)
    return 1 << max(0, min(_FINEST, floor(_BITS - bits))), largest


def _reduced_costs(
    k: int,
    net: NDArray[np.int64],
    counts: NDArray[np.int64],
    rows: NDArray[np.int64],
    row_losses: NDArray[np.int64],
) -> NDArray[np.int64]:
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
