"""The greedy k-member clustering of Byun et al."""

from __future__ import annotations

import numpy as np

from anonymip.budget import Budget
from anonymip.heuristics.arrangement import arrange
from anonymip.heuristics.finish import finish
from anonymip.heuristics.growth import grow_classes
from anonymip.heuristics.orders import find_order
from anonymip.kernels import Stopwatch
from anonymip.problem import Problem
from anonymip.solution import Solution


def k_member(
    problem: Problem, *, search: str = "auto", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Grow each class from the record farthest from the last one placed [1]_.

    The first seed is farthest from a record drawn at random. Fewer than k records left at the end
    join the class whose loss rises least.

    Parameters
    ----------
    problem
        With equivalence classes.
    search
        How the cheapest record is found: ``scan``, ``tree`` (monotone objectives) or ``auto``.
        The result is the same.
    budget
        When it ends, the records left are cut into sets of k in the variance order.
    seed
        Of the record drawn at random.

    Notes
    -----
    Complexity: O(t n m) time for t distinct rows.

    References
    ----------
    .. [1] J.-W. Byun, A. Kamra, E. Bertino, N. Li: Efficient k-Anonymization Using Clustering
       Techniques, DASFAA 2007, doi:10.1007/978-3-540-71703-4_18.

    Raises
    ------
    InputError
        If search is unknown, or the tree does not fit the objective.
    """
    watch, budget = Stopwatch(), budget or Budget()
    arranged = arrange(problem, find_order(problem, "variance", budget))
    drawn = int(np.random.default_rng(seed).integers(arranged.types))
    labels, stopped = grow_classes(
        problem, arranged, budget, search=search, farthest_from=drawn, by_increase=True
    )
    return finish(
        problem, labels, "k-member", watch, stopped=stopped, options={"search": search}, seed=seed
    )
