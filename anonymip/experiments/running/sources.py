"""The tables of an experiment: whole, in part, or in samples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from anonymip.errors import InputError
from anonymip.instances import INSTANCES, Microdata, Schema, load_instance, read_schema
from anonymip.instances.library.catalogue import PREFIX, find_entry
from anonymip.runtime.arrays import Ints


@dataclass(frozen=True)
class Samples:
    """Random samples of a table.

    `size`: records of each, all different. `seed`: of ``numpy.random.default_rng``, which draws one
    sample after the other: the first ones stay what they are when `count` grows. Raises InputError
    if count or size is not positive, or the seed negative.
    """

    count: int
    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("size", 2), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(
                    f"{name} of the samples is {getattr(self, name)}",
                    remedy=f"Give a whole number of at least {least}",
                )

    def rows(self, n: int, number: int) -> Ints:
        """Return the (size,) records of a sample of `n`, in the order drawn.

        `n`: records of the table. `number`: of the sample, from 1. Raises InputError if the table
        has too few records.
        """
        if self.size > n:
            raise InputError(
                f"a sample is to have {self.size} records, and the table has {n}",
                remedy="Give a smaller size",
            )
        generator = np.random.default_rng(self.seed)
        for _ in range(number):
            drawn = generator.choice(n, self.size, replace=False)
        return drawn


@dataclass(frozen=True)
class TableSource:
    """A table of an experiment. Raises InputError if a number is too small."""

    #: A named instance, ``census:n,m,seed``, ``library:NAME``, or a CSV or Parquet file.
    instance: str
    #: Schema of a file; None looks for a TOML file of the same name beside it.
    schema: str | None = None
    #: Roles of the columns of a file, as the options ``-q``, ``--sensitive``, ``--keep``,
    #: ``--drop``, ``--missing`` and ``--unit`` give them.
    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing: str | None = None
    unit: str | None = None
    #: The quasi-identifiers that are published, in their order; their number for the first so many;
    #: None for all. The others are dropped.
    attributes: tuple[str, ...] | int | None = None
    rows: int | None = None  # only the first so many records; None for all
    #: Random samples, each of them a table of its own; None for the table itself. Domains are those
    #: of the whole table, so that a loss is what it is there.
    samples: Samples | None = None
    name: str | None = None  # in results; None for `instance`
    #: How a file is written, where its schema does not say so, as the fields of
    #: :class:`anonymip.TableFormat`; None, and no texts, leave each as the schema has it.
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | int | None = None
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.attributes, int) and self.attributes < 1:
            raise InputError(f"attributes is {self.attributes}", remedy="Give at least 1")
        if self.rows is not None and self.rows < 2:
            raise InputError(f"rows is {self.rows}", remedy="Give at least 2")

    @property
    def title(self) -> str:
        """Its name in results."""
        return self.instance if self.name is None else self.name

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """The numbers of its samples from 1; None alone for the table itself."""
        return (None,) if self.samples is None else tuple(range(1, self.samples.count + 1))

    @property
    def _is_named(self) -> bool:
        return self.instance in INSTANCES or self.instance.startswith(("census:", PREFIX))

    @property
    def _form(self) -> dict[str, Any]:
        form = {one: getattr(self, one) for one in ("separator", "encoding", "decimal", "sheet")}
        return {**form, "missing": self.missing_values or None}

    def load(self, folder: Path) -> Microdata:
        """Return the table without samples drawn; relative paths start from `folder`.

        Raises InputError if it is not there, or does not have the columns that are named.
        """
        roles = (self.quasi_identifiers, self.sensitive, self.keep, self.drop)
        if self._is_named:
            given = (self.missing, self.unit, self.schema, *self._form.values())
            if any(roles) or any(one is not None for one in given):
                raise InputError(
                    f"instance {self.instance} has its own schema",
                    remedy="Leave out schema, quasi_identifiers, sensitive, keep, drop, missing, "
                    "unit, and what says how a file is written",
                )
            whole = load_instance(self.instance)
        else:
            schema = self._schema(folder)
            if any(roles) or self.missing is not None or self.unit is not None:
                schema = (schema or Schema()).with_roles(*roles, self.missing, self.unit)
            if any(one is not None for one in self._form.values()):
                schema = (schema or Schema()).with_format(**self._form)
            whole = load_instance(str(folder / self.instance), schema)
        part = _with_attributes(whole, self.attributes)
        return part if self.rows is None else part.take(np.arange(part.n)[: self.rows])

    def sample(self, whole: Microdata, number: int | None) -> Microdata:
        """Return a sample of the table that :meth:`load` gives; the table itself for None."""
        if self.samples is None or number is None:
            return whole
        return whole.take(self.samples.rows(whole.n, number))

    def mask(self, folder: Path) -> Mapping[str, Any]:
        """Return the section ``[mask]`` of its schema; empty without one."""
        given = None if self._is_named else self._schema(folder)
        return {} if given is None else given.mask

    def _schema(self, folder: Path) -> Schema | None:
        file = self._schema_file(folder)
        return None if file is None else read_schema(file)

    def _schema_file(self, folder: Path) -> Path | None:
        if self.schema is not None:
            return folder / self.schema
        beside = (folder / self.instance).with_suffix(".toml")
        return beside if beside.is_file() else None

    def digests(self, folder: Path) -> list[str]:
        """Return the SHA-256 of the files that it is read from, and of the hierarchies."""
        if self._is_named:
            library = self.instance.startswith(PREFIX)
            named = INSTANCES.get(find_entry(self.instance).table if library else self.instance)
            return [] if named is None else list(map(file_digest, named.paths()))
        table, file = folder / self.instance, self._schema_file(folder)
        if file is None:
            return [file_digest(table)]
        # Hierarchies may lie in files of their own.
        given = [one.get("hierarchy") for one in read_schema(file).attributes.values()]
        trees = [repr(one.paths).encode() for one in given if one]
        sums = [hashlib.sha256(tree).hexdigest() for tree in trees]
        return [file_digest(table), file_digest(file), *sums]


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file. Raises InputError if it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}", remedy="Check the path") from None


def _with_attributes(data: Microdata, chosen: tuple[str, ...] | int | None) -> Microdata:
    if chosen is None:
        return data
    if isinstance(chosen, int):
        if chosen > data.m:
            raise InputError(
                f"{chosen} attributes are asked for, and the table has {data.m}",
                remedy="Give a smaller number, or names",
            )
        names: tuple[str, ...] = data.names[:chosen]
    else:
        names = chosen
    known = {attribute.name: attribute for attribute in data.attributes}
    for name in names:
        if name not in known:
            raise InputError(
                f"the table has no attribute {name!r}", remedy=f"Its own: {', '.join(known)}"
            )
    others = tuple(name for name in known if name not in names)
    return replace(
        data, attributes=tuple(known[name] for name in names), drop=(*data.drop, *others)
    )
