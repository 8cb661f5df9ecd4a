"""The losses of the literature, in exact fractions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from operator import add, mul

from tests.fuzzing.judge.table import STAR, Cell, Column, Table


@dataclass(frozen=True)
class Loss:
    """A loss of published records, or of the members of classes."""

    #: gcp, leaf-loss, set-gcp, liang-gcp, weighted-loss, weighted-loss-binary, hierarchy-loss,
    #: suppressions, bottleneck-gcp, affine, product, largest or sse.
    name: str = "gcp"
    #: Of suppressions, affine, product (added to each factor) and largest: one a column.
    costs: tuple[float, ...] = ()
    constant: float = 0.0  # of affine: what every record costs in any case

    @property
    def worst(self) -> bool:
        """Whether the record that loses most counts, and not the sum."""
        return self.name == "bottleneck-gcp"

    @property
    def of_members(self) -> bool:
        """Whether the members of a class count, and not what is published."""
        return self.name == "sse"

    def record(self, table: Table, cells: Sequence[Cell]) -> Fraction:
        """Return the loss of a record from its cells."""
        if self.name in ("product", "largest"):
            spreads = [
                column.spread(cell) for column, cell in zip(table.columns, cells, strict=True)
            ]
            costs = [Fraction(cost) for cost in self.costs]
            if self.name == "product":
                return prod(map(add, costs, spreads), start=Fraction(1))
            return max(map(mul, costs, spreads))
        total = Fraction(self.constant)
        for a, (column, cell) in enumerate(zip(table.columns, cells, strict=True)):
            total += self._cell(table, a, column, cell)
        return total

    def _cell(self, table: Table, a: int, column: Column, cell: Cell) -> Fraction:
        spread = column.spread(cell)
        if self.name in ("gcp", "leaf-loss", "bottleneck-gcp"):
            return spread
        if self.name == "affine":
            return Fraction(self.costs[a]) * spread
        if self.name == "suppressions":
            return Fraction(self.costs[a]) * (spread > 0)
        if self.name == "set-gcp":
            return Fraction(column.count(cell) - 1, max(column.size - 1, 1))
        if self.name == "liang-gcp":
            if column.kind == "numeric":
                return spread
            return Fraction(column.count(cell) - 1, column.size)
        if self.name == "hierarchy-loss":
            if not column.paths:
                return Fraction(column.weight) * (spread > 0)
            level = column.height if cell == STAR else column.level(cell[1])
            return Fraction(column.weight) * Fraction(level, column.height)
        weight = Fraction(column.weight) / sum(Fraction(one.weight) for one in table.columns)
        if self.name == "weighted-loss-binary" and column.kind != "numeric":
            count = column.count(cell)
            return weight * Fraction(count if count > 1 else 0, column.size)
        return weight * spread

    def set(self, table: Table, records: Sequence[int]) -> Fraction:
        """Return the loss of one record that is published with a set of records."""
        return self.record(table, table.cells_of(records))

    def group(self, table: Table, records: Sequence[int]) -> Fraction:
        """Return the loss of a class: of all its records, or of one where the worst counts."""
        if self.of_members:
            return sum((_squares(column, records) for column in table.columns), Fraction(0))
        return self.set(table, records) * (1 if self.worst else len(records))

    def suppressed(self, table: Table) -> Fraction:
        """Return the loss of a suppressed record."""
        return self.record(table, table.stars)

    def total(self, losses: Iterable[Fraction]) -> Fraction:
        """Return the loss of a release from those of its records or classes."""
        listed = list(losses)
        return max(listed) if self.worst else sum(listed, Fraction(0))

    def unavoidable(self, table: Table) -> Fraction:
        """Return the loss of publishing all records exactly."""
        return self.total(self.set(table, [record]) for record in range(table.n))


def _squares(column: Column, records: Sequence[int]) -> Fraction:
    """Return squared distances to the mean, in squares of the column's deviation."""
    all_values = [Fraction(value) for value in column.values]
    variance = _around_mean(all_values) / len(all_values)
    return _around_mean([all_values[r] for r in records]) / variance if variance else Fraction(0)


def _around_mean(values: Sequence[Fraction]) -> Fraction:
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction(0))
