"""Generalization hierarchies: reading and validation."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from anonymip.errors import InputError
from anonymip.instances.encodings import reading_name
from anonymip.instances.hierarchies.bands import paths_of_bands
from anonymip.instances.hierarchies.nested_groups import paths_of_groups
from anonymip.instances.hierarchies.tree import Tree


class _WrongLine(InputError):
    """One of the paths is wrong; whoever read them from a file knows its line there."""

    number = 0
    what = ""


def _wrong_line(number: int, what: str, remedy: str, value: object = None) -> _WrongLine:
    error = _WrongLine(f"hierarchy line {number} {what}", remedy=remedy, value=value)
    error.number, error.what = number, what
    return error


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
                raise _wrong_line(
                    number,
                    "has fewer than two levels",
                    "Give the value, its generalizations and the root",
                )
            if path[0] in seen:
                raise _wrong_line(
                    number, "repeats a value of an earlier line", "Give each value once", path[0]
                )
            if path[-1] != root:
                raise _wrong_line(
                    number,
                    "does not end in the root of the first line",
                    "End every path in the same root, for example *",
                    path[-1],
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
            raise _wrong_line(
                number,
                "comes back to an earlier level: the nesting is cyclic",
                "A value generalizes step by step up to the root",
            )
        for child, parent in pairwise(nodes):
            if self._parents.setdefault(child, parent) != parent:
                raise _wrong_line(
                    number,
                    "has a node with two different parents",
                    "A node must lie under the same group wherever it occurs",
                    child,
                )

    @classmethod
    def from_groups(cls, groups: object, *, root: str = "*") -> Hierarchy:
        """Return the hierarchy of groups within groups.

        Parameters
        ----------
        groups
            For each group its name and what it holds: values, or groups in turn. Values alone make
            a hierarchy of one level.
        root
            Name of the whole.

        Raises
        ------
        InputError
            If a group is empty or holds itself, or a value or a name stands in two places.

        Examples
        --------
        >>> from anonymip import Hierarchy
        >>> land = Hierarchy.from_groups({"Europe": {"North": ["SE"], "South": ["IT"]}})
        >>> land.paths
        (('SE', 'North', 'Europe', '*'), ('IT', 'South', 'Europe', '*'))
        """
        return cls(paths_of_groups(groups, root))

    @classmethod
    def from_bands(
        cls,
        values: Iterable[object],
        widths: Sequence[float],
        *,
        origin: float = 0,
        root: str = "*",
    ) -> Hierarchy:
        """Return the hierarchy of numbers in bands of growing width.

        Parameters
        ----------
        values
            All numbers of the domain, such as ``range(17, 91)`` or a column of a table.
        widths
            Of the bands at each level, the narrowest first, each a multiple of the one before.
        origin
            Where a band begins: with widths of 5 and origin 0 there is one from 20 to 24.
        root
            Name of the whole.

        Raises
        ------
        InputError
            If something is no finite number, or the bands do not nest.

        Notes
        -----
        Bands of whole numbers are labelled by their first and last number, ``20..24``. If a value,
        a width or the origin is not whole, the upper end is not part of the band: ``2.5..<5``.
        Bands keep their width at the ends of the domain, so labels do not reveal where it ends.

        Examples
        --------
        >>> from anonymip import Hierarchy
        >>> Hierarchy.from_bands(range(22, 24), (5, 10)).paths
        (('22', '20..24', '20..29', '*'), ('23', '20..24', '20..29', '*'))
        """
        return cls(paths_of_bands(values, widths, origin, root))

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
        with file.open(encoding=reading_name(encoding), newline="") as stream:
            reader = csv.reader(stream, delimiter=separator)
            lines = [(reader.line_num, line) for line in reader if any(line)]
    except OSError as error:
        raise InputError(
            f"cannot read the hierarchy {file}: {error.strerror}", remedy="Check the path"
        ) from None
    except (LookupError, ValueError):
        raise InputError(
            f"the hierarchy {file} is not {encoding} text", remedy="Name its encoding"
        ) from None
    except csv.Error as error:
        raise InputError(
            f"the hierarchy {file} is not a table: {error}",
            remedy="Check its separator and its quotes",
        ) from None
    for at, line in lines:
        if "" in line[1:]:
            raise InputError(
                f"the hierarchy {file}: line {at} has no label in column {line[1:].index('') + 2}",
                remedy="Give every value every level; repeat a label where nothing changes",
                value=line[0],
            )
    try:
        return Hierarchy([line for _, line in lines])
    except _WrongLine as error:
        at = lines[error.number - 1][0]
        raise InputError(
            f"the hierarchy {file}: line {at} {error.what}", remedy=error.remedy, value=error.value
        ) from None
    except InputError as error:
        raise InputError(
            f"the hierarchy {file}: {error.message}", remedy=error.remedy, value=error.value
        ) from None
