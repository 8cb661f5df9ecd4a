"""Greedy Search of Liang & Samavi."""

from __future__ import annotations

from anonymip.budget import Budget
from anonymip.heuristics.arrangement import arrange
from anonymip.heuristics.finish import finish
from anonymip.heuristics.growth import grow_classes
from anonymip.heuristics.orders import find_order
from anonymip.kernels import Stopwatch
from anonymip.problem import Problem
from anonymip.solution import Solution


def greedy_search(
    problem: Problem,
    *,
    order: str = "variance",
    search: str = "auto",
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Grow each class from the first record left by the record that costs least [1]_.

    Fewer than k records left at the end join, one by one, the class whose new loss is least.

    Parameters
    ----------
    problem
        With equivalence classes.
    order
        Name of the order that seeds are taken in and ties are broken by: ``variance`` as in the
        paper, ``cardinality``, ``snake``, ``hilbert``, ``neighbour``; each with ``+2opt``.
    search
        How the cheapest record is found: ``scan`` looks at all, ``tree`` at few of them through a
        k-d tree (monotone objectives), ``auto`` picks. The result is the same.
    budget
        When it ends, the records left are cut into sets of k in order.
    seed
        Not used: nothing is random.

    Notes
    -----
    Complexity: O(t n m) time with the scan for t distinct rows, identical rows being merged.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Section 3.2, Algorithm 2 and Table 7.

    Raises
    ------
    InputError
        If order or search is unknown, or the tree does not fit the objective.
    """
    watch, budget = Stopwatch(), budget or Budget()
    arranged = arrange(problem, find_order(problem, order, budget))
    labels, stopped = grow_classes(
        problem, arranged, budget, search=search, farthest_from=None, by_increase=False
    )
    return finish(
        problem,
        labels,
        "greedy-search",
        watch,
        stopped=stopped,
        options={"order": order, "search": search},
    )
