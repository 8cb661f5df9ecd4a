"""Tests of hierarchies as arrays, against the paths themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymip import Hierarchy
from anonymip.instances.hierarchies.tree import Tree
from tests import brute_force
from tests.brute_force import Column
from tests.random_problems import TREES


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
