"""What a method returns when its solver fails: the start, or what a search without one finds."""

from __future__ import annotations

from collections.abc import Callable

from anonymip.assignments import Classes
from anonymip.bounds.combinatorial import lower_bound_of
from anonymip.errors import AnonymipError, InvalidAssignment, NoSolution, SolverError
from anonymip.exact.classes.small import solve_small
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped

#: What a solver may do: end, answer what cannot be, name what is no release, run out of memory.
FAILURES = (SolverError, InvalidAssignment, MemoryError)

#: In the remark that says what was returned instead.
_FAILED = "the solver failed, and "

#: Up to so many records are searched without a solver, looking at so many nodes at a time.
_SEARCHED, _NODES = 30, 200_000


def solved_or_kept(
    solve: Callable[[], Solution],
    problem: Problem,
    method: str,
    begun: Solution | None,
    options: dict[str, object],
    watch: Stopwatch,
    seed: int,
    trace: list[str],
    budget: Budget,
) -> Solution:
    """Return what a solver finds; where it fails, the start with what bound is left.

    Parameters
    ----------
    solve
        Builds the model, calls the solver and reads what it returns.
    problem, method, options, watch, seed
        What is solved, and how.
    begun
        The solution that the solver starts from; None if there is none.
    trace
        Remarks so far; what happened is added.
    budget
        Of the search that takes the solver's place where there are few records.

    Raises
    ------
    SolverError
        If the solver fails, there is no start, and nothing else finds a release.
    """
    try:
        return solve()
    except FAILURES as failure:
        said = told(failure)
        searched = _searched(problem, budget, seed)
        found = begun
        if searched is not None and (begun is None or searched.objective < begun.objective):
            found = searched
        if found is None:
            if isinstance(failure, SolverError):
                raise
            raise SolverError(said, remedy="Use another solver, or fewer records") from failure
        what = "the start is kept" if found is begun else "a search without one took its place"
        trace.append(f"{said}: {_FAILED}{what}")
        kept = Solution.of(
            problem,
            found.assignment,
            method=method,
            stopped=Stopped.ERROR,
            options=options,
            seconds=watch.seconds,
            seed=seed,
            trace=tuple(trace),
        )
        own = lower_bound_of(problem)
        for bound in (own, None if searched is None else searched.bound):
            kept = kept if bound is None else kept.with_bound(bound)
        return kept


def has_failed(solution: Solution) -> bool:
    """Return whether a solution is what remained when a solver failed."""
    return any(_FAILED in remark for remark in solution.trace)


def told(failure: BaseException) -> str:
    """Return what happened, in one sentence without its remedy."""
    if isinstance(failure, InvalidAssignment):
        return f"what the solver returned is no release ({failure.message})"
    if isinstance(failure, AnonymipError):
        return failure.message
    return "memory ran out"


def _searched(problem: Problem, budget: Budget, seed: int) -> Solution | None:
    """Return what the search of small problems finds, if it takes the problem."""
    small = isinstance(problem.recoding, EquivalenceClasses) and problem.n <= _SEARCHED
    if not small or budget.stop_reason() is not None:
        return None
    try:
        found = solve_small(problem, budget=budget, max_nodes=_NODES, seed=seed)
    except NoSolution:
        return None
    solution = Solution.of(problem, Classes(found.labels), method="small")
    if found.bound is None:
        return solution
    source = "search of the whole table"
    if assumed := problem.compiled.assumed:
        source += f" (assuming that {' and '.join(assumed)})"
    return solution.with_bound(Bound(found.bound, source, "argument"))
