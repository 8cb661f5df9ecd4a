"""Set partitioning by groups of few records: their search, duals with triples, the MIP of some.

Groups are searched for in whole numbers, and not by the search of `enumeration`: an output row
fixes what each of its records costs, so that costs only add up and nothing grows; but triples that
two members share are paid too, which no search under duals of records alone knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.bounds.patterns.pattern_duals import PatternDuals, PatternProgram, pattern_duals
from anonymip.enumeration.cluster_sets import Columns
from anonymip.exact.set_partitioning.rank_one_cuts import RankOneCut, separate
from anonymip.exact.set_partitioning.restricted_master import (
    Covering,
    Mip,
    Multipliers,
    RestrictedMaster,
    solve_whole,
)
from anonymip.exact.trust import RefutedClaim
from anonymip.runtime.arrays import Flags, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.status import Stopped

#: Steps of the search for groups, for each group that is allowed.
_STEPS = 200


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """Groups of k to 2k - 1 records that are published as one output row, all int64."""

    members: Ints  # (g, 2k - 1) row types of the records, ascending after -1 for none
    rows: Ints  # (g,) the output row, and its pattern
    patterns: Ints
    reduced_costs: Ints  # (g,)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sizes(self) -> Ints:
        """(g,) number of records."""
        return np.asarray(np.count_nonzero(self.members >= 0, axis=1), np.int64)

    def only(self, kept: Flags | NDArray[np.intp]) -> RecordGroups:
        """Return some of the groups."""
        return RecordGroups(
            self.members[kept], self.rows[kept], self.patterns[kept], self.reduced_costs[kept]
        )


@dataclass(frozen=True, eq=False)
class GroupPrices:
    """Duals of records, and of triples of records, which at most one group can hold two of."""

    duals: PatternDuals
    #: (c, 3) distinct row types of one record each, and (c,) their duals, at least 0, in the unit
    #: of the duals of records.
    triples: Ints = field(default_factory=lambda: np.empty((0, 3), np.int64))
    paid: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def value(self) -> int:
        """The bound in parts of a unit of the loss, if no group has a reduced cost below zero.

        Every output row of a release can be cut into groups of k to 2k - 1 records. Their losses
        are their reduced costs, plus the duals of their records, less those of the triples that
        they pay, each at most once. Records without companions cost no less than their duals.
        """
        duals = self.duals
        return int((duals.program.counts * duals.multipliers).sum()) - int(self.paid.sum())

    @property
    def bound(self) -> float:
        """The bound in units of the loss, raised to the next loss that is possible."""
        return self.duals.lifted(self.value)

    def groups_within(self, most: int, limit: int) -> RecordGroups | None:
        """Return the groups of so much reduced cost at most; None if there are more than the limit.

        The reduced cost of a group is its loss, less the duals of its records, plus that of every
        triple of which it holds two or three. Of groups of the same records only the cheapest is
        kept; the limit counts all. A depth-first search through every row, by ascending cost of a
        record less its dual; the reduced cost so far, and the next record as often as the group
        needs one, bound what follows.
        """
        duals, program = self.duals, self.duals.program
        scaled = np.floor(program.costs * duals.unit).astype(np.int64)
        net = scaled[duals.pair_patterns] - duals.multipliers[duals.pair_types]
        # Rows whose own least is above that have no such group.
        near = np.flatnonzero(duals.row_losses[duals.pair_rows] <= most)
        near = near[np.lexsort((net[near], duals.pair_rows[near]))]
        opens = np.flatnonzero(np.diff(duals.pair_rows[near], prepend=-1))
        begin = np.append(opens, len(near))
        order = np.argsort(self.triples, axis=None, kind="stable")
        ahead = np.searchsorted(self.triples.ravel()[order], np.arange(program.type_count + 1))
        members = np.full((limit, 2 * program.k - 1), -1, np.int64)
        places = np.empty((limit, 2), np.int64)
        found = _list_groups(
            program.k,
            begin,
            duals.pair_types[near],
            net[near],
            program.counts,
            ahead,
            order // 3,
            self.paid,
            most,
            _STEPS * limit,
            members,
            places,
        )
        if found > limit:
            return None
        members, first = members[:found], near[opens[places[:found, 0]]]
        rows, patterns = duals.pair_rows[first], duals.pair_patterns[first]
        members.sort(axis=1)
        return cheapest_of(RecordGroups(members, rows, patterns, places[:found, 1]))

    def cheapest(self, most: int, size: int, budget: Budget) -> tuple[RecordGroups | None, int]:
        """Return the groups of least reduced cost, `size` at most, and how much that is at most.

        The threshold grows by a factor of the square root of 2, until there are too many. None if
        the first step has more already, or without time; else all groups of so much reduced cost
        are there.
        """
        star = self.duals.program.star_cost * self.duals.unit
        found, reached = None, -1
        for power in range(GROUPS.finest, 64):
            if budget.stop_reason() is not None:
                break
            step = min(most, int(star * 2.0 ** (power / 2)))
            more = self.groups_within(step, 4 * size)
            if more is None or len(more) > size:
                break
            found, reached = more, step
            if step == most:
                break
        return found, reached


def cheapest_of(groups: RecordGroups) -> RecordGroups:
    """Return, of groups of the same records, the one of least reduced cost."""
    order = np.lexsort((groups.reduced_costs, *groups.members.T))
    groups = groups.only(order)
    new = (groups.members[1:] != groups.members[:-1]).any(axis=1)
    return groups.only(np.concatenate([np.ones(min(1, len(groups)), np.bool_), new]))


@kernel
def _list_groups(
    k: int,
    begin: Ints,
    types: Ints,
    net: Ints,
    counts: Ints,
    ahead: Ints,
    triple_of: Ints,
    triple_duals: Ints,
    most: int,
    steps: int,
    members: Ints,
    places: Ints,
) -> int:
    """Write the groups; return their number, or too many if it takes too long."""
    largest, limit = 2 * k - 1, len(places)
    chosen = np.empty(largest, np.int64)
    paid = np.zeros(largest + 1, np.int64)
    held = np.zeros(len(triple_duals), np.int64)
    found = 0
    for row in range(len(begin) - 1):
        depth, at = 0, begin[row]
        while True:
            steps -= 1
            if steps < 0:
                return limit + 1
            # Records ascend by net cost, so needed copies of the next one bound every group below.
            further = False
            if at < begin[row + 1] and depth < largest:
                needed = largest - depth if net[at] < 0 else max(1, k - depth)
                further = paid[depth] + needed * net[at] <= most
            if not further:
                # Nothing from here on is cheap enough: take back the last record, try the next.
                if depth == 0:
                    break
                depth -= 1
                at = chosen[depth]
                for place in range(ahead[types[at]], ahead[types[at] + 1]):
                    held[triple_of[place]] -= 1
                at += 1
                continue
            # A row type may be chosen again as long as it has records left.
            again = 0
            while again < depth and chosen[depth - 1 - again] == at:
                again += 1
            if again == counts[types[at]]:
                at += 1
                continue
            value = paid[depth] + net[at]
            for place in range(ahead[types[at]], ahead[types[at] + 1]):
                triple = triple_of[place]
                held[triple] += 1
                if held[triple] == 2:
                    value += triple_duals[triple]
            chosen[depth] = at
            depth += 1
            # paid[d] is the reduced cost of the first d records, held[t] their number in triple t.
            paid[depth] = value
            if depth >= k and value <= most:
                if found == limit:
                    return limit + 1
                for place in range(depth):
                    members[found, place] = types[chosen[place]]
                places[found, 0] = row
                places[found, 1] = value
                found += 1
    return found


@dataclass(frozen=True)
class PartNumbers:
    """Parts of a problem, and restricted MIPs on pairs of a row type and an output row."""

    ascent: float = 0.4  # share of the time that the ascent of duals may take
    seconds_a_part: float = 5.0  # of each, if they are left
    small: int = 400  # parts with fewer pairs are solved several at once,
    batch: int = 1_500  # up to so many pairs
    dear: float = 0.35  # rows of more reduced cost, in costs of a star, make no first release
    worse: float = 0.02  # that records may cost a row than its best, in costs of a star for each k
    direct: int = 40_000  # pairs of a restricted MIP that is solved to the end at once
    first: int = 6_000  # pairs of the first one otherwise; each next one has twice as many,
    largest: int = 150_000  # up to so many
    seconds: float = 20.0  # that one gets at most before the last
    nearby: float = 0.6  # of the time of a large part, in which its release is improved piecewise


@dataclass(frozen=True)
class GroupNumbers:
    """Groups of few records: their linear program and their MIPs."""

    largest_k: int = 3  # up to which they are tried
    duals: float = 0.5  # share of the time for their duals
    first: int = 20_000  # that a linear program begins with, about,
    most: int = 60_000  # and has at most
    triples: int = 4_000  # that it has at most
    coarsest: int = 2  # the first ones cost two to this power stars, reduced, at most
    finest: int = -12  # the search for a threshold begins at two to half this power
    new: int = 20_000  # in a round at most
    #: How far to go from good duals to those of a linear program.
    steps: tuple[float, ...] = (1.0, 0.5, 0.25, 0.1)
    rounds: int = 4  # in which the bound must rise
    least: float = 0.25  # by so many costs of a star
    in_mip: int = 10_000  # of the first MIP,
    most_in_mip: int = 80_000  # and of the last
    seconds: float = 5.0  # of the first
    nearby: float = 0.85  # share of the time for neighbourhoods after it


PARTS, GROUPS = PartNumbers(), GroupNumbers()


def triple_bound(
    duals: PatternDuals, amounts: Ints, enough: float, budget: Budget
) -> GroupPrices | None:
    """Return better duals with those of triples; None if there are too many groups or no time.

    A release is a set of groups of k to 2k - 1 records that holds every record once. In its linear
    relaxation, of a triple of records two may be in a group more than once in sum: as long as such
    triples are found, they are forbidden that, and the groups of negative reduced cost are added.
    The duals are then evaluated in whole numbers. It begins with good duals and a known release,
    and ends at a bound that is enough.
    """
    program = duals.program
    most = int(program.star_cost * duals.unit * 2**GROUPS.coarsest)
    found, _ = GroupPrices(duals).cheapest(most, GROUPS.first, budget)
    if found is None:
        return None
    groups = joined(program, found, groups_of(duals, amounts))
    single = program.counts == 1
    master = RestrictedMaster(covering(program, program.counts), program.star_cost)
    master.add(as_columns(program, groups))
    centre = Multipliers(duals.multipliers / duals.unit)
    best: GroupPrices | None = None
    reached, idle = -np.inf, 0
    while (
        budget.stop_reason() is None and len(master.known) <= GROUPS.most and idle < GROUPS.rounds
    ):
        point = master.solve(budget)
        if point is None:
            break
        for step in GROUPS.steps:
            ahead = point.multipliers.mixed(centre, step)
            new = pattern_duals(program, ahead.duals)
            triples = np.array([cut.types for cut in master.cuts], np.int64).reshape(-1, 3)
            own = GroupPrices(new, triples, np.rint(ahead.cuts * new.unit).astype(np.int64))
            cheaper = own.groups_within(-1, GROUPS.new)
            if cheaper is not None:
                break
        if cheaper is None:
            break
        centre = ahead
        own = replace(own, duals=repaired(new, cheaper))
        rises = point.value >= reached + GROUPS.least * program.star_cost
        if best is None or own.bound > best.bound:
            best, rises = own, True
        budget.report("duals of triples", bound=best.bound)
        if best.bound >= enough:
            break
        idle = 0 if rises else idle + 1
        reached = max(reached, point.value)
        columns = master.known.all()
        more = separate(
            csr_array(columns.incidence(program.type_count).T),
            point.shares,
            program.counts,
            among=single,
            most=GROUPS.triples - len(master.cuts),
            starts=0,
        )
        # Nothing is left to gain where the relaxation with these groups is no better.
        if not more and best.bound >= new.lifted(int(point.value * new.unit) - (new.unit >> 20)):
            break
        if more:
            master.add_cuts(more)
        master.add(as_columns(program, cheaper))
    return best


def repaired(duals: PatternDuals, cheaper: RecordGroups) -> PatternDuals:
    """Return duals of records that no group costs less than, given all that do.

    One after the other, the dual of the member that most of these groups hold is lowered. Row
    losses and reduced costs stay those of the higher duals: only `multipliers` may be read. Where
    groups are listed, the row losses, now too low if anything, leave out no row that they should
    not.
    """
    repaired = duals.multipliers.copy()
    members = cheaper.members
    often = np.bincount(members[members >= 0], minlength=len(repaired))
    order = np.argsort(cheaper.reduced_costs, kind="stable")
    for own, reduced in zip(members[order], cheaper.reduced_costs[order].tolist(), strict=True):
        held = own[own >= 0]
        missing = -reduced - int((duals.multipliers[held] - repaired[held]).sum())
        if missing > 0:
            chosen = held[np.argmax(often[held])]
            repaired[chosen] -= -(-missing // int((held == chosen).sum()))
    return replace(duals, multipliers=repaired)


def groups_of(duals: PatternDuals, amounts: Ints) -> RecordGroups:
    """Return a release as groups: output rows of 2k and more records are cut."""
    k = duals.program.k
    used = np.flatnonzero(amounts)
    used = used[np.argsort(duals.pair_rows[used], kind="stable")]
    records = np.repeat(used, amounts[used])
    row = duals.pair_rows[records]
    begin = np.flatnonzero(np.diff(row, prepend=-1))
    sizes = np.diff(np.append(begin, len(row)))
    within = np.arange(len(row)) - np.repeat(begin, sizes)
    # The last group of a row takes what is left.
    group = np.minimum(within // k, np.repeat(sizes // k - 1, sizes))
    place = within - group * k
    opens = np.flatnonzero(place == 0)
    number = np.cumsum(place == 0) - 1
    members = np.full((len(opens), 2 * k - 1), -1, np.int64)
    members[number, place] = duals.pair_types[records]
    members.sort(axis=1)
    patterns = duals.pair_patterns[records[opens]]
    return RecordGroups(members, row[opens], patterns, np.zeros(len(opens), np.int64))


def amounts_of(duals: PatternDuals, groups: RecordGroups, times: Ints) -> Ints:
    """Return (pairs,) the release of groups that are taken so many times."""
    t = duals.program.type_count
    keys = duals.pair_rows * t + duals.pair_types
    order = np.argsort(keys, kind="stable")
    group, place = np.nonzero((groups.members >= 0) & (times > 0)[:, None])
    wanted = groups.rows[group] * t + groups.members[group, place]
    amounts = np.zeros(len(keys), np.int64)
    np.add.at(amounts, order[np.searchsorted(keys[order], wanted)], times[group])
    return amounts


def joined(program: PatternProgram, one: RecordGroups, other: RecordGroups) -> RecordGroups:
    """Return the groups of both."""
    members = np.concatenate([one.members, other.members])
    rows = np.concatenate([one.rows, other.rows])
    patterns = np.concatenate([one.patterns, other.patterns])
    # Whatever the duals, of groups of the same records the one of least loss is that of least
    # reduced cost.
    rank = np.argsort(np.argsort(program.costs, kind="stable"))
    return cheapest_of(RecordGroups(members, rows, patterns, rank[patterns]))


@dataclass(frozen=True, eq=False)
class RestrictedAnswer:
    """What a solver found."""

    amounts: Ints | None  # (pairs,) records of a row type that become a row; None if nothing
    #: On the loss of whatever uses the pairs or groups given alone; None if unknown, infinite if
    #: there is none.
    bound: float | None
    solver: str


def solve_groups(
    duals: PatternDuals,
    amounts: Ints,
    groups: RecordGroups,
    mip: Mip,
    *,
    triples: Ints | None = None,
    counts: Ints | None = None,
) -> RestrictedAnswer:
    """Return the best release that consists of some groups, or of those of a known one.

    `triples` (c, 3) strengthen the relaxation; `counts` (t,) are the records of each row type, None
    for all of the program. RefutedClaim if the solver calls the model infeasible: the known release
    is in.
    """
    program = duals.program
    own = groups_of(duals, amounts)
    groups = joined(program, groups, own)
    place = np.unique(np.concatenate([groups.members, own.members]), axis=0, return_inverse=True)[1]
    # The groups differ: those of the release come after them.
    first = np.argsort(place[: len(groups)])
    start = np.bincount(first[place[len(groups) :]], minlength=len(groups))
    result, times = solve_whole(
        covering(program, program.counts if counts is None else counts),
        as_columns(program, groups),
        mip,
        start=start,
        cuts=[] if triples is None else [RankOneCut((a, b, c), 2) for a, b, c in triples.tolist()],
    )
    if result.stopped is Stopped.INFEASIBLE:
        raise RefutedClaim.of_infeasible(result.solver, None)
    found = None if times is None else amounts_of(duals, groups, times)
    return RestrictedAnswer(found, result.bound, result.solver)


def covering(program: PatternProgram, counts: Ints) -> Covering:
    """Return what sums of groups have to be, given (t,) records of each row type."""
    most = int(counts.sum()) // program.k
    return Covering(sides=counts.astype(np.float64), most=most, counted=False, price=program.price)


def as_columns(program: PatternProgram, groups: RecordGroups) -> Columns:
    """Return groups as columns, with the loss of all their records."""
    sizes = groups.sizes
    return Columns(
        np.concatenate([[0], np.cumsum(sizes)]),
        groups.members[groups.members >= 0].astype(np.int32),
        program.costs[groups.patterns] * sizes,
    )
