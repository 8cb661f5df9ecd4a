"""Guessing the output rows equals brute force, and large tables are refused with numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import Budget, InputError, Mask, NoSolution, PatternGuided, Problem, load_instance
from anonymip.assignments import Patterns
from anonymip.exact.patterns.pattern_fpt import pattern_fpt
from anonymip.status import Stopped
from tests.random_patterns import PatternCase, pattern_cases


def assert_proves(case: PatternCase) -> None:
    """Assert that the optimum is found and proven, or that nothing is allowed."""
    problem, best = case.problem(), case.optimum()
    if best is None:
        with pytest.raises(NoSolution):
            pattern_fpt(problem)
        return
    solution = pattern_fpt(problem)
    assert solution.objective == best
    assert solution.is_optimal
    assert solution.bound is not None
    assert solution.bound.proof == "argument"


@settings(max_examples=80)
@given(case=pattern_cases())
def test_equals_brute_force(case: PatternCase) -> None:
    """Masks of rules and of patterns, costs of columns."""
    assert_proves(case)


@settings(max_examples=80)
@given(case=pattern_cases(ruled=True))
def test_equals_brute_force_under_rules(case: PatternCase) -> None:
    """Single use and suppression; diversity is refused."""
    assert_proves(replace(case, diversity=None))
    if case.diversity is not None:
        with pytest.raises(InputError, match="knows no diversity"):
            pattern_fpt(case.problem())


def table(repeats: int) -> PatternCase:
    """Return rows of two columns, some in several copies."""
    rows = (("x", "x"), ("x", "y"), ("y", "y")) * repeats
    return PatternCase(rows, ("p",) * len(rows), 2, Mask(), (1, 1))


def test_large_tables_are_refused_with_numbers() -> None:
    """Types, patterns, output rows and guesses."""
    problem = Problem(load_instance("person20"), 2, PatternGuided())
    with pytest.raises(InputError, match=r"20 row types under .* 2\^.* takes up to 20 rows") as got:
        pattern_fpt(problem)
    assert "pattern-ilp" in (got.value.remedy or "")
    with pytest.raises(InputError, match="takes up to 3 rows"):
        pattern_fpt(table(2).problem(), most_rows=3)


def test_a_start_leaves_guesses_out_and_is_kept() -> None:
    """From an optimal start no guess is cheaper; a bad one is replaced."""
    problem = table(2).problem()
    plain = pattern_fpt(problem)
    again = pattern_fpt(problem, start=plain.assignment)
    assert again.objective == plain.objective == 0
    assert again.is_optimal
    assert again.trace[0].startswith("0 of 2^")
    worst = Patterns(np.full(6, 3))
    assert pattern_fpt(problem, start=worst).objective == 0


def test_a_start_that_publishes_by_dearer_patterns_proves_nothing_of_itself() -> None:
    """Two equal rows under stars: all output rows hold both of them, and the cheapest is kept."""
    case = PatternCase((("x", "x"),) * 2, ("p",) * 2, 2, Mask(), (1, 1))
    solution = pattern_fpt(case.problem(), start=Patterns(np.full(2, 3)))
    assert solution.is_optimal
    assert solution.objective == case.optimum() == 0


@settings(max_examples=80)
@given(case=pattern_cases(ruled=True), at=st.integers(0, 100))
def test_any_start_leaves_the_optimum(case: PatternCase, at: int) -> None:
    """All records under one pattern, where that is a release."""
    case = replace(case, diversity=None)
    stars = PatternGuided(case.mask).stars(case.problem())
    at %= len(stars)
    assume(case.allows([tuple(map(bool, stars[at]))] * len(case.rows)))
    solution = pattern_fpt(case.problem(), start=Patterns(np.full(len(case.rows), at)))
    assert solution.objective == case.optimum()
    assert solution.is_optimal


def test_costs_of_many_records_fit_into_whole_numbers() -> None:
    """The sums of 1,500 costs without few decimals, of which all stars cost the most."""
    rows = (("x", "x"),) * 500 + (("x", "y"),) * 500 + (("y", "y"),) * 500
    case = PatternCase(rows, ("p",) * 1_500, 750, Mask(), (1 / 3, 1 / 7))
    solution = pattern_fpt(case.problem())
    assert solution.is_optimal
    assert solution.objective == pytest.approx(750 / 7 + 750 / 3)


def test_time_that_is_over_leaves_the_start_or_nothing() -> None:
    """No bound is claimed then."""
    problem, budget = table(1).problem(), Budget()
    budget.interrupt()
    with pytest.raises(NoSolution, match="before the method stopped"):
        pattern_fpt(problem, budget=budget)
    start = Patterns(np.full(3, 3))
    kept = pattern_fpt(problem, start=start, budget=budget)
    assert (kept.objective, kept.bound, kept.status.stopped) == (6, None, Stopped.INTERRUPT)


def test_single_use_by_hand() -> None:
    """Three pairs of rows: one is exact, the others have one star each, by different patterns."""
    case = replace(table(2), single_use=True)
    solution = pattern_fpt(case.problem())
    assert solution.objective == case.optimum() == 4
    assert len(solution.sizes) == 3


def test_costs_that_whole_numbers_lose_leave_a_gap() -> None:
    """One row type has no star, the other one of 1e-9: two records or three, beside 1e9."""
    rows = (("x", "s", "s"),) * 2 + (("y", "s", "s"),) * 3
    case = PatternCase(rows, ("p",) * 5, 2, Mask(), (2, 1e-9, 1e9), single_use=True)
    solution, best = pattern_fpt(case.problem()), case.optimum()
    assert best is not None
    assert best == pytest.approx(2e-9)
    assert solution.bound is not None
    assert solution.bound.value <= best <= solution.objective
    assert solution.is_optimal == (solution.objective == best)
