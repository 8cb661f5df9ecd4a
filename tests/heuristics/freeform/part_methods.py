"""Methods for the parts of a table, in a module that a process imports in no time."""

from __future__ import annotations

import time

from anonymip.errors import NoSolution
from anonymip.heuristics.freeform.ring import ring
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution


def failing(problem: Problem, *, budget: Budget, seed: int) -> Solution:
    """Find nothing."""
    raise NoSolution("this part has none", remedy="Look elsewhere")


def sleeping(problem: Problem, *, budget: Budget, seed: int) -> Solution:
    """Wait until the budget ends."""
    while budget.stop_reason() is None:
        time.sleep(0.02)
    return ring(problem, budget=budget)
