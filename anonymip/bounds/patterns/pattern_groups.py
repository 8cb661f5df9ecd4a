"""Small groups of records, with their reduced costs under duals of records and triples.

In whole numbers. A search of its own, and not the one of `enumeration`: an output row fixes what
each of its records costs, so that costs only add up and nothing grows; but triples that two members
share are paid too, which no search under duals of records alone knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.patterns.pattern_duals import PatternDuals
from anonymip.runtime.kernels import kernel

#: Steps of the search for groups, for each group that is allowed.
_STEPS = 200


@dataclass(frozen=True, eq=False)
class RecordGroups:
    """Groups of k to 2k - 1 records that are published as one output row.

    Parameters
    ----------
    members
        (g, 2k - 1) int64, row types of the records, ascending after -1 for none.
    rows, patterns
        (g,) int64, the output row, and the pattern that it is of.
    beyond
        (g,) int64, reduced cost of the group.
    """

    members: NDArray[np.int64]
    rows: NDArray[np.int64]
    patterns: NDArray[np.int64]
    beyond: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(g,) number of records."""
        return np.count_nonzero(self.members >= 0, axis=1).astype(np.int64)

    def only(self, kept: NDArray[np.bool_] | NDArray[np.intp]) -> RecordGroups:
        """Return some of the groups."""
        return RecordGroups(
            self.members[kept], self.rows[kept], self.patterns[kept], self.beyond[kept]
        )

    def and_also(self, other: RecordGroups) -> RecordGroups:
        """Return these groups and those after them."""
        return RecordGroups(
            np.concatenate([self.members, other.members]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.patterns, other.patterns]),
            np.concatenate([self.beyond, other.beyond]),
        )


@dataclass(frozen=True, eq=False)
class TriplePrices:
    """Prices of triples of records, which at most one group can hold two of.

    Parameters
    ----------
    triples
        (c, 3) int64, distinct row types of one record each.
    prices
        (c,) int64, at least 0, in the unit of the prices of records.
    """

    triples: NDArray[np.int64]
    prices: NDArray[np.int64]


def no_triples() -> TriplePrices:
    """Return no prices."""
    return TriplePrices(np.empty((0, 3), np.int64), np.empty(0, np.int64))


def record_groups_within(
    prices: PatternDuals, triples: TriplePrices, most: int, limit: int
) -> RecordGroups | None:
    """Return the groups that cost so much beyond prices at most; None if they are too many.

    A group pays the prices of its records, and that of every triple of which it holds two or three.

    Parameters
    ----------
    prices
        Of records.
    triples
        Prices of triples.
    most
        In parts of a unit of the loss.
    limit
        Groups that are returned at most, before those of equal records are compared.

    Notes
    -----
    Of groups of the same records only the cheapest is kept. A search in depth through every row,
    by ascending cost beyond the price; what a group has paid so far, and its next record as often
    as it needs, bound what follows.
    """
    program = prices.program
    scaled = np.floor(program.costs * prices.unit).astype(np.int64)
    beyond = scaled[prices.pair_patterns] - prices.duals[prices.pair_types]
    # Rows that are no cheaper as a whole have no such group.
    near = np.flatnonzero(prices.row_losses[prices.pair_rows] <= most)
    near = near[np.lexsort((beyond[near], prices.pair_rows[near]))]
    opens = np.flatnonzero(np.diff(prices.pair_rows[near], prepend=-1))
    begin = np.append(opens, len(near))
    order = np.argsort(triples.triples, axis=None, kind="stable")
    ahead = np.searchsorted(triples.triples.ravel()[order], np.arange(program.kinds + 1))
    members = np.full((limit, 2 * program.k - 1), -1, np.int64)
    places, values = np.empty(limit, np.int64), np.empty(limit, np.int64)
    found = _list_groups(
        program.k,
        begin,
        prices.pair_types[near],
        beyond[near],
        program.counts,
        ahead,
        order // 3,
        triples.prices,
        most,
        _STEPS * limit,
        members,
        places,
        values,
    )
    if found > limit:
        return None
    members, first = members[:found], near[opens[places[:found]]]
    rows, patterns = prices.pair_rows[first], prices.pair_patterns[first]
    members.sort(axis=1)
    return cheapest_of(RecordGroups(members, rows, patterns, values[:found]))


def cheapest_of(groups: RecordGroups) -> RecordGroups:
    """Return, of groups of the same records, the one that costs least beyond the prices."""
    order = np.lexsort((groups.beyond, *groups.members.T))
    groups = groups.only(order)
    new = (groups.members[1:] != groups.members[:-1]).any(axis=1)
    return groups.only(np.concatenate([np.ones(min(1, len(groups)), np.bool_), new]))


def value_of(prices: PatternDuals, triples: TriplePrices) -> int:
    """Return the bound in parts of a unit of the loss, if no group costs less than its prices.

    Notes
    -----
    Every output row of a release can be cut into groups of k to 2k - 1 records. Their losses are
    what they cost beyond the prices, plus the prices of their records, less the prices of the
    triples that they pay, each at most once. Records without companions cost no less than their
    prices.
    """
    return int((prices.program.counts * prices.duals).sum()) - int(triples.prices.sum())


@kernel
def _list_groups(
    k: int,
    begin: NDArray[np.int64],
    kinds: NDArray[np.int64],
    beyond: NDArray[np.int64],
    counts: NDArray[np.int64],
    ahead: NDArray[np.int64],
    triple_of: NDArray[np.int64],
    prices: NDArray[np.int64],
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
    held = np.zeros(len(prices), np.int64)
    found = 0
    for row in range(len(begin) - 1):
        depth, at = 0, begin[row]
        while True:
            steps -= 1
            if steps < 0:
                return limit + 1
            further = False
            if at < begin[row + 1] and depth < largest:
                needed = largest - depth if beyond[at] < 0 else max(1, k - depth)
                further = paid[depth] + needed * beyond[at] <= most
            if not further:
                if depth == 0:
                    break
                depth -= 1
                at = chosen[depth]
                for place in range(ahead[kinds[at]], ahead[kinds[at] + 1]):
                    held[triple_of[place]] -= 1
                at += 1
                continue
            again = 0
            while again < depth and chosen[depth - 1 - again] == at:
                again += 1
            if again == counts[kinds[at]]:
                at += 1
                continue
            value = paid[depth] + beyond[at]
            for place in range(ahead[kinds[at]], ahead[kinds[at] + 1]):
                triple = triple_of[place]
                held[triple] += 1
                if held[triple] == 2:
                    value += prices[triple]
            chosen[depth] = at
            depth += 1
            paid[depth] = value
            if depth >= k and value <= most:
                if found == limit:
                    return limit + 1
                for place in range(depth):
                    members[found, place] = kinds[chosen[place]]
                places[found] = row
                values[found] = value
                found += 1
    return found
