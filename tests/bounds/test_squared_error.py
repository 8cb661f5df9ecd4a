"""The bound on squared errors holds for every class, and so for every release."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import SSE, Attribute, Microdata, Problem, UnsupportedObjective
from anonymip.bounds.squared_error import squared_error_bound, squared_error_terms
from anonymip.budget import Budget
from tests.brute_force import Rules, least_cost_of_classes

SCALES = st.sampled_from(["deviation", "domain", "none"])


@st.composite
def points(draw: st.DrawFn) -> np.ndarray:
    """Draw a few points: ties, repeated points, distant and close ones."""
    n, m = draw(st.integers(4, 8)), draw(st.integers(1, 3))
    values = st.sampled_from([0.0, 1.0, 1.0 + 1e-7, 2.5, -3.0, 40.0, 1e6])
    return np.array(
        draw(st.lists(st.lists(values, min_size=m, max_size=m), min_size=n, max_size=n))
    )


def problem_of(given_points: np.ndarray, k: int, scale: str) -> Problem:
    """Return the problem of publishing points."""
    names = [chr(ord("a") + at) for at in range(given_points.shape[1])]
    frame = pd.DataFrame(dict(zip(names, given_points.T, strict=True)))
    data = Microdata(frame, tuple(Attribute(name, "numeric") for name in names))
    return Problem(data, k, objective=SSE(scale))


def naive_cost(given_points: np.ndarray, scale: str, group: tuple[int, ...]) -> float:
    """Return the squared errors of a class after their definition."""
    units = {
        "deviation": given_points.std(axis=0),
        "domain": np.ptp(given_points, axis=0),
        "none": np.ones(given_points.shape[1]),
    }[scale]
    scaled = given_points / np.where(units > 0, units, 1.0)
    members = scaled[list(group)]
    return float(((members - members.mean(axis=0)) ** 2).sum())


@settings(max_examples=120)
@given(points(), st.integers(2, 4), SCALES)
def test_never_above_the_optimum(given_points: np.ndarray, k: int, scale: str) -> None:
    """No partition has smaller squared errors than the bound."""
    bound = squared_error_bound(problem_of(given_points, k, scale))
    assert bound is not None
    best = least_cost_of_classes(
        len(given_points), k, lambda group: naive_cost(given_points, scale, group), Rules(), ()
    )
    assert bound.value <= best * (1 + 1e-9) + 1e-12
    assert bound.proof == "argument"


@settings(max_examples=60)
@given(points(), st.integers(2, 3), SCALES)
def test_terms_add_up_to_no_more_than_any_class(
    given_points: np.ndarray, k: int, scale: str
) -> None:
    """Whatever its size, the terms of a class's members do not exceed its squared errors."""
    terms = squared_error_terms(problem_of(given_points, k, scale))
    for size in range(k, len(given_points) + 1):
        for group in combinations(range(len(given_points)), size):
            cost = naive_cost(given_points, scale, group)
            assert terms[list(group)].sum() <= cost * (1 + 1e-9) + 1e-12


def test_tight_for_pairs_of_points() -> None:
    """Points 0, 1, 10, 11 with k = 2: two classes of squared error 1/2, and the bound is 1."""
    bound = squared_error_bound(problem_of(np.array([[0.0], [1.0], [10.0], [11.0]]), 2, "none"))
    assert bound is not None
    assert bound.value == pytest.approx(1.0, rel=1e-7)
    assert bound.value <= 1.0


def test_cut_short_by_the_budget() -> None:
    """Without time all terms are 0, and the bound says so."""
    problem = problem_of(np.array([[0.0], [1.0], [10.0], [11.0]]), 2, "none")
    bound = squared_error_bound(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert bound is not None
    assert (bound.value, bound.method) == (0.0, "nearest squared errors (cut short)")


def test_other_objectives_are_refused() -> None:
    """Only squared errors have these terms."""
    problem = problem_of(np.array([[0.0], [1.0], [10.0], [11.0]]), 2, "none")
    other = Problem(problem.microdata, 2)
    assert squared_error_bound(other) is None
    with pytest.raises(UnsupportedObjective, match="squared errors"):
        squared_error_terms(other)
