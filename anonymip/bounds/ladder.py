"""The ladder of bounds by duals of records: nearest neighbours, k-sets, dual ascent."""

from __future__ import annotations

import math

from anonymip.bounds.nearest_neighbour import bound_of_terms, lowered_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.effort import check_effort
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.recodings.registry import COVERING_K, published_form
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound

#: Losses computed, times columns: about 2e8 a second.
_CELLS = {"quick": 5e8, "normal": 4e9, "thorough": 1e11}
#: Shares of what is left that k-sets take at most, and all sweeps but the last.
_SHARE_OF_K_SETS, _SHARE_OF_SWEEPS = 0.4, 0.8
#: How far duals are raised, in k-set terms, if so many losses may be computed for each row type.
_FACTORS = ((8_000, 2.5), (3_000, 2.0), (1_000, 1.5), (0, 1.25))
#: Shares of the way at which a dual stands in between.
_STEPS = (0.5, 1.0)
#: Losses that one search may compute.
_EACH = 200_000


def ladder_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release, as good as the effort allows.

    The rungs are nearest neighbours, k-sets, and an ascent from there, first a short way and then a
    long one; see :mod:`anonymip.bounds.record_duals` for what holds. The name of the bound says on
    which rung it stands, and whether the work ended before all records were looked at.

    Parameters
    ----------
    problem
        With a monotone objective that has tables.
    effort
        How much work: ``"quick"`` ends with k-sets, ``"normal"`` takes about 20 s at most and
        ``"thorough"`` about ten minutes. None for thorough within a time limit, else normal.
    budget
        Ends the work; what was reached until then is a bound.

    Returns
    -------
    Bound or None
        None where nearest neighbours bound nothing either, or the objective has no tables.

    Notes
    -----
    Exact up to rounding, by which every dual is lowered. Counts work and not seconds: the same
    effort gives the same bound. Complexity: exponential in k for one row, but ended after a number
    of losses with what is proven until then.
    """
    compiled = problem.compiled
    covering = published_form(problem.recoding) in COVERING_K
    if not (compiled.monotone and compiled.has_tables and covering):
        return None
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    terms, complete = lowered_terms(problem, budget, effort)
    remarks = [] if complete else ["cut short"]
    best = bound_of_terms(problem, terms, "nearest-neighbour", remarks, watch)
    # With k = 2 a set is a pair.
    if not complete or (problem.k == 2 and not _duals_hold(problem)):
        return best
    duals = RecordDuals(problem, terms, _CELLS[effort], budget)
    complete = duals.raise_to_k_sets(_SHARE_OF_K_SETS if effort != "quick" else 1.0)
    remarks = [] if complete else ["cut short"]
    best = _better(best, bound_of_terms(problem, duals.terms(), "k-sets", remarks, watch))
    if effort == "quick" or not _duals_hold(problem):
        return best
    factors = _factors(duals, effort)
    for sweeps, factor in enumerate(factors, 1):
        if duals.left <= 0 or budget.stop_reason() is not None:
            break
        share = _SHARE_OF_SWEEPS if sweeps < len(factors) else 1.0
        complete = duals.ascend(factor, _STEPS, _EACH, share)
        remarks = [] if complete else ["cut short"]
        best = _better(best, bound_of_terms(problem, duals.terms(), "dual ascent", remarks, watch))
    return best


def _duals_hold(problem: Problem) -> bool:
    """Return whether the sum of feasible duals bounds the loss: who covers whom is regular."""
    if problem.compiled.aggregate != "sum":
        return False
    recoding = problem.recoding
    if isinstance(recoding, Freeform):
        return recoding.degrees is None
    return published_form(recoding) == "classes"


def _factors(duals: RecordDuals, effort: str) -> tuple[float, ...]:
    """Return how far the duals are raised, sweep by sweep: what is safe comes first."""
    each = math.inf if effort == "thorough" else duals.left / len(duals.counts)
    most = next(factor for least, factor in _FACTORS if each >= least)
    return tuple(sorted({_FACTORS[-1][1], most}))


def _better(one: Bound, other: Bound) -> Bound:
    """Return the higher bound, the first one if they are equal."""
    return other if other.value > one.value else one
