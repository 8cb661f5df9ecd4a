"""The library of instances: named problems with the best loss and the best bound that is known.

The entries lie beside this file, one TOML file for each family; tables are loaded where they lie
and never kept here. The digest of an entry says that the table at hand is the one that its figures
are of.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from anonymip.errors import AnonymipError, InputError, did_you_mean
from anonymip.files import Outputs
from anonymip.instances.microdata import Microdata
from anonymip.tolerances import closes_gap

FOLDER = Path(__file__).parent
PREFIX = "library:"  # what precedes the name of an entry where an instance is asked for
PROTOTYPE = "prototype"  # who found a figure that no version of this package has found yet
HANDED_DOWN = 1e-3  # such figures have three digits behind the point at least


@dataclass(frozen=True)
class LibraryEntry:
    """A problem of the library.

    Raises AnonymipError if the bound exceeds the loss: one of the two is wrong.
    """

    name: str  # its name, unique in the library
    table: str  # a named instance, or ``census:n,m,seed``
    k: int  # records that must look alike
    #: Their names.
    recoding: str
    objective: str
    sha256: str  # digest of the table, see :func:`table_digest`
    #: How many rows it has: the first so many of the whole table's by
    #: ``numpy.random.default_rng(permutation).permutation``, or all, in their order, if that is
    #: None.
    records: int
    permutation: int | None = None
    #: The best loss that is known, in units of the objective, and the method and version that found
    #: it; `PROTOTYPE` where this package has not found it yet. None if none is.
    loss: float | None = None
    loss_by: str | None = None
    #: The best proven lower bound likewise.
    bound: float | None = None
    bound_by: str | None = None

    def __post_init__(self) -> None:
        if self.loss is None or self.bound is None:
            return
        handed_down = PROTOTYPE in (self.loss_by, self.bound_by)
        slack = HANDED_DOWN if handed_down else 1e-6 * abs(self.loss)
        if self.bound > self.loss + slack:
            raise AnonymipError(
                f"{self.name}: the bound {self.bound:.9g} ({self.bound_by}) exceeds the loss "
                f"{self.loss:.9g} ({self.loss_by}): one of the two is wrong"
            )

    @property
    def is_proven(self) -> bool:
        """Whether the best loss is known to be the optimum."""
        if self.loss is None or self.bound is None:
            return False
        return closes_gap(self.loss, self.bound)

    @property
    def gap(self) -> float | None:
        """(loss - bound) / loss, at least 0; None if one of them is unknown."""
        if self.loss is None or self.bound is None:
            return None
        return max(0.0, (self.loss - self.bound) / self.loss) if self.loss else 0.0

    def rows_of(self, whole: Microdata) -> Microdata:
        """Return the rows of the table that the entry is about; others are refused."""
        part = whole
        if self.permutation is not None:
            order = np.random.default_rng(self.permutation).permutation(whole.n)
            part = whole.take(order[: self.records])
        if table_digest(part) != self.sha256:
            raise InputError(
                f"the table {self.table} is not the one that the library's entry {self.name} "
                "is about",
                remedy="Take the files that the entry was written for, or another entry",
            )
        return part


def table_digest(data: Microdata) -> str:
    """Return the SHA-256 of the quasi-identifiers of a table: attributes, levels and rows."""
    attributes: list[list[Any]] = [
        [
            *(one.name, one.kind, one.integer, one.weight, one.publish),
            None if one.domain is None else list(map(str, one.domain)),
            None if one.hierarchy is None else list(map(list, one.hierarchy.paths)),
        ]
        for one in data.attributes
    ]
    levels = [list(map(str, one.tolist())) for one in data.levels]
    digest = hashlib.sha256(json.dumps([attributes, levels]).encode())
    digest.update(np.ascontiguousarray(data.codes, "<i8").data.cast("B"))
    return digest.hexdigest()


@cache
def library() -> Mapping[str, LibraryEntry]:
    """Return all entries by name, family by family."""
    entries = [one for file in families() for one in read_family(file)]
    return MappingProxyType({one.name: one for one in entries})


def families() -> list[Path]:
    """Return the files of the library."""
    return sorted(FOLDER.glob("*.toml"))


def find_entry(name: str) -> LibraryEntry:
    """Return the entry of a name, with or without ``library:`` before it."""
    name = name.removeprefix(PREFIX)
    if name not in library():
        raise InputError(
            f"the library has no entry {name!r}",
            remedy=did_you_mean(name, library(), "'anonymip leaderboard --known' lists all"),
        )
    return library()[name]


def release_file(name: str) -> Path:
    """Return where the best known release of an entry lies, if it is kept."""
    return FOLDER / "releases" / f"{name}.json"


def certificate_file(name: str) -> Path:
    """Return where the certificate of an entry's bound lies, if there is one."""
    return FOLDER / "certificates" / f"{name}.json"


def read_family(file: Path) -> list[LibraryEntry]:
    """Return the entries of a file."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return [LibraryEntry(**one) for one in content["entry"]]


def better(entry: LibraryEntry, loss: float, loss_by: str) -> LibraryEntry:
    """Return the entry with a loss that was found, if it is better than what is known.

    A figure that this package has found stands in the place of one that it had not, as soon as it
    is as good to the digits that were handed down.
    """
    if entry.loss is not None and loss >= entry.loss + _slack(entry.loss, entry.loss_by):
        return entry
    return replace(entry, loss=loss, loss_by=loss_by)


def closer(entry: LibraryEntry, bound: float, bound_by: str) -> LibraryEntry:
    """Return the entry with a bound that was proven, if it is better than what is known."""
    if entry.bound is not None and bound <= entry.bound - _slack(entry.bound, entry.bound_by):
        return entry
    return replace(entry, bound=bound, bound_by=bound_by)


def _slack(known: float, by: str | None) -> float:
    """Return how much worse than a known figure one may be that takes its place."""
    return HANDED_DOWN if by == PROTOTYPE else -1e-9 * max(1.0, abs(known))


def stage_entries(entries: Iterable[LibraryEntry], outputs: Outputs) -> None:
    """Stage the library's files with these entries in the place of those of their names."""
    changed = {entry.name: entry for entry in entries}
    for file in families():
        before = read_family(file)
        after = [changed.get(entry.name, entry) for entry in before]
        if after != before:
            outputs.write_text(family_text(file, after), file, public=True)


def family_text(file: Path, entries: Iterable[LibraryEntry]) -> str:
    """Return what a family's file holds with these entries; its first comments stay."""
    before = file.read_text(encoding="utf-8").splitlines()
    lines = list(takewhile(lambda line: line.startswith("#"), before))
    for entry in entries:
        lines += ["", "[[entry]]"]
        for given in fields(entry):
            value = getattr(entry, given.name)
            if value is not None:
                lines.append(f"{given.name} = {json.dumps(value)}")
    return "\n".join(lines) + "\n"
