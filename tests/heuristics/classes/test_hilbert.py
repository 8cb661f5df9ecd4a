"""Hilbert order and cut: the best cut for what its cells count, and a grid by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, note, settings

from anonymip import Bottleneck, Budget, Diversity, InputError
from anonymip.heuristics.classes.hilbert import CELLS, hilbert
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.orders.orders import hilbert_order
from tests.brute_force import Column, Groups, consecutive_cuts
from tests.random_problems import LOSSES, Case, cases, groups_of, ruled_cases


def values_counted(case: Case, groups: Groups, ranges: bool) -> float:
    """Return the sum over records of (values - 1) / (domain size - 1), counted by hand."""
    data = case.problem().microdata
    total = 0.0
    for group in groups:
        for a, attribute in enumerate(data.attributes):
            levels = data.levels[a].tolist()
            held = [levels[data.codes[record, a]] for record in group]
            if not ranges:
                count = len(set(held))
            elif attribute.integer:
                count = int(max(held) - min(held)) + 1
            else:
                places = [levels.index(value) for value in held]
                count = max(places) - min(places) + 1
            total += len(group) * (count - 1) / max(data.domain_size(a) - 1, 1)
    return total


@settings(max_examples=40)
@given(cases(largest=9, suppression=False))
def test_no_cut_of_the_hilbert_order_counts_fewer_values(case: Case) -> None:
    """HR and HS are the best cuts by plain counting."""
    problem = case.problem()
    order = hilbert_order(problem, Budget()).tolist()
    cuts = list(consecutive_cuts(order, case.k))
    for cells in ("HR", "HS"):
        note(cells)
        found = groups_of(hilbert(problem, cells=cells).assignment)
        best = min(values_counted(case, cut, cells == "HR") for cut in cuts)
        assert values_counted(case, found, cells == "HR") == pytest.approx(best, abs=1e-9)


@settings(max_examples=30)
@given(ruled_cases())
def test_the_objective_decides_by_default(case: Case) -> None:
    """Under rules and with the largest loss too, the cut is that of ordered-cut."""
    problem = case.problem()
    solution = hilbert(problem)
    assert solution.method == "hilbert"
    assert solution.objective == ordered_cut(problem, order="hilbert").objective


def test_quadrants_of_a_grid_by_hand() -> None:
    """On a 4 x 4 grid the curve visits one quadrant after the other: four classes of 2 x 2."""
    points = list(product(range(4), repeat=2))
    columns = tuple(Column(tuple(axis), integer=True) for axis in zip(*points, strict=True))
    problem = Case(columns, 4, LOSSES["gcp"]).problem()
    places = np.array(points)[hilbert_order(problem, Budget())]
    assert (np.abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()
    quadrants = {
        frozenset(i for i, (x, y) in enumerate(points) if (x // 2, y // 2) == quadrant)
        for quadrant in product(range(2), repeat=2)
    }
    for cells in CELLS:
        solution = hilbert(problem, cells=cells)
        assert {frozenset(group) for group in groups_of(solution.assignment)} == quadrants
        assert solution.objective == pytest.approx(16 * (1 / 3 + 1 / 3))
        assert solution.options["cells"] == cells


def test_ranges_and_sets_cut_differently() -> None:
    """Values 0, 1, 2, 9, 9 with k = 2, by hand.

    HR counts 3 * 2 for {0, 1, 2}, {9, 9} and 2 * 1 + 3 * 7 for {0, 1}, {2, 9, 9}; HS counts 3 * 2
    and 2 * 1 + 3 * 1: it does not see how far 2 and 9 are apart.
    """
    case = Case((Column((0, 1, 2, 9, 9), integer=True, domain=(0, 10)),), 2, LOSSES["set-gcp"])
    problem = case.problem()
    as_ranges = groups_of(hilbert(problem, cells="HR").assignment)
    as_sets = groups_of(hilbert(problem, cells="HS").assignment)
    assert as_ranges == ((0, 1, 2), (3, 4))
    assert as_sets == ((0, 1), (2, 3, 4))
    assert values_counted(case, as_ranges, True) == pytest.approx(6 / 10)
    assert values_counted(case, as_sets, False) == pytest.approx(5 / 10)
    assert hilbert(problem).objective == pytest.approx(6 / 10)


def test_the_largest_loss_counts_where_the_objective_says_so() -> None:
    """With a bottleneck HR keeps the widest class narrow."""
    column = Column((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    case = Case((column,), 3, LOSSES["gcp"])
    problem = case.problem().replace(objective=Bottleneck(case.problem().objective))
    assert sorted(hilbert(problem, cells="HR").assignment.sizes.tolist()) == [3, 4]


def test_what_is_refused() -> None:
    """Unknown cells, and counts under rules."""
    case = Case((Column((0.0, 1.0, 2.0, 3.0)),), 2, LOSSES["gcp"])
    with pytest.raises(InputError, match="objective, HR, HS"):
        hilbert(case.problem(), cells="sets")
    problem = case.problem()
    with_sensitive = problem.microdata.frame.assign(s=list("xyxy"))
    data = type(problem.microdata)(with_sensitive, problem.microdata.attributes, sensitive=("s",))
    ruled = problem.replace(microdata=data, diversity=Diversity(l=2))
    with pytest.raises(InputError, match="limits and diversity"):
        hilbert(ruled, cells="HR")
    assert hilbert(ruled).status.solution
