"""The method that picks a method."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anonymip.budget import Budget
from anonymip.methods.registry import find_method
from anonymip.problem import Problem
from anonymip.solution import Solution

#: Up to so many records the MILP is proven optimal within seconds.
LARGEST_EXACT = 12


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
    if problem.n > LARGEST_EXACT:
        name, reason = "greedy-search", f"more than {LARGEST_EXACT} records"
    elif not problem.compiled.monotone:
        name, reason = "greedy-search", "the objective is not proven monotone"
    else:
        name, reason = "equivalence-mip", f"at most {LARGEST_EXACT} records: provable"
    spec = find_method(name)
    taken = {key: value for key, value in settings.items() if key in spec.takes}
    solution: Solution = spec.load()(problem, budget=budget, seed=seed, **taken)
    return replace(solution, trace=(f"auto picked {name}: {reason}", *solution.trace))
