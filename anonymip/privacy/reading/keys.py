"""Combinations of quasi-identifiers in a table as it was given: which of its records are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anonymip.errors import InputError, argument, unknown_name
from anonymip.privacy.arrays import Floats, Ints
from anonymip.privacy.reading.cell_grammar import spells_number
from anonymip.privacy.reading.original import missing_in
from anonymip.privacy.reading.published import dense_rows
from anonymip.privacy.reading.text_tables import (
    TextColumn,
    TextTable,
    distinct,
    pointed,
    respelled_numbers,
)


@dataclass(frozen=True, eq=False)
class Keys:
    """Which records of a table are equal in all quasi-identifiers.

    `labels`: (n,) numbers of the combinations. `rows`: (n,) row of each record in its source, from
    0; gaps where a value is missing. `others`: the numbers of the records of a population, None
    without one. `has_missing`: whether a value is missing.
    """

    labels: Ints
    rows: Ints
    others: Ints | None
    has_missing: bool


def read_keys(
    table: TextTable,
    kinds: Mapping[str, str | None],
    policies: Sequence[str],
    tokens: Sequence[str],
    decimal: str,
    population: TextTable | None = None,
) -> Keys:
    """Tell the records of a table apart by their quasi-identifiers, and those of a population.

    `kinds`: by name; numbers are compared as such, and so are values without a kind if all are
    numbers. `policies`: of each ``"error"``, ``"category"`` or ``"own"`` (missing is a value of its
    own) or ``"drop"``. `tokens`: texts that mean no value. `decimal`: mark of numbers. Complexity:
    O(m n log n).
    """
    tables = [table] if population is None else [table, population]
    size = sum(one.rows for one in tables)
    codes = np.empty((size, len(kinds)), np.int64)
    absent = np.empty(codes.shape, np.bool_)
    for attribute, (name, kind) in enumerate(kinds.items()):
        parts = [column_of(one, name) for one in tables]
        gone = absent[:, attribute] = np.concatenate([missing_in(part, tokens) for part in parts])
        texts = np.concatenate([pointed(part, decimal) for part in parts])
        if kind == "numeric" or (
            kind is None and all(map(spells_number, distinct(texts[~gone])[0]))
        ):
            texts = respelled_numbers(texts, any(part.nature == "single" for part in parts))
        else:
            texts = np.concatenate([part.texts for part in parts])
        codes[:, attribute] = np.where(gone, 0, distinct(texts)[1] + 1)
    refused = absent & (np.array(policies) == "error")
    kept = ~np.logical_or.reduce(absent & (np.array(policies) == "drop"), axis=1)
    if refused[kept].any():
        row, attribute = np.argwhere(refused & kept[:, None])[0].tolist()
        inside = row < table.rows
        raise InputError(
            f"column {list(kinds)[attribute]!r} of the "
            f"{'table' if inside else 'population'} misses a value in row "
            f"{row + 1 if inside else row + 1 - table.rows}",
            remedy=f"Say {argument('missing', 'category')}, for which it is a value of its own, or "
            f"{argument('missing', 'drop')}, which leaves the record out",
        )
    rows = np.flatnonzero(kept[: table.rows])
    if not len(rows):
        raise InputError("the table has no records to measure", remedy="Check the file")
    labels = dense_rows(codes[kept])
    others = None if population is None else labels[len(rows) :]
    return Keys(labels[: len(rows)], rows, others, bool(absent[rows].any()))


def column_of(table: TextTable, name: str) -> TextColumn:
    """Return a column of a table."""
    if name not in table.columns:
        raise unknown_name("column", name, list(table.columns))
    return table.columns[name]


def weights_of(column: TextColumn, name: str, decimal: str) -> Floats:
    """Return (n,) the numbers of a column; raises InputError if one is no number above 0."""
    values, index = distinct(pointed(column, decimal))
    read = np.array([float(text) if spells_number(text) else np.nan for text in values])
    weights = np.asarray(read[index], np.float64)
    wrong = int(np.sum(~(weights > 0)))
    if wrong:
        raise InputError(
            f"column {name!r} holds {wrong} weights that are no numbers above 0",
            remedy="Say how many persons each record stands for",
        )
    return weights
