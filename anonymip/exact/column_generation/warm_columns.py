"""Releases of the heuristics of a recoding, to start from: the best one and the columns of all."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from anonymip.assignments import Assignment
from anonymip.errors import (
    AnonymipError,
    InputError,
    NoSolution,
    UnsupportedObjective,
)
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution

#: Methods that are cheap, with their options.
_CLASSES: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("anonymip.heuristics.classes.ordered_cut:ordered_cut", {}),
    ("anonymip.heuristics.classes.k_member:k_member", {}),
    ("anonymip.heuristics.local_search.local_search:local_search", {"from_method": "best"}),
)
_COVERS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("anonymip.heuristics.freeform.hungarian:hungarian", {}),
    ("anonymip.heuristics.freeform.reassign:reassign", {"from_method": "hungarian"}),
    ("anonymip.heuristics.freeform.reassign:reassign", {"from_method": "sort-greedy"}),
    ("anonymip.heuristics.freeform.ring:ring", {}),
)
_OF = MappingProxyType({"classes": _CLASSES, "freeform": _COVERS})
#: Of so few records the master finds the rest by itself, before kernels of heuristics are compiled.
FEW = 40
_FIRST = MappingProxyType(
    {
        "classes": "anonymip.heuristics.classes.initial:initial",
        "freeform": "anonymip.heuristics.freeform.ring:ring",
    }
)
#: What a heuristic may refuse that columns do not.
_REFUSALS: tuple[type[AnonymipError], ...] = (NoSolution, InputError, UnsupportedObjective)


def starting_releases(
    problem: Problem, start: Assignment | None, effort: str, seed: int, budget: Budget
) -> list[Solution]:
    """Return releases to start from, the best one first; none if nothing was found.

    Parameters
    ----------
    problem
        What is asked.
    start
        A release that is known; heuristics still run.
    effort, seed, budget
        Of the heuristics.

    Raises
    ------
    InvalidAssignment
        If the start breaks a rule.
    """
    found = [] if start is None else [Solution.of(problem, start, method="start")]
    recoding, few = problem.recoding.name, problem.n <= FEW
    first: dict[str, Mapping[str, object]] = {_FIRST[recoding]: {}} if few else {}
    for target, options in (*first.items(), *_OF[recoding]):
        if found and (few or budget.stop_reason() is not None):
            break
        module, _, name = target.partition(":")
        heuristic = getattr(importlib.import_module(module), name)
        taken = dict(options)
        if name in ("local_search", "reassign"):
            taken["effort"] = effort
        try:
            found.append(heuristic(problem, seed=seed, budget=budget, **taken))
        except _REFUSALS:
            continue
    return sorted(found, key=lambda solution: solution.objective)
