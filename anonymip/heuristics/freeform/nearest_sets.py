"""Covers for the weaker notions: least sets of k records, and a few records that hide all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from anonymip.bounds.ladder import allowed_cells
from anonymip.bounds.nearest_neighbour import lowered_terms, nearest_neighbour_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.effort import check_effort
from anonymip.errors import NoSolution
from anonymip.heuristics.freeform.k_concealment import Growth
from anonymip.heuristics.freeform.partitioned import finish_cover
from anonymip.objectives.language.record import cells_of_sets
from anonymip.problem import Problem
from anonymip.recodings import KOne, OneK
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped

#: The records with their sets, and why they are not finished; None where they are.
_Found = tuple[Growth, Stopped | None]

#: Pairs of records times columns up to which k-concealment looks where ways cost most, for one way
#: that takes 2.5 s for 1e8.
_CUT = {"quick": 1e8, "normal": 3e8, "thorough": 3e9}


def nearest_sets(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Publish each record with those others with which it loses least, and hide who is not yet.

    With (k,1)-anonymity records choose by themselves, so the cheapest set of k around each, which
    the k-set bound finds, is optimal where the search for none was cut short. For the other notions
    the best of several ways is taken. Every original that fewer than k published records cover goes
    into those that it costs least, as Gionis et al. do [1]_; or k - 1 records cover everything, so
    that only they themselves have to be hidden besides. All others then stay exact with
    (1,k)-anonymity, have their cheapest sets of k with (k,k)-anonymity, and with k-concealment
    cover one other each, so that a way leads from each to those that cover everything, and all
    matches are effective.

    `problem`: with k-one, k-k, one-k or k-concealment, and an objective with tables. `effort`: how
    much work the search for sets may take; None for thorough within a time limit, else normal.
    `budget`: when it ends, a ring along a Hilbert curve is the result. Raises UnsupportedObjective
    if the objective has no tables; NoSolution if the sets break a limit.

    Ties go to the first record. Complexity: exponential in k for one record, ended after a number
    of losses; then O(n^2 k m) time.

    References
    ----------
    .. [1] A. Gionis, A. Mazza, T. Tassa: k-Anonymization Revisited, ICDE 2008.
    """
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    best: Solution | None = None
    failure: NoSolution | None = None
    for find in _ways(problem, effort, budget):
        try:
            growth, stopped = find()
            cover = growth.cover(stopped)
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


def _ways(problem: Problem, effort: str, budget: Budget) -> Iterator[Callable[[], _Found]]:
    """Yield the ways that a notion has."""
    one_sided, name = isinstance(problem.recoding, OneK), problem.recoding.name
    if name == "k-concealment":
        yield lambda: _reaching(problem, _widest(problem, None), budget)
        # With k = 2 one record covers everything, and there is nothing to cut.
        if problem.k > 2 and float(problem.n) ** 2 * problem.m <= _CUT[effort]:
            for least in (1, 2):
                yield partial(_cutting, problem, least, budget)
        return
    sets = None
    if problem.compiled.monotone and not one_sided:
        sets = _least_sets(problem, effort, budget)
    if not isinstance(problem.recoding, KOne):
        yield lambda: _nearest(problem, sets, True, budget)
    if not one_sided:
        yield lambda: _nearest(problem, sets, False, budget)
        return
    for by_loss in (False, True):
        growth = Growth(problem, by_loss=by_loss)
        yield partial(lambda one: (one, one.hide(budget)), growth)


_Sets = dict[int, Ints]


def _nearest(problem: Problem, sets: _Sets | None, wide: bool, budget: Budget) -> _Found:
    """Return the sets of k that lose least, and whoever is not hidden in more of them.

    If `wide`, k - 1 records cover everything; the others are exact where they need no k.
    """
    growth, stopped = Growth(problem, by_loss=False), None
    if sets is None and isinstance(problem.recoding, OneK):
        sets = {i: np.array([i]) for i in range(problem.n)}
    if sets is None:
        stopped = growth.expand(budget)
    else:
        growth.take_all(sets)
    if wide:
        growth.take_all(dict.fromkeys(_widest(problem, sets), np.arange(problem.n)))
    if not isinstance(problem.recoding, KOne):
        stopped = stopped or growth.hide(budget)
    return growth, stopped


def _widest(problem: Problem, sets: _Sets | None) -> list[int]:
    """Return the k - 1 records that cover everything: of those that lose most, the least remote."""
    own = _losses(problem, [np.array([i]) for i in range(problem.n)])
    given = own if sets is None else _losses(problem, [sets[i] for i in range(problem.n)])
    pairs = problem.replace(k=2, recoding=KOne(), diversity=None)
    # Whoever covers everything has to be hidden once more, by its neighbour.
    near = nearest_neighbour_terms(pairs) if problem.compiled.monotone else own
    order = np.argsort(near - own - given, kind="stable")
    return [int(i) for i in order[: problem.k - 1]]


def _losses(problem: Problem, sets: list[Ints]) -> Floats:
    """Return the loss of a record published as each of some sets."""
    cells = [cells_of_sets(problem.microdata, one[None]) for one in sets]
    return np.concatenate([problem.compiled.record_losses(one) for one in cells])


def _reaching(problem: Problem, wide: list[int], budget: Budget) -> _Found:
    """Return `wide` records that cover everything, and a way to them from all others."""
    growth = Growth(problem, by_loss=False)
    growth.take_all(dict.fromkeys(wide, np.arange(problem.n)))
    stopped = growth.reach(np.array(wide), budget)
    return growth, stopped or growth.hide(budget)


def _cutting(problem: Problem, least: int, budget: Budget) -> _Found:
    """Return k - 1 records that cover everything, where the ways to one of them cost most.

    Each takes the place of the dearest step of a way. `least`: records from which ways lead to each
    of them, itself included. Alone it is hidden by one more of the others.
    """
    growth = Growth(problem, by_loss=False)
    wide = _widest(problem, None)[:1]
    stopped = growth.reach(np.array(wide), budget)
    following = growth.next_ones.copy()
    for i in np.argsort(-growth.costs, kind="stable").tolist():
        if len(wide) == problem.k - 1 or stopped is not None:
            break
        cut = following.copy()
        cut[i] = i
        ends = cut
        while (ends[ends] != ends).any():
            ends = ends[ends]
        if i not in wide and np.bincount(ends, minlength=problem.n)[[*wide, i]].min() >= least:
            wide.append(i)
            following = cut
    return _reaching(problem, wide, budget)


def _least_sets(problem: Problem, effort: str, budget: Budget) -> dict[int, Ints] | None:
    """Return for each record those that it is published with; None if the search was cut short."""
    terms, complete = lowered_terms(problem, budget, effort)
    if not complete:
        return None
    duals = RecordDuals(problem, terms, allowed_cells(problem, effort), budget)
    if not duals.raise_to_k_sets():
        return None
    inverse, counts = duals.types.inverse, duals.counts
    rows, ends = np.argsort(inverse, kind="stable"), np.cumsum(counts)
    # Rows of a type lose nothing together, and yet may differ where nothing is weighed: each type
    # takes part with as many as a set needs at most.
    alike = [rows[ends[kind] - counts[kind] : ends[kind]][: problem.k] for kind in range(len(ends))]
    sets = [
        alike[kind]
        if counts[kind] >= problem.k
        else np.concatenate([alike[one] for one in np.unique(found)])
        for kind, found in enumerate(duals.search.binding)
    ]
    return {i: np.union1d(sets[kind], [i]) for i, kind in enumerate(inverse.tolist())}
