"""The initial feasible solution: sort, and cut into sets of k."""

from __future__ import annotations

import numpy as np

from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import cut_in_order
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution


def initial(
    problem: Problem, *, order: str = "variance", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Sort the records and take consecutive sets of k, the tail in the last one [1]_.

    Sets that break a limit or lack the diversity are repaired.

    `problem`: with equivalence classes. `order`: name of an order: ``variance`` as in the paper,
    ``cardinality``, ``snake``, ``hilbert``, ``neighbour``; each with ``+2opt``. `budget`: stops the
    making of the order. Complexity: O(n log n) for the orders that sort. Raises InputError if there
    is no such order; NoSolution if no classes are found that keep the limits.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Section 2.3.
    """
    watch, budget = Stopwatch(), budget or Budget()
    labels = np.full(problem.n, -1, np.int64)
    cut_in_order(labels, find_order(problem, order, budget), problem.k, 0)
    return finish(
        problem,
        labels,
        "initial",
        watch,
        budget=budget,
        stopped=budget.stop_reason(),
        options={"order": order},
    )
