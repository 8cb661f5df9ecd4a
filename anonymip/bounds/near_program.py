"""The linear program over sets of near records of a whole table, solved in rounds of pricing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from anonymip.bounds.near_search import NearSearch, gather_near, sort_by_loss
from anonymip.bounds.record_duals import RecordDuals
from anonymip.enumeration.merging import search_rows
from anonymip.enumeration.pricing import RootedRun, cuts_of_rows
from anonymip.enumeration.rooted_search import RootedRules, Roots
from anonymip.instances.microdata import RowTypes
from anonymip.problem import Problem, is_plain
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_over


@dataclass(frozen=True)
class ProgramNumbers:
    """Numbers that steer the linear program over near sets."""

    #: Steps before the first restart; later ones come when a third of all steps have been made.
    restart: int = 50
    #: Steps of the program in each round.
    steps: int = 200
    #: Sets taken of each root in a round.
    keep: int = 3
    #: Roots that are searched at a time, which bounds the memory.
    roots: int = 20_000
    #: Types listed for all roots together, at most.
    listed: int = 40_000_000
    #: What a step of the program costs for each member of a set, in losses times columns: 200 steps
    #: over 30,000 sets of 10 took a tenth of a second.
    step: float = 0.4
    #: What looking at a partial set costs in losses, as a share of the types listed as nearest.
    node: float = 0.2
    #: Of two types as near the one with the higher dual pays more of a set: how much nearer it is.
    worth: float = 0.25
    #: Times what the duals were where sets are sought first.
    first: float = 1.15
    #: Times its k-set term a dual becomes at most, types listed as the nearest of each, partial
    #: sets looked at for each, and rounds. With (3.0, 60, 200, 4) first, the bound of Adult with
    #: k = 5 and the effort normal came to 3183 in place of 3228, in a second less.
    stages: tuple[tuple[float, int, int, int], ...] = (
        (3.0, 100, 500, 5),
        (8.0, 200, 1_000, 7),
        (8.0, 600, 8_000, 3),
    )
    #: Rounds of a stage end when the new sets are fewer than this share of the types.
    many: float = 0.02
    #: How far around each type to look, in what it aims at.
    margin: float = 1.25
    #: Costs less duals that are about 0, in units.
    negative: float = 1e-3


NUMBERS = ProgramNumbers()


class SetProgram:
    """The program: sets of k rows are added, and duals asked for.

    `counts` (t,) are the rows of each type, `unit` is the typical size of a dual, above 0;
    `members` (c, k) become the types of the sets that are known, ascending in each, and `shares`
    (c,) how much of each set the program takes, roughly.
    """

    def __init__(self, counts: Ints, k: int, unit: float) -> None:
        self._counts = counts.astype(np.float64)
        self._k, self._unit = k, unit
        self._known: set[bytes] = set()
        self.members, self._costs = np.empty((0, k), np.int32), np.empty(0)
        self.shares = np.empty(0)

    def add(self, members: Codes, costs: Floats) -> int:
        """Add the new ones of (c, k) sets, types ascending in each, with their costs (c,).

        Returns how many are new.
        """
        new = np.zeros(len(costs), np.bool_)
        for place in range(len(costs)):
            key = members[place].tobytes()
            new[place] = key not in self._known
            self._known.add(key)
        self.members = np.concatenate([self.members, members[new]])
        self._costs = np.concatenate([self._costs, costs[new]])
        self.shares = np.concatenate([self.shares, np.zeros(int(new.sum()))])
        return int(new.sum())

    def cover(self, counts: Ints) -> None:
        """Ask for (t,) rows of each type, no more than before; forget sets that hold more."""
        self._counts = counts.astype(np.float64)
        members = self.members
        fits, copies = np.ones(len(members), np.bool_), np.zeros(len(members), np.int64)
        for place in range(self._k):
            same = members[:, place] == members[:, place - 1] if place else np.False_
            copies = np.where(same, copies + 1, 1)
            fits &= counts[members[:, place]] >= copies
        self.members, self._costs = members[fits], self._costs[fits]
        self.shares = self.shares[fits]

    def improved(
        self, duals: Floats, lowest: Floats, highest: Floats, steps: int, budget: Budget
    ) -> Floats:
        """Return duals nearer to the best ones: so many steps, each O(c k), from (t,) duals on.

        They lie between `lowest` and `highest`; the budget ends the steps.
        """
        t, sets, k = len(duals), len(self._costs), self._k
        starts = np.arange(0, k * sets + 1, k)
        held = csr_array((np.ones(k * sets), self.members.ravel(), starts), shape=(sets, t))
        holding = held.T.tocsr()
        often = np.maximum(np.bincount(self.members.ravel(), minlength=t), 1)
        # Of losses too small to divide by, the step would be infinite and the duals no numbers.
        primal_step = 1.0 / max(k * self._unit, float(np.finfo(np.float64).tiny))
        dual_step = self._unit / often
        shares, covered = self.shares, holding @ self.shares
        sums, since = (np.zeros(sets), np.zeros(t)), 0
        for step in range(steps):
            new = np.maximum(0.0, shares - primal_step * (self._costs - held @ duals))
            now = holding @ new
            missing = self._counts - (2.0 * now - covered)
            duals = np.clip(duals + dual_step * missing, lowest, highest)
            shares, covered, since = new, now, since + 1
            sums = sums[0] + shares, sums[1] + duals
            ended = step + 1 == steps or budget.stop_reason() is not None
            if since >= max(NUMBERS.restart, step // 3) or ended:
                shares, duals = sums[0] / since, sums[1] / since
                covered = holding @ shares
                sums, since = (np.zeros(sets), np.zeros(t)), 0
            if ended:
                break
        self.shares = shares
        return duals


@kernel
def _near_step(
    search: NearSearch,
    floors: Floats,
    radii: Floats,
    worth: Floats,
    near: Codes,
    held: Ints,
    begin: int,
    end: int,
) -> None:
    """List the nearest types of some types."""
    lists = search.lists
    for row in range(begin, end):
        # Who fills a set by itself needs no others.
        if search.counts[row] < search.k:
            found = gather_near(search, floors, row, radii[row])
            for at in range(found):
                lists.losses[at] -= worth[lists.types[at]]
            sort_by_loss(lists, 0, found)
            held[row] = min(found, near.shape[1])
            for at in range(held[row]):
                near[row, at] = lists.types[at]


class NearProgram:
    """The program, what prices sets for it, and where it says that duals best stand.

    It begins with duals that were raised a little.

    `duals`: those that it began with. `aims`, `lowest`, `highest`: (t,) how high the duals may be
    by these, and between which they lie.
    """

    def __init__(self, duals: RecordDuals, budget: Budget) -> None:
        self.duals, self._budget = duals, budget
        # The stage that comes next, its rounds that are done, and how many sets the last one added
        # that the aims do not know yet.
        self._stage, self._rounds = 0, 0
        #: Rounds of pricing that were made by now.
        self.rounds = 0
        self._added: int | None = None
        self._unit = float(np.abs(duals.duals).mean())
        # What holds without rules holds under them.
        freed, tables = duals.problem.without_rules, duals.search.rows.tables
        self._run = RootedRun(search_rows(freed, duals.types, tables), duals.k)
        # The types near each, and how many they are.
        self._near, self._held = np.empty((0, 0), np.int32), np.zeros(0, np.int64)
        #: The program of the sets that are known.
        self.sets = SetProgram(duals.counts, duals.k, self._unit or 1.0)
        self.lowest, self.highest = np.fmin(duals.floors, 0.0), duals.highest(NUMBERS.stages[0][0])
        self.aims = np.clip(NUMBERS.first * duals.duals, self.lowest, self.highest)

    @property
    def solved(self) -> bool:
        """Whether sets were priced beyond the first stage."""
        return self._stage > 1 or (self._stage == 1 and self._rounds > 0)

    def solve(self, ending: float, stages: int | None = None, pause: Budget | None = None) -> bool:
        """Price sets, stage by stage, until few are found or no more losses than `ending` are left.

        Each stage looks farther and longer than the one before. What was ended, by the losses or by
        the budget `pause`, goes on with the next call. Returns whether it was not that budget.
        """
        duals, pause = self.duals, pause or self._budget
        stages = len(NUMBERS.stages) if stages is None else stages
        while self._stage < stages and duals.left > ending:
            factor, nearest, nodes, rounds = NUMBERS.stages[self._stage]
            begun = int(duals.search.work[0])
            if self._added is None and self._rounds == 0:
                self.highest = duals.highest(factor)
                self.look_near(duals.floors, nearest, pause)
            if self._added is None and pause.stop_reason() is None:
                self._find(nodes, pause)
            if self._added is None:
                # What was ended in the middle is done again, as if nothing had come between.
                duals.search.work[0] = begun
                return False
            if not self.improve(pause):
                return False
            few = self._added < NUMBERS.many * len(duals.counts)
            self._added, self._rounds, self.rounds = None, self._rounds + 1, self.rounds + 1
            if few or self._rounds == rounds:
                self._stage, self._rounds = self._stage + 1, 0
        return True

    def look_near(self, floors: Floats, nearest: int, pause: Budget | None = None) -> None:
        """List the types near each.

        `floors`: (t,) what a record of each type loses at least in any set of k; infinite for those
        that no set is to hold. `nearest`: types listed for each, fewer where there are very many.
        `pause`: ends it before the program's own budget does; what is unlisted has no sets.
        """
        search, t, k = self.duals.search, len(floors), self.duals.k
        radii = np.where(
            np.isfinite(floors), np.fmin(self.highest, NUMBERS.margin * self.aims), 0.0
        )
        near = np.empty((t, min(nearest, t, max(k, NUMBERS.listed // t))), np.int32)
        held, worth = np.zeros(t, np.int64), NUMBERS.worth * self.aims
        self._near, self._held = near, held
        step = partial(_near_step, search, floors, radii, worth, near, held)
        run_over(step, t, pause or self._budget, "neighbours of each record", first=20)

    def price(self, nodes: int) -> None:
        """Add sets that cost less than they would at best, and improve the aims.

        So many partial sets, `nodes`, are looked at for each type.
        """
        self._find(nodes, self._budget)
        self._added = None
        self.improve()

    def _find(self, nodes: int, pause: Budget) -> None:
        """Add sets, unless the search for them is ended by the budget."""
        found = self._undercutting(nodes, pause)
        if pause.stop_reason() is None:
            self._added = self.sets.add(*found)

    def _undercutting(self, nodes: int, budget: Budget) -> tuple[Codes, Floats]:
        """Return (c, k) sets that cost less than they would at the aims, and (c,) what they cost.

        So many partial sets are looked at for a root; where the budget ends the search, what was
        found until then is returned.
        """
        duals, k, run = self.aims, self.duals.k, self._run
        t, below = len(duals), -NUMBERS.negative * self._unit
        run.rows.duals[:] = duals
        order, rank = np.argsort(-duals, kind="stable"), np.empty(t, np.int32)
        rank[order] = np.arange(t)
        rules = RootedRules(
            k, k, pruned=True, summed=True, keep=NUMBERS.keep, nodes_a_size=nodes, undominated=False
        )
        members, costs = [np.empty((0, k), np.int32)], [np.empty(0)]
        for first in range(0, t, NUMBERS.roots):
            roots = self._roots(order, rank, first, min(t, first + NUMBERS.roots), below)
            run.search(cuts_of_rows(t, None), rules, roots, budget)
            self.duals.search.work[0] += int(run.nodes * NUMBERS.node * self._held.mean())
            count, filled = run.found.held.tolist()
            found = run.found.members[:filled].reshape(count, k).copy()
            members.append(found)
            costs.append(run.found.reduced[:count] + duals[found].sum(axis=1))
            if budget.stop_reason() is not None:
                break
        return np.concatenate(members), np.concatenate(costs)

    def _roots(self, order: Ints, rank: Codes, first: int, last: int, below: float) -> Roots:
        """Return some roots with what lies near and comes behind them, the highest duals first."""
        near, types, none = self._near[first:last], np.arange(first, last), len(rank)
        listed = np.arange(near.shape[1]) < self._held[first:last, None]
        ranks = rank[np.where(listed, near, 0)]
        listed &= ranks > rank[types, None]
        # Further rows of the root's own type.
        counts = self.duals.counts[types]
        own = np.where((counts > 1) & (counts < self.duals.k), rank[types], none)
        ranks = np.column_stack([own, np.where(listed, ranks, none)])
        ranks.sort(axis=1)
        begin = np.concatenate([[0], np.cumsum((ranks < none).sum(axis=1))])
        limits, least = np.full(len(types), below), np.full(len(types), -np.inf)
        others = order[ranks[ranks < none]]
        return Roots(types, begin[:-1], begin[1:], others, limits, least)

    def improve(self, pause: Budget | None = None) -> bool:
        """Bring the aims nearer to the best ones for the sets that are known.

        They stay, and false is returned, where a budget ends it.
        """
        pause, shares = pause or self._budget, self.sets.shares
        aims = self.sets.improved(self.aims, self.lowest, self.highest, NUMBERS.steps, pause)
        if pause.stop_reason() is not None:
            self.sets.shares = shares
            return False
        self.duals.charge(NUMBERS.steps * NUMBERS.step * self.sets.members.size)
        self.aims = aims
        return True


def take_out(members: Codes, left: Ints) -> bool:
    """Take a set out of the rows (t,) that are left of each type, if they hold it."""
    types, copies = np.unique(members, return_counts=True)
    fits = bool((left[types] >= copies).all())
    if fits:
        left[types] -= copies
    return fits


def records_of(types: RowTypes, counts: Ints, k: int, sets: list[Codes]) -> list[list[int]]:
    """Return the records of each set, and of what is left of types that are classes."""
    order = np.argsort(types.inverse, kind="stable")
    begin = np.searchsorted(types.inverse[order], np.arange(len(counts)))
    groups: list[list[int]] = []
    taken = np.zeros(len(counts), np.int64)
    for members in sets:
        group = []
        for row_type in members.tolist():
            group.append(int(order[begin[row_type] + taken[row_type]]))
            taken[row_type] += 1
        groups.append(group)
    for row_type in np.flatnonzero(counts >= k).tolist():
        first = begin[row_type] + taken[row_type]
        groups.append(order[first : begin[row_type] + counts[row_type]].tolist())
    return groups


def can_make_classes(problem: Problem) -> bool:
    """Return whether the sets of the program are classes that the problem allows."""
    compiled = problem.compiled
    return (
        isinstance(problem.recoding, EquivalenceClasses)
        and is_plain(problem)
        and compiled.monotone
        and compiled.aggregate == "sum"
    )
