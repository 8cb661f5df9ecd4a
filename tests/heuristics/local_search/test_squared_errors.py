"""Iterated local search of squared errors: allowed, never worse, never below the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import SSE, Budget, Classes, Diversity, Problem, Solution, solve
from anonymip.heuristics.local_search.squared_errors import are_squared, improve_squared_errors
from anonymip.recodings import EquivalenceClasses
from tests.brute_force import Column, Rules, least_cost_of_classes
from tests.by_hand import table_of
from tests.profiles import NAME

POINTS = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.0, 5.0, 1e6]), st.integers(0, 3), st.just(7.0)),
    min_size=4,
    max_size=9,
)


def problem_of(points: Any, k: int, **settings: Any) -> Problem:
    """Return the problem of some points."""
    frame = pd.DataFrame(points, columns=["a", "b", "c"], dtype=float)
    data = table_of(frame)
    return Problem(data, k, objective=SSE("none"), **settings)


def loss_of(problem: Problem, labels: np.ndarray) -> float:
    """Return the loss of labels, which the recoding checks."""
    assignment = Classes(labels)
    return Solution.of(problem, assignment, method="test").objective


@settings(max_examples=50)
@given(POINTS, st.integers(2, 4), st.integers(0, 5))
def test_small_tables_reach_no_less_than_the_optimum(
    points: list[tuple[float, ...]], k: int, seed: int
) -> None:
    """From one class of all, ties, copies and far records among them."""
    k = min(k, len(points))
    problem = problem_of(points, k)
    everything = np.zeros(len(points), np.int64)
    labels, stopped, _ = improve_squared_errors(problem, everything, "quick", Budget(), seed)
    assert stopped is None
    values = np.array(points)

    def cost(records: tuple[int, ...]) -> float:
        part = values[list(records)]
        return float(((part - part.mean(axis=0)) ** 2).sum())

    columns = tuple(Column(tuple(column)) for column in values.T.tolist())
    best = least_cost_of_classes(len(points), k, cost, Rules(), columns)
    found = loss_of(problem, labels)
    assert found <= loss_of(problem, everything) * (1 + 1e-9)
    assert found >= best - 1e-9 * max(1.0, best)


def cloud(n: int) -> np.ndarray:
    """Return points in three dimensions."""
    return np.random.default_rng(3).normal(size=(n, 3))


def test_rounding_beside_a_far_record_goes_round_in_no_circles() -> None:
    """Classes of copies cost nothing, so that any difference is a large share of that."""
    random = np.random.default_rng(0)
    for seed in range(20 if NAME == "ci" else 60):
        points = random.integers(0, 3, (10, 3)).astype(float)
        points[0] = points[0] * 1e5 + 1e4
        problem = problem_of(points, 2 + seed % 2)
        everything = np.zeros(10, np.int64)
        labels, stopped, _ = improve_squared_errors(
            problem, everything, "quick", Budget.of(60.0), seed
        )
        assert stopped is None
        assert loss_of(problem, labels) <= loss_of(problem, everything) * (1 + 1e-9)


def test_more_effort_goes_on_where_less_stops() -> None:
    """The same seed gives the same classes, and no effort is worse than the one before."""
    problem = problem_of(cloud(90), 3)
    start = solve(problem, "mdav").assignment
    assert isinstance(start, Classes)
    losses = [loss_of(problem, start.labels)]
    for effort in ("quick", "normal"):
        labels, _, remark = improve_squared_errors(problem, start.labels, effort, Budget(), 7)
        again, _, _ = improve_squared_errors(problem, start.labels, effort, Budget(), 7)
        assert (labels == again).all()
        assert effort in remark
        losses.append(loss_of(problem, labels))
    assert losses[0] > losses[1] >= losses[2]


def test_suppressed_records_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left keeps its classes of k."""
    monkeypatch.setattr(SSE, "suppression_price", 0.5)
    problem = problem_of(cloud(30), 3, recoding=EquivalenceClasses(suppression=True))
    labels = np.arange(30) // 3
    labels[[0, 1, 2, 7, 8, 6]] = -1
    found, _, _ = improve_squared_errors(problem, labels, "quick", Budget(), 0)
    assert (found[labels < 0] == -1).all()
    assert (np.bincount(found[found >= 0]) >= 3).all()


def test_a_spent_budget_leaves_what_was_given() -> None:
    """Or something better: nothing is lost."""
    problem = problem_of(cloud(40), 4)
    labels = np.arange(40) // 4
    found, stopped, _ = improve_squared_errors(problem, labels, "normal", Budget.of(1e-9), 0)
    assert stopped is not None
    assert loss_of(problem, found) <= loss_of(problem, labels)


def test_rules_and_subclasses_have_another_search() -> None:
    """It knows the loss of SSE itself, and sizes."""

    class Other(SSE):
        pass

    problem = problem_of(cloud(12), 3)
    assert are_squared(problem)
    assert not are_squared(problem.replace(objective=Other()))
    data = table_of({"a": range(6), "s": list("xyxyxy")}, "s")
    assert not are_squared(Problem(data, 2, objective=SSE(), diversity=Diversity(2)))


@pytest.mark.thorough("auto")
@pytest.mark.parametrize("method", ["local-search", "auto"])
def test_it_is_never_above_mdav(method: str) -> None:
    """Of what starts with classes by distance."""
    problem = problem_of(cloud(120), 5)
    assert solve(problem, method).objective < solve(problem, "mdav").objective
