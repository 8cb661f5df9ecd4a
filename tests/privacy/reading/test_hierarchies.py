"""Tests of hierarchies as the verifier reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import Hierarchy
from anonymip.errors import InputError
from anonymip.privacy.reading.hierarchies import nodes_of_paths, read_nodes
from anonymip.privacy.reading.manifest_entries import Column
from anonymip.privacy.reading.original import read_schema

TOWN = Column("town", "quasi-identifier", "hierarchical", "node")


def test_every_node_covers_the_values_below_it() -> None:
    """Padded and uneven paths give the values of each label, and its level."""
    nodes = nodes_of_paths(
        "x", [["p", "X", "X", "*"], ["q", "Y", "X", "*"], ["r", "Y", "X", "*"], ["s", "*"]]
    )
    assert nodes.below == {
        "p": ("p",),
        "q": ("q",),
        "r": ("r",),
        "s": ("s",),
        "Y": ("q", "r"),
        "X": ("p", "q", "r"),
        "*": ("p", "q", "r", "s"),
    }
    assert (nodes.root, nodes.values) == ("*", ("p", "q", "r", "s"))
    assert [nodes.level[label] for label in ("p", "Y", "X", "*")] == [0, 1, 2, 3]


@st.composite
def paths(draw: st.DrawFn) -> list[list[str]]:
    """Draw lines that may or may not be a tree: few labels, so that they collide."""
    label = st.sampled_from(["a", "b", "c", "A", "B", "*", "", "{"])
    lines = draw(st.lists(st.lists(label, min_size=0, max_size=3), max_size=4))
    root = draw(st.sampled_from(["*", "R"]))
    return [[*line, root] if draw(st.integers(0, 9)) else line for line in lines]


@settings(max_examples=500)
@given(paths())
def test_both_readers_accept_the_same_trees(lines: list[list[str]]) -> None:
    """The package's reader and the verifier's, written separately, agree on what is a tree."""
    try:
        tree = Hierarchy(lines).tree
    except InputError:
        with pytest.raises(InputError):
            nodes_of_paths("x", lines)
        return
    nodes = nodes_of_paths("x", lines)
    for node, label in enumerate(tree.labels):
        leaves = tree.labels[tree.first[node] : tree.last[node] + 1]
        assert nodes.below[label] == tuple(sorted(leaves))
        assert nodes.level[label] == tree.level[node]
    assert nodes.root == tree.labels[tree.root]
    assert len(nodes.below) == len(tree.labels)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([["a"]], "line 1 has fewer than two levels"),
        ([["b", "*"], ["a", "X", "Y", "X", "*"]], "line 2 comes back to an earlier level"),
        ([["a", "X", "*"], ["b", "X", "Y", "*"]], "line 2 contradicts an earlier line"),
        ([["a", "X"], ["b", "Y"]], "has more than one root"),
        ([["a", "*"], ["a", "*"]], "names a value twice"),
    ],
)
def test_what_is_no_tree_is_said(lines: list[list[str]], words: str) -> None:
    """The message says what is wrong, and in which line."""
    with pytest.raises(InputError, match=words):
        nodes_of_paths("x", lines)


def test_files_are_named_by_the_schema(tmp_path: Path) -> None:
    """A hierarchy file lies where the schema says, relative to it; naming it names the kind."""
    folder = tmp_path / "trees"
    folder.mkdir()
    (folder / "town.csv").write_bytes('\ufeffa;"x;y";*\n\nb;"x;y";*\n'.encode())
    schema = tmp_path / "schema.toml"
    schema.write_text('[attributes.town]\nhierarchy = "trees/town.csv"\n', encoding="utf-8")
    known = read_schema(schema)
    assert known is not None
    assert known.kinds == {"town": "hierarchical"}
    assert read_nodes([TOWN], known.hierarchies, {})["town"].below["x;y"] == ("a", "b")
    given_paths = read_nodes([TOWN], known.hierarchies, {"town": [["c", "*"]]})
    assert given_paths["town"].values == ("c",)
    assert read_nodes([Column("town", "quasi-identifier")], known.hierarchies, {}) == {}


def test_hierarchies_that_cannot_be_read(tmp_path: Path) -> None:
    """A hierarchy that is not given, not there or not text is bad input."""
    with pytest.raises(InputError, match="which is not given") as caught:
        read_nodes([TOWN], {}, {})
    assert "schema=..." in (caught.value.remedy or "")
    with pytest.raises(InputError, match="cannot be read"):
        read_nodes([TOWN], {"town": tmp_path / "absent.csv"}, {})
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe;*\n")
    with pytest.raises(InputError, match="no UTF-8 text"):
        read_nodes([TOWN], {"town": tmp_path / "bytes.csv"}, {})
    (tmp_path / "empty.csv").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="no values"):
        read_nodes([TOWN], {}, {"town": tmp_path / "empty.csv"})
    schema = tmp_path / "schema.toml"
    schema.write_text("[attributes.town]\nhierarchy = 3\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"town\.hierarchy"):
        read_schema(schema)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"deep = {'{a=' * 400}1{'}' * 400}", "is not TOML"),
        (f"[attributes.town.hierarchy.groups{'.a' * 2000}]\n", "nested too deep"),
        (f"[attributes.town]\nweight = {'9' * 5000}", "is not TOML"),
    ],
    ids=["tables", "dotted names", "digits"],
)
def test_schemas_beyond_measure(text: str, words: str, tmp_path: Path) -> None:
    """A schema that Python's own limits stop is bad input, not an internal error."""
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_schema(tmp_path / "schema.toml")
