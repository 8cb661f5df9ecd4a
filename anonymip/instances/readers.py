"""Tables from files, databases and data frames of other libraries.

CSV is read as text, and its format found from what it holds where it is asked for; Parquet, Excel
and what a database answers as they are. Polars, Arrow tables and what else narwhals reads go
through Arrow, whose types tell whole numbers with gaps from fractions, and dates from moments;
pandas' own frames pass as they are, and results are given back as they came.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.errors import InputError, argument, did_you_mean, missing_extra, no_file
from anonymip.instances.columns import is_date_text, is_number_text
from anonymip.instances.table_format import TableFormat, reading_name

PARQUET, EXCEL = (".parquet", ".pq"), (".xlsx", ".xlsm")  # endings of files that are no text
_SEPARATORS = ("\t", ";", "|", ",")  # candidates, those first that texts and numbers seldom hold
# Drivers of PostgreSQL's own library.
_LIBPQ = ("postgresql", "postgresql+psycopg", "postgresql+psycopg2")
_ERROR = object()  # what stands for a cell of an error
_LINES, _SIGNS = 1_000, 2_000_000  # lines, and characters, that the separator is found from


def is_address(source: object) -> bool:
    """Return whether a source of a table is the address of a database."""
    return isinstance(source, str) and "://" in source


def read_table(
    path: str | Path, table: TableFormat | None = None, *, query: str | None = None
) -> pd.DataFrame:
    """Read a CSV, Parquet or Excel file, or what a database answers.

    All columns of a CSV come as text, exactly as written; the schema decides later which of them
    are numbers. Of a workbook one sheet is read, its first row as the names; of formulas the
    values that were computed last, or none where that is an error. A column of a workbook that
    mixes numbers with texts is one of texts.

    Parameters
    ----------
    path
        A file; the ending ``.parquet`` or ``.pq`` means Parquet, ``.xlsx`` or ``.xlsm`` Excel,
        anything else text. Or the address of a database as SQLAlchemy has it:
        ``sqlite:///people.db``.
    table
        Format of a text file; the sheet of a workbook.
    query
        What the database is asked: ``"select ..."``. Nothing is written to it.

    Raises
    ------
    InputError
        If the file is missing, empty, ragged, repeats a column name, or is not in the encoding; if
        the database does not answer; if the package that reads it is not installed. Passwords of
        addresses stand in no message.
    """
    sheet = None if table is None else table.sheet
    refuse_sheet(path, sheet)
    if is_address(path):
        return _read_query(str(path), query)
    if query is not None:
        raise InputError(
            f"{argument('query')} is given, and {path} is no address of a database",
            remedy="Give an address such as sqlite:///people.db, or leave the query out",
        )
    file = Path(path)
    if not os.path.isfile(file):
        raise no_file(file)
    if file.suffix.lower() in EXCEL:
        return _read_excel(file, sheet)
    if file.suffix.lower() in PARQUET:
        try:
            return pd.read_parquet(file)
        except (OSError, ValueError) as error:
            raise _unreadable(file, f" as Parquet: {error}", "Check the file") from None
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
            # Notes of pandas that describe another table: what is raised says nothing to people.
            remedy = "Write it anew, without the notes of pandas that are in it"
            raise _unreadable(file, f" as Parquet ({type(error).__name__})", remedy) from None
    return _read_text(file, table or TableFormat())


def _unreadable(
    file: str | Path, why: str, remedy: str = "Check the separator and the quotes"
) -> InputError:
    return InputError(f"{file} cannot be read{why}", remedy=remedy)


def refuse_sheet(path: str | Path, sheet: str | int | None) -> None:
    """Refuse a sheet of what is no workbook."""
    if sheet is not None and (is_address(path) or Path(path).suffix.lower() not in EXCEL):
        raise InputError(
            f"{argument('sheet')} is given, and the table is no workbook",
            remedy=f"Give a file {' or '.join(EXCEL)}, or leave the sheet out",
        )


def _read_excel(file: Path, asked: str | int | None) -> pd.DataFrame:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_extra("excel", "Excel files are read by openpyxl") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is lost if it were written again
            book = load_workbook(file, read_only=True, data_only=True)
            place = _place_of_sheet(file, asked, [sheet.title for sheet in book.worksheets])
            sheet = book.worksheets[place]
            sheet.reset_dimensions()
            rows = [[_value(cell) for cell in row] for row in sheet.iter_rows()]
            book.close()
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 a damaged file raises anything
        why = f" as Excel ({type(error).__name__})"
        raise _unreadable(file, why, "Check the file") from None
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise _empty(file)
    width = max(at + 1 for row in rows for at, cell in enumerate(row) if cell is not None)
    table = [
        [None if cell is _ERROR else cell for cell in (row + [None] * width)[:width]]
        for row in rows
    ]
    names = [str(name) if name is not None else "" for name in table[0]]
    if "" in names:
        raise InputError(
            f"{file}: the column at position {names.index('') + 1} has no name",
            remedy="Name every column in the first row of the sheet, and leave no other cells "
            f"beside the table; {argument('sheet', ...)} says which sheet is read",
        )
    _refuse_repeated(file, names)
    columns = zip(*table[1:], strict=True) if len(table) > 1 else ([] for _ in names)
    found = {name: _of_cells(list(cells)) for name, cells in zip(names, columns, strict=True)}
    return pd.DataFrame(found, index=range(len(table) - 1))


def _value(cell: Any) -> Any:
    """Return what a cell of a workbook holds: an error such as #N/A is none, but has a place."""
    return _ERROR if cell.data_type == "e" else cell.value


def _place_of_sheet(file: Path, asked: str | int | None, names: list[str]) -> int:
    """Return the place of the sheet that is asked for: its name, else its number from 1."""
    if asked is None:
        return 0
    text = str(asked)
    if isinstance(asked, str) and text in names:
        return names.index(text)
    if text.isdecimal() and 1 <= int(text) <= len(names):
        return int(text) - 1
    listed = ", ".join(f"{place} {name!r}" for place, name in enumerate(names, start=1))
    raise InputError(
        f"{file} has no sheet {text!r}", remedy=did_you_mean(text, names, f"There are {listed}")
    )


def _of_cells(cells: list[Any]) -> pd.Series:
    """Return a column of a workbook: of one type, or of the texts of its cells."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and kinds:
        cells = [int(x) if isinstance(x, float) and x.is_integer() else x for x in cells]
        # Larger ones are none to a spreadsheet, which counts in floating point.
        is_whole = all(isinstance(x, int) and abs(x) < 2**53 for x in cells if x is not None)
        gaps = None in cells
        return pd.Series(cells, dtype=("Int64" if gaps else "int64") if is_whole else "float64")
    if kinds == {datetime}:
        return pd.Series(pd.to_datetime(pd.Series(cells)))
    if not kinds <= {str} and kinds != {bool}:
        cells = [None if cell is None else _cell_text(cell) for cell in cells]
    return pd.Series(cells, dtype=object)


def _cell_text(cell: object) -> str:
    return repr(cell + 0.0).removesuffix(".0") if isinstance(cell, float) else str(cell)


def _read_query(address: str, query: str | None) -> pd.DataFrame:
    """Return what a database answers, in a transaction that is never committed."""
    shown = without_password(address)
    if query is None:
        raise InputError(
            f"{shown} is the address of a database, and nothing is asked of it",
            remedy=f"Say what to read, by {argument('query', ...)}: select ...",
        )
    try:
        import sqlalchemy
    except ImportError:
        raise missing_extra("sql", "databases are read by SQLAlchemy") from None
    url = sqlalchemy.URL.create("none")
    try:
        url = sqlalchemy.make_url(address)
        file = (url.database or "") if url.get_backend_name() == "sqlite" else ""
        in_memory = not file or file == ":memory:" or file.startswith("file:")
        if not in_memory and not os.path.isfile(file):
            raise no_file(file)
        asked: dict[str, str] = {}
        if url.drivername in _LIBPQ and "client_encoding" not in url.query:
            # A database without an encoding, SQL_ASCII, sends bytes unless one is asked for.
            asked["client_encoding"] = "utf8"
        engine = sqlalchemy.create_engine(url, connect_args=asked)
        try:
            # Without parameters a sign of percent is one, whatever the driver.
            with engine.connect().execution_options(no_parameters=True) as connection:
                frame = pd.read_sql_query(query, connection, dtype_backend="numpy_nullable")
        finally:
            engine.dispose()
    except ModuleNotFoundError as error:
        raise InputError(
            f"{shown} is read by {error.name}, which is not installed",
            remedy=f"Install it: pip install {error.name}",
        ) from None
    except (sqlalchemy.exc.SQLAlchemyError, pd.errors.DatabaseError) as error:
        # Its own text holds the query, and may hold values of the table.
        told = getattr(error, "orig", None) or error.__cause__ or error
        raise InputError(
            f"{shown} does not answer ({type(told).__name__})",
            remedy=f"Check address and query; {argument('show_values', option='--show-values')} "
            "shows what the database says",
            value=_without(str(told), [url.password or "", *map(str, url.query.values())]),
        ) from None
    names = [str(name) for name in frame.columns]
    _refuse_repeated(shown, names)
    return frame.set_axis(names, axis=1)


def _without(told: str, secrets: list[str]) -> str:
    for secret in filter(None, secrets):
        told = told.replace(secret, "***")
    return told


def without_password(address: str) -> str:
    """Return the address of a database without what may be secret in it."""
    scheme, _, rest = address.partition("://")
    before, at, after = rest.rpartition("@")
    if "@" in before or "?" in before:
        return f"{scheme}://***"  # where the password ends is not known
    user, colon, _ = before.partition(":")
    place, query, _ = after.partition("?")
    return f"{scheme}://{user}{colon and ':***'}{at}{place}{query and '?***'}"


def _read_text(file: Path, table: TableFormat) -> pd.DataFrame:
    separator = table.separator.strip() or table.separator
    blanks = separator != table.separator
    names, rows = _survey(file, table, separator, blanks)
    try:
        frame = pd.read_csv(
            file,
            sep=separator,
            skipinitialspace=blanks,
            header=0 if table.header else None,
            names=names,
            index_col=False,
            dtype=str,
            keep_default_na=False,
            na_filter=False,
            encoding=reading_name(table.encoding),
            on_bad_lines="error",
        )
    except (pd.errors.ParserError, ValueError) as error:
        raise _unreadable(file, f" as a table: {str(error).strip()}") from None
    if len(frame) != rows:
        raise InputError(
            f"{file} has {rows} or {len(frame)} rows, depending on how its blank lines are read",
            remedy="Remove lines of blanks and of empty quotes",
        )
    return frame


def _survey(file: Path, table: TableFormat, separator: str, blanks: bool) -> tuple[list[str], int]:
    """Return the names of the columns and the number of rows, all of which have one width.

    pandas would cut rows that are too long, if the first one is, and fill up short ones.
    """
    limit = csv.field_size_limit(sys.maxsize)
    try:
        with file.open(encoding=reading_name(table.encoding), newline="") as stream:
            lines = csv.reader(stream, delimiter=separator, skipinitialspace=blanks, strict=True)
            first = next((line for line in lines if line), None)
            if first is None:
                raise _empty(file)
            names = _names(file, table, first)
            rows = 0 if table.header else 1
            for line in lines:
                # pandas skips such lines.
                if not line or (len(names) > 1 and len(line) == 1 and not line[0].strip()):
                    continue
                rows += 1
                if len(line) != len(names):
                    raise InputError(
                        f"{file}: data row {rows} has {len(line)} cells, the table has "
                        f"{len(names)} columns",
                        remedy="Check the separator, and that every line has the same number of "
                        "cells",
                    )
    except OSError as error:
        raise _unreadable(file, f": {error.strerror}", "Check its permissions") from None
    except LookupError:
        why = f": {table.encoding!r} is no encoding of texts"
        raise _unreadable(file, why, "Write utf-8, cp1252 or another") from None
    except UnicodeError:
        raise InputError(
            f"{file} is not text in the encoding {table.encoding}",
            remedy=f"Name its encoding, by {argument('encoding', ...)}, in a schema, or as "
            "TableFormat(encoding=...)",
        ) from None
    except csv.Error as error:
        raise _unreadable(file, f" as a table: {error} (line {lines.line_num})") from None
    finally:
        csv.field_size_limit(limit)
    return names, rows


def _names(file: Path, table: TableFormat, first: list[str]) -> list[str]:
    names = first if table.header else list(table.columns)
    _refuse_repeated(file, names)
    if len(names) != len(first):
        raise InputError(
            f"{file} has {len(first)} columns, the schema names {len(names)}",
            remedy="Name every column in [table] columns",
        )
    return names


def _empty(file: Path) -> InputError:
    return InputError(f"{file} is empty", remedy="Give a table with at least k rows")


def _refuse_repeated(file: Path | str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(
            f"{file}: duplicate column names",
            remedy="Rename the columns, or say in the schema that there is no header",
            value=", ".join(repeated),
        )


# What pandas has for whole numbers and truth values where some are missing: NumPy's columns would
# make fractions and objects of them.
_WITH_GAPS = {"bool": "boolean"} | {
    f"{sign.lower()}int{bits}": f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)
}


def detect_format(
    path: str | Path, separator: str | None = None, encoding: str | None = None
) -> TableFormat:
    """Return how a text file is probably written.

    `separator, encoding`: what is known of it; None is found. Returns: encoding, separator and
    whether there is a header line: columns without one are called ``column_1`` and so on. Decimal
    mark and missing values are left to :func:`anonymip.inspect`, which looks at the columns. Raises
    InputError if the file cannot be read. Whatever it holds, some format is returned.

    The separator is the first of tab, semicolon, bar and comma that cuts the first lines into as
    many cells each, else the one that does so most often. There is no header where a first line has
    numbers or dates in all columns that have nothing else below; or, if there are no such columns,
    where half of its cells come again below, each in its column. Complexity: O(size of the file).
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, f": {error.strerror}", "Check the path") from None
    form = TableFormat().written(separator=separator, encoding=encoding or _encoding_of(raw))
    try:
        text = raw.decode(form.encoding, errors="replace").removeprefix("\ufeff")
    except LookupError:
        return form
    if len(text) > _SIGNS:
        text = text[: text.rfind("\n", 0, _SIGNS) + 1]
    known = () if separator is None else (form.separator.strip() or form.separator,)
    sign, lines = _separated(text, known or _SEPARATORS)
    others = [cell for line in lines for cell in line[1:]]
    if sign != "\t" and others and all(cell[:1] == " " for cell in others):
        sign += " "
        lines = [[cell.strip() for cell in line] for line in lines]
    columns: tuple[str, ...] = ()
    if not _has_header(lines):
        columns = tuple(f"column_{place}" for place in range(1, len(lines[0]) + 1))
    return TableFormat(separator or sign, form.encoding, not columns, columns)


def _encoding_of(raw: bytes) -> str:
    """Return an encoding in which the bytes are text: of the marks at the beginning, or tried."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    # Every other byte of what a Western table holds is zero without the mark, too.
    halves = [raw[start:2_000:2] for start in (0, 1)]
    zeros = [half.count(0) > len(half) / 2 for half in halves]
    if any(zeros) and len(raw) % 2 == 0:
        return "utf-16-be" if zeros[0] else "utf-16-le"
    for name in ("utf-8", "cp1252"):
        try:
            raw.decode(name)
        except UnicodeDecodeError:
            continue
        return name
    return "latin-1"


def _separated(text: str, signs: tuple[str, ...]) -> tuple[str, list[list[str]]]:
    """Return the separator, and the first lines in cells."""
    best, found = 0.0, (signs[-1], [[text[:1]]])
    for sign in signs:
        try:
            cut = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
            lines = [line for line in islice(cut, _LINES) if line]
        except csv.Error:
            continue
        widths = Counter(map(len, lines))
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        alike = count / len(lines) if width > 1 else 0.0
        # Of a table with one column every line has one cell.
        if alike > best or (sign == signs[-1] and not best and lines):
            best, found = alike, (sign, lines)
        if best == 1:
            break
    return found


def _has_header(lines: Sequence[Sequence[str]]) -> bool:
    first, rest = lines[0], lines[1:]
    if not rest:
        return True
    below = [
        [line[place] for line in rest if place < len(line) and line[place].strip()]
        for place in range(len(first))
    ]
    plain = [place for place, cells in enumerate(below) if cells and all(map(_is_value, cells))]
    if plain:
        heads = [first[place] for place in plain if first[place].strip()]
        return not (heads and all(map(_is_value, heads))) or _is_sequence(heads)
    again = sum(cell in cells for cell, cells in zip(first, below, strict=True))
    return 2 * again < len(first) or first in rest


def _is_value(text: str) -> bool:
    """Return whether a text is a number or a date, which no name of a column is."""
    stripped = text.strip()
    return is_number_text(stripped.replace(",", ".")) or is_date_text(stripped)


def _is_sequence(heads: Iterable[str]) -> bool:
    """Return whether names are years, or other numbers that follow each other."""
    numbers = [int(text) if text.strip().isdecimal() else None for text in heads]
    known = [number for number in numbers if number is not None]
    return len(known) == len(numbers) > 1 and all(
        after - before == 1 for before, after in pairwise(known)
    )


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a data frame of any library as pandas'; one of pandas itself as it is.

    Raises InputError if it is no data frame, or one that has not been computed yet.
    """
    if isinstance(frame, pd.DataFrame):
        return frame
    table = _arrow(frame)
    columns = [_column(column) for column in table.columns]
    named = dict(zip(table.column_names, columns, strict=True))
    return pd.DataFrame(named, index=range(table.num_rows))


def _arrow(frame: Any) -> Any:
    """Return a data frame as an Arrow table."""
    import narwhals as nw
    import pyarrow as pa

    try:
        known = nw.from_native(frame, pass_through=True)
        if isinstance(known, nw.DataFrame):
            for name, kind in known.schema.items():
                if kind == nw.Object:  # Arrow would hold where in memory they lie
                    raise InputError(
                        f"column {name!r} holds objects of Python",
                        remedy="Write them as texts, or leave the column out of the table",
                    )
            return known.to_arrow()
    except nw.exceptions.DuplicateError:
        # The error's own text names columns, which without a header are values.
        raise InputError("duplicate column names", remedy="Rename the columns") from None
    except InputError:
        raise
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
        # And this one may quote values.
        raise InputError(
            f"frame is a {type(frame).__name__} with a column that Arrow has no type for "
            f"({type(error).__name__})",
            remedy="Write the column as text",
        ) from error
    if isinstance(known, nw.LazyFrame):
        raise InputError(
            f"frame is a {type(frame).__name__}, which is not computed yet",
            remedy="Give frame.collect(), or a data frame",
        )
    raise InputError(
        f"frame is a {type(frame).__name__}",
        remedy="Give a data frame of pandas or polars, or an Arrow table",
    )


def _column(column: Any) -> pd.Series:
    with_gaps = _WITH_GAPS.get(str(column.type)) if column.null_count else None
    if with_gaps is not None:
        kind = pd.api.types.pandas_dtype(with_gaps)
        return column.to_pandas(types_mapper=lambda _: kind)  # type: ignore[no-any-return]
    return column.to_pandas()  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class FrameKind:
    """The kind of data frame that a table came as, and the types of its columns."""

    library: Any  # as narwhals has them
    types: dict[str, Any]

    @classmethod
    def of(cls, frame: Any) -> FrameKind | None:
        """Return the kind of a data frame; None of pandas' own, which need none."""
        if isinstance(frame, pd.DataFrame):
            return None
        import narwhals as nw

        known = nw.from_native(frame, eager_only=True)
        return cls(known.implementation.value, dict(known.schema))

    def give_back(self, frame: pd.DataFrame, untouched: tuple[str, ...]) -> Any:
        """Return a frame of pandas as this kind.

        `frame`: what to give back; its row labels are left out. `untouched`: columns that hold
        values of the original: they get the types that they had. Lists of categories are not given
        back, which may hold those of other records.
        """
        import narwhals as nw
        import pyarrow as pa

        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
        given = nw.from_arrow(table, backend=self.library)
        kinds: dict[str, Any] = {
            name: kind if kind.is_numeric() else nw.String() for name, kind in given.schema.items()
        }
        for name in untouched:
            kind = self.types[name]
            kind = nw.Categorical() if kind == nw.Enum else kind
            # Of a type that no file holds, such as durations, the texts are published.
            as_text = given.schema[name] == nw.String and kind not in (nw.String, nw.Categorical)
            kinds[name] = given.schema[name] if as_text or kind == nw.Unknown else kind
        casts = [nw.col(name).cast(kind) for name, kind in kinds.items()]
        return given.with_columns(*casts).to_native()
