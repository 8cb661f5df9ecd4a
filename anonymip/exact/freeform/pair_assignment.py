r"""Freeform generalization with k = 2: an assignment problem, solved and proven by its duals.

With k = 2 every published record covers itself and one other, and every original is the other of
one record: a permutation :math:`\sigma` without fixed points of least
:math:`\sum_i c(\{i, \sigma(i)\})`. (That own records lie inside loses nothing: see
:mod:`anonymip.models.freeform.freeform`.)

For any duals v of the columns, :math:`u_i = \min_l (c_{il} - v_l)` makes u, v feasible for the
dual, so that :math:`\sum_i u_i + \sum_l v_l` is a bound. Those that the algorithm of the assignment
ends with make the two equal but for rounding; that the bound holds does not rest on them.

If limits leave no such permutation they leave no release: a regular cover by larger sets contains
one by pairs, which keep what their supersets keep.
"""

from __future__ import annotations

from math import fsum

import numpy as np

from anonymip.errors import NoSolution
from anonymip.graphs.weighted.assignment import assign
from anonymip.problem import Problem, losses_within_limits
from anonymip.recodings import Freeform
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.tolerances import LOSS_RELATIVE

#: Most records for which the matrix of all pairs is made: 0.5 GB at this number.
LARGEST_ASSIGNMENT = 8_000

#: So many records are assigned in less time than it takes to load the kernels that do it.
_SOON_ASSIGNED = 1_000

#: Pairs whose losses are computed at a time.
_BATCH = 200_000


def pair_obstacle(problem: Problem) -> str | None:
    """Return why a problem is no assignment of pairs; None if it is one."""
    recoding = problem.recoding
    if not isinstance(recoding, Freeform) or recoding.reciprocal:
        return "the recoding is not freeform, or sets are to be reciprocal"
    if recoding.suppression:
        return "records may be suppressed"
    if (recoding.sizes(problem) != 2).any():
        return "sets have more than two records"
    if problem.compiled.aggregate != "sum":
        return "the loss is the largest of a record, not a sum"
    if problem.diversity is not None:
        return "sets must be diverse, so that more than two records may be needed"
    if problem.n > LARGEST_ASSIGNMENT:
        return f"the table has more than {LARGEST_ASSIGNMENT:,} records"
    return None


def pair_losses_within_limits(problem: Problem, budget: Budget) -> Floats | None:
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


def best_partners(costs: Floats, budget: Budget) -> tuple[Ints, Floats] | None:
    """Return (n,) partners of an assignment of least cost, and (n,) duals of the columns.

    `costs`: (n, n), infinite where no pair is allowed. None if the budget ended before the
    assignment is complete; for few records only an interrupt ends it. Complexity: O(n^3) at worst.
    Raises NoSolution if limits leave no assignment.
    """
    if len(costs) <= _SOON_ASSIGNED:
        budget = budget.renewed(None)
    partners, duals, stopped = assign(costs, budget, phase="assignment of pairs")
    if (partners >= 0).all():
        return partners, duals
    if stopped is not None:
        return None
    raise NoSolution(
        "no release obeys the limits: the records cannot be covered in pairs",
        remedy="Loosen a limit",
    )


def dual_bound(costs: Floats, partners: Ints, duals: Floats) -> float:
    """Return a lower bound on the cost of every assignment, near the least for optimal duals.

    Any duals of the columns give a bound; the cost of the assignment to `partners` bounds the
    rounding of the costs and of this arithmetic, by which it is lowered. Complexity: O(n^2).
    """
    n = len(costs)
    own = costs[np.arange(n), partners]
    largest = float(np.abs(costs[np.isfinite(costs)]).max())
    # Row by row, since the difference of the whole would be a second matrix.
    lowest = [float((row - duals).min()) for row in costs]
    # An optimal assignment costs no less than the bound if no cost is negative.
    magnitude = fsum(own) if (costs >= 0).all() else n * largest
    rounding = LOSS_RELATIVE * magnitude
    rounding += 4.0 * n * np.finfo(float).eps * (largest + float(np.abs(duals).max()))
    return float(fsum(lowest) + fsum(duals) - rounding)
