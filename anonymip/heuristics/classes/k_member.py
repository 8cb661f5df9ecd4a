"""The greedy k-member clustering of Byun et al."""

from __future__ import annotations

import numpy as np

from anonymip.heuristics.classes.greedy_search import grow
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution


def k_member(
    problem: Problem,
    *,
    search: str = "auto",
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Grow each class from the record farthest from the last one placed [1]_.

    The first seed is farthest from a record drawn at random. Fewer than k records left at the end
    join the class whose loss rises least. Under limits only records that keep them join; under a
    diversity a class grows until it has k records and is diverse.

    `problem`: with equivalence classes.
    `search`: how the cheapest record is found: ``scan``, ``tree`` (monotone objectives) or
    ``auto``. The result is the same.
    `effort`: how much work where batches are evaluated: with less, large tables have fewer
    candidates.
    `budget`: when it ends, the records left are cut into sets of k in the variance order.
    `seed`: of the record drawn at random.
    Raises InputError if search is unknown, or the tree does not fit the problem; NoSolution if no
    classes are found that keep the limits.

    Complexity: O(t n m) time for t distinct rows. Losses without tables, limits and diversities
    are evaluated in batches, as in greedy-search.

    References
    ----------
    .. [1] J.-W. Byun, A. Kamra, E. Bertino, N. Li: Efficient k-Anonymization Using Clustering
       Techniques, DASFAA 2007, doi:10.1007/978-3-540-71703-4_18.
    """
    watch, budget = Stopwatch(), budget or Budget()
    given = problem, find_order(problem, "variance", budget), "k-member", watch, budget
    drawn = np.random.default_rng(seed)
    return grow(*given, search=search, effort=effort, drawn=drawn, seed=seed)
