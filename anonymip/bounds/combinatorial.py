"""The best combinatorial bound that holds for a problem."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import fsum

import numpy as np
from scipy.spatial import cKDTree

from anonymip.bounds.class_means import MeanDuals
from anonymip.bounds.cover_duals import cover_bound, is_priced
from anonymip.bounds.ladder import has_ladder, ladder_bound
from anonymip.bounds.nearest_neighbour import (
    k_set_bound,
    nearest_neighbour_bound,
    nearest_neighbour_terms,
)
from anonymip.effort import check_effort
from anonymip.errors import UnsupportedObjective
from anonymip.objectives import SSE
from anonymip.problem import Problem
from anonymip.recodings import KConcealment, KOne, OneK, PatternGuided
from anonymip.recodings.registry import published_form
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_over
from anonymip.solution import Bound, under_assumptions
from anonymip.tolerances import LOSS_RELATIVE, SEARCH_ROUNDING

#: Pairs of distinct rows looked at for what hides an original.
_PAIRS = 2_000_000
#: Records up to which squared errors are left to nearest ones: their linear program is soon solved.
_FEW = 40


def lower_bound_of(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release, by whichever argument holds.

    Monotone record losses are bounded by duals of records, which begin with nearest neighbours, or
    by what the weaker notions leave of these and by their prices of originals; squared errors by
    nearest squared distances; releases by patterns by duals of records of their own.

    `effort`: how much work; None for thorough within a time limit, else normal. `budget`: when it
    ends, records not looked at count as if they were published exactly. Returns: None if no
    argument holds.
    """
    if isinstance(problem.recoding, PatternGuided):
        # Imported late: only patterns need it.
        from anonymip.bounds.patterns.pattern_lagrangian import pattern_bound

        by_duals = pattern_bound(problem, budget=budget)
        if by_duals is not None:
            return by_duals
    if isinstance(problem.objective, SSE):
        return squared_error_bound(problem, effort=effort, budget=budget)
    for bound in (ladder_bound, k_set_bound, nearest_neighbour_bound, weaker_notion_bound):
        found = bound(problem, effort=effort, budget=budget)
        if found is not None:
            priced = cover_bound(problem, effort=effort, budget=budget)
            return found if priced is None or priced.value <= found.value else priced
    return None


def climbs(problem: Problem) -> bool:
    """Return whether :func:`lower_bound_of` is that of the ladder."""
    by_others = isinstance(problem.recoding, PatternGuided) or isinstance(problem.objective, SSE)
    return not by_others and not is_priced(problem) and has_ladder(problem)


def bound_in_time(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return :func:`lower_bound_of`, or None too if the run ends while its kernels are compiled."""
    try:
        return lower_bound_of(problem, effort=effort, budget=budget)
    except CompilationStopped:
        return None


def record_terms(problem: Problem, budget: Budget | None = None) -> Floats | None:
    """Return (n,) what each record adds at least to the loss of its class; None if unknown.

    With the aggregate ``"max"`` it is what the record itself loses at least.

    `budget`: when it ends, records not looked at count as if they were published exactly.
    """
    if _is_squared_error(problem):
        return squared_error_terms(problem, budget)[0]
    if not problem.compiled.monotone:
        return None
    return nearest_neighbour_terms(problem, budget)


def squared_error_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the squared errors of any release, None for other objectives.

    The squared errors of a class S of s records are the sum over its members i of
    (1 / 2s) sum of d2(i, j) over the j in S. Let d(1) <= d(2) <= ... be the squared distances of
    i to all other records, so that i pays f(s) = (1 / 2s) (d(1) + ... + d(s-1)) at least. f does
    not fall: f(s) <= f(s+1) says that (s+1) (d(1) + ... + d(s-1)) <= s (d(1) + ... + d(s)), that
    is d(1) + ... + d(s-1) <= s d(s), which holds since none of the s - 1 summands exceeds d(s).
    With s >= k, i pays f(k) at least; where records may be suppressed, at least the lesser of
    this and the price of a suppressed record. The bound is the sum over the records, or what duals
    raised from these terms on prove beyond it: see :mod:`anonymip.bounds.class_means`. In one
    column the best classes lie next to each other [1]_: the bound is what their best cut costs.

    `problem`: equivalence classes with the objective SSE. `effort`: how much work: ``"quick"`` ends
    with the terms, ``"normal"`` goes on for a quarter of a minute at most, ``"thorough"`` for two
    minutes. None for thorough within a time limit, else normal. `budget`: when it ends, records not
    looked at count as 0, and the best duals so far are the result.

    Distances are lowered by their rounding errors. Complexity: k neighbours of every record in a
    k-d tree; O(n k) for one column.

    References
    ----------
    .. [1] S. L. Hansen, S. Mukherjee: A polynomial algorithm for optimal univariate
       microaggregation, IEEE TKDE 15(4), 2003, doi:10.1109/TKDE.2003.1209020.
    """
    if not _is_squared_error(problem):
        return None
    budget, watch = budget or Budget(), Stopwatch()
    if is_cut(problem):
        with suppress(CompilationStopped):
            least = _least_cut(problem, budget)
            if least is not None:
                return Bound(least, "best cut of one column", "argument", watch.seconds)
    effort = check_effort(effort, limited=budget.deadline is not None)
    terms, complete = squared_error_terms(problem, budget)
    method = "nearest squared errors"
    if complete and problem.n > _FEW:
        duals = MeanDuals(problem, terms, budget)
        # What is proven by then is a bound.
        with suppress(CompilationStopped):
            complete = False
            complete = duals.climb(effort)
        raised = duals.terms()
        if fsum(raised) > fsum(terms):
            terms, method = raised, "duals over class means"
        else:
            complete = True
    remark = "" if complete else " (cut short)"
    return Bound(fsum(terms), method + remark, "argument", watch.seconds)


def _is_squared_error(problem: Problem) -> bool:
    # A subclass may charge something else.
    return type(problem.objective) is SSE and published_form(problem.recoding) == "classes"


def is_cut(problem: Problem) -> bool:
    """Return whether the least squared errors are those of a cut: one column, nobody left out."""
    return _is_squared_error(problem) and problem.m == 1 and not problem.may_suppress


def _least_cut(problem: Problem, budget: Budget) -> float | None:
    """Return the squared errors of the best cut of one column, lowered; None if time ended."""
    assert isinstance(problem.objective, SSE)
    values = np.sort(problem.objective.points(problem.microdata)[:, 0])
    best = np.full(problem.n + 1, np.inf)
    best[0] = 0.0
    step = partial(_extend_cuts, values, problem.k, best)
    if run_over(step, problem.n, budget, "cutting one column", first=1000) is not None:
        return None
    eps = float(np.finfo(np.float64).eps)
    summed = float(best[-1]) * (1 - max(SEARCH_ROUNDING, problem.n * eps))
    # The root of squared errors is a norm, in which rounded values are off by this much.
    off = 2 * eps * float(np.abs(values).max()) * problem.n**0.5
    return max(0.0, summed**0.5 - off) ** 2


@kernel
def _extend_cuts(values: Floats, k: int, best: Floats, first: int, last: int) -> None:
    """Extend the best cuts by classes that begin at one of the places before `last`."""
    n = len(values)
    for start in range(first, last):
        mean = errors = 0.0
        for end in range(start + 1, min(start + 2 * k, n + 1)):
            value = values[end - 1] - values[start]
            distance = value - mean
            mean += distance / (end - start)
            errors += distance * (value - mean)
            if end - start >= k:
                best[end] = min(best[end], best[start] + errors)


def squared_error_terms(problem: Problem, budget: Budget | None = None) -> tuple[Floats, bool]:
    """Return (n,) what each record adds at least to the squared errors of its class.

    They are lowered by their rounding errors. The second value says whether all were computed.
    Raises UnsupportedObjective if the objective is not SSE.
    """
    if not _is_squared_error(problem):
        raise UnsupportedObjective(
            f"the bound on squared errors does not hold for {problem.compiled.name!r}",
            remedy="Use the objective sse with equivalence classes",
        )
    n, k = problem.n, problem.k
    assert isinstance(problem.objective, SSE)
    points = problem.objective.points(problem.microdata)
    tree = cKDTree(points)
    # Differences of coordinates are off by this much at most, and distances by its root of m.
    error = 4 * np.finfo(np.float64).eps * float(np.abs(points).max()) * problem.m**0.5
    terms = np.zeros(n)

    def step(begin: int, end: int) -> None:
        distances, _ = tree.query(points[begin:end], k=k)
        lowered = np.maximum(0.0, distances * (1 - LOSS_RELATIVE) - error)
        # The record itself is among the k, at distance 0.
        terms[begin:end] = (lowered**2).sum(axis=1) / (2 * k)

    stopped = run_over(step, n, budget or Budget(), "bound on squared errors", first=1_000)
    # Not a number where records cannot be suppressed: then the terms stay.
    return np.fmin(terms, problem.compiled.suppression_price), stopped is None


def weaker_notion_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release.

    With (1,k)-anonymity a record may be published exactly, if others cover it: the bound is what
    exact cells lose, and what some original costs those that hide it besides its equals. It needs
    k - e others, e being the records equal to it; the published record of i that covers it loses
    what both lose together at least, c({i, j}) - c({i}) more than its exact cells: the k - e least
    of these are paid for the original j, whichever it is. With k-concealment an original has a
    match besides its own that lies in some assignment, so a cycle of matches goes through it, and
    its published record covers another record too: the nearest-neighbour bound with k = 2 holds.

    `problem`: with a monotone objective. `effort`: as of the nearest-neighbour bound. `budget`:
    when it ends, records not looked at count with the loss of being published exactly, and
    originals not looked at cost those that hide them nothing more. Returns: None if the objective
    is neither proven nor declared monotone, or the recoding is another one.
    """
    compiled = problem.compiled
    if not compiled.monotone:
        return None
    if isinstance(problem.recoding, KConcealment):
        # A bound without the diversity holds with it.
        pairs = problem.replace(k=2, recoding=KOne(), diversity=None)
        found = nearest_neighbour_bound(pairs, effort=effort, budget=budget)
        return None if found is None else replace(found, method=f"{found.method} of one other")
    if not isinstance(problem.recoding, OneK):
        return None
    watch = Stopwatch()
    losses = compiled.losses_of_sets(np.arange(problem.n)[:, None])
    hidden, complete = _dearest_to_hide(problem, budget or Budget())
    losses = losses - LOSS_RELATIVE * np.abs(losses)
    summed = compiled.aggregate == "sum"
    # What an original costs is added to exact cells, or compared with them.
    exact = 0.0 if summed else float(losses.max())
    value = fsum([*losses, hidden]) if summed else max(exact, hidden)
    method = "exact cells and one original to hide" if hidden > exact else "exact cells"
    remarks = () if complete else ("cut short",)
    named = under_assumptions(problem, method, *remarks)
    return Bound(value, named, "argument", watch.seconds)


def _dearest_to_hide(problem: Problem, budget: Budget) -> tuple[float, bool]:
    """Return what those that hide one original lose at least, and whether all were looked at.

    Beside their exact cells, and for the original that costs most; with the aggregate ``"max"``
    what one of them loses in all. Originals not looked at count 0; with ``"max"`` minus infinity,
    since losses may be negative. Complexity: O(t^2 m) time for t distinct rows.
    """
    compiled, types = problem.compiled, problem.microdata.row_types()
    summed = compiled.aggregate == "sum"
    rows, counts, dearest = types.first, types.counts, 0.0 if summed else -np.inf
    own = compiled.losses_of_sets(rows[:, None])
    rare = np.flatnonzero(counts < problem.k)
    affordable = max(1, _PAIRS // len(rows))
    for j in rare[:affordable]:
        if budget.stop_reason() is not None:
            return dearest, False
        pairs = np.stack(np.broadcast_arrays(rows, rows[j]), axis=1)
        together = compiled.losses_of_sets(pairs)
        size = np.abs(together) + np.abs(own)
        least = (together - own if summed else together) - LOSS_RELATIVE * size
        least[j] = np.inf
        order = np.argsort(least, kind="stable")
        need = int(problem.k - counts[j])
        # Rows of one type may all hide it.
        taken = np.clip(need - (np.cumsum(counts[order]) - counts[order]), 0, counts[order])
        used = order[taken > 0]
        cost = float(least[used] @ taken[taken > 0]) if summed else float(least[used].max())
        dearest = max(dearest, cost)
    return dearest, len(rare) <= affordable
