"""The suite of every solver adapter: warm starts and interrupts."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.errors import InputError
from anonymip.runtime.budget import Budget, Progress
from anonymip.solvers import SolverOptions, solve_model
from anonymip.status import Stopped
from tests.solvers.test_conformance import Build, knapsack


def test_small_differences_are_not_overlooked(solver: str) -> None:
    """With gap 0 a start is improved by 4e-6, less than what solvers neglect by default."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(30), domain=pyo.Binary, initialize=lambda model, j: int(j == 14))
    model.some = pyo.Constraint(
        range(10), rule=lambda model, i: sum(model.x[j] for j in range(i + 5, i + 20)) >= 1
    )
    model.cost = pyo.Objective(expr=sum((1 + 4e-6 * abs(j - 15)) * model.x[j] for j in range(30)))
    result = solve_model(model, solver, start=True)
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == pytest.approx(1.0, abs=1e-7)


@pytest.mark.thorough("cbc-maximize", "highs-maximize")
@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_start_is_accepted_and_kept(solver: str, sense: Any, hard_knapsack: Build) -> None:
    """A good start is taken, and what comes back is not worse."""
    model = hard_knapsack(sense)
    before = solve_model(model, "highs", SolverOptions(time_limit=0.5)).objective
    result = solve_model(model, solver, SolverOptions(time_limit=0.5), start=True)
    assert result.start_accepted is True
    assert result.stopped is Stopped.TIME
    assert before is not None
    assert result.objective is not None
    if sense == pyo.maximize:
        assert result.objective >= before - 1e-6
    else:
        assert result.objective <= before + 1e-6


@pytest.mark.parametrize("sense", [pyo.minimize, pyo.maximize])
def test_poor_start_does_not_spoil_the_optimum(solver: str, sense: Any) -> None:
    """From a start with an objective of the other sign the same optimum is reached."""
    sign = 1 if sense == pyo.minimize else -1
    model = pyo.ConcreteModel()
    model.use = pyo.Var(range(14), domain=pyo.Binary, initialize=1)
    random = np.random.default_rng(0)
    cost, covers = random.integers(5, 60, 14), random.random((8, 14)) < 0.5
    model.cover = pyo.Constraint(
        range(8),
        rule=lambda model, i: sum(model.use[j] for j in np.flatnonzero(covers[i]).tolist()) >= 2,
    )
    model.cost = pyo.Objective(
        expr=sign * sum(int(cost[j]) * model.use[j] for j in range(14)), sense=sense
    )
    best = min(
        int(cost @ chosen)
        for chosen in map(np.array, itertools.product((0, 1), repeat=14))
        if (covers @ chosen >= 2).all()
    )
    result = solve_model(model, solver, start=True)
    assert result.stopped is Stopped.OPTIMAL
    assert result.objective == pytest.approx(sign * best)


@pytest.mark.thorough("cbc")
def test_infeasible_start_is_not_called_accepted(solver: str, hard_knapsack: Build) -> None:
    """A start that breaks the capacities is not accepted, and the solver goes on."""
    model = hard_knapsack()
    for variable in model.take.values():
        variable.set_value(1)
    result = solve_model(model, solver, SolverOptions(time_limit=0.5), start=True)
    assert result.start_accepted is False
    assert result.values is not None


def test_start_without_values_is_refused(solver: str) -> None:
    """A start is asked for and an integer variable has no value: the message names it."""
    with pytest.raises(InputError, match=r"take\[0\] has no value"):
        solve_model(knapsack(), solver, start=True)


def test_start_without_continuous_values_is_completed(solver: str, hard_knapsack: Build) -> None:
    """Values of the integer variables are start enough."""
    model = hard_knapsack()
    for variable in model.take.values():
        variable.set_value(0)
    model.spare = pyo.Var(bounds=(0, 10))
    model.link = pyo.Constraint(expr=model.spare <= 3 + model.take[0])
    model.value.set_value(model.value.expr + model.spare)
    result = solve_model(model, solver, SolverOptions(time_limit=0.5), start=True)
    assert result.start_accepted is True


@pytest.mark.thorough("cbc")
def test_interrupt_returns_the_incumbent(solver: str, hard_knapsack: Build) -> None:
    """A request to stop during the search ends it with the point found so far."""
    seen: list[Progress] = []

    def listen(progress: Progress) -> None:
        seen.append(progress)
        if progress.incumbent is not None:
            budget.interrupt()

    budget = Budget(progress=listen)
    result = solve_model(hard_knapsack(), solver, SolverOptions(time_limit=60), budget=budget)
    assert result.stopped is Stopped.INTERRUPT
    assert result.values is not None
    assert result.objective is not None
    assert result.bound is not None
    incumbents = [progress.incumbent for progress in seen if progress.incumbent is not None]
    assert 0 < incumbents[0] <= result.objective + 1e-6


def test_control_c_returns_the_incumbent(solver: str, hard_knapsack: Build) -> None:
    """The signal of Ctrl-C reaches the search through the budget."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")
    sent: list[Progress] = []

    def listen(progress: Progress) -> None:
        # Where a worker has to start first, a clock would be too early.
        if progress.incumbent is not None and not sent:
            sent.append(progress)
            os.kill(os.getpid(), signal.SIGINT)

    budget = Budget(progress=listen)
    with budget.catching_interrupts():
        result = solve_model(hard_knapsack(), solver, SolverOptions(time_limit=60), budget=budget)
    assert result.stopped is Stopped.INTERRUPT
    assert result.values is not None


def test_interrupted_budget_does_not_start(solver: str) -> None:
    """A budget that is over before the solver begins gives a result without a point."""
    budget = Budget()
    budget.interrupt()
    result = solve_model(knapsack(), solver, budget=budget)
    assert result.stopped is Stopped.INTERRUPT
    assert result.values is None


def planted_split() -> pyo.ConcreteModel:
    """Return equalities that only the half held by the variables is known to meet."""
    random = np.random.default_rng(1)
    parts, half = random.integers(0, 100, (6, 50)), random.integers(0, 2, 50)
    model = pyo.ConcreteModel()
    model.first = pyo.Var(range(50), domain=pyo.Binary, initialize=lambda model, j: int(half[j]))
    model.half = pyo.Constraint(
        range(6),
        rule=lambda model, row: (
            sum(int(parts[row, j]) * model.first[j] for j in range(50)) == int(parts[row] @ half)
        ),
    )
    model.count = pyo.Objective(expr=sum(model.first[j] for j in range(50)))
    return model


@pytest.mark.thorough("cbc-interrupt", "cbc-time")
@pytest.mark.parametrize("limit", ["time", "interrupt"])
def test_start_comes_back_where_nothing_better_is_found(solver: str, limit: str) -> None:
    """Whatever ends the search, a checked point at least as good as the start is held."""
    model = planted_split()
    before = pyo.value(model.count)
    budget = Budget()
    if limit == "interrupt":
        budget = Budget(progress=lambda progress: budget.interrupt())
    options = SolverOptions(time_limit=0.5 if limit == "time" else 60.0)
    result = solve_model(model, solver, options, start=True, budget=budget)
    expected = Stopped.TIME if limit == "time" else Stopped.INTERRUPT
    assert result.stopped in (expected, Stopped.OPTIMAL)
    assert result.objective is not None
    assert result.objective <= before
    assert pyo.value(model.count) == pytest.approx(result.objective)
    if result.bound is not None:
        assert result.bound <= result.objective
