"""Sensitive and kept columns as a file can hold them, revealing nothing beyond their values."""

from __future__ import annotations

from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

#: Values that CSV and Parquet files give back as they are. A datetime is a date.
_PLAIN = (str, bytes, bool, int, float, np.bool_, np.integer, np.floating, date, time, Decimal)
#: Numbers in half precision.
_HALF = ("float16", "halffloat[pyarrow]")


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
        if pd.api.types.is_numeric_dtype(categories) or all(
            isinstance(one, str) for one in categories
        ):
            return _without_unused_categories(column)
        is_plain = False
    elif pd.api.types.is_object_dtype(column):
        values = [value for value, absent in zip(column, column.isna(), strict=True) if not absent]
        is_plain = all(isinstance(value, _PLAIN) for value in values) and _has_one_scale(values)
    else:
        is_plain = not (
            pd.api.types.is_timedelta64_dtype(column)
            or pd.api.types.is_complex_dtype(column)
            or isinstance(column.dtype, pd.IntervalDtype | pd.PeriodDtype)
        )
    if is_plain:
        return column
    return column.astype(object).map(str, na_action="ignore").astype(object)


def _has_one_scale(values: list[Any]) -> bool:
    """Return whether all decimals have as many digits behind the point: Parquet pads them."""
    scales = {value.as_tuple().exponent for value in values if isinstance(value, Decimal)}
    return len(scales) < 2


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_dictionary(dtype.pyarrow_dtype))


def _without_unused_categories(column: pd.Series) -> pd.Series:
    used = column.cat.remove_unused_categories()
    if used.cat.ordered:
        return used
    return used.cat.reorder_categories(sorted(used.cat.categories, key=str))
