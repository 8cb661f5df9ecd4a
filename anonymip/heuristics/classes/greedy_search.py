"""Greedy Search of Liang & Samavi."""

from __future__ import annotations

from anonymip.heuristics.growing.growth import grow
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution


def greedy_search(
    problem: Problem,
    *,
    order: str = "variance",
    search: str = "auto",
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Grow each class from the first record left by the record that costs least [1]_.

    Fewer than k records left at the end join, one by one, the class whose new loss is least.
    Under limits only records that keep them join; under a diversity a class grows until it has
    k records and is diverse.

    `problem`: with equivalence classes.
    `order`: name of the order that seeds are taken in and ties are broken by: ``variance`` as in
    the paper, ``cardinality``, ``snake``, ``hilbert``, ``neighbour``; each with ``+2opt``.
    `search`: how the cheapest record is found: ``scan`` looks at all, ``tree`` at few of them
    through a k-d tree (monotone objectives), ``auto`` picks. The result is the same.
    `effort`: how much work where batches are evaluated: with less, large tables have fewer
    candidates.
    `budget`: when it ends, the records left are cut into sets of k in order.
    Raises InputError if order or search is unknown, or the tree does not fit the problem;
    NoSolution if no classes are found that keep the limits.

    Complexity: O(t n m) time with the scan for t distinct rows, identical rows being merged.
    Losses without tables, limits and diversities are evaluated in batches of NumPy, which takes
    O(n min(n, 2000) k m) time; with tables and more than 20 000 records the classes are grown
    without the rules and then repaired.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Section 3.2, Algorithm 2 and Table 7.
    """
    watch, budget = Stopwatch(), budget or Budget()
    given = problem, find_order(problem, order, budget), "greedy-search", watch, budget
    return grow(*given, search=search, effort=effort, options={"order": order})
