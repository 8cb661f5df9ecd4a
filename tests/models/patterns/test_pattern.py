"""The ILP of patterns in both forms: optima, relaxations, starts, rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymip import (
    Diversity,
    InputError,
    Mask,
    NoSolution,
    PatternGuided,
    Problem,
    Solution,
    adopt,
    build,
    load_instance,
    read,
    set_start,
    solve_model,
)
from anonymip.assignments import Patterns
from anonymip.models import model_size, relax
from anonymip.models.patterns.pattern import ask_for_rows, build_pattern_strong
from anonymip.models.patterns.pattern_columns import pattern_columns
from anonymip.status import Stopped
from tests.models.pair_formulations import violations
from tests.random_patterns import PatternCase, every_case, pattern_cases

FORMS = ("pattern", "pattern-strong")

#: Rows that share much, for cases by hand.
ROWS = (("x", "x"), ("x", "x"), ("x", "y"), ("y", "y"), ("y", "y"))


def by_hand(**changes: object) -> PatternCase:
    """Return a case of five rows under all patterns."""
    plain = PatternCase(ROWS, tuple("pqpqp"), 2, Mask(), (1, 1))
    return replace(plain, **changes)  # type: ignore[arg-type]


def solved(problem: Problem, form: str, solver: str = "highs") -> Solution | None:
    """Return the adopted solution of a model; None if there is none."""
    try:
        model = build(problem, form)
    except NoSolution:
        return None
    result = solve_model(model, solver)
    if result.stopped is Stopped.INFEASIBLE:
        return None
    solution = adopt(problem, model)
    assert solution.objective == pytest.approx(result.objective, abs=1e-4)
    return solution


@settings(max_examples=170)
@given(case=every_case, form=st.sampled_from(FORMS))
def test_equals_brute_force(case: PatternCase, form: str) -> None:
    """Masks of rules and of patterns, costs of columns; the rules, alone and together."""
    solution = solved(case.problem(), form)
    assert (None if solution is None else solution.objective) == case.optimum()


@pytest.mark.crossed
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"single_use": True},
        {"suppression": True},
        {"k": 3},
        {"diversity": Diversity(l=2), "suppression": True},
        {"diversity": Diversity(distinct=2), "suppression": True},
        {"diversity": Diversity(l=1.5, distinct=2), "single_use": True, "suppression": True},
        {"diversity": Diversity(t=0.2)},
    ],
    ids=str,
)
def test_every_rule_on_cbc(form: str, rule: dict[str, object]) -> None:
    """Another solver, the same optima."""
    case = by_hand(**rule)
    solution = solved(case.problem(), form, "cbc")
    assert (None if solution is None else solution.objective) == case.optimum()


def relaxed(problem: Problem, form: str) -> float | None:
    """Return the optimum of the linear relaxation; None if it has none."""
    try:
        model = build(problem, form)
    except NoSolution:
        return None
    relax(model)
    return solve_model(model).objective


@settings(max_examples=60)
@given(case=pattern_cases(ruled=True))
def test_order_of_the_relaxations(case: PatternCase) -> None:
    """LP(pattern) <= LP(pattern-strong) <= optimum."""
    best = case.optimum()
    assume(best is not None)
    assert best is not None
    problem = case.problem()
    plain, strong = relaxed(problem, "pattern"), relaxed(problem, "pattern-strong")
    assert plain is not None
    assert strong is not None
    assert plain <= strong + 1e-6
    assert strong <= best + 1e-6


@settings(max_examples=30)
@given(case=pattern_cases())
def test_relaxation_of_the_paper_is_the_cheapest_pattern(case: PatternCase) -> None:
    """Links in sum let every record have the cheapest pattern, whoever shares it."""
    stars = np.array(case.patterns)
    cheapest = (stars * np.array(case.costs)).sum(axis=1).min()
    assert relaxed(case.problem(), "pattern") == pytest.approx(len(case.rows) * cheapest)


def test_relaxations_of_a_small_table_are_pinned() -> None:
    """Aggarwal's four rows: nothing, what duals prove, and the optimum."""
    problem = Problem(load_instance("aggarwal-4"), 2, PatternGuided())
    best = solved(problem, "pattern-strong")
    assert best is not None
    found = [relaxed(problem, form) for form in FORMS]
    assert found == pytest.approx([0.0, best.objective])


@st.composite
def with_releases(draw: st.DrawFn) -> tuple[PatternCase, Patterns]:
    """Return a case and any release that it allows."""
    case = draw(pattern_cases(ruled=True, close=draw(st.booleans())))
    choices = [*range(len(case.patterns)), *([-1] if case.suppression else [])]
    index = draw(st.lists(st.sampled_from(choices), min_size=2, max_size=2))
    index = draw(
        st.one_of(
            st.lists(st.sampled_from(choices), min_size=len(case.rows), max_size=len(case.rows)),
            st.just([index[0]] * len(case.rows)),
        )
    )
    stars = case.problem().recoding.stars(case.problem())  # type: ignore[attr-defined]
    given_out = [None if j < 0 else tuple(stars[j].tolist()) for j in index]
    assume(case.allows(given_out))
    return case, Patterns(np.array(index))


@settings(max_examples=30)
@given(drawn=with_releases(), form=st.sampled_from(FORMS), keep_equal=st.booleans())
def test_round_trip_of_starts(
    drawn: tuple[PatternCase, Patterns], form: str, keep_equal: bool
) -> None:
    """A release keeps every row of the model, and what is read back loses no more."""
    case, patterns = drawn
    problem = case.problem()
    choices = {}
    if form == "pattern-strong":
        choices["columns"] = pattern_columns(problem, keep_equal=keep_equal)
    model = build(problem, form, **choices)
    set_start(model, patterns)
    assert violations(model) == []
    given_loss = Solution.of(problem, patterns, method="given").objective
    found = Solution.of(problem, read(model), method="read").objective
    assert found <= given_loss + 1e-9
    if form == "pattern":
        assert found == pytest.approx(given_loss)


def doubled() -> Problem:
    """Return four rows twice each under all patterns, k = 2; types 0 and 4, patterns 0 and 3."""
    rows = (("x", "x"),) * 4 + (("y", "y"),) * 4
    return PatternCase(rows, tuple("pqpqpqpq"), 2, Mask(), (1, 1)).problem()


def test_fractional_numbers_of_records_become_whole() -> None:
    """Halves are rounded along a flow: rows in use stay in use, the loss does not rise."""
    problem = doubled()
    model = build(problem, "pattern-strong")
    set_start(model, Patterns(np.array([0, 0, 0, 3, 0, 0, 0, 3])))
    for first in (0, 4):
        model.assigned[first, 0].set_value(2.5)
        model.assigned[first, 3].set_value(1.5)
    assert violations(model) == []
    found = Solution.of(problem, read(model), method="read")
    assert found.objective <= 3 * 2
    # Both exact rows and the one of stars.
    assert len(found.sizes) == 3


def test_tolerances_of_solvers_are_undone() -> None:
    """Numbers a little off are whole; records left out by more are assigned anew."""
    problem = doubled()
    model = build(problem, "pattern-strong")
    set_start(model, Patterns(np.zeros(8, np.int32)))
    model.assigned[0, 0].set_value(4 - 1e-7)
    model.assigned[0, 3].set_value(1e-7)
    assert read(model).index.tolist() == [0] * 8  # type: ignore[union-attr]
    model.assigned[0, 0].set_value(3.0)
    assert read(model).index.tolist() == [0] * 8  # type: ignore[union-attr]


def test_values_that_mean_no_release_are_refused() -> None:
    """No values, and output rows in use that do not hold everybody."""
    model = build(doubled(), "pattern")
    with pytest.raises(InputError, match="no values to read"):
        read(model)
    set_start(model, Patterns(np.zeros(8, np.int32)))
    model.used[0, 4].set_value(0)
    with pytest.raises(InputError, match="do not hold all records"):
        read(model)


def test_size_of_the_models_by_hand() -> None:
    """Rows xx xx xy yy yy, k = 2, all patterns: 12 pairs, of which the strong model needs few."""
    problem = by_hand().problem()
    plain, strong = build(problem, "pattern"), build(problem, "pattern-strong")
    assert len(plain.assigned) == 3 * 4
    # Exact 3; first column starred x? y?: 2; second x* y*: 2; all stars 1.
    assert len(plain.used) == 3 + 2 + 2 + 1
    assert model_size(problem, "pattern") == 8 + 8 + 3 == count_rows(plain)
    # Exact xx and yy, *y of xy and yy, x* of xx and xy, ** of all; *x and y* repeat xx and yy.
    assert sorted(strong.used) == [(0, 0), (0, 3), (1, 2), (2, 0), (3, 0)]
    assert len(strong.assigned) == 1 + 1 + 2 + 2 + 3
    assert model_size(problem, "pattern-strong") == 9 + 5 + 3 == count_rows(strong)
    assert all(variable.is_continuous() for variable in strong.assigned.values())
    assert all(variable.is_integer() for variable in plain.assigned.values())


def count_rows(model: pyo.ConcreteModel) -> int:
    """Return the number of constraints."""
    return sum(len(part) for part in model.component_objects(pyo.Constraint))


def test_repeated_rows_stay_where_they_may_matter() -> None:
    """Under single use, and of equal cost for the second goal."""
    problem = by_hand(costs=(1, 1)).problem()
    single = by_hand(single_use=True).problem()
    assert pattern_columns(single).count == 7
    # Only xx and *x, yy and y* are repeated, at different costs.
    assert pattern_columns(problem, keep_equal=True).count == 5
    constant = PatternCase((("x", "x"), ("x", "y")) * 2, tuple("pqpq"), 2, Mask(), (0, 1))
    # A star in the first column is free: xx and *x, xy and *y, x* and ** differ by nothing.
    assert pattern_columns(constant.problem()).count == 3
    assert pattern_columns(constant.problem(), keep_equal=True).count == 6


@pytest.mark.parametrize("solver", ["highs", "cbc"])
def test_second_goal_counts_output_rows(solver: str) -> None:
    """Four equal rows, a free star: two output rows lose as little as one."""
    problem = PatternCase((("x", "x"),) * 4, tuple("pqpq"), 2, Mask(), (0, 1)).problem()
    model = build_pattern_strong(problem, columns=pattern_columns(problem, keep_equal=True))
    model.formulation = "pattern-strong"
    ask_for_rows(model, 0.0)
    result = solve_model(model, solver)
    assert result.objective == 2
    found = Solution.of(problem, read(model), method="read")
    assert (found.objective, len(found.sizes)) == (0.0, 2)


def test_other_recodings_are_refused() -> None:
    """The message names the recoding to use; whoever shares no row is named."""
    with pytest.raises(InputError, match="asks for classes"):
        build(Problem(load_instance("aggarwal-4"), 2), "pattern")
    alone = by_hand(mask=Mask(patterns=((),)))
    with pytest.raises(NoSolution, match="record 2 shares no row with 1 others"):
        build(alone.problem(), "pattern-strong")
