"""Files of a table or a release by parts: here or at an address, read piece by piece."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from anonymip.errors import InputError

_BATCH = 250_000  # rows that are read at a time, where row groups allow it
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # what a folder is named where a column has no value
_PARQUET, _TEXT = (".parquet", ".pq"), (".csv", ".tsv", ".txt", ".data")

#: A file, the row groups of it that are read together (None of a text file), and the columns whose
#: value is said by the names of its folders.
Piece = tuple[str, tuple[int, ...] | None, dict[str, str | int | None]]


def pieces_of(original: str) -> list[Piece]:
    """Return the pieces of the original."""
    import fsspec

    system, path = fsspec.core.url_to_fs(original)
    prefix = f"{original.partition('://')[0]}://" if "://" in original else ""
    files = [path]
    if system.isdir(path):
        inner = [one for one in system.find(path) if not _hidden(one[len(path) :])]
        files = sorted(one for one in inner if Path(one).suffix.lower() in (*_PARQUET, *_TEXT))
    if not files or not system.exists(files[0]):
        raise InputError(
            f"there is no table {original}",
            remedy="Name a file, or a folder of Parquet or CSV files",
        )
    pieces: list[Piece] = []
    for file, said in zip(
        files, _said_by_folders([one[len(path) :] for one in files]), strict=True
    ):
        if Path(file).suffix.lower() not in _PARQUET:
            pieces.append((prefix + file, None, said))
            continue
        stored = read_parquet(prefix + file, attrgetter("metadata"))
        sizes = [stored.row_group(group).num_rows for group in range(stored.num_row_groups)]
        groups: list[int] = []
        for group, size in enumerate(sizes):
            if groups and sum(sizes[one] for one in groups) + size > _BATCH:
                pieces.append((prefix + file, tuple(groups), said))
                groups = []
            groups.append(group)
        pieces.append((prefix + file, tuple(groups), said))
    return pieces


def _said_by_folders(files: Sequence[str]) -> list[dict[str, str | int | None]]:
    """Return by file what its folders say of columns, such as country=DE.

    A column is one of whole numbers where all its values are written as these are.
    """
    found: list[dict[str, str | int | None]] = []
    for file in files:
        pairs = [part.split("=", 1) for part in file.split("/")[:-1] if part.find("=") > 0]
        found.append({unquote(name): unquote(value) for name, value in pairs})
    for name in {name for one in found for name in one}:
        holders = [one for one in found if name in one]
        for one in holders:
            if one[name] == _NO_VALUE:
                one[name] = None
        texts = [str(one[name]) for one in holders if one[name] is not None]
        if all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) for text in texts):
            for one in holders:
                one[name] = None if one[name] is None else int(str(one[name]))
    return found


def _hidden(inner: str) -> bool:
    return any(part.startswith((".", "_")) for part in inner.split("/"))


def read_parquet(file: str, take: Callable[[Any], Any]) -> Any:
    """Return what is taken of a Parquet file, opened at its path or address."""
    import fsspec
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with fsspec.open(file, "rb") as stream:
            return take(parquet.ParquetFile(stream))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{file} is not a readable Parquet file", remedy="Check it") from error


@contextmanager
def file_here(folder: str, name: str) -> Iterator[Path | None]:
    """Give the path of a file of a release, at an address that of a copy; None if there is none."""
    if "://" not in folder:
        path = Path(folder) / name
        yield path if path.is_file() else None
        return
    system, place = _system_of(folder)
    with tempfile.TemporaryDirectory() as local:
        copy = Path(local) / name
        with _reading(f"{folder}/{name}"):
            try:
                system.get_file(f"{place}/{name}", str(copy))
            except FileNotFoundError:
                copy.unlink(missing_ok=True)
        yield copy if copy.is_file() else None


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Say what cannot be read; packages of file systems raise errors of many kinds."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        raise InputError(
            f"{what} cannot be read ({type(error).__name__})",
            remedy="Check the address, and the credentials that its file system finds",
        ) from None


def _system_of(folder: str) -> tuple[Any, str]:
    import fsspec

    try:
        system, place = fsspec.core.url_to_fs(folder)
    except (ImportError, ValueError) as error:
        raise InputError(
            f"the address {folder} cannot be used: {error}",
            remedy="Install the package of its file system, or give a path",
        ) from None
    return system, str(place).rstrip("/")


def names_in(folder: str) -> set[str]:
    """Return the names of what a folder holds, here or at an address."""
    if "://" not in folder:
        return {one.name for one in Path(folder).iterdir()}
    system, place = _system_of(folder)
    with _reading(folder):
        found = [str(one).rstrip("/") for one in system.ls(place, detail=False)]
    return {one.rpartition("/")[2] for one in found if one.strip("/") != place.strip("/")}
