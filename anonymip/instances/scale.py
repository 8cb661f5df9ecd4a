"""Numbers for the values of a column: calendar units, rounded and capped values.

A column with a precision is coarsened before anything else is done with it: losses, models and
proofs see the coarse numbers, and a release shows ranges of whole units.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, Literal, cast, get_args

import numpy as np
import pandas as pd

from anonymip.errors import InputError, did_you_mean, is_number
from anonymip.runtime.arrays import Floats

Unit = Literal["day", "month", "quarter", "year", "decade"]

#: How a release writes a unit: that of the published ends, in which a domain is declared too.
_WRITTEN: dict[Unit, re.Pattern[str]] = {
    "day": re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)", re.ASCII),
    "month": re.compile(r"(?P<year>\d{4})-(?P<month>\d\d)", re.ASCII),
    "quarter": re.compile(r"(?P<year>\d{4})-Q(?P<quarter>[1-4])", re.ASCII),
    "year": re.compile(r"(?P<year>\d{4})", re.ASCII),
    "decade": re.compile(r"(?P<year>\d{3}0)s", re.ASCII),
}
#: A day as ISO 8601 has it, with or without a time of day, which is left out.
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_EPOCH = date(1970, 1, 1).toordinal()
_MONTHS_IN: dict[str, int] = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
#: Days that begin no unit, as what strptime takes for all that a text does not say does.
_OTHER_DAYS = (datetime(1987, 6, 25, tzinfo=UTC), datetime(2024, 11, 17, tzinfo=UTC))
#: What a format has to tell of dates of a precision.
_NEEDED: dict[Unit, str] = {
    "day": 'year, month and day, such as "%d.%m.%Y"',
    "month": 'year and month, such as "%m/%Y"',
    "quarter": 'year and month, such as "%m/%Y"',
    "year": "the year, %Y",
    "decade": "the year, %Y",
}


def unit_of(day: date, unit: Unit) -> int:
    """Return the number of the unit that a day lies in, counted from the one of 1 January 1970."""
    if unit == "day":
        return day.toordinal() - _EPOCH
    months = 12 * (day.year - 1970) + day.month - 1
    return months // _MONTHS_IN[unit]


def unit_text(number: int, unit: Unit) -> str:
    """Return what a release writes for a unit: ``1968-08-03``, ``1968-Q3``, ``1960s``."""
    if unit == "day":
        return date.fromordinal(number + _EPOCH).isoformat()
    if unit == "decade":
        return f"{1970 + 10 * number:04}s"
    a_year = {"month": 12, "quarter": 4, "year": 1}[unit]
    year, part = divmod(number, a_year)
    ends = {"month": f"-{part + 1:02}", "quarter": f"-Q{part + 1}", "year": ""}
    return f"{1970 + year:04}{ends[unit]}"


def units_around(number: int, unit: Unit) -> list[str]:
    """Return what a release writes for a unit, and for each coarser one that it lies in."""
    if unit == "day":
        months = unit_of(date.fromordinal(number + _EPOCH), "month")
    else:
        months = number * _MONTHS_IN[unit]
    coarser = get_args(Unit)[get_args(Unit).index(unit) + 1 :]
    above = [unit_text(months // _MONTHS_IN[one], one) for one in coarser]
    return [unit_text(number, unit), *above]


@dataclass(frozen=True)
class Scale:
    """How the values of a numeric attribute or of dates become numbers, and numbers cells."""

    #: Of dates the unit that they are published in; of numbers the width of the steps, multiples of
    #: which begin them, or None.
    precision: Unit | float | None = None
    #: Form of dates that are texts, as :meth:`datetime.datetime.strptime` has it; None for ISO
    #: 8601.
    format: str | None = None
    integer: bool = False  # whether the numbers are whole
    #: Where the highest and the lowest group begin: what lies beyond is counted to them. None for
    #: no such group.
    at_most: float | None = None
    at_least: float | None = None

    @property
    def is_plain(self) -> bool:
        """Whether numbers stay what they are."""
        return self.precision is None and self.at_most is None and self.at_least is None

    def coarsened(self, numbers: Floats) -> Floats:
        """Return numbers, or numbers of units, as they are counted."""
        if isinstance(self.precision, float):
            values, place = np.unique(numbers, return_inverse=True)
            numbers = np.array([self._step(value) for value in values.tolist()])[place.ravel()]
        is_capped = self.at_most is not None or self.at_least is not None
        return np.clip(numbers, self.at_least, self.at_most) + 0.0 if is_capped else numbers

    def _step(self, value: float) -> float:
        # In fractions of what is written: 0.3 lies on a multiple of 0.1.
        width = Fraction(repr(self.precision))
        return float(math.floor(Fraction(repr(value)) / width) * width)

    def units(self, series: pd.Series, name: str) -> Floats:
        """Return (n,) float64 the numbers of the units of a column: dates, moments, their texts."""
        unit = cast(Unit, self.precision)
        place, values = pd.factorize(_plain_dates(series))
        days = (_day(value, self.format, unit) for value in values)
        numbers = [np.nan if day is None else unit_of(day, unit) for day in days]
        found = np.array(numbers, np.float64)[place]
        if np.isnan(found).any():
            first = int(np.argmax(np.isnan(found)))
            form = "of ISO 8601, such as 1968-08-03" if self.format is None else f"{self.format!r}"
            raise InputError(
                f"column {name!r} holds a value that is no date {form}, first in data row "
                f"{first + 1}",
                remedy='Declare the form of texts, such as format = "%d.%m.%Y", and none of values '
                "that are dates already; or mark the value as missing",
                value=series.iloc[first],
            )
        return found

    def text(self, lower: float, upper: float, write: Callable[[float], str]) -> str:
        """Return a published cell. `write`: how a number is written."""
        if self.at_least is not None and lower == self.at_least:
            return "[..]" if upper == self.at_most else self._ends(lower, upper, write)[1] + "-"
        if upper == self.at_most:
            return self._ends(lower, upper, write)[0] + "+"
        low, high = self._ends(lower, upper, write)
        return low if low == high else f"[{low}..{high}]"

    def ends(self, lower: float, upper: float, write: Callable[[float], str]) -> tuple[str, str]:
        """Return the published ends of a cell, one a column. `write`: how a number is written."""
        low, high = self._ends(lower, upper, write)
        return (
            f"{low}-" if lower == self.at_least else low,
            f"{self._ends(upper, upper, write)[0]}+" if upper == self.at_most else high,
        )

    def _ends(self, lower: float, upper: float, write: Callable[[float], str]) -> tuple[str, str]:
        """Return the first value of the lower end and the last one of the upper end."""
        if isinstance(self.precision, str):
            return unit_text(int(lower), self.precision), unit_text(int(upper), self.precision)
        if self.precision is None:
            return write(lower), write(upper)
        last = Fraction(repr(upper)) + Fraction(repr(self.precision)) - int(self.integer)
        return write(lower), write(float(last))


def is_iso_day(text: str) -> bool:
    """Return whether a text is a day of ISO 8601, with or without a time of day."""
    return _ISO.fullmatch(text.strip()) is not None and _day(text, None, "day") is not None


def number_at(text: object, unit: Unit, form: str | None = None) -> float | None:
    """Return the number of the unit that a declared end lies in, None if it is no date.

    `text`: a date, a text in the column's own `form`, or what a release writes for any unit.
    """
    if not isinstance(text, str):
        day = _day(text, None, unit)
    else:
        day = _day(text, form, unit) or _first_day(text, _WRITTEN)
    return None if day is None else float(unit_of(day, unit))


def _first_day(text: str, units: Iterable[Unit]) -> date | None:
    """Return the first day of a text that a release writes for one of some units."""
    for unit in units:
        found = _WRITTEN[unit].fullmatch(text)
        if found is not None:
            part = {name: int(digits) for name, digits in found.groupdict().items()}
            month = part.get("month", 3 * part.get("quarter", 1) - 2)
            with suppress(ValueError):  # no such month or day
                return date(part["year"], month, part.get("day", 1))
    return None


def _plain_dates(series: pd.Series) -> pd.Series:
    """Return a column of which equal days are equal values: dates, or texts."""
    if isinstance(series.dtype, pd.PeriodDtype):
        return series.map(str).astype(object)
    if isinstance(series.dtype, pd.ArrowDtype) and not pd.api.types.is_string_dtype(series):
        series = series.astype(object)
    if pd.api.types.is_datetime64_any_dtype(series):
        days: pd.Series = series.dt.date
        return days.astype(object)
    return series.astype(object)


def _day(value: object, form: str | None, unit: Unit) -> date | None:
    """Return the day of a cell, None if it is none.

    Texts without a form are of ISO 8601; those of a month or a year do where nothing finer is
    published.
    """
    if isinstance(value, date) and form is None:
        return value.date() if isinstance(value, datetime) else value
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        if form is not None:
            return datetime.strptime(text, form).date()
        found = _ISO.fullmatch(text)
        if found is not None:
            return date.fromisoformat(found[1])
    except ValueError:
        return None
    coarser = get_args(Unit)[1 : get_args(Unit).index(unit) + 1]
    return _first_day(text, coarser)


def scale_of(is_date: bool, integer: bool, precision: Any, form: Any, *ends: Any) -> Scale:
    """Return the scale of an attribute with the ends `at_most` and `at_least`, None for none."""
    if form is not None and not (is_date and isinstance(form, str) and "%" in form):
        raise InputError(
            f"format is {form!r}", remedy='A format is that of dates, such as "%d.%m.%Y"'
        )
    if form is not None and re.search(r"%[yxcD]", form):
        raise InputError(
            "its format has years of two digits",
            remedy="Write years with four digits, %Y: 25 may be 1925 or 2025",
        )
    unit: Unit | float | None = None
    if is_date:
        unit = cast(Unit, "day" if precision is None else precision)
        if unit not in get_args(Unit):
            raise InputError(
                f"precision of dates is {unit!r}",
                remedy=did_you_mean(str(unit), get_args(Unit))
                or f"Use one of {', '.join(get_args(Unit))}",
            )
    elif precision is not None:
        unit = _width(precision, integer)
    if form is not None and not _tells(form, cast(Unit, unit)):
        # What a text does not tell strptime would make up.
        known = told_unit(form)
        first = "Give" if known is None else f'Declare precision = "{known}", or give'
        raise InputError(
            f"format {form!r} does not tell the {unit} of a date",
            remedy=f"{first} texts and a format with {_NEEDED[cast(Unit, unit)]}",
        )
    most, least = (None if end is None else _group(end, unit, form, integer) for end in ends)
    if most is not None and least is not None and least >= most:
        raise InputError("at_least is not below at_most", remedy="Correct one of them")
    return Scale(unit, form, integer, most, least)


def told_unit(form: str) -> Unit | None:
    """Return the finest unit that a format tells of a date; None for none."""
    return next((unit for unit in get_args(Unit) if _tells(form, unit)), None)


def _tells(form: str, unit: Unit) -> bool:
    """Return whether the units of dates come back from their texts, which hold no more of them."""
    codes = " ".join(re.findall("%.", form))
    try:
        read = [datetime.strptime(day.strftime(codes), codes) for day in _OTHER_DAYS]
    except (ValueError, re.error):  # a code that there is not, or one that stands there twice
        return False
    return [unit_of(day, unit) for day in read] == [unit_of(day, unit) for day in _OTHER_DAYS]


def _width(precision: Any, integer: bool) -> float | None:
    if not is_number(precision) or precision <= 0:
        raise InputError(
            f"precision is {precision!r}",
            remedy="Give the width of the steps, such as 5; of dates a unit such as month",
        )
    width = float(precision)
    if integer and not width.is_integer():
        raise InputError(
            "its numbers are whole, its precision is not", remedy="Give a whole number"
        )
    return None if integer and width == 1 else width


def _group(end: Any, unit: Unit | float | None, form: str | None, integer: bool) -> float:
    """Return where an open group begins, as a number of the scale."""
    number: float | None = None
    if isinstance(unit, str):
        number = number_at(end, unit, form)
    elif is_number(end):
        number = float(end) + 0.0
    if number is None or (integer and not number.is_integer()):
        raise InputError(f"at_most or at_least is {end!r}", remedy="Give a value of the column")
    if isinstance(unit, float) and Scale(unit)._step(number) != number:
        raise InputError(
            f"at_most or at_least is {end!r}, no multiple of its precision",
            remedy=f"Give a multiple of {unit:g}",
        )
    return number
