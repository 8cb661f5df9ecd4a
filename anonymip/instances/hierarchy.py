"""Generalization hierarchies: reading and validation."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from anonymip.errors import InputError
from anonymip.instances.tree import Tree


@dataclass(frozen=True)
class Hierarchy:
    """A tree of generalizations, given by one path from each value to the common root.

    A label stands for one node wherever it occurs; a label repeated at consecutive levels of a
    path is one node that several levels share, as in hierarchies padded to equal length.

    Parameters
    ----------
    paths
        For each value of the domain its path ``(value, level 1, ..., root)``. All end in the same
        root, and a node has the same parent on every path.

    Raises
    ------
    InputError
        If the paths do not form one tree.
    """

    paths: Sequence[Sequence[str]]
    _parents: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.paths, str) or any(isinstance(path, str) for path in self.paths):
            raise InputError(
                "a path of a hierarchy is one text",
                remedy='Give a list of labels for each value, such as ("Paris", "France", "*")',
            )
        paths = tuple(tuple(str(label) for label in path) for path in self.paths)
        object.__setattr__(self, "paths", paths)
        if not paths:
            raise InputError("a hierarchy has no values", remedy="Give a path for every value")
        root = paths[0][-1] if paths[0] else ""
        seen: set[str] = set()
        for number, path in enumerate(paths, start=1):
            if len(path) < 2:
                raise InputError(
                    f"hierarchy line {number} has fewer than two levels",
                    remedy="Give the value, its generalizations and the root",
                )
            if path[0] in seen:
                raise InputError(
                    f"hierarchy line {number} repeats a value of an earlier line",
                    remedy="Give each value once",
                    value=path[0],
                )
            if path[-1] != root:
                raise InputError(
                    f"hierarchy line {number} does not end in the root of the first line",
                    remedy="End every path in the same root, for example *",
                    value=path[-1],
                )
            seen.add(path[0])
            self._add_path(number, path)
        for inner in set(self._parents.values()):
            if inner in seen:
                raise InputError(
                    "a value of the hierarchy is also the generalization of another value",
                    remedy="Name the group differently from its members",
                    value=inner,
                )

    def _add_path(self, number: int, path: tuple[str, ...]) -> None:
        nodes = [label for at, label in enumerate(path) if at == 0 or path[at - 1] != label]
        if len(set(nodes)) < len(nodes):
            raise InputError(
                f"hierarchy line {number} comes back to an earlier level: the nesting is cyclic",
                remedy="A value generalizes step by step up to the root",
            )
        for child, parent in pairwise(nodes):
            if self._parents.setdefault(child, parent) != parent:
                raise InputError(
                    f"hierarchy line {number}: a node has two different parents",
                    remedy="A node must lie under the same group wherever it occurs",
                    value=child,
                )

    @property
    def root(self) -> str:
        """The label that covers every value."""
        return self.paths[0][-1]

    @property
    def leaves(self) -> tuple[str, ...]:
        """The values of the domain, in the order of the paths."""
        return tuple(path[0] for path in self.paths)

    @cached_property
    def parents(self) -> Mapping[str, str]:
        """Parent of every node but the root."""
        return MappingProxyType(self._parents)

    @cached_property
    def tree(self) -> Tree:
        """The same as arrays."""
        return Tree.of_paths(self.paths, self._parents)

    @property
    def height(self) -> int:
        """Number of generalization levels above the values; the longest path counts."""
        return max(len(path) for path in self.paths) - 1


def read_hierarchy(path: str | Path, *, separator: str = ";", encoding: str = "utf-8") -> Hierarchy:
    """Read a hierarchy file: one line a value, from the value to the root.

    Parameters
    ----------
    path
        The file, without a header line.
    separator
        Between the levels of a line.
    encoding
        Of the text.

    Raises
    ------
    InputError
        If the file is missing or its lines do not form one tree.
    """
    file = Path(path)
    if len(separator) != 1:
        raise InputError(
            f"separator {separator!r} is not one character", remedy="Give one character"
        )
    try:
        # A UTF-8 file may start with a byte order mark.
        plain = codecs.lookup(encoding).name
        name = "utf-8-sig" if plain == "utf-8" else plain
        with file.open(encoding=name, newline="") as stream:
            lines: Iterable[list[str]] = list(csv.reader(stream, delimiter=separator))
    except OSError as error:
        raise InputError(
            f"cannot read the hierarchy {file}: {error.strerror}", remedy="Check the path"
        ) from None
    except (UnicodeDecodeError, LookupError):
        raise InputError(
            f"the hierarchy {file} is not {encoding} text", remedy="Name its encoding"
        ) from None
    except csv.Error as error:
        raise InputError(
            f"the hierarchy {file} is not a table: {error}",
            remedy="Check its separator and its quotes",
        ) from None
    return Hierarchy([line for line in lines if any(line)])
