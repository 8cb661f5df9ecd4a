"""No lie, crash or hang of a solver gets past the layer above."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.errors import InputError, SolverError
from anonymip.runtime import worker_pool
from anonymip.runtime.budget import Budget, Progress
from anonymip.solvers import SolverOptions, SolverResult, solve_model
from anonymip.status import Stopped
from tests.solvers.lying import Crasher, Liar, Sleeper, two_items

TRUTH = SolverResult(Stopped.OPTIMAL, np.array([1.0, 0.0]), 3.0, 3.0, 0.1, "Liar 1")
#: The dearer item, called optimal.
FALSE = replace(TRUTH, values=np.array([0.0, 1.0]), objective=5.0, bound=5.0)
GOOD, POOR = (1, 0), (0, 1)


def test_truth_passes_through_the_worker() -> None:
    """An honest answer comes back from the other process whole."""
    result = solve_model(two_items(), Liar(TRUTH))
    assert (result.stopped, result.objective, result.bound) == (Stopped.OPTIMAL, 3, 3)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (replace(TRUTH, bound=3.5), "excludes its own point"),
        (FALSE, "excludes the start"),
        (replace(FALSE, stopped=Stopped.TIME), "excludes the start"),
        (SolverResult(Stopped.TIME, None, None, 4.0, 0.1, "Liar 1"), "excludes the start"),
        (
            SolverResult(Stopped.INFEASIBLE, None, None, None, 0.1, "Liar 1"),
            "infeasible, and the start",
        ),
    ],
)
def test_lies_are_caught(answer: SolverResult, text: str) -> None:
    """What contradicts the model or the start is an error, and the start stays in the model."""
    model = two_items(GOOD)
    with pytest.raises(SolverError, match=text):
        solve_model(model, Liar(answer), start=True)
    assert [model.use[j].value for j in range(2)] == list(GOOD)


@pytest.mark.parametrize(("bound", "sense"), [(5.0, 1), (-5.0, -1)])
def test_false_optimum_is_caught_in_both_senses(bound: float, sense: int) -> None:
    """A point worse than the start cannot be optimal, whichever way the model is turned."""
    lie = replace(FALSE, objective=bound, bound=bound)
    with pytest.raises(SolverError, match="excludes the start"):
        solve_model(two_items(GOOD, sense), Liar(lie), start=True)


def test_optimal_without_bound_is_not_called_optimal() -> None:
    """A solver's status alone proves nothing optimal; the better start is the point."""
    result = solve_model(two_items(GOOD), Liar(replace(FALSE, bound=None)), start=True)
    assert result.stopped is Stopped.ERROR
    assert (result.objective, result.bound) == (3, None)


@pytest.mark.parametrize("bound", [2.0, None, float("-inf")])
@pytest.mark.parametrize("point", [None, (0.0, 1.0), (0.0, 0.0)])
@pytest.mark.parametrize("stopped", [Stopped.TIME, Stopped.INTERRUPT, Stopped.NODES])
def test_start_is_the_point_where_nothing_better_comes(
    stopped: Stopped, point: tuple[float, float] | None, bound: float | None
) -> None:
    """At a limit with no, a worse or a bad point, the checked start comes back."""
    values = None if point is None else np.array(point)
    answer = SolverResult(stopped, values, 5.0, bound, 0.1, "Liar 1", start_accepted=False)
    model = two_items(GOOD)
    result = solve_model(model, Liar(answer), start=True)
    assert result.stopped is stopped
    assert result.values is not None
    np.testing.assert_array_equal(result.values, GOOD)
    assert result.objective == 3
    assert result.bound == (2.0 if bound == 2.0 else None)
    assert result.start_accepted is False
    assert [model.use[j].value for j in range(2)] == list(GOOD)


def test_start_that_meets_the_bound_is_optimal() -> None:
    """Solver without a point, bound equal to the start: proven."""
    answer = SolverResult(Stopped.TIME, None, None, 3.0, 0.1, "Liar 1")
    assert solve_model(two_items(GOOD), Liar(answer), start=True).stopped is Stopped.OPTIMAL


def test_bound_within_the_tolerances_of_the_start_is_lowered() -> None:
    """A bound that passes the start by as little as tolerances explain proves nothing."""
    near = replace(FALSE, stopped=Stopped.TIME, bound=3 + 2e-5)
    result = solve_model(two_items(GOOD), Liar(near), start=True)
    assert (result.stopped, result.objective) == (Stopped.TIME, 3)
    assert result.bound == pytest.approx(3 - 5e-5, abs=1e-9)


def test_better_point_than_the_start_is_kept() -> None:
    """A poor start neither replaces a better point nor contradicts its bound."""
    result = solve_model(two_items(POOR), Liar(TRUTH), start=True)
    assert (result.stopped, result.objective) == (Stopped.OPTIMAL, 3)


def test_start_that_breaks_the_model_counts_for_nothing() -> None:
    """An infeasible start is never the point, and proves no lie."""
    answer = SolverResult(Stopped.TIME, None, None, 2.0, 0.1, "Liar 1")
    result = solve_model(two_items((0, 0)), Liar(answer), start=True)
    assert (result.values, result.bound) == (None, 2.0)
    answer = SolverResult(Stopped.INFEASIBLE, None, None, None, 0.1, "Liar 1")
    result = solve_model(two_items((0, 0)), Liar(answer), start=True)
    assert result.stopped is Stopped.INFEASIBLE


def test_unfinished_start_counts_for_nothing() -> None:
    """Without the values of its continuous variables a start cannot be checked."""
    model = two_items(GOOD)
    model.spare = pyo.Var(bounds=(0, 1))
    model.link = pyo.Constraint(expr=model.spare <= model.use[0])
    answer = SolverResult(Stopped.TIME, None, None, 2.0, 0.1, "Liar 1")
    assert solve_model(model, Liar(answer), start=True).values is None


def test_interrupted_before_it_began_returns_the_start() -> None:
    """A budget that is over leaves the start."""
    budget = Budget()
    budget.interrupt()
    result = solve_model(two_items(GOOD), Liar(TRUTH), start=True, budget=budget)
    assert (result.stopped, result.objective) == (Stopped.INTERRUPT, 3)


@pytest.mark.parametrize(
    ("how", "text"),
    [
        pytest.param(
            "abort", "SIGABRT and printed last: fatal: out of luck", marks=pytest.mark.thorough
        ),
        ("segfault", "SIGSEGV"),
        pytest.param("exit", "exit code 7", marks=pytest.mark.thorough),
        ("raise", "RuntimeError: index out of range"),
        ("memory", "MemoryError: no room"),
    ],
)
def test_crashes_are_errors(how: str, text: str) -> None:
    """A solver that dies takes nobody along, and the next solve works."""
    with pytest.raises(SolverError, match=text):
        solve_model(two_items(), Crasher(how))
    assert solve_model(two_items(), Liar(TRUTH)).objective == 3


def test_own_errors_come_through_as_themselves() -> None:
    """An exception of the toolkit keeps its class and fields on the way."""
    with pytest.raises(InputError) as caught:
        solve_model(two_items(), Crasher("refuse"))
    error = caught.value
    assert type(error) is InputError
    assert (error.message, error.remedy) == ("presolve is 'perhaps'", "Use on or off")
    assert error.value == "perhaps"
    assert "Use on or off" in str(error)


HOUR = SolverOptions(time_limit=3600.0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Progress]:
    """Return a list: with each message in it an hour has passed for who watches the workers."""
    told: list[Progress] = []
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + 3600.0 * len(told))
    monkeypatch.setattr(worker_pool, "time", clock)
    monkeypatch.setattr(worker_pool, "GRACE", 0.0)
    return told


@pytest.mark.thorough
@pytest.mark.parametrize("bound", [2.0, pytest.param(float("-inf"), marks=pytest.mark.thorough)])
def test_solver_that_ignores_its_limit_is_killed(bound: float, told: list[Progress]) -> None:
    """The start comes back with the last finite bound, and the next solve works."""
    budget = Budget(progress=told.append)
    result = solve_model(two_items(GOOD), Sleeper(bound), HOUR, start=True, budget=budget)
    assert result.stopped is Stopped.TIME
    assert (result.objective, result.start_accepted) == (3, None)
    assert result.bound == (2.0 if bound == 2.0 else None)
    assert result.solver == "Liar 1"
    assert [message.incumbent for message in told] == [4.0]
    without = solve_model(two_items(), Sleeper(bound), HOUR, budget=budget)
    assert (without.stopped, without.values) == (Stopped.TIME, None)
    assert solve_model(two_items(), Liar(TRUTH)).objective == 3


@pytest.mark.thorough
def test_solver_that_ignores_an_interrupt_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt ends what does not listen, as interrupted."""
    monkeypatch.setattr(worker_pool, "GRACE", 0.2)
    budget = Budget(progress=lambda message: budget.interrupt())
    result = solve_model(two_items(GOOD), Sleeper(2.0), start=True, budget=budget)
    assert result.stopped is Stopped.INTERRUPT
    assert (result.objective, result.bound) == (3, 2)


@pytest.mark.thorough
def test_bound_of_a_killed_solver_is_checked_too(told: list[Progress]) -> None:
    """A last bound that excludes the start is a lie like any other."""
    budget = Budget(progress=told.append)
    with pytest.raises(SolverError, match="excludes the start"):
        solve_model(two_items(GOOD), Sleeper(4.0), HOUR, start=True, budget=budget)
