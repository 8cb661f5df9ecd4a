"""The row bound and the Lagrangian bound equal their definitions, and never exceed an optimum."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    InputError,
    Mask,
    NoSolution,
    PatternGuided,
    Problem,
    Suppressions,
    lower_bound,
    objective,
)
from anonymip.bounds.patterns.pattern_duals import (
    PatternDuals,
    PatternProgram,
    pattern_duals,
    pattern_program,
)
from anonymip.bounds.patterns.pattern_lagrangian import (
    ascend,
    pattern_bound,
    pattern_lagrangian_bound,
    pattern_row_bound,
    pattern_row_terms,
)
from anonymip.recodings.output_rows import output_rows
from anonymip.runtime.budget import Budget
from tests.bounds.patterns.pattern_references import (
    hard_pattern_problem,
    lagrangian,
    lettered,
    relaxation,
    row_sum,
)
from tests.random_patterns import PatternCase, pattern_cases
from tests.random_problems import larger_microdata

#: Enough to come as near to the linear relaxation as the tests look.
LONG = ((400, 1.0, 1e-2), (600, 2e-2, 1e-4))


def feasible(case: PatternCase) -> PatternCase:
    """Return the case with a way out for every record."""
    return case if row_sum(case) is not None else replace(case, suppression=True, diversity=None)


@settings(max_examples=80, deadline=None)
@given(pattern_cases(ruled=True).map(feasible))
def test_never_above_the_optimum_nor_below_the_row_bound(case: PatternCase) -> None:
    """With single use, diversity and suppression too."""
    problem = case.problem()
    best = case.optimum()
    program = pattern_program(problem, relaxed=False)
    for bound in (
        pattern_lagrangian_bound(problem).value,
        ascend(program, None, Budget()).bound,
    ):
        assert bound >= pattern_row_bound(problem).value
        assert best is None or bound <= best


@settings(max_examples=60, deadline=None)
@given(pattern_cases().map(feasible), st.booleans())
def test_the_best_duals_give_the_linear_relaxation(case: PatternCase, relaxed: bool) -> None:
    """HiGHS solves it with a link for every record and row, nothing merged or left out."""
    program = pattern_program(case.problem(), relaxed=relaxed)
    duals = ascend(program, LONG, Budget())
    expected = relaxation(case, relaxed=relaxed)
    assert duals.value / duals.unit <= expected + 1e-6
    assert duals.value / duals.unit == pytest.approx(expected, abs=0.02)


@settings(max_examples=80, deadline=None)
@given(pattern_cases(most_records=5).map(feasible), st.data())
def test_any_duals_prove_the_least_of_all_choices(case: PatternCase, data: st.DataObject) -> None:
    """Every set of records in every row is tried, in fractions; duals of any sign are allowed."""
    problem = case.problem()
    program = pattern_program(problem, relaxed=False)
    given_ = [data.draw(st.integers(-16, 48)) for _ in range(program.type_count)]
    duals = pattern_duals(program, np.array(given_) / 8.0)
    types = output_rows(problem).types
    of_record = [
        Fraction(int(duals.multipliers[kind]), duals.unit)
        for kind in program.type_of[types.inverse].tolist()
    ]
    assert Fraction(duals.value, duals.unit) == lagrangian(case, of_record)
    assert duals.bound >= duals.value / duals.unit
    best = case.optimum()
    assert best is None or duals.bound <= best


@settings(max_examples=60, deadline=None)
@given(pattern_cases(most_records=5).map(feasible), st.data())
def test_the_reduced_cost_of_a_pair_is_what_forcing_it_costs(
    case: PatternCase, data: st.DataObject
) -> None:
    """The function with one record forced into one row, all choices tried."""
    problem = case.problem()
    program = pattern_program(problem, relaxed=False)
    drawn = [data.draw(st.integers(-8, 24)) for _ in range(program.type_count)]
    duals = pattern_duals(program, np.array(drawn) / 8.0)
    for at in range(len(duals.pair_rows)):
        forced = forced_value(program, duals, at)
        assert duals.value + int(duals.reduced_costs[at]) == forced


def forced_value(program: PatternProgram, duals: PatternDuals, at: int) -> int:
    """Return the least value with the row of a pair in use, by one record of its type at least."""
    row = int(duals.pair_rows[at])
    members = np.flatnonzero(duals.pair_rows == row)
    types = duals.pair_types[members]
    cost = round(float(program.costs[duals.pair_patterns[at]]) * duals.unit)
    net = (cost - duals.multipliers[types]).tolist()
    best = None
    counts = program.counts[types].tolist()
    place = types.tolist().index(int(duals.pair_types[at]))
    for amounts in np.ndindex(*(count + 1 for count in counts)):
        if amounts[place] and sum(amounts) >= program.k:
            loss = sum(a * b for a, b in zip(amounts, net, strict=True))
            best = loss if best is None else min(best, loss)
    assert best is not None
    return duals.value - min(0, int(duals.row_losses[row])) + best


@settings(max_examples=60, deadline=None)
@given(pattern_cases(ruled=True).map(feasible))
def test_parts_of_a_program_keep_its_numbers(case: PatternCase) -> None:
    """The row types that share a row with the first, without the others."""
    program = pattern_program(case.problem())
    duals = pattern_duals(program, program.cheapest)
    joined = {0}
    for _ in range(program.type_count):
        rows = {
            int(r) for r, i in zip(duals.pair_rows, duals.pair_types, strict=True) if i in joined
        }
        joined |= {
            int(i) for r, i in zip(duals.pair_rows, duals.pair_types, strict=True) if r in rows
        }
    labels = np.array([int(kind not in joined) for kind in range(program.type_count)])
    values = duals.values(labels, 2)
    assert values.sum() == duals.value
    own = pattern_duals(
        program.restricted_to(np.array(sorted(joined))), program.cheapest[sorted(joined)]
    )
    assert own.value * duals.unit == int(values[0]) * own.unit
    assert own.program.pairs == np.isin(duals.pair_types, sorted(joined)).sum()


def test_rows_of_the_same_records_count_once() -> None:
    """Town and zip code say the same: a star for both is never better than for one."""
    microdata = larger_microdata(1, 40)
    twice = microdata.frame.assign(again=microdata.frame[microdata.names[0]])
    attribute = replace(microdata.attributes[0], name="again")
    doubled = type(microdata)(twice, (*microdata.attributes, attribute))
    problem = Problem(doubled, 2, PatternGuided(Mask()), Suppressions())
    program = pattern_program(problem)
    held = [
        (frozenset(np.flatnonzero(rows == row).tolist()))
        for rows in program.row_of
        for row in np.unique(rows[rows >= 0])
    ]
    assert len(set(held)) == len(held)
    assert len(held) < output_rows(problem).count


def test_costs_off_any_grid_are_bounded_from_below() -> None:
    """Thirds have no common multiple in decimals; the value is not raised."""
    microdata = larger_microdata(5, 60)
    costs = dict.fromkeys(microdata.names, 1 / 3)
    problem = Problem(microdata, 3, PatternGuided(), Suppressions(costs))
    whole = Problem(microdata, 3, PatternGuided(), Suppressions())
    program = pattern_program(problem)
    assert program.grid == 0
    duals = ascend(program, None, Budget())
    assert duals.bound <= duals.value / duals.unit
    relaxed = ascend(pattern_program(whole), LONG, Budget())
    assert duals.bound == pytest.approx(relaxed.value / relaxed.unit / 3, rel=0.01)


def test_a_spent_budget_leaves_the_row_bound() -> None:
    """No iteration is made; what is known without one is returned."""
    problem = hard_pattern_problem()
    budget = Budget()
    budget.interrupt()
    bound = pattern_lagrangian_bound(problem, budget=budget)
    assert bound.value == pattern_row_bound(problem).value
    assert pattern_lagrangian_bound(problem).value > bound.value


def test_records_that_can_share_no_row_are_named() -> None:
    """Distinct records and a mask without stars."""
    problem = Problem(larger_microdata(4, 30), 25, PatternGuided(Mask(suppress_at_most=0)))
    with pytest.raises(NoSolution, match="record 0 shares no row with 24 others"):
        pattern_lagrangian_bound(problem)


def test_the_bound_that_a_user_asks_for_is_the_better_one() -> None:
    """By duals where these raise it, else by rows, whose proof is simpler."""
    hard = lower_bound(hard_pattern_problem())
    assert hard is not None
    assert hard.method == "pattern Lagrangian"
    assert hard.value > pattern_row_bound(hard_pattern_problem()).value
    square = Problem(lettered(["xx", "xy", "yx", "yy"]), 2, PatternGuided())
    easy = lower_bound(square)
    assert easy is not None
    assert (easy.value, easy.method) == (4.0, "pattern rows")


def test_a_loss_that_depends_on_the_record_has_no_bound_by_patterns() -> None:
    """The widest value of the table costs more to publish exactly than others."""

    @objective
    def by_value(record: Any) -> Any:
        numeric = [name for name in record.attributes if record.kind[name] == "numeric"]
        return sum(record.upper[name] for name in numeric)

    microdata = larger_microdata(9, 20)
    problem = Problem(microdata, 2, PatternGuided(), by_value)
    assert pattern_bound(problem) is None


@settings(max_examples=120)
@given(pattern_cases(ruled=True))
def test_equals_its_definition_and_is_no_more_than_the_optimum(case: PatternCase) -> None:
    """The cheapest pattern of every record, tried one by one; rules only raise the optimum."""
    expected = row_sum(case)
    problem = case.problem()
    if expected is None:
        with pytest.raises(NoSolution, match="shares no row"):
            pattern_row_bound(problem)
        assert case.optimum() is None
        return
    bound = pattern_row_bound(problem)
    assert bound.value == expected
    assert pattern_row_terms(problem).sum() == expected
    assert bound.proof == "argument"
    best = case.optimum()
    assert best is None or bound.value <= best


def test_fractions_are_lowered_by_their_rounding() -> None:
    """A sum of rounded costs must not lie above the loss of the same cells."""
    microdata = larger_microdata(3, 60)
    costs = dict.fromkeys(microdata.names, 0.1)
    problem = Problem(microdata, 3, PatternGuided(), Suppressions(costs))
    bound, terms = pattern_row_bound(problem), pattern_row_terms(problem).sum()
    assert bound.value < terms
    assert bound.value == pytest.approx(terms, rel=1e-8)


@objective
def far_below_zero(record: Any) -> Any:
    """Lose a billion less for each star of the second attribute, one more for the first."""
    stars = record.suppressed
    return -1e9 + 1e9 * stars["a"] - 1e9 * stars["b"]


def test_sums_of_costs_below_zero_do_not_overflow() -> None:
    """Whole numbers are scaled by the largest cost of either sign."""
    mask = Mask(patterns=((), ("a",), ("b",)))
    problem = Problem(lettered(["01", "11", "00", "11", "11"]), 2, PatternGuided(mask))
    problem = problem.replace(objective=far_below_zero)
    assert pattern_lagrangian_bound(problem).value <= -1e10 * (1 - 1e-9)


def test_sums_of_huge_costs_are_refused() -> None:
    """The row bound, of floating-point numbers, is all that is left of them."""
    rows = ["00", "10", "01", "01", "00", "11", "11", "01", "00", "11", "11", "11"]
    costs = (4.99397280131569e18, 8.323288002192818e17)
    case = PatternCase(tuple(map(tuple, rows)), ("p",) * 12, 4, Mask(), costs)
    problem = case.problem()
    with pytest.raises(InputError, match="too much for bounds of 12 records"):
        pattern_lagrangian_bound(problem)
    bound = pattern_bound(problem)
    assert bound is not None
    assert bound.value <= 9.988e18
