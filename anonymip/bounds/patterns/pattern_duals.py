"""What prices of records prove about a pattern problem, in whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, fsum, log2

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.patterns.pattern_program import PatternProgram

#: Finest unit of prices, and the bits that sums of them may fill.
_FINEST, _BITS = 30, 61


@dataclass(frozen=True, eq=False)
class PatternPrices:
    """The Lagrangian function of a program at given prices; all numbers are exact.

    Parameters
    ----------
    unit
        Whole numbers below mean this part of one unit of the loss: 1 / unit.
    prices
        (t,) int64, price of a record of each kind, none above that of a lone record; below zero for
        those whom others need as companions.
    row_losses
        (rows,) int64, least that a used row costs beyond the prices of its records.
    pair_rows, pair_kinds, pair_patterns
        (pairs,) the pairs of a kind and a row, by pattern.
    excess
        (pairs,) int64, how much more than the value any release costs that publishes a record of
        the kind as the row.
    """

    program: PatternProgram
    unit: int
    prices: NDArray[np.int64]
    row_losses: NDArray[np.int64]
    pair_rows: NDArray[np.int64]
    pair_kinds: NDArray[np.int64]
    pair_patterns: NDArray[np.int64]
    excess: NDArray[np.int64]

    @property
    def value(self) -> int:
        """The bound in parts of a unit of the loss."""
        records = int((self.program.counts * self.prices).sum())
        return records + int(np.minimum(self.row_losses, 0).sum())

    def values(self, labels: NDArray[np.int64], parts: int) -> NDArray[np.int64]:
        """Return (parts,) the bound of each part, given the part of each kind."""
        total = np.zeros(parts, np.int64)
        np.add.at(total, labels, self.program.counts * self.prices)
        part_of = np.zeros(self.program.rows, np.int64)
        part_of[self.pair_rows] = labels[self.pair_kinds]
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


def price_patterns(program: PatternProgram, multipliers: NDArray[np.float64]) -> PatternPrices:
    """Return what given prices of records prove.

    Let every record be paid its price, whoever publishes it. An output row that is used takes k
    records at least, and costs the least beyond their prices if it takes all that cost less than
    their price and, if these are fewer than k, those that cost least beyond it. So no release costs
    less than the prices of all records and these losses where they are below zero.

    Parameters
    ----------
    program
        Of the problem.
    multipliers
        (t,) prices in units of the loss; they are rounded, which proves no less truly.

    Notes
    -----
    Costs are rounded down and prices to multiples of a power of two, so sums of whole numbers are
    all that is left: nothing depends on how the prices were found. Rows decide apart, hence the
    same numbers say what each row and each record in it adds. Complexity: O(p t log t).
    """
    unit, largest = _unit(program)
    scaled = np.floor(program.costs * unit).astype(np.int64)
    most = program.k * largest
    prices = np.rint(np.clip(multipliers, -most, most) * unit).astype(np.int64)
    if np.isfinite(program.price):
        prices = np.minimum(prices, floor(program.price * unit))
    row_losses = np.zeros(program.rows, np.int64)
    found: list[tuple[NDArray[np.int64], ...]] = []
    for pattern, (cost, row_of) in enumerate(zip(scaled, program.row_of, strict=True)):
        kinds = np.flatnonzero(row_of >= 0)
        kinds = kinds[np.lexsort((-prices[kinds], row_of[kinds]))]
        if not len(kinds):
            continue
        rows = row_of[kinds].astype(np.int64)
        excess = _of_pattern(
            program.k, cost - prices[kinds], program.counts[kinds], rows, row_losses
        )
        found.append((rows, kinds, np.full(len(kinds), pattern), excess))
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else []
    empty = np.empty(0, np.int64)
    rows, kinds, patterns, excess = columns or [empty] * 4
    return PatternPrices(program, unit, prices, row_losses, rows, kinds, patterns, excess)


def loss_of(prices: PatternPrices, amounts: NDArray[np.int64]) -> float:
    """Return the loss of a release: of its pairs, and of the records that are in none."""
    program = prices.program
    lone = program.records - int(amounts.sum())
    used = np.flatnonzero(amounts)
    losses = fsum(program.costs[prices.pair_patterns[used]] * amounts[used])
    return losses + (program.price * lone if lone else 0.0)


def _unit(program: PatternProgram) -> tuple[int, float]:
    """Return a power of two for which no sum overflows, and the largest cost, at least 1."""
    finite = program.price if np.isfinite(program.price) else 0.0
    largest = max(1.0, float(program.costs.max(initial=0.0)), finite)
    # Prices are kept within k of the largest costs; sums run over all records.
    bits = log2(largest) + log2(4.0 * program.records * program.k)
    return 1 << max(0, min(_FINEST, floor(_BITS - bits))), largest


def _of_pattern(
    k: int,
    beyond: NDArray[np.int64],
    counts: NDArray[np.int64],
    rows: NDArray[np.int64],
    row_losses: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Write the losses of one pattern's rows; return the excess of each pair.

    Pairs stand by row, and within a row by what a record costs beyond its price, ascending.
    """
    opens = np.concatenate([[True], rows[1:] != rows[:-1]])
    begin = np.flatnonzero(opens)
    group = np.cumsum(opens) - 1
    ahead = np.cumsum(counts) - counts
    ahead -= ahead[begin][group]
    taken = np.where(beyond < 0, counts, np.clip(k - ahead, 0, counts))
    losses = np.add.reduceat(taken * beyond, begin)
    row_losses[rows[begin]] = losses
    # Whoever comes in addition takes the place of the last one who only fills up to k.
    last = np.maximum.reduceat(np.where(taken > 0, np.maximum(beyond, 0), 0), begin)
    joining = np.where(taken > 0, 0, beyond - last[group])
    return np.maximum(losses, 0)[group] + np.maximum(joining, 0)
