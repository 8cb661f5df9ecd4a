"""The cells of a table as levels and codes: missing values, numbers, units of the calendar."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError, argument
from anonymip.instances.attribute import Attribute
from anonymip.instances.columns import is_number_text, missing_rows, numeric_column, text_column
from anonymip.instances.hierarchies.hierarchy import Calendar
from anonymip.instances.table_format import TableFormat
from anonymip.runtime.arrays import Codes, Floats, Ints


def policy_of(attribute: Attribute, table: TableFormat) -> str:
    """Return what becomes of missing values: of categories a value of its own is a category."""
    policy = attribute.missing or table.policy
    return "category" if policy == "own" and not attribute.is_numeric else policy


def complete_rows(frame: pd.DataFrame, attributes: Sequence[Attribute], table: TableFormat) -> Ints:
    """Return the rows that miss nothing for which rows are left out."""
    gone = np.zeros(len(frame), np.bool_)
    for attribute in attributes:
        if policy_of(attribute, table) == "drop":
            gone |= missing_rows(frame[attribute.name], table.missing)
    return np.flatnonzero(~gone)


def without_missing(
    frame: pd.DataFrame, attributes: Sequence[Attribute], table: TableFormat
) -> pd.DataFrame:
    """Return the frame with the policies for missing values applied to the quasi-identifiers.

    Missing numbers and dates that are a value of their own are null in it. Raises InputError if a
    value is missing and its policy forbids it or has no category for it.
    """
    kept = complete_rows(frame, attributes, table)
    given = frame
    if len(kept) < len(frame):
        frame = frame.iloc[kept]
    filled: dict[str, pd.Series] = {}
    for attribute in attributes:
        rows = missing_rows(frame[attribute.name], table.missing)
        if not rows.any():
            continue
        policy, is_own = policy_of(attribute, table), attribute.publish == "range"
        if policy == "error" or (attribute.is_numeric and not (policy == "own" and is_own)):
            raise _missing_error(attribute, policy, int(rows.sum()), int(kept[rows.argmax()]))
        column = frame[attribute.name].astype(object)
        if column.isin([table.label]).any():
            raise InputError(
                f"column {attribute.name!r} holds the text {table.label!r}, which stands for "
                "missing values",
                remedy=f"Rename that value, or use {argument('missing', 'drop')}",
            )
        if attribute.is_numeric and not table.label.isalpha():
            raise InputError(
                f"the label of missing values is {table.label!r}, which may be taken for a number",
                remedy="Give one of letters alone",
            )
        tree = attribute.hierarchy if attribute.kind == "hierarchical" else None
        if tree is not None and table.label not in tree.leaves:
            raise InputError(
                f"column {attribute.name!r} has missing values, which count as the value "
                f"{table.label!r}, and its hierarchy has none of that name",
                remedy=f"Add a line to it: {table.label}, and what lies above, up to {tree.root}",
            )
        column[rows] = None if attribute.is_numeric else table.label
        filled[attribute.name] = column
    if not filled and frame is given:
        return frame.reset_index(drop=True)
    return frame.assign(**filled).reset_index(drop=True)


def _missing_error(attribute: Attribute, policy: str, count: int, first: int) -> InputError:
    dropped, own = argument("missing", "drop"), argument("missing", "own")
    remedy = f"Choose {dropped} or {argument('missing', 'category')}, or fill the cells"
    if attribute.is_numeric:
        remedy = (
            f"Choose {dropped}, or {own} for a value of its own beside ranges, or fill the cells"
        )
        if policy != "error":
            remedy = f"Use {dropped}: a numeric attribute has no category for missing values"
            if attribute.publish == "range":
                remedy += f"; or {own}, for which missing is a value of its own beside ranges"
    return InputError(
        f"column {attribute.name!r} has {count} missing values, the first in data row {first + 1}",
        remedy=f"{remedy}. For this column alone say it in its section of a schema, or by "
        "Attribute(missing=...)",
    )


class Encoded(NamedTuple):
    """The cells of a table as :class:`~anonymip.instances.microdata.Microdata` names them."""

    levels: tuple[NDArray[np.generic], ...] = ()
    codes: Codes = np.empty((0, 0), np.int32)
    values: Floats = np.empty((0, 0))
    beyond: Floats = np.empty(0)


def encode(frame: pd.DataFrame, attributes: Sequence[Attribute]) -> Encoded:
    """Return the levels of each attribute, and (n, m) codes and values of the cells.

    See :class:`~anonymip.instances.microdata.Microdata`.
    """
    n, m = len(frame), len(attributes)
    codes = np.empty((n, m), np.int32)
    values = np.empty((n, m), np.float64)
    beyond = np.full(m, np.inf)
    levels: list[NDArray[np.generic]] = []
    level: NDArray[Any]
    for column, attribute in enumerate(attributes):
        series = frame[attribute.name]
        if attribute.is_numeric:
            numbers, beyond[column] = _numbers(series, attribute)
            level, inverse = np.unique(numbers, return_inverse=True)
            values[:, column] = numbers
            levels.append(level)
        else:
            place, found = pd.factorize(text_column(series, attribute))
            level = np.asarray(found, dtype=object)
            coded = attribute.hierarchy is None and all(map(is_number_text, level))
            ordered_by = level.astype(np.float64) if coded else level
            if attribute.hierarchy is not None:
                # What a node covers is then a range of ranks.
                leaf = attribute.hierarchy.tree.place
                ordered_by = np.array([leaf[text] for text in level], np.int64)
            order = np.argsort(ordered_by)
            inverse = np.argsort(order)[place]
            values[:, column] = ordered_by[place] if coded else inverse
            levels.append(level[order])
        codes[:, column] = inverse.ravel()
    for array in (*levels, codes, values, beyond):
        array.setflags(write=False)
    return Encoded(tuple(levels), codes, values, beyond)


def _numbers(series: pd.Series, attribute: Attribute) -> tuple[Floats, float]:
    """Return the numbers of a column, and what stands for missing ones; infinite if none is.

    It lies farther above the domain than the domain is wide: so far from every number that a range
    with both costs as much as one of the whole domain.
    """
    absent = series.isna().to_numpy(bool)
    if not absent.any():
        return attribute.scale.coarsened(numeric_column(series, attribute)), np.inf
    numbers = np.empty(len(series))
    if not absent.all():
        # Some value stands in for the missing ones, so that messages name rows of the table.
        present = series.where(~absent, series[~absent].iloc[0])
        numbers = attribute.scale.coarsened(numeric_column(present, attribute))
    low, high = ends_of(attribute, numbers[~absent])
    width = high - low or max(1.0, float(np.spacing(abs(high))))
    numbers[absent] = high + 2 * width + attribute.is_whole
    return numbers, float(numbers[absent][0])


def on_calendar(
    series: pd.Series, attribute: Attribute, table: TableFormat
) -> tuple[Attribute, NDArray[np.object_]]:
    """Return dates published as nodes with their hierarchy, and (rows,) the units of a column.

    The column is the whole one: which rows other columns leave out does not change the domain.
    """
    absent = missing_rows(series, table.missing)
    labels = np.full(len(series), table.label, dtype=object)
    ends = None if attribute.bounds is None else ends_of(attribute, np.empty(0))
    if not absent.all():
        present = series.where(~absent, series[~absent].iloc[0])
        numbers = attribute.scale.coarsened(numeric_column(present, attribute))
        ends = ends_of(attribute, numbers)
        units, place = np.unique(numbers, return_inverse=True)
        texts = np.array([attribute.scale.text(one, one, str) for one in units], dtype=object)
        labels = np.where(absent, labels, texts[place.ravel()])
    filled = absent.any() and policy_of(attribute, table) == "category"
    others = [table.label] if filled else []
    calendar = Calendar.of(attribute.scale, ends, others, observed=attribute.domain is None)
    return dataclasses.replace(attribute, hierarchy=calendar), labels


def ends_of(attribute: Attribute, levels: Floats) -> tuple[float, float]:
    """Return lowest and highest permissible number: declared, else observed."""
    if attribute.bounds is not None:
        low, high = attribute.scale.coarsened(np.array(attribute.bounds)).tolist()
        return low, high
    if not len(levels):
        return 0.0, 0.0
    return float(levels.min()), float(levels.max())
