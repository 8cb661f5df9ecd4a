"""Tests of what looks like dates: refused as quasi-identifiers, whoever wrote them and how."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Sequence

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Attribute, Hierarchy, InputError, InputWarning, Microdata, Schema, anonymize
from anonymip.instances.columns import is_date_text, looks_like_dates

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
@given(
    st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2099, 12, 31)),
    st.sampled_from(FORMATS),
)
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


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"])
def test_dates_are_refused_as_quasi_identifiers(form: str) -> None:
    """A column whose kind nobody declared is refused with what to give instead, and no value."""
    frame = pd.DataFrame({"born": [*days(39, form), ""], "sex": ["F", "M"] * 20})
    for given_frame in (frame, frame.assign(born=frame["born"].astype("category"))):
        with pytest.raises(InputError, match="column 'born' holds dates or times") as refused:
            Schema({"born": {}, "sex": {}}).apply(given_frame)
        assert "the year or the days since" in str(refused.value.remedy)
        assert refused.value.value is None


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
