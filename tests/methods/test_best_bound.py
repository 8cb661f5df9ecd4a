"""The ladder of bounds: the best that is within reach, for any release."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from anonymip import (
    Bottleneck,
    InputError,
    KOne,
    OneK,
    Problem,
    UnsupportedObjective,
    census,
    compare,
    lower_bound,
    solve,
)
from anonymip.bounds.combinatorial import lower_bound_of
from anonymip.exact.column_generation import column_generation as bounding
from anonymip.methods.best_bound import best_bound
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget
from tests import profiles
from tests.random_problems import Case, cases, ruled_cases, without_diversity


@settings(max_examples=60)
@given(case=ruled_cases())
def test_never_above_the_best_release(case: Case) -> None:
    """Of classes with and without rules, whatever rung the bound stands on."""
    bound, best = best_bound(case.problem()), case.optimum()
    if bound is not None:
        assert bound.value <= best + 1e-9 * max(1.0, abs(best))


@settings(max_examples=40)
@given(case=cases(suppression=False, largest=6))
def test_never_above_the_best_cover(case: Case) -> None:
    """Of freeform covers, with and without limits."""
    limited = without_diversity(replace(case, worst=False))
    bound = best_bound(limited.problem().replace(recoding=Freeform()))
    best = limited.cover_optimum()
    if bound is not None and not math.isinf(best):
        assert bound.value <= best + 1e-9 * max(1.0, abs(best))


def test_heuristics_are_bounded_by_column_generation() -> None:
    """Of small tables the linear program over all sets says how good a release is."""
    problem = Problem(census(150 if profiles.NAME == "thorough" else 60, 6, seed=2), 3)
    solution, below = solve(problem, "greedy-search"), lower_bound_of(problem)
    optimum = solve(problem, "column-generation")
    assert solution.bound is not None
    assert below is not None
    assert solution.bound.method == "column generation, linear program"
    assert below.value < solution.bound.value <= optimum.objective <= solution.objective
    alone = lower_bound(problem)
    assert alone is not None
    assert alone.value == pytest.approx(solution.bound.value, rel=1e-6)
    row = compare(problem, [3], ["mondrian"]).rows[0]
    assert row.solution.bound is not None
    assert row.solution.bound.value == pytest.approx(solution.bound.value, rel=1e-6)


def test_what_is_too_large_stands_on_a_lower_rung(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked at beyond the effort; a spent effort leaves the best bound so far."""
    problem, budget = Problem(census(150, 6, seed=2), 3), Budget()
    below, whole = lower_bound_of(problem), best_bound(problem)
    monkeypatch.setitem(bounding._TRIED, "normal", 100)
    assert not bounding.may_be_bounded(problem, "normal")
    monkeypatch.setitem(bounding._TRIED, "normal", 10_000)
    assert below is not None
    assert whole is not None
    for searched in (10, 1_000, 5_000):
        monkeypatch.setitem(bounding._SEARCHED, "normal", searched)
        _, solved = bounding.relaxation_bound(problem, [], effort="normal", budget=budget)
        assert not solved
        short = best_bound(problem)
        assert short is not None
        assert below.value <= short.value <= whole.value + 1e-9


def test_a_method_may_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The linear program is tried on larger tables than the effort suggests, or it is refused."""
    problem = Problem(census(100, 5, seed=2), 3)
    monkeypatch.setitem(bounding._TRIED, "normal", 100)
    below, asked = lower_bound(problem), lower_bound(problem, method="column-generation")
    assert below is not None
    assert asked is not None
    assert asked.method == "column generation, linear program"
    assert below.value < asked.value
    with pytest.raises(InputError, match="solves classes, freeform"):
        lower_bound(problem.replace(recoding=KOne()), method="column-generation")
    with pytest.raises(UnsupportedObjective, match="column-generation"):
        lower_bound(problem.replace(objective=Bottleneck()), method="column-generation")
    with pytest.raises(InputError, match="unknown method 'simplex'"):
        lower_bound(problem, method="simplex")
    with pytest.raises(InputError, match="local-search has no bound apart") as refused:
        lower_bound(problem, method="local-search")
    assert "Use column-generation, or" in str(refused.value.remedy)


def test_what_a_method_does_not_reach_has_another_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the largest tables the bound is the best below, and its name says so."""
    problem = Problem(census(100, 5, seed=2), 3)
    below = lower_bound_of(problem)
    assert below is not None
    monkeypatch.setitem(bounding._TRIED, "thorough", 100)
    asked = lower_bound(problem, method="column-generation")
    assert asked is not None
    assert (asked.value, asked.method) == (below.value, below.method)


def test_other_notions_have_their_own_bounds() -> None:
    """A record of a one-sided notion may hide less than k sets do."""
    problem = Problem(census(30, 3, seed=1), 3, OneK())
    own, found = lower_bound_of(problem), best_bound(problem)
    assert own is not None
    assert found is not None
    assert found.value == own.value
