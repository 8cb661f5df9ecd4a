"""Generated tables at the optima that the papers prove."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from anonymip import HierarchyLoss, InputError, Microdata, Problem, solve
from anonymip.heuristics.approximation.two_factor import two_factor
from reproductions.reductions import (
    alternating_table,
    block_table,
    greedy_trap,
    set_cover_table,
    tight_cycle_table,
    triangle_table,
)

BOWTIE = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)]
HEXAGON = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]
TWO_STARS = [(0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (4, 7)]


def proven(table: Microdata, k: int) -> float:
    """Return the optimum number of stars, proven by the exact method."""
    solution = solve(Problem(table, k, objective=HierarchyLoss()), "equivalence-mip")
    assert solution.is_optimal
    return solution.objective


@pytest.mark.parametrize(
    ("edges", "splits", "splits_with_stars"),
    [(BOWTIE, True, True), (HEXAGON, False, False), (TWO_STARS, False, True)],
)
def test_aggarwal_theorem_1(
    edges: list[tuple[int, int]], splits: bool, splits_with_stars: bool
) -> None:
    """9 m t exactly if the edges split into triangles; 9 m if into triangles and 4-stars."""
    ternary = proven(triangle_table(edges), 3)
    binary = proven(triangle_table(edges, binary=True), 3)
    assert ternary >= 9 * 2 * 3
    assert binary >= 9 * 2
    assert (ternary == 9 * 2 * 3) is splits
    assert (binary == 9 * 2) is splits_with_stars


def test_aggarwal_figure_2() -> None:
    """The paper's table has five edges; with a sixth its rows are those printed."""
    edges = [(2, 3), (0, 3), (0, 1), (0, 2), (1, 2), (1, 3)]
    rows = triangle_table(edges).frame.astype(int).to_numpy()
    assert rows[0].tolist() == [0, 0, 1, 2, 0, 0, 1, 2, 0, 0, 2, 1]
    assert rows[1].tolist() == [1, 0, 0, 2, 2, 0, 0, 1, 1, 0, 0, 2]
    assert rows[4].tolist() == [0, 2, 1, 0, 0, 1, 2, 0, 0, 2, 1, 0]


@pytest.mark.parametrize(
    "edges", [[], [(0, 1)], [(0, 0), (0, 1), (1, 2)], [(0, 1), (1, 0), (1, 2)]]
)
def test_graphs_that_are_none(edges: list[tuple[int, int]]) -> None:
    """Loops, double edges and wrong numbers of edges are refused."""
    with pytest.raises(InputError):
        triangle_table(edges)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_aggarwal_section_4_same_distances_other_optima(k: int) -> None:
    """All pairs differ in 2^(k-1) bits in both tables; k^2 l stars against 4 k l - 2 k."""
    l = 2 ** (k - 2)  # noqa: E741
    for table, stars in ((block_table(k), k * k * l), (alternating_table(k), 4 * k * l - 2 * k)):
        codes = table.codes
        for one, other in itertools.combinations(range(k), 2):
            assert (codes[one] != codes[other]).sum() == 2 * l
        losses = HierarchyLoss().compile(table).class_losses(np.arange(k)[None, :])
        # The k records are one class in every release.
        assert losses.tolist() == [stars]
        assert proven(table, k) == stars


def test_aggarwal_lemma_11_is_tight() -> None:
    """The 2-factor weighs 8, cutting it costs 24, and so does the optimum."""
    solution = two_factor(Problem(tight_cycle_table(), 3, objective=HierarchyLoss()))
    assert solution.objective == 24 == proven(tight_cycle_table(), 3)
    assert solution.bound is not None
    assert solution.bound.value == pytest.approx(1.5 * 8)


def pattern_optimum(table: Microdata, mask: tuple[tuple[int, ...], ...], k: int) -> float:
    """Return the fewest stars, by choosing for each row a pattern, in plain Python."""
    rows = [tuple(row) for row in table.frame.to_numpy()]
    best = np.inf
    seen = [
        [tuple(None if a in starred else row[a] for a in range(len(row))) for starred in mask]
        for row in rows
    ]
    fits = [
        [j for j in range(len(mask)) if sum(seen[i][j] == other[j] for other in seen) >= k]
        for i in range(len(rows))
    ]
    for choice in itertools.product(*fits):
        stars = sum(len(mask[j]) for j in choice)
        if stars < best:
            shown = [(j, seen[i][j]) for i, j in enumerate(choice)]
            if all(shown.count(one) >= k for one in set(shown)):
                best = stars
    return best


@pytest.mark.parametrize(
    ("elements", "sets", "smallest"),
    [(3, [(0, 1, 2)], 1), (4, [(0, 1, 2), (1, 2, 3)], 2), (3, [(0, 1, 2), (0, 1, 2)], 1)],
)
def test_bredereck_theorem_1(
    elements: int, sets: list[tuple[int, int, int]], smallest: int
) -> None:
    """The optimum is 4 |U| + 3 |F| + 3 h for the smallest cover of h sets."""
    table, mask = set_cover_table(elements, sets)
    expected = 4 * elements + 3 * len(sets) + 3 * smallest
    assert pattern_optimum(table, mask, 3) == expected


@pytest.mark.parametrize("m", [2, 3])
def test_bredereck_theorem_4(m: int) -> None:
    """The optimum is m^2, one star a row."""
    table, mask = greedy_trap(m)
    assert table.n == m * m
    assert pattern_optimum(table, mask, m) == m * m
