"""Tables as columns of text, from files or a data frame, marks before formulas taken off."""

from __future__ import annotations

import codecs
import csv
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import InputError, missing_extra, no_file
from anonymip.privacy.arrays import Flags, Ints
from anonymip.privacy.reading.cell_grammar import CellError, number_text, read_number, spells_number

_PARQUET, _EXCEL = (".parquet", ".pq"), (".xlsx", ".xlsm")


class MalformedTable(InputError):
    """A file is there but is not a table: ragged lines, repeated names, no header."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """One column, every value as text.

    `texts`: (n,) object array of str; null is the empty text. `null`: (n,) bool, where the source
    holds no value at all (never in a CSV file). `nature`: what the source held: ``"text"``,
    ``"number"``, ``"single"`` (numbers in single precision) or ``"time"``.
    """

    texts: NDArray[np.object_]
    null: Flags
    nature: str = "text"


@dataclass(frozen=True, eq=False)
class TextTable:
    """A table of n rows whose columns are texts, by name in the order of the source."""

    columns: dict[str, TextColumn]
    rows: int
    has_labels: bool = False  # whether a data frame has row labels other than 0, 1, ..., n - 1
    #: Whether a data frame or a Parquet file carries notes of pandas beside the table.
    has_notes: bool = False
    labels: pd.Index | None = None  # the row labels of a data frame


def read_table(
    source: str | Path | Any,
    *,
    separator: str = ",",
    encoding: str = "utf-8",
    names: Sequence[str] | None = None,
    sheet: str | int | None = None,
) -> TextTable:
    """Read a table: a CSV, Parquet or Excel file, or a data frame of any library of narwhals.

    `separator`: one character; with a blank behind it, blanks after each separator are skipped.
    `names`: column names of a CSV file without header. `sheet`: of an Excel file: its name, or its
    number from 1; None for the first. Raises MalformedTable if what is read is not a rectangular
    table with unique column names.
    """
    if not isinstance(source, str | os.PathLike):
        return _from_frame(source if isinstance(source, pd.DataFrame) else _in_pandas(source))
    path = Path(source)
    if not os.path.isfile(path):
        raise no_file(path)
    if path.suffix.lower() in _PARQUET:
        try:
            return _read_parquet(path)
        except (
            *(OSError, ValueError, ArithmeticError, AttributeError, LookupError),
            *(RuntimeError, TypeError),
        ) as error:
            raise InputError(
                f"{path} is not a readable Parquet file", remedy="Check the file"
            ) from error
    if path.suffix.lower() in _EXCEL:
        return _from_excel(path, sheet)
    return _from_csv(path, separator, encoding, names)


def distinct(texts: NDArray[np.object_]) -> tuple[list[str], Ints]:
    """Return the distinct texts in order of appearance and the (n,) index into them."""
    index, values = pd.factorize(texts)
    return [str(value) for value in values], index.astype(np.int64)


def respelled(texts: NDArray[np.object_], spell: Callable[[str], str]) -> NDArray[np.object_]:
    """Return texts as they are spelled anew; each distinct one is spelled once."""
    values, index = distinct(texts)
    return np.array([spell(value) for value in values], dtype=object)[index]


def first_wrong(column: TextColumn, wrong: Callable[[str], str]) -> list[tuple[int, str]]:
    """Return the first row, from 1, whose text is wrong, and why; `wrong` says it, else nothing."""
    said = respelled(column.texts, wrong)
    return [(row + 1, said[row]) for row in np.flatnonzero(said != "")[:1].tolist()]


def pointed(column: TextColumn, decimal: str) -> NDArray[np.object_]:
    """Return the texts of a column of numbers with points for the decimal mark of a table.

    A text that has a point already stays no number.
    """
    if decimal != "," or column.nature != "text":
        return column.texts
    return respelled(column.texts, lambda text: "," if "." in text else text.replace(",", "."))


def aligned(
    original: TextColumn, released: TextColumn
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Return the texts of two columns, comparable although only one source may be typed.

    A number of a data frame and its text in a CSV file are one value; so are moments. Two text
    columns are compared letter by letter.
    """
    # Two numbers may be spelled differently where one lay in a sheet: 35 and 35.0.
    if original.nature == released.nature != "number":
        return original.texts, released.texts
    natures = {original.nature, released.nature}
    if "time" in natures:
        return _respelled_times(original.texts), _respelled_times(released.texts)
    single = "single" in natures
    return respelled_numbers(original.texts, single), respelled_numbers(released.texts, single)


def paired_codes(one: TextColumn, other: TextColumn) -> tuple[Ints, Ints]:
    """Return codes of the values of two columns: equal codes, equal values.

    Values are compared as :func:`aligned` has them.
    """
    codes = distinct(np.concatenate(aligned(one, other)))[1]
    return codes[: len(one.texts)], codes[len(one.texts) :]


def _read_parquet(path: Path) -> TextTable:
    """Return a Parquet file; columns that pandas makes an index of are returned as labels."""
    from pyarrow import parquet

    metadata = parquet.read_schema(path).metadata or {}
    notes = json.loads(metadata.get(b"pandas", b"{}"))
    named = [label for label in notes.get("index_columns", []) if isinstance(label, str)]
    table = _from_frame(pd.read_parquet(path))
    return replace(
        table,
        has_labels=table.has_labels or bool(named),
        labels=None,
        has_notes=table.has_notes or bool(notes.get("attributes")),
    )


def _from_excel(path: Path, asked: str | int | None) -> TextTable:
    """Return a sheet of a workbook, read by pandas; empty cells and errors are null."""
    try:
        with pd.ExcelFile(path) as book:
            names = [str(name) for name in book.sheet_names]
            place = 0 if asked is None else _place(path, asked, names)
            sheet = pd.read_excel(
                book, sheet_name=place, header=None, dtype=object, na_filter=False
            )
    except ImportError:
        raise missing_extra("excel", "Excel files are read by openpyxl") from None
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} is not a readable Excel file", remedy="Check the file") from error
    if not len(sheet):
        raise MalformedTable(f"{path} is empty", remedy="Give a table with a header")
    header = [str(name) for name in sheet.iloc[0]]
    _refuse_repeated(header)
    rows = sheet.iloc[1:].reset_index(drop=True)
    columns = {name: _of_cells(rows.iloc[:, place]) for place, name in enumerate(header)}
    return TextTable(columns, len(rows))


def _place(path: Path, asked: str | int, names: list[str]) -> int:
    if asked in names:
        return names.index(str(asked))
    if not str(asked).isdecimal() or not 0 < int(asked) <= len(names):
        raise InputError(f"{path} has no sheet {asked!r}", remedy=f"There are {', '.join(names)}")
    return int(asked) - 1


def _of_cells(cells: pd.Series) -> TextColumn:
    """Return a column of a sheet: pandas gives whole numbers as such, and nothing as no text."""
    cells = cells.where(cells.notna(), "")  # not a number, to pandas, is an error such as #N/A
    null = np.array([isinstance(cell, str) and cell == "" for cell in cells], np.bool_)
    kinds = {type(cell) for cell, absent in zip(cells, null, strict=True) if not absent}
    nature = "text"
    if kinds and kinds <= {int, float}:
        nature = "number"
        # What pandas gives as a long whole number may be one in floating point.
        if float in kinds or any(cell != "" and abs(cell) >= 2**53 for cell in cells):
            cells = cells.map(lambda cell: cell if cell == "" else float(cell))
    elif kinds and all(issubclass(kind, datetime) for kind in kinds):
        nature = "time"
    return TextColumn(np.array([str(cell) for cell in cells], dtype=object), null, nature)


def _in_pandas(frame: Any) -> pd.DataFrame:
    """Return the frame of another library with its own types, which pandas has by way of Arrow."""
    import narwhals as nw

    known = nw.from_native(frame, pass_through=True)
    if not isinstance(known, nw.DataFrame):
        raise InputError(
            f"a {type(frame).__name__} is no table",
            remedy="Give the path of a file, or a data frame",
        )
    import pyarrow as pa

    # pandas' own columns of these have no gaps: else numbers get points.
    exact = (pa.types.is_integer, pa.types.is_boolean)
    table: pd.DataFrame = known.to_arrow().to_pandas(
        types_mapper=lambda kind: pd.ArrowDtype(kind) if any(is_(kind) for is_ in exact) else None
    )
    return table


def _from_frame(frame: pd.DataFrame) -> TextTable:
    names = [str(name) for name in frame.columns]
    _refuse_repeated(names)
    columns = {name: _text_column(frame.iloc[:, place]) for place, name in enumerate(names)}
    plain = frame.index.equals(pd.RangeIndex(len(frame))) and frame.index.name is None
    return TextTable(
        columns, len(frame), has_labels=not plain, has_notes=bool(frame.attrs), labels=frame.index
    )


def _text_column(series: pd.Series) -> TextColumn:
    null = series.isna().to_numpy(dtype=bool)
    nature = "text"
    if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        nature = "single" if series.dtype == np.float32 else "number"
    elif pd.api.types.is_datetime64_any_dtype(series):
        nature = "time"
    if isinstance(series.dtype, pd.StringDtype):
        return TextColumn(series.to_numpy(object, na_value=""), null, nature)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu":
        # Of whole numbers each is written once.
        place, values = pd.factorize(series)
        texts = np.array([str(value) for value in values.tolist()], dtype=object)[place]
    else:
        shown = ["" if absent else str(v) for v, absent in zip(series, null, strict=True)]
        texts = np.array(shown, dtype=object)
    return TextColumn(texts, null, nature)


@contextmanager
def _long_fields() -> Iterator[None]:
    """Permit cells of any length: a set may list thousands of values."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _from_csv(path: Path, separator: str, encoding: str, names: Sequence[str] | None) -> TextTable:
    sign = separator.strip(" ") or " "
    if len(sign) != 1:
        raise InputError(
            f"separator {separator!r} is not one character", remedy="Give one character"
        )
    skip = sign != separator and separator.strip(" ") != ""
    try:
        # A UTF-8 file may start with a byte order mark.
        plain = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with path.open(encoding=plain, newline="") as stream, _long_fields():
            lines = csv.reader(stream, delimiter=sign, skipinitialspace=skip, strict=True)
            header = names if names is not None else next((line for line in lines if line), None)
            if header is None:
                raise MalformedTable(f"{path} is empty", remedy="Give a table with a header")
            _refuse_repeated(header)
            cells = _rectangular(path, lines, len(header))
    except MalformedTable:
        raise
    except (LookupError, ValueError):
        raise InputError(
            f"{path} is not text in the encoding {encoding!r}", remedy="Name its encoding"
        ) from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", remedy="Check the file"
        ) from None
    except csv.Error as error:
        raise MalformedTable(
            f"{path} is not a table: {error}", remedy="Check its separator and its quotes"
        ) from None
    rows = len(cells) // len(header)
    grid = np.array(cells, dtype=object).reshape(rows, len(header))
    present = np.zeros(rows, dtype=bool)
    columns = {name: TextColumn(grid[:, place], present) for place, name in enumerate(header)}
    return TextTable(columns, rows)


def _rectangular(path: Path, lines: Iterator[list[str]], width: int) -> list[str]:
    """Return all cells row by row; equal texts share one object to keep memory small."""
    shared: dict[str, str] = {}
    cells: list[str] = []
    row = 0
    for line in lines:
        if not line:
            continue
        row += 1
        if len(line) != width:
            raise MalformedTable(
                f"{path}: row {row} has {len(line)} cells, the header {width}",
                remedy="Check the separator and the quotes of that row",
            )
        cells += [shared.setdefault(cell, cell) for cell in line]
    return cells


def _refuse_repeated(names: Sequence[str]) -> None:
    places = [place + 1 for place, name in enumerate(names) if names.index(name) < place]
    if places:
        # The names stay out of the message: in a file without header they are values.
        raise MalformedTable(
            f"column {places[0]} bears the name of an earlier column",
            remedy="Rename the columns, or say that the file has no header",
        )


def respelled_numbers(texts: NDArray[np.object_], single: bool) -> NDArray[np.object_]:
    """Return texts with one spelling for each number; `single`: of single precision."""
    return respelled(texts, lambda text: _respelled_number(text, single))


def _respelled_number(text: str, single: bool) -> str:
    try:
        number = read_number(text)
    except CellError:
        return text
    if single:
        # Files show the short text of a single, data frames widen it: 0.1 and 0.10000000149.
        return number_text(float(np.float32(number)))
    digits = text.strip().lstrip("+-")
    if not digits.isdigit():
        return number_text(number)
    # Digits of long whole numbers would be lost in floating point.
    return ("-" if number < 0 else "") + (digits.lstrip("0") or "0")


def _respelled_times(texts: NDArray[np.object_]) -> NDArray[np.object_]:
    times = pd.to_datetime(
        pd.Series(texts, dtype=object), errors="coerce", format="ISO8601", utc=True
    )
    unread = times.isna().to_numpy(dtype=bool)
    spelled = [
        text if bad else time.isoformat()
        for text, time, bad in zip(texts, times, unread, strict=True)
    ]
    return np.array(spelled, dtype=object)


_MARK = "'"
_DANGEROUS = frozenset("=+-@\t\r\n")


def without_marks(table: TextTable) -> TextTable:
    """Return a table whose cells and names of columns lose the apostrophe before them."""
    columns = {
        _without_mark(name): replace(column, texts=respelled(column.texts, _without_mark))
        for name, column in table.columns.items()
    }
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
    problems += [
        f"The column at position {place}, published row {row}: the cell {why}."
        for place, column in enumerate(table.columns.values(), start=1)
        for row, why in first_wrong(column, _wrong)
    ]
    return problems


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
    return len(text) > 1 and text[0] in _DANGEROUS and not spells_number(text)
