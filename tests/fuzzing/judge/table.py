"""A table as the judge sees it, and what is published of its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any

#: What is published: ("star",), ("range", low, high), ("set", frozenset) or ("node", label).
Cell = tuple[Any, ...]
STAR: Cell = ("star",)
#: A number that is missing, and is a value of its own: a cell of it alone, and of numbers as well.
MISSING = inf
MISSES: Cell = ("range", inf, inf)
ANYTHING: Cell = ("range", -inf, inf)


@dataclass(frozen=True)
class Scale:
    """What the numbers of a column stand for: `values` of the column are numbers of this scale."""

    told: tuple[Any, ...]  # what the table holds: dates or numbers, one a record
    unit: str | None = None  # of dates; None of numbers
    form: str | None = None  # of dates that are texts, None for ISO 8601
    step: float | None = None  # width of the steps of numbers, None for exact ones
    #: Numbers of the open groups, None for none.
    most: float | None = None
    least: float | None = None

    @property
    def whole(self) -> bool:
        """Whether the table holds whole numbers only."""
        return self.unit is None and all(float(one).is_integer() for one in self.told)

    def shown(self, number: float, *, last: bool) -> str:
        """Return how a release writes the first or the last value that a number stands for."""
        if self.unit is None:
            if last and self.step is not None:
                number = float(Fraction(repr(number)) + Fraction(repr(self.step)) - self.whole)
            return repr(number + 0.0).removesuffix(".0")
        at = int(number)
        if self.unit == "day":
            return (date(1970, 1, 1) + timedelta(at)).isoformat()
        if self.unit == "month":
            return f"{1970 + at // 12}-{at % 12 + 1:02}"
        if self.unit == "quarter":
            return f"{1970 + at // 4}-Q{at % 4 + 1}"
        return str(1970 + at) if self.unit == "year" else f"{1970 + 10 * at}s"


@dataclass(frozen=True)
class Column:
    """One quasi-identifier with the values of all records."""

    #: Kind is numeric, categorical or hierarchical.
    name: str
    kind: str
    values: tuple[Any, ...]  # numbers or texts, one a record; of ranges a number may be missing
    #: Declared: lowest and highest number, or all texts; None takes what is observed.
    domain: tuple[Any, ...] | None = None
    publish: str = "range"  # range, set or node
    integer: bool = False  # whether the numbers are whole
    weight: float = 1.0  # importance
    #: Of a hierarchical column: from every value of the domain to the root.
    paths: tuple[tuple[str, ...], ...] = ()
    scale: Scale | None = None  # of dates, and of numbers in steps or with open groups

    @cached_property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Lowest and highest number of the domain."""
        present = [one for one in self.values if one != MISSING] or [0.0]
        low, high = self.domain or (min(present), max(present))
        return Fraction(low), Fraction(high)

    @cached_property
    def misses(self) -> bool:
        """Whether a number is missing."""
        return self.kind == "numeric" and MISSING in self.values

    @cached_property
    def size(self) -> int:
        """Number of permissible values, where they can be counted."""
        if self.paths:
            return len(self.paths)
        if self.kind == "numeric":
            if self.integer and (self.domain is not None or self.publish == "range"):
                return int(self.ends[1] - self.ends[0]) + 1 + self.misses
            return len(set(self.values))
        return len(self.domain or set(self.values))

    @cached_property
    def below(self) -> dict[str, frozenset[str]]:
        """The values below each label of the hierarchy."""
        found: dict[str, set[str]] = {}
        for path in self.paths:
            for label in path:
                found.setdefault(label, set()).add(path[0])
        return {label: frozenset(values) for label, values in found.items()}

    @cached_property
    def path_of(self) -> dict[str, tuple[str, ...]]:
        """The path of each value."""
        return {path[0]: path for path in self.paths}

    def level(self, label: str) -> int:
        """Return the longest way from a value below a label to the label."""
        return max(path.index(label) for path in self.paths if label in path)

    @cached_property
    def height(self) -> int:
        """The level of the root."""
        return self.level(self.paths[0][-1])

    def cell_of(self, records: Iterable[int]) -> Cell:
        """Return the tight cell of a set of records."""
        held = [self.values[record] for record in records]
        if self.paths:
            paths = [self.path_of[value] for value in held]
            return ("node", next(label for label in paths[0] if all(label in p for p in paths)))
        if self.publish == "set":
            return ("set", frozenset(held))
        low, high = min(held), max(held)
        return ("range", low, high) if high < MISSING or low == high else ANYTHING

    def scaled_cells(self) -> dict[str, Cell]:
        """Return what every cell of a scaled column says, by its text."""
        scale = self.scale
        assert scale is not None
        known = {*self.values, *self.domain_numbers, scale.most, scale.least}
        levels = sorted(known - {None, MISSING})
        found: dict[str, Cell] = {}
        for low in levels:
            for high in levels[levels.index(low) :]:
                first = scale.shown(low, last=False)
                last = scale.shown(high, last=True)
                text = first if first == last else f"[{first}..{last}]"
                if low == scale.least and high == scale.most:
                    text = "[..]"
                elif high == scale.most:
                    text = f"{first}+"
                elif low == scale.least:
                    text = f"{last}-"
                found[text] = ("range", low, high)
        return found

    @property
    def told(self) -> tuple[Any, ...]:
        """What the table holds."""
        return self.values if self.scale is None else self.scale.told

    @property
    def domain_numbers(self) -> tuple[Any, ...]:
        """The ends of a declared domain of numbers."""
        return self.domain or ()

    def at_level(self, record: int, level: int) -> Cell:
        """Return the cell of a record where a whole column is published at one level."""
        if self.paths:
            path = self.path_of[self.values[record]]
            return ("node", path[min(level, len(path) - 1)])
        return STAR if level else self.cell_of([record])

    def contains(self, cell: Cell, value: Any) -> bool:
        """Return whether a cell covers a value."""
        if cell == STAR:
            return True
        if cell[0] == "range":
            return bool(cell[1] <= value <= cell[2])
        if cell[0] == "set":
            return value in cell[1]
        return value in self.below[cell[1]]

    def spread(self, cell: Cell) -> Fraction:
        """Return the normalised penalty of a cell."""
        if cell == STAR:
            return Fraction(1)
        if cell in (MISSES, ANYTHING):
            return Fraction(cell == ANYTHING)
        if self.kind == "numeric":
            low, high = (cell[1], cell[2]) if cell[0] == "range" else (min(cell[1]), max(cell[1]))
            width = self.ends[1] - self.ends[0]
            return (Fraction(high) - Fraction(low)) / width if width else Fraction(0)
        return Fraction(self.count(cell) - 1, self.size - 1) if self.size > 1 else Fraction(0)

    def count(self, cell: Cell) -> int:
        """Return how many values a cell covers, where they can be counted."""
        if cell == STAR:
            return self.size
        if cell in (MISSES, ANYTHING):
            return 1 if cell == MISSES else self.size
        if cell[0] == "range":
            return int(cell[2]) - int(cell[1]) + 1
        return len(cell[1]) if cell[0] == "set" else len(self.below[cell[1]])

    def is_exact(self, cell: Cell) -> bool:
        """Return whether a cell says a single value."""
        if cell[0] == "range":
            return bool(cell[1] == cell[2])
        if cell[0] == "set":
            return len(cell[1]) == 1
        return cell != STAR and cell[1] in self.path_of


@dataclass(frozen=True)
class Table:
    """A table."""

    columns: tuple[Column, ...]  # the quasi-identifiers
    #: Further columns by name, one text a record.
    sensitive: tuple[tuple[str, tuple[str, ...]], ...] = ()
    kept: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.columns[0].values)

    def cells_of(self, records: Sequence[int]) -> tuple[Cell, ...]:
        """Return the tight cells of a set of records."""
        return tuple(column.cell_of(records) for column in self.columns)

    @property
    def stars(self) -> tuple[Cell, ...]:
        """The cells of a suppressed record."""
        return (STAR,) * len(self.columns)


def members(mask: int) -> list[int]:
    """Return the records of a set that is written as bits."""
    return [record for record in range(mask.bit_length()) if mask >> record & 1]
