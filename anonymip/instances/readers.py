"""Tables from files: CSV as text, Parquet as it is."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from anonymip.errors import InputError
from anonymip.instances.microdata import TableFormat


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
    if not file.is_file():
        raise InputError(f"there is no file {file}", remedy="Check the path")
    if file.suffix.lower() in (".parquet", ".pq"):
        try:
            return pd.read_parquet(file)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{file} cannot be read as Parquet: {error}", remedy="Check the file"
            ) from None
    return _read_text(file, table or TableFormat())


def _read_text(file: Path, table: TableFormat) -> pd.DataFrame:
    separator = table.separator.strip() or table.separator
    blanks = separator != table.separator
    try:
        with file.open(encoding=_encoding(table), newline="") as stream:
            rows = csv.reader(stream, delimiter=separator, skipinitialspace=blanks)
            first = next((row for row in rows if row), None)
    except (UnicodeDecodeError, LookupError):
        raise InputError(
            f"{file} is not text in the encoding {table.encoding}",
            remedy="Name its encoding in the schema",
        ) from None
    if first is None:
        raise InputError(f"{file} is empty", remedy="Give a table with at least k rows")
    names = list(first) if table.header else list(table.columns)
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(
            f"{file}: duplicate column names: {', '.join(repeated)}", remedy="Rename the columns"
        )
    if len(names) != len(first):
        raise InputError(
            f"{file} has {len(first)} columns, the schema names {len(names)}",
            remedy="Name every column in [table] columns",
        )
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
            encoding=_encoding(table),
            on_bad_lines="error",
        )
    except (pd.errors.ParserError, UnicodeDecodeError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read as a table: {str(error).strip()}",
            remedy="Check the separator, and that every line has the same number of cells",
        ) from None
    short = frame.isna().any(axis=1).to_numpy()
    if short.any():
        raise InputError(
            f"{file}: data row {int(short.argmax()) + 1} has fewer cells than the header",
            remedy="Give every line the same number of cells",
        )
    return frame


def _encoding(table: TableFormat) -> str:
    """UTF-8 files may start with a byte order mark."""
    return "utf-8-sig" if table.encoding.lower() in ("utf-8", "utf8") else table.encoding
