"""Duals proven over the means of classes are never above the squared errors of a set."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import SSE, Attribute, Microdata, Problem, lower_bound, solve
from anonymip.bounds import class_means
from anonymip.bounds.class_means import MeanDuals, new_search, proven_duals, search_means
from anonymip.bounds.combinatorial import squared_error_terms
from anonymip.runtime.budget import Budget

#: Ties, neighbours, records far off all others.
VALUES = st.sampled_from([0.0, 1.0, 1.0 + 1e-7, 2.5, -3.0, 40.0, 1e6])
TABLES = st.integers(1, 3).flatmap(
    lambda m: st.lists(st.lists(VALUES, min_size=m, max_size=m), min_size=5, max_size=9)
)


def problem_of(table: np.ndarray, k: int, scale: str = "none") -> Problem:
    """Return the problem of publishing points."""
    frame = pd.DataFrame(table, columns=[f"a{a}" for a in range(table.shape[1])])
    data = Microdata(frame, tuple(Attribute(name, "numeric") for name in frame.columns))
    return Problem(data, k, objective=SSE(scale))


def exact_cost(table: np.ndarray, group: tuple[int, ...]) -> Fraction:
    """Return the squared errors of a set after their definition, without rounding."""
    total = Fraction(0)
    for column in table[list(group)].T.tolist():
        values = [Fraction(value) for value in column]
        mean = sum(values, Fraction(0)) / len(values)
        total += sum(((value - mean) ** 2 for value in values), Fraction(0))
    return total


@settings(max_examples=120)
@given(
    TABLES,
    st.integers(2, 4),
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 8.0, 1e5]), min_size=9, max_size=9),
    st.sampled_from([0.0, 100.0, 1e4, 1e6]),
    st.sampled_from([3, 60]),
    st.sampled_from([30, 10_000]),
    st.sampled_from([0.0, 1.0]),
)
def test_proven_duals_are_feasible(
    given_table: list[list[float]],
    k: int,
    asked: list[float],
    most: float,
    levels: int,
    places: int,
    worth: float,
) -> None:
    """Whatever was asked, and wherever work, levels or places end, no set costs less."""
    k = min(k, len(given_table) // 2)
    points, counts = np.unique(np.array(given_table), axis=0, return_counts=True)
    problem = problem_of(np.repeat(points, counts, axis=0), k)
    starts = np.cumsum(counts) - counts
    floors = squared_error_terms(problem)[0][starts]
    duals = np.array(asked)[: len(points)]
    numbers = replace(class_means.NUMBERS, levels=levels, places=places)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_means, "NUMBERS", numbers)
        search = new_search(points, counts, duals, floors, k)
    rounding = 1e-12 * float(np.square(np.ptp(points, axis=0)).sum())
    search_means(search, rounding, worth, 0.01, most)
    proven = np.repeat(proven_duals(search, rounding), counts)
    assert (proven >= 0.0).all()
    assert (proven <= np.repeat(duals, counts)).all()
    table = np.repeat(points, counts, axis=0)
    for group in combinations(range(len(table)), k):
        cost = float(exact_cost(table, group))
        assert proven[list(group)].sum() <= cost * (1 + 1e-9) + 2 * rounding


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(
            st.sampled_from([0.1, 0.3, 0.30000000000000004, 0.7, 2.0, 9.0, 1e9, 1e9 + 1e-7, 1e15]),
            min_size=2,
            max_size=2,
        ),
        min_size=6,
        max_size=8,
    ),
    st.integers(2, 3),
)
def test_terms_are_exact(given_table: list[list[float]], k: int) -> None:
    """Lowered for rounding, the duals of no class of any size are above its squared errors."""
    table = np.array(given_table)
    problem = problem_of(table, k)
    duals = MeanDuals(problem, squared_error_terms(problem)[0], Budget())
    assert duals.climb("normal")
    terms = [Fraction(term) for term in duals.terms().tolist()]
    for size in range(k, len(table) + 1):
        for group in combinations(range(len(table)), size):
            charged = sum((terms[i] for i in group), Fraction(0))
            assert charged <= exact_cost(table, group) * (1 + Fraction(1, 10**12))


@pytest.mark.thorough
@pytest.mark.parametrize("k", [3, 8])
def test_much_of_the_gap_is_closed(k: int) -> None:
    """The bound is far above that of nearest records, and near a good release."""
    table = np.random.default_rng(1).lognormal(size=(150, 3)) @ np.diag([3.0, 1.0, 0.2])
    problem = problem_of(table, k, "deviation")
    release = solve(problem, "local-search", bound=False)
    terms = squared_error_terms(problem)[0]
    duals = MeanDuals(problem, terms, Budget())
    assert duals.climb("normal")
    assert terms.sum() < 0.8 * release.objective
    assert 0.9 * release.objective < duals.terms().sum() <= release.objective


def test_more_work_never_proves_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """An effort does what the lower ones do first."""
    table = np.random.default_rng(2).normal(size=(120, 4))
    problem = problem_of(table, 6)
    terms, found = squared_error_terms(problem)[0], []
    for normal, thorough in ((2e6, 2e6), (2e6, 2e7), (2e6, 5e7), (2e6, 2e8)):
        work = {"quick": 0.0, "normal": normal, "thorough": thorough}
        monkeypatch.setattr(
            class_means, "NUMBERS", replace(class_means.NUMBERS, work=work, each=1.0)
        )
        duals = MeanDuals(problem, terms, Budget())
        assert duals.climb("thorough")
        found.append(float(duals.terms().sum()))
    assert found == sorted(found)
    assert found[0] < found[-1]
    quick = MeanDuals(problem, terms, Budget())
    assert quick.climb("quick")
    assert quick.terms().sum() == pytest.approx(terms.sum())


def test_lower_bounds_stand_on_the_duals() -> None:
    """Beyond the reach of the linear program they are what is told, to the same bit each time."""
    problem = problem_of(np.random.default_rng(3).normal(size=(200, 2)), 10)
    first, second = lower_bound(problem), lower_bound(problem)
    assert first is not None
    assert second is not None
    assert first.method == "duals over class means"
    assert first.value == second.value > squared_error_terms(problem)[0].sum()
    assert first.value <= solve(problem, "mdav", bound=False).objective


def test_time_that_ends_leaves_what_is_proven() -> None:
    """Without time the terms of nearest records stay."""
    problem = problem_of(np.random.default_rng(4).normal(size=(60, 2)), 4)
    terms = squared_error_terms(problem)[0]
    duals = MeanDuals(problem, terms, Budget(deadline=0.0))
    assert not duals.climb("normal")
    assert duals.terms().sum() == pytest.approx(terms.sum())
