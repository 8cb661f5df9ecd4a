"""Tables drawn at the edges: huge and tiny numbers, near ties, constants, odd texts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from math import floor

from tests.fuzzing.judge.table import MISSING, Column, Scale, Table

_TEXTS = ("a", "b", "c", "*", "[x", "a|b", "}", "\\", "{F", " ", "ü,", '"', "=1+1", "1..2")
_SICK = ("flu", "hiv", "asthma", "*", "1", "2", "10")


def _wholes(rng: random.Random, n: int) -> list[float]:
    top = rng.choice([1, 2, 5, 9, 1000])
    return [float(rng.randint(0, top)) for _ in range(n)]


def _scaled(rng: random.Random, n: int) -> list[float]:
    unit = rng.choice([1e15, 1e-12, 1e9, 1e-9, 1e3, 1e-3, 0.1, -1.0, 1e100, 1e-100])
    return [float(rng.randint(0, 9)) * unit for _ in range(n)]


def _ratios(rng: random.Random, n: int) -> list[float]:
    values = rng.sample([0.0, 1e-9, 1.0, 1e9, 2e9, 1e-12, 1e15, 1e-3, 2.0, 3e-9, 1e6], 4)
    return [rng.choice(values) for _ in range(n)]


def _near_ties(rng: random.Random, n: int) -> list[float]:
    values = [0.3, 0.30000000000000004, 0.1, 0.10000000000000002, 1.0, 0.7, 0.7000000000000001]
    return [rng.choice(values) for _ in range(n)]


def _offset(rng: random.Random, n: int) -> list[float]:
    base, step = rng.choice([(1e9, 1e-6), (1e15, 1.0), (1e6, 1e-9), (-1e12, 1e-3), (2.0**52, 1.0)])
    return [base + step * rng.randint(0, 7) for _ in range(n)]


def _real(rng: random.Random, n: int) -> list[float]:
    return [rng.choice([rng.random(), rng.uniform(-1e6, 1e6), rng.gauss(0, 1)]) for _ in range(n)]


def _constant(rng: random.Random, n: int) -> list[float]:
    return [rng.choice([0.0, 7.0, 1e15, -3.5])] * n


def _sentinel(rng: random.Random, n: int) -> list[float]:
    values = [float(rng.randint(0, 900)) for _ in range(n)]
    values[rng.randrange(n)] = rng.choice([9e15, 99999.0, -1.0, 1e12])
    return values


_NUMBERS: tuple[Callable[[random.Random, int], list[float]], ...] = (
    *(_wholes, _wholes, _scaled, _ratios, _near_ties, _offset, _real, _constant, _sentinel),
)


def _numeric(rng: random.Random, name: str, n: int) -> Column:
    values = rng.choice(_NUMBERS)(rng, n)
    integer = all(one.is_integer() and abs(one) <= 2**53 for one in values) and rng.random() < 0.4
    domain = None
    low, high = min(values), max(values)
    kind = rng.random()
    if kind < 0.12:
        domain = (min(0.0, low), max(9e15, high))
    elif kind < 0.3:
        domain = (low - abs(low), high + rng.choice([0.0, 1.0, abs(high)]))
    publish = "set" if rng.random() < 0.2 else "range"
    weight = rng.choice([1.0, 1.0, 1.0, 2.0, 0.5, 0.0, 1e-9, 1e9])
    return Column(name, "numeric", tuple(values), domain, publish, integer, weight)


def _categorical(rng: random.Random, name: str, n: int) -> Column:
    texts = rng.sample(_TEXTS, rng.randint(1, 4))
    values = tuple(rng.choice(texts) for _ in range(n))
    domain = tuple(texts) if rng.random() < 0.4 else None
    return Column(name, "categorical", values, domain, "set", weight=rng.choice([1.0, 1.0, 3.0]))


def _hierarchical(rng: random.Random, name: str, n: int) -> Column:
    leaves = [f"v{at}" for at in range(rng.randint(2, 5))]
    root = rng.choice(["*", "all"])
    shape = rng.randrange(4)
    paths = []
    for at, leaf in enumerate(leaves):
        if shape == 0:
            path: tuple[str, ...] = (leaf, root)
        elif shape == 1:
            path = (leaf, f"g{at // 2}", root)
        elif shape == 2:
            path = (leaf, f"g{at // 2}", "h", root)
        else:
            path = (leaf, root) if at == 0 else (leaf, f"g{at % 2}", root)
        paths.append(path)
    values = tuple(rng.choice(leaves) for _ in range(n))
    weight = rng.choice([1.0, 1.0, 2.0])
    return Column(name, "hierarchical", values, None, "node", weight=weight, paths=tuple(paths))


_UNITS = ("day", "month", "quarter", "year", "decade")
#: Of a hierarchy that the judge looks through.
_MOST_UNITS = 400


def _number_of(day: date, unit: str) -> int:
    months = 12 * (day.year - 1970) + day.month - 1
    parts = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
    return (day - date(1970, 1, 1)).days if unit == "day" else months // parts[unit]


def _grouped(rng: random.Random, name: str, numbers: list[float], scale: Scale) -> Column:
    """Return a column of scaled numbers, of which the outer ones may be groups."""
    levels = sorted(set(numbers))
    most = rng.choice(levels) if rng.random() < 0.3 else None
    least = rng.choice(levels) if rng.random() < 0.3 else None
    if most is not None and least is not None and least >= most:
        least = None
    values = [one if most is None else min(one, most) for one in numbers]
    values = [one if least is None else max(one, least) for one in values]
    whole = scale.unit is not None or (scale.step is None and scale.whole)
    weight = rng.choice([1.0, 1.0, 2.0])
    grouped = replace(scale, most=most, least=least)
    return Column(name, "numeric", tuple(values), None, "range", whole, weight, scale=grouped)


def _dates(rng: random.Random, name: str, n: int) -> Column:
    unit = rng.choice(_UNITS)
    spread = rng.choice([3, 40, 400, 40_000])
    days = [date(1965, 1, 1) + timedelta(rng.randint(0, spread)) for _ in range(n)]
    form = rng.choice([None, "%d.%m.%Y", "%m/%d/%Y"]) if spread < 10_000 else None
    told = tuple(day.isoformat() if form is None else day.strftime(form) for day in days)
    numbers = [float(_number_of(day, unit)) for day in days]
    return _grouped(rng, name, numbers, Scale(told, unit, form))


def _on_calendar(rng: random.Random, column: Column) -> Column:
    """Return a column of dates published as units of the calendar, or the column as it is."""
    scale = column.scale
    if scale is None or scale.unit is None or rng.random() < 0.5:
        return column
    numbers = [int(value) for value in column.values]
    low, high = min(numbers), max(numbers)
    if high - low > _MOST_UNITS:
        return column
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
    paths = []
    for number in range(low, high + 1):
        first = number * months.get(scale.unit, 0)
        if scale.unit == "day":
            first = _number_of(date(1970, 1, 1) + timedelta(number), "month")
        above = [
            replace(scale, unit=unit).shown(first // months[unit], last=False)
            for unit in _UNITS[_UNITS.index(scale.unit) + 1 :]
        ]
        label = scale.shown(number, last=False)
        sign = "+" if number == scale.most else "-" if number == scale.least else ""
        paths.append((label + sign, *([label + sign] * len(above) if sign else above), "*"))
    values = tuple(paths[number - low][0] for number in numbers)
    return replace(
        column,
        kind="hierarchical",
        values=values,
        publish="node",
        integer=False,
        paths=tuple(paths),
    )


def _steps(rng: random.Random, name: str, n: int) -> Column:
    step = rng.choice([None, 5.0, 10.0, 0.1, 0.25])
    places = rng.choice([0, 2]) if step in (0.1, 0.25) or step is None else 0
    told = tuple(round(rng.uniform(-40, 90), places) for _ in range(n))
    told = tuple(float(one) + 0.0 for one in told)
    if step in (0.1, 0.25) and all(one.is_integer() for one in told):
        told = (told[0] + 0.5, *told[1:])
    width = Fraction(1) if step is None else Fraction(repr(step))
    numbers = [
        one if step is None else float(floor(Fraction(repr(one)) / width) * width) for one in told
    ]
    return _grouped(rng, name, numbers, Scale(told, step=step))


def draw_table(rng: random.Random, n: int, m: int, *, diverse: bool) -> Table:
    """Return a table of n records and m quasi-identifiers."""
    columns = []
    numbers_only = rng.random() < 0.3
    for a in range(m):
        draw = (
            _numeric
            if numbers_only
            else rng.choice([*[_numeric, _categorical, _hierarchical] * 3, _dates, _steps])
        )
        columns.append(draw(rng, f"q{a}", n))
    if n > 2 and rng.random() < 0.3:
        columns = [_with_twins(rng, column) for column in columns]
    columns = [_on_calendar(rng, column) for column in columns]
    sensitive = []
    if diverse or rng.random() < 0.2:
        for at in range(rng.choice([1, 1, 1, 2])):
            values = rng.sample(_SICK, rng.randint(2, 4))
            sensitive.append((f"s{at}", tuple(rng.choice(values) for _ in range(n))))
    kept = []
    if rng.random() < 0.15:
        kept.append(("kept", tuple(rng.choice(["x", "02138", "", '"q,"']) for _ in range(n))))
    return Table(tuple(columns), tuple(sensitive), tuple(kept))


def with_holes(rng: random.Random, table: Table, but: frozenset[int]) -> Table:
    """Return a table of which some ranges miss numbers, those of some columns excepted."""
    columns = list(table.columns)
    for a, column in enumerate(columns):
        if column.publish == "range" and a not in but and rng.random() < 0.6:
            share = rng.choice([0.2, 0.5, 0.9])
            values = [MISSING if rng.random() < share else one for one in column.values]
            columns[a] = replace(column, values=tuple(values))
    return replace(table, columns=tuple(columns))


def _with_twins(rng: random.Random, column: Column) -> Column:
    values = list(column.values)
    values[1] = values[0]
    scale = column.scale
    if scale is not None:
        scale = replace(scale, told=(scale.told[0], scale.told[0], *scale.told[2:]))
    return replace(column, values=tuple(values), scale=scale)
