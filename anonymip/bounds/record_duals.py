"""Duals of records: what each may charge for, so that no set of k records costs less than its sum.

A vector of duals d is *feasible* if d(S) <= k c(S) for every set S of k records, c being the loss
of one record that is published as S. The loss c is monotone, so feasible duals bound more:

**Sets of s >= k records.** Each of their subsets K of k records has d(K) <= k c(K) <= k c(S), and
every record lies in the same share k / s of these subsets. Their mean says d(S) k / s <= k c(S),
that is d(S) <= s c(S).

**Classes.** The classes S of a release are disjoint, have s >= k records, and cost s c(S) each: the
release loses the sum of all duals at least. No other size has to be looked at, and no rule about
sizes is used: with diversity, limits or whatever else raises the optimum, the bound holds. Where
records may be suppressed at a price, duals above it are lowered to it, which keeps them feasible.

**Freeform covers.** All cover sets have one size s >= k, and each record lies in s of them. A set
costs c(S) >= d(S) / s, and in the sum over the sets every dual is counted s times: the same bound.

With *degrees* of the records, and for (k,1)- and (k,k)-anonymity, records lie in sets of different
sizes, or in none: the sum proves nothing there. What holds is what each record pays by itself, the
*k-set terms*: the least c(S) over the sets S of k records that hold it. These are feasible duals,
too, since all k terms of a set are at most c(S).

**Ascent.** Raising the dual of a record i by the least of k c(S) - d(S) over the sets of k that
hold i keeps the vector feasible; where a set holds i and other records of the same row, what it
leaves is shared among them. So the ascent may end anywhere. Records go by rising k-set terms: those
in crowded places first, while the others still stand at their terms. Let i be raised no higher than
h, no dual raised before being above h. A set S that holds i with c(S) >= h is then no obstacle: the
duals raised are at most h, and the others at most c(S). All that matters lies within h of i.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from anonymip.bounds.near_search import NearSearch, find_nearest, gather_near, new_near_search
from anonymip.bounds.nearest_neighbour import suppresses
from anonymip.bounds.slack_search import least_slack, least_slack_by_boxes
from anonymip.enumeration.cluster_sets import exact_losses
from anonymip.enumeration.merging import loss_scale
from anonymip.objectives.kernels.growing_sets import add_row, empty_set, losses_with
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.tolerances import DUAL_ROUNDING, LOSS_RELATIVE, SEARCH_ROUNDING

#: Losses that the search for one k-set may compute.
_EACH = 60_000
#: What a sweep does: finds k-sets, or raises duals, what stops them being sought member by member,
#: or by boxes as well. Where duals are low, boxes take longer: of 3,000 houses with k = 10, three
#: times as long for k-sets. Where they are high, boxes prove more.
_K_SETS, _BY_SETS, _BY_BOXES = 0, 1, 2
#: The part of what the search for one row may compute that is spent member by member before boxes
#: are tried: of the tenth of 3,000 houses with the highest aims, k = 10 and 800,000 losses a row,
#: an eighth left 99 unproven and a half 125; from another start boxes alone left 125 and members
#: alone 188.
_BEFORE_BOXES = 8
#: Rows that a sample of a sweep raises, about; no more than one of so many.
_SAMPLED, _LEAST_STEP = 200, 10


class RecordDuals:
    """Feasible duals of the row types of a problem, raised step by step.

    `problem`: with a monotone loss that has tables. `terms`: (n,) what each record loses at least;
    where that cannot be improved, it stays. `most`: losses that may be computed in all, times the
    columns that they look at.

    `problem`, `k`, `types`, `counts`: as given; the row types, and (t,) how many rows each has.
    `search`: of sets around a row. `budget`: ends the work; another may take its place.
    """

    def __init__(self, problem: Problem, terms: Floats, most: float, budget: Budget) -> None:
        full = problem.compiled.tables
        # What all sets lose alike would only take digits away.
        tables = full._replace(constant=0.0)
        self.search, types = new_near_search(problem, tables)
        self.budget, self._constant = budget, full.constant
        self.problem, self.k, self.types = problem, problem.k, types
        self._inverse, self.counts = types.inverse, self.search.counts
        #: (t,) of a row of each type, without what all sets lose alike.
        self.duals = terms[types.first] - self._constant
        self._columns = max(1, len(tables.columns))
        self._most = most / self._columns
        # What does a step of the last sweep, how far it is, of how many; its phase and its way.
        self._sweeping: tuple[Callable[[int], int], Ints, int, str, int]
        #: Whether the budget ended the last sweep, which may go on.
        self.interrupted = False
        #: (t,) what a row of each type loses at least in any set of k, without what all lose alike.
        self.floors = self.duals
        self.pairs = np.full(len(self.duals), -np.inf)
        #: How high the last ascent was to raise the duals of all rows together.
        self.aimed = 0.0

    def allow(self, most: float) -> None:
        """Let so many losses be computed in all, times columns, those before among them."""
        self._most = most / self._columns

    def allow_more(self, cells: float) -> None:
        """Let so many losses be computed, times columns, beside those before."""
        self.allow(cells + float(self.search.work[0]) * self._columns)

    def charge(self, cells: float) -> None:
        """Count work that is no search: so many losses, times columns, took as long."""
        self.search.work[0] += int(cells / self._columns)

    @property
    def spent(self) -> float:
        """How many losses have been computed."""
        return float(self.search.work[0])

    @property
    def left(self) -> float:
        """How many losses may still be computed."""
        return self._most - self.spent

    @property
    def value(self) -> float:
        """The sum of the duals of all rows, without what all sets lose alike."""
        return float(self.duals @ self.counts)

    def raise_to_k_sets(self, share: float = 1.0) -> bool:
        """Let each dual be what the record loses at least in any set of k; return if all are.

        Where rows of a type do not fill a set, `search.binding` has a set that loses so little, or
        little, where its search was cut short.

        This share of the losses that are left to compute is for them. Those that were found before
        stay, and so do others that are as high as the search for one may raise them.
        """
        none, self.duals = np.zeros(len(self.duals)), self.floors.copy()
        order = np.flatnonzero(self.search.open)
        return self._sweep("bound by k-sets", order, none, none, _K_SETS, _EACH, share)

    def ascend(self, factor: float, each: int, share: float = 1.0) -> bool:
        """Raise the duals from the k-set terms on, in rising order; return if all were looked at.

        A dual becomes at most `factor` times its k-set term, or the sum over its pairs where that
        is known and higher: who lies among many that are a little nearer has a higher share of what
        sets lose. The search for one row may compute `each` losses, all of them this `share` of
        those left.
        """
        return self._ascend(self.caps_of(factor), _BY_SETS, each, share)

    def work_of(self, caps: Floats, each: int, *, by_boxes: bool = False) -> float:
        """Return about how many losses an ascent to (t,) caps computes; infinite if too many.

        A sample of the rows, evenly through their order, is raised, and all others as if nothing
        kept them from their aims, for which this is rather too much. What it takes is counted.
        """
        way = _BY_BOXES if by_boxes else _BY_SETS
        order, search = np.argsort(caps, kind="stable"), self.search
        duals, raised, begun = np.fmin(self.floors, caps), 0, float(search.work[0])
        step = max(_LEAST_STEP, len(order) // _SAMPLED)
        search.reached[0] = -np.inf
        for at in range(step // 2, len(order), step):
            between = order[raised:at]
            duals[between], raised = caps[between], at
            search.reached[0] = max(search.reached[0], caps[order[at - 1]] if at else -np.inf)
            cursor = np.full(1, at)
            raise_step(search, duals, self.floors, order, cursor, caps, way, each, self._most, 1)
            work = float(search.work[0]) - begun
            if step * work > self.left:
                return np.inf
        return step * (float(search.work[0]) - begun)

    def caps_of(self, factor: float) -> Floats:
        """Return (t,) how high :meth:`ascend` raises the duals with a factor."""
        return self.highest(factor, np.fmax(self.floors, self.pairs))

    def ascend_to(self, aims: Floats, each: int) -> bool:
        """Raise the duals from the k-set terms on, those with low aims first, to their (t,) aims.

        Who is to stand below its k-set term is lowered to there; the search for one row may compute
        `each` losses. Returns whether all were looked at.
        """
        self.search.binding[:, 0] = -1  # where nothing keeps a dual from its aim
        return self._ascend(aims, _BY_BOXES, each, 1.0)

    def binding_sets(self) -> Codes:
        """Return (c, k) types of sets that kept duals from their aims, ascending in each set."""
        members = self.search.binding[self.search.binding[:, 0] >= 0]
        return np.sort(members, axis=1)

    def _ascend(self, caps: Floats, way: int, each: int, share: float) -> bool:
        """Raise the duals from the k-set terms on, those with low caps first."""
        order = np.argsort(caps, kind="stable")
        if suppresses(self.problem):
            caps = np.fmin(caps, self.problem.compiled.suppression_price - self._constant)
        self.duals, self.aimed = np.fmin(self.floors, caps), float(caps @ self.counts)
        self.search.reached[0] = -np.inf
        return self._sweep("bound by dual ascent", order, self.floors, caps, way, each, share)

    def highest(self, factor: float, times: Floats | None = None) -> Floats:
        """Return (t,) so many times the k-set terms, or what a record may be left out for.

        In the place of the k-set terms others may be taken `times` the factor.
        """
        times = self.floors if times is None else times
        caps = times + (factor - 1.0) * np.abs(times)
        if suppresses(self.problem):
            caps = np.fmin(caps, self.problem.compiled.suppression_price - self._constant)
        # Who fills a set by itself can charge for no more than that.
        return np.where(self.counts < self.k, caps, np.fmin(self.floors, caps))

    def costs(self, members: Codes) -> Floats:
        """Return (c,) the costs of (c, k) sets of types, without what all sets lose alike."""
        freed = self.problem.without_rules
        sizes = np.full(len(members), self.k)
        losses = exact_losses(freed, self.types.first[members.ravel()], sizes)
        return losses - self.k * self._constant

    def _sweep(
        self,
        phase: str,
        order: Ints,
        spare: Floats,
        caps: Floats,
        way: int,
        each: int,
        share: float,
    ) -> bool:
        most = self._most - (1.0 - share) * max(0.0, self.left)
        cursor, given = np.zeros(1, np.int64), (self.search, self.duals, spare, order)
        step = partial(raise_step, *given, cursor, caps, way, each, most)
        self._sweeping = step, cursor, len(order), phase, way
        return self.go_on()

    def go_on(self) -> bool:
        """Go on with the last sweep where the budget ended it; return if all were looked at."""
        step, cursor, total, phase, way = self._sweeping
        stopped = run_in_steps(step, total, self.budget, phase, first=20)
        self.interrupted = stopped is not None
        if way == _K_SETS:
            self.floors = self.duals.copy()
        return bool(cursor[0] == total)

    def terms(self) -> Floats:
        """Return (n,) the duals of the records, lowered by what rounding may have added."""
        problem, duals = self.problem, self.duals
        if suppresses(problem):
            duals = np.fmin(duals, problem.compiled.suppression_price - self._constant)
        highest = float(np.abs(duals).max())
        searched = SEARCH_ROUNDING * loss_scale(problem) + DUAL_ROUNDING * highest
        sizes = abs(self._constant) + np.abs(duals)
        rounding = problem.k * searched + problem.rounding / problem.n + LOSS_RELATIVE * sizes
        return (self._constant + duals - rounding)[self._inverse]


#: A search may compute so many times what there is for each row that is left.
_LENIENCE = 3.0


@kernel
def raise_step(
    search: NearSearch,
    duals: Floats,
    spare: Floats,
    order: Ints,
    cursor: Ints,
    caps: Floats,
    way: int,
    most_each: int,
    most: float,
    amount: int,
) -> int:
    """Raise the duals of up to `amount` further types; return how many are done, all if no more is.

    `spare` (t,) are zeros, or what each record loses at least; `cursor` counts the types done, in
    `order`. Each dual becomes its cap at most; by the `way` of k-sets, it becomes what its record
    loses at least in a set of k. `most_each` and `most` losses may be computed for a row and in
    all.
    """
    work = search.work
    for at in range(cursor[0], min(cursor[0] + amount, len(order))):
        if work[0] >= most:
            return len(order)
        row = order[at]
        # What earlier rows have left over is for the later ones, which lie in sparser places.
        rest = _LENIENCE * (most - work[0]) / (len(order) - at)
        each = int(min(float(most_each), rest))
        # Rows of a type that fills a set by itself lose what they lose when published exactly.
        if search.counts[row] < search.k:
            if way == _K_SETS:
                begun = work[0]
                _raise_to_k_set(search, duals, spare, row, each)
                # What was cut since little was left may be looked at again, and longer.
                search.open[row] = each < most_each and work[0] - begun >= each
            else:
                _raise_by_slack(search, duals, spare, row, caps[row], way == _BY_BOXES, each)
        search.reached[0] = max(search.reached[0], duals[row])
        cursor[0] = at + 1
    return cursor[0]


@kernel
def _raise_to_k_set(
    search: NearSearch, duals: Floats, zeros: Floats, row: int, most_each: int
) -> None:
    """Raise a dual to what a record loses at least in a set of k."""
    # What it loses in the set of its own and the nearest types, which is written down.
    terms, lists, held = search.terms, search.lists, find_nearest(search, row)
    empty_set(lists.sets, 0)
    for at in range(held - 1):
        add_row(terms, lists.sets, 0, 0, search.near[at])
    lists.types[0] = search.near[held - 1]
    search.binding[row] = row
    for at in range(held):
        search.binding[row, at] = search.near[at]
    losses_with(terms, lists.sets, 0, lists.types, 0, 1, lists.losses)
    known = lists.losses[0]
    if known <= duals[row]:
        return
    near = gather_near(search, duals, row, known)
    slack = least_slack(
        search,
        zeros,
        duals,
        near,
        row,
        search.counts[row],
        search.k * known,
        search.work[0] + most_each,
    )
    if search.best[0] >= 0:
        _bind(search, row)
    duals[row] = max(duals[row], slack / search.k)


@kernel
def _bind(search: NearSearch, row: int) -> None:
    """Write down the set found as what keeps a dual from its aim."""
    # One by one: numba's assignment of whole arrays takes a second or two to compile.
    for at in range(len(search.best)):
        search.binding[row, at] = search.best[at]


@kernel
def _raise_by_slack(
    search: NearSearch,
    duals: Floats,
    floors: Floats,
    row: int,
    cap: float,
    by_boxes: bool,
    most_each: int,
) -> None:
    """Raise a dual, up to a cap, by what all sets leave that hold the row."""
    # In this order of sums: another one would round otherwise.
    aim = duals[row] + (cap - duals[row])
    rise = aim - duals[row]
    if not rise > 0.0:
        return
    radius, begun = max(aim, search.reached[0]), search.work[0]
    near = gather_near(search, floors, row, radius)
    for copies in range(1, search.counts[row] + 1):
        limit, most, before = rise * copies, begun + most_each, begun + most_each // _BEFORE_BOXES
        # Easy rows are done sooner member by member; so are those of many columns.
        slack = least_slack(
            search, duals, floors, near, row, copies, limit, before if by_boxes else most
        )
        if by_boxes and search.work[0] >= before:
            other = least_slack_by_boxes(search, duals, floors, near, row, copies, limit, most)
            slack = max(slack, other)
        if slack / copies < rise:
            rise = slack / copies
            _bind(search, row)
        if rise <= 0.0:
            return
    duals[row] += rise
