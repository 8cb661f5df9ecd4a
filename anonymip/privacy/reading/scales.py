"""Dates, steps and open groups of a column, as a manifest declares and a release shows them."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import floor

from anonymip.privacy.reading.cell_grammar import (
    STAR,
    SUPPRESSED,
    Cell,
    CellError,
    number_text,
    published_number,
    read_number,
)

#: Units of dates, with the form in which a release shows them.
UNITS = {
    "day": re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII),
    "month": re.compile(r"(\d{4})-(\d\d)", re.ASCII),
    "quarter": re.compile(r"(\d{4})-Q([1-4])", re.ASCII),
    "year": re.compile(r"(\d{4})", re.ASCII),
    "decade": re.compile(r"(\d{3}0)s", re.ASCII),
}
_MONTHS_IN = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_EVERYTHING = "[..]"


@dataclass(frozen=True)
class Scale:
    """What numbers stand for the values of a numeric column or of one of dates."""

    #: Unit of dates, numbered from the one of 1 January 1970; None of numbers.
    unit: str | None = None
    form: str | None = None  # form of dates that are texts, None for ISO 8601
    #: Width of the steps that numbers are counted in, None for exact numbers.
    step: Fraction | None = None
    integer: bool = False  # whether numbers are whole
    #: Where the open groups begin; None for no such group.
    most: float | None = None
    least: float | None = None

    @property
    def is_plain(self) -> bool:
        """Whether cells show the numbers themselves."""
        return self == Scale(integer=self.integer)

    def value(self, text: str) -> float:
        """Return the number that stands for a value of the original."""
        if self.unit is None:
            return self.counted(read_number(text))
        return self.counted(float(self._unit_of_value(text.strip())))

    def counted(self, number: float) -> float:
        """Return a number, or that of a unit, as it is counted: in steps, within open groups."""
        if self.step is not None:
            number = float(self.step * floor(Fraction(number_text(number)) / self.step))
        if self.most is not None:
            number = min(number, self.most)
        return number if self.least is None else max(number, self.least)

    def path(self, number: float) -> list[str]:
        """Return what stands for the number of a unit in the calendar, and the units around it.

        An open group lies in no unit: it stands on each level.
        """
        assert self.unit is not None
        months = int(number) * _MONTHS_IN.get(self.unit, 0)
        day = ""
        if self.unit == "day":
            date = datetime.date(1970, 1, 1) + datetime.timedelta(days=int(number))
            months, day = (date.year - 1970) * 12 + date.month - 1, f"-{date.day:02}"
        year, month = 1970 + months // 12, months % 12
        written = {
            "day": f"{year:04}-{month + 1:02}{day}",
            "month": f"{year:04}-{month + 1:02}",
            "quarter": f"{year:04}-Q{month // 3 + 1}",
            "year": f"{year:04}",
            "decade": f"{year // 10:03}0s",
        }
        labels = list(written.values())[list(written).index(self.unit) :]
        sign = "+" if number == self.most else "-" if number == self.least else ""
        return [labels[0] + sign] * len(labels) if sign else labels

    def declared_end(self, given: object) -> float:
        """Return the number of an end of a domain, or of an open group, as it is declared."""
        if self.unit is None:
            if isinstance(given, bool) or not isinstance(given, (int, float)):
                raise CellError("is no number")
            return read_number(repr(given))
        text = given.isoformat()[:10] if isinstance(given, datetime.date) else str(given)
        for unit, form in UNITS.items():
            if form.fullmatch(text):
                return float(_number(_first_day(text, unit), self.unit))
        return float(self._unit_of_value(text))

    def cell(self, text: str) -> Cell:
        """Read a cell of layout "cells"."""
        if text.startswith("[") and text != _EVERYTHING:
            ends = text[1:-1].split("..")
            if len(ends) != 2 or not text.endswith("]"):
                raise CellError("is not a range [lower..upper]")
            lower, upper = self._first(ends[0]), self._last(ends[1])
            if lower > upper or (lower == upper and self.step is None):
                raise CellError("is a range whose lower end is not below its upper end")
            return self._closed(lower, upper)
        if text == STAR:
            return SUPPRESSED
        if text == _EVERYTHING and self.least is not None and self.most is not None:
            return _cell(self.least, self.most)
        if text.endswith("+") and self.most is not None:
            lower = self._first(text[:-1])
            if lower > self.most or lower == self.least:
                raise CellError("is a group that does not begin below its end")
            return _cell(lower, self.most)
        if text.endswith("-") and self.least is not None:
            upper = self._last(text[:-1])
            if upper < self.least or upper == self.most:
                raise CellError("is a group that does not end above its beginning")
            return _cell(self.least, upper)
        if self.step is not None:
            raise CellError("is not a range of whole steps")
        number = self._first(text)
        return self._closed(number, number)

    def pair(self, lower_text: str, upper_text: str) -> Cell:
        """Read the two cells of a range of layout "columns"."""
        if lower_text == upper_text == STAR:
            return SUPPRESSED
        if STAR in (lower_text, upper_text) and self.is_plain:
            raise CellError("is suppressed at one end only")
        open_below = lower_text.endswith("-") and self.least is not None
        open_above = upper_text.endswith("+") and self.most is not None
        lower = self._first(lower_text[:-1] if open_below else lower_text)
        upper = self._first(upper_text[:-1]) if open_above else self._last(upper_text)
        if open_below != (lower == self.least) or open_above != (upper == self.most):
            raise CellError("has an end that is not shown as the beginning of its open group")
        if lower > upper:
            raise CellError("has its lower end above its upper end")
        return _cell(lower, upper)

    def _closed(self, lower: float, upper: float) -> Cell:
        if lower == self.least or upper == self.most:
            raise CellError("ends where an open group begins, and is not shown as one")
        return _cell(lower, upper)

    def _first(self, text: str) -> float:
        """Return the number of a value, or of the first value of a step."""
        if self.unit is not None:
            return float(_number(_first_day(text, self.unit), self.unit))
        number = published_number(text, self.integer)
        if self.step is not None and Fraction(text) % self.step:
            raise CellError("does not begin at the beginning of a step")
        return number

    def _last(self, text: str) -> float:
        """Return the number of a value, or of the step whose last value this is."""
        if self.unit is not None or self.step is None:
            return self._first(text)
        published_number(text, self.integer)
        beginning = Fraction(text) - self.step + int(self.integer)
        if beginning % self.step:
            raise CellError("does not end at the end of a step")
        return float(beginning)

    def _unit_of_value(self, text: str) -> int:
        assert self.unit is not None
        if self.form is not None and not self._is_told:
            raise CellError(f"has a declared form that does not tell its {self.unit}")
        try:
            if self.form is not None:
                return _number(datetime.datetime.strptime(text, self.form).date(), self.unit)
            found = _MOMENT.fullmatch(text)
            if found is not None:
                return _number(datetime.date.fromisoformat(found[1]), self.unit)
        except (ValueError, re.error):
            raise CellError("is no date of the declared form") from None
        # Of what is published as a month, the month alone is known well enough.
        names = list(UNITS)
        for unit in names[1 : names.index(self.unit) + 1]:
            if UNITS[unit].fullmatch(text):
                return _number(_first_day(text, unit), self.unit)
        raise CellError("is no date of the declared form")

    @cached_property
    def _is_told(self) -> bool:
        """Whether the form has codes that fix the unit: strptime takes 1 January 1900 for others.

        Years of two digits fix nothing.
        """
        codes = set(re.findall("%(.)", self.form or ""))
        weekday, year = bool(codes & set("aAwu")), "Y" in codes
        week = year if codes & set("UW") else {"G", "V"} <= codes
        month = year and bool(codes & set("mbB"))
        day = (week and weekday) or (year and "j" in codes) or (month and "d" in codes)
        told = {"day": day, "month": day or month, "quarter": day or month}
        return told.get(str(self.unit), day or year)


EXACT = Scale()  # the scale of numbers that stand for themselves


def _cell(lower: float, upper: float) -> Cell:
    return Cell(lower, upper, (lower,) if lower == upper else ())


def _first_day(text: str, unit: str) -> datetime.date:
    """Return the first day of a unit as a release shows it."""
    found = UNITS[unit].fullmatch(text)
    if found is None:
        raise CellError(f"is no {unit}")
    year, *rest = map(int, found.groups())
    month = rest[0] if rest else 1
    if unit == "quarter":
        month = 3 * month - 2
    try:
        return datetime.date(year, month, rest[1] if unit == "day" else 1)
    except ValueError:
        raise CellError(f"is no {unit}") from None


def _number(day: datetime.date, unit: str) -> int:
    """Return the number of the unit that a day lies in."""
    if unit == "day":
        return (day - datetime.date(1970, 1, 1)).days
    return ((day.year - 1970) * 12 + day.month - 1) // _MONTHS_IN[unit]
