"""Covers for the weaker notions: least sets of k records, or a few records that hide all."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.bounds.ladder import allowed_cells
from anonymip.bounds.nearest_neighbour import lowered_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.effort import check_effort
from anonymip.errors import NoSolution
from anonymip.heuristics.freeform.k_concealment import Growth
from anonymip.heuristics.freeform.partitioned import finish_cover
from anonymip.problem import Problem
from anonymip.recodings import KOne, OneK
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Sets of the records, and why they are not finished; None where they are.
_Found = tuple[Cover, Stopped | None]


def nearest_sets(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Publish each record with the k - 1 others with which it loses least, and hide who is not yet.

    With (k,1)-anonymity records choose by themselves, so the cheapest set of k around each, which
    the k-set bound finds, is optimal where the search for none was cut short. With
    (k,k)-anonymity every original that fewer than k published records cover goes into those that it
    costs least, as Gionis et al. do [1]_. With (1,k)-anonymity records start as they are, or k of
    them cover everything and all others stay exact; the better of the two is taken.

    Parameters
    ----------
    problem
        With k-one, k-k or one-k, and an objective with tables.
    effort
        How much work the search for sets may take; None for thorough within a time limit, else
        normal.
    budget
        When it ends, all records are published alike.
    seed
        Not used: nothing is random.

    Notes
    -----
    Ties go to the first record. Complexity: exponential in k for one record, ended after a number
    of losses; then O(n^2 k m) time.

    References
    ----------
    .. [1] A. Gionis, A. Mazza, T. Tassa: k-Anonymization Revisited, ICDE 2008.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables.
    NoSolution
        If the sets break a limit.
    """
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    best: Solution | None = None
    failure: NoSolution | None = None
    ways = _hubs_or_hidden if isinstance(problem.recoding, OneK) else _nearest
    for find in ways(problem, effort, budget):
        try:
            cover, stopped = find()
            found = finish_cover(problem, cover, "nearest-sets", watch, stopped=stopped)
        except NoSolution as reason:
            failure = failure or reason
            continue
        if best is None or found.objective < best.objective:
            best = found
    if best is None:
        assert failure is not None
        raise failure
    return best


_Ways = Iterator[Callable[[], _Found]]


def _nearest(problem: Problem, effort: str, budget: Budget) -> _Ways:
    """Yield the way by the sets of k that lose least."""

    def find() -> _Found:
        growth = Growth(problem, by_loss=False)
        sets = _least_sets(problem, effort, budget) if problem.compiled.monotone else None
        if sets is None:
            stopped = growth.expand(budget)
        else:
            stopped = None
            growth.take_all(sets)
        if not isinstance(problem.recoding, KOne):
            stopped = stopped or growth.hide(budget)
        return _finished(growth, stopped)

    yield find


def _hubs_or_hidden(problem: Problem, effort: str, budget: Budget) -> _Ways:
    """Yield the ways by k records that cover everything, and by growth where it costs least."""
    n = problem.n

    def hubs() -> _Found:
        growth = Growth(problem, by_loss=False)
        own = problem.compiled.class_losses(np.arange(n)[:, None])
        # Those that lose most when they are published exactly have least to lose.
        growth.take_all(
            {int(i): np.arange(n) for i in np.argsort(-own, kind="stable")[: problem.k]}
        )
        return growth.cover(), None

    def hidden(by_loss: bool) -> _Found:
        growth = Growth(problem, by_loss=by_loss)
        return _finished(growth, growth.hide(budget))

    yield hubs
    yield lambda: hidden(by_loss=False)
    yield lambda: hidden(by_loss=True)


def _finished(growth: Growth, stopped: Stopped | None) -> _Found:
    return growth.cover() if stopped is None else growth.all_alike(), stopped


def _least_sets(
    problem: Problem, effort: str, budget: Budget
) -> dict[int, NDArray[np.int64]] | None:
    """Return for each record those that it is published with; None if the search was cut short."""
    terms, complete = lowered_terms(problem, budget, effort)
    if not complete:
        return None
    duals = RecordDuals(problem, terms, allowed_cells(problem, effort), budget)
    if not duals.raise_to_k_sets():
        return None
    first, inverse, counts = duals.types.first, duals.types.inverse, duals.counts
    # All rows of a type are consistent with what is published of one of them.
    sets = [
        first[np.unique(found)] if counts[kind] < problem.k else first[[kind]]
        for kind, found in enumerate(duals.search.binding)
    ]
    return {i: sets[kind] for i, kind in enumerate(inverse.tolist())}
