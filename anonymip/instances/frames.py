"""Data frames of other libraries: read as pandas', and given back as they came.

Polars, Arrow tables and what else narwhals reads go through Arrow, whose types tell whole numbers
with gaps from fractions, and dates from moments. pandas' own frames pass as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from anonymip.errors import InputError

# What pandas has for whole numbers and truth values where some are missing: NumPy's columns would
# make fractions and objects of them.
_WITH_GAPS = {
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "uint8": "UInt8",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "bool": "boolean",
}


def as_pandas(frame: Any) -> pd.DataFrame:
    """Return a data frame of any library as pandas'; one of pandas itself as it is.

    Raises
    ------
    InputError
        If it is no data frame, or one that has not been computed yet.
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

    Parameters
    ----------
    library
        The library's name, as narwhals has it.
    types
        Type of each column, as narwhals has it.
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

        Parameters
        ----------
        frame
            What to give back; its row labels are left out.
        untouched
            Columns that hold values of the original: they get the types that they had. Lists of
            categories are not given back, which may hold those of other records.
        """
        import narwhals as nw
        import pyarrow as pa

        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
        given = nw.from_arrow(table, backend=self.library)
        kinds: dict[str, Any] = dict.fromkeys(given.columns, nw.String())
        for name in untouched:
            kind = self.types[name]
            kind = nw.Categorical() if kind == nw.Enum else kind
            # Of a type that no file holds, such as durations, the texts are published.
            as_text = given.schema[name] == nw.String and kind not in (nw.String, nw.Categorical)
            kinds[name] = given.schema[name] if as_text or kind == nw.Unknown else kind
        casts = [nw.col(name).cast(kind) for name, kind in kinds.items()]
        return given.with_columns(*casts).to_native()
