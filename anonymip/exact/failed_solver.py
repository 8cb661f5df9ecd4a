"""What takes the place of a solver that fails: its failures, and a search that needs none."""

from __future__ import annotations

from anonymip.assignments import Classes
from anonymip.errors import AnonymipError, InvalidAssignment, NoSolution, SolverError
from anonymip.exact.classes.small import solve_small
from anonymip.exact.trust import under_assumptions
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.budget import Budget
from anonymip.solution import Bound, Solution

#: What a solver may do: end, answer what cannot be, name what is no release, run out of memory.
FAILURES = (SolverError, InvalidAssignment, MemoryError)

#: In the remark that says what was returned instead.
FAILED = "the solver failed, and "

#: Up to so many records are searched without a solver, looking at so many nodes at a time.
_SEARCHED, _NODES = 30, 200_000


def has_failed(solution: Solution) -> bool:
    """Return whether a solution is what remained when a solver failed."""
    return any(FAILED in remark for remark in solution.trace)


def what_failed(failure: BaseException) -> str:
    """Return what happened, in one sentence without its remedy."""
    if isinstance(failure, InvalidAssignment):
        return f"what the solver returned is no release ({failure.message})"
    if isinstance(failure, AnonymipError):
        return failure.message
    return "memory ran out"


def search_instead(problem: Problem, budget: Budget, seed: int) -> Solution | None:
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
    source = under_assumptions(problem, "search of the whole table")
    return solution.with_bound(Bound(found.bound, source, "argument"))
