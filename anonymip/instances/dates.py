"""Texts that look like dates or times, in the forms that people and programs write them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

import numpy as np
import pandas as pd

from anonymip.errors import InputWarning
from anonymip.instances.attribute import Attribute
from anonymip.instances.columns import missing_rows, no_dates

#: What the names of months begin with in English, German, French, Spanish, Italian, Portuguese
#: and Dutch.
_MONTHS = (
    "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|"
    "jän|mär|mai|okt|dez|fév|avr|jui|aoû|déc|ene|abr|ago|set|dic|gen|mag|giu|lug|ott|fev|out|mrt|maa|mei"
)
_NAMED = rf"(?:{_MONTHS})[^\W\d_]*\.?"
_DAY = r"(?P<day>\d{1,2})"
_YEAR = r"(?:1\d|2[01])\d\d"
_CLOCK = (
    r"(?:[01]?\d|2[0-4])[:h.][0-5]\d(?:[:.][0-6]\d(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?"
    r"(?:\s*(?:z|[a-z]{2,5}|(?:utc|gmt)?[+-]\d\d?:?(?:\d\d)?))?"
)
_ENDING = rf"(?:de )?(?:{_YEAR}|'?\d\d)"
_WEEKDAY = r"(?:[^\W\d_]{2,10}\.?,?\s+)?"
#: One day, with separators; what follows it may be a time.
_DATES = (
    rf"{_YEAR}(?P<a>[-/. ]|年)\s*(?P<month>\d{{1,2}})(?:(?P=a)\s*|月){_DAY}日?",
    r"(?P<one>\d{1,2})(?P<b>[-/. ])\s*(?P<other>\d{1,2})(?P=b)\s*" + rf"(?:{_YEAR}|'?\d\d)",
    rf"{_WEEKDAY}{_DAY}(?:st|nd|rd|th|º|er)?[-/.\s]*(?:of |de )?{_NAMED}[-/,.\s]*{_ENDING}",
    rf"{_WEEKDAY}{_NAMED}[-/.\s]*{_DAY}(?:st|nd|rd|th)?[-/,.\s]+(?:{_YEAR}|'\d\d)",
    rf"{_WEEKDAY}{_NAMED}\s+{_DAY}\s+{_CLOCK}\s+{_YEAR}",
    rf"{_YEAR}[-/.\s]*{_NAMED}[-/.\s]*{_DAY}",
)
_SEPARATED = tuple(
    re.compile(rf"(?:{date})(?:(?:t|,?\s+|:){_CLOCK})?", re.IGNORECASE) for date in _DATES
)
_TIME = re.compile(_CLOCK.replace("[:h.]", "[:h]", 1), re.IGNORECASE)
#: A day without separators, which an identifier of as many digits may look like by chance.
_COMPACT = re.compile(
    r"(?:18[5-9]|19\d|20\d)\d(?P<month>\d\d)(?P<day>\d\d)"
    r"(?:t?(?:[01]\d|2[0-4])[0-5]\d(?:[0-5]\d)?(?:z|[+-]\d{2,4})?)?",
    re.IGNORECASE,
)
#: Share of the values, or of the rows, that are dates in a column of dates, typing errors and
#: words for what is not known.
_MANY = 0.5
#: The same where a day is eight digits.
_NEARLY_ALL = 0.95
#: Most different values that are looked at: shares are told by so many.
_LOOKED_AT = 5_000
#: Dates that a column of categories may have without a declared domain: occasions, not days of
#: persons' lives.
_OCCASIONS = 12


def is_date_text(text: str) -> bool:
    """Return whether a text is a date or a time of day, written with separators."""
    text = text.strip()
    if not 4 <= len(text) <= 60:
        return False
    found = filter(None, (form.fullmatch(text) for form in _SEPARATED))
    return any(_is_day(match) for match in found) or _TIME.fullmatch(text) is not None


def looks_like_dates(series: pd.Series, missing: Iterable[str] = ("",)) -> bool:
    """Return whether the values of a column look like dates or times.

    Some of them may be no dates, as where words stand for what is not known. Eight digits are
    taken for a day only where nearly all values can be one, of a year from 1850 to 2099.

    Parameters
    ----------
    series
        Texts or numbers.
    missing
        Texts that mean no value.
    """
    counts = series[~missing_rows(series, tuple(missing))].value_counts()
    # The values lie from frequent to rare, and each step takes one.
    counts = counts.iloc[:: max(1, len(counts) // _LOOKED_AT)]
    texts, rows = [str(text) for text in counts.index], counts.to_numpy(np.int64)
    if not texts:
        return False
    dates = np.fromiter(map(is_date_text, texts), np.bool_, len(texts))
    if max(dates.mean(), rows[dates].sum() / rows.sum()) >= _MANY:
        return True
    compact = np.fromiter(map(_is_compact, texts), np.bool_, len(texts))
    return bool(compact.mean() >= _NEARLY_ALL)


def refuse_dates_as_categories(
    series: pd.Series, attribute: Attribute, missing: Iterable[str] = ("",)
) -> None:
    """Refuse a categorical column of many dates: its sets would publish each of them exactly.

    A warning says so where there are few, or where a domain is declared.

    Raises
    ------
    InputError
        Naming the column.
    """
    if attribute.kind != "categorical" or not looks_like_dates(series, missing):
        return
    if attribute.domain is None and series.nunique() > _OCCASIONS:
        raise no_dates(
            attribute.name,
            f"; sets of exact dates are published of {_OCCASIONS} different ones at most, or of "
            "a declared domain",
        )
    warnings.warn(
        f"column {attribute.name!r} holds dates or times as categories: a release shows sets of "
        "them, each exactly",
        InputWarning,
        stacklevel=2,
    )


def _is_compact(text: str) -> bool:
    match = _COMPACT.fullmatch(text.strip())
    return match is not None and _is_day(match)


def _is_day(match: re.Match[str]) -> bool:
    """Return whether month and day of a match can be, whichever of two numbers is which."""
    parts = {name: int(text) for name, text in match.groupdict().items() if (text or "").isdigit()}
    if "one" in parts:
        low, high = sorted((parts["one"], parts["other"]))
        return 1 <= low <= 12 and high <= 31
    return 1 <= parts.get("month", 1) <= 12 and 1 <= parts["day"] <= 31
