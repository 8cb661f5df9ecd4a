"""The published table, read back into numbers and sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.privacy.arrays import Codes, Flags, Floats, Ints
from anonymip.privacy.reading.cell_grammar import (
    ANYTHING,
    ANYTHING_OR,
    MISSING,
    SUPPRESSED,
    Cell,
    CellError,
    number_text,
    read_node_cell,
    read_number_set,
    read_text_cell,
)
from anonymip.privacy.reading.hierarchies import Nodes, Paths, read_nodes
from anonymip.privacy.reading.manifest_entries import Column
from anonymip.privacy.reading.release_manifest import Manifest, read_manifest
from anonymip.privacy.reading.text_tables import (
    MalformedTable,
    TextColumn,
    TextTable,
    distinct,
    formula_problems,
    read_table,
    respelled,
    without_marks,
)

#: A point that is not one of two, or a comma without digits on both sides.
_NO_COMMA = re.compile(r"(?<!\.)\.(?!\.)|\.{3}|(?<!\d),|,(?!\d)", re.ASCII)
NAMED_PROBLEMS = 5  # so many problems of one check are named; the rest is counted


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A release of n rows and m quasi-identifiers, as its reader sees it."""

    columns: tuple[Column, ...]  # the m quasi-identifiers
    cells: tuple[tuple[Cell, ...], ...]  # for each quasi-identifier the distinct published cells
    codes: Codes  # (n, m) int32, index of each row's cell in `cells`
    untouched: dict[str, TextColumn]  # sensitive and kept columns by name, (n,) texts each
    #: Columns of pseudonyms by name, likewise.
    pseudonyms: dict[str, TextColumn] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def m(self) -> int:
        """Number of quasi-identifiers."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quasi-identifiers."""
        return tuple(column.name for column in self.columns)

    @property
    def lower(self) -> Floats:
        """(n, m) lower ends; NaN in categorical columns and suppressed cells.

        Of a missing number infinite, of any number or none minus infinite.
        """
        return self._spread(attrgetter("lower"))

    @property
    def upper(self) -> Floats:
        """(n, m) upper ends; NaN in categorical columns and suppressed cells.

        Infinite where a missing number is covered.
        """
        return self._spread(attrgetter("upper"))

    @property
    def count(self) -> Ints:
        """(n, m) number of values covered one by one: 0 for proper ranges and suppressed cells."""
        return self._spread(lambda cell: len(cell.members)).astype(np.int64)

    @property
    def suppressed(self) -> Flags:
        """(n, m) whether the cell is a star."""
        return self._spread(attrgetter("suppressed")).astype(np.bool_)

    def cell(self, row: int, attribute: int) -> Cell:
        """Return one cell; its `values` are the published set."""
        return self.cells[attribute][int(self.codes[row, attribute])]

    def classes(self) -> Ints:
        """Return (n,) class numbers: rows agree on all quasi-identifiers or differ in number.

        Complexity: O(m n log n).
        """
        return dense_rows(self.codes)

    def cell_problems(
        self, attribute: int, right: Iterable[bool], reason: str, exempt: Flags | None = None
    ) -> list[str]:
        """Return a sentence about the first row with a wrong cell in a column, if there is one.

        `right`: whether each distinct cell is. `exempt`: (n,) rows that do not count.
        """
        wrong = ~np.array([*right], np.bool_)[self.codes[:, attribute]]
        if exempt is not None:
            wrong &= ~exempt
        name = self.names[attribute]
        return [
            f"Column {name!r}, published row {row + 1}: the cell {reason}."
            for row in np.flatnonzero(wrong)[:1]
        ]

    def with_rows_of_stars(self, count: int) -> PublishedTable:
        """Return the quasi-identifiers with `count` rows of stars behind them.

        A record that is left out is a row that nobody sees: it could be anybody's. Of sensitive
        and kept columns the table that is returned has none.
        """
        stars = np.array([len(cells) for cells in self.cells], np.int32)
        return PublishedTable(
            self.columns,
            tuple((*cells, SUPPRESSED) for cells in self.cells),
            np.concatenate([self.codes, np.tile(stars, (count, 1))]),
            {},
        )

    def _spread(self, told: Callable[[Cell], float]) -> Floats:
        """Return (n, m) what each cell of the table tells."""
        table = np.empty(self.codes.shape, np.float64)
        for attribute, cells in enumerate(self.cells):
            values = np.array([told(cell) for cell in cells], np.float64)
            table[:, attribute] = values[self.codes[:, attribute]]
        return table


def dense_rows(codes: NDArray[np.integer[Any]]) -> Ints:
    """Return (n,) numbers 0, 1, ... that are equal exactly where rows of (n, m) `codes` are.

    Complexity: O(m n log n).
    """
    labels = np.zeros(codes.shape[0], np.int64)
    for column in codes.T:
        # Labels stay below n, so the product of two columns always fits.
        wide = labels * (int(column.max(initial=0)) + 1) + column
        labels = np.unique(wide, return_inverse=True)[1].ravel().astype(np.int64)
    return labels


def groups_of_pairs(
    pairs: Sequence[tuple[Ints, Ints]], records: int, rows: int
) -> tuple[Ints, Ints]:
    """Return numbers of records and of rows that are equal where both codes of every pair are."""
    columns = [np.concatenate(pair) for pair in pairs]
    groups = dense_rows(np.array(columns, np.int64).reshape(len(columns), records + rows).T)
    return groups[:records], groups[records:]


def surplus(before: Ints, after: Ints) -> list[int]:
    """Return the first published row whose code occurs more often than before, if any."""
    size = 1 + int(max(before.max(), after.max(initial=0)))
    more = np.bincount(after, minlength=size) > np.bincount(before, minlength=size)
    return [*np.flatnonzero(more[after])[:1].tolist()]


def read_release(
    release: str | Path | Any,
    manifest: Mapping[str, Any] | str | Path | None = None,
    *,
    hierarchies: Mapping[str, Paths] | None = None,
) -> PublishedTable:
    """Read a release back.

    `release`: path of the CSV or Parquet file, or the data frame. `manifest`: the manifest, its
    path, or None: the file beside the release. `hierarchies`: hierarchies by column; None reads
    nodes without knowing what they cover. Raises InputError if release, manifest or a hierarchy
    cannot be read, or break the format; the message names the first offence.
    """
    claims = read_manifest(manifest, release)
    known = None
    if hierarchies is not None:
        known = read_nodes(claims.quasi_identifiers, {}, hierarchies)
    return read_published(release, claims, known)


def read_published(
    release: str | Path | Any, manifest: Manifest, hierarchies: Mapping[str, Nodes] | None
) -> PublishedTable:
    """Read the table of a release whose manifest and hierarchies are read.

    The message of the error for one that breaks the format names the first offence.
    """
    table = read_table(
        release, separator=manifest.table.separator, encoding=manifest.table.encoding
    )
    problems = []
    if manifest.table.formulas_escaped:
        problems, table = formula_problems(table), without_marks(table)
    problems += header_problems(table, manifest)
    if not problems:
        published, problems = parse_release(table, manifest, hierarchies)
        if published is not None:
            return published
    raise MalformedTable(problems[0].rstrip("."), remedy="Run verify for all problems")


def header_problems(table: TextTable, manifest: Manifest, known: Collection[str] = ()) -> list[str]:
    """Return what is wrong with the column names of a release.

    Names that are not `known` are given by position: they may be values.
    """
    expected, found = manifest.header, tuple(table.columns)
    problems = [f"The release lacks the column {name!r}." for name in expected if name not in found]
    problems += [
        f"The release has an undeclared column at position {place + 1}"
        + (f": {name!r}." if name in known else ".")
        for place, name in enumerate(found)
        if name not in expected
    ]
    if not problems and found != expected:
        problems.append("The columns of the release are not in the order of the manifest.")
    return problems


def baggage_problems(table: TextTable, order_kept: pd.Index | None = None) -> list[str]:
    """Return what a release carries beside its table.

    `order_kept`: labels of the original records, if both are data frames and the release keeps
    their order: the same labels, or those of the records that are not left out, reveal no more.
    """
    problems, same = [], False
    if order_kept is not None and table.labels is not None:
        # Each label is found behind the one before it, or they are not in this order.
        rest = iter(order_kept)
        same = table.labels.equals(order_kept) or all(label in rest for label in table.labels)
    if table.has_labels and not same:
        problems.append("The rows of the release carry labels beside its columns.")
    if table.has_notes:
        problems.append("The release carries notes beside its table.")
    return problems


def parse_release(
    table: TextTable, manifest: Manifest, hierarchies: Mapping[str, Nodes] | None
) -> tuple[PublishedTable | None, list[str]]:
    """Read all cells; returns no table if a cell breaks the grammar, and why.

    Without hierarchies a node is read as its label only.
    """
    columns = manifest.quasi_identifiers
    codes = np.empty((table.rows, len(columns)), np.int32)
    cells: list[tuple[Cell, ...]] = []
    problems: list[str] = []
    for attribute, column in enumerate(columns):
        mark = manifest.table.decimal
        names = manifest.names_of(column)
        # In columns of numbers a star is a gap at both ends of a range.
        gap = "*" if len(names) == 2 else ""
        texts = [_cell_texts(table.columns[one], column, mark, gap) for one in names]
        pairs = [distinct(text) for text in texts]
        index = dense_rows(np.stack([pair[1] for pair in pairs], axis=1))
        _, first = np.unique(index, return_index=True)
        below = hierarchies[column.name].below if hierarchies and column.is_node else None
        parsed: list[Cell] = []
        broken: list[tuple[int, str]] = []
        for row in first:
            try:
                cell = [str(text[row]) for text in texts]
                absent = _missing_cell(column, cell, manifest)
                cell = cell if absent else [_pointed(text, column, mark) for text in cell]
                parsed.append(absent or _read_cell(column, cell, below))
            except CellError as error:
                parsed.append(SUPPRESSED)
                broken.append((int(row), str(error)))
        broken.sort()
        problems += [
            f"Column {column.name!r}, published row {row + 1}: the cell {reason}."
            for row, reason in broken[:NAMED_PROBLEMS]
        ]
        if len(broken) > NAMED_PROBLEMS:
            more = len(broken) - NAMED_PROBLEMS
            problems.append(f"Column {column.name!r}: {more} more distinct cells break the format.")
        codes[:, attribute] = index
        cells.append(tuple(parsed))
    if problems:
        return None, problems
    untouched = {column.name: table.columns[column.name] for column in manifest.untouched}
    pseudonyms = {name: table.columns[name] for name in manifest.pseudonyms}
    return PublishedTable(columns, tuple(cells), codes, untouched, pseudonyms), []


def _pointed(text: str, column: Column, mark: str) -> str:
    """Return a cell of numbers with points for the decimal commas of a table."""
    if mark == "." or column.kind != "numeric":
        return text
    if _NO_COMMA.search(text):
        raise CellError("holds a number that is not written with a decimal comma")
    return text.replace(",", ".")


def _cell_texts(released: TextColumn, column: Column, mark: str, gap: str) -> NDArray[np.object_]:
    """Return the cells as a CSV file would show them: numbers of a data frame get their text."""
    if released.nature not in ("number", "single") or not column.is_numeric:
        return released.texts
    return respelled(released.texts, lambda text: _cell_text(text, mark) if text else gap)


def _cell_text(text: str, mark: str) -> str:
    # A minus zero would make rows of a class differ: it is left for the grammar to refuse.
    if text.startswith("-0") and float(text) == 0:
        return "-0"
    return number_text(float(text)).replace(".", mark)


def _missing_cell(column: Column, texts: list[str], manifest: Manifest) -> Cell | None:
    """Return a cell of a range that covers missing values; None if it covers none."""
    if not column.is_numeric or manifest.policy_of(column) != "own" or len(set(texts)) > 1:
        return None
    label = manifest.table.label
    return {label: MISSING, ANYTHING_OR + label: ANYTHING}.get(texts[0])


def _read_cell(
    column: Column, texts: list[str], below: Mapping[str, tuple[str, ...]] | None
) -> Cell:
    if column.is_node:
        return read_node_cell(texts[0], below)
    if not column.is_numeric:
        return read_text_cell(texts[0])
    if column.publish == "set":
        return read_number_set(texts[0], column.integer)
    return column.scale.pair(*texts) if len(texts) == 2 else column.scale.cell(texts[0])
