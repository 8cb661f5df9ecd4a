"""Releases whose texts were kept from being run by a spreadsheet: read as they were meant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anonymip.privacy.reading.cells import CellError, read_number
from anonymip.privacy.reading.tables import TextColumn, TextTable, distinct

_MARK = "'"
_DANGEROUS = frozenset("=+-@\t\r\n")


def without_marks(table: TextTable) -> TextTable:
    """Return a table whose cells and names of columns lose the apostrophe before them."""
    columns = {_without_mark(name): _column(column) for name, column in table.columns.items()}
    return replace(table, columns=columns)


def formula_problems(table: TextTable) -> list[str]:
    """Return what is wrong with the apostrophes of a release, as it was read.

    One stands before each formula, and before each text that begins with one. Anywhere else it
    would make rows differ that look alike without it.
    """
    problems = [
        f"The name of the column at position {place + 1} {_wrong(name)}."
        for place, name in enumerate(table.columns)
        if _wrong(name)
    ]
    for place, column in enumerate(table.columns.values()):
        values, index = distinct(column.texts)
        wrong = [_wrong(value) for value in values]
        rows = np.flatnonzero(np.array([text != "" for text in wrong], np.bool_)[index])
        problems += [
            f"The column at position {place + 1}, published row {row + 1}: the cell "
            f"{wrong[index[row]]}."
            for row in rows[:1]
        ]
    return problems


def _column(column: TextColumn) -> TextColumn:
    values, index = distinct(column.texts)
    plain = np.empty(len(values), dtype=object)
    plain[:] = [_without_mark(value) for value in values]
    return replace(column, texts=plain[index] if len(values) else column.texts)


def _wrong(text: str) -> str:
    """Return what is wrong with a text as it was read, empty for nothing."""
    if _is_formula(text):
        return "is a formula, which should have an apostrophe in front"
    plain = _without_mark(text)
    if plain != text and not plain.startswith(_MARK) and not _is_formula(plain):
        return "has an apostrophe in front that escapes nothing"
    return ""


def _without_mark(text: str) -> str:
    return text[1:] if text.startswith(_MARK) else text


def _is_formula(text: str) -> bool:
    if len(text) < 2 or text[0] not in _DANGEROUS:
        return False
    try:
        read_number(text)
    except CellError:
        return True
    return False
