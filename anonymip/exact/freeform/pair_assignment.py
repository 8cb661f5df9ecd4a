r"""Freeform generalization with k = 2: an assignment problem, solved and proven by its duals.

With k = 2 every published record covers itself and one other, and every original is the other of
one record: a permutation :math:`\sigma` without fixed points of least
:math:`\sum_i c(\{i, \sigma(i)\})`. (That own records lie inside loses nothing: see
:mod:`anonymip.models.freeform.freeform`.)

For any prices v, :math:`u_i = \min_l (c_{il} - v_l)` makes u, v feasible for the dual, so that
:math:`\sum_i u_i + \sum_l v_l` is a bound. At the optimum there are prices for which the two are
equal: the lengths of shortest paths in the residual graph, in which taking l instead of
:math:`\sigma(i)` costs :math:`c_{il} - c_{i \sigma(i)}`. They are computed here, by the algorithm
of Bellman and Ford, so that nothing rests on the word of the solver of the assignment.

If limits leave no such permutation they leave no release: a regular cover by larger sets contains
one by pairs, which keep what their supersets keep.
"""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from anonymip.assignments import Cover
from anonymip.errors import NoSolution
from anonymip.problem import Problem
from anonymip.problem_rules import losses_within_limits
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget
from anonymip.tolerances import LOSS_RELATIVE

#: Records beyond which the matrix of all pairs, 0.5 GB at this number, is not made.
LARGEST_ASSIGNMENT = 8_000

#: Pairs whose losses are computed at a time.
_BATCH = 200_000


def pair_obstacle(problem: Problem) -> str | None:
    """Return why a problem is no assignment of pairs; None if it is one."""
    recoding = problem.recoding
    if not isinstance(recoding, Freeform) or recoding.reciprocal:
        return "the recoding is not freeform, or sets are to be reciprocal"
    if (recoding.sizes(problem) != 2).any():
        return "sets have more than two records"
    if problem.compiled.aggregate != "sum":
        return "the loss is the largest of a record, not a sum"
    if problem.diversity is not None:
        return "sets must be diverse, so that more than two records may be needed"
    if problem.n > LARGEST_ASSIGNMENT:
        return f"the table has more than {LARGEST_ASSIGNMENT:,} records"
    return None


def pair_losses_within_limits(problem: Problem, budget: Budget) -> NDArray[np.float64] | None:
    """Return (n, n) losses of a record published with another, infinite where none may be.

    None if the budget ended before.
    """
    n = problem.n
    costs = np.full((n, n), np.inf)
    at_once = max(1, _BATCH // n)
    for begin in range(0, n - 1, at_once):
        if budget.stop_reason() is not None:
            return None
        end = min(begin + at_once, n - 1)
        first, second = np.triu_indices(end - begin, begin + 1, n)
        first += begin
        losses = losses_within_limits(problem, np.stack([first, second], axis=1)) / 2.0
        costs[first, second] = costs[second, first] = losses
        budget.report("losses of pairs", done=end, total=n - 1)
    return costs


def best_partners(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return (n,) the partner of each record in an assignment of least cost.

    Raises
    ------
    NoSolution
        If limits leave none.

    Notes
    -----
    Complexity: O(n^3) at worst; it cannot be interrupted.
    """
    try:
        _, partners = linear_sum_assignment(costs)
    except ValueError as error:
        raise NoSolution(
            "no release obeys the limits: the records cannot be covered in pairs",
            remedy="Loosen a limit",
        ) from error
    return np.asarray(partners, np.int64)


def dual_bound(costs: NDArray[np.float64], partners: NDArray[np.int64], budget: Budget) -> float:
    """Return a lower bound on the cost of every assignment, the cost of an optimal one if given.

    Parameters
    ----------
    costs
        (n, n), infinite on the diagonal.
    partners
        (n,) a permutation, best an optimal one.
    budget
        When it ends, the prices found so far give a lower bound.

    Notes
    -----
    Lowered by the rounding of the costs and of this arithmetic. Complexity: O(n^2) for each round
    of Bellman and Ford's algorithm, n of them at worst.
    """
    n = len(costs)
    own = costs[np.arange(n), partners]
    largest = float(np.abs(costs[np.isfinite(costs)]).max())
    prices = np.zeros(n)
    for _ in range(n):
        ways = (prices[partners] - own)[:, None] + costs
        shorter = np.minimum(prices, ways.min(axis=0))
        # Paths around a circle of length 0 get shorter by their rounding for ever.
        settled = prices - shorter <= 4.0 * np.finfo(float).eps * largest
        if settled.all() or budget.stop_reason() is not None:
            break
        prices = shorter
    lowest = (costs - prices).min(axis=1)
    # An optimal assignment costs no less than the bound if no cost is negative.
    magnitude = fsum(own) if (costs >= 0).all() else n * largest
    rounding = LOSS_RELATIVE * magnitude
    rounding += 4.0 * n * np.finfo(float).eps * (largest + float(np.abs(prices).max()))
    return float(fsum(lowest) + fsum(prices) - rounding)


def cover_of_pairs(partners: NDArray[np.int64]) -> Cover:
    """Return the cover in which every record covers itself and its partner."""
    return Cover.of(np.stack([np.arange(len(partners)), partners], axis=1))
