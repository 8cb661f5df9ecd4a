"""The rungs above nearest neighbours: feasible duals, never above an optimum."""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    KK,
    Attribute,
    Bottleneck,
    Bound,
    Freeform,
    KOne,
    Microdata,
    Problem,
    census,
    lower_bound,
    nearest_neighbour_bound,
    solve,
)
from anonymip.bounds import ladder
from anonymip.bounds.ladder import ladder_bound
from anonymip.bounds.nearest_neighbour import nearest_neighbour_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.runtime.budget import Budget
from tests.brute_force import Column, record_loss
from tests.random_problems import LOSSES, PRODUCT, Case, cases, larger_microdata, ruled_cases

#: Losses with tables that never fall: ranges, sets, trees, own losses, curves.
NAMES = ("gcp", "weighted-binary", "leaning", "curved")


def bound_of(
    problem: Problem, effort: str | None = "normal", budget: Budget | None = None
) -> Bound:
    """Return a bound that is there."""
    bound = ladder_bound(problem, effort=effort, budget=budget)
    assert bound is not None
    return bound


@settings(max_examples=60)
@given(cases(largest=8))
def test_never_above_the_optimum(case: Case) -> None:
    """No release loses less, with and without suppression."""
    best = case.optimum()
    for effort in ("quick", "normal", "thorough"):
        assert bound_of(case.problem(), effort).value <= best + case.slack(best)


@settings(max_examples=40)
@given(cases(largest=7, suppression=False))
def test_never_above_the_freeform_optimum(case: Case) -> None:
    """Nor does any cover by sets of k records, of which each record lies in k."""
    problem, best = case.problem().replace(recoding=Freeform()), case.cover_optimum()
    for effort in ("quick", "normal", "thorough"):
        assert bound_of(problem, effort).value <= best + case.slack(best)


@settings(max_examples=60)
@given(ruled_cases())
def test_holds_under_rules_and_for_the_largest_loss(case: Case) -> None:
    """Diversity and limits only raise the optimum; the largest loss is bounded by k-sets."""
    best = case.optimum()
    assert bound_of(case.problem()).value <= best + case.slack(best)


@settings(max_examples=40)
@given(
    st.integers(0, 10**6),
    st.integers(6, 12),
    st.integers(2, 5),
    st.sampled_from(NAMES),
    st.sampled_from([1.3, 2.5, 6.0]),
    st.sampled_from([3, 40, 100_000]),
)
def test_no_set_undercuts_its_duals(
    seed: int, n: int, k: int, name: str, factor: float, each: int
) -> None:
    """The duals of any k or more records add up to no more than these cost, however much is cut."""
    problem = Problem(larger_microdata(seed, n), k, objective=LOSSES[name].objective)
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), 1e9, Budget())
    duals.raise_to_k_sets()
    assert duals.ascend(factor, (0.4, 1.0), each)
    terms = duals.terms()
    for size in range(k, n + 1):
        sets = np.array(list(combinations(range(n), size)))
        left = problem.compiled.class_losses(sets) - terms[sets].sum(axis=1)
        assert left.min() >= -1e-12


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(6, 12), st.integers(2, 5), st.sampled_from(NAMES))
def test_k_sets_are_the_least_losses(seed: int, n: int, k: int, name: str) -> None:
    """A record's term is the least loss of the sets of k that hold it, by looking at all."""
    problem = Problem(larger_microdata(seed, n), k, objective=LOSSES[name].objective)
    duals = RecordDuals(problem, nearest_neighbour_terms(problem), 1e9, Budget())
    assert duals.raise_to_k_sets()
    sets = np.array(list(combinations(range(n), k)))
    losses = problem.compiled.class_losses(sets) / k
    least = [losses[(sets == i).any(axis=1)].min() for i in range(n)]
    assert duals.terms() == pytest.approx(least, abs=1e-7)


def test_sets_see_more_than_pairs() -> None:
    """Values 0, 1, 2, 10, 11, 12 with k = 3: both triples pay in full, which pairs do not see."""
    problem = Case((Column((0.0, 1.0, 2.0, 10.0, 11.0, 12.0)),), 3, LOSSES["gcp"]).problem()
    assert bound_of(problem).value == pytest.approx(1.0)
    pairs = nearest_neighbour_bound(problem)
    assert pairs is not None
    assert pairs.value == pytest.approx(10 / 12)


@pytest.mark.parametrize("k", [3, 5])
def test_each_rung_is_above_the_last(k: int) -> None:
    """Pairs, k-sets, ascent: more work never proves less, and the names say where it stands."""
    problem = Problem(census(200, 5, seed=4), k)
    pairs = nearest_neighbour_bound(problem)
    bounds = [bound_of(problem, effort) for effort in ("quick", "normal", "thorough")]
    assert pairs is not None
    values = [bound.value for bound in (pairs, *bounds)]
    assert values == sorted(values)
    assert values[0] < values[1] < 0.9 * values[2]
    guided = "column generation, dual ascent"
    assert [bound.method for bound in bounds] == ["k-sets", guided, guided]
    assert values[-1] <= solve(problem, "local-search").objective


def test_same_effort_same_bound_whatever_the_steps() -> None:
    """Work is counted, never seconds: all bits are the same in every run."""
    problem = Problem(census(150, 5, seed=7), 4)
    limited = bound_of(problem, "normal", Budget.of(600))
    assert limited.value == bound_of(problem, "normal").value


@pytest.mark.parametrize("cells", [3e6, 5e6, 1e7])
def test_no_work_goes_into_a_sweep_that_is_cut_short(
    monkeypatch: pytest.MonkeyPatch, cells: float
) -> None:
    """Duals are raised farther only where what is left suffices for all of them."""
    swept, ascend = [], RecordDuals.ascend

    def watched(duals: RecordDuals, *settings: Any) -> bool:
        swept.append(ascend(duals, *settings))
        return swept[-1]

    monkeypatch.setattr(RecordDuals, "ascend", watched)
    monkeypatch.setitem(ladder.NUMBERS.cells, "normal", cells)
    numbers = np.random.default_rng(1).normal(size=(200, 6)).round(3)
    frame = pd.DataFrame(numbers, columns=list("abcdef"))
    bound_of(Problem(Microdata(frame, tuple(Attribute(name) for name in "abcdef")), 4))
    assert swept
    assert all(swept[1:])


@pytest.mark.parametrize("cells", [1e3, 2e4, 2e5, 2e6])
def test_effort_ends_the_work_and_not_the_proof(
    monkeypatch: pytest.MonkeyPatch, cells: float
) -> None:
    """Wherever it ends, the bound holds and is no lower than nearest neighbours."""
    problem = Problem(census(120, 5, seed=5), 4)
    whole = bound_of(problem).value
    monkeypatch.setitem(ladder.NUMBERS.cells, "normal", cells)
    pairs = nearest_neighbour_bound(problem)
    assert pairs is not None
    assert pairs.value <= bound_of(problem).value <= whole


def test_no_time_leaves_what_is_there() -> None:
    """A budget that is spent gives the bound of records that are published exactly."""
    problem = Problem(census(60, 4, seed=5), 3)
    bound = bound_of(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert bound.method == "nearest-neighbour (cut short)"


@settings(max_examples=25)
@given(cases(largest=7, suppression=False))
def test_weaker_notions_take_k_sets_alone(case: Case) -> None:
    """Where records lie in sets of different sizes, what each pays by itself is all that holds."""
    for recoding in (KOne(), KK()):
        problem = case.problem().replace(recoding=recoding)
        bound = bound_of(problem, "thorough")
        assert not bound.method.startswith("dual")
        # (k,1): every record takes the cheapest set of k that holds it.
        total = sum(
            min(
                record_loss(case.columns, case.loss.naive, group)
                for group in combinations(range(case.n), case.k)
                if i in group
            )
            for i in range(case.n)
        )
        assert bound.value <= total + case.slack(total)


def test_degrees_take_k_sets_alone() -> None:
    """Records with degrees of their own lie in sets of several sizes."""
    recoding = Freeform(degrees=(2, 2, 3, 3, 3, 2, 2))
    problem = Problem(census(7, 3, seed=1), 2, recoding)
    assert bound_of(problem).method == "nearest-neighbour"


def test_the_largest_loss_takes_the_largest_term() -> None:
    """With the maximum over the records nothing is summed."""
    bound = bound_of(Problem(census(60, 4, seed=1), 3, objective=Bottleneck()))
    assert bound.method == "k-sets"


def test_losses_without_tables_stay_with_nearest_neighbours() -> None:
    """What cannot be searched by kernels has no rung here."""
    case = Case((Column((1.0, 2.0, 4.0, 9.0)), Column((1.0, 5.0, 2.0, 2.0))), 2, PRODUCT)
    assert ladder_bound(case.problem()) is None
    found = lower_bound(case.problem())
    assert found is not None
    assert found.method.startswith("nearest-neighbour")
