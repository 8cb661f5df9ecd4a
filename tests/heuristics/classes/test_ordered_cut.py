"""Ordered cut is the best cut of its order, and the optimum for one attribute."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from anonymip import Classes
from anonymip.heuristics.classes.ordered_cut import cut_in_batches, ordered_cut
from anonymip.orders.orders import ORDERS, find_order, variance_order
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped
from tests.brute_force import Column, Rules, consecutive_cuts, gcp, release_loss
from tests.hard_losses import PRODUCT, SWINGING
from tests.random_problems import LOSSES, Case, cases, groups_of, ruled_cases

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


@settings(max_examples=60)
@given(cases(suppression=False), st.booleans())
def test_same_loss_as_the_kernels(case: Case, worst: bool) -> None:
    """On plain problems both engines find the best cut, of the sum and of the maximum."""
    case = replace(case, worst=worst)
    problem = case.problem()
    labels, stopped = cut_in_batches(problem, variance_order(problem, Budget()), Budget())
    assert stopped is None
    loss = case.release_loss(groups_of(Classes(labels)))  # type: ignore[arg-type]
    assert loss == pytest.approx(ordered_cut(problem).objective, rel=1e-9, abs=1e-9)


@settings(max_examples=150)
@given(ruled_cases(largest=8), st.sampled_from(["own", "product", "swinging"]))
def test_no_cut_in_batches_is_better(case: Case, tier: str) -> None:
    """If some cut of allowed classes places every record, the best of these is found."""
    case = replace(case, suppression=False)
    case = {"own": case, "product": replace(case, loss=PRODUCT)}.get(
        tier, replace(case, loss=SWINGING)
    )
    rules = Rules() if case.rules is None else case.rules
    limit = 2 * case.k - 1 if rules.l == 1 and rules.distinct == 1 else 4 * case.k - 1
    try:
        problem = case.problem()
    except ValueError:  # without suppression no release has the diversity
        return
    order = variance_order(problem, Budget())
    best = min(
        (
            case.release_loss(groups)
            for groups in consecutive_cuts(order.tolist(), case.k)
            if all(len(g) <= limit and rules.met_by(case.columns, g) for g in groups)
        ),
        default=math.inf,
    )
    labels, _ = cut_in_batches(problem, order, Budget())
    note(labels.tolist())
    assert (best == math.inf) == bool((labels < 0).any())
    if best < math.inf:
        loss = case.release_loss(groups_of(Classes(labels)))  # type: ignore[arg-type]
        assert loss == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_as_few_records_as_possible_are_left_out() -> None:
    """Under a cap of 2 the value 50 fits no class; the others do."""
    case = Case(
        (Column((0.0, 1.0, 2.0, 50.0, 90.0, 91.0)),), 2, PRODUCT, rules=Rules(caps=((0, 2.0),))
    )
    labels, _ = cut_in_batches(case.problem(), np.arange(6), Budget())
    assert labels.tolist() == [1, 1, 1, -1, 0, 0]


def test_spent_budget_cuts_sets_of_k() -> None:
    """Without time the order is cut into sets of k."""
    case = Case((Column((0.0, 1.0, 2.0, 3.0, 4.0)),), 2, SWINGING)
    labels, stopped = cut_in_batches(case.problem(), np.arange(5), Budget(deadline=0.0))
    assert stopped is Stopped.TIME
    assert labels.tolist() == [0, 0, 1, 1, 1]
