"""The solution that a solver starts from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np

from anonymip.assignments import Assignment, Cover
from anonymip.errors import AnonymipError, InputError, InvalidAssignment, NoSolution, unknown_name
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution

#: Share of the time that lowering the best start may take.
_IMPROVING = 0.2


def find_start(
    problem: Problem,
    name: str,
    given: Assignment | None,
    heuristics: Mapping[str, Callable[..., Solution]],
    seed: int,
    budget: Budget,
    *,
    best: bool = True,
    passing: tuple[type[AnonymipError], ...] = (NoSolution,),
) -> tuple[Solution | None, list[str]]:
    """Return the solution to start from, and remarks; None if there is none.

    `name`: of a heuristic; ``"best"``: the best of all; or ``"none"``. `given`: assignment to start
    from instead. `heuristics`: by name. `seed, budget`: of the heuristics. `best`: whether
    ``"best"`` is a name. `passing`: errors by which a heuristic may fail where the model does not:
    others are raised. Raises InputError if there is no such start; InvalidAssignment if the
    assignment given breaks a rule.
    """
    known = [*(["best"] if best else []), "none", *heuristics]
    if name not in known:
        raise unknown_name("warm start", name, known)
    if given is not None:
        return Solution.of(problem, given, method="start"), []
    if name == "none":
        return None, []
    found = []
    for heuristic in heuristics.values() if name == "best" else [heuristics[name]]:
        try:
            found.append(heuristic(problem, seed=seed, budget=budget))
        except passing:
            continue
    if not found:
        return None, ["no heuristic found a solution to start from"]
    return min(found, key=lambda solution: solution.objective), []


def begin_freeform(
    problem: Problem, name: str, given: Assignment | None, seed: int, budget: Budget
) -> tuple[Solution | None, list[str]]:
    """Return the solution to start from, and remarks; None if there is none.

    A freeform cover obeys every weaker notion too: own records lie inside, every record has k
    matches on both sides, and all are effective. Where no heuristic obeys the rules, the whole
    table as the set of every record may.

    `name`: of a heuristic; ``"best"``: the best of all, lowered by ``reassign``; or ``"none"``.
    `given`: cover to start from instead. `seed, budget`: of the heuristics. Raises InputError if
    there is no such start; InvalidAssignment if the cover given breaks a rule.
    """
    # Imported late: classes start from none of them.
    from anonymip.heuristics.freeform.greedy import greedy
    from anonymip.heuristics.freeform.hungarian import hungarian
    from anonymip.heuristics.freeform.reassign import reassign
    from anonymip.heuristics.freeform.ring import ring
    from anonymip.heuristics.freeform.sort_greedy import sort_greedy

    is_regular = isinstance(problem.recoding, Freeform)
    regular = problem if is_regular else problem.replace(recoding=Freeform())
    asked = problem if given is not None else regular
    covers: dict[str, Callable[..., Solution]] = {
        "hungarian": hungarian,
        "sort-greedy": sort_greedy,
        "greedy": greedy,
        "ring": ring,
    }
    # Some heuristics look at no rules, and some at no degrees; the model does.
    passing = (NoSolution, InputError)
    found, remarks = find_start(asked, name, given, covers, seed, budget, passing=passing)
    if found is not None and given is None:
        best, share = found.assignment, budget.share(_IMPROVING)
        if name == "best":
            # The start stays where reassigning cannot be done.
            with suppress(*passing):
                best = reassign(
                    regular, effort="thorough", start=best, seed=seed, budget=share
                ).assignment
        return Solution.of(problem, best, method="start"), []
    if not remarks:
        return found, []
    whole = Cover.of(np.tile(np.arange(problem.n), (problem.n, 1)))
    try:
        return Solution.of(problem, whole, method="start"), ["the start covers the whole table"]
    except InvalidAssignment:
        return None, remarks
