"""The rules that a set of records must keep beside its size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

from tests.fuzzing.judge.table import STAR, Cell, Column, Table

#: A cap is kept up to this relative difference, for widths are computed with rounding.
_ROUNDING = Fraction(1, 10**9)


@dataclass(frozen=True)
class Rules:
    """What is forbidden."""

    #: Diversity and closeness of sensitive values; None, or 1, asks for nothing.
    l: float = 1  # noqa: E741
    distinct: int = 1
    t: float | None = None
    ordered: bool = False
    caps: tuple[tuple[int, float], ...] = ()  # column and the most that its cells may cover
    #: Column and two values that no cell may cover both.
    apart: tuple[tuple[int, Any, Any], ...] = ()
    #: How many units a class must hold, which the first sensitive column of the table names; 0
    #: where it does not.
    unit: int = 0

    @property
    def diverse(self) -> bool:
        """Whether something is asked of the sensitive values, or of units."""
        return self.of_rows or self.unit > 0

    @property
    def of_rows(self) -> bool:
        """Whether something is asked of the sensitive values."""
        return self.l > 1 or self.distinct > 1 or self.t is not None

    def allow(self, table: Table, records: Sequence[int]) -> bool:
        """Return whether a set of records keeps all rules."""
        sensitive = table.sensitive
        if self.unit:
            if len({sensitive[0][1][record] for record in records}) < self.unit:
                return False
            sensitive = sensitive[1:]
        return self.allow_cells(table, table.cells_of(records)) and all(
            self.allow_values([values[record] for record in records], values)
            for _, values in sensitive
        )

    def allow_values(self, held: Sequence[str], everywhere: Sequence[str]) -> bool:
        """Return whether the sensitive values of a class keep diversity and closeness."""
        counts = Counter(held)
        share = Fraction(self.l).limit_denominator(10**6)
        if len(counts) < self.distinct or max(counts.values()) * share > len(held):
            return False
        if self.t is None:
            return True
        return self._distance(counts, Counter(everywhere)) <= Fraction(self.t).limit_denominator(
            10**6
        )

    def _distance(self, own: Counter[str], table: Counter[str]) -> Fraction:
        numbers = _numbers(table) if self.ordered else None
        if numbers is None:
            gaps = [_share(own, value) - _share(table, value) for value in table]
            return sum(map(abs, gaps), Fraction(0)) / 2
        moved, total = Fraction(0), Fraction(0)
        points = sorted(set(numbers.values()))
        for point in points:
            for value, number in numbers.items():
                if number == point:
                    moved += _share(own, value) - _share(table, value)
            total += abs(moved)
        return total / max(1, len(points) - 1)

    def allow_cells(self, table: Table, cells: Sequence[Cell]) -> bool:
        """Return whether cells keep caps and what stays apart."""
        for a, most in self.caps:
            if cells[a] != STAR and _covered(table.columns[a], cells[a]) > Fraction(most) * (
                1 + _ROUNDING
            ):
                return False
        return not any(
            cells[a] != STAR
            and table.columns[a].contains(cells[a], one)
            and table.columns[a].contains(cells[a], two)
            for a, one, two in self.apart
        )


def _numbers(values: Counter[str]) -> dict[str, float] | None:
    try:
        numbers = {value: float(value) for value in values}
    except ValueError:
        return None
    return numbers if all(map(isfinite, numbers.values())) else None


def _share(counts: Counter[str], value: str) -> Fraction:
    return Fraction(counts[value], sum(counts.values()))


def _covered(column: Column, cell: Cell) -> Fraction:
    if cell[0] == "node":
        return Fraction(column.level(cell[1]))
    if cell[0] == "set":
        return Fraction(len(cell[1]))
    return Fraction(cell[2]) - Fraction(cell[1])
