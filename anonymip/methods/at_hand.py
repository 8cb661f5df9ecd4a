"""What a run returns whose method was stopped while kernels were compiled."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from anonymip.errors import NoSolution
from anonymip.methods.registry import find_method
from anonymip.problem import Problem
from anonymip.runtime.compilation import CompilationStopped, RunInForce
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Methods that compile nothing where no rule has to be repaired, and the options for that.
_WITHOUT_KERNELS: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {"classes": ("initial", {}), "freeform": ("ring", {"order": "variance"})}
)


def release_at_hand(
    problem: Problem, run: RunInForce, stopped: CompilationStopped, method: str
) -> Solution:
    """Return the best release that the run has made, else one that needs no kernels.

    Parameters
    ----------
    problem
        What is asked.
    run
        The run, still in force: nothing is compiled for this.
    stopped
        Why the method has ended.
    method
        Its name.

    Raises
    ------
    Interrupted
        If the user stopped the run before there was a release.
    NoSolution
        If the time ended before there was one, and every method needs kernels.
    """
    remark = f"{method} was stopped ({stopped.reason.value}) while kernels were compiled"
    found: Solution | None = run.at_hand
    if found is None and stopped.reason is Stopped.TIME:
        found = _without_kernels(problem, run)
        remark += ": this method needs none"
    if found is None:
        raise stopped.nothing_found() from None
    return Solution.of(
        problem,
        found.assignment,
        method=found.method,
        bound=found.bound,
        stopped=stopped.reason,
        options=found.options,
        seconds=found.seconds,
        seed=found.seed,
        trace=(remark, *found.trace),
        solver=found.solver,
    )


def _without_kernels(problem: Problem, run: RunInForce) -> Solution | None:
    choice = _WITHOUT_KERNELS.get(problem.recoding.name)
    if choice is None:
        return None
    name, options = choice
    try:
        solution: Solution = find_method(name).load()(problem, budget=run.budget, **options)
    except (CompilationStopped, NoSolution):
        return None
    return solution
