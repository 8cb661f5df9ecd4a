"""Reassignment: improve any freeform cover by exchanges of whole matchings, or of two originals."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import Assignment, Cover
from anonymip.effort import check_effort
from anonymip.errors import InputError, UnsupportedObjective, argument, unknown_name
from anonymip.graphs import degree_of, random_matchings
from anonymip.graphs.weighted.assignment import assign
from anonymip.heuristics.freeform.partitioned import in_parts
from anonymip.heuristics.freeform.rounds.growing_cover import GrowingCover, covers, replace
from anonymip.heuristics.freeform.set_growth import (
    NUMBERS,
    SetStates,
    fill_costs,
    fill_weights,
    losses_with_each,
    new_states,
    new_table,
    rebuild,
    set_loss,
    set_terms,
)
from anonymip.problem import Problem, are_diverse
from anonymip.recodings import Freeform
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_over
from anonymip.solution import Solution
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_ABSOLUTE

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
        exchange = MatchingExchange(problem, degree, rng)
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


class MatchingExchange:
    """The exchange of whole matchings of regular covers of one problem and degree.

    `rng`: draws the decompositions. Raises UnsupportedObjective if the objective has no tables and
    there are too many records for all pairs.
    """

    def __init__(self, problem: Problem, degree: int, rng: np.random.Generator) -> None:
        n = problem.n
        self.problem, self.rng = problem, rng
        #: Of the sets, for its loss; None where it has no tables.
        self.states: SetStates | None = None
        precision = np.float64 if n <= NUMBERS.double else np.float32
        #: (n, n) memory of the cost of each set with each original.
        self.costs: NDArray[np.floating] = np.empty((n, n), precision)
        if problem.compiled.has_tables:
            self.states = new_states(set_terms(problem), degree)
        elif n > NUMBERS.untabled:
            raise UnsupportedObjective(
                f"objective {problem.objective.name!r} has no tables, and {n} records are too many "
                "to compute it for all pairs",
                remedy=f"Use parts of at most {NUMBERS.untabled} records",
            )

    def run_pass(self, cover: Cover, budget: Budget) -> tuple[Cover, float, Stopped | None]:
        """Draw a decomposition of a regular cover and assign each of its matchings again.

        Returns: a cover with every record in its own set, though not in the set that was its own
        before: a set costs the same whoever is published with it; by how much the sum of the losses
        has fallen, at least 0; why the pass ended early, if it did.
        """
        degree = int(cover.sizes[0])
        matchings = random_matchings(cover, degree, self.rng)
        sets = np.ascontiguousarray(matchings.T)
        gain, duals, stopped = 0.0, None, None
        for column in range(degree):
            stopped = self._fill_costs(sets, column, budget)
            if stopped is None:
                # The duals of one matching are nearly those of the next.
                chosen, duals, stopped = assign(self.costs, budget, duals=duals)
            if stopped is not None:
                break
            gain += self._exchange(sets, column, chosen)
        owned = np.empty_like(sets)
        owned[sets[:, 0]] = sets
        return Cover.of(np.sort(owned, axis=1)), gain, stopped

    def _exchange(self, sets: Codes, column: int, chosen: Ints) -> float:
        """Replace one matching, cycle by cycle where that gains and keeps the diversity."""
        everyone = np.arange(len(sets))
        before = sets[:, column].copy()
        gains = self.costs[everyone, before].astype(np.float64)
        gains -= self.costs[everyone, chosen]
        after = sets.astype(np.int64)
        after[:, column] = chosen
        allowed = are_diverse(self.problem, after)
        cycles = _cycles(before, chosen)
        total = np.bincount(cycles, gains)
        spoiled = np.bincount(cycles[~allowed], minlength=len(total)) > 0
        least = LOSS_ABSOLUTE if self.costs.dtype == np.float64 else NUMBERS.least_single
        taken = ((total > least) & ~spoiled)[cycles]
        sets[taken, column] = chosen[taken]
        return float(gains[taken].sum())

    def _fill_costs(self, sets: Codes, column: int, budget: Budget) -> Stopped | None:
        """Write what each set without one matching costs with each original in addition."""
        rest = np.delete(sets, column, axis=1)
        states = self.states
        if states is None:
            for i in range(len(rest)):
                stopped = budget.stop_reason()
                if stopped is not None:
                    return stopped
                self.costs[i] = losses_with_each(self.problem, rest[i])
            return None
        step = partial(fill_costs, states, rest, new_table(states.terms), self.costs)
        stopped = run_over(step, len(sets), budget, "weighing matches", first=200)
        self.costs[np.arange(len(rest))[:, None], rest] = np.inf
        return stopped


def _cycles(before: Codes, after: Ints) -> Ints:
    """Return (n,) numbers of the groups of sets that exchange originals among themselves."""
    n = len(before)
    owner = np.argsort(before)
    graph = csr_array((np.ones(n, np.int8), owner[after], np.arange(n + 1)), (n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


#: So many of the cheapest originals are tried in the place of each one.
_TRIED = 8


def swap_matches(
    problem: Problem, cover: Cover, reciprocal: bool, rng: np.random.Generator, budget: Budget
) -> tuple[Cover, float, Stopped | None]:
    """Go over all matches once and swap each with the best of a few others where that gains.

    Original a leaves the set of i for that of j, and b comes in its place. Own records stay. In a
    reciprocal cover i and a, j and b are pairs that separate and join crosswise, which changes the
    four sets; degrees and sizes stay in both cases.

    `cover`: every record in its own set; it stays `reciprocal` if it is. `rng`: draws the order of
    the records. When the budget ends, the swaps made stay. Returns: what is reached, by how much
    the sum of the losses has fallen, why it ended early. Complexity: O(k n (n m + k)) time.
    """
    terms, n = set_terms(problem), problem.n
    largest = int(cover.sizes.max())
    members = np.full((n, largest), -1, np.int32)
    inside = np.arange(largest) < cover.sizes[:, None]
    members[inside] = cover.members
    states = new_states(terms, largest)
    sets = GrowingCover(members, cover.sizes.copy(), cover.degrees.copy(), cover.sizes.copy())
    order, gain = rng.permutation(n), np.zeros(1)
    table, weights = new_table(terms), np.empty(n)
    step = partial(_swap, states, sets, reciprocal, order, table, weights, gain)
    stopped = run_over(step, n, budget, "swapping matches", first=10)
    return Cover(cover.start, members[inside]), float(gain[0]), stopped


@kernel
def _swap(
    states: SetStates,
    cover: GrowingCover,
    reciprocal: bool,
    order: Ints,
    table: Floats,
    weights: Floats,
    gain: Floats,
    begin: int,
    end: int,
) -> None:
    """Swap the matches of some records of the order where that gains."""
    members, sizes, n = cover.members, cover.sizes, len(order)
    for i in order[begin:end]:
        for place in range(sizes[i]):
            leaving = members[i, place]
            if leaving == i or sizes[i] < 2:
                continue
            # The set without the leaving original: a member twice instead, which costs nothing.
            others = members[i, : sizes[i]].copy()
            others[place] = others[0] if place else others[1]
            rebuild(states, i, others)
            fill_weights(states, i, table, weights)
            # What the set holds, the leaving original too, cannot come in.
            for at in range(sizes[i]):
                weights[members[i, at]] = np.inf
            # The best swap of a few: the cheapest originals, and each set that has one of them.
            best, first, second = LOSS_ABSOLUTE, -1, -1
            for _ in range(_TRIED):
                coming = int(np.argmin(weights))
                if weights[coming] == np.inf:
                    break
                weights[coming] = np.inf
                for j in range(n):
                    if j in (i, coming) or (j == leaving and reciprocal):
                        continue
                    if not covers(cover, j, coming) or covers(cover, j, leaving):
                        continue
                    # By how much the losses fall if the two sets exchange originals.
                    found = _fall(states, cover, i, leaving, coming)
                    found += _fall(states, cover, j, coming, leaving)
                    if reciprocal:
                        found += _fall(states, cover, leaving, i, j)
                        found += _fall(states, cover, coming, j, i)
                    if found > best:
                        best, first, second = found, coming, j
            # Sets i and `second` exchange originals: sizes stay, and in how many sets each one is.
            if first >= 0:
                gain[0] += best
                replace(cover, i, leaving, first)
                replace(cover, second, first, leaving)
                if reciprocal:
                    replace(cover, leaving, i, second)
                    replace(cover, first, second, i)


@kernel
def _fall(states: SetStates, cover: GrowingCover, i: int, old: int, new: int) -> float:
    """Return by how much the loss of one set falls if a member is replaced."""
    held = cover.members[i, : cover.sizes[i]].copy()
    # All in the place of the first set, which is made anew before it is read: what is not
    # comparable to others cancels out.
    rebuild(states, 0, held)
    before = set_loss(states, 0)
    held[held == old] = new
    rebuild(states, 0, held)
    return before - set_loss(states, 0)
