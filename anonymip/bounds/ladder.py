"""The ladder of bounds by duals of records: nearest neighbours, k-sets, dual ascent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.near_program import NearProgram
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


@dataclass(frozen=True)
class LadderNumbers:
    """Numbers that steer the ladder. Losses computed, times columns: about 2e8 a second."""

    #: Losses, times columns, that an effort may compute.
    cells: Mapping[str, float] = field(
        default_factory=lambda: {"quick": 5e8, "normal": 4e9, "thorough": 1e11}
    )
    #: Of which a normal effort spends so many a record, but some in any case: the bound of a table
    #: of some thousand records is not to take longer than its release.
    each_record: float = 1.33e5
    always: float = 8e8
    #: Shares of what is left that k-sets take at most, and all thorough sweeps but the last.
    share_of_k_sets: float = 0.4
    share_of_sweeps: float = 0.8
    #: How far duals are raised first, in k-set terms: in continuous tables of 30,000 records even
    #: this takes most of what may be computed.
    nearest: float = 1.25
    #: How far then, if so many times what that took is left: farther sweeps took 2 to 3, 5 to 7 and
    #: 25 times as much, and one that was cut short was never better than none.
    after: tuple[tuple[float, float], ...] = ((50.0, 2.5), (16.0, 2.0), (4.0, 1.5))
    #: How far a thorough ascent raises them besides, by which steps, and the losses that one search
    #: may compute. Far ones, which are thorough, stand in between at shares of the way, and the
    #: farthest are searched longer.
    thorough: tuple[float, ...] = (1.5, 2.0, 2.5, 3.0)
    #: Factor -> steps of the way and losses of one search, where they are not one step and `each`.
    steps: Mapping[float, tuple[tuple[float, ...], int]] = field(
        default_factory=lambda: {
            2.5: ((0.5, 1.0), 200_000),
            3.0: ((0.25, 0.5, 0.75, 1.0), 1_000_000),
        }
    )
    each: int = 200_000
    #: A linear program guides the ascent instead where so many times what the first sweep took is
    #: left: it took 10 to 90 times as much until the first round ended, and gained 4 to 10 percent.
    guided: float = 60.0
    #: Losses that the search for one type may compute then: of a few far from all others the search
    #: is long, and who is not raised leaves the others no room.
    each_guided: int = 5_000_000
    #: Share of the losses that are left to compute for the rounds of pricing.
    pricing: float = 0.4
    #: A gain that is none, as a share of the value.
    gain: float = 5e-4


NUMBERS = LadderNumbers()


def guided_ascent(duals: RecordDuals, budget: Budget) -> Iterator[bool]:
    """Raise duals round by round, from their k-set terms on, until the budget ends.

    Yields after each round whether it has looked at all records.
    """
    unit = float(np.abs(duals.duals).mean())
    if unit == 0.0:
        return
    program = NearProgram(duals, budget)
    program.solve((1.0 - NUMBERS.pricing) * duals.left)
    best, taken, charged = -np.inf, 0.0, unit * int(duals.counts.sum())
    # A round that is cut short is in vain.
    while duals.left > taken and budget.stop_reason() is None:
        before = duals.left
        complete, members = duals.ascend_to(program.aims, NUMBERS.each_guided)
        yield complete
        # Duals of both signs may add up to nothing, which no gain is a share of.
        least = NUMBERS.gain * max(abs(best), charged) if np.isfinite(best) else 0.0
        if not complete or duals.value < best + least:
            return
        best, taken = duals.value, before - duals.left
        program.sets.add(members, duals.costs(members))
        program.improve()


def ladder_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release, as good as the effort allows.

    The bounds are nearest neighbours, k-sets, and an ascent from there, first a short way and then,
    where enough work is left for it, a long one, or rounds that a linear program guides; see
    :mod:`anonymip.bounds.record_duals` for what holds, and :mod:`anonymip.bounds.ladder`.
    The name of the bound says which of them it is, and whether the work ended before all
    records were looked at.

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
    if not has_ladder(problem):
        return None
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    terms, complete = lowered_terms(problem, budget, effort)
    best = bound_of_terms(problem, terms, "nearest-neighbour", _remarks(complete), watch)
    if not complete or not raises_duals(problem):
        return best
    try:
        for bound in _higher_bounds(problem, terms, effort, budget, watch):
            best = bound if bound.value > best.value else best
    except CompilationStopped:
        pass  # what is proven by then is a bound
    return best


def has_ladder(problem: Problem) -> bool:
    """Return whether nearest neighbours bound the loss, the lowest of these bounds."""
    compiled = problem.compiled
    covering = published_form(problem.recoding) in COVERING_K
    return bool(compiled.monotone and compiled.has_tables and covering)


def raises_duals(problem: Problem) -> bool:
    """Return whether there are higher bounds: with k = 2 a set is a pair."""
    return has_ladder(problem) and (problem.k > 2 or _duals_hold(problem))


def _higher_bounds(
    problem: Problem, terms: NDArray[np.float64], effort: str, budget: Budget, watch: Stopwatch
) -> Iterator[Bound]:
    """Yield the bounds by k-sets and by every sweep or round of the ascent."""
    cells = NUMBERS.cells[effort]
    if effort == "normal":
        cells = min(cells, max(NUMBERS.each_record * problem.n, NUMBERS.always))
    duals = RecordDuals(problem, terms, cells, budget)
    complete = duals.raise_to_k_sets(NUMBERS.share_of_k_sets if effort != "quick" else 1.0)
    yield bound_of_terms(problem, duals.terms(), "k-sets", _remarks(complete), watch)
    if effort == "quick" or not _duals_hold(problem) or duals.left <= 0:
        return
    before, thorough = duals.left, effort == "thorough"
    share = NUMBERS.share_of_sweeps if thorough else 1.0
    complete = duals.ascend(NUMBERS.nearest, *_search(NUMBERS.nearest), share)
    yield bound_of_terms(problem, duals.terms(), "dual ascent", _remarks(complete), watch)
    taken = before - duals.left
    if complete and duals.left >= NUMBERS.guided * taken:
        for complete in guided_ascent(duals, budget):
            named, remarks = "column generation, dual ascent", _remarks(complete)
            yield bound_of_terms(problem, duals.terms(), named, remarks, watch)
        return
    farther = NUMBERS.thorough if thorough else _next_factor(duals.left, taken)
    for factor in farther:
        if duals.left <= 0 or budget.stop_reason() is not None:
            return
        share = NUMBERS.share_of_sweeps if factor < farther[-1] else 1.0
        complete = duals.ascend(factor, *_search(factor), share)
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


def _next_factor(left: float, taken: float) -> tuple[float, ...]:
    """Return how far duals are raised after a first sweep; nothing if that would be cut short."""
    return next(((factor,) for times, factor in NUMBERS.after if left >= times * taken), ())


def _search(factor: float) -> tuple[tuple[float, ...], int]:
    """Return the steps by which duals are raised, and the losses that one search may compute."""
    return NUMBERS.steps.get(factor, ((1.0,), NUMBERS.each))
