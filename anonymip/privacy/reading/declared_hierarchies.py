"""Hierarchies that a schema writes out, as the verifier reads them: groups or bands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from anonymip.errors import InputError

#: Most numbers of a domain in bands.
_MOST = 1_000_000


def declared_paths(given: object, name: str, file: Path) -> Path | list[list[str]]:
    """Return the file of a hierarchy, or its paths from each value to the root.

    Parameters
    ----------
    given
        What the schema says.
    name
        Of the column.
    file
        The schema, to whose folder names of files are relative.

    Raises
    ------
    InputError
        If it is no file, no table of groups and no table of bands.
    """
    if isinstance(given, str):
        return file.parent / given
    where = f"attributes.{name}.hierarchy of the schema {file}"
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
