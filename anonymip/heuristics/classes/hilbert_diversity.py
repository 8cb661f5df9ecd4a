"""Diverse classes along a Hilbert curve."""

from __future__ import annotations

import numpy as np

from anonymip.heuristics.classes.anatomy import ValueBuckets, different_values, joined_groups
from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import labels_of, place_leftovers
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Records left over that are placed by loss; more than that are left to the repair.
_PLACED = 200


def hilbert_diversity(
    problem: Problem, *, order: str = "hilbert", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Group records of different sensitive values that are near on a Hilbert curve [1]_.

    Each sensitive value has a bucket of its records along the curve. A group takes the next record
    of those values that would otherwise become too frequent among the records left, and then of
    those whose next record comes first. Records left over join the class whose loss grows least
    and that stays diverse.

    `problem`: with equivalence classes and a diversity. `order`: name of an order: ``hilbert``,
    ``variance``, ``cardinality``, ``snake``, ``neighbour``; each with ``+2opt``. `budget`: when it
    ends, the records left are grouped by the repair. Raises InputError if no diversity is asked
    for, or there is no such order; NoSolution if no classes are found that keep the rules.

    For k above l groups that follow each other are joined until they have k records. With several
    sensitive columns the records of a group differ in each of them. Classes that break a limit are
    repaired, as are groups where no records of different values are left. Complexity:
    O(n v log v / l) for v values.

    References
    ----------
    .. [1] G. Ghinita, P. Karras, P. Kalnis, N. Mamoulis: Fast Data Anonymization with Low
       Information Loss, VLDB 2007.
    """
    watch, budget = Stopwatch(), budget or Budget()
    count = different_values(problem, "hilbert-diversity")
    records = find_order(problem, order, budget)
    buckets = ValueBuckets(problem, records)
    left, groups = problem.n, list[list[int]]()
    stopped: Stopped | None = budget.stop_reason()
    while stopped is None:
        # What is left afterwards must have no value in more than one of `count` records.
        pressing = buckets.left * count > left - count
        group = buckets.take(np.lexsort((buckets.heads(), ~pressing)), count)
        if not group:
            break
        groups.append(group)
        left -= count
        stopped = budget.stop_reason()
    groups = joined_groups(groups, problem.k)
    rest = buckets.rest()
    if stopped is None and len(rest) <= _PLACED:
        place_leftovers(problem, groups, rest, by_increase=True)
    return finish(
        problem,
        labels_of(groups, problem.n),
        "hilbert-diversity",
        watch,
        budget=budget,
        stopped=stopped,
        options={"order": order},
    )
