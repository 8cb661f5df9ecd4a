"""What every heuristic owes under diversity, limits, other tiers and the largest loss."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from anonymip import (
    SSE,
    Attribute,
    Budget,
    Cap,
    Diversity,
    EquivalenceClasses,
    Microdata,
    NoSolution,
    Problem,
    Stopped,
    census,
    class_objective,
)
from anonymip.bounds.combinatorial import lower_bound_of
from tests.brute_force import Column, Rules, least_cost_of_classes
from tests.heuristics.test_conformance import FREE as ALL
from tests.random_problems import (
    LOSSES,
    PRODUCT,
    SWINGING,
    Case,
    cases,
    groups_of,
    ruled_cases,
)

#: HS is a yardstick for tables without rules, and refuses them.
FREE = {label: run for label, run in ALL.items() if label != "hilbert HS"}


def check_all(case: Case) -> None:
    """Check every heuristic against the definitions and the optimum; the case has a release."""
    problem, best = case.problem(), case.optimum()
    rules = Rules() if case.rules is None else case.rules
    bound = lower_bound_of(problem)
    for label, run in FREE.items():
        note(label)
        try:
            solution = run(problem)
        except NoSolution:
            # What fails must at least have a limit to fail at.
            assert rules.caps or rules.apart
            assert not case.suppression
            continue
        groups = groups_of(solution.assignment)
        assert all(len(g) >= case.k and rules.met_by(case.columns, g) for g in groups)
        placed = sum(map(len, groups))
        assert placed == case.n or case.suppression
        assert solution.objective == pytest.approx(case.release_loss(groups), rel=1e-8, abs=1e-8)
        assert solution.objective >= best - case.slack(best)
        if bound is not None:
            assert solution.objective >= bound.value - case.slack(bound.value)


@settings(max_examples=60)
@given(ruled_cases())
def test_rules_and_the_largest_loss(case: Case) -> None:
    """Classes keep diversity and limits, and no loss is below the optimum or the bound."""
    check_all(case)


@settings(max_examples=50)
@given(cases(losses=["gcp"]), st.sampled_from([PRODUCT, SWINGING]), st.booleans())
def test_losses_without_tables(case: Case, loss: Any, worst: bool) -> None:
    """Losses that combine attributes, monotone or not, as sums and as maxima."""
    check_all(replace(case, loss=loss, worst=worst))


@settings(max_examples=40)
@given(ruled_cases(), st.sampled_from([PRODUCT, SWINGING]))
def test_losses_without_tables_under_rules(case: Case, loss: Any) -> None:
    """Both at once."""
    check_all(replace(case, loss=loss))


@class_objective(superadditive=True)
def pay_gap(members: Any) -> Any:
    """Charge each member the largest difference within the class."""
    values = members.value["a"]
    return values.shape[1] * (values.max(axis=1) - values.min(axis=1))


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), min_size=4, max_size=7),
    st.integers(2, 3),
    st.sampled_from(["sse", "gap"]),
    st.sampled_from([Rules(), Rules(caps=((0, 6.0),))]),
)
def test_losses_of_members(points: list[tuple[int, int]], k: int, loss: str, rules: Rules) -> None:
    """Squared errors and a function of the members, with and without a cap."""
    columns = tuple(Column(tuple(float(v) for v in values)) for values in zip(*points, strict=True))
    table = np.array(points, np.float64)

    def cost(group: tuple[int, ...]) -> float:
        members = table[list(group)]
        if loss == "sse":
            return float(((members - members.mean(axis=0)) ** 2).sum())
        return len(group) * float(np.ptp(members[:, 0]))

    best = least_cost_of_classes(len(points), k, cost, rules, columns)
    data = Microdata(
        pd.DataFrame(table, columns=["a", "b"]),
        (Attribute("a", "numeric"), Attribute("b", "numeric")),
    )
    limits = tuple(Cap("a", most) for _, most in rules.caps)
    problem = Problem(data, k, objective=SSE("none") if loss == "sse" else pay_gap, limits=limits)
    bound = lower_bound_of(problem)
    for label, run in FREE.items():
        note(label)
        try:
            solution = run(problem)
        except NoSolution:
            assert limits
            continue
        groups = groups_of(solution.assignment)
        assert all(len(g) >= k and rules.met_by(columns, g) for g in groups)
        assert solution.objective == pytest.approx(sum(map(cost, groups)), rel=1e-8, abs=1e-8)
        assert solution.objective >= best - 1e-8 * max(1.0, best)
        assert bound is None or bound.value <= best * (1 + 1e-9) + 1e-12
    assert (bound is not None) == (loss == "sse")


@pytest.mark.parametrize("label", FREE)
def test_impossible_limits_have_no_solution(label: str) -> None:
    """One value lies too far from all others: no release, or it is suppressed."""
    case = Case(
        (Column((0.0, 1.0, 2.0, 3.0, 99.0)),), 2, LOSSES["gcp"], rules=Rules(caps=((0, 10.0),))
    )
    assert case.optimum() == math.inf
    with pytest.raises(NoSolution, match="cap of 10 on 'a'"):
        FREE[label](case.problem())
    solution = FREE[label](replace(case, suppression=True).problem())
    assert solution.assignment.labels[4] == -1
    assert solution.assignment.suppressed == 1


@pytest.fixture(scope="module")
def patients() -> Problem:
    """Return a table with a sensitive column and a cap, of a hundred records."""
    data = census(100, 5, seed=4)
    frame = data.frame.copy()
    frame["illness"] = np.random.default_rng(5).choice(list("abcdef"), size=len(frame))
    name = next(a.name for a in data.attributes if a.is_numeric)
    width = float(np.ptp(frame[name].astype(float)))
    return Problem(
        Microdata(frame, data.attributes, sensitive=("illness",)),
        4,
        diversity=Diversity(l=2),
        limits=(Cap(name, 0.6 * width),),
    )


@pytest.mark.parametrize("label", FREE)
@pytest.mark.parametrize("suppression", [False, True])
def test_spent_budget_still_keeps_the_rules(
    patients: Problem, label: str, suppression: bool
) -> None:
    """A deadline in the past ends the search, and the repair still makes a valid release."""
    problem = patients.replace(recoding=EquivalenceClasses(suppression=suppression))
    solution = FREE[label](problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert solution.status.stopped is Stopped.TIME
    problem.recoding.check(problem, solution.assignment)


@pytest.mark.parametrize("label", FREE)
def test_same_seed_same_result_under_rules(patients: Problem, label: str) -> None:
    """Two runs with one seed give one partition."""
    first, second = (FREE[label](patients, seed=11) for _ in range(2))
    assert first.assignment.labels.tolist() == second.assignment.labels.tolist()


def test_almost_all_feasible_problems_are_solved() -> None:
    """Of sixty tables with hidden groups that keep the cap nine in ten are solved."""
    rng = np.random.default_rng(7)
    solved = 0
    for _ in range(60):
        centres = rng.uniform(0, 60, size=(10, 2)).repeat(3, axis=0)
        points = centres + rng.uniform(-4, 4, size=centres.shape)
        points = points[rng.permutation(len(points))]
        data = Microdata(
            pd.DataFrame(points, columns=["a", "b"]),
            (Attribute("a", "numeric"), Attribute("b", "numeric")),
        )
        problem = Problem(data, 3, limits=(Cap("a", 8.0), Cap("b", 8.0)))
        try:
            FREE["k-member scan"](problem)
        except NoSolution:
            continue
        solved += 1
    assert solved >= 54


def test_all_pairs_too_far_apart_have_no_solution() -> None:
    """Where no two records may share a class nothing is found, whatever the method."""
    column = Column((0.0, 10.0, 20.0, 30.0))
    case = Case((column,), 2, LOSSES["gcp"], rules=Rules(caps=((0, 5.0),)))
    assert all(
        not case.rules.met_by(case.columns, pair)  # type: ignore[union-attr]
        for pair in combinations(range(4), 2)
    )
    for run in FREE.values():
        with pytest.raises(NoSolution):
            run(case.problem())
