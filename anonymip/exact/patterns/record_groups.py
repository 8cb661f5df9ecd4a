"""Small groups of records, with their reduced costs under duals of records and triples.

In whole numbers. A search of its own, and not the one of `enumeration`: an output row fixes what
each of its records costs, so that costs only add up and nothing grows; but triples that two members
share are paid too, which no search under duals of records alone knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.patterns.pattern_duals import PatternDuals
from anonymip.exact.set_partitioning.rank_one_cuts import RankOneCut
from anonymip.runtime.kernels import kernel

#: Steps of the search for groups, for each group that is allowed.
_STEPS = 200


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """Groups of k to 2k - 1 records that are published as one output row.

    `members` (g, 2k - 1) int64 are row types of the records, ascending after -1 for none; `rows`
    and `patterns` (g,) int64 the output row and its pattern; `reduced_costs` (g,) int64.
    """

    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    patterns: NDArray[np.int64]
    reduced_costs: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(g,) number of records."""
        return np.asarray(np.count_nonzero(self.members >= 0, axis=1), np.int64)

    def only(self, kept: NDArray[np.bool_] | NDArray[np.intp]) -> RecordGroups:
        """Return some of the groups."""
        return RecordGroups(
            self.members[kept], self.rows[kept], self.patterns[kept], self.reduced_costs[kept]
        )

    def and_also(self, other: RecordGroups) -> RecordGroups:
        """Return these groups and those after them."""
        return RecordGroups(
            np.concatenate([self.members, other.members]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.patterns, other.patterns]),
            np.concatenate([self.reduced_costs, other.reduced_costs]),
        )


@dataclass(frozen=True, eq=False)
class TripleDuals:
    """Duals of triples of records, which at most one group can hold two of.

    `triples` (c, 3) int64 are distinct row types of one record each; `duals` (c,) int64, at least
    0, in the unit of the duals of records.
    """

    triples: NDArray[np.int64]
    duals: NDArray[np.int64]

    @classmethod
    def of(cls, cuts: Sequence[RankOneCut], duals: NDArray[np.float64], unit: int) -> TripleDuals:
        """Return the duals of cuts of three types and divisor 2, in parts of a unit of the loss."""
        triples = np.array([cut.types for cut in cuts], np.int64).reshape(-1, 3)
        return cls(triples, np.rint(duals * unit).astype(np.int64))


def no_triples() -> TripleDuals:
    """Return no duals."""
    return TripleDuals(np.empty((0, 3), np.int64), np.empty(0, np.int64))


def record_groups_within(
    duals: PatternDuals, triples: TripleDuals, most: int, limit: int
) -> RecordGroups | None:
    """Return the groups of so much reduced cost at most; None if there are more than the limit.

    The reduced cost of a group is its loss, less the duals of its records, plus that of every
    triple of which it holds two or three. Of groups of the same records only the cheapest is kept;
    the limit counts all. A depth-first search through every row, by ascending cost of a record less
    its dual; the reduced cost so far, and the next record as often as the group needs one, bound
    what follows.
    """
    program = duals.program
    scaled = np.floor(program.costs * duals.unit).astype(np.int64)
    net = scaled[duals.pair_patterns] - duals.multipliers[duals.pair_types]
    # Rows whose own least is above that have no such group.
    near = np.flatnonzero(duals.row_losses[duals.pair_rows] <= most)
    near = near[np.lexsort((net[near], duals.pair_rows[near]))]
    opens = np.flatnonzero(np.diff(duals.pair_rows[near], prepend=-1))
    begin = np.append(opens, len(near))
    order = np.argsort(triples.triples, axis=None, kind="stable")
    ahead = np.searchsorted(triples.triples.ravel()[order], np.arange(program.type_count + 1))
    members = np.full((limit, 2 * program.k - 1), -1, np.int64)
    places, values = np.empty(limit, np.int64), np.empty(limit, np.int64)
    found = _list_groups(
        program.k,
        begin,
        duals.pair_types[near],
        net[near],
        program.counts,
        ahead,
        order // 3,
        triples.duals,
        most,
        _STEPS * limit,
        members,
        places,
        values,
    )
    if found > limit:
        return None
    members, first = members[:found], near[opens[places[:found]]]
    rows, patterns = duals.pair_rows[first], duals.pair_patterns[first]
    members.sort(axis=1)
    return cheapest_of(RecordGroups(members, rows, patterns, values[:found]))


def cheapest_of(groups: RecordGroups) -> RecordGroups:
    """Return, of groups of the same records, the one of least reduced cost."""
    order = np.lexsort((groups.reduced_costs, *groups.members.T))
    groups = groups.only(order)
    new = (groups.members[1:] != groups.members[:-1]).any(axis=1)
    return groups.only(np.concatenate([np.ones(min(1, len(groups)), np.bool_), new]))


def value_of(duals: PatternDuals, triples: TripleDuals) -> int:
    """Return the bound in parts of a unit of the loss, if no group has a reduced cost below zero.

    Notes
    -----
    Every output row of a release can be cut into groups of k to 2k - 1 records. Their losses are
    their reduced costs, plus the duals of their records, less those of the triples that they
    pay, each at most once. Records without companions cost no less than their duals.
    """
    return int((duals.program.counts * duals.multipliers).sum()) - int(triples.duals.sum())


@kernel
def _list_groups(
    k: int,
    begin: NDArray[np.int64],
    types: NDArray[np.int64],
    net: NDArray[np.int64],
    counts: NDArray[np.int64],
    ahead: NDArray[np.int64],
    triple_of: NDArray[np.int64],
    triple_duals: NDArray[np.int64],
    most: int,
    steps: int,
    members: NDArray[np.int64],
    places: NDArray[np.int64],
    values: NDArray[np.int64],
) -> int:
    """Write the groups, return their number; more than there is room for if it takes too long."""
    largest, limit = 2 * k - 1, len(values)
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
                places[found] = row
                values[found] = value
                found += 1
    return found
