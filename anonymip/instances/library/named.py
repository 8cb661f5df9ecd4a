"""Instances by name: small tables of the papers, generated ones, and the benchmark data."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from anonymip.errors import InputError, argument, did_you_mean, no_file
from anonymip.instances.hierarchies.hierarchy import Hierarchy, read_hierarchy
from anonymip.instances.library.catalogue import PREFIX, find_entry
from anonymip.instances.library.fetching import data_file, read_extract, with_categories
from anonymip.instances.library.generators import census
from anonymip.instances.microdata import Microdata
from anonymip.instances.readers import read_table
from anonymip.instances.schema import Schema, read_schema
from anonymip.instances.table_format import TableFormat

#: More do not fit into the memory of an ordinary computer.
_MOST_GENERATED = 50_000_000
_KINDS = ("numeric", "categorical")


@dataclass(frozen=True)
class NamedInstance:
    """An instance that can be asked for by name."""

    name: str  # the name
    description: str  # what it is, in one line
    source: str  # where it comes from
    load: Callable[[], Microdata]  # returns it
    files: tuple[str, ...] = ()  # files of the data folder it needs, relative to it

    def paths(self) -> tuple[Path, ...]:
        """Return where its files lie. Raises InputError if one is not here."""
        return tuple(data_file(name) for name in self.files)


def _attribute(declared: Any) -> dict[str, Any]:
    """Return what a schema says of a column, given what an entry says."""
    if isinstance(declared, str):
        return {"kind": declared, "integer": declared == "numeric"}
    if "ends" in declared:
        return {"kind": "numeric", "integer": True, "domain": tuple(declared["ends"])}
    if "codes" in declared:
        first, last = declared["codes"]
        return {"kind": "categorical", "domain": [str(code) for code in range(first, last + 1)]}
    if "paths" in declared:
        return {"hierarchy": Hierarchy(declared["paths"])}
    return {"hierarchy": read_hierarchy(data_file(declared["hierarchy"]))}


def _schema(given: Mapping[str, Any]) -> Schema:
    """Return the schema of an instance from its entry."""
    listed = [(name, kind) for kind in _KINDS for name in given.get(kind, "").split(",") if name]
    columns = {**dict(listed), **given.get("attributes", {})}
    form: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in given.get("table", {}).items()
    }
    return Schema(
        {name: _attribute(declared) for name, declared in columns.items()},
        tuple(given.get("sensitive", ())),
        drop=tuple(given.get("drop", ())),
        table=TableFormat(**form),
    )


def _load(given: Mapping[str, Any]) -> Microdata:
    """Return an instance, given its entry."""
    if "rows" in given:
        return _schema(given).apply(pd.read_csv(StringIO(given["rows"]), keep_default_na=False))
    if "part_of" in given:
        return with_categories(load_instance(given["part_of"]), given["categories"])
    if "extract" in given:
        return read_extract(*given["files"])
    table = given["files"][0]
    if given.keys() & {*_KINDS, "attributes"}:
        return _schema(given).read(data_file(table))
    frame = read_table(data_file(table))
    return Schema({str(column): {"kind": "numeric"} for column in frame.columns}).apply(frame)


def _named() -> Iterator[NamedInstance]:
    entries = tomllib.loads((Path(__file__).parent / "tables" / "named.toml").read_text("utf-8"))
    for given in entries["instance"]:
        described = given["name"], given["description"], given["source"]
        yield NamedInstance(*described, partial(_load, given), tuple(given.get("files", ())))


#: All named instances.
INSTANCES = MappingProxyType({instance.name: instance for instance in _named()})


def load_instance(name: str | Path, schema: Schema | None = None) -> Microdata:
    """Return the instance of a name, a generator call, or a file.

    Parameters
    ----------
    name
        A named instance (see :data:`INSTANCES`), ``census:n,m,seed``, ``library:NAME`` for the
        table of an entry of the library, or the path of a CSV or Parquet file.
    schema
        For a file: its schema; None looks for a TOML file of the same name beside it.

    Raises
    ------
    InputError
        If there is no such instance, its data are not here, or they are not those of the entry.
    """
    name = os.fspath(name)
    if name in INSTANCES:
        if schema is not None:
            raise InputError(f"instance {name} has its own schema", remedy="Leave the schema out")
        return INSTANCES[name].load()
    if name.startswith("census:"):
        return _generated(name)
    if name.startswith(PREFIX):
        entry = find_entry(name)
        return entry.rows_of(load_instance(entry.table))
    file = Path(name)
    if os.path.isdir(file):
        raise no_file(file)
    if not os.path.isfile(file):
        raise InputError(
            f"there is no instance and no file {name!r}",
            remedy=did_you_mean(
                name, INSTANCES, "Run 'anonymip instances' for the names, or check the path"
            ),
        )
    beside = file.with_suffix(".toml")
    if schema is None:
        if not os.path.isfile(beside):
            needed = argument("schema", ..., option="quasi-identifiers (-q) or --schema")
            raise InputError(f"{file} has no schema", remedy=f"Give {needed}, or write {beside}")
        schema = read_schema(beside)
    return schema.read(file)


def _generated(name: str) -> Microdata:
    try:
        numbers = [int(text) for text in name.removeprefix("census:").split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3):
        raise InputError(
            f"instance {name!r} is not census:n,m,seed", remedy="For example census:1000,8,1"
        )
    n, m, *seed = numbers
    if n > _MOST_GENERATED:
        raise InputError(
            f"n is above {_MOST_GENERATED:,}, the most records that are generated",
            remedy="Ask for fewer",
        )
    return census(n, m, seed[0] if seed else 0)
