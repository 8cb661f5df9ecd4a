"""The quasi-identifiers of a table as levels and codes; what becomes of missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError, argument
from anonymip.instances.attribute import Attribute
from anonymip.instances.columns import is_number_text, missing_rows, numeric_column, text_column
from anonymip.instances.table_format import TableFormat


def without_missing(
    frame: pd.DataFrame, attributes: Sequence[Attribute], table: TableFormat
) -> pd.DataFrame:
    """Return the frame with the policy for missing values applied to the quasi-identifiers.

    Raises
    ------
    InputError
        If a value is missing and the policy forbids it or has no category for it.
    """
    absent = {a.name: missing_rows(frame[a.name], table.missing) for a in attributes}
    if table.policy == "drop":
        rows = np.logical_or.reduce(list(absent.values()))
        complete: pd.DataFrame = frame.loc[~rows]
        return complete.reset_index(drop=True)
    filled: dict[str, pd.Series] = {}
    dropped = argument("missing", "drop")
    for attribute in attributes:
        rows = absent[attribute.name]
        if not rows.any():
            continue
        if table.policy == "error" or attribute.is_numeric:
            remedy = (
                f"Use {dropped}: a numeric attribute has no category for missing values"
                if table.policy == "category"
                else f"Choose {dropped} or {argument('missing', 'category')}, or fill the cells"
            )
            raise InputError(
                f"column {attribute.name!r} has {int(rows.sum())} missing values, the first in "
                f"data row {int(rows.argmax()) + 1}",
                remedy=remedy,
            )
        column = frame[attribute.name].astype(object)
        if column.isin([table.label]).any():
            raise InputError(
                f"column {attribute.name!r} holds the text {table.label!r}, which stands for "
                "missing values",
                remedy=f"Rename that value, or use {dropped}",
            )
        column[rows] = table.label
        filled[attribute.name] = column
    return frame.assign(**filled).reset_index(drop=True)


def encode(
    frame: pd.DataFrame, attributes: Sequence[Attribute]
) -> tuple[tuple[NDArray[np.generic], ...], NDArray[np.int32], NDArray[np.float64]]:
    """Return the levels of each attribute, and (n, m) codes and values of the cells.

    See :class:`~anonymip.instances.microdata.Microdata`.

    Raises
    ------
    InputError
        If a cell is outside its domain, or no number where numbers belong.
    """
    n, m = len(frame), len(attributes)
    codes = np.empty((n, m), np.int32)
    values = np.empty((n, m), np.float64)
    levels: list[NDArray[np.generic]] = []
    for column, attribute in enumerate(attributes):
        series = frame[attribute.name]
        if attribute.is_numeric:
            numbers = numeric_column(series, attribute)
            level, inverse = np.unique(numbers, return_inverse=True)
            values[:, column] = numbers
            levels.append(level)
        else:
            texts = text_column(series, attribute)
            inverse, found = pd.factorize(texts)
            level = np.asarray(found, dtype=object)
            coded = attribute.hierarchy is None and all(is_number_text(text) for text in level)
            order = _order_of_levels(level, attribute, coded)
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(len(order))
            inverse, level = rank[inverse], level[order]
            values[:, column] = (
                np.array([float(text) for text in level])[inverse] if coded else inverse
            )
            levels.append(level)
        codes[:, column] = inverse.ravel()
    for array in levels:
        array.setflags(write=False)
    codes.setflags(write=False)
    values.setflags(write=False)
    return tuple(levels), codes, values


def _order_of_levels(level: NDArray[Any], attribute: Attribute, coded: bool) -> NDArray[np.int64]:
    """Return the order of observed texts: of the tree, of their numbers, or alphabetical."""
    if attribute.hierarchy is not None:
        # What a node covers is then a range of ranks.
        return np.argsort([attribute.hierarchy.tree.place[text] for text in level])
    return np.argsort([float(text) for text in level]) if coded else np.argsort(level)
