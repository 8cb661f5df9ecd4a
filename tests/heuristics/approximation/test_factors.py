"""The edge cover for k = 2 and the 2-factor for k = 3: factors, bounds, what is claimed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

from anonymip import Budget, HierarchyLoss, InputError, Problem, Stopped, census
from anonymip.heuristics.approximation.edge_cover import edge_cover
from anonymip.heuristics.approximation.forest import forest
from anonymip.heuristics.approximation.guarantees import is_binary, loss_obstacle
from anonymip.heuristics.approximation.two_factor import two_factor
from tests.brute_force import Column, hierarchy_loss, optimum
from tests.by_hand import table_of
from tests.profiles import tried
from tests.random_problems import Case, cases, groups_of, ruled_cases


def suppression_problem(rows: np.ndarray, k: int) -> Problem:
    """Return a table of texts under the paper's loss."""
    data = table_of({f"a{at}": column for at, column in enumerate(rows.T.astype(str))})
    return Problem(data, k, objective=HierarchyLoss())


def suppression_optimum(rows: np.ndarray, k: int) -> float:
    """Return the optimum by enumeration."""
    columns = [Column(tuple(column), False, as_set=True) for column in rows.T.astype(str)]
    return optimum(columns, k, hierarchy_loss, False, None, False)


def random_problems(letters: int, k: int, times: int) -> Iterator[tuple[Problem, float]]:
    """Yield problems of random tables of so many letters, and their optima."""
    rng = np.random.default_rng(letters)
    for _ in range(tried(times)):
        rows = rng.integers(0, letters, (rng.integers(k, k + 7), rng.integers(1, 6)))
        yield suppression_problem(rows, k), suppression_optimum(rows, k)


@pytest.mark.parametrize("letters", [2, 3])
def test_factors_on_random_tables(letters: int) -> None:
    """Within 1.5 on binary, 2 on ternary tables; the bound never exceeds the optimum."""
    worst = 0.0
    for problem, best in random_problems(letters, 2, 150):
        solution = edge_cover(problem)
        binary = is_binary(solution.problem)
        assert solution.bound is not None
        assert solution.bound.value <= best
        assert best <= solution.objective <= (1.5 if binary else 2.0) * best
        factor = 1.5 if binary else 2.0
        assert solution.objective <= factor * solution.bound.value * (1 + 1e-8)
        assert f"at most {factor:g} times" in solution.trace[0]
        worst = max(worst, solution.objective / best if best else 1.0)
    assert worst > 1.0


@settings(max_examples=150)
@given(cases())
def test_any_loss(case: Case) -> None:
    """Feasible, true, never below the optimum; the bound 1.5 c holds for generalization too."""
    case = Case(case.columns, 2, case.loss, case.suppression)
    solution, best = edge_cover(case.problem()), case.optimum()
    groups = groups_of(solution.assignment)
    assert solution.objective == pytest.approx(case.release_loss(groups), rel=1e-9, abs=1e-9)
    assert solution.objective >= best - case.slack(best)
    assert solution.bound is None or solution.bound.value <= best + 1e-12
    if not case.suppression:
        assert all(2 <= len(group) <= 3 for group in groups)


@settings(max_examples=80)
@given(cases(losses=["gcp", "hierarchy", "leaf"], suppression=False, largest=8))
def test_the_bound_is_within_a_factor_of_two(case: Case) -> None:
    """Classes lose at most 3 c and no release less than 1.5 c, whatever is generalized."""
    case = Case(case.columns, 2, case.loss)
    solution = edge_cover(case.problem())
    assert solution.bound is not None
    assert solution.objective <= 2 * solution.bound.value * (1 + 1e-8) + 1e-9


def test_another_k_is_refused() -> None:
    """For k = 3 the message names the methods that serve."""
    with pytest.raises(InputError, match="k is 3"):
        edge_cover(Problem(census(20, 3), 3))


def test_a_table_of_too_many_rows_is_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The nearest of all rows alone take minutes."""
    monkeypatch.delattr("anonymip.heuristics.approximation.edge_cover.nearest_rows")
    with pytest.raises(InputError, match="50001 distinct rows"):
        edge_cover(Problem(table_of({"a": np.arange(50_001)}), 2))


#: Each with the size of the classes that it is for.
BOTH = pytest.mark.parametrize(("method", "k"), [(edge_cover, 2), (two_factor, 3)])


@BOTH
@settings(max_examples=40)
@given(case=ruled_cases())
def test_rules_are_kept_and_no_factor_claimed(method: Any, k: int, case: Case) -> None:
    """Repaired classes keep the rules; the bound stays true."""
    case = replace(case, k=k)
    best = case.optimum()
    assume(np.isfinite(best))
    solution = method(case.problem())
    assert "no factor" in solution.trace[0]
    assert solution.objective >= best - case.slack(best)
    assert solution.bound is None or solution.bound.value <= best + 1e-9


@BOTH
def test_spent_budget(method: Any, k: int) -> None:
    """A deadline in the past ends the work with a release and without a claim."""
    problem = Problem(census(120, 5, seed=3), k)
    solution = method(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert solution.status.stopped is Stopped.TIME
    assert solution.bound is None
    assert "stopped early" in solution.trace[0]


@pytest.mark.parametrize("letters", [2, 3])
def test_two_factors_on_random_tables(letters: int) -> None:
    """Within 2 on binary tables, where the bound is 1.5 c; on ternary ones no factor is claimed."""
    worst = 0.0
    for problem, best in random_problems(letters, 3, 480):
        solution = two_factor(problem)
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
    ages = table_of({"age": [0, 0, 1, 1, 2, 2, 3, 3]})
    solution = two_factor(Problem(ages, 3))
    assert solution.bound is not None
    assert solution.bound.method == "second nearest neighbours"
    assert solution.bound.value == pytest.approx(8 / 3)
    assert solution.bound.value <= 8 / 3
    assert solution.is_optimal


@settings(max_examples=100)
@given(cases(largest=8))
def test_two_factors_of_any_loss(case: Case) -> None:
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
