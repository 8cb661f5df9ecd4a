"""Texts that a spreadsheet would run as formulas, and how they are kept from it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from anonymip.instances.columns import is_number_text

#: What makes a formula of the text behind it.
_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n")


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet would take a text for more than text or a plain number."""
    return len(text) > 1 and text.startswith(_SIGNS) and not is_number_text(text)


def count_formulas(frame: pd.DataFrame) -> dict[str, int]:
    """Return how many cells of each column are formulas, of the columns that have some."""
    counts = {str(name): sum(map(is_formula, _texts(frame[name]))) for name in frame.columns}
    return {name: count for name, count in counts.items() if count}


def with_apostrophes(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with an apostrophe before each formula, in cells and names of columns.

    So that nothing is lost, texts that begin with an apostrophe get another one.
    """
    columns = {name: _escaped_column(frame[name]) for name in frame.columns}
    return pd.DataFrame(columns, index=frame.index).rename(columns=lambda name: _escaped(str(name)))


def _escaped_column(column: pd.Series) -> pd.Series:
    if not any(_escaped(text) != text for text in _texts(column)):
        return column
    # Other values stay what they are, but for numbers: a column is of one type.
    all_text = pd.api.types.is_numeric_dtype(column)
    texts = [
        value
        if absent or (not all_text and _escaped(str(value)) == str(value))
        else _escaped(str(value))
        for value, absent in zip(column, column.isna(), strict=True)
    ]
    return pd.Series(texts, index=column.index, dtype=object)


def _escaped(text: str) -> str:
    return f"'{text}" if text.startswith("'") or is_formula(text) else text


def _texts(column: pd.Series) -> list[str]:
    """Return the texts of a column as a file shows them, without those that are no formulas."""
    if pd.api.types.is_numeric_dtype(column):
        # The texts of numbers are plain numbers, but for the infinite ones.
        if not pd.api.types.is_float_dtype(column):
            return []
        column = column[np.isinf(column.to_numpy(np.float64, na_value=np.nan))]
    return [str(value) for value in column[column.notna()]]
