"""The ladder of bounds by duals of records: nearest neighbours, k-sets, dual ascent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.nearest_neighbour import bound_of_terms, lowered_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.effort import check_effort
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.recodings.registry import COVERING_K, published_form
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound

#: Losses computed, times columns: about 2e8 a second.
_CELLS = {"quick": 5e8, "normal": 4e9, "thorough": 1e11}
#: Shares of what is left that k-sets take at most, and all sweeps but the last.
_SHARE_OF_K_SETS, _SHARE_OF_SWEEPS = 0.4, 0.8
#: How far duals are raised, in k-set terms, if so many losses may be computed for each row type.
_FACTORS = ((8_000, 2.5), (3_000, 2.0), (1_000, 1.5), (0, 1.25))
#: How far a thorough ascent raises them.
_FARTHEST = 3.0
#: Shares of the way at which a dual stands in between, and losses that one search may compute;
#: thorough ones go by shorter steps and search longer.
_STEPS, _EACH = (0.5, 1.0), 200_000
_SHORT_STEPS, _MANY = (0.25, 0.5, 0.75, 1.0), 1_000_000


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
    best = bound_of_terms(problem, terms, "nearest-neighbour", _remarks(complete), watch)
    # With k = 2 a set is a pair.
    if not complete or (problem.k == 2 and not _duals_hold(problem)):
        return best
    try:
        for bound in _higher_rungs(problem, terms, effort, budget, watch):
            best = bound if bound.value > best.value else best
    except CompilationStopped:
        pass  # what is proven by then is a bound
    return best


def _higher_rungs(
    problem: Problem, terms: NDArray[np.float64], effort: str, budget: Budget, watch: Stopwatch
) -> Iterator[Bound]:
    """Yield the bounds by k-sets and by every sweep of the ascent."""
    duals = RecordDuals(problem, terms, _CELLS[effort], budget)
    complete = duals.raise_to_k_sets(_SHARE_OF_K_SETS if effort != "quick" else 1.0)
    yield bound_of_terms(problem, duals.terms(), "k-sets", _remarks(complete), watch)
    if effort == "quick" or not _duals_hold(problem):
        return
    factors = _factors(duals, effort)
    for sweep, factor in enumerate(factors, 1):
        if duals.left <= 0 or budget.stop_reason() is not None:
            return
        share = _SHARE_OF_SWEEPS if sweep < len(factors) else 1.0
        steps, each = (_SHORT_STEPS, _MANY) if factor == _FARTHEST else (_STEPS, _EACH)
        complete = duals.ascend(factor, steps, each, share)
        yield bound_of_terms(problem, duals.terms(), "dual ascent", _remarks(complete), watch)


def _remarks(complete: bool) -> tuple[str, ...]:
    return () if complete else ("cut short",)


def _duals_hold(problem: Problem) -> bool:
    """Return whether the sum of feasible duals bounds the loss: who covers whom is regular."""
    if problem.compiled.aggregate != "sum":
        return False
    recoding = problem.recoding
    if type(recoding) is Freeform:  # another may allow other covers
        return recoding.degrees is None
    return published_form(recoding) == "classes"


def _factors(duals: RecordDuals, effort: str) -> tuple[float, ...]:
    """Return how far the duals are raised, sweep by sweep: what is safe comes first."""
    if effort == "thorough":
        return (_FACTORS[-1][1], _FACTORS[0][1], _FARTHEST)
    each = duals.left / len(duals.counts)
    most = next(factor for least, factor in _FACTORS if each >= least)
    return tuple(sorted({_FACTORS[-1][1], most}))
