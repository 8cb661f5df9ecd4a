"""Ordered cut is the best cut of its order, and the optimum for one attribute."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from anonymip.budget import Budget
from anonymip.heuristics.ordered_cut import ordered_cut
from anonymip.heuristics.orders import ORDERS, find_order
from tests.brute_force import Column, consecutive_cuts, gcp, release_loss
from tests.random_problems import LOSSES, Case, cases, groups_of, numeric_columns

ORDERS_AND_PATHS = [*ORDERS, *(f"{name}+2opt" for name in ORDERS)]


@settings(max_examples=50)
@given(cases(largest=9, suppression=False))
def test_no_cut_of_the_order_is_better(case: Case) -> None:
    """Equal to the least loss over all cuts into consecutive classes of k or more."""
    problem = case.problem()
    for order in ORDERS_AND_PATHS:
        note(order)
        records = find_order(problem, order, Budget()).tolist()
        best = min(case.release_loss(groups) for groups in consecutive_cuts(records, case.k))
        found = ordered_cut(problem, order=order).objective
        assert found == pytest.approx(best, rel=1e-9, abs=1e-9)


@st.composite
def one_attribute(draw: st.DrawFn) -> Case:
    """Draw a numeric column, k, and an objective that looks at its range."""
    n = draw(st.integers(2, 9))
    column = draw(numeric_columns(n))
    k = draw(st.integers(2, min(n, 5)))
    return Case((column,), k, LOSSES[draw(st.sampled_from(["gcp", "weighted", "curved"]))])


@settings(max_examples=60)
@given(one_attribute())
def test_one_numeric_attribute_is_solved_to_optimality(case: Case) -> None:
    """For ranges of one attribute some optimum cuts the sorted values."""
    best = case.optimum()
    assert ordered_cut(case.problem()).objective == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_example_by_hand() -> None:
    """Values 0, 1, 2, 10, 11, 12, 13 with k = 3: cut in the gap, losses 3 * 2/13 + 4 * 3/13."""
    column = Column((11.0, 0.0, 13.0, 1.0, 10.0, 2.0, 12.0))
    solution = ordered_cut(Case((column,), 3, LOSSES["gcp"]).problem())
    assert groups_of(solution.assignment) == ((0, 2, 4, 6), (1, 3, 5))
    assert solution.objective == pytest.approx(18 / 13)
    assert release_loss((column,), gcp, groups_of(solution.assignment)) == pytest.approx(18 / 13)
