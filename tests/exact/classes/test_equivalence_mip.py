"""The exact method equals brute force on both solvers, and believes no solver."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymip import (
    Attribute,
    Classes,
    Diversity,
    InputError,
    InvalidAssignment,
    Microdata,
    NoSolution,
    Problem,
    SolverError,
    Stopped,
    UnsupportedObjective,
    adopt,
    build,
    census,
    class_objective,
    load_instance,
    objective,
    set_start,
    solve,
    solve_model,
)
from anonymip.exact import model_run
from anonymip.exact.classes import equivalence_mip as model_solve
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.objectives.language.record import Record
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverResult
from tests.brute_force import Column
from tests.by_hand import table_of
from tests.exact.classes.test_formulations import assert_proves_the_optimum
from tests.hard_losses import FALLING
from tests.random_problems import LOSSES, Case, cases, groups_of, numeric_columns

SOLVERS = ["highs", "cbc"]
STARTS = ["none", "best", "initial", "ordered-cut", "greedy-search", "k-member"]


@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=30)
@given(case=cases(), warm_start=st.sampled_from(STARTS[:2]), integer_ends=st.booleans())
def test_equals_brute_force(solver: str, case: Case, warm_start: str, integer_ends: bool) -> None:
    """All kinds of columns and objectives, with and without start and suppression."""
    choices = {"solver": solver, "warm_start": warm_start, "integer_ends": integer_ends}
    assert_proves_the_optimum(case, formulation="bigm", **choices)


@st.composite
def badly_scaled(draw: st.DrawFn) -> Case:
    """Draw tables in which one column is some 1e15 times wider than another."""
    n = draw(st.integers(4, 6))
    columns = (
        Column(tuple(draw(st.permutations([-8e8, 1.0, 3e5, 7e8, 7e8, 9e9]))[:n])),
        Column(tuple(draw(st.permutations([0.0, 1e-7, 2e-7, 2e-7, 9e-7, 1e-6]))[:n])),
        draw(numeric_columns(n)),
    )
    loss = LOSSES[draw(st.sampled_from(["gcp", "curved"]))]
    return Case(columns, draw(st.integers(2, 3)), loss, draw(st.booleans()))


@pytest.mark.thorough("cbc")
@pytest.mark.parametrize("solver", SOLVERS)
@settings(max_examples=15)
@given(case=badly_scaled())
def test_scale_of_the_columns_does_not_matter(solver: str, case: Case) -> None:
    """Columns beyond the tolerances of solvers are neither lost nor refused."""
    assert_proves_the_optimum(case, formulation="bigm", solver=solver, warm_start="none")


@pytest.fixture(scope="module")
def health() -> Problem:
    """Return the health records, k = 3."""
    return Problem(load_instance("health-records"), 3)


@pytest.mark.parametrize("start", STARTS)
def test_every_warm_start(health: Problem, start: str) -> None:
    """The optimum does not depend on the start; the solver takes it if there is one."""
    solution = equivalence_mip(health, formulation="bigm", warm_start=start)
    assert solution.is_optimal
    assert solution.objective == pytest.approx(0.955090, abs=1e-6)
    expected = () if start == "none" else ("warm start accepted",)
    assert solution.trace == expected
    assert solution.options["warm_start"] == start


def test_unknown_warm_start_is_refused(health: Problem) -> None:
    """The message lists the starts."""
    with pytest.raises(InputError, match="initial, ordered-cut, greedy-search, k-member"):
        equivalence_mip(health, warm_start="hungarian")


def test_bad_starts_are_refused(health: Problem) -> None:
    """A start that breaks a rule is an error, not silently dropped."""
    start = Classes.from_groups([[0, 1], [2, 3, 4, 5, 6]], 7)
    with pytest.raises(InvalidAssignment, match="fewer than k = 3"):
        equivalence_mip(health, start=start)


@pytest.mark.parametrize("solver", SOLVERS)
def test_expired_budget_returns_the_start(health: Problem, solver: str) -> None:
    """Without time left the start is the answer, and it is not called optimal."""
    start = Classes.from_groups([[0, 2, 4], [1, 3, 5, 6]], 7)
    budget = Budget(deadline=time.monotonic() - 1.0)
    solution = equivalence_mip(health, start=start, solver=solver, budget=budget)
    assert solution.assignment.labels.tolist() == start.labels.tolist()
    assert solution.status.stopped is Stopped.TIME
    assert solution.bound is not None
    assert solution.bound.proof == "argument"
    assert not solution.is_optimal


def test_time_up_in_the_enumeration_keeps_the_start() -> None:
    """Set partitioning that was not given its columns returns the start and says why."""
    problem = Problem(census(40, 4, seed=1), 3)
    start = ordered_cut(problem)
    budget = Budget(deadline=time.monotonic() - 1.0)
    solution = equivalence_mip(
        problem, formulation="set-partition", start=start.assignment, budget=budget
    )
    assert solution.objective == start.objective
    assert solution.status.stopped is Stopped.TIME
    assert solution.bound is not None
    assert "time ended" in solution.trace[-1]
    with pytest.raises(NoSolution, match="still being enumerated"):
        equivalence_mip(problem, formulation="set-partition", warm_start="none", budget=budget)


def test_no_time_to_build_a_model_by_sets_keeps_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """All possible classes are known, and their duals bound the release, which no solver sees."""
    monkeypatch.setattr(model_run, "SECONDS_A_CONSTRAINT", 1e6)
    problem = Problem(census(12, 3, seed=1), 3)
    start = ordered_cut(problem).assignment
    asked: dict[str, Any] = {
        "formulation": "set-partition",
        "start": start,
        "budget": Budget.of(60.0),
    }
    found = equivalence_mip(problem, **asked)
    assert found.solver is None
    assert "takes longer to build than there is time: the start is kept" in found.trace[-1]
    assert found.assignment is start
    assert found.bound is not None
    assert found.bound.method == "linear relaxation of set partitioning"


@pytest.mark.parametrize("solver", SOLVERS)
def test_expired_budget_without_start_is_no_solution(health: Problem, solver: str) -> None:
    """Nothing found is an error with a remedy, never an empty answer."""
    budget = Budget(deadline=time.monotonic() - 1.0)
    with pytest.raises(NoSolution, match=r"time-limit\). Give it more time, or a warm start"):
        equivalence_mip(health, warm_start="none", solver=solver, budget=budget)


def test_interrupt_returns_the_start(health: Problem) -> None:
    """A flagged interrupt ends with the start and says interrupted."""
    budget = Budget()
    budget.interrupt()
    solution = equivalence_mip(health, budget=budget)
    assert solution.status.stopped is Stopped.INTERRUPT
    assert solution.assignment.n == 7


@pytest.mark.parametrize("solver", SOLVERS)
def test_gap_limit_is_kept(solver: str) -> None:
    """With a gap of 60 % the answer may be worse, and is called optimal only if proven."""
    problem = Problem(census(9, 3, seed=1), 3)
    best = equivalence_mip(problem, solver=solver)
    rough = equivalence_mip(problem, solver=solver, gap=0.6, warm_start="initial")
    assert best.is_optimal
    assert rough.gap is not None
    assert rough.gap <= 0.6
    assert rough.objective >= best.objective - 1e-6
    assert rough.status.stopped in (Stopped.OPTIMAL, Stopped.GAP)
    assert rough.is_optimal == (rough.gap < 1e-5)


def test_objectives_that_are_not_monotone_are_refused() -> None:
    """Pairs of records cannot model them, so the function refuses before any solver runs."""
    with pytest.raises(UnsupportedObjective, match="monotone"):
        equivalence_mip(Case((Column((1.0, 2.0, 4.0)),), 2, FALLING).problem(), formulation="bigm")


def answering(monkeypatch: pytest.MonkeyPatch, **claims: Any) -> None:
    """Let the solver say what it is told to, with the values that the model holds."""
    answer = SolverResult(Stopped.OPTIMAL, np.zeros(1), 1.0, 1.0, 0.0, "Fake 1")

    def fake(*_: Any, **__: Any) -> SolverResult:
        return replace(answer, **claims)

    monkeypatch.setattr(model_run, "solve_model", fake)


def test_lying_objective_is_caught(health: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that claims less than its classes lose has failed: its claim is not repeated."""
    answering(monkeypatch, objective=0.5, bound=0.5)
    solution = equivalence_mip(health)
    assert solution.objective == pytest.approx(0.9550901541)
    assert "returns objective 0.5, but the classes it names lose" in solution.trace[-1]
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    start = Classes(np.zeros(7, np.int64))
    kept = equivalence_mip(health, formulation="bigm", start=start)
    assert kept.status.stopped is Stopped.ERROR
    assert groups_of(kept.assignment) == (tuple(range(7)),)


def test_lying_infeasibility_is_caught(health: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """One class of all records is always allowed, so the model is never infeasible."""
    answering(monkeypatch, stopped=Stopped.INFEASIBLE, values=None, objective=None, bound=None)
    assert "calls a feasible model infeasible" in equivalence_mip(health).trace[-1]
    monkeypatch.setattr(model_run, "_SEARCHED", 0)
    monkeypatch.setattr(model_run, "cheap_release", lambda *_: None)
    with pytest.raises(SolverError, match="calls a feasible model infeasible"):
        equivalence_mip(health, formulation="bigm", warm_start="none")


def test_claimed_optimality_without_proof_is_not_repeated(
    health: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Optimal is said by the bound alone, whatever the solver says."""
    answering(monkeypatch, objective=0.955090154, bound=0.9)
    monkeypatch.setattr("anonymip.exact.classes.small._COMPARED", 0)
    solution = equivalence_mip(health)
    assert solution.status.stopped is Stopped.GAP
    assert not solution.is_optimal


def test_start_better_than_the_incumbent_is_kept(
    health: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A solver that stops with something worse than its start does not lose the start."""
    start = Classes.from_groups([[0, 1, 2], [3, 4, 5, 6]], 7)
    worse = Classes(np.zeros(7, np.int64))

    def fake(model: Any, *_: Any, **__: Any) -> SolverResult:
        set_start(model, worse)
        return SolverResult(Stopped.TIME, np.zeros(1), 21.0, 0.1, 0.0, "Fake 1")

    monkeypatch.setattr(model_run, "solve_model", fake)
    solution = equivalence_mip(health, formulation="bigm", start=start)
    assert groups_of(solution.assignment) == ((0, 1, 2), (3, 4, 5, 6))
    assert solution.status.stopped is Stopped.TIME
    assert "the start is better than what the solver returned" in solution.trace


def test_adopt_a_model_with_a_constraint_of_ones_own(health: Problem) -> None:
    """Two records that must share a class: another optimum, checked, without a bound."""
    model = build(health)
    model.together = pyo.Constraint(expr=model.equivalent[0, 3] == 1)
    solve_model(model)
    solution = adopt(health, model)
    labels = solution.assignment.labels
    assert labels[0] == labels[3]
    assert solution.bound is None
    assert not solution.is_optimal
    assert solution.objective == pytest.approx(pyo.value(model.loss), abs=1e-6)
    assert solution.objective > 0.9551


def test_adopt_uses_the_published_ends(health: Problem) -> None:
    """A limit on published zipcodes, in their own unit, is respected."""
    relaxed = Problem(health.microdata, 2)
    model = build(relaxed)
    model.narrow = pyo.Constraint(
        model.rows, rule=lambda m, i: m.upper[i, 2] - m.lower[i, 2] <= 1000
    )
    solve_model(model)
    cells = adopt(relaxed, model).description
    assert (cells.upper - cells.lower)[:, 2].max() <= 1000


def test_adopt_refuses_what_the_recoding_forbids(health: Problem) -> None:
    """A model whose constraints were taken out is checked like any other."""
    model = build(health)
    model.companions.deactivate()
    solve_model(model)
    with pytest.raises(InvalidAssignment, match="fewer than k = 3"):
        adopt(health, model)


def test_adopt_after_an_infeasible_solve(health: Problem) -> None:
    """The values of the solve before, which break the model as it now is, are gone."""
    model = build(health)
    solve_model(model)
    model.together = pyo.Constraint(expr=model.equivalent[0, 3] == 1)
    model.apart = pyo.Constraint(expr=model.equivalent[0, 3] == 0)
    assert solve_model(model).stopped is Stopped.INFEASIBLE
    with pytest.raises(InputError, match="no values to read"):
        adopt(health, model)


@pytest.mark.parametrize("formulation", ["bigm", "hull", "indicator", "strengthened"])
@pytest.mark.parametrize("linear", [True, False])
def test_adopt_names_the_constraint_that_the_values_break(
    health: Problem, formulation: str, linear: bool
) -> None:
    """A constraint added after the solve, or that another solver has ignored, is looked at."""
    model = build(health, formulation)
    set_start(model, Classes.from_groups([[0, 1, 2], [3, 4, 5, 6]], 7))
    assert adopt(health, model).objective > 0
    pair = model.equivalent[0, 3]
    model.mine = pyo.Constraint(expr=(pair if linear else pair * pair) == 1)
    with pytest.raises(InputError, match="constraint mine is violated by 1"):
        adopt(health, model)


def test_adopt_names_a_constraint_without_variables(health: Problem) -> None:
    """Nor is one overlooked whose variables are all fixed."""
    model = build(health)
    set_start(model, Classes.from_groups([[0, 1, 2], [3, 4, 5, 6]], 7))
    model.equivalent[0, 3].fix(0)
    model.mine = pyo.Constraint(expr=model.equivalent[0, 3] == 1)
    with pytest.raises(InputError, match="constraint mine"):
        adopt(health, model)


def test_adopt_refuses_models_without_solution(health: Problem) -> None:
    """Nothing is adopted from a model that was not solved."""
    with pytest.raises(InputError, match="no values to read"):
        adopt(health, build(health))


def test_what_cannot_be_modelled_is_refused_before_a_start_is_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table too large, a falling loss or an unknown formulation costs no time of heuristics."""

    def unexpected(*arguments: Any) -> None:
        raise AssertionError("a heuristic was run")

    monkeypatch.setattr(model_solve, "find_start", unexpected)
    large = Problem(census(2000, 8, 1), 5)
    with pytest.raises(InputError, match="constraints and choices"):
        equivalence_mip(large, formulation="bigm", budget=Budget.of(0.1))
    health = load_instance("health-records")
    with pytest.raises(UnsupportedObjective, match="monotone"):
        equivalence_mip(Problem(health, 3, objective=FALLING.objective), formulation="bigm")
    with pytest.raises(InputError, match="unknown formulation"):
        equivalence_mip(Problem(load_instance("health-records"), 3), formulation="nonsense")


def test_what_no_formulation_takes_is_refused() -> None:
    """Too many possible classes, and too many pairs: the message names both."""
    with pytest.raises(InputError, match=r"no formulation fits.*possible classes.*constraints"):
        equivalence_mip(Problem(census(1500, 8, 1), 5), warm_start="initial")


def test_a_start_with_units_is_a_set_of_the_model() -> None:
    """Where larger classes may lose less, no class of the start is cut into small ones."""

    @objective
    def falling(r: Record) -> Any:
        return 5 - r.spread["a"]

    frame = pd.DataFrame({"a": [9, 0, 0, 4, 8], "u": list("ABCDE")})
    attributes = (Attribute("a", integer=True),)
    alone = Problem(Microdata(frame[["a"]], attributes), 2, objective=falling)
    units = Problem(Microdata(frame, attributes, unit="u"), 2, objective=falling)
    assert solve(units).is_optimal
    assert solve(units).objective == pytest.approx(solve(alone).objective)


@pytest.mark.parametrize("seconds", [1e-4, 1e-2, 0.1])
def test_a_short_limit_is_no_wrong_question(seconds: float) -> None:
    """A loss that the models of pairs refuse is solved by what is at hand when time ends."""

    @objective
    def product(r: Record) -> Any:
        return (1 + r.spread["a"]) * (1 + r.spread["b"])

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 30, (12, 2)), columns=["a", "b"]).assign(s=list("xyz") * 4)
    attributes = (Attribute("a", domain=(0, 30)), Attribute("b", domain=(0, 30)))
    microdata = Microdata(frame, attributes, sensitive=("s",))
    problem = Problem(microdata, 3, objective=product, diversity=Diversity(distinct=2))
    assert solve(problem, time_limit=seconds).objective >= solve(problem).objective - 1e-9


@class_objective
def _variance(members: Any) -> Any:
    """Lose the variance of a sample, which one record has not."""
    size = members.value["a"].shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = members.value["a"] - members.value["a"].mean(axis=1, keepdims=True)
        return (centred**2).sum(axis=1) / (size - 1.0) * size


def test_a_loss_that_single_records_have_not() -> None:
    """A solver's result is judged by the losses of classes there are."""
    problem = Problem(table_of({"a": [3, 39, 7, 0, 21, 9, 33, 17, 12]}), 3, objective=_variance)
    found = equivalence_mip(problem, warm_start="none")
    assert found.is_optimal
    assert sorted(found.sizes) == [3, 3, 3]
