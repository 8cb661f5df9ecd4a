"""Generalization hierarchies as the verifier reads them: which values every node covers."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anonymip.errors import InputError, argument
from anonymip.privacy.reading.manifests.columns import Column

#: A hierarchy as it is handed over: for each value its path to the root, or the file of the paths.
Paths = Sequence[Sequence[str]] | str | Path


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one hierarchy, by label.

    Parameters
    ----------
    below
        The values that each node covers, sorted; a value covers itself.
    level
        The longest way from a value up to the node.
    root
        The node that covers all.
    paths
        The path of each value to the root, by level: labels may be repeated.
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
    """Return the nodes of a hierarchy.

    Parameters
    ----------
    name
        Of the column, for messages.
    paths
        For each value the path from it to the root; a label may be repeated at consecutive levels.

    Raises
    ------
    InputError
        If the paths are not those of one tree.

    Notes
    -----
    Complexity: O(total length of the paths), times the height for the check that they are a tree.
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
    files: Mapping[str, Path | Sequence[Sequence[str]]],
    given: Mapping[str, Paths],
) -> dict[str, Nodes]:
    """Return the hierarchies of the columns that need one.

    Parameters
    ----------
    columns
        The quasi-identifiers.
    files
        Files of hierarchies that a schema names, or the paths that it writes out, by column.
    given
        Hierarchies handed over, which go before those of the schema.

    Raises
    ------
    InputError
        If one is missing, cannot be read or is no tree.
    """
    found: dict[str, Nodes] = {}
    for column in columns:
        if column.kind != "hierarchical":
            continue
        source = given.get(column.name, files.get(column.name))
        if source is None:
            raise InputError(
                f"column {column.name!r} shows nodes of a hierarchy, which is not given",
                remedy=f"Give {argument('schema', ...)}, which names its file",
            )
        paths = _read_paths(Path(source)) if isinstance(source, (str, Path)) else source
        found[column.name] = nodes_of_paths(column.name, paths)
    return found


def _read_paths(file: Path) -> list[list[str]]:
    """Return the lines of a hierarchy file: labels with semicolons between them, no header."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            lines = [line for line in csv.reader(stream, delimiter=";") if any(line)]
    except OSError as error:
        raise InputError(
            f"the hierarchy {file} cannot be read: {error.strerror}", remedy="Check the path"
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(
            f"the hierarchy {file} is no UTF-8 text of labels and semicolons",
            remedy="Correct the file",
        ) from None
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
