"""Tables in batches: folders of Parquet or CSV files, here or at an address of a file system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import parquet

from anonymip.errors import InputError, argument
from anonymip.files import scratch_folder
from anonymip.instances.readers import PARQUET, read_table
from anonymip.instances.table_format import TableFormat
from anonymip.scale.engines import is_dask

#: Endings of files of a folder that are read as text.
_TEXT = (".csv", ".tsv", ".txt", ".data")
#: What the name of a folder says where a column has no value in the files below it.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


#: Columns and the value of each, of the type that it has in all files.
Partition = tuple[tuple[str, pa.Scalar], ...]


@dataclass(frozen=True)
class Batch:
    """Rows of one file that are read together.

    `file`: its path or address. `groups`: row groups of a Parquet file; None for a whole text file.
    `first`: row of the file that they begin with, from 0. `rows`: how many, -1 where only reading
    tells. `partition`: columns that have one value in all rows of the file, which the names of its
    folders say.
    """

    file: str
    groups: tuple[int, ...] | None
    first: int = 0
    rows: int = -1
    partition: Partition = ()

    def __str__(self) -> str:
        return self.file if not self.first else f"{self.file}, rows from {self.first + 1:,} on"


def file_system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, as fsspec knows it, and the path in it."""
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"the address {address} cannot be used: {error}",
            remedy="Install the package of its file system, or give a path",
        ) from None
    return system, path


def find_batches(source: str, most: int) -> list[Batch]:
    """Return the batches of a table in the order of its files.

    `source`: a file, or a folder whose files are the table, hidden ones and those that begin with
    an underscore left aside; folders named as ``country=DE`` say the value of a column. `most`:
    rows of a batch, where row groups allow it.

    Raises InputError if there is nothing, a file is no Parquet, or lacks a column of the first.
    """
    system, path = file_system(source)
    prefix = f"{source.partition('://')[0]}://" if "://" in source else ""
    files = [path]
    if system.isdir(path):
        found = (one for one in system.find(path) if not _is_hidden(one, path))
        files = sorted(one for one in found if _ending(one) in (*PARQUET, *_TEXT))
    if not files or not system.exists(files[0]):
        raise InputError(
            f"there is no table {source}", remedy="Name a file, or a folder of Parquet or CSV files"
        )
    batches: list[Batch] = []
    names: list[str] = []
    for file, partition in zip(files, _partitions(files, path, prefix), strict=True):
        told = prefix + file
        if _ending(file) not in PARQUET:
            batches.append(Batch(told, None, partition=partition))
            continue
        with _opened(told) as table:
            here = [str(name) for name in table.schema_arrow.names]
            sizes = [table.metadata.row_group(g).num_rows for g in range(table.num_row_groups)]
        here += _apart(told, here, partition)
        names = names or here
        refuse_lacking(told, names, here)
        batches += (replace(one, partition=partition) for one in _grouped(told, sizes, most))
    return batches


def _partitions(files: Sequence[str], folder: str, prefix: str) -> list[Partition]:
    """Return the columns that the folders of each file say, of one type in all files.

    Whole numbers are numbers where all values are written as these are, so that 01 stays a text.
    """
    found: list[dict[str, str | None]] = []
    for file in files:
        inner = PurePosixPath(file[len(folder) :]).parent.parts
        said = [part.partition("=") for part in inner if part.find("=") > 0]
        found.append(
            {
                unquote(name): None if value == _NO_VALUE else unquote(value)
                for name, _, value in said
            }
        )
        if list(found[-1]) != list(found[0]):
            raise InputError(
                f"{prefix}{file} lies in folders that name other columns than those of the first "
                "file, as country=DE does",
                remedy="Have all files in folders of the same columns",
            )
    kinds = {
        name: pa.int64() if all(map(_is_whole, (one[name] for one in found))) else pa.string()
        for name in found[0]
    }
    return [
        tuple((name, pa.scalar(value).cast(kinds[name])) for name, value in one.items())
        for one in found
    ]


def _is_whole(text: str | None) -> bool:
    return text is None or re.fullmatch(r"0|-?[1-9]\d{0,17}", text, re.ASCII) is not None


def _apart(file: str, names: Sequence[str], partition: Partition) -> list[str]:
    """Return the columns that folders say; refuse those that the file has itself."""
    for name, _ in partition:
        if name in names:
            raise InputError(
                f"{file} has a column {name!r}, which its folder names as well",
                remedy="Take it out of the file, or rename the folder",
            )
    return [name for name, _ in partition]


def refuse_lacking(file: str, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a file without a column that others have."""
    for name in wanted:
        if name not in there:
            raise InputError(
                f"{file} has no column {name!r}, which the first file has",
                remedy="Write the file anew, or take it out of the folder",
            )


def _is_hidden(file: str, folder: str) -> bool:
    inner = PurePosixPath(file[len(folder) :])
    return any(part.startswith((".", "_")) for part in inner.parts)


def _ending(file: str) -> str:
    return PurePosixPath(file).suffix.lower()


def _grouped(file: str, sizes: Sequence[int], most: int) -> Iterator[Batch]:
    """Yield batches of neighbouring row groups, of `most` rows at most but for single groups."""
    groups: list[int] = []
    first = rows = 0
    for group, size in enumerate(sizes):
        if groups and rows + size > most:
            yield Batch(file, tuple(groups), first, rows)
            first, rows, groups = first + rows, 0, []
        groups.append(group)
        rows += size
    if groups:
        yield Batch(file, tuple(groups), first, rows)


@contextmanager
def _opened(file: str) -> Iterator[parquet.ParquetFile]:
    """Open a Parquet file; whatever is wrong with it is said with its name."""
    try:
        system, path = file_system(file)
        with system.open(path, "rb") as stream:
            yield parquet.ParquetFile(stream)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        # Arrow's own text may quote what the file holds.
        raise InputError(
            f"{file} cannot be read as Parquet ({type(error).__name__})", remedy="Check the file"
        ) from None


def read_batch(batch: Batch, form: TableFormat, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of a batch as Arrow has them, without notes of other libraries.

    `form`: of text files. `columns`: those wanted; None for all.

    Raises InputError naming the file if it cannot be read or lacks one.
    """
    said = dict(batch.partition)
    if batch.groups is None:
        with _here(batch.file) as file:
            frame = read_table(file, form)
        _apart(batch.file, list(frame.columns), batch.partition)
        # All cells of a text file are texts.
        texts = {name: str(one.as_py()) if one.is_valid else "" for name, one in said.items()}
        frame = frame.assign(**texts)
        refuse_lacking(batch.file, columns or (), list(frame.columns))
        return pa.Table.from_pandas(frame[list(columns or frame.columns)], preserve_index=False)
    with _opened(batch.file) as file:
        wanted = None if columns is None else [name for name in columns if name not in said]
        table = file.read_row_groups(list(batch.groups), columns=wanted)
    for name, value in said.items():
        table = table.append_column(name, pa.repeat(value, table.num_rows))
    return _plain(table.select(list(columns)) if columns is not None else table)


@contextmanager
def _here(file: str) -> Iterator[str]:
    """Give the path of a file; of one at an address that of a copy, for its owner alone."""
    if "://" not in file:
        yield file
        return
    system, path = file_system(file)
    with TemporaryDirectory() as folder:
        copy = str(Path(folder) / PurePosixPath(path).name)
        try:
            system.get_file(path, copy)
            yield copy
        except OSError as error:
            raise InputError(
                f"{file} cannot be read ({type(error).__name__})", remedy="Check the file"
            ) from None
        except InputError as error:
            error.message = error.message.replace(copy, file)
            error.args = (str(error).replace(copy, file),)
            raise


def _plain(table: pa.Table) -> pa.Table:
    """Return a table without notes, whose coded columns hold their values."""
    kinds = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(kinds)).replace_schema_metadata()


def read_groups(places: Sequence[tuple[str, int]]) -> pa.Table:
    """Return the rows of single row groups of several files, in their order."""
    tables = []
    for file, group in places:
        with _opened(file) as opened:
            tables.append(opened.read_row_group(group))
    return pa.concat_tables(tables, promote_options="permissive")


@contextmanager
def source_of(table: Any, beside: Path) -> Iterator[str]:
    """Give the address or path of a table as a text.

    A Dask DataFrame is written as Parquet to a folder beside a place, while the context lasts, by
    whatever its own computations run on.
    """
    if not is_dask(table):
        if not isinstance(table, str | Path):
            raise InputError(
                f"the table is a {type(table).__name__}",
                remedy="Give a path, an address or a Dask DataFrame, or without "
                f"{argument('engine')} a data frame",
            )
        yield str(table)
        return
    with scratch_folder(beside) as folder:
        try:
            table.to_parquet(
                str(folder / "table"), write_index=False, name_function="part-{:06}.parquet".format
            )
        except pa.ArrowException as error:
            raise InputError(
                f"the Dask DataFrame cannot be written as Parquet ({type(error).__name__})",
                remedy="Give each column one type",
            ) from None
        yield str(folder / "table")
