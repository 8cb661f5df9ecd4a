"""Tables from files: CSV as text, Parquet as it is."""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import pandas as pd

from anonymip.errors import InputError
from anonymip.instances.encodings import reading_name
from anonymip.instances.table_format import TableFormat


def read_table(path: str | Path, table: TableFormat | None = None) -> pd.DataFrame:
    """Read a CSV or Parquet file.

    All columns of a CSV come as text, exactly as written; the schema decides later which of them
    are numbers.

    Parameters
    ----------
    path
        A file; the ending ``.parquet`` or ``.pq`` means Parquet, anything else text.
    table
        Format of a text file.

    Raises
    ------
    InputError
        If the file is missing, empty, ragged, repeats a column name, or is not in the encoding.
    """
    file = Path(path)
    if not os.path.isfile(file):
        raise InputError(f"there is no file {file}", remedy="Check the path")
    if file.suffix.lower() in (".parquet", ".pq"):
        try:
            return pd.read_parquet(file)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{file} cannot be read as Parquet: {error}", remedy="Check the file"
            ) from None
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
            # Notes of pandas that describe another table: what is raised says nothing to people.
            raise InputError(
                f"{file} cannot be read as Parquet ({type(error).__name__})",
                remedy="Write it anew, without the notes of pandas that are in it",
            ) from None
    return _read_text(file, table or TableFormat())


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
        raise InputError(
            f"{file} cannot be read as a table: {str(error).strip()}",
            remedy="Check the separator and the quotes",
        ) from None
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
                raise InputError(f"{file} is empty", remedy="Give a table with at least k rows")
            names = _names(file, table, first)
            rows = 0 if table.header else 1
            for line in lines:
                if _is_blank(line, len(names)):
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
        raise InputError(
            f"{file} cannot be read: {error.strerror}", remedy="Check its permissions"
        ) from None
    except (UnicodeError, LookupError):
        raise InputError(
            f"{file} is not text in the encoding {table.encoding}",
            remedy="Name its encoding in the schema",
        ) from None
    except csv.Error as error:
        raise InputError(
            f"{file} cannot be read as a table: {error} (line {lines.line_num})",
            remedy="Check the separator and the quotes",
        ) from None
    finally:
        csv.field_size_limit(limit)
    return names, rows


def _names(file: Path, table: TableFormat, first: list[str]) -> list[str]:
    names = first if table.header else list(table.columns)
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(
            f"{file}: duplicate column names",
            remedy="Rename the columns, or say in the schema that there is no header",
            value=", ".join(repeated),
        )
    if len(names) != len(first):
        raise InputError(
            f"{file} has {len(first)} columns, the schema names {len(names)}",
            remedy="Name every column in [table] columns",
        )
    return names


def _is_blank(line: list[str], width: int) -> bool:
    """Return whether pandas skips the line."""
    return not line or (width > 1 and len(line) == 1 and not line[0].strip())
