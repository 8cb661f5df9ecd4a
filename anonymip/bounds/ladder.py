"""The ladder of bounds by duals of records: nearest neighbours, pairs, k-sets, dual ascent."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from anonymip.bounds.near_program import NearProgram
from anonymip.bounds.near_search import NearSearch, find_nearest
from anonymip.bounds.nearest_neighbour import bound_of_terms, hides_each, lowered_terms
from anonymip.bounds.record_duals import RecordDuals
from anonymip.effort import EFFORTS, check_effort
from anonymip.instances.microdata import RowTypes
from anonymip.objectives.language.tables import LossTables
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.recodings.registry import published_form
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.solution import Bound


@dataclass(frozen=True)
class LadderNumbers:
    """Numbers that steer the ladder. Losses computed, times columns: about 2.5e8 a second."""

    #: Effort -> losses, times columns, that may be computed in all: so many for each record, at
    #: least, and at most. A normal effort takes 16 s of a table of 30,000 records of 8 columns, a
    #: thorough one two minutes, and ten of a million; the bound of a table of some thousand records
    #: is not to take longer than its release.
    cells: Mapping[str, tuple[float, float, float]] = field(
        default_factory=lambda: {
            "quick": (0.0, 4e8, 4e8),
            "normal": (1.33e5, 1e9, 4e9),
            "thorough": (6.7e5, 1e10, 1e11),
        }
    )
    #: Share of what is left that k-sets take at most, where others follow.
    share_of_k_sets: float = 0.5
    #: How far a sweep may raise duals, in sums over pairs or k-set terms; it takes the farthest of
    #: these that there is work for. Farther ones prove less: of 20,640 houses with k = 10, 1.7
    #: comes to 5442 and 1.8 to 5426; of 100,000 census records 1.6 to 21637 and 1.8 to 21630. A
    #: sweep that is cut short is often worse than none.
    factors: tuple[float, ...] = (1.1, 1.2, 1.3, 1.35, 1.4, 1.45, 1.5, 1.55, 1.6, 1.65, 1.7)
    #: The one that says whether a program is worth its work.
    usual: float = 1.2
    #: How much farther a further sweep has to go, as a factor.
    way: float = 1.1
    #: Share of their aims below which duals that follow sums over pairs are full, and a sweep from
    #: k-set terms on says more: 0.8 of 20,640 houses with k = 5. Of 100,000 census records with
    #: k = 10 it is 0.91, and k-sets took 160 s in vain.
    full: float = 0.88
    #: Share of what is left to compute that a sweep is to take, as far as a sample of it tells.
    fitting: float = 0.9
    #: The same for the first one of a thorough effort that a normal one had no work for.
    first: float = 0.15
    #: Losses that the search for one type may compute in a sweep.
    each: int = 1_000_000
    #: A linear program guides the ascent from there on where so many times what a usual sweep
    #: takes is left: it took 10 to 90 times as much until the first round ended, and gained 4 to 10
    #: percent.
    guided: float = 60.0
    #: Losses that the search for one type may compute then: of a few far from all others the search
    #: is long, and who is not raised leaves the others no room.
    each_guided: int = 5_000_000
    #: With less left, but so many times what a usual sweep takes, a shorter way to the first round
    #: takes the place of a farther sweep with a normal effort: one stage of pricing, so many losses
    #: for one type, and share of all losses. Adult with k = 5 comes to 3228 in place of 2922.
    guided_early: float = 20.0
    each_early: int = 1_000_000
    share_early: float = 0.78
    #: With a thorough effort, so many times what a usual sweep takes, where the second round of
    #: pricing begins within this share of what is left. Adult with k = 10 comes to 5120 in place of
    #: 4429, and 73,000 codes to 11685 in place of 10857. Of 20,640 houses pricing took half of the
    #: work, and they came to 5051 in place of 5431.
    guided_capped: float = 5.0
    share_capped: float = 0.07
    #: Sums over pairs, or k-set terms, times these cap what the program aims at where not all of it
    #: can be proven: the farthest that there is work for. With k = 10, 4,000 records of Adult come
    #: to 1460 in place of 1088, 3,000 of codes to 1453 in place of 1078.
    capped: tuple[float, float] = (1.2, 5.0)
    #: So many are tried between these, until one takes this share of the work.
    tried: int = 7
    enough: float = 0.8
    #: Share of the losses that are left to compute for the rounds of pricing.
    pricing: float = 0.4
    #: A gain that is none, as a share of the value.
    gain: float = 5e-4


NUMBERS = LadderNumbers()


def guided_ascent(
    duals: RecordDuals, program: NearProgram, *, early: bool = False
) -> Iterator[bool]:
    """Raise duals round by round, from their k-set terms on, until the work ends.

    The program goes on where it stands. `early`: whether the first round is to come soon. Where all
    that the program says is more than can be proven, the first round, capped, is the last one.
    Yields after each round, and where the duals' own budget ends one, which then goes on: whether
    it has looked at all records.
    """
    unit = float(np.abs(duals.duals).mean())
    if unit == 0.0:
        return
    ending = (1.0 - NUMBERS.pricing) * duals.left
    each = NUMBERS.each_early if early else NUMBERS.each_guided
    caps = np.empty(0)
    for stages in (1,) if early else (1, None):
        while not program.solve(ending, stages, pause=duals.budget):
            yield False
        begun = duals.left
        caps = yield from _provable(duals, program.aims, each)
        if not np.isinf(caps).all():
            break
        ending -= begun - duals.left
    best, taken, charged = -np.inf, 0.0, unit * int(duals.counts.sum())
    # A round that is cut short is in vain.
    while duals.left > taken:
        before = duals.left
        complete = duals.ascend_to(np.fmin(program.aims, caps), each)
        while duals.interrupted:
            yield False
            complete = duals.go_on()
        yield complete
        # Duals of both signs may add up to nothing, which no gain is a share of.
        least = NUMBERS.gain * max(abs(best), charged) if np.isfinite(best) else 0.0
        if not complete or duals.value < best + least or not np.isinf(caps).all():
            return
        best, taken = duals.value, before - duals.left
        members = duals.binding_sets()
        program.sets.add(members, duals.costs(members))
        while not program.improve(duals.budget):
            yield False


def _provable(duals: RecordDuals, aims: Floats, each: int) -> Generator[bool, None, Floats]:
    """Return (t,) caps of the aims under which there is work to prove them; infinite for none.

    Yields as long as the duals' budget is spent.
    """
    most, (least, farthest) = NUMBERS.fitting * duals.left, NUMBERS.capped
    factor = np.inf
    for _ in range(NUMBERS.tried):
        while duals.budget.stop_reason() is not None:
            yield False
        caps = duals.caps_of(factor) if factor < np.inf else np.full(len(aims), np.inf)
        work = duals.work_of(np.fmin(aims, caps), each, by_boxes=True)
        if work <= most:
            least = factor
            if work > NUMBERS.enough * most or factor == np.inf:
                return caps
        else:
            farthest = min(factor, farthest)
        factor = (least * farthest) ** 0.5
    return duals.caps_of(least)


def ladder_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release, as good as the effort allows.

    The bounds are nearest neighbours, sums over pairs, an ascent in the shape of these as far as
    the work allows, k-sets, and rounds that a linear program guides; see
    :mod:`anonymip.bounds.record_duals` for what holds, and :class:`Ladder` for their order.
    The name of the bound says which of them it is, and whether the work ended before all
    records were looked at.

    `problem`: with a monotone objective that has tables. `effort`: how much work: ``"quick"`` ends
    with k-sets, ``"normal"`` takes about 20 s at most and ``"thorough"`` about two minutes of
    30,000 records and ten of a million. None for thorough within a time limit, else normal.
    `budget`: ends the work; what was reached until then is a bound. Returns: None where nearest
    neighbours bound nothing either, or the objective has no tables.

    Exact up to rounding, by which every dual is lowered. Counts work and not seconds: the same
    effort gives the same bound, and more effort none that is lower. Complexity: exponential in k
    for one row, but ended after a number of losses with what is proven until then.
    """
    budget = budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    return Ladder(problem, effort, budget).climb(budget) if has_ladder(problem) else None


class Ladder:
    """The way up, which goes on where a budget ended it.

    All efforts climb the same way: a higher one does what the lower ones do, one after the other,
    and then its own, from the duals and the program that they leave. So more work never makes the
    bound lower, and a time limit only ends it sooner. The work of an effort is a sweep as far as it
    fits, and where much is left finding k-sets and what follows them: guided rounds, or a sweep
    from these terms on. Where sums over pairs bound nothing, k-sets come first.

    `problem`: that has a ladder. `effort`: how far. `budget`: ends all work.
    """

    def __init__(self, problem: Problem, effort: str, budget: Budget) -> None:
        self._problem, self._effort, self._whole = problem, effort, budget
        self._watch = Stopwatch()
        self._part, self._way = budget, self._steps()
        self._duals: RecordDuals | None = None
        self.best: Bound | None = None  # the highest bound so far
        #: The sets that the first effort with a program priced; None before its end, or without
        #: one.
        self.weighed: WeighedSets | None = None
        self.program: NearProgram | None = None  # that guides the last rounds
        self.passed = -1  # the last effort that was climbed to its end, as its place among all
        self.ended = False  # whether there is nothing more to do with this effort

    def climb(self, budget: Budget, until: str | None = None) -> Bound | None:
        """Go on until the budget ends or the effort is spent; return the best bound so far.

        `until`: a lower effort, whose end is far enough.
        """
        enough = EFFORTS.index(until) if until else len(EFFORTS)
        if self.ended or self.passed >= enough:
            return self.best
        self._part = budget
        if self._duals is not None:
            self._duals.budget = budget
        try:
            for bound in self._way:
                if bound and (self.best is None or bound.value > self.best.value):
                    self.best = bound
                if budget.stop_reason() is not None or self.passed >= enough:
                    return self.best
        except CompilationStopped:
            if self.best is None:
                raise
        # What is proven by then is a bound.
        self.ended = True
        return self.best

    def _steps(self) -> Iterator[Bound | None]:
        """Yield the bounds of the way, also where a budget ends a part; None after an effort."""
        problem, complete = self._problem, False
        while not complete:
            terms, complete = lowered_terms(problem, self._part, self._effort)
            stopped = self._part.stop_reason() is not None
            yield bound_of_terms(problem, terms, "nearest-neighbour", complete, self._watch)
            if not complete and not stopped:
                return
        if not raises_duals(problem):
            return
        duals = self._duals = RecordDuals(problem, terms, 0.0, self._part)
        if _duals_hold(problem) and bounds_by_pairs(duals.search.rows.tables):
            yield from self._pair_sums(duals)
        reached, usual = 0.0, np.inf  # how far a sweep has raised duals; what a usual one takes
        for effort in EFFORTS[: EFFORTS.index(self._effort) + 1]:
            duals.allow(allowed_cells(problem, effort))
            paired = _paired(duals)
            if not paired:
                share = 1.0 if effort == "quick" else NUMBERS.share_of_k_sets
                yield from self._through(duals, "k-sets", duals.raise_to_k_sets(share))
            if _duals_hold(problem) and (paired or effort != "quick"):
                if usual == np.inf:  # more than a lower effort had left
                    usual = duals.work_of(duals.caps_of(NUMBERS.usual), NUMBERS.each)
                enough = duals.left / max(usual, 1.0)
                early = effort == "normal" and NUMBERS.guided_early <= enough < NUMBERS.guided
                soon = early
                capped = NUMBERS.guided_capped <= enough < NUMBERS.guided
                if effort == "thorough" and paired and capped and self.program is None:
                    soon = yield from self._prices_soon(duals)
                guides = soon or (effort != "quick" and enough >= NUMBERS.guided)
                # Where a program guides, farther sweeps come to less.
                if self.program is None and not (guides and reached):
                    if effort == "thorough" and not reached:
                        # Of a million records the farthest takes ten minutes: a limit may end it.
                        reached = yield from self._sweep(duals, reached, guides, NUMBERS.first)
                    reached = yield from self._sweep(duals, reached, guides)
                full = reached > 0.0 and duals.value < NUMBERS.full * duals.aimed
                if full and paired and not guides and effort != "quick":
                    # Sums over pairs say no more: from k-set terms on others may be raised.
                    found = duals.raise_to_k_sets(NUMBERS.share_of_k_sets)
                    yield from self._through(duals, "k-sets", found)
                    yield from self._sweep(duals, 0.0, guides)
                if guides:
                    if early:
                        duals.allow(NUMBERS.share_early * allowed_cells(problem, effort))
                    if paired and (early or not soon):
                        # The program looks as far around each as its k-set term says.
                        begun = duals.duals
                        found = duals.raise_to_k_sets(NUMBERS.share_of_k_sets)
                        yield from self._through(duals, "k-sets", found)
                        duals.duals = begun
                    self.program = self.program or NearProgram(duals, self._whole)
                    for complete in guided_ascent(duals, self.program, early=soon):
                        yield self._bound(duals, "column generation, dual ascent", complete)
            if self.program is not None and self.weighed is None:
                sets = self.program.sets
                self.weighed = WeighedSets(duals.types, duals.counts, sets.members, sets.shares)
            self.passed = EFFORTS.index(effort)
            yield None

    def _prices_soon(self, duals: RecordDuals) -> Generator[None, None, bool]:
        """Begin a program, and return whether its rounds take little; else it is dropped."""
        program, ending = NearProgram(duals, self._whole), (1.0 - NUMBERS.share_capped) * duals.left
        while not program.solve(ending, 1, pause=self._part):
            yield None
        soon = program.rounds > 1 or duals.left > ending
        self.program = program if soon else None
        return soon

    def _pair_sums(self, duals: RecordDuals) -> Iterator[Bound]:
        """Yield the bound by sums over pairs, from which no other goes on.

        It takes as long as nearest neighbours, and is no part of the work that is counted.
        """
        sums, floors, work = PairSums(duals.search, duals.k), duals.duals, duals.search.work
        while not sums.complete:
            begun = int(work[0])
            sums.go_on(self._part)
            work[0] = begun
            duals.duals = sums.duals
            bound = self._bound(duals, "sums over pairs", sums.complete)
            duals.duals = floors
            yield bound
        duals.pairs = sums.duals

    def _through(
        self, duals: RecordDuals, method: str, complete: bool
    ) -> Generator[Bound, None, bool]:
        """Go on with a sweep that a budget ended, and return whether all were looked at."""
        while duals.interrupted:
            yield self._bound(duals, method, complete)
            complete = duals.go_on()
        yield self._bound(duals, method, complete)
        return complete

    def _sweep(
        self, duals: RecordDuals, reached: float, guides: bool, share: float = NUMBERS.fitting
    ) -> Generator[Bound | None, None, float]:
        """Raise duals as far beyond what is reached as the work allows; return how far that is.

        It is to take this share of what is left. Before a program, which `guides` what follows, a
        usual sweep is enough.
        """
        farthest = reached
        for factor in NUMBERS.factors:
            while self._part.stop_reason() is not None:
                yield None
            if factor >= NUMBERS.way * reached and not (guides and factor > NUMBERS.usual):
                if duals.work_of(duals.caps_of(factor), NUMBERS.each) > share * duals.left:
                    break
                farthest = factor
        if farthest > reached:
            ascended = duals.ascend(farthest, NUMBERS.each)
            yield from self._through(duals, "dual ascent", ascended)
        return farthest

    def _bound(self, duals: RecordDuals, method: str, complete: bool) -> Bound:
        return bound_of_terms(self._problem, duals.terms(), method, complete, self._watch)


@dataclass(frozen=True)
class WeighedSets:
    """Sets of k records, and how much of each a linear program takes.

    `types`: rows by type. `counts`: (t,) rows of each. `members`: (c, k) types, ascending in each
    set. `shares`: (c,) of each set, roughly between 0 and 1.
    """

    types: RowTypes
    counts: Ints
    members: Codes
    shares: Floats


def allowed_cells(problem: Problem, effort: str) -> float:
    """Return the losses, times columns, that an effort may compute."""
    each, least, most = NUMBERS.cells[effort]
    return min(most, max(least, each * problem.n))


def has_ladder(problem: Problem) -> bool:
    """Return whether nearest neighbours bound the loss, the lowest of these bounds."""
    return problem.compiled.has_tables and hides_each(problem)


def raises_duals(problem: Problem) -> bool:
    """Return whether there are higher bounds: with k = 2 a set is a pair."""
    return has_ladder(problem) and (problem.k > 2 or _duals_hold(problem))


def _paired(duals: RecordDuals) -> bool:
    """Return whether sums over pairs say of each record how far its dual may be raised."""
    return bool(np.isfinite(duals.pairs).all())


def _duals_hold(problem: Problem) -> bool:
    """Return whether the sum of feasible duals bounds the loss: who covers whom is regular."""
    if problem.compiled.aggregate != "sum":
        return False
    recoding = problem.recoding
    if type(recoding) is Freeform:  # another may allow other covers
        return recoding.degrees is None
    return published_form(recoding) == "classes"


class PairSums:
    """Feasible duals by the pairs of each row: a set loses a share of what its pairs lose together.

    The range of k numbers is at least the sum of the distances of their pairs, divided by
    floor(k/2) ceil(k/2): no gap between two neighbours lies within more pairs. With u distinct
    values among k rows, no more pairs differ than if all were equally frequent. Of any other
    monotone term no pair loses more than the set, so that their mean does not either. Scaled by
    these shares, term by term, the losses p of pairs give p(S) <= c(S), p(S) being their sum over
    the pairs of a set S of k rows, and c(S) what a record of the set loses.

    Every row lies in k - 1 pairs of S, and loses in them no less than with its k - 1 nearest rows;
    each pair is counted by both. So k / 2 times the sum of p over the k - 1 nearest rows are
    feasible duals (:mod:`anonymip.bounds.record_duals`). The k-th nearest row, of which nearest
    neighbours speak, proves less wherever a set of k covers much more than its furthest pair: with
    large k, and in tables of many columns.

    `search`: of sets of `k` rows, with losses that pairs bound. Complexity: a search in a k-d tree
    for every row type.

    `duals`: (t,) of a row of each type, without what all sets lose alike; 0 where it is not
    computed.
    """

    def __init__(self, search: NearSearch, k: int) -> None:
        rows = search.rows._replace(tables=scaled_to_pairs(search.rows.tables, k))
        self._search, self._k = search._replace(rows=rows), k
        self.duals, self._cursor = np.zeros(len(search.counts)), np.zeros(1, np.int64)

    @property
    def complete(self) -> bool:
        """Whether all duals are computed."""
        return bool(self._cursor[0] == len(self.duals))

    def go_on(self, budget: Budget) -> None:
        """Compute further duals until the budget ends."""
        step = partial(_sum_step, self._search, self._k, self.duals, self._cursor)
        run_in_steps(step, len(self.duals), budget, "sums over pairs", first=100)


def bounds_by_pairs(tables: LossTables) -> bool:
    """Return whether no term may be negative, and none stands for a limit."""
    plain = (tables.range_low + tables.range_high == 0).all() and (tables.range_high >= 0).all()
    unlimited = (tables.pair_strides >= 0).all() and (tables.pair_losses >= 0).all()
    return bool(plain and unlimited and (tables.set_losses >= 0).all())


def scaled_to_pairs(tables: LossTables, k: int) -> LossTables:
    """Return losses whose sum over all pairs of k rows is at most what a record of the k loses."""
    halves, sets = (k // 2) * (k - k // 2), tables.set_losses.copy()
    for start, size in zip(tables.set_start, tables.set_sizes, strict=True):
        sets[start : start + size + 1] *= _share_of_values(sets[start + 1 : start + 1 + size], k)
    return tables._replace(
        constant=0.0,
        range_low=tables.range_low / halves,
        range_high=tables.range_high / halves,
        set_losses=sets,
        pair_losses=tables.pair_losses / (k * (k - 1) // 2),
    )


def _share_of_values(losses: Floats, k: int) -> float:
    """Return the least share of what their pairs lose that k rows lose, by losses of 1, 2, ...

    `losses`: (values,) of so many distinct values, rising.
    """
    one, two = losses[0], losses[min(1, len(losses) - 1)]
    shares = [0.0]
    for values in range(1, min(k, len(losses)) + 1):
        often, more = divmod(k, values)
        alike = (often * (often - 1) // 2) * values + often * more
        lost = alike * one + (k * (k - 1) // 2 - alike) * two
        if lost > 0:
            shares.append(float(losses[values - 1] / lost))
    return min(shares[1:], default=0.0)


@kernel
def _sum_step(search: NearSearch, k: int, duals: Floats, cursor: Ints, amount: int) -> int:
    """Compute the duals of up to `amount` further types; return how many are done."""
    for row in range(cursor[0], min(cursor[0] + amount, len(duals))):
        held, missing, total = find_nearest(search, row), k - 1, 0.0
        for at in range(held):
            # Of its own type there is the row itself.
            rows = min(missing, search.counts[search.near[at]] - (at == 0))
            total += rows * search.near_losses[at]
            missing -= rows
        duals[row] = 0.5 * k * total
        cursor[0] = row + 1
    return cursor[0]
