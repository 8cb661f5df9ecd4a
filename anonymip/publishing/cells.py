"""The columns of a release: generalized cells by the grammar of docs/format.md, and untouched ones.

Sensitive and kept columns reveal nothing beyond their values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.instances import Attribute
from anonymip.instances.columns import is_number_text
from anonymip.solution import Solution

_STAR = "*"
_EXACT = 2.0**53  # whole numbers below are exact in floating point
#: Before the label of missing values: the cell of numbers and missing values together.
ANYTHING_OR = "[..]|"
#: The point in a number, which has digits on both sides; that of ranges is double.
_POINT = re.compile(r"(?<=\d)\.(?=\d)", re.ASCII)


def end_names(attribute: Attribute) -> tuple[str, str]:
    """Return the names of the two columns of a range in the layout "columns"."""
    return f"{attribute.name}_lower", f"{attribute.name}_upper"


def published_columns(solution: Solution, a: int, layout: str) -> dict[str, Any]:
    """Return the column or columns of one quasi-identifier; each class is written once.

    Of a cover row i shows what the set of record i is published with.
    """
    microdata = solution.problem.microdata
    attribute = microdata.attributes[a]
    classes = solution.classes
    if classes is None:
        firsts = inverse = np.arange(microdata.n)
    else:
        _, firsts, inverse = np.unique(classes.labels, return_index=True, return_inverse=True)
    cells = solution.description
    starred = cells.suppressed[firsts, a]
    mark = microdata.table.decimal

    def spread(texts: Sequence[str]) -> NDArray[np.object_]:
        if mark != "." and attribute.kind == "numeric":
            # The decimal mark of the table, which no range is written with.
            texts = [_POINT.sub(mark, text) for text in texts]
        written = np.array(texts, dtype=object)
        written[starred] = _STAR
        return written[inverse.ravel()]

    lower, upper = cells.lower[firsts, a], cells.upper[firsts, a]
    if attribute.publish == "range":
        scale = attribute.scale
        ends = list(zip(lower.tolist(), upper.tolist(), starred.tolist(), strict=True))
        beyond, label = microdata.beyond[a], microdata.table.label

        # Classes are many, and a cover has a set for each row: of ranges there are far fewer.
        @cache
        def written(lower: float, upper: float, gone: bool) -> tuple[str, ...]:
            """Return a cell, of two columns its ends; one that is not shown has none."""
            if gone or upper == beyond:
                text = label if lower == upper else f"{ANYTHING_OR}{label}"
                return ("" if gone else text,) * (1 + (layout == "columns"))
            if layout == "columns":
                return scale.ends(lower, upper, _number)
            return (scale.text(lower, upper, _number),)

        columns = map(spread, zip(*(written(*end) for end in ends), strict=True))
        one = (attribute.name,)
        names: tuple[str, ...] = end_names(attribute) if layout == "columns" else one
        return dict(zip(names, columns, strict=True))
    if attribute.hierarchy is not None:
        names = attribute.hierarchy.tree.labels
        return {attribute.name: spread([_text(names[cells.nodes[i, a]]) for i in firsts.tolist()])}
    level = microdata.levels[a]
    write = _number_set if attribute.is_numeric else _text_set
    return {attribute.name: spread([write(level[cells.members.of(i, a)]) for i in firsts.tolist()])}


def number_ends(frame: pd.DataFrame, columns: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Return the ends of numeric ranges in the layout "columns", and which are whole numbers.

    They are found by their places: names may have an apostrophe in front. `columns`: what the
    manifest says of them.
    """
    names = iter(map(str, frame.columns))
    ends: dict[str, bool] = {}
    for column in columns:
        is_range = column.get("publish") == "range"
        shown = [next(names) for _ in range(1 + is_range)]
        if is_range and column["kind"] == "numeric":
            ends |= dict.fromkeys(shown, bool(column["integer"]))
    return ends


def as_numbers(column: pd.Series, mark: str, *, whole: bool) -> pd.Series:
    """Return ends of ranges as numbers, missing ones for stars; with texts among them as they are.

    `mark`: their decimal mark. `whole`: whether they are whole numbers.
    """
    values, places = np.unique(column.to_numpy(object), return_inverse=True)
    texts = [str(value).replace(mark, ".") for value in values]
    if not all(text == _STAR or is_number_text(text) for text in texts):
        return column
    ends = np.array([np.nan if text == _STAR else float(text) for text in texts])
    numbers = pd.Series(ends[places.ravel()], index=column.index)
    if not whole or (np.abs(ends) >= _EXACT).any():
        return numbers
    return numbers.astype("Int64") if np.isnan(ends).any() else numbers.astype("int64")


def as_texts(column: pd.Series, mark: str) -> pd.Series:
    """Return ends of ranges as a text file shows them; those that are texts as they are."""
    if not pd.api.types.is_numeric_dtype(column):
        return column
    return column.astype("float64").map(
        lambda end: _STAR if np.isnan(end) else _number(end).replace(".", mark)
    )


def _number(value: float) -> str:
    """Write a number the shortest way that reads back exactly."""
    return repr(float(value) + 0.0).removesuffix(".0")


def _number_set(values: NDArray[np.generic]) -> str:
    texts = [_number(float(value)) for value in values]
    return texts[0] if len(texts) == 1 else "{" + "|".join(texts) + "}"


def _text(text: str) -> str:
    """Write a text, or the label of a node; a backslash distinguishes the root * from a star."""
    return "\\" + text if text.startswith(("[", "{", "*", "\\")) else text


def _text_set(values: NDArray[np.generic]) -> str:
    texts = sorted(str(value) for value in values)
    if len(texts) == 1:
        return _text(texts[0])
    escaped = [text.replace("\\", "\\\\").replace("|", "\\|").replace("}", "\\}") for text in texts]
    return "{" + "|".join(escaped) + "}"


#: Values that CSV and Parquet files give back as they are. A datetime is a date.
_PLAIN = (str, bytes, bool, int, float, np.bool_, np.integer, np.floating, date, time, Decimal)
_HALF = ("float16", "halffloat[pyarrow]")  # numbers in half precision


def untouched_column(column: pd.Series) -> pd.Series:
    """Return a column with the same values, of a type that files hold.

    What a categorical column holds beyond its values is dropped: pandas and Parquet would keep
    the categories of records that were left out, and their order, which may be that of the
    original's rows. Values of other types, such as durations, are written as texts.
    """
    if isinstance(column.dtype, pd.ArrowDtype) and _is_dictionary(column.dtype):
        column = column.astype(object)
    if str(column.dtype) in _HALF:
        # pandas prints half precision with digits that do not read back as the same number.
        return column.astype(np.float64)
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = column.cat.categories
        is_plain = pd.api.types.is_numeric_dtype(categories) or all(
            isinstance(one, str) for one in categories
        )
        if is_plain:
            column = column.cat.remove_unused_categories()
            if not column.cat.ordered:
                by_name = sorted(column.cat.categories, key=str)
                column = column.cat.reorder_categories(by_name)
    elif pd.api.types.is_object_dtype(column):
        values = column[column.notna()]
        # Parquet pads decimals that have not all as many digits behind the point.
        scales = {value.as_tuple().exponent for value in values if isinstance(value, Decimal)}
        is_plain = all(isinstance(value, _PLAIN) for value in values) and len(scales) < 2
    else:
        is_plain = not (
            pd.api.types.is_timedelta64_dtype(column)
            or pd.api.types.is_complex_dtype(column)
            or isinstance(column.dtype, pd.IntervalDtype | pd.PeriodDtype)
        )
    if is_plain:
        return column
    return column.astype(object).map(str, na_action="ignore").astype(object)


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_dictionary(dtype.pyarrow_dtype))


def by_content_order(frame: pd.DataFrame) -> NDArray[np.integer]:
    """Return the order of the rows by their texts, column after column."""
    ranks = []
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        is_text = isinstance(column.dtype, pd.StringDtype)
        texts = column if is_text else column.astype(object).map(str)
        codes, values = pd.factorize(texts, use_na_sentinel=False)
        ranks.append(np.argsort(np.argsort([str(value) for value in values]))[codes])
    return np.lexsort(ranks[::-1])
