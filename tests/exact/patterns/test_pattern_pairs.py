"""Tests of patterns for k = 2 by pairs and triples, against trying everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Budget,
    Diversity,
    InputError,
    Mask,
    NoSolution,
    PatternGuided,
    Problem,
    Suppressions,
    solve,
)
from anonymip.assignments import Patterns
from anonymip.enumeration.cluster_sets import Columns
from anonymip.exact.patterns.pattern_pairs import (
    pairs_with_duals,
    pattern_pairs,
    small_groups_within,
)
from tests.by_hand import table_of
from tests.random_patterns import PatternCase, pattern_cases


def _pair_case(data: st.DataObject) -> PatternCase:
    case = data.draw(pattern_cases(most_records=7))
    return replace(case, k=2, suppression=data.draw(st.booleans()))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_optimum_for_two_is_that_of_trying_everything(data: st.DataObject) -> None:
    """With duplicates, single records, masks by rules and by list, and with suppression."""
    case = _pair_case(data)
    optimum = case.optimum()
    if optimum is None:
        with pytest.raises(NoSolution):
            pattern_pairs(case.problem())
        return
    solution = pattern_pairs(case.problem())
    assert solution.objective == pytest.approx(optimum)
    assert solution.is_optimal


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_prices_of_records_are_a_bound_and_no_group_is_cheaper(data: st.DataObject) -> None:
    """The sum of all duals is below the optimum; every group costs at least those of its own."""
    case = _pair_case(data)
    optimum = case.optimum()
    assume(optimum is not None)
    pairs, _ = pairs_with_duals(case.problem(), Budget())
    assert optimum is not None
    assert pairs.bound <= optimum + 1e-9
    groups = small_groups_within(pairs, 1e6, 10_000)
    assert groups is not None
    assert len(groups.costs)
    assert (groups.reduced_costs(pairs.duals) >= -1e-9).all()


@pytest.mark.thorough
@given(data=st.data())
def test_groups_that_exceed_their_prices_by_more_are_left_out_and_no_others(
    data: st.DataObject,
) -> None:
    """The search among pairs finds each group within a cutoff that listing all of them finds."""
    case = _pair_case(data)
    assume(case.optimum() is not None)
    pairs, _ = pairs_with_duals(case.problem(), Budget())
    everything = small_groups_within(pairs, 1e6, 10_000)
    assert everything is not None
    cutoff = data.draw(st.sampled_from([0.0, 0.5, 1.0, 2.5, 4.0])) + 1e-7
    few = small_groups_within(pairs, cutoff, 10_000)
    assert few is not None

    def named(groups: Columns, most: float) -> list[tuple[int, ...]]:
        within = np.flatnonzero(groups.reduced_costs(pairs.duals) <= most)
        return sorted(tuple(groups.of(at).tolist()) for at in within.tolist())

    assert named(few, cutoff) == named(everything, cutoff) == named(few, 1e9)
    if len(few.costs) > 1:
        assert small_groups_within(pairs, cutoff, 0) is None or (few.sizes == 1).all()


def test_what_it_cannot_solve_is_refused() -> None:
    """Other k, single use and diversity."""
    rows = (("x", "x"), ("x", "y"), ("y", "y"), ("x", "x"))
    case = PatternCase(rows, ("p", "q", "p", "q"), 2, Mask(), (1, 1))
    for other in (
        replace(case, k=3),
        replace(case, single_use=True),
        replace(case, diversity=Diversity(distinct=2)),
    ):
        with pytest.raises(InputError, match="pattern-ilp"):
            pattern_pairs(other.problem())


def test_three_records_whose_pairs_agree_but_not_all_three_have_no_release() -> None:
    """The relaxation has a solution, half of each pair; no cut into pairs and triples exists."""
    rows = (("x", "x", "y"), ("x", "y", "x"), ("y", "x", "x"))
    mask = Mask(patterns=(("b", "c"), ("a", "c"), ("a", "b")))
    case = PatternCase(rows, ("p",) * 3, 2, mask, (1, 1, 1))
    assert case.optimum() is None
    with pytest.raises(NoSolution, match="pairs and triples"):
        pattern_pairs(case.problem())
    assert pattern_pairs(replace(case, suppression=True).problem()).objective == 7.0


@pytest.mark.parametrize("pattern", [2, 3])
def test_one_record_may_be_suppressed_beside_a_row_that_all_may_become(pattern: int) -> None:
    """Two of three rows are equal: the third is suppressed for 2, and all three cost a star each.

    From a start that loses more the program has to find it, and no heuristic.
    """
    case = PatternCase(
        (("x", "x"), ("x", "x"), ("x", "y")), ("p",) * 3, 2, Mask(), (1, 1), suppression=True
    )
    found = pattern_pairs(case.problem(), start=Patterns(np.full(3, pattern)))
    assert found.objective == case.optimum() == 2
    assert found.is_optimal


def test_duals_that_cancel_prove_no_more_than_their_digits() -> None:
    """Stars of the second attribute cost so much that those of the others are lost beside them."""
    rows = (("x", "p", "s"), ("y", "p", "s"), ("x", "q", "s"), ("y", "q", "s"))
    mask = Mask(patterns=((), ("a",), ("b",), ("a", "c")))
    for costs in ((3.0, 1e16, 1.0), (0.3, 1e12, 1e-6)):
        problem = PatternCase(rows, ("p",) * 4, 2, mask, costs).problem()
        stars = problem.recoding.stars(problem).tolist()  # type: ignore[union-attr]
        start = Patterns(np.full(4, stars.index([True, False, True])))
        pairs, _ = pairs_with_duals(problem, Budget())
        assert pairs.bound <= 4.0 * costs[0]
        found = pattern_pairs(problem, start=start)
        assert not found.is_optimal or found.objective == pytest.approx(4.0 * costs[0], rel=1e-9)


def test_without_time_the_start_is_kept() -> None:
    """The bound of the duals so far is a bound all the same."""
    rows = (("x", "x"), ("x", "y"), ("y", "y"), ("y", "x"))
    problem = PatternCase(rows, ("p",) * 4, 2, Mask(), (1, 1)).problem()
    start = pattern_pairs(problem).assignment
    budget = Budget()
    budget.interrupt()
    kept = pattern_pairs(problem, start=start, budget=budget)
    assert kept.objective == 4.0
    assert kept.bound is not None
    assert kept.bound.value <= 4.0
    assert isinstance(problem.recoding, PatternGuided)


def test_a_solver_is_not_trusted_beyond_its_tolerances() -> None:
    """One column that is a million times dearer than the others hides what they cost."""
    rows = ["uzxx", "vzyx", "uxyy", "vyzz", "vxyz", "uxyx", "vyzz", "vyyx"]
    data = table_of(pd.DataFrame([list(row) for row in rows], columns=list("abcd")))
    for cost in (1e3, 1e6):
        problem = Problem(data, 2, PatternGuided(), Suppressions({"a": cost}))
        found = solve(problem, "pattern-pairs")
        least = solve(problem, "pattern-ilp", options={"formulation": "pattern-strong"})
        assert found.objective == least.objective == 15.0
        assert found.bound is not None
        assert found.bound.value <= 15.0


def test_a_record_that_no_pattern_gives_a_companion_is_named() -> None:
    """Nobody has to guess why there is no release."""
    data = table_of({"a": ["y", "x"], "b": ["x", "x"]})
    problem = Problem(data, 2, PatternGuided(Mask(patterns=(("b",),))))
    with pytest.raises(NoSolution, match="record 0"):
        solve(problem, "pattern-pairs")
