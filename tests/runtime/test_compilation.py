"""Tests of compilation that ends with its run: at any point, cleanly, with the best release."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any

import pytest

from anonymip import Budget, NoSolution, Stopped
from anonymip.errors import Interrupted
from anonymip.runtime import compilation
from anonymip.runtime.budget import compilation_clock
from anonymip.runtime.compilation import (
    CompilationStopped,
    RunInForce,
    in_force,
    run_in_force,
    stop_compilation_in_time,
)
from anonymip.runtime.kernels import kernel
from anonymip.runtime.side_by_side import run_side_by_side
from anonymip.runtime.stepping import run_in_steps
from tests.runtime.counted_budget import CountedBudget

_SERIAL = itertools.count()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the kernels of a test to itself, and let nothing be finished."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "SECONDS_TO_FINISH", 0.0)


def nested() -> Any:
    """Return a kernel that calls another, neither compiled before."""
    constant = float(next(_SERIAL))

    @kernel
    def inner(x: Any) -> Any:
        return x + constant - constant

    @kernel
    def outer(x: Any) -> Any:
        return 2.0 * inner(x)

    return outer


def spent() -> Budget:
    """Return a budget whose time is over."""
    return Budget(deadline=time.monotonic() - 1.0)


def test_compilation_ends_wherever_it_is_and_can_begin_again() -> None:
    """Between any two steps of the compiler: nothing half made stays, and the next call works."""
    function, stops = nested(), 0
    for asked in itertools.count(0, 9):
        budget = CountedBudget(asked)
        try:
            with in_force(RunInForce(budget)):
                assert function(1.5) == 3.0
        except CompilationStopped:
            stops += 1
        assert run_in_force() is None
        # No compilation is left open on the clock.
        assert compilation_clock.begin()
        compilation_clock.end()
        if budget.left >= 0:
            break
    assert stops > 3
    assert function(1.5) == 3.0


def test_what_is_compiled_is_called_after_the_end() -> None:
    """The end of a run stops compilation, not the kernels that are there."""
    function = nested()
    function(1.0)
    with in_force(RunInForce(spent())):
        assert function(1.0) == 2.0
        with pytest.raises(CompilationStopped):
            function(1)


def test_what_finishes_the_work_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ended while it computed compiles a moment longer; one that compiled does not."""
    now = [100.0]
    monkeypatch.setattr(compilation, "SECONDS_TO_FINISH", 1.0)
    monkeypatch.setattr(compilation, "time", SimpleNamespace(monotonic=lambda: now[0]))
    budget = Budget()
    budget.interrupt()
    computed, compiled = RunInForce(budget), RunInForce(budget)
    with in_force(computed):
        stop_compilation_in_time(begins=True)
        now[0] += 0.5
        stop_compilation_in_time()
        stop_compilation_in_time(begins=True)
        now[0] += 0.5
        with pytest.raises(CompilationStopped):
            stop_compilation_in_time(begins=True)
    with in_force(compiled):
        for begins in (False, True):
            with pytest.raises(CompilationStopped):
                stop_compilation_in_time(begins=begins)


def test_outside_of_a_run_compilation_goes_on() -> None:
    """Who calls a method or a kernel without `solve` waits for it."""
    stop_compilation_in_time()
    with in_force(RunInForce(spent())):
        with in_force(None):
            assert nested()(1.0) == 2.0
        with pytest.raises(CompilationStopped, match="time-limit"):
            stop_compilation_in_time()


def test_steps_that_cannot_be_compiled_in_time_are_not_taken() -> None:
    """The work stops as by any end of its budget."""
    budget = Budget.of()

    def step(amount: int) -> int:
        budget.interrupt()
        stop_compilation_in_time()
        return amount

    with in_force(RunInForce(budget)):
        assert run_in_steps(step, 5, budget, "cutting", first=5) is Stopped.INTERRUPT


def test_work_that_has_to_be_done_is_left_where_the_run_ends() -> None:
    """Who steps on an endless budget expects all of the work, so that the method is left."""
    run = RunInForce(spent())
    with in_force(run), pytest.raises(CompilationStopped):
        run_in_steps(lambda amount: nested()(1.0), 5, Budget(), "cutting")


def test_threads_end_with_the_run_that_started_them() -> None:
    """What is compiled in a thread is asked for by the run as well."""

    def task(budget: Budget) -> float:
        return float(nested()(1.0))

    for run in (None, RunInForce(spent())):
        with in_force(run):
            if run is None:
                answers = run_side_by_side(
                    [task, task], Budget(), jobs=2, in_processes=False, phase="compiling"
                )
                assert answers == [2.0, 2.0]
                continue
            with pytest.raises(CompilationStopped):
                run_side_by_side(
                    [task, task], Budget(), jobs=2, in_processes=False, phase="compiling"
                )


def test_the_best_release_of_the_problem_is_at_hand() -> None:
    """Of releases of other problems, which parts of a method may solve, none is taken."""
    problem, other = object(), object()
    run = RunInForce(Budget(), problem)
    for asked, loss in ((other, 1.0), (problem, 5.0), (problem, 4.0), (problem, 6.0)):
        run.offer(asked, SimpleNamespace(objective=loss))
    assert run.at_hand.objective == 4.0
    nameless = RunInForce(Budget())
    nameless.offer(None, SimpleNamespace(objective=1.0))
    assert nameless.at_hand is None


def test_what_a_user_hears_who_has_nothing() -> None:
    """A limit names the remedies; an interrupt is one, with its exit code."""
    late = CompilationStopped(Stopped.TIME).nothing_found()
    assert isinstance(late, NoSolution)
    assert "anonymip warm-up" in str(late)
    assert isinstance(CompilationStopped(Stopped.INTERRUPT).nothing_found(), Interrupted)
