"""Tests of releases with hierarchical attributes: odd labels, round trips, exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    EquivalenceClasses,
    Hierarchy,
    Microdata,
    Problem,
    TableFormat,
    anonymize,
    publish,
    verify,
)
from anonymip.cli.app import run
from tests.by_hand import by_classes

LABELS = ["*", "\\*", "**", "{a|b}", "[1..2]", "\\", "|", "}", "", " ", "a;b", 'a"b', "é", "x\ny"]
LABELS += ["*a", "{", "[", "1", "1.0", "nan", "a", "b", "c", "d", ",", "\r"]


@st.composite
def hierarchies(draw: st.DrawFn) -> list[list[str]]:
    """Draw a tree with odd labels: values in groups, groups in regions, one root; some padded."""
    labels = draw(st.permutations(LABELS))
    # An empty label is a value like any other, but a gap in a file where a group should be.
    above = [label for label in labels if label][:7]
    root, regions, groups = above[0], above[1:3], above[3:]
    values = [label for label in labels if label not in above]
    count = draw(st.integers(1, 6))
    of_group = [draw(st.integers(0, 1)) for _ in groups]
    lines = []
    for value in values[:count]:
        group = draw(st.integers(0, len(groups) - 1))
        path = [value, groups[group], regions[of_group[group]], root]
        if draw(st.integers(0, 4)) == 0 and value:
            path = [value, value, root]  # a value of its own at the second level
        lines.append(path)
    return lines


@settings(max_examples=40)
@given(data=st.data())
def test_any_hierarchy_is_published_truly(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the labels, cells read back as the lowest node, from files too, and verify."""
    paths = data.draw(hierarchies())
    n = data.draw(st.integers(2, 7))
    leaves = [path[0] for path in paths]
    values = data.draw(st.lists(st.sampled_from(leaves), min_size=n, max_size=n))
    labels = [min(row // 2, n // 2 - 1) for row in range(n)]
    if n > 3 and data.draw(st.booleans()):
        labels = [label or -1 for label in labels]
    fate = "starred" if labels.count(-1) == n else "left-out"
    frame = pd.DataFrame({"h": values, "s": data.draw(st.permutations(range(n)))})
    microdata = Microdata(
        frame,
        (Attribute("h", "hierarchical", hierarchy=Hierarchy(paths)),),
        sensitive=("s",),
        table=TableFormat(missing=()),
    )
    problem = Problem(microdata, 2, EquivalenceClasses(True))
    solution = by_classes(problem, labels)
    release = publish(solution, keep_order=data.draw(st.booleans()), suppressed=fate)
    assert release.verify().problems == ()
    folder = tmp_path_factory.mktemp("tree")
    for name in ("release.csv", "release.parquet"):
        table, _ = release.write(folder / name)
        assert verify(frame, table, hierarchies={"h": paths}).ok
    kept = publish(solution, keep_order=True, suppressed="starred").frame["h"]
    path_of = {path[0]: path for path in paths}
    expected = []
    for label, value in zip(labels, values, strict=True):
        members = [v for v, other in zip(values, labels, strict=True) if other == label]
        node = next(x for x in path_of[value] if all(x in path_of[v] for v in members))
        expected.append(None if label == -1 else node)
        cell = kept.iloc[len(expected) - 1]
        assert cell == "*" if label == -1 else cell in (node, f"\\{node}")
        assert (cell == "*") == (label == -1)
    assert solution.to_frame()["h"].tolist() == expected
    with (folder / "tree.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=";", quoting=csv.QUOTE_ALL).writerows(paths)
    (folder / "schema.toml").write_text(
        '[attributes.h]\nkind = "hierarchical"\nhierarchy = "tree.csv"\n'
        '[table]\nsensitive = ["s"]\nmissing = []\n',
        encoding="utf-8",
    )
    # A file drops what is empty on a whole line only, which no path is.
    assert verify(frame, folder / "release.csv", schema=folder / "schema.toml").ok


def test_a_root_and_a_star_look_different() -> None:
    """A class that only the root covers is no suppressed record, although both are stars."""
    tree = Hierarchy([("a", "*"), ("b", "*")])
    data = Microdata(
        pd.DataFrame({"h": ["a", "b", "a", "a"]}), (Attribute("h", "hierarchical", hierarchy=tree),)
    )
    problem = Problem(data, 2, EquivalenceClasses(True))
    solution = by_classes(problem, [0, 0, -1, -1])
    release = publish(solution, keep_order=True, suppressed="starred")
    assert release.frame["h"].tolist() == ["\\*", "\\*", "*", "*"]
    assert (release.manifest["suppressed"], release.manifest["ncp"]) == (2, 4.0)
    found = release.verify()
    assert found.ok
    assert (found.classes, found.suppressed) == (1, 2)


def test_the_hierarchy_is_not_in_the_manifest() -> None:
    """The manifest names the kind; no label of the hierarchy stands in it."""
    tree = Hierarchy([("zebra", "equine", "mammal"), ("donkey", "equine", "mammal")])
    frame = pd.DataFrame({"h": ["zebra", "donkey"]})
    attribute = Attribute("h", "hierarchical", hierarchy=tree)
    release = anonymize(frame, [attribute], 2)
    (column,) = release.manifest["columns"]
    assert (column["kind"], column["publish"], column["domain"]) == ("hierarchical", "node", None)
    for label in ("zebra", "donkey", "equine", "mammal"):
        assert label not in json.dumps(release.manifest)
    assert release.frame["h"].tolist() == ["equine"] * 2


@pytest.mark.parametrize("faulty", ["mammal", "zebra", "*", "{donkey|zebra}", "horse"])
def test_a_faulty_writer_of_nodes_publishes_nothing(
    monkeypatch: pytest.MonkeyPatch, faulty: str
) -> None:
    """A node too high, too low, unknown or no node at all is refused by the verifier."""
    from anonymip import VerificationFailed

    paths = [("zebra", "equine", "mammal"), ("donkey", "equine", "mammal"), ("cat", "mammal")]
    attribute = Attribute("h", "hierarchical", hierarchy=Hierarchy(paths))
    frame = pd.DataFrame({"h": ["zebra", "donkey"]})
    assert anonymize(frame, [attribute], 2).verify().ok
    monkeypatch.setattr("anonymip.publishing.cells._text", lambda text: faulty)
    with pytest.raises(VerificationFailed, match="Nothing was published"):
        anonymize(frame, [attribute], 2)


def test_exit_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """The command verifies nodes with a schema: 0 if they hold, 1 if not, 2 without hierarchy."""
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("town\nArden\nBrock\nCorby\nDover\n", encoding="utf-8")
    Path("town.csv").write_text(
        "Arden;North;*\nBrock;North;*\nCorby;South;*\nDover;South;*\n", encoding="utf-8"
    )
    Path("people.toml").write_text('[attributes.town]\nhierarchy = "town.csv"\n', "utf-8")
    release = [*("anonymize", "people.csv", "-k", "2", "-o", "release.csv"), "--keep-order"]
    assert run([*release, "--schema", "people.toml"]) == 0
    published = Path("release.csv").read_text(encoding="utf-8")
    assert published.split() == ["town", "North", "North", "South", "South"]
    command = ["verify", "people.csv", "release.csv"]
    assert run([*command, "--schema", "people.toml"]) == 0
    assert run(command) == 2
    assert "--schema" in capsys.readouterr().err
    Path("release.csv").write_text(published.replace("South", "\\*"), encoding="utf-8")
    assert run([*command, "--schema", "people.toml"]) == 1
    Path("release.csv").write_text(published.replace("South", "North"), encoding="utf-8")
    assert run([*command, "--schema", "people.toml"]) == 1
    Path("town.csv").write_text("Arden;North;*\nBrock;North\n", encoding="utf-8")
    assert run([*command, "--schema", "people.toml"]) == 2
