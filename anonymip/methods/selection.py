"""The method that picks a method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anonymip.budget import Budget
from anonymip.errors import NoSolution
from anonymip.methods.registry import find_method
from anonymip.models import model_size
from anonymip.problem import Problem
from anonymip.solution import Solution

#: Beyond so many records there are more classes, but for duplicates.
_FEW_RECORDS = 200
#: Up to so many possible classes set partitioning is proven optimal within seconds.
FEW_CLASSES = 100_000


def auto(
    problem: Problem, *, budget: Budget | None = None, seed: int = 0, **settings: Any
) -> Solution:
    """Pick a method by size and objective, run it, and say in the trace what was picked and why.

    Parameters
    ----------
    problem
        What is asked.
    budget, seed, **settings
        Handed on to the method picked.
    """
    names, reason = _pick(problem)
    for name in names[:-1]:
        try:
            return _run(name, reason, problem, budget, seed, settings)
        except NoSolution:
            reason = f"{name} found nothing that obeys the limits"
    return _run(names[-1], reason, problem, budget, seed, settings)


def _run(
    name: str,
    reason: str,
    problem: Problem,
    budget: Budget | None,
    seed: int,
    settings: dict[str, Any],
) -> Solution:
    spec = find_method(name)
    taken = {key: value for key, value in settings.items() if key in spec.takes}
    solution: Solution = spec.load()(problem, budget=budget, seed=seed, **taken)
    return replace(solution, trace=(f"auto picked {name}: {reason}", *solution.trace))


def _pick(problem: Problem) -> tuple[tuple[str, ...], str]:
    """Return the methods to try, one after the other, and why."""
    classes = model_size(problem, "set-partition") if problem.n <= _FEW_RECORDS else None
    if classes is not None and classes <= FEW_CLASSES:
        return ("equivalence-mip",), f"{classes:,} possible classes: provable"
    reason = f"more than {FEW_CLASSES:,} possible classes"
    # Under limits a heuristic may find nothing where another does.
    others = ("ordered-cut", "mondrian") if problem.limits else ()
    return ("greedy-search", *others), reason
