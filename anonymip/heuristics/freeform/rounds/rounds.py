"""Rounds in which freeform covers grow: set-up, weights, and the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import InputError, NoSolution, argument
from anonymip.heuristics.freeform.nh import nh
from anonymip.heuristics.freeform.partitioned import finish_cover
from anonymip.heuristics.freeform.ring import ring
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    PathSearch,
    fill_up,
    fill_up_both_ways,
    finished,
    own_cover,
)
from anonymip.heuristics.freeform.set_growth import (
    NUMBERS,
    SetStates,
    fill_costs,
    fill_losses,
    losses_with_each,
    new_states,
    new_table,
    rebuild,
    record_losses,
    set_terms,
    take,
)
from anonymip.objectives import GCP
from anonymip.orders.orders import cardinality_order
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_over
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Itself a method in rounds.
_SORT_GREEDY = "anonymip.heuristics.freeform.sort_greedy:sort_greedy"


@dataclass
class StartingBudget(Budget):
    """A budget that has a cheap start found once, when a third of its time is spent.

    `find_start`: finds the start; called from where the budget is asked.
    """

    find_start: Callable[[], None] | None = None
    _moment: float = math.inf

    @classmethod
    def around(cls, budget: Budget, find_start: Callable[[], None]) -> StartingBudget:
        """Return a budget with the limits, the listener and the interrupt of another."""
        left = budget.remaining()
        moment = math.inf if left is None else time.monotonic() + left * NUMBERS.start_moment
        return cls(
            budget.deadline, budget.progress, budget._interrupted, budget._whole, find_start, moment
        )

    def stop_reason(self) -> Stopped | None:
        """Return why to stop now, or None to go on."""
        if self.find_start is not None and time.monotonic() >= self._moment:
            find_start, self.find_start = self.find_start, None
            find_start()
        return super().stop_reason()


class Rounds:
    """A freeform problem whose cover grows in rounds, every record in its own set at first.

    `method`: name of the heuristic. `reciprocal`: whether the cover is to be reciprocal, if the
    problem does not ask for it. Raises InputError if the problem asks for no freeform cover, or for
    diversity; NoSolution if no reciprocal cover can have the degrees.
    """

    def __init__(
        self, problem: Problem, method: str, budget: Budget | None, *, reciprocal: bool = False
    ) -> None:
        recoding, budget = problem.recoding, budget or Budget()
        self.problem, self.method, self.watch = problem, method, Stopwatch()
        if not isinstance(recoding, Freeform):
            raise InputError(
                f"{method} makes freeform covers, the problem asks for {recoding.name}",
                remedy=f"Use {argument('recoding', 'freeform')}",
            )
        if problem.diversity is not None:
            raise InputError(
                f"{method} knows no diversity of sets", remedy="Use nh, ring or freeform-mip"
            )
        self.reciprocal = reciprocal or recoding.reciprocal
        wanted = _wanted(problem, recoding, self.reciprocal)
        #: (n,) records in lexicographic order, attributes with few values first; the kernels number
        #: the records by it, and ties go to the first.
        self.order = cardinality_order(problem, budget).astype(np.int64)
        has_tables = problem.compiled.has_tables
        terms = set_terms(problem if has_tables else problem.replace(objective=GCP()), self.order)
        size = problem.n if not has_tables and problem.n <= NUMBERS.untabled else 0
        self.cover = own_cover(wanted[self.order])
        #: Weights of the present round.
        self.weights = PairWeights(
            new_states(terms, int(wanted.max())), np.empty((size, size)), bool(problem.limits)
        )
        self.search = PathSearch.of_sizes(n=problem.n)
        #: When a third of its time is spent a cheap start is found: a method that is cut off
        #: returns nothing worse.
        self.budget = StartingBudget.around(budget, lambda: self._find_start())
        #: The cheap start, its loss, and what it is, once it is found.
        self.start: tuple[Cover, float, str] | None = None
        self._fill_matrix()

    @property
    def count(self) -> int:
        """Number of rounds."""
        return int(self.cover.wanted.min()) - 1

    @property
    def bounds_hold(self) -> bool:
        """Whether part of a weight bounds all of it: no term falls when a set grows."""
        compiled = self.problem.compiled
        return not len(self.weights.matrix) and (compiled.monotone or not compiled.has_tables)

    def run(self, match: Callable[[Ints, str], Stopped | None]) -> Stopped | None:
        """Run the rounds; return why they stopped early, if they did.

        `match`: makes the matches of a round: takes (n,) how many each record is to find, and what
        is being done; returns why it stopped early. Weights are set anew after each round.
        """
        for number in range(1, self.count + 1):
            before = self.cover.sizes.copy()
            sizes = 1 + (self.cover.wanted - 1) * number // self.count
            stopped = match(sizes - before, f"round {number} of {self.count}")
            _take_new(self.weights.states, self.cover, before)
            self._fill_matrix()
            if stopped is not None:
                return stopped
        return None

    def losses(self) -> Floats:
        """Return the (n,) losses of the published records when the weights were last set."""
        losses = np.empty(self.problem.n)
        if not len(self.weights.matrix):
            fill_losses(self.weights.states, losses)
            return losses
        for size in np.unique(self.cover.sizes):
            published = np.flatnonzero(self.cover.sizes == size)
            sets = self.order[self.cover.members[published, :size]]
            losses[published] = record_losses(self.problem, sets)
        return losses

    def finish(self, stopped: Stopped | None, options: Mapping[str, object]) -> Solution:
        """Complete the cover and return the solution; a cheap start if it loses less.

        Raises NoSolution if no cover is found that has the degrees and keeps the limits.
        """
        missing = int((self.cover.wanted - self.cover.sizes).sum())
        cut_off = stopped is not None and missing > 0
        if cut_off and self.start is None:
            self._find_start()
        start = self.start if cut_off else None
        trace: tuple[str, ...] = ()
        end = partial(
            finish_cover,
            self.problem,
            method=self.method,
            watch=self.watch,
            stopped=stopped,
            options=options,
            looks=True,
        )
        try:
            if missing:
                if self.weights.limited:
                    for i in range(self.problem.n):
                        held = self.cover.members[i, : self.cover.sizes[i]]
                        rebuild(self.weights.states, i, held)
                reach = 2 * int(self.cover.wanted.max())
                if self.reciprocal:
                    left = int(fill_up_both_ways(self.cover, self.weights, reach))
                else:
                    left = int(fill_up(self.cover, self.weights, self.search, reach))
                if left:
                    raise self._failure(left)
                trace = (*trace, f"{missing} matches were added after the rounds, along the order")
            if self.weights.matrix.shape[0] == 0 and not self.problem.compiled.has_tables:
                remark = f"more than {NUMBERS.untabled} records and a loss without tables: "
                trace = (*trace, f"{remark}the weights were those of GCP")
            found = end(finished(self.cover, self.order), trace=trace)
        except NoSolution:
            if start is None:
                raise
            return end(start[0], trace=(*trace, f"cut off: {start[2]}"))
        if start is None or start[1] >= found.objective:
            return found
        return end(start[0], trace=(*trace, f"{start[2]} loses less: taken instead"))

    def _find_start(self) -> None:
        """Find the best of some covers that take little time, for rounds that are cut off.

        Rings along a Hilbert curve and in lexicographic partitions; if time is left, SortGreedy on
        the table in parts, and on a small table as a whole, unless that is the method that is cut
        off. Complexity: O(n log n + n k), and what the budget allows for SortGreedy.
        """
        problem, recoding, part = self.problem, self.problem.recoding, NUMBERS.start_part
        assert isinstance(recoding, Freeform)
        asked = problem.replace(recoding=Freeform(self.reciprocal, recoding.degrees))
        runs: list[tuple[str, Callable[[], Solution]]] = [
            ("a ring along the Hilbert curve", lambda: ring(asked)),
            ("a ring in each partition", lambda: nh(asked)),
        ]
        left, whole = self.budget.remaining(), problem.n <= part
        hurries = left is None or left < NUMBERS.start_seconds * problem.n
        if hurries or self.budget.is_interrupted:
            pass
        elif not whole and int(recoding.sizes(problem).max()) * 2 <= part:
            in_parts = partial(self._sorted_greedily, asked, part=part, jobs=1)
            runs.append((f"sort-greedy in parts of {part}", in_parts))
        elif whole and self.method != "sort-greedy":
            runs.append(("sort-greedy", partial(self._sorted_greedily, asked)))
        for name, run in runs:
            try:
                cover = run().assignment
            except (InputError, NoSolution):
                continue  # rings have one size and look at no limits
            assert isinstance(cover, Cover)
            loss = problem.compiled.total(recoding.describe(problem, cover), cover)
            if self.start is None or loss < self.start[1]:
                self.start = cover, loss, name

    def _sorted_greedily(self, problem: Problem, **options: Any) -> Solution:
        budget = self.budget.share(NUMBERS.start_share)
        budget.progress = None  # that of the start is not that of the method
        method: Callable[..., Solution] = resolve_name(_SORT_GREEDY)
        return method(problem, budget=budget, **options)

    def _failure(self, missing: int) -> NoSolution:
        if self.weights.limited:
            return NoSolution(
                f"{self.method} found no cover that keeps the limits: {missing} matches are "
                "missing, and every exchange tried breaks a limit",
                remedy="Use freeform-mip, a smaller k or weaker limits",
            )
        graph = "reciprocal cover" if self.reciprocal else "cover"
        proof = "was found" if self.reciprocal else "exists"
        return NoSolution(
            f"no {graph} with these degrees {proof}: {missing} matches are missing",
            remedy="Give degrees that differ less",
        )

    def _fill_matrix(self) -> None:
        """Compute the increases of a loss without tables for all pairs."""
        for i, loss in enumerate(self.losses() if len(self.weights.matrix) else ()):
            held = self.order[self.cover.members[i, : self.cover.sizes[i]]]
            grown = losses_with_each(self.problem, held)[self.order]
            np.subtract(grown, loss, out=grown, where=grown < np.inf)
            self.weights.matrix[i] = grown


def _wanted(problem: Problem, recoding: Freeform, reciprocal: bool) -> Ints:
    """Return (n,) sizes of the sets: one more for all where n k is odd and sets are reciprocal.

    Matches of different records come in pairs in a reciprocal cover.
    """
    wanted = recoding.sizes(problem)
    if reciprocal and int((wanted - 1).sum()) % 2:
        if recoding.degrees is not None:
            raise NoSolution(
                "no reciprocal cover has these degrees: matches of different records come in "
                "pairs, and the degrees call for an odd number",
                remedy="Raise one degree by one",
            )
        wanted = wanted + 1
    return wanted


@kernel
def _take_new(states: SetStates, cover: GrowingCover, before: Ints) -> None:
    for i in range(len(before)):
        for at in range(before[i], cover.sizes[i]):
            take(states, i, cover.members[i, at])


Costs = NDArray[np.floating[Any]]


def new_costs(rounds: Rounds) -> Costs:
    """Return the memory of the weights of all pairs.

    Raises InputError if there are more than 20 000 records.
    """
    n = rounds.problem.n
    if n > NUMBERS.all_pairs:
        raise InputError(
            f"{rounds.method} keeps the weights of all pairs, and {n} records have {n * n} of them",
            remedy=f"Use greedy or sort-greedy beyond {NUMBERS.all_pairs} records",
        )
    return np.empty((n, n), np.float64 if n <= NUMBERS.double else np.float32)


def weigh_pairs(rounds: Rounds, costs: Costs, phase: str) -> Stopped | None:
    """Write the weights [published, original], infinite where the set has the record already.

    Complexity: O(n^2 m) time.
    """
    cover, weights = rounds.cover, rounds.weights
    stopped: Stopped | None = None
    if len(weights.matrix):
        costs[:] = weights.matrix
    else:
        table, as_they_are = new_table(weights.states.terms), np.empty((0, 0), np.int32)
        step = partial(fill_costs, weights.states, as_they_are, table, costs)
        stopped = run_over(step, len(costs), rounds.budget, phase, first=100)
    held = np.arange(cover.members.shape[1]) < cover.sizes[:, None]
    costs[np.nonzero(held)[0], cover.members[held]] = np.inf
    return stopped
