"""Generalization hierarchies, of files or declared in a schema: reading and validation."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import floor
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from anonymip.errors import InputError, within
from anonymip.instances.hierarchies.tree import Tree
from anonymip.instances.scale import Scale, Unit, units_around
from anonymip.instances.table_format import reading_name

_EXAMPLE = 'Write {"Europe": {"North": ["SE", "NO"], "South": ["IT"]}, "Asia": ["JP"]}'
_DEEPEST = 100  # groups within groups; deeper nesting is taken for a group that holds itself


class _WrongLine(InputError):
    """One of the paths is wrong; whoever read them from a file knows its line there."""

    number = 0
    what = ""


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
    observed
        Whether the values are those that a table holds: then their number, which losses read,
        tells something of values that a release does not show.

    Raises
    ------
    InputError
        If the paths do not form one tree.
    """

    paths: Sequence[Sequence[str]]
    observed: bool = field(default=False, kw_only=True, compare=False)
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
            fault = self._fault_of(path, root, seen)
            if fault is not None:
                what, remedy, value = fault
                error = _WrongLine(f"hierarchy line {number} {what}", remedy=remedy, value=value)
                error.number, error.what = number, what
                raise error
            seen.add(path[0])
        for inner in set(self._parents.values()):
            if inner in seen:
                raise InputError(
                    "a value of the hierarchy is also the generalization of another value",
                    remedy="Name the group differently from its members",
                    value=inner,
                )

    def _fault_of(
        self, path: tuple[str, ...], root: str, seen: AnySet[str]
    ) -> tuple[str, str, str | None] | None:
        """Add a path to the parents; return what is wrong with it, the remedy and the label."""
        if len(path) < 2:
            remedy = "Give the value, its generalizations and the root"
            return "has fewer than two levels", remedy, None
        if path[0] in seen:
            return "repeats a value of an earlier line", "Give each value once", path[0]
        if path[-1] != root:
            remedy = "End every path in the same root, for example *"
            return "does not end in the root of the first line", remedy, path[-1]
        nodes = [label for at, label in enumerate(path) if at == 0 or path[at - 1] != label]
        if len(set(nodes)) < len(nodes):
            what = "comes back to an earlier level: the nesting is cyclic"
            return what, "A value generalizes step by step up to the root", None
        for child, parent in pairwise(nodes):
            if self._parents.setdefault(child, parent) != parent:
                remedy = "A node must lie under the same group wherever it occurs"
                return "has a node with two different parents", remedy, child
        return None

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
        paths = [(value, *above) for value, above in _values(groups, (str(root),))]
        seen: dict[str, tuple[str, ...]] = {}
        for value, *above in paths:
            if value in seen:
                raise InputError(
                    f"a value stands in the group {_name(seen[value])} and again in {_name(above)}",
                    remedy="Put each value into one group",
                    value=value,
                )
            seen[value] = tuple(above)
        return cls(paths)

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
        for given, what, example in (
            (widths, "widths", "(5, 10, 20)"),
            (values, "values", "range(0, 100)"),
        ):
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InputError(f"the {what} of bands are no list", remedy=f"Write {example}")
        steps = [_number(width, "a width") for width in widths]
        start = _number(origin, "the origin")
        _refuse_unnested(steps)
        numbers: dict[str, Fraction] = {}
        for value in values:
            numbers.setdefault(str(value), _number(value, "a value"))
        if not numbers:
            raise InputError("there are no values to put into bands", remedy="Give some numbers")
        whole = all(n.denominator == 1 for n in (*numbers.values(), *steps, start))
        if whole and steps[0] == 1:
            raise InputError(
                "bands of width 1 hold one whole number each", remedy="Begin with wider bands"
            )
        # In fractions, so that 0.3 lies in the band that begins at 0.3.
        paths = [
            (text, *(_band(number, step, start, whole=whole) for step in steps), str(root))
            for text, number in numbers.items()
        ]
        return cls(paths)

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


_MOST = 1_000_000  # values of a domain: a hundred years have 36,525 days


class Calendar(Hierarchy):
    """The hierarchy of dates: from the precision of a column over coarser units to the root."""

    @classmethod
    def of(
        cls,
        scale: Scale,
        ends: tuple[float, float] | None,
        others: Sequence[str] = (),
        *,
        observed: bool = False,
    ) -> Calendar:
        """Return the hierarchy of all units of a domain.

        What lies in an open group is one value, right below the root. `ends`: numbers of the first
        and the last unit; None where there are no dates. `others`: values that are no dates and lie
        below the root: what stands for missing ones. Complexity: O(units).
        """
        first, last = (0, -1) if ends is None else map(int, ends)
        if last - first >= _MOST:
            raise InputError(
                f"a domain of dates has more than {_MOST:,} units",
                remedy="Declare a narrower domain, or a coarser precision",
            )
        paths = []
        for number in range(first, last + 1):
            label = scale.text(number, number, str)
            units = units_around(number, cast(Unit, scale.precision))
            paths.append([*(units if label == units[0] else [label] * len(units)), "*"])
        depth = max(map(len, paths), default=2) - 1
        return cls([*paths, *([one] * depth + ["*"] for one in others)], observed=observed)


def read_hierarchy(
    path: str | Path,
    *,
    separator: str | None = None,
    encoding: str = "utf-8",
    column: str | None = None,
) -> Hierarchy:
    """Read a hierarchy file: one line a value, from the value to the root.

    Parameters
    ----------
    path
        The file. Its first line may be a header, see the notes.
    separator
        Between the levels of a line. None: semicolons where each line has one, else commas where
        each line has one.
    encoding
        Of the text.
    column
        Name of the column, for its header.

    Raises
    ------
    InputError
        If the file is missing or its lines do not form one tree.

    Notes
    -----
    The first line is taken for a header, and left out, where its first cell is the name of the
    column, in capital or small letters; or where it has as many cells as the longest line below and
    no label in common with them, of which there are two at least, and which all end in one root. No
    tree has such a line.
    """
    file = Path(path)
    if separator is not None and len(separator) != 1:
        raise InputError(
            f"separator {separator!r} is not one character", remedy="Give one character"
        )
    try:
        with file.open(encoding=reading_name(encoding), newline="") as stream:
            text = stream.read()
        lines = _lines(text, separator or ";")
        if separator is None and any(len(line) < 2 for _, line in lines):
            others = _lines(text, ",")
            lines = lines if any(len(line) < 2 for _, line in others) else others
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
    if _has_header([line for _, line in lines], column):
        del lines[0]
    with within(f"the hierarchy {file}"):
        for at, line in lines:
            if "" in line[1:]:
                raise InputError(
                    f"line {at} has no label in column {line[1:].index('') + 2}",
                    remedy="Give every value every level; repeat a label where nothing changes",
                    value=line[0],
                )
        try:
            return Hierarchy([line for _, line in lines])
        except _WrongLine as error:
            at = lines[error.number - 1][0]
            raise InputError(
                f"line {at} {error.what}", remedy=error.remedy, value=error.value
            ) from None


def _lines(text: str, separator: str) -> list[tuple[int, list[str]]]:
    """Return the lines that are not empty as cells, with their numbers."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [(reader.line_num, line) for line in reader if any(line)]


def _has_header(lines: Sequence[Sequence[str]], column: str | None) -> bool:
    """Return whether the first of the lines of a file names the levels; see its reader."""
    first, rest = lines[:1], lines[1:]
    if not first or not rest:
        return False
    if column is not None and first[0][0].strip().casefold() == column.strip().casefold():
        return True
    labels = {label for line in rest for label in line}
    one_tree = len(rest) > 1 and len({line[-1] for line in rest}) == 1
    names_all = len(first[0]) == max(map(len, rest))
    return one_tree and names_all and labels.isdisjoint(first[0])


def _refuse_unnested(steps: Sequence[Fraction]) -> None:
    if not steps or min(steps) <= 0:
        raise InputError(
            "the widths of bands are none, or not above 0", remedy="Give widths such as (5, 10, 20)"
        )
    for narrow, wide in pairwise(steps):
        if wide <= narrow or (wide / narrow).denominator != 1:
            raise InputError(
                f"bands of width {_text(wide)} are not made of whole bands of width "
                f"{_text(narrow)}: levels must nest",
                remedy="Let each width be a multiple of the one before, as in (5, 10, 20)",
            )


def _band(number: Fraction, width: Fraction, origin: Fraction, *, whole: bool) -> str:
    """Return the label of the band that holds a number."""
    low = origin + width * floor((number - origin) / width)
    if whole:
        return f"{_text(low)}..{_text(low + width - 1)}"
    return f"{_text(low)}..<{_text(low + width)}"


def _number(given: object, what: str) -> Fraction:
    """Return a number exactly as it is written."""
    try:
        if isinstance(given, bool):
            raise ValueError
        # NumPy's numbers are written like Python's.
        exact = Decimal(str(given))
        if not exact.is_finite():
            raise ValueError
    except (InvalidOperation, ValueError):
        raise InputError(
            f"{what} of bands is no finite number", remedy="Give numbers only", value=given
        ) from None
    return Fraction(exact)


def _text(number: Fraction) -> str:
    """Return a number as it is written in labels."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.15g}"


def _values(groups: object, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the values of a group, each with the groups that hold it, from the innermost."""
    if len(above) > _DEEPEST:
        raise InputError(
            f"groups lie more than {_DEEPEST} deep in each other: the nesting is cyclic",
            remedy="A group cannot hold itself",
        )
    if isinstance(groups, (str, bytes)) or not isinstance(groups, Iterable):
        raise InputError(
            f"the group {_name(above)} is no list of values but a {type(groups).__name__}",
            remedy=_EXAMPLE,
        )
    # A set has no order of its own, and equal calls shall give equal hierarchies.
    members = sorted(groups, key=str) if isinstance(groups, AnySet) else list(groups)
    if not members:
        raise InputError(
            f"the group {_name(above)} is empty", remedy="Give its values, or leave it out"
        )
    for member in members:
        if isinstance(groups, Mapping):
            if str(member) in above:
                raise InputError(
                    f"the group {_name(above)} holds itself or one of its own name",
                    remedy="Name every group differently",
                    value=str(member),
                )
            yield from _values(groups[member], (str(member), *above))
        elif isinstance(member, (Mapping, list, tuple, AnySet)):
            raise InputError(
                f"the group {_name(above)} lists a group that has no name", remedy=_EXAMPLE
            )
        else:
            yield str(member), above


def _name(above: Iterable[str]) -> str:
    """Return where a group stands: names of groups are the caller's, not the table's."""
    return " in ".join(repr(label) for label in above)


_KEYS = {"groups": {"groups", "root"}, "bands": {"bands", "domain", "origin", "root"}}


def declared_hierarchy(given: object, folder: Path, column: str | None = None) -> Hierarchy:
    """Return the hierarchy that an entry of a schema means.

    `given`: the name of a file; or a table with ``groups`` (tables of tables and lists of values),
    or with ``bands`` (a list of widths) and ``domain`` (lowest and highest whole number). Both may
    name the ``root``, bands their ``origin``. `folder`: what names of files are relative to.
    `column`: name of the column, see :func:`read_hierarchy`. Raises InputError if the entry is none
    of these, or what it says is no hierarchy.
    """
    if isinstance(given, str):
        return read_hierarchy(folder / given, column=column)
    if not isinstance(given, Mapping) or ("groups" in given) == ("bands" in given):
        raise InputError(
            "the hierarchy is neither a file nor a table of groups, bands or codes",
            remedy='Write hierarchy = "town.csv", {groups = {...}}, {bands = [5, 10], '
            'domain = [0, 99]}, {mask = "right"} or {separator = "."}',
        )
    kind = "groups" if "groups" in given else "bands"
    refuse_unknown_keys(given, kind, _KEYS[kind])
    root = given.get("root", "*")
    if not isinstance(root, str) or not root:
        raise InputError("the root of the hierarchy is no text", remedy='Write root = "*"')
    if kind == "groups":
        return Hierarchy.from_groups(given["groups"], root=root)
    return Hierarchy.from_bands(
        _whole_numbers(given), given["bands"], origin=given.get("origin", 0), root=root
    )


def refuse_unknown_keys(given: Mapping[str, Any], kind: str, known: AnySet[str]) -> None:
    """Refuse what a hierarchy of a kind does not have."""
    unknown = sorted(set(given) - known)
    if unknown:
        raise InputError(
            f"a hierarchy of {kind} has no {unknown[0]!r}",
            remedy=f"Known are {', '.join(sorted(known))}",
        )


def _whole_numbers(given: Mapping[str, Any]) -> range:
    """Return the numbers of a domain: the ends observed in a table would be values of persons."""
    domain: Any = given.get("domain")
    pair = isinstance(domain, list) and len(domain) == 2
    if not pair or not all(type(end) is int for end in domain) or domain[0] > domain[1]:
        raise InputError(
            "a hierarchy of bands has no domain of a lowest and a highest whole number",
            remedy="Write {bands = [5, 10], domain = [0, 99]}",
        )
    if domain[1] - domain[0] >= _MOST:
        raise InputError(
            f"the domain of the bands has more than {_MOST:,} values",
            remedy="Make the attribute numeric, or round its values",
        )
    return range(domain[0], domain[1] + 1)
