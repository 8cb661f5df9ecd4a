"""Rank-1 cuts: whole solutions keep them, and what breaks them is found."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.set_partitioning.rank_one_cuts import (
    PLAIN_SHAPES,
    RankOneCut,
    coefficients,
    right_sides,
    separate,
    shapes_of,
)


def dense(cut: RankOneCut, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (c,) the coefficients of a cut, from the definition."""
    return members[:, list(cut.types)].sum(axis=1) // cut.divisor


def all_columns(types: int, size: int) -> NDArray[np.int64]:
    """Return (c, t) every column of different types of one size."""
    members = np.array(list(combinations(range(types), size)))
    columns = np.zeros((len(members), types), np.int64)
    np.put_along_axis(columns, members, 1, axis=1)
    return columns


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_no_whole_solution_breaks_a_cut(seed: int, freeform: bool) -> None:
    """A random solution in whole numbers keeps every cut that any weights bring forth."""
    rng = np.random.default_rng(seed)
    types, chosen = 8, 6
    columns = rng.multinomial(rng.integers(2, 6), np.full(types, 1 / types), size=40)
    if freeform:
        columns = all_columns(types, 3)
    solution = rng.integers(0, len(columns), chosen)
    coverage = columns[solution].sum(axis=0)
    cuts = separate(csr_array(columns), rng.random(len(columns)), coverage, seed=seed, starts=5)
    sides = right_sides(cuts, coverage)
    for cut, side in zip(cuts, sides.tolist(), strict=True):
        assert dense(cut, columns[solution]).sum() <= side


def test_coefficients_count_members_with_their_multiplicity() -> None:
    """Two members of one type and one of another are three of a set that holds both types."""
    columns = np.array([[2, 1, 0], [1, 1, 1], [0, 3, 0], [0, 0, 2]])
    cuts = [RankOneCut((0, 1), 3), RankOneCut((1, 2), 2), RankOneCut((0,), 2)]
    expected = np.stack([dense(cut, columns) for cut in cuts], axis=1)
    assert (coefficients(cuts, csr_array(columns)).toarray() == expected).all()
    assert expected[:, 0].tolist() == [1, 0, 1, 0]
    assert right_sides(cuts, np.array([3, 4, 1])).tolist() == [2, 2, 1]


@pytest.mark.parametrize(("types", "size", "repeat"), [(5, 2, 1), (7, 3, 1), (6, 3, 3), (8, 5, 5)])
def test_the_worst_triple_is_found(types: int, size: int, repeat: int) -> None:
    """Where columns hold a type at most once, no triple breaks its cut by more than the first."""
    columns = all_columns(types, size)
    coverage = np.full(types, repeat)
    rng = np.random.default_rng(3)
    broken = 0
    for _ in range(20):
        weights = fractional_point(columns, coverage, rng)
        cuts = [cut for cut in separate(csr_array(columns), weights, coverage) if cut.divisor == 2]
        triples = [RankOneCut(t, 2) for t in combinations(range(types), 3)]
        excess = [dense(t, columns) @ weights - right_sides([t], coverage)[0] for t in triples]
        if max(excess) > 0.03:
            broken += 1
            first = cuts[0]
            (side,) = right_sides([first], coverage)
            assert dense(first, columns) @ weights - side == pytest.approx(max(excess))
    assert broken > 2


def fractional_point(
    columns: NDArray[np.int64], coverage: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return (c,) a vertex of the relaxation for random costs."""
    from scipy.optimize import linprog

    found = linprog(rng.random(len(columns)), A_eq=columns.T, b_eq=coverage)
    return np.asarray(found.x, np.float64)


def test_local_search_finds_a_planted_cut() -> None:
    """All pairs of five rows at a quarter each break only the cut of all five by halves."""
    columns = all_columns(5, 2)
    weights = np.full(len(columns), 0.25)
    cuts = separate(csr_array(columns), weights, np.ones(5, np.int64))
    assert cuts == [RankOneCut((0, 1, 2, 3, 4), 2)]
    fours = np.array([[1, 1, 1, 0, 1], [1, 1, 0, 1, 1], [1, 0, 1, 1, 1], [0, 1, 1, 1, 1]])
    thirds = np.full(4, 1 / 3)
    found = separate(csr_array(fours), thirds, np.ones(5, np.int64))
    assert RankOneCut((0, 1, 2, 3), 3) in found


def test_the_same_seed_gives_the_same_cuts() -> None:
    """Cuts are equal for one seed, and none that is known comes back."""
    columns = all_columns(9, 3)
    weights = fractional_point(columns, np.ones(9, np.int64), np.random.default_rng(2))
    weights = 0.5 * weights + 0.5 * fractional_point(
        columns, np.ones(9, np.int64), np.random.default_rng(5)
    )
    first = separate(csr_array(columns), weights, np.ones(9, np.int64), seed=4)
    assert first == separate(csr_array(columns), weights, np.ones(9, np.int64), seed=4)
    again = separate(csr_array(columns), weights, np.ones(9, np.int64), seed=4, known=first)
    assert not set(first) & set(again)


def test_shapes_leave_something_over() -> None:
    """Where types are covered k times, c |T| leaves d - 1 modulo d."""
    assert shapes_of(np.ones(9, np.int64), 9) == PLAIN_SHAPES
    assert shapes_of(np.full(9, 3), 3) == ((5, 2), (7, 2))
    assert all(10 * size % d == d - 1 for size, d in shapes_of(np.full(9, 10), 10))
    assert not [d for _, d in shapes_of(np.full(9, 10), 10) if d == 2]


def test_whole_solutions_need_no_cut() -> None:
    """Nothing is looked for where nothing is fractional."""
    columns = np.eye(4, dtype=np.int64)
    assert separate(csr_array(columns), np.ones(4), np.ones(4, np.int64)) == []
