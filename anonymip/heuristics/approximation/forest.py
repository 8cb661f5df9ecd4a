"""The approximation algorithm of Aggarwal et al. for any k: a forest of neighbours, cut up."""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.approximation.guarantees import factor_obstacle, loss_obstacle
from anonymip.heuristics.approximation.nearest_rows import NearestRows, nearest_rows
from anonymip.heuristics.approximation.neighbour_forest import grow_forest
from anonymip.heuristics.approximation.tree_parts import cut_trees, largest_part
from anonymip.heuristics.growing.consecutive import cut_in_order
from anonymip.heuristics.growing.finish import finish
from anonymip.objectives import GCP
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE


def forest(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Span the records by a forest of neighbours and cut its trees into classes [1]_.

    No release loses less than the records' distances to their (k-1)-th nearest neighbours; the
    forest weighs no more than these, and the classes lose at most max{2k - 1, 3k - 5} times its
    weight. The solution carries the sum of the distances as its bound, so that loss <= factor x
    bound shows in every answer, and the trace tells the factor.

    The guarantee holds for every monotone loss that is 0 for records published exactly and
    whose loss for overlapping classes together is no more than for both: hierarchies, weights,
    suppression, ranges and sets alike. With suppression of records a row of stars takes the place
    of all that is costlier. Diversity and limits are mended afterwards, and then no factor is
    claimed; neither is one for other losses. A loss without tables, or not monotone, is taken to
    be GCP while the forest grows.

    Parameters
    ----------
    problem
        With equivalence classes.
    budget
        When it ends, the records are cut into sets of k in the variance order, or the trees
        are cut no further.
    seed
        Not used: nothing is random.

    Notes
    -----
    The proof, with the repair of the paper's decomposition, stands in ``docs/approximation.md``.
    Complexity: one search of a tree for each distinct row and O(n k log n) time, O(n k) memory.

    References
    ----------
    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 4.

    Raises
    ------
    NoSolution
        If no classes are found that keep the limits and the diversity.
    """
    watch, budget = Stopwatch(), budget or Budget()
    known = problem.compiled.has_tables and problem.compiled.monotone
    guide = problem if known else Problem(problem.microdata, problem.k, objective=GCP())
    near, stopped = nearest_rows(guide, budget)
    bound = None
    if stopped is None:
        grown = grow_forest(guide.compiled.tables, near, problem.k)
        parts, stopped = cut_trees(grown, problem.k, budget)
        labels = np.empty(problem.n, np.int64)
        labels[near.records] = parts
        if loss_obstacle(problem) is None:
            value = fsum(_least_charges(problem, near)) * (1.0 - LOSS_RELATIVE)
            bound = Bound(value, "nearest neighbours of the forest", "argument", watch.seconds)
    else:
        labels = np.full(problem.n, -1, np.int64)
        cut_in_order(labels, find_order(problem, "variance", Budget()), problem.k, 0)
    solution = finish(
        problem,
        labels,
        "forest",
        watch,
        budget=budget,
        stopped=stopped,
        trace=(_claim(problem, stopped),),
    )
    return solution if bound is None else solution.with_bound(bound)


def _least_charges(problem: Problem, near: NearestRows) -> NDArray[np.float64]:
    """Return (n,) what each record loses at least: its (k-1)-th neighbour, or a row of stars."""
    # What is left of a difference by rounding must not lift the bound.
    charges = np.maximum(near.farthest - problem.rounding, 0.0)
    if getattr(problem.recoding, "suppression", False):
        charges = np.minimum(charges, problem.compiled.suppression_price)
    return np.repeat(charges, np.diff(near.start))


def _claim(problem: Problem, stopped: Stopped | None) -> str:
    obstacle = factor_obstacle(problem)
    if stopped is not None:
        obstacle = "it was stopped early"
    if obstacle is not None:
        return f"no factor is claimed: {obstacle}"
    factor = largest_part(problem.k)
    return f"loss at most {factor} times the optimum: factor max{{2k - 1, 3k - 5}}"
