"""Bounds of the notions weaker than k-anonymity: duals of originals that published boxes cover.

With (1,k)-anonymity every original lies in k published boxes, with (k,k)-anonymity every box covers
k originals too, and with k-concealment every published record covers another one at least (its
match with it lies on a cycle). Let c(S) be the loss of a box S, and w >= 0 prices of originals.
Whatever the release, the boxes S_i satisfy

    sum over i of c(S_i)  >=  k w(all) + sum over i of  min { c(S) - w(S) : i in S, S large enough }

since each original is covered k times: the Lagrangean bound of the linear program that chooses a
box for each record, so that originals are covered. Its columns are priced by
:mod:`anonymip.enumeration.boxes`; the prices lie between the duals of the restricted program and
the best so far [1]_.

With (k,1)-anonymity every box covers k originals and no more is asked: without prices the sum is
the optimum, as far as the search for each record ends.

With k-concealment a match lies in an assignment if a way of matches leads back. Let C be any
records, and i one of them. If no box of C covers a record outside, no way that left C would lead
back, and k boxes of C cover i. Hence, with e records equal to i and less than k,

    boxes of C that leave C  +  boxes of C, not of i, that cover i / (k - e)  >=  1.

Such rows, with prices of their own, are put for the groups in which records grow together, the
nearest first (single linkage). These are nested, so what a box has from leaving groups is what its
farthest record has.

References
----------
.. [1] A. Pessoa, R. Sadykov, E. Uchoa, F. Vanderbeck: Automation and combination of linear-
   programming based stabilization techniques in column generation, INFORMS Journal on Computing
   30, 2018, Section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import fsum
from types import MappingProxyType

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csc_array, vstack

from anonymip.effort import EFFORTS, check_effort
from anonymip.enumeration.boxes import box_rows, new_box_search, price_boxes
from anonymip.problem import Problem
from anonymip.recodings.registry import published_form
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.runtime.stepping import run_in_steps
from anonymip.solution import Bound, under_assumptions
from anonymip.solvers.linear_programs import GrowingProgram
from anonymip.tolerances import LOSS_RELATIVE, same_loss


@dataclass(frozen=True)
class CoverNumbers:
    """Steering of the bounds of the weaker notions, chosen by the benchmark `weak-notions`."""

    #: Most row types by effort: the work of a round grows with their third power.
    types: Mapping[str, int] = field(
        default_factory=lambda: MappingProxyType({"quick": 120, "normal": 400, "thorough": 1_200})
    )
    #: Most levels of all attributes, times the square of the types: 600 amounts of 8 columns, at
    #: 1.7e9, took seven minutes for one round, and 300 houses of 7, at 2e8, ten seconds for all.
    levels: float = 8e8
    #: Most rounds of prices by effort.
    rounds: Mapping[str, int] = field(
        default_factory=lambda: MappingProxyType({"quick": 12, "normal": 40, "thorough": 150})
    )
    #: Gap to the linear program at which the rounds end, relative.
    gap: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({"quick": 5e-2, "normal": 2e-2, "thorough": 2e-3})
    )
    #: Types and levels that pricing looks at, by effort, after which no further round begins:
    #: normal took 10 to 84 s of five tables of 200 to 400 records, thorough 130 s of 300.
    work: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType({"quick": 2e9, "normal": 8e9, "thorough": 3e10})
    )
    slack: float = 5e-4  # what a box has to gain to be looked for, as a share of the bound a record
    nodes: int = 20_000  # most nodes around a record
    #: Share of the work left that a round may take, and a type of a round its part of it: 200
    #: records of 6 numbers with k = 10 took minutes for one.
    round: float = 0.3
    share: float = 0.5  # share of the duals in the prices, and of the best prices the rest
    #: With (k,1)-anonymity k-set terms are soon exact for k below this, and boxes of larger tables
    #: than these are not bounded by a price of records.
    free_k: int = 10
    free_types: int = 120
    rows: int = 10  # most records that a box becomes a column of at a time


NUMBERS = CoverNumbers()


#: Notions, and how many originals each published record covers at least; None for k.
_LEAST = {"one-k": 1, "k-one": None, "k-k": None, "k-concealment": 2}


def is_priced(problem: Problem, effort: str = "thorough") -> bool:
    """Return whether prices of originals bound the loss within an effort."""
    compiled, types = problem.compiled, problem.microdata.row_types()
    t, codes = len(types.first), problem.microdata.codes[types.first]
    levels = sum(len(np.unique(column)) for column in codes.T)
    if published_form(problem.recoding) == "k-one" and (
        problem.k < NUMBERS.free_k or t > NUMBERS.free_types
    ):
        return False
    return bool(
        published_form(problem.recoding) in _LEAST
        and compiled.monotone
        and compiled.has_tables
        and compiled.aggregate == "sum"
        and t <= NUMBERS.types[effort]
        and levels * t**2 <= NUMBERS.levels
    )


def cover_bound(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release of a weaker notion.

    `problem`: with OneK, KOne, KK or KConcealment; a diversity and limits only raise the optimum.
    `effort`: how much work; None for thorough within a time limit, else normal. `budget`: when it
    ends, the best bound so far is the result. Returns: None if the recoding is another one, the
    objective not summed, not monotone or without tables, the table too large for the effort, or the
    budget spent before the first bound.
    """
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    if not is_priced(problem, effort):
        return None
    program = _BoxProgram(problem, budget)
    closed = program.run(effort)
    if program.best == -np.inf:
        return None
    remarks = () if closed else ("cut short",)
    name = "least boxes" if program.is_free else "prices of originals"
    method = under_assumptions(problem, name, *remarks)
    return Bound(program.best, method, "argument", watch.seconds)


@dataclass(frozen=True)
class Groups:
    """Groups of records that a match leaves, or that hide one of them by themselves.

    `members`: (q, t) bool, the row types of each group; nested, or without a common one. `hidden`:
    (q,) the type that is hidden. `share`: (q,) what a box of another type that covers it counts.
    """

    members: Flags
    hidden: Ints
    share: Floats

    @classmethod
    def of(cls, problem: Problem, least: int) -> Groups:
        """Return the groups of a problem; none but with k-concealment. Complexity: O(t^2 m)."""
        types, k = problem.microdata.row_types(), problem.k
        first, counts = types.first, types.counts
        t = len(first)
        if published_form(problem.recoding) != "k-concealment" or t < 2:
            return cls(np.zeros((0, t), np.bool_), np.zeros(0, np.int64), np.zeros(0))
        near = np.full((t, t), np.inf)
        for i in range(t - 1):
            pairs = np.stack(np.broadcast_arrays(first[i], first[i + 1 :]), axis=1)
            losses = problem.compiled.losses_of_sets(pairs)
            near[i, i + 1 :] = near[i + 1 :, i] = losses
        losses = near[np.triu_indices(t, 1)]
        members, hidden = np.eye(2 * t - 1, t, dtype=np.bool_), np.arange(2 * t - 1)
        alone = np.full(t, np.inf)  # what each loses with the nearest one of its group
        for place, merged in enumerate(linkage(losses - losses.min(), "single")[:, :2]):
            one, other = (np.flatnonzero(members[int(group)]) for group in merged)
            between = near[np.ix_(one, other)]
            alone[one] = np.minimum(alone[one], between.min(axis=1))
            alone[other] = np.minimum(alone[other], between.min(axis=0))
            both = np.concatenate([one, other])
            members[t + place, both] = True
            # Least is likely to be hidden by others of the group who is farthest from them.
            hidden[t + place] = both[alone[both].argmax()]
        # Alone, a record has to cover another anyway; the last group holds all.
        kept = np.flatnonzero((members @ counts >= least) & ~members.all(axis=1))
        missing = k - counts[hidden[kept]]
        kept, missing = kept[missing > 0], missing[missing > 0]
        small = members[kept] @ counts < k
        return cls(members[kept], hidden[kept], np.where(small, 0.0, 1.0 / missing))

    def rows(self, boxes: Flags, owners: Ints) -> Floats:
        """Return (q, b) what boxes (b, t), chosen by types (b,), count for each group."""
        leaves = (~self.members @ boxes.T).astype(np.float64)
        covers = boxes.T[self.hidden] & (self.hidden[:, None] != owners)
        return (leaves + covers * self.share[:, None]) * self.members[:, owners]

    def priced(self, originals: Floats, groups: Floats) -> tuple[Floats, Floats]:
        """Return (t, t) what a box of each type has for covering and for leaving by each type.

        `originals`: (t,) prices of covering. `groups`: (q,) of groups.
        """
        covering = np.tile(originals, (len(originals), 1))
        paid = (self.members * (groups * self.share)[:, None]).T
        paid[self.hidden, np.arange(len(groups))] = 0.0
        np.add.at(covering.T, self.hidden, paid.T)
        return covering, (self.members * groups[:, None]).T @ ~self.members


class _BoxProgram:
    """The linear program of boxes: its columns, the best prices, the bound that they prove."""

    def __init__(self, problem: Problem, budget: Budget) -> None:
        self._problem, self._budget = problem, budget
        self._rows = box_rows(problem)
        self._least = _LEAST[published_form(problem.recoding)] or problem.k
        self._search = new_box_search(self._rows, self._least)
        self._first, self._counts = problem.microdata.row_types().first, self._rows.counts
        t = len(self._first)
        self._own = self._losses_of(np.eye(t, dtype=np.bool_))
        self._boxes, self._losses = np.ones((1, t), np.bool_), self._losses_of(np.ones((1, t)) > 0)
        self._known = {self._boxes[0].tobytes()}
        self._groups = Groups.of(problem, self._least)
        # A row for each original that is covered, for each record that chooses, for each group.
        q = len(self._groups.members)
        sides = np.concatenate([np.full(t, float(problem.k)), self._counts, np.ones(q)])
        upper = np.concatenate([np.full(t, np.inf), self._counts, np.full(q, np.inf)])
        self._program = GrowingProgram(sides, upper)
        self._taken: set[tuple[int, int]] = set()
        self._add_columns([(0, row) for row in range(t)])
        #: Prices of originals, and of groups.
        self._prices = np.zeros(t + q)
        #: The best bound so far.
        self.best = -np.inf
        #: Whether originals need not be covered.
        self.is_free = published_form(problem.recoding) == "k-one"
        # Whether the boxes that were found last lose no more than any.
        self._all_found = False

    def run(self, effort: str) -> bool:
        """Raise the bound; return whether it reached the linear program, but for a gap."""
        t = len(self._first)
        # Without prices first: every record then has the box that loses least.
        none, any_cost = np.zeros_like(self._prices), np.full(t, np.inf)
        if not self._price(none, any_cost, 0.0, EFFORTS[0]):
            return False
        if self.is_free:
            for tier in EFFORTS[1 : EFFORTS.index(effort) + 1]:
                if self._all_found or not self._price(none, any_cost, 0.0, tier):
                    break
            return self._all_found
        # A higher effort goes on where the lower ones end.
        done, closed = 0, False
        for tier in EFFORTS[: EFFORTS.index(effort) + 1]:
            closed = False
            while not closed:
                answer = self._program.solve(self._budget)
                if answer is None:
                    return False
                closed = answer.value - self.best <= NUMBERS.gap[tier] * abs(answer.value)
                spent = self._search.work[0] > NUMBERS.work[tier] or done >= NUMBERS.rounds[tier]
                if closed or spent:
                    break
                duals = np.concatenate([answer.duals[:t], answer.duals[2 * t :]])
                self._budget.report("prices of originals", done=done, total=NUMBERS.rounds[effort])
                if not self._round(np.maximum(duals, 0.0), answer.duals[t : 2 * t], tier):
                    return False
                done += 1
        return closed

    def _round(self, duals: Floats, choosing: Floats, effort: str) -> bool:
        """Look for boxes by the program's duals; return whether time did not end.

        `choosing`: (t,) those of the records that choose a box.
        """
        for share in (NUMBERS.share, 1.0):
            prices = (1.0 - share) * self._prices + share * duals
            slack = NUMBERS.slack * max(self.best, 0.0) / self._problem.n
            targets = self._reduced(prices).min(axis=0) - self._own
            if not self._price(prices, targets, slack, effort):
                return False
            # Where the mixed prices tell the program nothing, its own duals are looked at.
            if self._add_cheaper(self._reduced(duals) - choosing):
                break
        return True

    def _price(self, prices: Floats, targets: Floats, slack: float, effort: str) -> bool:
        """Look for cheaper boxes and bound the loss; return whether time did not end."""
        t = len(self._first)
        left = max(0.0, NUMBERS.work[effort] - float(self._search.work[0]))
        lowest, found = np.zeros(t), np.zeros((t, t), np.bool_)
        covering, leaving = self._groups.priced(prices[:t], prices[t:])
        step = partial(
            price_boxes,
            self._rows,
            self._search,
            covering,
            leaving,
            self._least,
            targets,
            slack,
            NUMBERS.nodes,
            NUMBERS.round * left / t,
            lowest,
            found,
            np.zeros(1, np.int64),
        )
        if run_in_steps(step, t, self._budget, "pricing boxes") is not None:
            return False
        least = self._counts * (self._own + lowest)
        value = fsum([*(self._problem.k * prices[:t]), *prices[t:], *least])
        # Sums of rounded terms: what rounding may have added is taken off.
        size = np.abs(self._own).max(initial=0.0) + prices.sum() + np.abs(self._losses).max()
        value -= LOSS_RELATIVE * self._problem.n * float(size) + self._problem.rounding
        if value > self.best:
            self.best, self._prices = value, prices
        if self.is_free and found.any(axis=1).all():
            self._all_found = same_loss(fsum(self._counts * self._losses_of(found)), fsum(least))
        for box in found[found.any(axis=1)]:
            if box.tobytes() not in self._known:
                self._known.add(box.tobytes())
                self._boxes = np.concatenate([self._boxes, box[None]])
                self._losses = np.concatenate([self._losses, self._losses_of(box[None])])
        return True

    def _reduced(self, prices: Floats) -> Floats:
        """Return (b, t) what each box costs less prices, if a record of each type chooses it."""
        t = len(self._first)
        covering, _ = self._groups.priced(prices[:t], prices[t:])
        leaves = (self._boxes @ ~self._groups.members.T) * prices[t:]
        reduced = self._losses[:, None] - self._boxes @ covering.T - leaves @ self._groups.members
        return np.where(self._boxes, reduced, np.inf)

    def _add_cheaper(self, reduced: Floats) -> int:
        """Add columns of known boxes whose reduced costs (b, t) are negative; return how many."""
        cheaper = []
        for box, costs in enumerate(reduced):
            limit = -1e-9 * max(1.0, abs(self._losses[box]))
            for row in np.argsort(costs, kind="stable")[: NUMBERS.rows].tolist():
                if costs[row] < limit:
                    cheaper.append((box, row))
        return self._add_columns(cheaper)

    def _add_columns(self, pairs: list[tuple[int, int]]) -> int:
        """Let records choose boxes, where they may not yet; return how many columns are new."""
        new = [pair for pair in pairs if pair not in self._taken]
        if new:
            self._taken.update(new)
            chosen, owners = np.array(new, np.int64).T
            boxes = self._boxes[chosen]
            parts = boxes.T, np.eye(len(self._first))[:, owners], self._groups.rows(boxes, owners)
            rows = vstack([csc_array(part.astype(np.float64)) for part in parts], format="csc")
            self._program.add_columns(self._losses[chosen], rows)
        return len(new)

    def _losses_of(self, boxes: Flags) -> Floats:
        """Return the losses of (b, t) boxes by the objective's own function."""
        losses_of_sets = self._problem.compiled.losses_of_sets
        return np.concatenate([losses_of_sets(self._first[box][None]) for box in boxes])
