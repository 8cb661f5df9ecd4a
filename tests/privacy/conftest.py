"""A small writer of releases, after docs/format.md and nothing else."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonymip.privacy import Verification, verify


@dataclass
class Written:
    """A table, its release and its manifest, all open to corruption by a test."""

    original: pd.DataFrame
    release: pd.DataFrame
    manifest: dict[str, Any]
    hierarchies: dict[str, list[list[str]]] = field(default_factory=dict)

    def save(self, folder: Path, name: str = "release.csv") -> tuple[Path, Path]:
        """Write original and release with its manifest; returns both paths."""
        original, release = folder / "original.csv", folder / name
        # Without quotes a lone carriage return would end the line.
        self.original.to_csv(original, index=False, quoting=csv.QUOTE_ALL)
        if release.suffix == ".parquet":
            self.release.to_parquet(release, index=False)
        else:
            self.release.to_csv(release, index=False, quoting=csv.QUOTE_ALL)
        beside = release.with_name(release.name + ".manifest.json")
        beside.write_text(json.dumps(self.manifest), encoding="utf-8")
        return original, release

    def verify(self, **arguments: Any) -> Verification:
        """Verify the release in memory."""
        given = {"hierarchies": self.hierarchies, **arguments}
        return verify(self.original, self.release, self.manifest, **given)

    def leave_out(self) -> Written:
        """Take the rows of stars away and claim that they were suppressed records."""
        shown = [column for column in self.release if self.identifies(column)]
        stars = (self.release[shown] == "*").all(axis=1)
        self.release = self.release[~stars].reset_index(drop=True)
        self.manifest["suppressed"] = 0
        self.manifest["left_out"] = {
            "suppressed": int(stars.sum()),
            "missing": 0,
            "columns": [],
            "undeclared_columns": 0,
        }
        if "stars" in self.manifest:
            self.manifest["stars"] = "class"
        return self

    def identifies(self, header: str) -> bool:
        """Return whether a column of the release is one of a quasi-identifier."""
        roles = {column["name"]: column["role"] for column in self.manifest["columns"]}
        return roles.get(header, "quasi-identifier") == "quasi-identifier"

    def claim_loss(self, ncp: float) -> None:
        """Make the manifest claim another loss, consistently."""
        cells = self.manifest["n"] * self.manifest["m"]
        self.manifest.update(ncp=ncp, gcp=ncp / cells, objective={"name": "gcp", "value": ncp})


def number(value: float) -> str:
    """Return the spelling of a number."""
    text = repr(float(value) + 0.0)
    return text[:-2] if text.endswith(".0") else text


def numeric_cell(values: Sequence[float], publish: str) -> str:
    """Return the cell that covers some numbers."""
    ordered = sorted(set(values))
    if len(ordered) == 1:
        return number(ordered[0])
    if publish == "range":
        return f"[{number(ordered[0])}..{number(ordered[-1])}]"
    return "{" + "|".join(map(number, ordered)) + "}"


def single_text(text: str) -> str:
    """Return the cell that is one text, or the label of a node."""
    return "\\" + text if text[:1] in ("[", "{", "*", "\\") else text


def lowest_node(members: Sequence[str], paths: Sequence[Sequence[str]]) -> str:
    """Return the first label of a member's path that stands on the paths of all."""
    of = {path[0]: path for path in paths}
    return next(label for label in of[members[0]] if all(label in of[member] for member in members))


def text_cell(values: Sequence[str]) -> str:
    """Return the cell that covers some texts."""
    ordered = sorted(set(values))
    if len(ordered) == 1:
        return single_text(ordered[0])
    escaped = [
        text.replace("\\", "\\\\").replace("|", "\\|").replace("}", "\\}") for text in ordered
    ]
    return "{" + "|".join(escaped) + "}"


def penalty(
    column: Mapping[str, Any],
    members: Sequence[str],
    everyone: Sequence[str],
    paths: Sequence[Sequence[str]],
) -> float:
    """Return the loss of one cell that covers `members`."""
    if column["kind"] == "hierarchical":
        node = lowest_node(members, paths)
        below = sum(node in path for path in paths)
        return (below - 1) / (len(paths) - 1) if len(paths) > 1 else 0.0
    domain = column["domain"]
    if column["kind"] == "numeric":
        low, high = domain or (min(map(float, everyone)), max(map(float, everyone)))
        numbers = [float(member) for member in members]
        return (max(numbers) - min(numbers)) / (high - low) if high > low else 0.0
    size = len(set(domain or everyone))
    return (len(set(members)) - 1) / (size - 1) if size > 1 else 0.0


def write(
    original: pd.DataFrame,
    quasi_identifiers: Mapping[str, Mapping[str, Any]],
    labels: Sequence[int],
    *,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    layout: str = "cells",
    order: Sequence[int] | None = None,
    k: int = 2,
    sets: Sequence[Sequence[int]] | None = None,
    matching: Sequence[int] | None = None,
    recoding: str = "classes",
) -> Written:
    """Publish the classes that `labels` names; label -1 suppresses; `order` shuffles the rows.

    With `sets` row i is published with its own set of records, and shows the sensitive and kept
    values of record ``matching[i]``.
    """
    columns: list[dict[str, Any]] = []
    table: dict[str, list[str]] = {}
    ncp = 0.0
    for name, given in quasi_identifiers.items():
        kind = given.get("kind", "categorical")
        usual = {"numeric": "range", "hierarchical": "node"}.get(kind, "set")
        publish = given.get("publish", usual)
        paths = given.get("paths", ())
        column = {
            "name": name,
            "role": "quasi-identifier",
            "kind": kind,
            "publish": publish,
            "integer": given.get("integer", False),
            "domain": given.get("domain"),
        }
        columns.append(column)
        everyone = original[name].tolist()
        shown = []
        for row, label in enumerate(labels):
            members = [text for text, other in zip(everyone, labels, strict=True) if other == label]
            if sets is not None:
                members = [everyone[record] for record in sets[row]]
            ncp += 1.0 if label == -1 else penalty(column, members, everyone, paths)
            shown.append(members)
        if kind == "numeric" and publish == "range" and layout == "columns":
            for end, pick in (("lower", min), ("upper", max)):
                table[f"{name}_{end}"] = [
                    "*" if label == -1 else number(pick(map(float, members)))
                    for label, members in zip(labels, shown, strict=True)
                ]
            continue
        table[name] = [
            "*"
            if label == -1
            else numeric_cell([float(text) for text in members], publish)
            if kind == "numeric"
            else single_text(lowest_node(members, paths))
            if kind == "hierarchical"
            else text_cell(members)
            for label, members in zip(labels, shown, strict=True)
        ]
    for role, names in (("sensitive", sensitive), ("keep", keep)):
        for name in names:
            columns.append({"name": name, "role": role})
            values = original[name].tolist()
            table[name] = values if matching is None else [values[one] for one in matching]
    release = pd.DataFrame(table, dtype=object)
    if order is not None:
        release = release.iloc[list(order)].reset_index(drop=True)
    n, m = len(original), len(quasi_identifiers)
    manifest = {
        "format": "anonymip-release/1",
        "recoding": recoding,
        "k": k,
        "n": n,
        "m": m,
        "objective": {"name": "gcp", "value": ncp},
        "ncp": ncp,
        "gcp": ncp / (n * m),
        "bound": None,
        "gap": None,
        "status": "heuristic",
        "method": "by-hand",
        "options": {},
        "solver": None,
        "versions": {},
        "columns": columns,
        "table": {
            "separator": ",",
            "encoding": "utf-8",
            "layout": layout,
            "missing": {"policy": "error", "tokens": [], "label": "missing"},
        },
        "order": "kept" if order is None else "shuffled",
        "suppressed": sum(label == -1 for label in labels),
        "checked": [],
        "assumed": [],
    }
    hierarchies = {
        name: [list(path) for path in given["paths"]]
        for name, given in quasi_identifiers.items()
        if "paths" in given
    }
    return Written(original, release, manifest, hierarchies)


@pytest.fixture(scope="session")
def write_release() -> Any:
    """Return the writer."""
    return write


def write_cover(
    original: pd.DataFrame,
    quasi_identifiers: Mapping[str, Mapping[str, Any]],
    sets: Sequence[Sequence[int]],
    matching: Sequence[int],
    recoding: str = "freeform",
    **given: Any,
) -> Written:
    """Publish row i with the set of records ``sets[i]`` and the values of ``matching[i]``."""
    return write(
        original,
        quasi_identifiers,
        [0] * len(original),
        sets=sets,
        matching=matching,
        recoding=recoding,
        **given,
    )


@pytest.fixture(scope="session")
def cover_release() -> Any:
    """Return the writer of covers."""
    return write_cover


TOWNS = [
    ["Arden", "Hills", "North", "*"],
    ["Brock", "Hills", "North", "*"],
    ["Corby", "{Lakes}", "North", "*"],
    ["Dover", "Coast", "South", "*"],
    ["Elham", "Coast", "South", "*"],
]


@pytest.fixture
def townspeople() -> Written:
    """Eight records in three classes and one left out, diverse, capped, shuffled."""
    original = pd.DataFrame(
        {
            "age": ["20", "24", "28", "40", "44", "60", "63", "99"],
            "town": ["Arden", "Brock", "Corby", "Dover", "Elham", "Corby", "Dover", "Elham"],
            "disease": ["flu", "gout", "flu", "flu", "gout", "mumps", "gout", "flu"],
        },
        dtype=object,
    )
    written = write(
        original,
        {
            "age": {"kind": "numeric", "integer": True, "domain": [0, 100]},
            "town": {"kind": "hierarchical", "paths": TOWNS},
        },
        [0, 0, 0, 1, 1, 2, 2, -1],
        sensitive=["disease"],
        order=[6, 2, 0, 7, 4, 3, 1, 5],
    )
    written.manifest["diversity"] = {"l": 1.5, "distinct": 2}
    written.manifest["limits"] = [
        {"attribute": "age", "rule": "cap", "most": 8},
        {"attribute": "town", "rule": "cap", "most": 3},
        {"attribute": "town", "rule": "apart"},
    ]
    return written.leave_out()


@pytest.fixture
def patients() -> Written:
    """Seven records in two classes, shuffled, with a name that must not be published."""
    original = pd.DataFrame(
        {
            "name": ["Ann", "Bea", "Cyd", "Dan", "Eli", "Fay", "Gus"],
            "age": ["37", "35", "36", "61", "63", "66", "63"],
            "sex": ["F", "F", "F", "M", "M", "M", "M"],
            "zip": ["22071", "22098", "23061", "55107", "55099", "55324", "55229"],
            "disease": ["flu", "gout", "mumps", "flu", "gout", "gout", "gout"],
            "visit": ["01", "02", "03", "04", "05", "06", "07"],
        },
        dtype=object,
    )
    return write(
        original,
        {
            "age": {"kind": "numeric", "integer": True},
            "sex": {},
            "zip": {"kind": "numeric", "integer": True},
        },
        [0, 0, 0, 1, 1, 1, 1],
        sensitive=["disease"],
        order=[6, 2, 0, 4, 3, 1, 5],
        k=3,
    )
