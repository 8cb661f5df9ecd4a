"""Local search: improve any classes by moves, swaps and neighbouring classes made anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Assignment, Classes
from anonymip.bounds.near_program import can_make_classes
from anonymip.effort import EFFORTS, MAY_GAIN, check_effort
from anonymip.errors import InputError, NoSolution, argument
from anonymip.heuristics.growing.finish import finish, without, without_outliers
from anonymip.heuristics.local_search.batches import improve_in_batches
from anonymip.heuristics.local_search.iterated import iterated_steps
from anonymip.heuristics.local_search.rounds import improve_classes, iterate_classes
from anonymip.heuristics.local_search.squared_errors import are_squared, improve_squared_errors
from anonymip.heuristics.local_search.starts import (
    BEST,
    DIVING,
    MOST_MOVED,
    kept_of,
    make_start,
    make_starts,
    may_dive,
    starts_of,
    with_the_rest,
)
from anonymip.orders.arrangement import OrderedByValues
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import handing_on, run_in_force
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution, retold
from anonymip.status import Stopped

#: Of several starts so many are searched further than by moves.
_SEARCHED = {"quick": 1, "normal": 2, "thorough": 4}
#: Where outliers may be left out, the search of all records has this share of the time.
_SHARE_OF_ALL = 0.5
#: The same of what a lower effort does.
_SHARE_OF_LOWER = 0.25


def local_search(
    problem: Problem,
    *,
    from_method: str = BEST,
    order: str = "",
    trials: bool = True,
    start: Assignment | None = None,
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Improve classes until nothing more is gained or the time ends.

    Between neighbouring classes a row is moved, two rows are swapped, or the classes are merged; a
    class of 2k rows or more is split. Where none of this gains, a few neighbouring classes at a
    time are taken apart, and what becomes of them by moves is kept if it gains, or loses little,
    the less the longer this goes on; in turn with that, single rows are moved and swapped that lose
    a little. Where the table repeats its rows, classes of copies of one row lend what they hold
    beyond k to any class, and have it back for nothing.

    `problem`: with equivalence classes.
    `from_method`: what makes the start where none is given. ``best``: in tables of up to 2,000
    records all but the last three of the following are improved by moves, and the best of them go
    on; larger tables have one start: ``ordered-cut`` where rows repeat, ``k-member`` up to 50,000
    records, else ``greedy-search``. Where the bound of the same run weighs sets, ``normal`` starts
    from classes out of these too. Where the effort is ``thorough``, rows do not repeat and the
    bound has solved a program, classes of ``diving`` are improved after that, and the better of
    both is gone on from. Or one of ``greedy-search``, ``ordered-cut``, ``k-member``, ``mondrian``,
    ``hilbert``, ``hp``, ``mdav``, ``forest``, ``edge-cover``, ``initial``, ``diving``,
    ``split-carry``.
    `order`: order that the one start named is made with, if its method takes one; empty for its
    default.
    `trials`: whether classes are taken apart after the moves, and changes made that lose a little.
    `start`: classes to improve.
    `effort`: work spent: ``quick``, ``normal`` or ``thorough``; None for ``normal``, and
    ``thorough`` where the budget has a time limit. It is counted in steps, so that the same seed
    gives the same classes on every machine. A higher effort goes on from what a lower one makes.
    `budget`: when it ends, what is reached is the result.
    `seed`: of the neighbours drawn: the same seed gives the same classes.

    The search looks at records and attributes in an order that follows from their values, so that a
    table finds the same loss in whatever order it comes. The result is never above the start. Where
    the largest loss counts, the larger one of the classes that a move changes never rises, so that
    the losses sorted from the largest down fall with every move. Moves end with a round that gains
    less than 0.1 % of the loss, or 0.02 % with the effort ``thorough``; complexity of a round:
    O(n k m). What comes after moves has a number of steps that the effort says. Limits are terms of
    the loss that are infinite where one is broken. Losses without tables are evaluated in batches
    of NumPy, where no classes are taken apart: for tables of some thousand records.

    Where losses with tables are summed and the recoding lets any number of records be suppressed,
    those that are join a class where that is cheaper, and records that cost their class more than a
    row of stars are suppressed. With other losses, suppressed records stay what they are.
    """
    watch, budget = Stopwatch(), budget or Budget()
    if not isinstance(problem.recoding, EquivalenceClasses):
        raise InputError(
            f"local-search improves classes, the problem asks for {problem.recoding.name}",
            remedy=f"Use {argument('recoding', 'classes')}",
        )
    if order and start is None and from_method == BEST:
        raise InputError(
            "order is for one start, and best makes several",
            remedy="Name the start that takes it by the option from_method, such as greedy-search",
        )
    if start is not None:
        # What is refused is named by the records as they were given.
        Solution.of(problem, start, method="start")
    effort = check_effort(effort, limited=budget.deadline is not None)
    named = from_method if start is None else "start"
    options: dict[str, Any] = {
        "from_method": named,
        "order": order,
        "trials": trials,
        "effort": effort,
    }
    if problem.is_capped:
        handed = options | {"seed": seed}
        lower = None
        if effort != EFFORTS[0]:
            # Better classes of all records need not be better without the outliers.
            less = handed | {"effort": EFFORTS[EFFORTS.index(effort) - 1]}
            share = budget.share(_SHARE_OF_LOWER)
            with suppress(NoSolution):
                lower = local_search(problem, start=start, budget=share, **less)
        found = _leaving_outliers(problem, start, handed, watch, budget)
        if lower is not None and lower.objective < found.objective:
            return retold(found, problem, lower.assignment, "a lower effort lost less: kept")
        return found
    by_values = OrderedByValues.of(problem)
    given, problem = problem, by_values.problem
    run = _Run(problem, options, watch, budget, seed)
    in_force = run_in_force() if trials else None

    def weighed() -> Solution | None:
        """Return a start out of the sets that the bound of the run in force weighs, if it does."""
        sets = None
        if in_force is not None and can_make_classes(given):
            sets = in_force.weighed(given)
        if sets is None or budget.stop_reason() is not None:
            return None
        return with_the_rest(problem, kept_of(given, sets)[by_values.records], budget, seed)

    with handing_on(problem, given, by_values.back):
        if start is not None:
            placed = by_values.places(start)
            search = run.from_one(Solution.of(problem, placed, method="start"))
        elif from_method != BEST:
            search = run.from_one(make_start(problem, from_method, order, budget, seed))
        else:
            starts = make_starts(problem, budget, seed)
            search = run.from_best(starts, weighed)
        found = run.improve_by_efforts(search, effort)
    return by_values.back(found)


def _leaving_outliers(
    problem: Problem,
    start: Assignment | None,
    settings: dict[str, Any],
    watch: Stopwatch,
    budget: Budget,
) -> Solution:
    """Return classes without the outliers, of which no more are left out than may be.

    All records are searched first, so that nobody is left out for more than that loses; then the
    records without the outliers are searched on.
    """
    trace: tuple[str, ...] = ()
    if isinstance(start, Classes):
        labels = np.asarray(start.labels, np.int64)
    else:
        # The rules may not let everybody in.
        bare = whole = None
        with suppress(InputError):
            bare = problem.replace(recoding=EquivalenceClasses())
        if bare is not None:
            with suppress(NoSolution):
                whole = local_search(bare, budget=budget.share(_SHARE_OF_ALL), **settings)
        if whole is None:
            whole = make_start(problem, "greedy-search", "", budget, settings["seed"])
        trace, labels = whole.trace, assigned_labels(whole)

    improved = partial(improve, effort="quick", budget=budget, seed=settings["seed"])
    labels = without_outliers(problem, labels, budget, improved)
    kept = np.flatnonzero(labels != SUPPRESSED)
    if len(kept) < problem.n and budget.stop_reason() is None:
        part, given = without(problem, kept), Classes(labels[kept])  # type: ignore[arg-type]
        searched = local_search(part, start=given, budget=budget, **settings)
        labels = labels.copy()
        labels[kept] = assigned_labels(searched)
        trace = (*trace, *searched.trace)
    return Solution.of(
        problem,
        Classes(labels),  # type: ignore[arg-type]
        method="local-search",
        stopped=budget.stop_reason() or Stopped.HEURISTIC,
        options={name: value for name, value in settings.items() if name != "seed"},
        seconds=watch.seconds,
        seed=settings["seed"],
        trace=(
            *trace,
            f"{problem.n - len(kept)} outliers left out, {problem.most_suppressed} may be",
        ),
    )


def assigned_labels(solution: Solution) -> Ints:
    """Return (n,) the labels of a solution's classes."""
    assert isinstance(solution.assignment, Classes)
    return np.asarray(solution.assignment.labels, np.int64)


#: Makes a release with an effort, from what the effort below has made if there is one; and says
#: whether to anneal it: classes out of a linear program are better than what annealing forgets.
Search: TypeAlias = Callable[[str, Solution | None], tuple[Solution, bool]]


@dataclass(frozen=True)
class _Run:
    """Improves starts, and makes solutions of what becomes of them."""

    problem: Problem
    options: dict[str, object]
    watch: Stopwatch
    budget: Budget
    seed: int

    def improve_by_efforts(self, search: Search, effort: str) -> Solution:
        """Return what an effort makes of a start.

        It goes on from what the effort below makes of it. At the end of each come its trials.
        """
        lower = None
        if effort != EFFORTS[0]:
            lower = self.improve_by_efforts(search, EFFORTS[EFFORTS.index(effort) - 1])
            told = tuple(line.replace(MAY_GAIN, "") for line in lower.trace)
            lower = replace(lower, trace=told)
        found, anneals = search(effort, lower)
        return self._iterate(found, effort, anneals=anneals)

    def _improve(self, first: Solution, effort: str, by: str = "") -> Solution:
        """Return what becomes of one start, which is never worse."""
        told = f"start: {first.objective:.6g} by {by or first.method}"
        return self._more(replace(first, trace=(told,)), effort)

    def _more(self, found: Solution, effort: str, *, trials: int = 0) -> Solution:
        """Return what becomes of a release that an effort has told of already."""
        labels, stopped, remark = _improved(
            self.problem, assigned_labels(found), effort, self.budget, self.seed, trials
        )
        return self._better(found, labels, stopped, (*found.trace, remark))

    def _iterate(self, first: Solution, effort: str, *, anneals: bool = True) -> Solution:
        """Return what the trials of an effort make of a release, and annealing between them."""
        if not self.options["trials"] or not self.problem.compiled.has_tables:
            return first
        steps = iterated_steps(effort, self.problem.n)
        labels, stopped, remark = iterate_classes(
            self.problem,
            assigned_labels(first),
            # Classes out of a program gain less than 0.1 % by the others.
            steps=steps if anneals or effort != EFFORTS[-1] else 2 * steps // 3,
            budget=self.budget,
            seed=self.seed,
            anneals=anneals,
        )
        return self._better(first, labels, stopped, (*first.trace, remark))

    def _better(
        self, first: Solution, labels: Ints, stopped: Stopped | None, trace: tuple[str, ...]
    ) -> Solution:
        """Return the solution of the labels; the first one if that loses less."""
        solution = finish(
            self.problem,
            labels,
            "local-search",
            self.watch,
            budget=self.budget,
            stopped=stopped,
            options=self.options,
            seed=self.seed,
            trace=trace,
        )
        if solution.objective <= first.objective:
            return solution
        # Only rounding gets here, where nothing was gained.
        return retold(solution, self.problem, first.assignment)

    def from_best(
        self, firsts: Iterator[Solution], weighed: Callable[[], Solution | None]
    ) -> Search:
        """Return the search of the best of several starts: all are moved, the best searched on.

        Who is best after moves is among the best at the end more often than who is best before. All
        goes in one order, of which an effort is a part and a time limit cuts the rest, so that more
        of either is never worse.
        """
        if len(starts_of(self.problem)) == 1 or self.problem.n > MOST_MOVED:
            return self.from_one(min(firsts, key=lambda first: first.objective), weighed)
        moved = [(self._improve(first, EFFORTS[0]), first) for first in firsts]
        moved.sort(key=lambda pair: pair[0].objective)
        of = f", one of the best of {len(moved)}"

        def search(effort: str, lower: Solution | None) -> tuple[Solution, bool]:
            found = [] if lower is None else [self._more(lower, effort)]
            begun = 0
            if effort != EFFORTS[0]:
                begun = _SEARCHED[EFFORTS[EFFORTS.index(effort) - 1]]
            for after, first in moved[begun : _SEARCHED[effort]]:
                told = f"start: {first.objective:.6g} by {first.method}{of}"
                if not found or self.budget.stop_reason() is None:
                    told_of = replace(after, trace=(told,))
                    few = 0
                    if lower is not None and self.options["trials"]:
                        few = iterated_steps(EFFORTS[0], self.problem.n)
                    found.append(self._more(told_of, effort, trials=few))
            return min(found, key=lambda solution: solution.objective), True

        return search

    def from_one(
        self, first: Solution, weighed: Callable[[], Solution | None] | None = None
    ) -> Search:
        """Return the search of one start: of a large table, then of classes out of diving.

        Where a bound weighs sets, classes out of these sets go on from normal. What comes before
        the dive is the same under every limit, and the better one is kept. Without `weighed` the
        start alone is improved.
        """
        anneals = True

        def search(effort: str, lower: Solution | None) -> tuple[Solution, bool]:
            nonlocal anneals
            if lower is None:
                return self._improve(first, effort), anneals
            start = weighed() if weighed is not None and effort == EFFORTS[1] else None
            if start is not None:
                found = self._improve(start, effort, "sets that the bound weighed")
                anneals = lower.objective < found.objective
                return (lower if anneals else found), anneals
            found = self._more(lower, effort)
            if weighed is None or effort != EFFORTS[-1] or not may_dive(self.problem):
                return found, anneals
            # All that a cut may take from here on is worth less than what is known by then.
            found = self._iterate(found, EFFORTS[-2], anneals=anneals)
            try:
                dived = make_start(self.problem, DIVING, "", self.budget, self.seed, share=1.0)
            except NoSolution as failure:
                remark = f"no classes by diving: {failure.message}"
                return replace(found, trace=(*found.trace, remark)), anneals
            remark = f"diving: {dived.trace[0]}"
            improved = self._iterate(self._improve(dived, effort), EFFORTS[0], anneals=False)
            if improved.objective <= found.objective:
                return replace(improved, trace=(*found.trace, remark, *improved.trace)), False
            return replace(found, trace=(*found.trace, remark)), anneals

        return search


def improve(
    problem: Problem,
    labels: NDArray[np.integer],
    *,
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Ints:
    """Return (n,) labels of classes that are no worse than those given, which the problem allows.

    `effort`: as of :func:`local_search`. When the budget ends, what is reached is returned. No
    solution is made: the caller checks what it gets.
    """
    budget = budget or Budget()
    trials = iterated_steps(EFFORTS[0], problem.n)
    effort = check_effort(effort, limited=budget.deadline is not None)
    return _improved(problem, labels, effort, budget, seed, trials)[0]


def _improved(
    problem: Problem,
    labels: NDArray[np.integer],
    effort: str,
    budget: Budget,
    seed: int,
    trials: int,
) -> tuple[Ints, Stopped | None, str]:
    # The kernels know all rules, and losses with tables.
    if problem.compiled.has_tables:
        return improve_classes(problem, labels, effort, budget, seed, trials=trials)
    if are_squared(problem):
        return improve_squared_errors(problem, labels, effort, budget, seed)
    return improve_in_batches(problem, labels, effort, budget)
