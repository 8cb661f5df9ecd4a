"""Tests of hierarchies: files, validation, and as arrays against the paths themselves."""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Hierarchy, InputError, read_hierarchy
from anonymip.instances.hierarchies.tree import Tree
from anonymip.privacy.reading.hierarchies import read_nodes
from anonymip.privacy.reading.manifest_entries import Column as PublishedColumn
from tests import brute_force
from tests.brute_force import Column
from tests.random_problems import TREES

DATA_FOLDERS = ("adult/hierarchies", "adult/trees", "cmc/hierarchies", "fars/hierarchies")

#: Values and levels above them, as counted in the files' lines and columns.
KNOWN_FILES = {
    "adult_hierarchy_age.csv": (100, 4),
    "adult_hierarchy_education.csv": (16, 3),
    "adult_hierarchy_native-country.csv": (41, 2),
    "adult_hierarchy_sex.csv": (2, 1),
    "adult_workclass.txt": (8, 2),
    "cmc_hierarchy_children.csv": (15, 3),
    "fars_hierarchy_iage.csv": (100, 5),
    "fars_hierarchy_istatenum.csv": (57, 3),
}


def write(folder: Path, text: str | bytes) -> Path:
    """Write a hierarchy file."""
    path = folder / "hierarchy.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_tree_is_read_from_its_paths(tmp_path: Path) -> None:
    """Leaves keep their order; parents, root and height follow from the paths."""
    tree = read_hierarchy(write(tmp_path, "nurse;health;any\nclerk;office;any\nvet;health;any\n"))
    assert tree.leaves == ("nurse", "clerk", "vet")
    assert tree.root == "any"
    assert tree.height == 2
    assert dict(tree.parents) == {
        "nurse": "health",
        "vet": "health",
        "clerk": "office",
        "health": "any",
        "office": "any",
    }


def test_parents_cannot_be_changed() -> None:
    """A hierarchy is frozen, the parents of its nodes too."""
    tree = Hierarchy([("a", "*"), ("b", "*")])
    with pytest.raises(TypeError):
        tree.parents["a"] = "b"  # type: ignore[index]


@pytest.mark.parametrize(
    "text",
    [
        "a;x;*\r\nb;x;*\r\n",
        "a;x;*\n\nb;x;*\n\n",
        b"\xef\xbb\xbfa;x;*\nb;x;*\n",
        '"a";"x";"*"\nb;x;*',
    ],
    ids=["crlf", "blank lines", "byte order mark", "quotes"],
)
def test_variants_of_one_file_are_read_alike(tmp_path: Path, text: str | bytes) -> None:
    """Line ends, blank lines, a byte order mark and quotes change nothing."""
    assert read_hierarchy(write(tmp_path, text)) == Hierarchy([("a", "x", "*"), ("b", "x", "*")])


def test_separator_and_encoding_can_be_named(tmp_path: Path) -> None:
    """Commas and Latin-1 are read when they are declared."""
    path = write(tmp_path, "é,*\nb,*\n".encode("latin-1"))
    assert read_hierarchy(path, separator=",", encoding="latin-1").leaves == ("é", "b")


def test_ragged_paths_are_one_tree() -> None:
    """Paths may differ in length as long as every node keeps its parent; the longest counts."""
    tree = Hierarchy([("a", "x", "*"), ("b", "*"), ("c", "x", "*")])
    assert tree.height == 2
    assert tree.parents["b"] == "*"


def test_padded_levels_are_one_node() -> None:
    """A label repeated at consecutive levels of a path stands for one node."""
    tree = Hierarchy([("a", "a", "*"), ("b", "*", "*")])
    assert dict(tree.parents) == {"a": "*", "b": "*"}


@pytest.mark.parametrize(
    ("lines", "message", "value"),
    [
        ([], "no values", None),
        ([("a",)], "line 1 has fewer than two levels", None),
        ([("a", "*"), ()], "line 2 has fewer than two levels", None),
        ([("a", "*"), ("a", "*")], "line 2 repeats a value", "a"),
        ([("a", "*"), ("b", "all")], "line 2 does not end in the root", "all"),
        ([("a", "x", "y", "x", "*")], "line 1 comes back to an earlier level: .* cyclic", None),
        ([("a", "x", "y", "*"), ("b", "y", "x", "*")], "line 2 .* two different parents", "y"),
        ([("a", "x", "*"), ("b", "x", "y", "*")], "line 2 .* two different parents", "x"),
        ([("a", "x", "*"), ("x", "*")], "also the generalization of another", "x"),
        ([("a", "*"), ("*", "*")], "also the generalization of another", "*"),
    ],
)
def test_what_is_no_tree_is_refused(
    lines: list[tuple[str, ...]], message: str, value: str | None
) -> None:
    """Cyclic, contradictory and incomplete paths raise errors that name the line, not the value."""
    with pytest.raises(InputError, match=message) as caught:
        Hierarchy(lines)
    assert caught.value.remedy
    assert caught.value.value == value


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "no values"),
        (b"\xe9;*\n", {}, "is not utf-8 text"),
        ("a;*\n", {"encoding": "nonsense"}, "is not nonsense text"),
        ("a;*\n", {"separator": "::"}, "separator '::' is not one character"),
        ("a" * 200_000 + ";*\n", {}, "is not a table"),
    ],
)
def test_unreadable_files_are_refused(
    tmp_path: Path, text: str | bytes, options: dict[str, str], message: str
) -> None:
    """A file that is no hierarchy raises a message with a remedy, never a traceback."""
    with pytest.raises(InputError, match=message) as caught:
        read_hierarchy(write(tmp_path, text), **options)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\na;x;*\n\nb;*;x\n", r"hierarchy\.csv: line 4 does not end in the root"),
        ("a;x;*\nb;;*\n", r"hierarchy\.csv: line 2 has no label in column 2"),
        ("a;x;*\nb;x;*;\n", r"hierarchy\.csv: line 2 has no label in column 4"),
        ('"a\nb";x;*\n\na;x;y;x;*\n', r"hierarchy\.csv: line 4 comes back .* cyclic"),
        ("a;x;*\nx;*\n", r"hierarchy\.csv: a value of the hierarchy is also"),
    ],
)
def test_errors_name_the_file_and_the_line_in_it(tmp_path: Path, text: str, message: str) -> None:
    """Blank lines and lines within quotes count, as they do in an editor."""
    with pytest.raises(InputError, match=message) as caught:
        read_hierarchy(write(tmp_path, text))
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["absent.csv", "."])
def test_missing_files_and_folders_are_refused(tmp_path: Path, name: str) -> None:
    """A path that holds no file is named in the message."""
    with pytest.raises(InputError, match="cannot read the hierarchy"):
        read_hierarchy(tmp_path / name)


@pytest.mark.shared_data
def test_all_hierarchies_of_the_benchmark_data_are_trees(shared_data: Path) -> None:
    """Every real hierarchy and taxonomy file is read, with the star as root."""
    files = sorted(path for name in DATA_FOLDERS for path in (shared_data / name).iterdir())
    trees = {path.name: read_hierarchy(path) for path in files}
    assert len(trees) == 27
    assert {tree.root for tree in trees.values()} == {"*"}
    for name, (values, height) in KNOWN_FILES.items():
        assert (len(trees[name].leaves), trees[name].height) == (values, height), name


def tree_of(paths: tuple[tuple[str, ...], ...]) -> Tree:
    """Return the arrays of a hierarchy."""
    return Hierarchy(paths).tree


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[tuple[str, ...], ...]:
    """Draw one of the hierarchies, its paths in any order."""
    return tuple(draw(st.permutations(TREES[draw(st.sampled_from(sorted(TREES)))])))


@given(paths=shuffled())
def test_leaves_come_first_and_a_node_covers_a_run_of_them(
    paths: tuple[tuple[str, ...], ...],
) -> None:
    """What lies below a node is exactly its run of leaves."""
    tree = tree_of(paths)
    assert set(tree.labels[: tree.leaves]) == {path[0] for path in paths}
    for at, label in enumerate(tree.labels):
        below = {path[0] for path in paths if label in path}
        assert set(tree.labels[tree.first[at] : tree.last[at] + 1]) == below
        assert tree.leaves_below[at] == len(below)
        assert tree.place[label] == at
    assert tree.labels[tree.root] == paths[0][-1]
    assert tree.parent[tree.root] == -1


@given(paths=shuffled())
def test_levels_rise_to_the_root(paths: tuple[tuple[str, ...], ...]) -> None:
    """A level is the lowest at which all values below agree, also where paths are padded."""
    tree = tree_of(paths)
    column = Column(tuple(path[0] for path in paths), False, paths=paths)
    for at, label in enumerate(tree.labels):
        assert tree.level[at] == brute_force.level_of(column, label)
        if tree.parent[at] >= 0:
            assert tree.level[tree.parent[at]] > tree.level[at]
    assert tree.height == tree.level.max()


@given(paths=shuffled(), data=st.data())
def test_common_ancestors_cover_a_set_by_its_ends(
    paths: tuple[tuple[str, ...], ...], data: st.DataObject
) -> None:
    """The lowest node over a set of leaves is that over its first and its last leaf."""
    tree = tree_of(paths)
    leaves = data.draw(st.lists(st.integers(0, tree.leaves - 1), min_size=1))
    column = Column(tuple(path[0] for path in paths), False, paths=paths)
    expected = brute_force.node(column, [tree.labels[leaf] for leaf in leaves])
    ends = np.array([min(leaves)]), np.array([max(leaves)])
    assert tree.labels[tree.common_ancestors(*ends)[0]] == expected
    assert tree.labels[tree.common_ancestors(ends[1], ends[0])[0]] == expected


def test_common_ancestors_broadcast() -> None:
    """A column against a row gives the matrix of all pairs."""
    tree = tree_of(TREES["balanced"])
    leaves = np.arange(tree.leaves)
    matrix = tree.common_ancestors(leaves[:, None], leaves[None, :])
    assert matrix.shape == (4, 4)
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(np.diag(matrix), leaves)


@pytest.mark.parametrize("depth", [3000])
def test_deep_hierarchies_do_not_recurse(depth: int) -> None:
    """A path longer than Python's recursion limit is no problem."""
    spine = tuple(f"n{at}" for at in range(depth))
    tree = tree_of((("a", *spine), ("b", spine[-1])))
    assert tree.height == depth


published = partial(PublishedColumn, role="quasi-identifier", kind="hierarchical", publish="node")
TOWNS = [["Oslo", "North", "*"], ["Rome", "South", "*"], ["Pisa", "South", "*"]]


@pytest.mark.parametrize("separator", [";", ","])
@pytest.mark.parametrize(
    ("header", "column"),
    [(None, None), (["town", "part", "all"], None), (["Town", "part", "*"], "town")],
)
def test_headers_and_separators_are_recognised_by_both_readers(
    tmp_path: Path, separator: str, header: list[str] | None, column: str | None
) -> None:
    """Semicolons or commas, with or without a line that names the levels: one tree, read twice."""
    file = tmp_path / "town.csv"
    lines = TOWNS if header is None else [header, *TOWNS]
    file.write_text("".join(f"{separator.join(line)}\n" for line in lines))
    assert [list(path) for path in read_hierarchy(file, column=column).paths] == TOWNS
    nodes = read_nodes([published("town")], {"town": file}, {})
    assert [list(path) for path in nodes["town"].paths] == TOWNS


@pytest.mark.parametrize(
    "text",
    [
        "Oslo;North;**\nRome;South;*\nBergen;North;*\n",  # a slip in a root, not a header
        "Oslo;Norway\nRome;Italy\n",  # two trees
        "town;part\nOslo;Norway\nRome;Italy\n",  # and what is above them
        "Oslo\nRome;Italy\nPisa;Italy\n",  # no separator
    ],
)
def test_a_line_that_may_be_a_value_is_no_header(tmp_path: Path, text: str) -> None:
    """It stays an error of its line, in both readers."""
    file = tmp_path / "town.csv"
    file.write_text(text)
    with pytest.raises(InputError):
        read_hierarchy(file, column="place")
    with pytest.raises(InputError):
        read_nodes([published("place")], {"place": file}, {})


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "c;d", "e,f", "*", "town"]), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([";", ","]),
)
def test_both_readers_agree_on_any_file(paths: list[list[str]], separator: str) -> None:
    """What one takes the other takes, as the same tree."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "town.csv"
        with file.open("w", newline="") as stream:
            csv.writer(stream, delimiter=separator).writerows(paths)
        found = []
        column = published("town")
        for read in (
            lambda: read_hierarchy(file, column="town").paths,
            lambda: read_nodes([column], {"town": file}, {})["town"].paths,
        ):
            try:
                found.append(read())
            except InputError:
                found.append(None)
        assert found[0] == found[1]
