"""Hierarchies as the verifier reads them, of files and schemas: the values that nodes cover."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from anonymip.errors import InputError, argument
from anonymip.privacy.reading.cell_grammar import CellError
from anonymip.privacy.reading.manifest_entries import Column

#: A hierarchy as it is handed over: for each value its path to the root, or the file of the paths.
Paths = Sequence[Sequence[str]] | str | Path
#: A rule of the paths of codes, masked from one side or cut at separators: of the codes of a
#: column, and of what else it holds, which lies below the root.
CodePaths = Callable[[Iterable[str], Iterable[str]], list[list[str]]]


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one hierarchy, by label.

    `below`: the values that each node covers, sorted; a value covers itself. `level`: the longest
    way from a value up to the node. `paths`: the path of each value to the root, by level: labels
    may be repeated.
    """

    below: Mapping[str, tuple[str, ...]]
    level: Mapping[str, int]
    root: str
    paths: tuple[tuple[str, ...], ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        """All values of the domain."""
        return self.below[self.root]


def nodes_of_paths(name: str, paths: Sequence[Sequence[str]]) -> Nodes:
    """Return the nodes of a hierarchy, of which each value has a path from it to the root.

    A label may be repeated at consecutive levels. Complexity: O(total length of the paths), times
    the height for the check that they are a tree.
    """
    below: dict[str, list[str]] = {}
    above: dict[str, tuple[str, ...]] = {}
    level: dict[str, int] = {}
    for number, path in enumerate(paths, start=1):
        labels = [str(label) for label in path]
        steps = tuple(here for at, here in enumerate(labels) if at == 0 or labels[at - 1] != here)
        if len(labels) < 2:
            _refuse(name, f"line {number} has fewer than two levels")
        if len(set(steps)) < len(steps):
            _refuse(name, f"line {number} comes back to an earlier level")
        for at, label in enumerate(steps):
            # One tree: what lies above a node is the same wherever the node occurs.
            if above.setdefault(label, steps[at + 1 :]) != steps[at + 1 :]:
                _refuse(name, f"line {number} contradicts an earlier line")
            below.setdefault(label, []).append(steps[0])
            level[label] = max(level.get(label, 0), labels.index(label))
    roots = [label for label, further in above.items() if not further]
    if len(roots) != 1:
        _refuse(name, "has no values" if not roots else "has more than one root")
    if any(below[str(path[0])] != [str(path[0])] for path in paths):
        _refuse(name, "names a value twice, or as the group of another")
    return Nodes(
        {label: tuple(sorted(values)) for label, values in below.items()},
        level,
        roots[0],
        tuple(tuple(map(str, path)) for path in paths),
    )


def read_nodes(
    columns: Sequence[Column],
    files: Mapping[str, Path | Sequence[Sequence[str]] | CodePaths],
    given: Mapping[str, Paths],
    codes_of: Callable[[Column], tuple[list[str], list[str]]] = lambda _: ([], []),
) -> dict[str, Nodes]:
    """Return the hierarchies of the columns that need one; that of dates is the calendar.

    `columns`: with the domains that hold. `files`: what a schema says, by column. `given`:
    hierarchies handed over, which go before those of the schema. `codes_of`: the values of a
    column, and those that are no codes, for rules of codes.
    """
    found: dict[str, Nodes] = {}
    for column in columns:
        if not column.is_node:
            continue
        name = column.name
        if column.kind == "date" and name not in given:
            found[name] = _calendar(column, *codes_of(column))
            continue
        source = given.get(name, files.get(name))
        if source is None:
            raise InputError(
                f"column {name!r} shows nodes of a hierarchy, which is not given",
                remedy=f"Give {argument('schema', ...)}, which names its file, or in Python "
                "hierarchies={...}, by the names of columns",
            )
        if callable(source):
            source = source(*codes_of(column))
        source = getattr(source, "paths", source)  # of a hierarchy that a release was made with
        paths = _read_paths(Path(source), name) if isinstance(source, (str, Path)) else source
        found[name] = nodes_of_paths(name, paths)
    return found


def _calendar(column: Column, values: Iterable[str], others: Sequence[str]) -> Nodes:
    """Return the nodes of a column of dates: all units of its domain, else of its values."""
    ends: Any = column.domain
    if ends is None:
        try:
            numbers = [column.scale.value(value) for value in values]
        except CellError as error:
            raise InputError(
                f"column {column.name!r} of the original holds a value that {error}",
                remedy="The manifest calls it a date: check that both belong together",
            ) from None
        ends = (min(numbers), max(numbers)) if numbers else (0, -1)
    depth = 1 + len(column.scale.path(0.0))
    if ends[1] - ends[0] >= _MOST:
        _refuse(column.name, "has too many units of the calendar")
    paths = [[*column.scale.path(one), "*"] for one in range(int(ends[0]), int(ends[1]) + 1)]
    return nodes_of_paths(column.name, [*paths, *([one] * (depth - 1) + ["*"] for one in others)])


def _read_paths(file: Path, name: str) -> list[list[str]]:
    """Return the lines of a hierarchy file: labels with semicolons or commas between them.

    A header is left out: it begins with the name of the column; or is as long as the longest of the
    others, two at least, which end in one root, and shares no label with them.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig")
        for sign in (";", ",", ";"):  # neither fits: of semicolons errors speak
            cells = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
            lines = [line for line in cells if any(line)]
            if all(len(line) > 1 for line in lines):
                break
    except OSError as error:
        raise InputError(
            f"the hierarchy {file} cannot be read: {error.strerror}", remedy="Check the path"
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(
            f"the hierarchy {file} is no UTF-8 text of labels with semicolons or commas",
            remedy="Correct the file",
        ) from None
    if len(lines) > 1:
        above, below = lines[0], lines[1:]
        named = above[0].strip().casefold() == name.strip().casefold()
        foreign = not any(set(above) & set(line) for line in below)
        foreign &= len(above) == max(len(line) for line in below)
        if named or (foreign and len(below) > 1 and len({line[-1] for line in below}) == 1):
            lines = below
    if any("" in line[1:] for line in lines):
        raise InputError(
            f"the hierarchy {file} has a line with an empty label above its value",
            remedy="Give every value every level",
        )
    return lines


def _refuse(name: str, reason: str) -> None:
    raise InputError(
        f"the hierarchy of column {name!r} {reason}",
        remedy="Give for every value one line: the value, its generalizations, the root",
    )


_MOST = 1_000_000  # most numbers of a domain in bands


def _code_paths(given: Mapping[str, Any], where: str, file: Path) -> CodePaths:
    side, keep, separator = given.get("mask"), given.get("keep", []), given.get("separator", "")
    right = (
        side in (None, "right", "left")
        and isinstance(separator, str)
        and (side is None) == (separator != "")
        and isinstance(keep, list)
        and all(isinstance(number, int) and number > 0 for number in keep)
    )
    if not right:
        raise InputError(
            f"{where} is no mask or separator of codes", remedy='Write {mask = "right"}'
        )
    lines = _read_paths(file.parent / str(given["above"]), "") if "above" in given else []
    above, root = {line[0]: line[1:] for line in lines}, str(given.get("root", "*"))

    def levels(code: str) -> Iterator[str]:
        if side is not None:
            # So many characters as each level shows, else one less a level.
            for shown in keep or range(len(code) - 1, 0, -1):
                if shown < len(code) and side == "right":
                    yield code[:shown].ljust(len(code), "*")
                elif shown < len(code):
                    yield code[-shown:].rjust(len(code), "*")
            yield root
            return
        parts = code.split(separator)
        for number in range(max(len(parts) - 1, 1), 0, -1):
            yield f"{separator.join(parts[:number])}{separator}*"
        yield from above.get(code.partition(separator)[0], [root])

    def paths(codes: Iterable[str], others: Iterable[str]) -> list[list[str]]:
        known = sorted(set(codes) - {"", *others})
        return [*([code, *levels(code)] for code in known), *([one, root] for one in others)]

    return paths


def declared_paths(given: object, name: str, file: Path) -> Path | list[list[str]] | CodePaths:
    """Return the file of a hierarchy, its paths from each value to the root, or those of codes.

    `file`: the schema, to whose folder names of files are relative.
    """
    if isinstance(given, str):
        return file.parent / given
    where = f"attributes.{name}.hierarchy of the schema {file}"
    if isinstance(given, dict) and ("mask" in given or "separator" in given):
        return _code_paths(given, where, file)
    if not isinstance(given, dict) or ("groups" in given) == ("bands" in given):
        raise InputError(
            f"{where} is neither a file nor a table of groups or of bands",
            remedy="Give the path of its file, or a table with groups or bands",
        )
    root = str(given.get("root", "*"))
    if "groups" in given:
        try:
            return [[*path, root] for path in _members(given["groups"], where)]
        except RecursionError:
            raise InputError(f"{where} is nested too deep", remedy="Nest fewer groups") from None
    return list(_banded(given, root, where))


def _members(groups: object, where: str) -> Iterator[list[str]]:
    """Yield each value with the groups that hold it, from the innermost."""
    if isinstance(groups, dict):
        for name, inner in groups.items():
            for path in _members(inner, where):
                yield [*path, name]
    elif isinstance(groups, list) and not any(isinstance(one, (dict, list)) for one in groups):
        for value in groups:
            yield [str(value)]
    else:
        raise InputError(
            f"{where} has a group that is no list of values", remedy='Write North = ["SE", "NO"]'
        )


def _banded(given: Mapping[str, Any], root: str, where: str) -> Iterator[list[str]]:
    """Yield each whole number of the domain with the bands that hold it."""
    try:
        lowest, highest = given["domain"]
        widths = [Fraction(str(width)) for width in given["bands"]]
        origin = Fraction(str(given.get("origin", 0)))
        numbers = range(lowest, highest + 1)
        if len(numbers) > _MOST or not widths or min(widths) <= 0:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{where} is no list of bands with a domain of whole numbers",
            remedy="Write {bands = [5, 10], domain = [0, 99]}",
        ) from None
    whole = all(part.denominator == 1 for part in (*widths, origin))
    for number in numbers:
        path = [str(number)]
        for width in widths:
            low = number - (number - origin) % width
            end = low + width - 1 if whole else low + width
            path.append(f"{_written(low)}{'..' if whole else '..<'}{_written(end)}")
        yield [*path, root]


def _written(number: Fraction) -> str:
    return str(number) if number.denominator == 1 else format(float(number), ".15g")
