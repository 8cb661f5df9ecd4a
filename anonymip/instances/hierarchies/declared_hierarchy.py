"""Hierarchies as a schema declares them: a file, nested groups, or bands of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonymip.errors import InputError
from anonymip.instances.hierarchies.hierarchy import Hierarchy, read_hierarchy

_KEYS = {"groups": {"groups", "root"}, "bands": {"bands", "domain", "origin", "root"}}
#: Values of a domain that is given by its ends.
_MOST = 1_000_000


def declared_hierarchy(given: object, folder: Path) -> Hierarchy:
    """Return the hierarchy that an entry of a schema means.

    Parameters
    ----------
    given
        The name of a file; or a table with ``groups`` (tables of tables and lists of values), or
        with ``bands`` (a list of widths) and ``domain`` (lowest and highest whole number). Both may
        name the ``root``, bands their ``origin``.
    folder
        What names of files are relative to.

    Raises
    ------
    InputError
        If the entry is none of these, or what it says is no hierarchy.
    """
    if isinstance(given, str):
        return read_hierarchy(folder / given)
    if not isinstance(given, Mapping) or ("groups" in given) == ("bands" in given):
        raise InputError(
            "the hierarchy is neither a file nor a table of groups or of bands",
            remedy='Write hierarchy = "town.csv", {groups = {...}}, or {bands = [5, 10], '
            "domain = [0, 99]}",
        )
    kind = "groups" if "groups" in given else "bands"
    unknown = sorted(set(given) - _KEYS[kind])
    if unknown:
        raise InputError(
            f"a hierarchy of {kind} has no {unknown[0]!r}",
            remedy=f"Known are {', '.join(sorted(_KEYS[kind]))}",
        )
    root = given.get("root", "*")
    if not isinstance(root, str) or not root:
        raise InputError("the root of the hierarchy is no text", remedy='Write root = "*"')
    if kind == "groups":
        return Hierarchy.from_groups(given["groups"], root=root)
    return Hierarchy.from_bands(
        _whole_numbers(given), given["bands"], origin=given.get("origin", 0), root=root
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
