"""Columns of a table as numbers or texts, with errors that name the row; texts like dates."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Collection, Iterable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError, InputWarning, argument, did_you_mean
from anonymip.instances.attribute import Attribute
from anonymip.instances.scale import is_iso_day
from anonymip.runtime.arrays import Flags, Floats, Ints

#: Whether pandas may miss the double next to the text of a number by one.
_ROUGH_TEXTS = int(pd.__version__.partition(".")[0]) < 3
#: From here on whole numbers lose digits: 2^53 may have been written as 2^53 + 1.
_FIRST_INEXACT = 2.0**53
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CODE = re.compile(r"[+-]?0\d", re.ASCII)
_FEW = 0.2  # share of the values that are no numbers in a column that is mostly of numbers
_MOMENTS = (date, time, timedelta, np.datetime64, np.timedelta64, pd.Period)  # a datetime is a date


def unknown_column(
    name: str, role: str, columns: Sequence[str], declared: Collection[str] | None = None
) -> InputError:
    """Return the error for a column that a table does not have.

    `columns`: names that the table has, shown on request only: without a header line they are
    values. `declared`: those of them that the caller wrote down, such as in a schema: they may be
    shown. None for all.
    """
    shown = columns if declared is None else [one for one in columns if one in declared]
    remedy = did_you_mean(name, shown) or "Check its name"
    bare = name[1:-1].replace('""', '"') if name.startswith('"') else name
    if bare in columns or set(name.split(",")) <= set(columns):
        remedy = "Name one column at a time, without quotes"
    if len(columns) == 1:
        remedy = (
            f"The table has one column only: is its separator declared, by "
            f"{argument('separator', ...)} or in a schema ([table] separator)?"
        )
    return InputError(
        f"unknown column {name!r} ({role}) of a table with {len(columns)} columns",
        remedy=remedy,
        value=", ".join(columns),
    )


def refuse_foreign_cells(series: pd.Series, name: str, role: str) -> None:
    """Refuse a column whose cells no release can show: lists and the like; dates of another kind.

    `name, role`: its name, and ``"quasi-identifier"``, ``"date"`` for one of dates, ``"sensitive"``
    or ``"keep"``. Raises InputError naming the first offending data row (from 1).
    """
    generalized = role == "quasi-identifier"
    if role == "date" and are_times(series):
        raise no_dates(series, name)
    if isinstance(series.dtype, pd.SparseDtype):
        raise InputError(
            f"column {name!r} ({role}) is sparse", remedy="Make it dense with .sparse.to_dense()"
        )
    if _is_real_dtype(series) or isinstance(series.dtype, pd.StringDtype):
        return
    if generalized and (
        pd.api.types.is_datetime64_any_dtype(series)
        or isinstance(series.dtype, pd.PeriodDtype)
        or pd.api.types.is_timedelta64_dtype(series)
    ):
        raise no_dates(series, name)
    # Bytes are published untouched as well as any value, but are nothing to generalize.
    whole: tuple[type, ...] = (str,) if generalized else (str, bytes)
    for row, value in enumerate(series.astype(object), start=1):
        if generalized and isinstance(value, _MOMENTS) and not pd.isna(value):  # type: ignore[arg-type]
            raise no_dates(series, name)
        if isinstance(value, Iterable) and not isinstance(value, whole):
            raise InputError(
                f"column {name!r} ({role}) holds a {type(value).__name__}, which is no single "
                f"value, first in data row {row}",
                remedy="Write it as text, or spread it over several columns",
            )
        if isinstance(value, str) and not _is_unicode(value):
            raise InputError(
                f"column {name!r} ({role}) holds a text that is no Unicode, first in data row "
                f"{row}",
                remedy="Read the table with the encoding that it was written in",
            )


def _is_unicode(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def no_dates(
    series: pd.Series, name: str, missing: Iterable[str] = ("",), otherwise: str = ""
) -> InputError:
    """Return the error for dates that are not declared as such, or for times, which are none."""
    if are_times(series, missing):
        return InputError(
            f"column {name!r} holds times of day or durations, which are no dates",
            remedy=f"Give numbers in their place, such as hours or seconds{otherwise}",
        )
    return InputError(
        f"column {name!r} holds dates or times, and is not declared to",
        remedy='Declare it in a schema: kind = "date", and format = "%d.%m.%Y" or the like where '
        f"dates are not written as 1968-08-03{otherwise}",
    )


def is_number_text(text: str) -> bool:
    """Return whether `text` is a finite decimal number."""
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def looks_numeric(series: pd.Series, missing: Sequence[str] = ("",)) -> bool:
    """Return whether a column without declared kind is numeric.

    It is if all its values are numbers. Texts with leading zeros (``02138``) are codes, not
    numbers, and so are truth values.
    """
    values = series[~missing_rows(series, missing)]
    if len(values) == 0 or pd.api.types.is_bool_dtype(series):
        return False
    if _is_real_dtype(series):
        return True
    texts = map(str, values.unique())
    return all(is_number_text(text) and not _CODE.match(text) for text in texts)


def no_numbers_among(series: pd.Series, missing: Sequence[str] = ("",)) -> Ints:
    """Return the rows of the texts that keep a column of numbers from being numeric.

    None where fewer than four of five values are numbers, or one of them is a code (``02138``).
    """
    rows = np.flatnonzero(~missing_rows(series, missing))
    place, values = pd.factorize(series.iloc[rows].astype(object))
    texts = list(map(str, values))
    none = np.array([not is_number_text(text) for text in texts], np.bool_)[place]
    if none.sum() > _FEW * len(rows) or any(map(_CODE.match, texts)):
        return np.empty(0, np.int64)
    return rows[none]


def all_whole(series: pd.Series, missing: Sequence[str] = ("",)) -> bool:
    """Return whether all values of a numeric column are whole numbers.

    Those that doubles cannot distinguish from their neighbours are none.
    """
    values = series[~missing_rows(series, missing)]
    if _neither_number_nor_text(values).any():
        return False
    numbers = _to_doubles(values)
    return bool(np.all((numbers == np.floor(numbers)) & (np.abs(numbers) < _FIRST_INEXACT)))


def _to_doubles(series: pd.Series) -> Floats:
    """Return numbers and texts of numbers as doubles; not a number where a cell is neither."""
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(np.float64, copy=True)
    if _ROUGH_TEXTS and not _is_real_dtype(series):
        codes, values = pd.factorize(series.astype(object))
        read = np.full(len(values) + 1, np.nan)
        read[:-1] = [_double(value) for value in values]
        exact = read[codes]
        numbers = np.where(np.isfinite(exact), exact, numbers)
    return numbers


def _double(value: object) -> float:
    return float(value) if isinstance(value, str) and is_number_text(value) else np.nan


def _is_real_dtype(series: pd.Series) -> bool:
    types = pd.api.types
    return (
        types.is_numeric_dtype(series)
        and not types.is_bool_dtype(series)
        and not types.is_complex_dtype(series)
    )


def _neither_number_nor_text(series: pd.Series) -> Flags:
    """Return where pandas would make a number of something else: truth values, dates."""
    if _is_real_dtype(series) or isinstance(series.dtype, pd.StringDtype):
        return np.zeros(len(series), np.bool_)
    return np.fromiter(
        (
            isinstance(value, bool) or not isinstance(value, (str, Real, Decimal))
            for value in series.astype(object)
        ),
        np.bool_,
        len(series),
    )


def missing_rows(series: pd.Series, tokens: Sequence[str]) -> Flags:
    """Return (n,) bool: null in pandas' sense, or a text or number among `tokens`."""
    absent = series.isna().to_numpy(bool, copy=True)
    if _is_real_dtype(series):
        # A number has no text of its own: -9 is among them where "-9" or "-9.0" is.
        numbers = [float(text) for text in tokens if is_number_text(text)]
        if numbers:
            absent |= series.isin(numbers).to_numpy(bool, na_value=False)
    elif tokens and not pd.api.types.is_numeric_dtype(series):
        # Arrow compares a type with itself alone, and dates with no texts.
        texts = series.astype(object) if isinstance(series.dtype, pd.ArrowDtype) else series
        absent |= texts.isin(list(tokens)).to_numpy(bool)
    return absent


def numeric_column(series: pd.Series, attribute: Attribute) -> Floats:
    """Return the numbers of a column, (n,) float64, inside the attribute's domain.

    Of dates the numbers of their units.
    """
    name = attribute.name
    if attribute.kind == "date":
        numbers = attribute.scale.units(series, name)
        _refuse_outside(series, numbers, attribute)
        return numbers
    no_number = f"column {name!r} is numeric but holds a value that is not a finite number"
    remedy = (
        "Declare the column categorical, mark the value as missing, or take what is no part of the "
        "number away, such as separators of thousands and units"
    )
    _refuse(series, _neither_number_nor_text(series), no_number, remedy)
    numbers = _to_doubles(series)
    numbers += 0.0  # minus zero and zero are one value
    _refuse(series, ~np.isfinite(numbers), no_number, remedy)
    whole = numbers == np.floor(numbers)
    large = whole & (np.abs(numbers) >= _FIRST_INEXACT)
    _refuse(
        series,
        large & ~_written_as_float(series) if large.any() else large,
        f"column {name!r} holds a whole number too large to be exact (2^53 or more)",
        "Declare the column categorical, or publish it rounded",
    )
    if attribute.integer:
        _refuse(
            series,
            ~whole,
            f"column {name!r} is integer but holds a fraction",
            "Leave integer out of the schema, or round the column",
        )
    _refuse_outside(series, numbers, attribute)
    return numbers


def _refuse_outside(series: pd.Series, numbers: Floats, attribute: Attribute) -> None:
    if attribute.bounds is not None:
        low, high = attribute.bounds
        _refuse(
            series,
            (numbers < low) | (numbers > high),
            f"column {attribute.name!r} holds a value outside its domain",
            "Widen the domain in the schema, or correct the value",
        )


def _written_as_float(series: pd.Series) -> Flags:
    """Return where the number was given in floating point, whose digits are exact as such."""
    if pd.api.types.is_float_dtype(series):
        return np.ones(len(series), np.bool_)
    return series.map(
        lambda value: isinstance(value, float) or (isinstance(value, str) and "e" in value.lower())
    ).to_numpy(bool)


def text_column(series: pd.Series, attribute: Attribute) -> NDArray[np.object_]:
    """Return the texts of a column, (n,) object, inside the attribute's domain or hierarchy."""
    texts = series.astype(object).map(str).to_numpy(dtype=object)
    if attribute.hierarchy is not None:
        permissible, where = attribute.hierarchy.leaves, "missing from its hierarchy"
    elif attribute.domain is not None:
        permissible, where = tuple(map(str, attribute.domain)), "outside its domain"
    else:
        return texts
    _refuse(
        series,
        ~pd.Series(texts).isin(permissible).to_numpy(bool),
        f"column {attribute.name!r} holds a value {where}",
        "Add the value there, or correct it in the table",
    )
    return texts


def _refuse(series: pd.Series, rows: Flags, message: str, remedy: str) -> None:
    if not rows.any():
        return
    first = int(np.argmax(rows))
    raise InputError(
        f"{message}, first in data row {first + 1}", remedy=remedy, value=series.iloc[first]
    )


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
_NEARLY_ALL = 0.95  # the same where a day is eight digits
_LOOKED_AT = 5_000  # most different values that are looked at: shares are told by so many
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

    Some of them may be no dates, as where words stand for what is not known. Eight digits are taken
    for a day only where nearly all values can be one, of a year from 1850 to 2099.
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
    matches = [_COMPACT.fullmatch(text.strip()) for text in texts]
    compact = [match is not None and _is_day(match) for match in matches]
    return bool(np.mean(compact) >= _NEARLY_ALL)


def are_times(series: pd.Series, missing: Iterable[str] = ("",)) -> bool:
    """Return whether a column holds times of day or durations, by type or as texts."""
    if pd.api.types.is_timedelta64_dtype(series):
        return True
    if pd.api.types.is_datetime64_any_dtype(series) or _is_real_dtype(series):
        return False
    tokens = frozenset(missing)
    values = series.dropna().drop_duplicates()[:_LOOKED_AT].astype(object)
    times = [
        isinstance(one, time | timedelta)
        or (isinstance(one, str) and _TIME.fullmatch(one.strip()) is not None)
        for one in values
        if not (isinstance(one, str) and one in tokens)
    ]
    return bool(times) and sum(times) >= _NEARLY_ALL * len(times)


def are_plain_dates(series: pd.Series, missing: Sequence[str] = ("",)) -> bool:
    """Return whether a column holds dates or moments and nothing else, by type or as ISO 8601."""
    if pd.api.types.is_datetime64_any_dtype(series):
        return True
    if _is_real_dtype(series):
        return False
    texts: set[str] = set(missing)
    found = False
    for value in series[~series.isna()].astype(object):
        if isinstance(value, str):
            if value in texts:
                continue
            if not is_iso_day(value):
                return False
            texts.add(value)
        elif not isinstance(value, date):
            return False
        found = True
    return found


def refuse_dates_as_categories(
    series: pd.Series, attribute: Attribute, missing: Iterable[str] = ("",)
) -> None:
    """Refuse a categorical column of many dates: its sets would publish each of them exactly.

    A warning says so where there are few, or where a domain is declared.
    """
    if attribute.kind != "categorical" or not looks_like_dates(series, missing):
        return
    if attribute.domain is None and series.nunique() > _OCCASIONS:
        raise no_dates(
            series,
            attribute.name,
            missing,
            f"; sets of exact ones are published of {_OCCASIONS} different ones at most, or of "
            "a declared domain",
        )
    warnings.warn(
        f"column {attribute.name!r} holds dates or times as categories: a release shows sets of "
        "them, each exactly",
        InputWarning,
        stacklevel=2,
    )


def _is_day(match: re.Match[str]) -> bool:
    """Return whether month and day of a match can be, whichever of two numbers is which."""
    parts = {name: int(text) for name, text in match.groupdict().items() if (text or "").isdigit()}
    if "one" in parts:
        low, high = sorted((parts["one"], parts["other"]))
        return 1 <= low <= 12 and high <= 31
    return 1 <= parts.get("month", 1) <= 12 and 1 <= parts["day"] <= 31


#: Fewest numbers of which some may lie far from the others; which share of them is not looked at
#: on either side; and how many times farther than all others from the middle is far.
_FEWEST, _OUTER, _FAR = 50, 0.01, 10.0


def far_values(numbers: Floats) -> dict[str, int]:
    """Return how many numbers stretch the domain beyond all others: typing errors, or rare ones.

    By what would put them into a group of their own: ``at_most`` those above, ``at_least`` those
    below. Far is ten times as far from the median as the 99th percentile is, or the first; of the
    tables in the benchmarks no column has such numbers, incomes and populations of blocks included.
    """
    found = {}
    for end, side in (("at_most", numbers), ("at_least", -numbers)):
        if len(numbers) < _FEWEST:
            break
        middle, outer = np.quantile(side, [0.5, 1 - _OUTER], method="lower")
        count = int((side - middle > _FAR * (outer - middle)).sum())
        if count and outer > middle:
            found[end] = count
    return found
