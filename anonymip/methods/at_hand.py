"""What a run returns whose method was stopped: while kernels were compiled, or without memory."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from anonymip.errors import MemoryShort, NoSolution
from anonymip.methods.registry import find_method
from anonymip.problem import Problem
from anonymip.runtime.compilation import CompilationStopped, RunInForce
from anonymip.runtime.memory import memory_ended
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
    return _stopped(problem, found, stopped.reason, remark)


def release_without_memory(
    problem: Problem, run: RunInForce, shortage: BaseException, method: str
) -> Solution:
    """Return the best release that the run has made before memory ended, else a frugal one.

    Parameters
    ----------
    problem
        What is asked.
    run
        The run, still in force.
    shortage
        What says that there is no memory; what its frames hold is given up first.
    method
        Name of the method.

    Raises
    ------
    MemoryShort
        If there was no release, and there is not enough memory for a frugal method either.
    """
    told = shortage.message if isinstance(shortage, MemoryShort) else "memory ended"
    following: BaseException | None = shortage
    while following is not None:
        following.__traceback__ = None
        following = following.__cause__ or following.__context__
    gc.collect()
    remark = f"{method} was stopped: {told}"
    found: Solution | None = run.at_hand
    if found is None:
        remark += "; this method needs little"
        with suppress(MemoryError):
            found = _without_kernels(problem, run)
    if found is None:
        raise memory_ended(f"while {method} solved {problem.n:,} records") from None
    return _stopped(problem, found, Stopped.NODES, remark)


def _stopped(problem: Problem, found: Solution, reason: Stopped, remark: str) -> Solution:
    return Solution.of(
        problem,
        found.assignment,
        method=found.method,
        bound=found.bound,
        stopped=reason,
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
