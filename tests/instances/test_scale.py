"""Tests of dates, steps and open groups: the numbers they stand for, and the cells they become."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    EquivalenceClasses,
    Freeform,
    InputError,
    Microdata,
    Problem,
    anonymize,
    publish,
    read_schema,
    solve,
    verify,
)
from anonymip.instances.scale import Unit, number_at, unit_of, unit_text
from anonymip.privacy.reading.cell_grammar import CellError
from anonymip.privacy.reading.scales import Scale
from tests.by_hand import by_classes

UNITS: tuple[Unit, ...] = get_args(Unit)
DAYS = st.dates(dt.date(1800, 1, 1), dt.date(2199, 12, 31))
FREQUENCY = {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}


@settings(max_examples=300)
@given(DAYS, st.sampled_from(UNITS))
def test_units_are_those_of_a_calendar(day: dt.date, unit: Unit) -> None:
    """Numbers and texts of units agree with those of pandas, and the text reads back."""
    number = unit_of(day, unit)
    text = unit_text(number, unit)
    if unit == "decade":
        assert number == day.year // 10 - 197
        assert text == f"{day.year // 10}0s"
    else:
        period = pd.Period(day, FREQUENCY[unit])
        assert number == period.ordinal - pd.Period("1970-01-01", FREQUENCY[unit]).ordinal
        assert text == str(period).replace("Q", "-Q")
    assert number_at(text, unit) == number
    assert unit_of(day + dt.timedelta(1), unit) - number in (0, 1)


def numbers_of(values: Sequence[Any], **declared: Any) -> list[float]:
    """Return the numbers that stand for the values of a column."""
    table = Microdata(pd.DataFrame({"x": values}), (Attribute("x", **declared),))
    return cast("list[float]", table.levels[0][table.codes[:, 0]].tolist())


@settings(max_examples=200)
@given(
    st.lists(st.decimals(-500, 500, places=2), min_size=1, max_size=8),
    st.sampled_from(["0.1", "0.25", "1", "5", "10", "1000"]),
)
def test_steps_are_multiples_below(values: list[Decimal], width: str) -> None:
    """A number stands in the step of the highest multiple that is not above it."""
    steps = [(one / Decimal(width)).to_integral_value(ROUND_FLOOR) for one in values]
    told = numbers_of([str(one) for one in values], precision=float(width))
    assert told == [float(step * Decimal(width)) for step in steps]


def test_open_groups() -> None:
    """What lies beyond is counted to the group, before anything is lost."""
    assert numbers_of([12, 20, 50, 90, 103], at_most=90, at_least=20) == [20, 20, 50, 90, 90]
    assert numbers_of([12, 24, 91], precision=5, at_most=90, integer=True) == [10, 20, 90]
    days = ["1899-05-01", "1950-01-31", "2011-12-31"]
    assert numbers_of(days, kind="date", precision="year", at_least="1930") == [-40, -20, 41]


@pytest.mark.parametrize(
    ("values", "declared", "cell", "ends"),
    [
        (["1968-08-03"] * 2, {"kind": "date"}, "1968-08-03", ("1968-08-03", "1968-08-03")),
        (
            ["1968-08-03", "1968-10-01"],
            {"kind": "date", "precision": "month"},
            "[1968-08..1968-10]",
            ("1968-08", "1968-10"),
        ),
        (["1968-08-03", "1968-08-04"], {"kind": "date", "precision": "month"}, "1968-08", None),
        (["31.12.1969"] * 2, {"kind": "date", "format": "%d.%m.%Y"}, "1969-12-31", None),
        (["1968-08-03", "1979"], {"kind": "date", "precision": "decade"}, "[1960s..1970s]", None),
        (["1968-08", "1968-04-01"], {"kind": "date", "precision": "quarter"}, None, None),
        (
            ["1905", "1990"],
            {"kind": "date", "precision": "year", "at_least": "1930"},
            "1990-",
            None,
        ),
        (["2015", "1990"], {"kind": "date", "precision": "year", "at_most": "2010"}, "1990+", None),
        ([37, 38], {"precision": 5, "integer": True}, "[35..39]", (35, 39)),
        ([37, 41], {"precision": 5, "integer": True}, "[35..44]", (35, 44)),
        ([36.67, 36.7], {"precision": 0.1}, "[36.6..36.8]", (36.6, 36.8)),
        ([91, 103], {"at_most": 90}, "90+", (90, "90+")),
        ([83, 103], {"at_most": 90, "precision": 5, "integer": True}, "80+", (80, "90+")),
        ([12, 37], {"at_least": 20, "precision": 5, "integer": True}, "39-", ("20-", 39)),
        ([12, 97], {"at_least": 20, "at_most": 90}, "[..]", ("20-", "90+")),
        ([-7, -3], {"at_most": -3}, "-7+", (-7, "-3+")),
    ],
)
def test_cells(
    values: list[Any], declared: dict[str, Any], cell: str | None, ends: tuple[Any, Any] | None
) -> None:
    """A cell shows whole units and open groups, in both layouts, and is verified."""
    table = Microdata(pd.DataFrame({"x": values}), (Attribute("x", **declared),))
    problem = Problem(table, 2)
    together = by_classes(problem, [0] * 2)
    release = publish(together)
    assert release.frame["x"].tolist() == [cell or "[1968-Q2..1968-Q3]"] * 2
    in_columns = publish(together, layout="columns").frame
    if ends is not None:
        assert tuple(in_columns.iloc[0]) == ends


SCALED = st.fixed_dictionaries(
    {
        "born": st.fixed_dictionaries(
            {"kind": st.just("date"), "precision": st.sampled_from([*UNITS, None])},
            optional={"at_most": st.just("1990-06-15"), "at_least": st.just("1930-02-01")},
        ),
        "age": st.fixed_dictionaries(
            {"integer": st.just(True), "precision": st.sampled_from([None, 1, 5, 10])},
            optional={"at_most": st.just(80), "at_least": st.just(20)},
        ),
        "lab": st.fixed_dictionaries(
            {"precision": st.sampled_from([None, 0.1, 0.25])}, optional={"at_most": st.just(38.5)}
        ),
    }
)


def scaled_table(declared: dict[str, dict[str, Any]], seed: int, n: int) -> Microdata:
    """Return a table of a date, a whole number and a real one."""
    rng = np.random.default_rng(seed)
    days = [dt.date(1925, 1, 1) + dt.timedelta(int(one)) for one in rng.integers(0, 30_000, n)]
    frame = pd.DataFrame(
        {
            "born": [day.isoformat() for day in days],
            "age": rng.integers(10, 100, n),
            "lab": np.round(rng.normal(37, 1, n), 2),
        }
    )
    return Microdata(frame, tuple(Attribute(name, **of) for name, of in declared.items()))


@settings(max_examples=60)
@given(SCALED, st.integers(0, 10**6), st.integers(4, 7), st.sampled_from(["classes", "freeform"]))
def test_optima_are_those_of_the_numbers(
    declared: dict[str, dict[str, Any]], seed: int, n: int, recoding: str
) -> None:
    """A table has the optimum of the plain numbers that it stands for; its release is verified."""
    table = scaled_table(declared, seed, n)
    allowed = EquivalenceClasses() if recoding == "classes" else Freeform()
    found = solve(Problem(table, 2, allowed))
    plain = Microdata(
        pd.DataFrame(table.values, columns=list(table.names)),
        tuple(Attribute(one.name, integer=one.is_whole) for one in table.attributes),
    )
    assert found.is_optimal
    assert found.objective == pytest.approx(solve(Problem(plain, 2, allowed)).objective, abs=1e-9)
    for layout in ("cells", "columns"):
        assert publish(found, layout=layout).verify().ok


@settings(max_examples=40)
@given(SCALED, st.integers(0, 10**6), st.sampled_from(["cells", "columns"]), st.data())
def test_other_cells_are_refused(
    declared: dict[str, dict[str, Any]], seed: int, layout: str, data: st.DataObject
) -> None:
    """A cell that is moved, opened or closed by hand breaks the grammar, the truth or the loss."""
    release = publish(solve(Problem(scaled_table(declared, seed, 6), 2), "ordered-cut"))
    frame = release.frame.copy()
    row = data.draw(st.integers(0, len(frame) - 1))
    name = data.draw(st.sampled_from(list(frame)))
    cell = str(frame.loc[row, name])
    inner = re.sub(r"[][]", "", cell)
    others = {f"{inner.split('..')[0].rstrip('+-')}{sign}" for sign in ("", "+", "-")}
    others |= {"[..]", f"[{inner}]", cell.replace("[", "[0"), cell.replace("9", "8", 1)}
    frame.loc[row, name] = data.draw(st.sampled_from(sorted(others - {cell}) or ["?"]))
    assert not verify(release.solution.problem.microdata.frame, frame, release.manifest).ok


def test_stars_and_patterns_of_dates() -> None:
    """A cell that is kept shows its own unit; a star shows none."""
    frame = pd.DataFrame(
        {"born": ["1968-08-03", "1968-08-20", "1950-01-01", "1960-01-01"], "sex": list("FFMM")}
    )
    table = Microdata(
        frame, (Attribute("born", "date", precision="month"), Attribute("sex", "categorical"))
    )
    release = publish(solve(Problem(table, 2, "pattern")), keep_order=True)
    assert release.frame["born"].tolist() == ["1968-08", "1968-08", "*", "*"]


TYPED = pd.to_datetime(["1968-08-03 23:59", "1970-01-01 00:01", "1999-12-31 12:00"] * 2)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(TYPED),
        pd.Series(TYPED.tz_localize("Asia/Tokyo")),
        pd.Series(TYPED.date),
        pd.Series(TYPED.strftime("%Y-%m-%dT%H:%M")),
        pd.Series(TYPED.to_period("D")).astype(object).map(str),
        pd.Series(pd.arrays.ArrowExtensionArray(pa.array(list(TYPED.date)))),
    ],
)
def test_dates_of_any_type_are_days(column: pd.Series, tmp_path: Any) -> None:
    """Dates, moments of a zone and ISO texts are the days that they show, undeclared."""
    frame = pd.DataFrame({"born": column, "age": [1, 2, 3] * 2})
    release = anonymize(frame, ["born", "age"], 2, keep_order=True)
    assert release.frame["born"].tolist() == ["1968-08-03", "1970-01-01", "1999-12-31"] * 2
    assert release.manifest["columns"][0]["kind"] == "date"
    assert release.verify().ok
    file, _ = release.write(tmp_path / "release.parquet")
    assert verify(frame, file).ok


def test_frames_of_polars() -> None:
    """A column of dates of another library is one of dates."""
    frame = pl.DataFrame({"born": list(TYPED.date), "age": [1, 2, 3] * 2})
    assert anonymize(frame, ["born", "age"], 2).manifest["columns"][0]["precision"] == "day"


def test_a_schema_declares_them(tmp_path: Any) -> None:
    """TOML has format, precision, open groups and a domain; verify reads them again."""
    schema = tmp_path / "schema.toml"
    schema.write_text(
        """
        [attributes.born]
        format = "%d.%m.%Y"
        precision = "month"
        domain = ["1900-01-01", "31.12.2010"]
        at_least = 1930-01-01
        [attributes.age]
        precision = 5
        at_most = 90
        [attributes.visit]
        kind = "date"
        precision = "quarter"
        """,
        encoding="utf-8",
    )
    rng = np.random.default_rng(3)
    born = pd.Timestamp("1920-01-01") + pd.to_timedelta(rng.integers(0, 25_000, 200), unit="D")
    visit = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 500, 200), unit="D")
    frame = pd.DataFrame(
        {
            "born": born.strftime("%d.%m.%Y"),
            "age": rng.integers(20, 100, 200),
            "visit": visit.strftime("%Y-%m-%d"),
        }
    )
    people = tmp_path / "people.csv"
    frame.to_csv(people, index=False)
    release = publish(solve(Problem(read_schema(schema).read(people), 5)))
    told = {one["name"]: one for one in release.manifest["columns"]}
    assert told["born"]["domain"] == ["1900-01", "2010-12"]
    assert told["born"]["at_least"] == "1930-01-01"
    assert told["age"]["precision"] == 5
    file, _ = release.write(tmp_path / "release.csv", original=people)
    assert verify(people, file, schema=schema).ok
    assert all(
        re.fullmatch(r"\[?[\d-]+(\.\.[\d-]+\])?-?|\[\.\.\]", one) for one in release.frame["born"]
    )


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"kind": "date", "precision": "weak"}, "precision of dates is 'weak'"),
        ({"kind": "date", "precision": 5}, "precision of dates is 5"),
        ({"kind": "date", "publish": "set"}, "a date attribute cannot be published as 'set'"),
        ({"kind": "date", "integer": True}, "integer is for numeric attributes"),
        ({"kind": "date", "domain": ["1990-01-01"]}, "domain of dates is not a pair"),
        ({"kind": "date", "domain": ["1990-01-02", "1990-01-01"]}, "domain of dates"),
        ({"kind": "date", "domain": ["1990-01-01", "1990-13-01"]}, "domain of dates"),
        ({"kind": "date", "at_most": "soon"}, "at_most or at_least is 'soon'"),
        ({"kind": "date", "at_most": "1990", "at_least": "1990"}, "is not below at_most"),
        ({"kind": "date", "format": "d.m.Y"}, "format is 'd.m.Y'"),
        ({"format": "%d.%m.%Y"}, "format is '%d.%m.%Y'"),
        ({"kind": "date", "format": "%d.%m.%y"}, "years of two digits"),
        ({"kind": "date", "format": "%Y%Y-%m-%d"}, "does not tell the day of a date"),
        ({"precision": 0}, "precision is 0"),
        ({"precision": "month"}, "precision is 'month'"),
        ({"precision": True}, "precision is True"),
        ({"precision": 0.5, "integer": True}, "its numbers are whole, its precision is not"),
        ({"precision": 5, "at_most": 92}, "no multiple of its precision"),
        ({"at_most": "90"}, "at_most or at_least is '90'"),
        ({"precision": 5, "publish": "set"}, "are published as ranges"),
        ({"kind": "categorical", "precision": 5}, "are for numbers and dates"),
    ],
)
def test_contradictions_are_refused(declared: dict[str, Any], words: str) -> None:
    """What cannot be is refused by attribute, before a table is read."""
    with pytest.raises(InputError, match=re.escape(words)):
        Attribute("x", **declared).scale  # noqa: B018 (the scale is made when it is asked for)


@pytest.mark.parametrize(
    ("form", "finest"),
    [
        ("%d.%m.%Y", "day"),
        ("%Y-%j", "day"),
        ("%G-W%V-%u", "day"),
        ("%a, week %W of %Y", "day"),
        ("%d %b %Y %H:%M %z", "day"),
        ("%m/%Y", "month"),
        ("%Y-W%W", "year"),
        ("%a %d %Y", "year"),
        ("%d.%m.", None),
        ("%a %d", None),
        ("%H:%M", None),
        ("%%Y %d.%m.", None),
    ],
)
@pytest.mark.parametrize("unit", UNITS)
def test_a_format_tells_the_unit(form: str, finest: Unit | None, unit: Unit) -> None:
    """Writer and verifier refuse one that strptime would fill in, and read all others alike."""
    day = dt.datetime(1987, 6, 25, tzinfo=dt.UTC)
    text = day.strftime(form)
    as_read = Scale(unit, form)
    if finest is not None and UNITS.index(unit) >= UNITS.index(finest):
        scale = Attribute("x", "date", format=form, precision=unit).scale
        assert scale.units(pd.Series([text]), "x").tolist() == [unit_of(day, unit)]
        assert as_read.value(text) == unit_of(day, unit)
        return
    with pytest.raises(InputError, match=f"does not tell the {unit} of a date") as refused:
        Attribute("x", "date", format=form, precision=unit).scale  # noqa: B018
    assert finest is None or f'precision = "{finest}"' in str(refused.value)
    with pytest.raises(CellError, match=f"does not tell its {unit}"):
        as_read.value(text)


@pytest.mark.parametrize(
    ("values", "declared"),
    [
        (["1971-08-03", "03.08.1971"], {}),
        (["1971-08-03", "1971-02-30"], {}),
        (["03.08.1971", "1971-08-03"], {"format": "%d.%m.%Y"}),
        ([dt.date(1971, 8, 3)], {"format": "%d.%m.%Y"}),
        (["1971-08"], {}),
        (["1971"], {"precision": "month"}),
        ([19710803], {}),
    ],
)
def test_what_is_no_date_is_refused(values: list[Any], declared: dict[str, Any]) -> None:
    """The error names column, form and row, and shows no value."""
    with pytest.raises(InputError, match="column 'x' holds a value that is no date") as refused:
        numbers_of(values, kind="date", **declared)
    assert "1971" not in refused.value.message


def test_missing_dates() -> None:
    """Rows without a date are left out where that is asked for, and verified."""
    frame = pd.DataFrame({"born": ["1968-08-03", None, "1968-08-04", None], "sex": list("FMFM")})
    with pytest.raises(InputError, match="column 'born' has 2 missing values"):
        anonymize(frame, ["born", "sex"], 2)
    release = anonymize(frame, ["born", "sex"], 2, missing="drop")
    assert release.frame["born"].tolist() == ["[1968-08-03..1968-08-04]"] * 2
    assert release.verify().ok
