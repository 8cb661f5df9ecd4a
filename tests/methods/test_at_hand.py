"""Tests of what `solve` returns when its method is stopped while kernels are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from anonymip import (
    Budget,
    Classes,
    Freeform,
    NoSolution,
    PatternGuided,
    Problem,
    Solution,
    Stopped,
    census,
    compare,
    lower_bound,
    register_method,
    solve,
)
from anonymip.errors import Interrupted
from anonymip.methods import registry
from anonymip.runtime.compilation import CompilationStopped, stop_compilation_in_time

COLD = """
import anonymip
from anonymip.runtime import compilation

compilation.SECONDS_TO_FINISH = 0.0
problem = anonymip.Problem(anonymip.census(60, 3, seed=0), 3)
budget = anonymip.Budget.of(60.0)
budget.deadline -= 60.0
for method in ("local-search", "mondrian", "split-carry"):
    solution = anonymip.solve(problem, method, budget=budget)
    print(method, solution.status.stopped.name, int(solution.assignment.sizes.min()))
"""


@pytest.fixture
def problem() -> Problem:
    """Return a small problem, k = 3."""
    return Problem(census(20, 3, seed=0), 3)


@pytest.fixture
def stopping() -> Iterator[Callable[..., None]]:
    """Return a function that registers a method which compiles at its end for ever."""
    before = dict(registry._methods)

    def register(begin: Callable[[Problem, Budget], object], recoding: str = "classes") -> None:
        @register_method("stopping", recoding=recoding)
        def method(problem: Problem, *, budget: Budget, seed: int = 0) -> Any:
            begin(problem, budget)
            while True:
                stop_compilation_in_time()

    yield register
    registry._methods.clear()
    registry._methods.update(before)


@pytest.mark.thorough
def test_without_time_nothing_is_compiled(tmp_path: Path) -> None:
    """On an empty cache a limit that is over still gives a release, and compiles no kernel."""
    done = subprocess.run(
        [sys.executable, "-c", COLD],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [
        [name, "TIME"] for name in ("local-search", "mondrian", "split-carry")
    ]
    assert all(int(smallest) >= 3 for _, _, smallest in lines)
    assert list(tmp_path.iterdir()) == []


def test_the_best_release_so_far_is_returned(problem: Problem, stopping: Any) -> None:
    """What a part of the method has made and checked is not lost, by time or by interrupt."""

    def begin(problem: Problem, budget: Budget) -> None:
        trivial = Solution.of(problem, one_class(problem), method="trivial", seconds=1.5)
        assert trivial.objective > 0
        budget.interrupt()

    stopping(begin)
    solution = solve(problem, "stopping", bound=False)
    assert (solution.method, solution.status.stopped) == ("trivial", Stopped.INTERRUPT)
    assert solution.seconds == 1.5
    assert solution.trace == ("stopping was stopped (interrupted) while kernels were compiled",)


def one_class(problem: Problem) -> Any:
    """Return the trivial release."""
    return Classes([0] * problem.n)


@pytest.mark.parametrize("taken", ["initial", "ring"])
def test_a_method_without_kernels_takes_the_place(
    problem: Problem, stopping: Any, taken: str
) -> None:
    """Where time ends before there is a release, classes and covers are made without kernels."""
    asked = problem if taken == "initial" else problem.replace(recoding=Freeform())
    stopping(lambda problem, budget: setattr(budget, "deadline", 0.0), asked.recoding.name)
    solution = solve(asked, "stopping", time_limit=60, bound=False)
    assert (solution.method, solution.status.stopped) == (taken, Stopped.TIME)
    assert solution.trace[0].startswith("stopping was stopped (time-limit)")


def test_an_interrupt_with_nothing_to_show(problem: Problem, stopping: Any) -> None:
    """The user who stops wants no other method begun."""
    stopping(lambda problem, budget: budget.interrupt())
    with pytest.raises(Interrupted, match="interrupted while kernels were compiled"):
        solve(problem, "stopping", bound=False)


def test_a_comparison_keeps_the_rows_so_far(problem: Problem, stopping: Any) -> None:
    """Ctrl-C while the kernels of the next method are compiled leaves what there is."""
    stopping(lambda problem, budget: budget.interrupt())
    table = compare(problem, [3], ["initial", "stopping", "mondrian"])
    assert [row.solution.method for row in table.rows] == ["initial"]
    assert not table.complete


def test_a_bound_that_cannot_be_compiled_in_time(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release goes without it; who asked for the bound alone learns why there is none."""

    def stopped(*given: Any, **more: Any) -> Any:
        raise CompilationStopped(Stopped.TIME)

    for rung in ("nearest_neighbour_bound", "lower_bound_of", "relaxation_bound"):
        monkeypatch.setattr(f"anonymip.methods.best_bound.{rung}", stopped)
    assert solve(problem, "initial").bound is None
    with pytest.raises(NoSolution, match="while kernels were compiled"):
        lower_bound(problem)


def test_no_release_at_all_is_said(problem: Problem, stopping: Any) -> None:
    """Patterns need kernels: the error names the remedies."""
    stopping(lambda problem, budget: setattr(budget, "deadline", 0.0), "pattern")
    with pytest.raises(NoSolution, match="anonymip warm-up"):
        solve(problem.replace(recoding=PatternGuided()), "stopping", time_limit=60, bound=False)
