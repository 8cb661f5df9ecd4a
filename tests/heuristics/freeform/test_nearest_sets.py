"""Covers for the weaker notions against all that are allowed, and as parts of `auto`."""

from __future__ import annotations

import time

import pandas as pd
import pytest
from hypothesis import given, settings

from anonymip import (
    KK,
    Attribute,
    Cover,
    Freeform,
    KOne,
    Microdata,
    OneK,
    Problem,
    WeightedLoss,
    census,
    lower_bound,
    publish,
    solve,
)
from anonymip.heuristics.freeform.nearest_sets import nearest_sets
from anonymip.recodings import KConcealment, Recoding
from anonymip.runtime.budget import Budget
from tests.cover_brute_force import concealment_optimum, one_sided_optimum
from tests.random_problems import Case, cases


@pytest.mark.parametrize(
    ("recoding", "rows", "columns"),
    [(KOne(), True, False), (OneK(), False, True), (KK(), True, True)],
)
@settings(max_examples=60)
@given(case=cases(largest=5, suppression=False))
def test_allowed_and_the_least_of_all_where_records_choose(
    recoding: Recoding, rows: bool, columns: bool, case: Case
) -> None:
    """No release loses less than the optimum, and with (k,1)-anonymity it is the optimum."""
    problem = case.problem().replace(recoding=recoding)
    if not problem.compiled.has_tables:
        return
    best = one_sided_optimum(
        case.n, case.k, case.set_loss, rows=rows, columns=columns, worst=case.worst
    )
    found = nearest_sets(problem)
    assert found.objective >= best - case.slack(best)
    if recoding == KOne():
        assert found.objective == pytest.approx(best, rel=1e-8, abs=case.slack(best))
    bound = lower_bound(problem)
    assert bound is None or bound.value <= best + case.slack(best)


@settings(max_examples=40)
@given(case=cases(largest=4, suppression=False, attributes=2))
def test_concealment_is_allowed_and_no_better_than_the_optimum(case: Case) -> None:
    """A way leads from every record to those that cover everything: all matches can be true."""
    problem = case.problem().replace(recoding=KConcealment())
    if problem.compiled.has_tables:
        best = concealment_optimum(case.n, case.k, case.set_loss)
        assert nearest_sets(problem).objective >= best - case.slack(best)


@pytest.mark.parametrize(("recoding", "gap"), [(OneK(), 0.03), (KConcealment(), 0.3)])
def test_a_few_wide_records_lose_little_more_than_the_bound(recoding: Recoding, gap: float) -> None:
    """And less than the best freeform cover, which promises more."""
    problem = Problem(census(40, 5, seed=2, mixed=True), 4, recoding)
    found = solve(problem)
    assert found.method == "nearest-sets"
    assert found.gap is not None
    assert found.gap <= gap
    assert found.objective < solve(problem.replace(recoding=Freeform())).objective


def test_three_hundred_records_choose_optimally() -> None:
    """What the k-set bound finds around each record is the release that it proves optimal."""
    data = census(300, 5, seed=2)
    solution = solve(Problem(data, k=4, recoding=KOne()))
    assert solution.method == "nearest-sets"
    assert solution.is_optimal


@pytest.mark.parametrize("recoding", [KOne(), KK()])
def test_rows_that_differ_where_nothing_is_weighed(recoding: KOne | KK) -> None:
    """They lose nothing together, and are not consistent with each other's values for that."""
    frame = pd.DataFrame({"a": [1, 2, 1, 2, 1, 1], "b": [10, 3, 3, 4, 7, 10]})
    weighed = (Attribute("a"), Attribute("b", weight=0.0))
    problem = Problem(Microdata(frame, weighed), 2, recoding, WeightedLoss())
    solution = nearest_sets(problem)
    assert solution.objective == pytest.approx(0.0, abs=1e-12)
    assert publish(solution).verify().ok


def test_a_few_records_that_hide_all_lose_less_than_covers() -> None:
    """With (1,k)-anonymity all but k records stay exact; `auto` takes that."""
    data = census(200, 5, seed=2)
    solution = solve(Problem(data, k=4, recoding=OneK()), effort="quick")
    assert solution.method == "nearest-sets"
    assert solution.objective <= 4 * data.m + 1e-9


@pytest.mark.parametrize("recoding", [KOne(), OneK(), KK(), KConcealment()])
def test_a_spent_budget_publishes_sets_of_k(recoding: Recoding) -> None:
    """They are allowed, the end is told, and no set is as large as the table."""
    problem = Problem(census(40, 3, seed=1), k=3, recoding=recoding)
    spent = Budget(deadline=time.monotonic() - 1.0)
    solution = nearest_sets(problem, budget=spent)
    assert solution.status.stopped is spent.stop_reason()
    assert isinstance(solution.assignment, Cover)
    assert set(solution.assignment.sizes.tolist()) == {problem.k}
    assert publish(solution).verify().ok
