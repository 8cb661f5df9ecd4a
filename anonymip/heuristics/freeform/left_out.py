"""Outliers of covers: the records that are left out where some may be suppressed.

What a record's leaving saves is the loss of its own set, and what the other sets that hold it lose
less without it, beyond the price of a suppressed record: their sets need another member then, which
a near one is. Those whose leaving saves most go, and the method makes the sets of the others anew.
A choice stands if the release that comes of it is better, so that none is worse than leaving nobody
out but for those that limits keep out of every set.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from anonymip.assignments import Assignment, Cover
from anonymip.effort import EFFORTS
from anonymip.errors import InputError, NoSolution, UnsupportedObjective
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.recodings.rules.limits import conflicts
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution, retold
from anonymip.status import Stopped

#: Makes a cover of a problem whose records all need a set: from a known one, within a budget.
MakeCover: TypeAlias = Callable[[Problem, Assignment | None, Budget], Solution]

#: Parts of the limit that are left out first: who is worth leaving out next is known better then.
_PARTS = (16, 4, 1)
#: Exchanges of outliers at the limit at most.
_EXCHANGES = 2
#: Share of the time that the sets of all records may take.
_SHARE_OF_ALL = 0.4
#: Records whose limits are compared with all others.
_COMPARED = 5_000


def leaves_out(
    method: Callable[..., Solution], has_efforts: bool = False
) -> Callable[..., Solution]:
    """Give a freeform method suppression (a decorator): it covers what :func:`leave_out` keeps.

    One that `has_efforts` makes quick ones while records are chosen.
    """

    @wraps(method)
    def run(problem: Problem, *, budget: Budget | None = None, **options: Any) -> Solution:
        if not problem.may_suppress:
            return method(problem, budget=budget, **options)
        start = options.pop("start", None)

        def cover(part: Problem, known: Assignment | None, share: Budget, **other: Any) -> Solution:
            given = options if known is None else {**options, "start": known}
            return method(part, budget=share, **{**given, **other})

        hurries = has_efforts and options.get("effort") != EFFORTS[0]
        quick = partial(cover, effort=EFFORTS[0]) if hurries else None
        unfit = _unfit(problem)
        if len(unfit) == problem.n:
            # The only release that there is.
            nobody, name = Cover.joined(problem.n, []), method.__name__.replace("_", "-")
            found = Solution.of(problem, nobody, method=name)
            return found.with_bound(Bound(found.objective, "limits", "argument"))
        return leave_out(problem, cover, budget or Budget(), unfit, start, quick)

    return run


def leave_out(
    problem: Problem,
    cover: MakeCover,
    budget: Budget,
    unfit: Ints,
    start: Assignment | None = None,
    quick: MakeCover | None = None,
) -> Solution:
    """Return a cover without the records whose leaving saves most, no more than may be.

    `cover` makes the sets of those that are kept, and a `quick` one those while records are chosen;
    None for the same. `unfit`: the records that can be in no set. `start`: a release, whose records
    are left out first. When the budget ends, the best release so far is the result. Raises
    NoSolution if no sets of the others are found. Complexity: that of six covers at most, and
    O(n k^2 m) for what leaving saves.
    """
    watch, most, choosing = Stopwatch(), problem.most_suppressed, quick or cover
    saved, by_loss = np.zeros(problem.n), attrgetter("objective")
    saved[unfit] = np.inf
    out, first = np.isinf(saved), None
    if isinstance(start, Cover):
        problem.recoding.check(problem, start)
        out = start.sizes == 0
        first = start.without_suppressed()[1]
    found = _covered(problem, out, cover, budget.share(_SHARE_OF_ALL), first)
    best = begun = found
    tried = {out.tobytes()}
    sizes = [*sorted({max(1, most // part) for part in _PARTS}), *[most] * _EXCHANGES]
    sizes = sizes if most else []
    if quick is not None and most:
        with suppress(NoSolution):
            best = _covered(problem, out, quick, budget.share(1 / (len(sizes) + 1)), None)
    for done, size in enumerate(sizes):
        if budget.stop_reason() is not None:
            break
        budget.report("choosing outliers", done=done, total=len(sizes), incumbent=best.objective)
        assert isinstance(best.assignment, Cover)
        kept = best.assignment.sizes > 0
        saved[kept] = savings(problem, best.assignment)[kept]
        order = np.argsort(-saved, kind="stable")[:size]
        out = np.zeros(problem.n, np.bool_)
        out[order[saved[order] > 0]] = True
        out |= np.isinf(saved)
        if out.tobytes() in tried:
            continue
        tried.add(out.tobytes())
        with suppress(NoSolution, InputError):
            found = _covered(problem, out, choosing, budget.share(1 / (len(sizes) - done)), None)
            best = min(best, found, key=by_loss)
    if quick is not None and best.assignment.suppressed > begun.assignment.suppressed:
        assert isinstance(best.assignment, Cover)
        out = best.assignment.sizes == 0
        with suppress(NoSolution):
            best = min(_covered(problem, out, cover, budget, None), best, key=by_loss)
    best = min(begun, best, key=by_loss)
    return retold(
        best,
        problem,
        stopped=budget.stop_reason() or Stopped.HEURISTIC,
        seconds=watch.seconds,
        trace=(*best.trace, f"{best.assignment.suppressed:,} outliers left out, {most:,} may be"),
    )


def savings(problem: Problem, cover: Cover) -> Floats:
    """Return (n,) what the leaving of each record saves, or more; 0 of those suppressed.

    With the largest loss of a record as the objective it is what the record loses.
    """
    compiled, saved = problem.compiled, np.zeros(problem.n)
    summed = compiled.aggregate == "sum"
    for size in np.unique(cover.sizes[cover.sizes > 0]).tolist():
        records = np.flatnonzero(cover.sizes == size)
        rows = cover.members[cover.start[records][:, None] + np.arange(size)].astype(np.int64)
        own = compiled.class_losses(rows) / (size if summed else 1)
        saved[records] += own - compiled.suppression_price
        if not summed or size == 1:
            continue
        try:
            for at in range(size):
                less = compiled.class_losses(np.delete(rows, at, axis=1)) / (size - 1)
                others = rows[:, at] != records
                np.add.at(saved, rows[others, at], np.maximum(own - less, 0.0)[others])
        except UnsupportedObjective:
            continue  # a loss of classes may be undefined for sets as small as these.
    return saved


def _covered(
    problem: Problem, out: Flags, cover: MakeCover, budget: Budget, start: Assignment | None
) -> Solution:
    """Return a release with exactly some records suppressed."""
    assert isinstance(problem.recoding, Freeform)
    kept = np.flatnonzero(~out)
    part = problem.replace(
        microdata=problem.microdata.take(kept), recoding=problem.recoding.of_some(kept)
    )
    found = cover(part, start, budget)
    assert isinstance(found.assignment, Cover)
    return retold(found, problem, Cover.joined(problem.n, [(kept, found.assignment)]))


def _unfit(problem: Problem) -> Ints:
    """Return the records that limits keep out of every set, with those that lack them then.

    Raises NoSolution if they are more than may be suppressed.
    """
    if not problem.limits or problem.n > _COMPARED:
        return np.empty(0, np.int64)
    assert isinstance(problem.recoding, Freeform)
    needed, fits = problem.recoding.sizes(problem), np.ones(problem.n, np.bool_)
    apart = conflicts(problem.microdata, problem.limits, np.arange(problem.n))
    while (lacking := fits & ((~apart[:, fits]).sum(axis=1) < needed)).any():
        fits &= ~lacking
    count, most = int((~fits).sum()), problem.most_suppressed
    if count > most:
        raise NoSolution(
            f"the limits leave {count:,} records without companions for any set, and {most:,} may "
            "be suppressed",
            remedy="Allow more suppressed records, or loosen a limit",
        )
    return np.flatnonzero(~fits)
