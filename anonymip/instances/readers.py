"""Tables from files and from data frames of other libraries.

CSV is read as text, Parquet as it is. Polars, Arrow tables and what else narwhals reads go through
Arrow, whose types tell whole numbers with gaps from fractions, and dates from moments; pandas' own
frames pass as they are, and results are given back as they came.
"""

from __future__ import annotations

import csv
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from anonymip.errors import InputError, argument
from anonymip.instances.table_format import TableFormat, reading_name


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
            remedy=f"Name its encoding, by {argument('encoding', ...)} or in a schema",
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


# What pandas has for whole numbers and truth values where some are missing: NumPy's columns would
# make fractions and objects of them.
_WITH_GAPS = {"bool": "boolean"} | {
    f"{sign.lower()}int{bits}": f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)
}


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
    """The kind of data frame that a table came as, and the types of its columns.

    `library`: the library's name, as narwhals has it. `types`: type of each column, as narwhals has
    it.
    """

    library: Any
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
