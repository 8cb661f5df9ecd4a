"""Tests of columns as numbers and texts, and of texts that look like dates."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Hierarchy,
    InputError,
    InputWarning,
    Microdata,
    Schema,
    anonymize,
    inspect,
)
from anonymip.instances import columns
from anonymip.instances.columns import (
    all_whole,
    is_date_text,
    is_number_text,
    looks_like_dates,
    looks_numeric,
    missing_rows,
    numeric_column,
    text_column,
)

NOT_A_NUMBER = "column 'x' is numeric but holds a value that is not a finite number"


def numbers(values: Any, **parameters: Any) -> list[float]:
    """Return a column as numbers."""
    return numeric_column(pd.Series(values), Attribute("x", **parameters)).tolist()


@pytest.mark.parametrize("text", ["0", "-1", "+5", ".5", "5.", "1e5", "1E-3", "02138", "-0.0"])
def test_decimal_texts_are_numbers(text: str) -> None:
    """Signs, missing digits before or after the point, and exponents are accepted."""
    assert is_number_text(text)
    assert numbers([text]) == [float(text)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "1e400",
        "1,5",
        "1_000",
        "0x10",
        "1d5",
        "\uff11\uff12",
        "True",
    ],
)
def test_other_texts_are_no_numbers(text: str) -> None:
    """Names of special values, separators, other digits and truth values are texts."""
    assert not is_number_text(text)
    with pytest.raises(InputError, match=NOT_A_NUMBER):
        numbers(["1", text])


@given(
    st.floats(min_value=1 - 2.0**53, max_value=2.0**53 - 1)
    | st.floats(min_value=1e16, max_value=1e308)
)
def test_the_text_of_a_number_reads_back_exactly(number: float) -> None:
    """The shortest text of a double is that double again, also as pandas 2 needs it read."""
    assert is_number_text(repr(number))
    for rough in (columns._ROUGH_TEXTS, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(columns, "_ROUGH_TEXTS", rough)
            assert numbers([repr(number), "-7", repr(number)]) == [number, -7.0, number]


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        pd.array([True, False], dtype="boolean"),
        pd.Series([True, 2], dtype=object),
        pd.Series([np.True_, 2], dtype=object),
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
        pd.to_timedelta([1, 2]),
        [1 + 0j, 2],
        pd.Series([[1], [2]], dtype=object),
        [math.inf, 1.0],
        [math.nan, 1.0],
    ],
    ids=["bool", "boolean", "object", "np.bool_", "date", "span", "complex", "list", "inf", "nan"],
)
def test_values_that_pandas_would_turn_into_numbers_are_refused(values: Any) -> None:
    """Truth values, dates, complex and infinite numbers are no finite numbers."""
    with pytest.raises(InputError, match=f"{NOT_A_NUMBER}, first in data row 1") as caught:
        numbers(values)
    assert "Declare the column categorical" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    "values",
    [
        [1, 2.5],
        ["1", " 2.5"],
        pd.Series([1, "2.5"], dtype=object),
        [Decimal("1"), Decimal("2.5")],
        pd.array([1, 2.5], dtype="Float64"),
        pd.Categorical(["1", "2.5"]),
        pd.Series([1, 2.5], dtype="float32"),
    ],
    ids=["float", "text", "object", "decimal", "nullable", "categorical", "single"],
)
def test_numbers_of_any_type_are_read(values: Any) -> None:
    """What pandas holds as numbers, or as texts of numbers, is read."""
    assert numbers(values) == [1.0, 2.5]


def test_minus_zero_is_zero() -> None:
    """Both zeros are one value, or a class of them would publish a range."""
    assert math.copysign(1.0, numbers([-0.0])[0]) == 1.0
    assert math.copysign(1.0, numbers(["-0"])[0]) == 1.0


@pytest.mark.parametrize(
    "values",
    [[2**53], [-(2**53) - 1], ["9007199254740993"], ["9007199254740992.0"], [2**70], [2**63 + 1]],
)
def test_whole_numbers_that_lose_digits_are_refused(values: Sequence[Any]) -> None:
    """From 2^53 on neighbours become one double and would be published as each other."""
    with pytest.raises(InputError, match="too large to be exact") as caught:
        numbers(values)
    assert caught.value.remedy == "Declare the column categorical, or publish it rounded"


def test_large_numbers_in_floating_point_are_exact_as_such() -> None:
    """The largest exact whole number, floats and texts with exponents pass."""
    assert numbers([2**53 - 1]) == [2.0**53 - 1]
    assert numbers([1e300]) == [1e300]
    assert numbers(["1e300"]) == [1e300]


def test_fractions_in_an_integer_column_are_refused() -> None:
    """A declared integer attribute takes whole numbers, however they are written."""
    assert numbers(["1", "2.0", "3e0"], integer=True) == [1.0, 2.0, 3.0]
    with pytest.raises(InputError, match="integer but holds a fraction, first in data row 3"):
        numbers([1, 2, 2.5], integer=True)


@pytest.mark.parametrize("outside", [0.999, 5.001, -3])
def test_numbers_outside_the_domain_are_refused(outside: float) -> None:
    """Both ends of a domain belong to it; what lies beyond is named by its row."""
    assert numbers([1, 5], domain=[1, 5]) == [1.0, 5.0]
    with pytest.raises(InputError, match="outside its domain, first in data row 2") as caught:
        numbers([1, outside, outside], domain=[1, 5])
    assert "Widen the domain" in (caught.value.remedy or "")


def test_messages_hold_no_values_unless_asked() -> None:
    """The value travels beside the message and is printed with show_values only."""
    with pytest.raises(InputError) as caught:
        numbers(["12", "secret"])
    assert "secret" not in str(caught.value)
    assert "secret" not in caught.value.render()
    assert caught.value.render(show_values=True).endswith("(value: 'secret')")


def test_texts_outside_a_domain_or_hierarchy_are_refused() -> None:
    """The message says which of the two misses the value, and in which row."""
    column = pd.Series(["a", "b", "c"])
    tree = Hierarchy([("a", "*"), ("b", "*")])
    with pytest.raises(InputError, match="'x' holds a value outside its domain, first in data row"):
        text_column(column, Attribute("x", "categorical", domain=["a", "b"]))
    with pytest.raises(
        InputError, match="missing from its hierarchy, first in data row 3"
    ) as error:
        text_column(column, Attribute("x", "hierarchical", hierarchy=tree))
    assert error.value.value == "c"
    assert "Add the value there" in (error.value.remedy or "")


def test_categories_are_compared_as_texts() -> None:
    """A domain of numbers means their texts."""
    column = pd.Series([2, 1, 2])
    assert text_column(column, Attribute("x", "categorical", domain=[1, 2])).tolist() == [
        "2",
        "1",
        "2",
    ]


@pytest.mark.parametrize(
    ("values", "numeric"),
    [
        (["1", "2"], True),
        (["0", "0.5"], True),
        (["1e5", "-2"], True),
        (["", "1"], True),
        (["02138", "10001"], False),
        (["-01", "3"], False),
        (["1", "a"], False),
        (["nan", "1"], False),
        (["", ""], False),
        ([True, False], False),
        (pd.Series([True, 1], dtype=object), False),
        ([1 + 1j, 2], False),
        (pd.to_datetime(["2020-01-01"]), False),
        ([1, 2], True),
        ([0.5, math.nan], True),
        (pd.Series([1, "2"], dtype=object), True),
    ],
)
def test_the_kind_is_inferred_from_all_values(values: Any, numeric: bool) -> None:
    """Numbers are numeric, but codes with leading zeros, truth values and dates are not."""
    assert looks_numeric(pd.Series(values)) is numeric


def test_missing_texts_do_not_decide_the_kind() -> None:
    """Declared missing texts are left out of the inference."""
    column = pd.Series(["1", "?", "2"])
    assert not looks_numeric(column)
    assert looks_numeric(column, ["?"])


@pytest.mark.parametrize(
    ("values", "whole"),
    [
        (["1", "2.0", "3e2"], True),
        (["1", "2.5"], False),
        ([1.0, math.nan], True),
        ([1.0, 1e100], False),
        (["1", ""], True),
        (["1", "x"], False),
        (pd.to_datetime(["2020-01-01"]), False),
        ([1j], False),
    ],
)
def test_whole_columns_are_recognised(values: Any, whole: bool) -> None:
    """Whole numbers stay whole however they are written; missing ones do not matter."""
    assert all_whole(pd.Series(values)) is whole


def test_null_and_declared_texts_are_missing() -> None:
    """Null in pandas' sense is missing always, a text only if it is declared."""
    column = pd.Series(["a", None, "?", ""])
    assert missing_rows(column, ()).tolist() == [False, True, False, False]
    assert missing_rows(column, ("?", "")).tolist() == [False, True, True, True]
    assert missing_rows(pd.Series([1.0, math.nan]), ("x", "NA")).tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int64", "int32[pyarrow]"])
def test_numbers_that_mean_no_value_count_in_columns_of_numbers(dtype: str) -> None:
    """A declared -9 is the number -9, however it is spelled; texts and truth values are others."""
    column = pd.Series([1, -9, 12, -9], dtype=dtype)
    assert missing_rows(column, ("-9.0", "NA", "12")).tolist() == [False, True, True, True]
    assert not missing_rows(column, ("9",)).any()
    assert not missing_rows(pd.Series([True, False]), ("1", "0")).any()
    assert missing_rows(pd.Series(["-9", "-9.0"]), ("-9",)).tolist() == [True, False]


#: One moment as people and programs write it.
WRITTEN = (
    *("1934-09-11", "1934/09/11", "1934.9.11", "1934 09 11", "1934年9月11日", "11SEP1934"),
    *("11.09.1934", "11. 9. 1934", "09/11/1934", "9/11/34", "11-09-1934", "31/12/99", "12/31/1999"),
    *("11-Sep-1934", "11 September 1934", "11 sep 34", "11th of September 1934", "1934-Sep-11"),
    *("Sep 11, 1934", "September 11th 1934", "Tuesday, September 11, 1934", "Sep 11, '34"),
    *("11. März 1934", "3 mai 1990", "1er janvier 1980", "3 de mayo de 1990", "11 mrt 1934"),
    *("1934-09-11T10:20:30Z", "1934-09-11 10:20:30.123456+02:00", "11.09.1934 10:20"),
    *("1934-09-11 10:20 PM", "09/11/1934, 10:20:30 CEST", "Tue, 11 Sep 1934 10:00:00 +0200"),
    *("Tue Sep 11 10:20:30 1934", "10:20", "23:59:59.5", "10:20 a.m.", "10:20 UTC"),
)
#: Forms that programs print.
FORMATS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%y", "%d-%b-%Y", "%Y/%m/%d", "%d %B %Y", "%c"),
    *("%B %d, %Y", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%a, %d %b %Y %H:%M:%S", "%H:%M:%S"),
    *("%I:%M %p", "%x %X"),
)
#: What is no date.
OTHERS = (
    *("", "F", "may", "junior", "1934", "1934-09", "Sep 1934", "120/80", "3.14", "1,234", "10.50"),
    *("12345678", "02138", "75 001", "1.2.3", "192.168.0.1", "13/32/1999", "1934-13-01", "10:99"),
    *("0/5/1999", "12-345-6789", "01-23-45-67-89", "555-12-1234", "C50.9", "20-24", "[35..37]"),
    *("12 Rose 1999", "1.250.000", "3-4 years", "25:00", "1-5", "A10:20"),
)


@pytest.mark.parametrize("text", WRITTEN)
def test_dates_are_known_by_their_form(text: str) -> None:
    """Whatever order, separators, names of months, times and zones."""
    assert is_date_text(text)
    assert is_date_text(f" {text.upper()} ")


@settings(max_examples=300)
@given(st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2099, 12, 31)), st.sampled_from(FORMATS))
def test_what_programs_print_are_dates(moment: dt.datetime, form: str) -> None:
    """Every day and time of two and a half centuries, in the forms of the standard library."""
    assert is_date_text(moment.strftime(form))


@settings(max_examples=300)
@given(st.one_of(st.integers(), st.floats(allow_nan=False)).map(str))
def test_numbers_are_no_dates(text: str) -> None:
    """A number alone is none, with whatever point and exponent."""
    assert not is_date_text(text)


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_no_dates(text: str) -> None:
    """Neither codes, ratios, addresses, versions, months without a day, nor impossible days."""
    assert not is_date_text(text)


def days(count: int, form: str = "%Y-%m-%d") -> list[str]:
    """Return different days."""
    first = dt.date(1934, 9, 11)
    return [(first + dt.timedelta(137 * number)).strftime(form) for number in range(count)]


@pytest.mark.parametrize(
    ("values", "dates"),
    [
        (days(40), True),
        ([*days(38), "unknown", "1934-0x-11"], True),
        ([*days(9), *["unknown"] * 90], True),
        ([*["1934-09-11"] * 60, *map(str, range(40))], True),
        ([*days(3), *map(str, range(40))], False),
        ([None, "", *days(5)], True),
        (["", None], False),
        (days(40, "%Y%m%d"), True),
        ([*days(39, "%Y%m%d"), "?"], True),
        ([*days(30, "%Y%m%d"), *map(str, range(10_000_000, 10_000_010))], False),
        ([str(19341300 + number) for number in range(40)], False),
        ([str(number) for number in range(20_190_401, 20_190_461)], False),
        ([f"{number:05}" for number in range(1000, 1040)], False),
    ],
)
def test_columns_of_dates(values: Sequence[str | None], dates: bool) -> None:
    """Gaps, words and typing errors hide no dates; eight digits are days where nearly all are."""
    assert looks_like_dates(pd.Series(values, dtype=object)) == dates


def test_days_of_eight_digits_as_numbers() -> None:
    """Whole numbers are read as their digits."""
    assert looks_like_dates(pd.Series(list(map(int, days(40, "%Y%m%d")))))


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%Y%m%d"])
def test_dates_of_no_known_form_are_refused(form: str) -> None:
    """A column whose kind nobody declared is refused with what to give instead, and no value."""
    frame = pd.DataFrame({"born": [*days(39, form), ""], "sex": ["F", "M"] * 20})
    for given_frame in (frame, frame.assign(born=frame["born"].astype("category"))):
        with pytest.raises(InputError, match="column 'born' holds dates or times") as refused:
            Schema({"born": {}, "sex": {}}).apply(given_frame)
        assert 'kind = "date"' in str(refused.value.remedy)
        assert refused.value.value is None


HOURS = [number / 4 for number in range(40)]


@pytest.mark.parametrize("kind", [None, "date", "categorical"])
@pytest.mark.parametrize(
    "values",
    [
        [f"{int(hour)}:{int(hour % 1 * 60):02}" for hour in HOURS],
        [dt.time(int(hour), int(hour % 1 * 60)) for hour in HOURS],
        pd.to_timedelta(HOURS, unit="h"),
        pd.Series(pd.to_timedelta(HOURS, unit="h"), dtype="duration[ms][pyarrow]"),
    ],
)
def test_times_are_no_dates(values: Any, kind: str | None) -> None:
    """Times of day and durations are refused with a remedy that helps, as `inspect` tells it."""
    frame = pd.DataFrame({"at": values})
    with pytest.raises(InputError, match=r"holds times of day.*Give numbers in their place"):
        Schema({"at": {} if kind is None else {"kind": kind}}).apply(frame)
    (column,) = inspect(frame).columns
    assert column.looks == "times of day or durations"
    assert (column.role, column.why[:12]) == ("drop", "give numbers")
    assert anonymize(frame.assign(at=HOURS), ["at"], 2).verify().ok


def test_dates_as_categories() -> None:
    """Declared categories are refused where they are many; few, or of a domain, with a warning."""
    born = days(40)
    frame = pd.DataFrame({"born": born, "visit": [*days(12), *days(12), *days(12), *days(4)]})
    with pytest.raises(InputError, match="12 different ones at most, or of a declared domain"):
        Microdata(frame, (Attribute("born", "categorical"),), drop=("visit",))
    with pytest.raises(InputError, match="column 'born' holds dates or times"):
        anonymize(frame, ["born:categorical"], 2, drop=["visit"])
    exactly = "holds dates or times as categories: a release shows sets of them, each exactly"
    with pytest.warns(InputWarning, match=f"column 'born' {exactly}"):
        Microdata(frame, (Attribute("born", "categorical", domain=born),), drop=("visit",))
    with pytest.warns(InputWarning, match=f"column 'visit' {exactly}"):
        Microdata(frame, (Attribute("visit", "categorical"),), drop=("born",))


def test_dates_of_a_hierarchy_or_as_numbers_are_taken() -> None:
    """Whoever declares levels, or numbers, gets them without a word."""
    born = days(40)
    levels = Hierarchy([(day, day[:7], day[:4], "*") for day in born])
    numbers = days(40, "%Y%m%d")
    frame = pd.DataFrame({"born": born, "number": numbers, "kept": born})
    attributes = (Attribute("born", "hierarchical", hierarchy=levels), Attribute("number"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Microdata(frame, attributes, keep=("kept",)).m == 2
        schema = Schema(
            {"born": {"hierarchy": levels}, "number": {"kind": "numeric"}}, keep=["kept"]
        )
        assert schema.apply(frame).m == 2
