"""Ordered cut is the best cut of its order, and the optimum for one attribute."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings

from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.orders.orders import ORDERS, find_order
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, consecutive_cuts, gcp, release_loss
from tests.random_problems import LOSSES, Case, cases, groups_of

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


def test_optimum_of_one_attribute_may_be_no_cut() -> None:
    """Of 0, 1, 1, 1, 2 with k = 2 the middle is best taken out: loss 4, cuts lose 5."""
    case = Case((Column((0, 1, 1, 1, 2)),), 2, LOSSES["gcp"])
    span = 2
    assert case.optimum() * span == pytest.approx(4)
    assert case.release_loss(((0, 4), (1, 2, 3))) * span == pytest.approx(4)
    assert ordered_cut(case.problem()).objective * span == pytest.approx(5)


def test_example_by_hand() -> None:
    """Values 0, 1, 2, 10, 11, 12, 13 with k = 3: cut in the gap, losses 3 * 2/13 + 4 * 3/13."""
    column = Column((11.0, 0.0, 13.0, 1.0, 10.0, 2.0, 12.0))
    solution = ordered_cut(Case((column,), 3, LOSSES["gcp"]).problem())
    assert groups_of(solution.assignment) == ((0, 2, 4, 6), (1, 3, 5))
    assert solution.objective == pytest.approx(18 / 13)
    assert release_loss((column,), gcp, groups_of(solution.assignment)) == pytest.approx(18 / 13)
