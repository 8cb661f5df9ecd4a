"""The nearest-neighbour bound equals its definition and never exceeds an optimum."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Diversity,
    EquivalenceClasses,
    Freeform,
    Microdata,
    Problem,
    Solution,
    UnsupportedObjective,
    census,
    nearest_neighbour_bound,
    objective,
    solve,
)
from anonymip.bounds import nearest_neighbour
from anonymip.bounds import nearest_neighbour as module
from anonymip.bounds.nearest_neighbour import (
    k_set_bound,
    k_set_terms,
    nearest_neighbour_terms,
    pairwise_terms,
)
from anonymip.runtime.budget import Budget
from tests.brute_force import Cell, Column, gcp, nearest_neighbour_sum, record_loss, starred
from tests.hard_losses import FALLING, PRODUCT, SWINGING
from tests.profiles import NAME
from tests.random_problems import (
    LOSSES,
    Case,
    Loss,
    cases,
    larger_microdata,
    microdata,
    ruled_cases,
)


@settings(max_examples=60)
@given(cases(largest=8))
def test_never_above_the_optimum(case: Case) -> None:
    """No release loses less than the bound, with and without suppression."""
    bound = nearest_neighbour_bound(case.problem())
    assert bound is not None
    best = case.optimum()
    assert bound.value <= best + case.slack(best)


@settings(max_examples=80)
@given(cases(largest=12))
def test_equals_the_definition(case: Case) -> None:
    """Equal to a quadratic computation of every record's (k-1)-th neighbour."""
    bound = nearest_neighbour_bound(case.problem())
    naive = nearest_neighbour_sum(case.columns, case.k, case.loss.naive, case.suppression)
    assert bound is not None
    assert bound.value == pytest.approx(naive, rel=1e-8, abs=1e-9)
    assert bound.value <= naive + 1e-12
    assert (bound.method, bound.proof) == ("nearest-neighbour", "argument")


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(20, 40 if NAME == "ci" else 90), st.integers(2, 15))
def test_equals_the_definition_on_trees_with_many_leaves(seed: int, n: int, k: int) -> None:
    """The search in the tree skips nothing it needs: repeated rows, ties, all kinds of terms."""
    microdata = larger_microdata(seed, n)
    columns = columns_of(microdata)
    for name in ("gcp", "weighted-binary", "leaning", "curved"):
        problem = Problem(microdata, k, objective=LOSSES[name].objective)
        bound = nearest_neighbour_bound(problem)
        naive = nearest_neighbour_sum(columns, k, LOSSES[name].naive)
        assert bound is not None
        assert bound.value == pytest.approx(naive, rel=1e-8, abs=1e-9)


def test_effort_ends_the_work_and_not_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is spent before all records are looked at lowers the bound, the same in every run."""
    problem = Problem(census(400, 6, seed=1), 4)
    whole = nearest_neighbour_bound(problem, effort="thorough")
    monkeypatch.setitem(nearest_neighbour._CELLS, "quick", 20_000)
    quick = [
        nearest_neighbour_bound(problem, effort="quick", budget=budget)
        for budget in (None, Budget.of(600))
    ]
    assert whole is not None
    assert all(bound is not None for bound in quick)
    values = {bound.value for bound in quick if bound is not None}
    assert len(values) == 1
    assert 0 < values.pop() < whole.value
    assert {bound.method for bound in quick if bound} == {"nearest-neighbour (cut short)"}


def columns_of(microdata: Microdata) -> list[Column]:
    """Return the columns of a table as brute force reads them."""
    return [
        Column(
            tuple(microdata.frame[attribute.name].tolist()),
            attribute.is_numeric,
            as_set=attribute.publish == "set",
            integer=attribute.integer,
            weight=attribute.weight,
        )
        for attribute in microdata.attributes
    ]


@objective
def cheap_stars(record: Any) -> Any:
    """Charge the width, and half for a star."""
    return record.width["a"] - 0.5 * record.suppressed["a"]


def naive_cheap_stars(cells: Sequence[Cell]) -> float:
    """Return the same as `cheap_stars`."""
    return 0.5 if cells[0].starred else cells[0].width


def test_suppression_takes_the_lesser_of_term_and_price() -> None:
    """Values 0, 1, 100 with k = 2: the last record would pay 0.99, its star costs 0.5."""
    column = Column((0.0, 1.0, 100.0))
    loss = Loss(cheap_stars, naive_cheap_stars)
    plain = nearest_neighbour_bound(Case((column,), 2, loss).problem())
    cheaper = nearest_neighbour_bound(Case((column,), 2, loss, suppression=True).problem())
    assert plain is not None
    assert cheaper is not None
    assert plain.value == pytest.approx(0.01 + 0.01 + 0.99)
    assert cheaper.value == pytest.approx(0.01 + 0.01 + 0.5)


def test_objectives_that_are_not_monotone_have_no_bound() -> None:
    """Without monotonicity the argument fails: None, not 0, and no gap in a solution."""
    case = Case((Column((1.0, 2.0, 4.0, 9.0)),), 2, FALLING)
    assert nearest_neighbour_bound(case.problem()) is None
    solution = solve(case.problem(), "greedy-search")
    assert solution.bound is None
    assert solution.gap is None
    assert not solution.status.bound


@settings(max_examples=25)
@given(cases(largest=8))
def test_spent_budget_still_gives_a_bound(case: Case) -> None:
    """Records not looked at count as published exactly, and the bound says it was cut short."""
    problem = case.problem()
    bound = nearest_neighbour_bound(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    price = case.loss.naive([starred(column) for column in case.columns])
    alone = [record_loss(case.columns, case.loss.naive, [i]) for i in range(case.n)]
    naive = sum(min(term, price) if case.suppression else term for term in alone)
    assert bound is not None
    assert bound.method == "nearest-neighbour (cut short)"
    assert bound.value == pytest.approx(naive, rel=1e-8, abs=1e-9)
    best = case.optimum()
    assert bound.value <= best + case.slack(best)


def test_bound_of_zero_loss_proves_optimality() -> None:
    """If every row occurs k times, exact publication is proven optimal by the argument."""
    column = Column(("p", "q", "p", "q", "p", "q"), False, as_set=True)
    solution: Solution = solve(Case((column,), 3, LOSSES["gcp"]).problem(), "greedy-search")
    assert solution.objective == 0.0
    assert solution.is_optimal
    assert solution.gap == 0.0
    assert solution.bound is not None
    assert solution.bound.proof == "argument"


@pytest.mark.parametrize("suppression", [False, True])
def test_grows_with_k(suppression: bool) -> None:
    """More companions never cost less."""
    microdata = census(300, 6, seed=2)
    recoding = EquivalenceClasses(suppression=suppression)
    values = []
    for k in (2, 3, 5, 10, 40, 300):
        bound = nearest_neighbour_bound(Problem(microdata, k, recoding))
        assert bound is not None
        values.append(bound.value)
    assert values == sorted(values)
    assert values[0] < values[-1]


@settings(max_examples=80)
@given(ruled_cases(), st.booleans())
def test_holds_under_rules_and_for_the_largest_loss(case: Case, general: bool) -> None:
    """Diversity and limits only raise the optimum; a maximum is bounded by the largest term."""
    if general:
        case = replace(case, loss=PRODUCT)
    problem = case.problem()
    bound = nearest_neighbour_bound(problem)
    assert bound is not None
    best = case.optimum()
    assert bound.value <= best + case.slack(best)
    # The product over one attribute is affine, and proven.
    declared = general and case.problem().m > 1
    assert bool(problem.compiled.assumed) == declared
    assumed = "nearest-neighbour (assuming that the objective is monotone)"
    assert bound.method == (assumed if declared else "nearest-neighbour")


@settings(max_examples=40)
@given(cases(suppression=False), st.booleans())
def test_largest_loss_takes_the_largest_term(case: Case, general: bool) -> None:
    """With the maximum over the records the bound is the largest of their terms."""
    case = replace(case, worst=True, loss=PRODUCT if general else case.loss)
    bound = nearest_neighbour_bound(case.problem())
    naive = -math.inf
    for record in range(case.n):
        others = sorted(
            record_loss(case.columns, case.loss.naive, (record, other))
            for other in range(case.n)
            if other != record
        )
        naive = max(naive, others[case.k - 2])
    assert bound is not None
    assert bound.value == pytest.approx(naive, rel=1e-8, abs=1e-9)


@settings(max_examples=60)
@given(cases(largest=7), st.booleans())
def test_terms_are_feasible_prices(case: Case, general: bool) -> None:
    """The terms of any k or more records add up to no more than these cost as one class."""
    if general:
        case = replace(case, loss=PRODUCT)
    terms = nearest_neighbour_terms(case.problem())
    assert terms.shape == (case.n,)
    for size in range(case.k, case.n + 1):
        for group in combinations(range(case.n), size):
            cost = size * record_loss(case.columns, case.loss.naive, group)
            assert terms[list(group)].sum() <= cost + 1e-12


@objective
def different_values(record: Any) -> Any:
    """Charge 1 for a cell of more than one value."""
    return 1.0 * (record.distinct["a"] > 1)


@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
@pytest.mark.parametrize("diversity", [None, Diversity(distinct=2)])
def test_no_admissible_set_costs_less_than_its_duals(
    recoding: Any, diversity: Diversity | None
) -> None:
    """Of five different values any joint cell costs 1; a cover of triples is no proof by pairs."""
    column = Column(("p", "q", "r", "s", "t"), numeric=False, as_set=True)
    data = microdata((column,), sensitive=(("x", "y", "x", "y", "x"),))
    bound = nearest_neighbour_bound(Problem(data, 2, recoding, different_values, diversity))
    assert bound is not None
    assert bound.value == pytest.approx(5.0)
    assert (bound.duals is None) == (diversity is not None and recoding == Freeform())
    if bound.duals is not None:
        for size in range(bound.duals.smallest, bound.duals.largest + 1):
            cost = size if bound.duals.weight == "size" else 1
            assert bound.duals.duals[:size].sum() <= cost


@pytest.mark.parametrize("loss", [FALLING, SWINGING])
def test_terms_need_a_monotone_objective(loss: Loss) -> None:
    """What may fall has no terms, and the error says why."""
    case = Case((Column((1.0, 2.0, 4.0, 9.0)),), 2, loss)
    with pytest.raises(UnsupportedObjective, match="monotone"):
        nearest_neighbour_terms(case.problem())


@pytest.mark.parametrize("recoding", [EquivalenceClasses(), Freeform()])
def test_cancelling_offsets_leave_no_bound_above_the_optimum(recoding: Any) -> None:
    """Own loss -1e6, increase 1e6: what is left of them is rounding."""
    columns = (
        Column((2, 2, 2), integer=True),
        Column((85_062_422, 63_696_168, 63_696_168), integer=True),
    )

    @objective
    def offset(record: Any) -> Any:
        return 1e6 * record.spread["a"] + 1e6 * record.spread["b"] - 1e6

    problem = Problem(microdata(columns), 3, recoding, offset)
    bound = nearest_neighbour_bound(problem)
    assert bound is not None
    assert bound.value <= 0.0
    assert solve(problem).objective == 0.0


def test_a_column_below_the_rounding_of_another_lifts_no_bound() -> None:
    """Spreads of 1e-17 beside one of 1: what remains of their sum is rounding, and is taken off."""
    columns = (
        Column(tuple("xxxyxy"), numeric=False),
        Column(
            (0.10000000000000002, 0.30000000000000004, 0.1, 0.7000000000000001, 0.3, 0.1),
            domain=(0.0, 9e15),
            as_set=True,
        ),
    )
    bound = nearest_neighbour_bound(Problem(microdata(columns), 2))
    assert bound is not None
    assert bound.value <= nearest_neighbour_sum(columns, 2, gcp)


@settings(max_examples=60)
@given(cases(largest=9))
def test_equal_to_the_definition(case: Case) -> None:
    """The (k-1)-th least loss beside another record, repeated rows included."""
    case = replace(case, loss=PRODUCT)
    terms, complete = pairwise_terms(case.problem(), Budget())
    assert complete
    for record in range(case.n):
        others = [other for other in range(case.n) if other != record]
        losses = sorted(
            record_loss(case.columns, case.loss.naive, (record, other)) for other in others
        )
        assert terms[record] == pytest.approx(losses[case.k - 2], rel=1e-9)


@settings(max_examples=20)
@given(cases(largest=9))
def test_rows_not_looked_at_count_as_exact(case: Case) -> None:
    """A spent budget leaves the losses of exact publication."""
    case = replace(case, loss=PRODUCT)
    terms, complete = pairwise_terms(case.problem(), Budget(deadline=time.monotonic() - 1.0))
    assert not complete
    alone = [record_loss(case.columns, case.loss.naive, [record]) for record in range(case.n)]
    assert terms == pytest.approx(np.array(alone))


def test_too_many_pairs_are_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the affordable pairs only the first types are looked at; no term is lost above."""
    case = Case((Column((0.0, 1.0, 3.0, 6.0, 10.0)),), 2, PRODUCT)
    full, _ = pairwise_terms(case.problem(), Budget())
    monkeypatch.setattr(module, "_LARGEST_PAIRS", 12)
    short, complete = pairwise_terms(case.problem(), Budget())
    assert not complete
    assert (short <= full + 1e-12).all()
    assert 0 < (short < full - 1e-12).sum() < case.n


@settings(max_examples=60)
@given(cases(largest=8), st.sampled_from([0, 40, 10_000]))
def test_sets_of_k_without_tables_lose_what_all_sets_say(case: Case, most: int) -> None:
    """The least loss of k records around each, or less where the sets looked at do not reach."""
    data = microdata(case.columns)
    problem = Problem(data, k=min(case.k + 1, case.n), objective=PRODUCT.objective)
    found, complete = k_set_terms(problem, Budget(), most * problem.n)
    assert complete == (most > 0)
    for record in range(problem.n):
        others = [one for one in range(problem.n) if one != record]
        sets = [np.array([[record, *some]]) for some in combinations(others, problem.k - 1)]
        least = min(float(problem.compiled.class_losses(rows)[0]) for rows in sets) / problem.k
        assert found[record] <= least + 1e-12
        if most == 10_000:
            assert found[record] == pytest.approx(least, rel=1e-12)


def test_sets_that_end_early_lower_no_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record counts with its neighbour or its sets, whichever says more of it."""
    problem = Problem(larger_microdata(0, 12), 4, objective=PRODUCT.objective)
    most = 4 * problem.n**2
    monkeypatch.setitem(module._SETS, "quick", most)
    terms, (of_sets, _) = nearest_neighbour_terms(problem), k_set_terms(problem, Budget(), most)
    together = np.maximum(terms, of_sets).sum()
    bound = k_set_bound(problem, effort="quick")
    assert bound is not None
    assert bound.value == pytest.approx(together)
    assert together > 1.2 * max(terms.sum(), of_sets.sum())


def test_sets_that_the_budget_ends_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first records count with their sets, the others with their neighbours."""
    problem = Problem(larger_microdata(1, 14), 4, objective=PRODUCT.objective)
    whole, nearest = k_set_bound(problem), nearest_neighbour_bound(problem)
    looked_at, least_around = 0, module._least_around
    budget = Budget()

    def of_three(*asked: Any) -> float:
        nonlocal looked_at
        looked_at += 1
        if looked_at == 3:
            budget.interrupt()
        return least_around(*asked)

    monkeypatch.setattr(module, "_least_around", of_three)
    bound = k_set_bound(problem, budget=budget)
    assert bound is not None
    assert whole is not None
    assert nearest is not None
    assert looked_at == 3
    assert bound.method.startswith("k-sets (cut short")
    assert nearest.value < bound.value < whole.value


@pytest.mark.parametrize(
    ("values", "high"),
    [([0.1, 0.10000000000000002], 0.7), ([1000000000.000003, 1000000000.000004], 2e9)],
)
def test_numbers_that_nearly_are_one_beside_missing_values(
    values: list[float], high: float
) -> None:
    """Widths are exact where the losses of the ends are mostly rounding."""
    frame = pd.DataFrame({"a": [*values, None, None]})
    attributes = (Attribute("a", "numeric", domain=(0.0, high), missing="own"),)
    problem = Problem(Microdata(frame, attributes), 2)
    bound = nearest_neighbour_bound(problem)
    assert bound is not None
    least = 2 * (Fraction(values[1]) - Fraction(values[0])) / Fraction(high)
    assert 0 < bound.value <= least <= bound.value * (1 + 1e-6)
