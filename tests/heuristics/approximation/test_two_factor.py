"""The 2-factor for k = 3: factors, bounds, and what is claimed when."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings

from anonymip import Attribute, Budget, InputError, Microdata, Problem, Stopped, census
from anonymip.heuristics.approximation.forest import forest
from anonymip.heuristics.approximation.guarantees import is_binary, loss_obstacle
from anonymip.heuristics.approximation.two_factor import two_factor
from tests.heuristics.approximation.test_edge_cover import suppression_optimum, suppression_problem
from tests.profiles import tried
from tests.random_problems import Case, cases, groups_of, ruled_cases


@pytest.mark.parametrize("letters", [2, 3])
def test_factors_on_random_tables(letters: int) -> None:
    """Within 2 on binary tables, where the bound is 1.5 c; on ternary ones no factor is claimed."""
    rng, worst = np.random.default_rng(letters), 0.0
    for _ in range(tried(240)):
        rows = rng.integers(0, letters, (rng.integers(3, 10), rng.integers(1, 6)))
        best = suppression_optimum(rows, 3)
        solution = two_factor(suppression_problem(rows, 3))
        assert best <= solution.objective
        nearest = forest(solution.problem).bound
        assert solution.bound is not None
        assert nearest is not None
        assert nearest.value * (1 - 1e-8) <= solution.bound.value <= best
        if is_binary(solution.problem):
            assert solution.objective <= 2 * solution.bound.value * (1 + 1e-8)
            assert "at most 2 times" in solution.trace[0]
        else:
            assert "not binary" in solution.trace[0]
        worst = max(worst, solution.objective / best if best else 1.0)
    assert 1.0 < worst <= 2.0 or letters > 2


def test_second_neighbours_bound_what_pairs_of_equal_records_hide() -> None:
    """Cycles go through equal records for nothing, but no class has two records."""
    ages = Microdata(
        pd.DataFrame({"age": [0, 0, 1, 1, 2, 2, 3, 3]}), (Attribute("age", "numeric"),)
    )
    solution = two_factor(Problem(ages, 3))
    assert solution.bound is not None
    assert solution.bound.method == "second nearest neighbours"
    assert solution.bound.value == pytest.approx(8 / 3)
    assert solution.bound.value <= 8 / 3
    assert solution.is_optimal


@settings(max_examples=100)
@given(cases(largest=8))
def test_any_loss(case: Case) -> None:
    """Feasible, true, never below the optimum, and a bound that never exceeds it."""
    case = replace(case, k=3)
    solution, best = two_factor(case.problem()), case.optimum()
    groups = groups_of(solution.assignment)
    assert solution.objective == pytest.approx(case.release_loss(groups), rel=1e-9, abs=1e-9)
    assert solution.objective >= best - case.slack(best)
    assert solution.bound is None or solution.bound.value <= best + 1e-12
    if loss_obstacle(solution.problem) is None and not case.suppression:
        assert solution.bound is not None
    if not case.suppression:
        assert all(3 <= len(group) <= 5 for group in groups)


@settings(max_examples=30)
@given(ruled_cases())
def test_rules_are_kept_and_no_factor_claimed(case: Case) -> None:
    """Repaired classes keep the rules; the bound stays true."""
    case = replace(case, k=3)
    best = case.optimum()
    assume(np.isfinite(best))
    solution = two_factor(case.problem())
    assert "no factor" in solution.trace[0]
    assert solution.objective >= best - case.slack(best)
    assert solution.bound is None or solution.bound.value <= best + 1e-9


def test_long_cycles_are_cut_within_three_times_the_cycle() -> None:
    """Gray codes are one cycle of any even length: Lemma 11 with all remainders."""
    for bits in (3, 4, 5):
        codes = np.arange(2**bits)
        rows = (codes ^ (codes >> 1))[:, None] >> np.arange(bits) & 1
        solution = two_factor(suppression_problem(rows, 3))
        assert solution.bound is not None
        assert solution.objective <= 2 * solution.bound.value * (1 + 1e-8)


def test_another_k_and_large_tables_are_refused() -> None:
    """The message names the methods that serve."""
    with pytest.raises(InputError, match="k is 2"):
        two_factor(Problem(census(20, 3), 2))
    with pytest.raises(InputError, match="5001 records"):
        two_factor(Problem(census(5_001, 3), 3))


def test_spent_budget() -> None:
    """A deadline in the past ends the work with a release and without a claim."""
    problem = Problem(census(120, 5, seed=3), 3)
    solution = two_factor(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert solution.status.stopped is Stopped.TIME
    assert solution.bound is None
    assert "stopped early" in solution.trace[0]
