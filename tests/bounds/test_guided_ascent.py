"""Ascents that a linear program guides: feasible after every round, and near its optimum."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations, islice
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from anonymip import Attribute, Microdata, Problem, census, objective, solve
from anonymip.bounds import ladder
from anonymip.bounds.ladder import guided_ascent, ladder_bound
from anonymip.bounds.near_program import SetProgram
from anonymip.bounds.nearest_neighbour import nearest_neighbour_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.exact.column_generation.column_generation import relaxation_bound
from anonymip.runtime.budget import Budget
from tests.random_problems import LOSSES, larger_microdata

NAMES = ("gcp", "weighted-binary", "leaning", "curved")


def duals_of(problem: Problem, cells: float = 1e9) -> RecordDuals:
    """Return duals that stand at their k-set terms."""
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), cells, Budget())
    duals.raise_to_k_sets()
    return duals


def least_left(problem: Problem, terms: np.ndarray) -> float:
    """Return what sets of k or more records leave at least of their cost, by looking at all."""
    least = np.inf
    for size in range(problem.k, problem.n + 1):
        sets = np.array(list(combinations(range(problem.n), size)))
        left = problem.compiled.class_losses(sets) - terms[sets].sum(axis=1)
        least = min(least, float(left.min()))
    return least


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.integers(6, 11),
    st.integers(2, 5),
    st.sampled_from(NAMES),
    st.sampled_from([3, 40, 100_000]),
)
def test_no_set_undercuts_duals_raised_to_any_aims(
    seed: int, n: int, k: int, name: str, each: int
) -> None:
    """Whatever is aimed at, duals stay feasible, and the sets that stopped them are sets of k."""
    problem = Problem(larger_microdata(seed, n), k, objective=LOSSES[name].objective)
    duals = duals_of(problem)
    random = np.random.default_rng(seed)
    for most in (1.0, 4.0):
        aims = duals.floors + random.uniform(-0.5, most, len(duals.floors)) * np.abs(duals.floors)
        complete, members = duals.ascend_to(aims, each)
        assert complete
        assert (duals.duals <= np.maximum(aims, duals.floors) + 1e-12).all()
        assert least_left(problem, duals.terms()) >= -1e-12
        for one in members:
            assert (np.bincount(one, minlength=len(duals.counts)) <= duals.counts).all()


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.integers(6, 11),
    st.integers(2, 5),
    st.sampled_from(NAMES),
    st.sampled_from([1e4, 1e5, 1e9]),
)
def test_no_set_undercuts_the_duals_of_any_round(
    seed: int, n: int, k: int, name: str, cells: float
) -> None:
    """Wherever the rounds end, no set of k or more records costs less than its duals."""
    problem = Problem(larger_microdata(seed, n), k, objective=LOSSES[name].objective)
    duals = duals_of(problem, cells)
    for _ in guided_ascent(duals, Budget()):
        assert least_left(problem, duals.terms()) >= -1e-12


@pytest.mark.parametrize("k", [3, 5])
def test_comes_near_the_linear_program(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """What plain ascents leave of the linear program over all sets is closed but for a percent."""
    problem = Problem(census(150, 5, seed=4), k)
    release = solve(problem, "ordered-cut", bound=False)
    whole, solved = relaxation_bound(problem, [release], effort="thorough", budget=Budget())
    guided = ladder_bound(problem, effort="thorough")
    monkeypatch.setattr(ladder, "NUMBERS", replace(ladder.NUMBERS, guided=np.inf))
    plain = ladder_bound(problem, effort="thorough")
    assert solved
    assert whole is not None
    assert guided is not None
    assert plain is not None
    assert guided.method == "column generation, dual ascent"
    assert plain.value < 0.99 * guided.value
    assert 0.99 * whole.value < guided.value <= whole.value * (1 + 1e-9)


@pytest.mark.parametrize("rounds", [1, 3, 9])
def test_time_ends_the_rounds_and_not_the_proof(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    """With the budget spent in any round the bound is one, and no lower than that of k-sets."""
    problem, budget = Problem(census(120, 5, seed=5), 4), Budget.of(600)
    whole, sets = (ladder_bound(problem, effort=effort) for effort in ("thorough", "quick"))
    improved, calls = SetProgram.improved, iter(range(1, 1_000))

    def ending(program: SetProgram, *arguments: Any) -> np.ndarray:
        if next(calls) == rounds:
            budget.deadline = time.monotonic() - 1.0
        return improved(program, *arguments)

    monkeypatch.setattr(SetProgram, "improved", ending)
    short = ladder_bound(problem, effort="thorough", budget=budget)
    assert whole is not None
    assert sets is not None
    assert short is not None
    assert next(calls) > rounds
    assert sets.value <= short.value <= whole.value + 1e-9


def test_rounds_end_where_duals_add_up_to_nothing() -> None:
    """Beside a constant of 1e9, rounding leaves duals of both signs: no share of 0 is a gain."""

    def beside_a_constant(record: Any) -> Any:
        return 1e9 + record.spread["a"]

    table = Microdata(pd.DataFrame({"a": list("xxyyyy")}), (Attribute("a", "categorical"),))
    duals = duals_of(Problem(table, 3, objective=objective(beside_a_constant)))
    assert len(list(islice(guided_ascent(duals, Budget()), 20))) < 5


def test_program_finds_the_best_duals_of_its_sets() -> None:
    """Of random sets, against a simplex method; sets that are known are not added again."""
    random = np.random.default_rng(3)
    t, k = 30, 3
    counts = random.integers(1, 3, t)
    members = np.sort(np.array([random.permutation(t)[:k] for _ in range(200)]), axis=1)
    costs = random.uniform(0.5, 2.0, len(members))
    program = SetProgram(counts, k, 0.4)
    assert program.add(members.astype(np.int32), costs) == len(np.unique(members, axis=0))
    assert program.add(members[:5].astype(np.int32), costs[:5]) == 0
    found = program.improved(np.full(t, 0.4), np.zeros(t), np.ones(t), 4_000, Budget())
    _, first = np.unique(members, axis=0, return_index=True)
    matrix = np.zeros((len(first), t))
    np.put_along_axis(matrix, members[first], 1.0, axis=1)
    exact = linprog(-counts, A_ub=matrix, b_ub=costs[first], bounds=(0, 1))
    assert found @ counts == pytest.approx(-exact.fun, rel=5e-3)
    assert (matrix @ found - costs[first]).max() <= 5e-3
