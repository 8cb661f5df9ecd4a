"""Releases that need no solver: a solver's word is held against them, or they take its place."""

from __future__ import annotations

from anonymip.assignments import Classes
from anonymip.errors import AnonymipError, InputError, InvalidAssignment, NoSolution, SolverError
from anonymip.exact.classes.small import solve_small
from anonymip.exact.warm_starts import begin_freeform
from anonymip.heuristics.freeform.nearest_sets import nearest_sets
from anonymip.heuristics.local_search.local_search import local_search
from anonymip.heuristics.local_search.starts import BEST
from anonymip.problem import Problem
from anonymip.recodings import KK, EquivalenceClasses, KConcealment, KOne, OneK, PatternGuided
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.solution import Bound, Solution, under_assumptions

#: What a solver may do: end, answer what cannot be, name what is no release, run out of memory.
FAILURES = (SolverError, InvalidAssignment, MemoryError)

#: In the remark that says what was returned instead.
FAILED = "the solver failed, and "

#: Up to so many records are searched without a solver, looking at so many nodes at a time.
_SEARCHED, _NODES = 30, 200_000
#: Of so few records that search takes no longer than heuristics do.
_SOON = 20
#: Passes of the search for patterns that claims are held against.
_PASSES = 2


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


def cheap_release(problem: Problem, budget: Budget, seed: int) -> Solution | None:
    """Return what heuristics find soon, to hold a solver's claims against; None if nothing.

    A solver that takes a release for optimal, or a problem for infeasible, is refuted by a better
    one. Nobody else would notice: its word is the only proof.
    """
    try:
        if isinstance(problem.recoding, PatternGuided):
            # Imported late: classes need none of it.
            from anonymip.heuristics.patterns.pattern_search import pattern_search

            return pattern_search(problem, passes=_PASSES, budget=budget, seed=seed)
        if isinstance(problem.recoding, EquivalenceClasses):
            searched = search_instead(problem, budget, seed) if problem.n <= _SOON else None
            if searched is not None:
                return searched
            return local_search(problem, from_method=BEST, effort="quick", budget=budget, seed=seed)
        return _cheap_cover(problem, budget, seed)
    except (InputError, NoSolution, CompilationStopped):
        # Some heuristics do not take the rules or the loss, and some have no time.
        return None


def _cheap_cover(problem: Problem, budget: Budget, seed: int) -> Solution | None:
    """Return the best of what heuristics of covers and of weaker notions find.

    HiGHS 1.15.1 took a regular cover that it was given for the best one of (k,1)-anonymity, whose
    sets need not be regular.
    """
    found = begin_freeform(problem, "best", None, seed, budget)[0]
    if not isinstance(problem.recoding, OneK | KOne | KK | KConcealment):
        return found
    try:
        weaker = nearest_sets(problem, effort="quick", budget=budget, seed=seed)
    except (InputError, NoSolution):
        return found
    return weaker if found is None or weaker.objective < found.objective else found


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
