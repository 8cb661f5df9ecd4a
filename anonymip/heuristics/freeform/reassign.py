"""Reassignment: improve any freeform cover by exchanging whole matchings."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from types import MappingProxyType

import numpy as np

from anonymip.assignments import Assignment, Cover
from anonymip.effort import check_effort
from anonymip.errors import InputError, argument, unknown_name
from anonymip.graphs import degree_of
from anonymip.heuristics.freeform.exchanges import MatchingExchange, swap_matches
from anonymip.heuristics.freeform.partitioned import in_parts
from anonymip.heuristics.freeform.set_growth import NUMBERS
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Methods that can make the start.
STARTS = ("greedy", "sort-greedy", "hungarian", "ring", "nh")
#: A pass that gains less than this share of the loss counts as one without gain: most is gained in
#: the first passes, and the share falls from one to the next.
_WORTH = MappingProxyType({"quick": 1e-2, "normal": 1e-3, "thorough": 0.0})


@in_parts
def reassign(
    problem: Problem,
    *,
    from_method: str = "sort-greedy",
    patience: int = 3,
    effort: str | None = None,
    start: Assignment | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Improve a freeform cover until nothing more is gained or the time ends.

    A regular cover falls into as many perfect matchings as its sets have records. One after the
    other is taken out, and the originals are assigned to the sets again at the least sum of the
    losses: an assignment problem whose optimum is never above what was taken out. Between the
    passes a new decomposition is drawn at random. Meanwhile sets belong to no record: in the end
    each record gets a set that it lies in, by one of the matchings.

    Where sets must be reciprocal or differ in size, two sets exchange one original each instead, in
    a reciprocal cover together with their counterparts. Only changes that keep limits and diversity
    are made; exchanges of two are not made under a diversity.

    `problem`: with freeform generalization.
    `from_method`: what makes the start where none is given: ``sort-greedy``, ``greedy``,
    ``hungarian``, ``ring``, ``nh``.
    `patience`: so many passes without gain in a row end the work.
    `effort`: what counts as gain: of ``"quick"`` work 1 % of the loss, of ``"normal"`` 0.1 %, of
    ``"thorough"`` anything; None: thorough within a time limit, else normal.
    `start`: cover to improve.
    `budget`: when it ends, what is reached is the result.
    `seed`: of the decompositions.
    Raises InputError if the problem asks for another recoding, or from_method or patience is not
    possible; InvalidAssignment if the start is no cover that the problem allows;
    UnsupportedObjective if the objective has no tables, and there are too many records or sets are
    reciprocal or differ in size; NoSolution if the method that makes the start finds none.

    The result is never above the start: with the maximum over the records as well, where sums are
    lowered and the best cover seen is kept. Complexity of a pass: k assignments of O(n^3) at worst,
    and the memory of n^2 numbers, in single precision beyond 2000 records.
    """
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    recoding = problem.recoding
    if not isinstance(recoding, Freeform):
        raise InputError(
            f"reassign improves freeform covers, the problem asks for {recoding.name}",
            remedy=f"Use {argument('recoding', 'freeform')}",
        )
    if patience < 1:
        raise InputError(f"patience is {patience}", remedy="Give at least 1")
    sizes = recoding.sizes(problem)
    # Of a regular cover whole matchings are exchanged, under a diversity too.
    whole = not recoding.reciprocal and sizes.min() == sizes.max()
    if whole and problem.n > NUMBERS.all_pairs:
        parts = argument("options", {"part": 1000}, option="--option reassign.part=1000")
        raise InputError(
            f"reassign holds a weight for each pair of {problem.n:,} records, at most "
            f"{NUMBERS.all_pairs:,} records",
            remedy=f"Give {parts}: it then improves parts of the table",
        )
    first = _start(problem, from_method, start, budget, seed)
    options = {
        "from_method": from_method if start is None else "start",
        "patience": patience,
        "effort": effort,
    }
    best, stopped, trace = _improve(
        problem, recoding, first, patience, _WORTH[effort], budget, seed
    )
    return Solution.of(
        problem,
        best,
        method="reassign",
        stopped=stopped or Stopped.HEURISTIC,
        options=options,
        seconds=watch.seconds,
        seed=seed,
        trace=(f"start: {first.objective:.6g}", *trace),
    )


def _start(
    problem: Problem, from_method: str, start: Assignment | None, budget: Budget, seed: int
) -> Solution:
    if start is not None:
        return Solution.of(problem, start, method="start")
    if from_method not in STARTS:
        raise unknown_name("from_method", from_method, STARTS)
    name = from_method.replace("-", "_")
    method: Callable[..., Solution] = resolve_name(f"anonymip.heuristics.freeform.{name}:{name}")
    return method(problem, budget=budget.share(NUMBERS.improved_share), seed=seed)


def _improve(
    problem: Problem,
    recoding: Freeform,
    first: Solution,
    patience: int,
    least_gain: float,
    budget: Budget,
    seed: int,
) -> tuple[Cover, Stopped | None, tuple[str, ...]]:
    """Return the best cover seen, why the work stopped early, and remarks."""
    cover = first.assignment
    assert isinstance(cover, Cover)
    rng = np.random.default_rng(seed)
    degree = degree_of(cover)
    exchange = None
    if degree is not None and not recoding.reciprocal:
        exchange = MatchingExchange.of(problem, degree, rng)
    elif problem.diversity is not None:
        return cover, None, ("under a diversity only whole matchings are exchanged: not improved",)
    best, least = cover, first.objective
    passes = idle = 0
    gains: list[float] = []
    stopped = budget.stop_reason()
    while idle < patience and stopped is None:
        if exchange is not None:
            cover, gain, stopped = exchange.run_pass(cover, budget)
        else:
            cover, gain, stopped = swap_matches(problem, cover, recoding.reciprocal, rng, budget)
        passes += 1
        gains.append(gain)
        described = recoding.describe(problem, cover)
        total = problem.compiled.total(described, cover)
        idle = 0 if gain > least_gain * abs(total) else idle + 1
        if total < least:
            best, least = cover, total
        budget.report("reassigning", done=passes, incumbent=least)
    last = max(gains[-patience:], default=0.0)
    if idle < patience or last <= 0:
        return best, stopped, (f"{passes} passes",)
    share = f"{patience} in a row gained {100 * last / abs(total):.2g} % of the loss at most"
    return best, stopped, (f"{passes} passes; {share}, and more effort may gain more",)
