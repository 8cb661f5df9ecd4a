"""The solution that a solver starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anonymip.assignments import Assignment
from anonymip.errors import AnonymipError, InputError, NoSolution
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution


def find_start(
    problem: Problem,
    name: str,
    given: Assignment | None,
    heuristics: Mapping[str, Callable[..., Solution]],
    seed: int,
    budget: Budget,
    *,
    heuristics_ask: Problem | None = None,
    best: bool = True,
    passing: tuple[type[AnonymipError], ...] = (NoSolution,),
) -> tuple[Solution | None, list[str]]:
    """Return the solution to start from, and remarks; None if there is none.

    Parameters
    ----------
    problem
        What is asked.
    name
        Of a heuristic; ``"best"``: the best of all; or ``"none"``.
    given
        Assignment to start from instead.
    heuristics
        By name.
    seed, budget
        Of the heuristics.
    heuristics_ask
        A problem whose releases are those of `problem` too, for heuristics that know no other.
    best
        Whether ``"best"`` is a name.
    passing
        Errors by which a heuristic may fail where the model does not: others are raised.

    Raises
    ------
    InputError
        If there is no such start.
    InvalidAssignment
        If the assignment given breaks a rule.
    """
    known = [*(["best"] if best else []), "none", *heuristics]
    if name not in known:
        raise InputError(f"unknown warm start {name!r}", remedy=f"Use {', '.join(known)}")
    if given is not None:
        return Solution.of(problem, given, method="start"), []
    if name == "none":
        return None, []
    asked = problem if heuristics_ask is None else heuristics_ask
    found = []
    for heuristic in heuristics.values() if name == "best" else [heuristics[name]]:
        try:
            found.append(heuristic(asked, seed=seed, budget=budget))
        except passing:
            continue
    if not found:
        return None, ["no heuristic found a solution to start from"]
    return min(found, key=lambda solution: solution.objective), []
