"""MDAV: the classes of the definition, computed plainly, and the losses that the field prints."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import SSE, Budget, Problem, Stopped, UnsupportedObjective, load_instance, solve
from anonymip.heuristics.classes.mdav import mdav
from tests.brute_force import Column, Groups
from tests.random_problems import groups_of, microdata


def plain_mdav(points: list[tuple[float, ...]], k: int) -> Groups:
    """Return the classes of MDAV, record by record."""
    left, classes = list(range(len(points))), []

    def farthest(centre: tuple[float, ...]) -> int:
        return max(left, key=lambda record: (_apart(points[record], centre), -record))

    def take(around: int) -> None:
        nearest = sorted(left, key=lambda record: _apart(points[record], points[around]))[:k]
        classes.append(tuple(sorted(nearest)))
        for record in nearest:
            left.remove(record)

    while len(left) >= 2 * k:
        columns = zip(*(points[record] for record in left), strict=True)
        first = farthest(tuple(sum(column) / len(left) for column in columns))
        two = len(left) >= 3 * k
        take(first)
        if two:
            take(farthest(points[first]))
    return tuple(sorted([*classes, tuple(left)]))


def _apart(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(4, 16), st.integers(1, 3), st.integers(2, 5))
def test_classes_are_those_of_the_definition(seed: int, n: int, m: int, k: int) -> None:
    """On drawn numbers, of which some records repeat, the classes are those found plainly."""
    drawn = np.random.default_rng(seed)
    rows = drawn.normal(size=(n, m))[drawn.integers(0, n, n)]
    columns = [Column(tuple(column)) for column in rows.T.tolist()]
    problem = Problem(microdata(columns), min(k, n), objective=SSE("none"))
    solution = mdav(problem)
    assert groups_of(solution.assignment) == plain_mdav(list(map(tuple, rows.tolist())), problem.k)
    assert solution.objective == pytest.approx(
        sum(
            float(np.square(rows[list(group)] - rows[list(group)].mean(axis=0)).sum())
            for group in groups_of(solution.assignment)
        )
    )


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "k", "lost"),
    [
        *(("tarragona", k, lost) for k, lost in ((3, 16.9326), (5, 22.4619), (10, 33.1929))),
        *(("casc", k, lost) for k, lost in ((3, 5.6922), (5, 9.0884), (10, 14.1559))),
    ],
)
def test_information_loss_of_the_benchmarks(name: str, k: int, lost: float) -> None:
    """100 SSE / SST on the tables of the CASC project is what the literature gives for MDAV."""
    data = load_instance(name)
    points = SSE().points(data)
    total = float(np.square(points - points.mean(axis=0)).sum())
    solution = solve(Problem(data, k, objective=SSE()), "mdav", effort="quick")
    assert 100 * solution.objective / total == pytest.approx(lost, abs=5e-5)
    assert solution.bound is not None


def test_attributes_must_be_numeric() -> None:
    """A category has no mean: the refusal names its column."""
    with pytest.raises(UnsupportedObjective, match=r"mdav .*needs numeric attributes; 'Sex'"):
        solve(Problem(load_instance("health-records"), 2), "mdav")


def test_a_late_budget_leaves_sets_of_k() -> None:
    """What is left when the time is over is cut from the mean outwards; nothing is lost."""
    column = Column((0.0, 10.0, 4.0, 6.0, 1.0))
    late = mdav(Problem(microdata([column]), 2), budget=Budget(deadline=time.monotonic() - 1))
    assert late.status.stopped is Stopped.TIME
    assert groups_of(late.assignment) == ((0, 1, 4), (2, 3))


def test_local_search_starts_from_it() -> None:
    """Moves improve its classes of numbers; told is where they come from."""
    drawn = np.random.default_rng(5).normal(size=(3, 120)).tolist()
    problem = Problem(microdata([Column(tuple(values)) for values in drawn]), 4)
    improved = solve(problem, "local-search", options={"from_method": "mdav"})
    assert improved.objective < mdav(problem).objective
    assert "by mdav" in improved.trace[0]
