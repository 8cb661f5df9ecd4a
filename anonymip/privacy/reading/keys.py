"""Combinations of quasi-identifiers in a table as it was given: which of its records are equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class KeyColumns:
    """The quasi-identifiers of a table, and how their values are read.

    `kinds`: by name; numbers are compared as such, and so are values without a kind if all are
    numbers. `decimal`: mark of numbers. `tokens`: texts that mean no value. `policy`: ``"error"``,
    ``"category"`` or ``"own"`` (missing is a value of its own) or ``"drop"``. `policies`: those of
    columns that have another, by name.
    """

    kinds: Mapping[str, str | None] = field(default_factory=dict)
    decimal: str = "."
    tokens: Sequence[str] = ("",)
    policy: str = "error"
    policies: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Keys:
    """Which records of a table are equal in all quasi-identifiers.

    `labels`: (n,) numbers of the combinations. `rows`: (n,) row of each record in its source, from
    0; gaps where a value is missing. `others`: the numbers of the records of the other table.
    `has_missing`: whether a value is missing.
    """

    labels: Ints
    rows: Ints
    others: Ints
    has_missing: bool


def read_keys(table: TextTable, columns: KeyColumns, population: TextTable | None = None) -> Keys:
    """Tell the records of a table apart, together with those of a population.

    Raises InputError if a column is not there, a value is missing although the policy forbids it,
    or no record is left. Complexity: O(m n log n).
    """
    tables = [table] if population is None else [table, population]
    size = sum(one.rows for one in tables)
    codes = np.empty((size, len(columns.kinds)), np.int64)
    absent = np.empty(codes.shape, np.bool_)
    for attribute, (name, kind) in enumerate(columns.kinds.items()):
        parts = [column_of(one, name) for one in tables]
        gone = absent[:, attribute] = np.concatenate(
            [missing_in(part, columns.tokens) for part in parts]
        )
        texts = np.concatenate([pointed(part, columns.decimal) for part in parts])
        if kind == "numeric" or (
            kind is None and all(map(spells_number, distinct(texts[~gone])[0]))
        ):
            texts = respelled_numbers(texts, any(part.nature == "single" for part in parts))
        else:
            texts = np.concatenate([part.texts for part in parts])
        codes[:, attribute] = np.where(gone, 0, distinct(texts)[1] + 1)
    policies = np.array([columns.policies.get(name, columns.policy) for name in columns.kinds])
    refused = absent & (policies == "error")
    kept = ~np.logical_or.reduce(absent & (policies == "drop"), axis=1)
    if refused[kept].any():
        row, attribute = np.argwhere(refused & kept[:, None])[0].tolist()
        inside = row < table.rows
        raise InputError(
            f"column {list(columns.kinds)[attribute]!r} of the "
            f"{'table' if inside else 'population'} misses a value in row "
            f"{row + 1 if inside else row + 1 - table.rows}",
            remedy=f"Say {argument('missing', 'category')}, for which it is a value of its own, or "
            f"{argument('missing', 'drop')}, which leaves the record out",
        )
    rows = np.flatnonzero(kept[: table.rows])
    if not len(rows):
        raise InputError("the table has no records to measure", remedy="Check the file")
    labels = dense_rows(codes[kept])
    return Keys(labels[: len(rows)], rows, labels[len(rows) :], bool(absent[rows].any()))


def column_of(table: TextTable, name: str) -> TextColumn:
    """Return a column; raises InputError if the table has none of that name."""
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
