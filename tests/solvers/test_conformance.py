"""One suite that every solver adapter passes: answers, limits and options."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.errors import InputError, SolverError, SolverUnavailable
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions, availability, get_solver, solve_model, solver_names
from anonymip.status import Stopped

Build = Callable[..., pyo.ConcreteModel]


def test_every_registered_adapter_is_in_the_suite(suite: dict[str, Any]) -> None:
    """An adapter without conformance tests is not registered."""
    assert set(suite) == set(solver_names())


def knapsack(sense: Any = pyo.maximize) -> pyo.ConcreteModel:
    """Return values 10, 7, 6, 3 and weights 5, 4, 3, 2 with capacity 8: the best is 16."""
    model = pyo.ConcreteModel()
    model.take = pyo.Var(range(4), domain=pyo.Binary)
    sign = 1 if sense == pyo.maximize else -1
    value = pyo.sum_product(dict(enumerate((10, 7, 6, 3))), model.take)
    model.capacity = pyo.Constraint(
        expr=pyo.sum_product(dict(enumerate((5, 4, 3, 2))), model.take) <= 8
    )
    model.value = pyo.Objective(expr=sign * value, sense=sense)
    return model


def market_split() -> pyo.ConcreteModel:
    """Return equalities that no solver meets in a test's time."""
    parts = np.random.default_rng(0).integers(0, 100, (6, 50)).tolist()
    model = pyo.ConcreteModel()
    model.first = pyo.Var(range(50), domain=pyo.Binary)
    model.half = pyo.Constraint(
        range(6),
        rule=lambda model, row: (
            sum(parts[row][j] * model.first[j] for j in range(50)) == sum(parts[row]) // 2
        ),
    )
    model.count = pyo.Objective(expr=sum(model.first[j] for j in range(50)))
    return model


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_optimum_is_found_and_proven(solver: str, sense: Any) -> None:
    """The knapsack's optimum comes with its proof, loaded into the model, in either sense."""
    model = knapsack(sense)
    result = solve_model(model, solver)
    sign = 1 if sense == pyo.maximize else -1
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == pytest.approx(16 * sign)
    assert result.bound == pytest.approx(16 * sign)
    assert [model.take[j].value for j in range(4)] == [1, 0, 1, 0]
    assert pyo.value(model.value) == pytest.approx(16 * sign)
    assert result.solver.startswith(get_solver(solver).name + " ")


def test_linear_program(solver: str) -> None:
    """A model without integer variables is solved and its bound is its optimum."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 4))
    model.y = pyo.Var(domain=pyo.NonNegativeReals)
    model.sum = pyo.Constraint(expr=model.x + 2 * model.y == 7)
    model.cost = pyo.Objective(expr=model.x + 3 * model.y)
    result = solve_model(model, solver)
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == pytest.approx(8.5)
    assert result.bound == pytest.approx(8.5)


@pytest.mark.parametrize("domain", [pyo.Integers, pyo.Reals])
def test_infeasible(solver: str, domain: Any) -> None:
    """Infeasibility is a result without values, objective or bound."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=domain, bounds=(0, 5))
    low, high = (3, 3) if domain is pyo.Integers else (12, 13)
    model.sum = pyo.Constraint(expr=(low, 2 * model.x[0] + 2 * model.x[1], high))
    if domain is pyo.Reals:
        model.less = pyo.Constraint(expr=model.x[0] + model.x[1] <= 5)
    model.cost = pyo.Objective(expr=model.x[0] + model.x[1])
    result = solve_model(model, solver)
    assert result.stopped is Stopped.INFEASIBLE
    assert (result.values, result.objective, result.bound) == (None, None, None)
    assert model.x[0].value is None


@pytest.mark.parametrize("domain", [pyo.NonNegativeIntegers, pyo.NonNegativeReals])
def test_unbounded_is_an_error(solver: str, domain: Any) -> None:
    """An unbounded model raises, saying so."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(2), domain=domain)
    model.difference = pyo.Constraint(expr=model.x[0] - model.x[1] <= 3)
    model.cost = pyo.Objective(expr=-model.x[0] - model.x[1])
    with pytest.raises(SolverError, match="unbounded"):
        solve_model(model, solver)


def test_time_limit_with_incumbent(solver: str, hard_knapsack: Build) -> None:
    """At the time limit the incumbent is returned and the bound lies on its far side."""
    model = hard_knapsack()
    result = solve_model(model, solver, SolverOptions(time_limit=0.5))
    assert result.stopped is Stopped.TIME
    assert result.objective is not None
    assert result.bound is not None
    assert result.objective < result.bound
    assert pyo.value(model.value) == pytest.approx(result.objective)


def test_time_limit_without_incumbent(solver: str) -> None:
    """At the time limit without an incumbent there is a bound, and no point."""
    model = market_split()
    result = solve_model(model, solver, SolverOptions(time_limit=0.5))
    assert result.stopped is Stopped.TIME
    assert (result.values, result.objective) == (None, None)
    assert result.bound is not None
    assert model.first[0].value is None


@pytest.mark.thorough("cbc")
def test_budget_limits_the_time(solver: str, hard_knapsack: Build) -> None:
    """The budget's deadline holds when the options have no time limit."""
    result = solve_model(hard_knapsack(), solver, budget=Budget.of(1.0))
    assert result.stopped is Stopped.TIME


@pytest.mark.thorough("highs")
def test_node_limit_ends_the_search(solver: str, hard_knapsack: Build) -> None:
    """After so many nodes the incumbent and a bound are returned, the same ones again."""
    options = SolverOptions(node_limit=3, time_limit=60)
    first, again = (solve_model(hard_knapsack(), solver, options) for _ in range(2))
    assert first.stopped is again.stopped is Stopped.NODES
    assert first.objective is not None
    assert first.bound is not None
    assert first.objective < first.bound
    assert (first.objective, first.bound) == (again.objective, again.bound)


def test_relative_gap_is_reported_as_gap(solver: str, hard_knapsack: Build) -> None:
    """Stopping within the gap asked for is not called optimal."""
    result = solve_model(hard_knapsack(), solver, SolverOptions(relative_gap=0.1, time_limit=20))
    assert result.stopped is Stopped.GAP
    assert result.objective is not None
    assert result.bound is not None
    assert 0 < (result.bound - result.objective) / result.objective <= 0.1


def test_own_option_is_passed(solver: str, suite: dict[str, Any]) -> None:
    """An option in the solver's own words is accepted."""
    options = SolverOptions(solver_options=suite[solver].accepted)
    assert solve_model(knapsack(), solver, options).objective == pytest.approx(16)


def test_unknown_option_is_refused(solver: str) -> None:
    """An option that the solver does not know raises, naming option and solver."""
    options = SolverOptions(solver_options={"no_such_option": 1})
    with pytest.raises(InputError, match=rf"{get_solver(solver).name}.*no_such_option"):
        solve_model(knapsack(), solver, options)


def test_refused_value_of_an_option(solver: str, suite: dict[str, Any]) -> None:
    """A value that the solver refuses raises, naming the option."""
    with pytest.raises(InputError, match="refuses"):
        solve_model(knapsack(), solver, SolverOptions(solver_options=suite[solver].refused))


def test_threads_may_change_between_solves(solver: str) -> None:
    """One process solves with one, two and again one thread."""
    for threads in (1, 2, 1):
        result = solve_model(knapsack(), solver, SolverOptions(threads=threads))
        assert result.objective == pytest.approx(16)


def test_same_seed_same_point(solver: str, hard_knapsack: Build) -> None:
    """One thread and one seed repeat the whole answer."""
    options = SolverOptions(seed=0, relative_gap=0.02)
    first, second = (solve_model(hard_knapsack(), solver, options) for _ in range(2))
    assert first.values is not None
    assert second.values is not None
    np.testing.assert_array_equal(first.values, second.values)
    assert first.bound == second.bound


def test_log_is_written_and_nothing_is_left(
    solver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log lies where it was asked for, and no temporary file survives."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    log = tmp_path / "solver log.txt"
    model = knapsack()
    solve_model(model, solver, SolverOptions(log=log))
    solve_model(model, solver, start=True)
    assert "objective" in log.read_text().lower()
    assert list(scratch.iterdir()) == []


def chain(variables: int, rows: int) -> pyo.ConcreteModel:
    """Return a model of a given size: neighbours add up to 1, over and over."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(variables), bounds=(0, 1))
    model.rows = pyo.Constraint(
        range(rows),
        rule=lambda model, row: model.x[row % variables] + model.x[(row + 1) % variables] >= 1,
    )
    model.cost = pyo.Objective(expr=sum(model.x[j] for j in range(variables)))
    return model


def test_size_limit_is_exact(solver: str) -> None:
    """The largest model that the licence allows is solved, one more row or variable refused."""
    found = availability(solver)
    if found.max_variables is None or found.max_rows is None:
        assert (found.licensed, found.licence) == (True, "full")
        assert solve_model(chain(2001, 2001), solver).objective == pytest.approx(1000.5)
        return
    assert (found.licensed, found.licence) == (False, "size-limited")
    variables, rows = found.max_variables, found.max_rows
    assert solve_model(chain(variables, rows), solver).objective == pytest.approx(variables / 2)
    for size in ((variables + 1, 5), (10, rows + 1)):
        text = (
            rf"allows {variables} variables and {rows} rows; "
            rf"the model has {size[0]} variables and {size[1]} rows\..*full licence"
        )
        with pytest.raises(SolverUnavailable, match=text):
            solve_model(chain(*size), solver)
