"""Matchings that hand out the original records to the published rows, or a proof of none.

A release is true if every original record can be given a published row of its own that contains
it and shows its sensitive and kept values. This is a perfect matching between records and rows.
Records with the same values and rows with the same cells are counted, not listed, and the
matching is found as a flow. Edges are never all written down: bit tables (one bit per class and
column value) find the classes that contain a record in microseconds; a maximum flow over the
tightest few classes of every record places most records; augmenting paths over all classes
place the rest, or prove that they have no place (Hall's theorem).

References
----------
P. Hall, "On representatives of subsets", 1935, doi:10.1112/jlms/s1-10.37.26.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from anonymip.privacy.arrays import Codes, Ints
from anonymip.privacy.graph.consistency import (
    WORK,
    BitTable,
    Containment,
    Pairs,
    joined_pairs,
    log_shares,
    matching_pairs,
    places_in_runs,
    types_of,
)


@dataclass(frozen=True)
class Shortage:
    """A proof that no matching exists.

    `records`: number of original records ... `rows`: ... that fit only into these fewer published
    rows. `example`: one of the records, by its index among the records.
    """

    records: int
    rows: int
    example: int


@dataclass(frozen=True, eq=False)
class _Side:
    """Distinct (group, code row) pairs of one side, sorted by group.

    `codes`: (d, m) code rows. `units`: (d,) how many records or rows are of the type. `starts`:
    (groups + 1,) where each group starts. `first`: (d,) the first record or row of the type.
    """

    codes: Codes
    units: Ints
    starts: Ints
    first: Ints


def find_shortage(
    record_codes: Codes,
    record_groups: Ints,
    row_codes: Codes,
    row_groups: Ints,
    containments: Sequence[Containment],
) -> Shortage | None:
    """Look for a perfect matching of records and rows within groups.

    `record_codes`: (n, m) int32, value of each record in each column. `record_groups`: (n,) numbers
    0, 1, ... of the groups: records and rows match within a group only. Every group has as many
    records as rows. `row_codes`: (n, m) int32, cell of each published row in each column.
    `row_groups`: (n,) likewise. `containments`: for each column, which cells contain which values.
    Returns: None if a perfect matching exists, else why none does. Complexity: O(T C m / 64) word
    operations for T types of records and C of rows in a group, and the flow; memory O(n + C times
    the number of values).
    """
    groups = int(record_groups.max()) + 1
    records = _side(record_codes, record_groups, groups)
    rows = _side(row_codes, row_groups, groups)
    # The types of a group, by the share of values that they contain.
    group = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
    order = np.lexsort((log_shares(rows.codes, containments), group))
    rows = _Side(rows.codes[order], rows.units[order], rows.starts, rows.first[order])
    source, target = _first_edges(records, rows, containments)
    source, target, amount = _maximum_flow(records, rows, source, target)
    placed = np.bincount(source, weights=amount, minlength=len(records.units))
    left = records.units - placed.astype(np.int64)
    for group in np.unique(np.searchsorted(records.starts, np.flatnonzero(left), "right") - 1):
        search = _Search(records, rows, int(group), containments)
        search.start(source, target, amount)
        shortage = search.place_all(left)
        if shortage is not None:
            return shortage
    return None


def _side(codes: Codes, groups: Ints, count: int) -> _Side:
    _, first, units = types_of(codes, groups)
    order = np.argsort(groups[first], kind="stable")
    first, units = first[order], units[order]
    starts = np.searchsorted(groups[first], np.arange(count + 1))
    return _Side(codes[first], units, starts, first)


def _first_edges(records: _Side, rows: _Side, containments: Sequence[Containment]) -> Pairs:
    """Return pairs (record type, row type) that contain each other: few per record."""
    left, right = np.diff(records.starts), np.diff(rows.starts)
    small = left * right <= WORK.small_group
    edges = list(_pairwise_edges(records, rows, np.flatnonzero(small), containments))
    for group in np.flatnonzero(~small):
        table = _table(rows, int(group), containments)
        begin, end = int(records.starts[group]), int(records.starts[group + 1])
        source, target = table.first_containing(records.codes[begin:end], WORK.first_edges)
        edges.append((source + begin, target + rows.starts[group]))
    return joined_pairs(edges)


def _pairwise_edges(
    records: _Side, rows: _Side, groups: Ints, containments: Sequence[Containment]
) -> Iterator[Pairs]:
    left, right = np.diff(records.starts)[groups], np.diff(rows.starts)[groups]
    ends = np.cumsum(left * right)
    begin = 0
    while begin < len(groups):
        before = int(ends[begin - 1]) if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, before + WORK.pairs_at_once, "right")))
        some = slice(begin, stop)
        pairs = left[some] * right[some]
        offset = places_in_runs(pairs)
        width = np.repeat(right[some], pairs)
        source = np.repeat(records.starts[groups[some]], pairs) + offset // width
        target = np.repeat(rows.starts[groups[some]], pairs) + offset % width
        yield matching_pairs((source, target), records.codes, rows.codes, containments)
        begin = stop


def _table(rows: _Side, group: int, containments: Sequence[Containment]) -> BitTable:
    return BitTable(rows.codes[rows.starts[group] : rows.starts[group + 1]], containments)


def _maximum_flow(
    records: _Side, rows: _Side, source: Ints, target: Ints
) -> tuple[Ints, Ints, Ints]:
    """Return the edges that a maximum flow uses: record type, row type, units."""
    a, b = len(records.units), len(rows.units)
    tail = np.concatenate([np.zeros(a, np.int64), source + 1, np.arange(b) + a + 1])
    head = np.concatenate([np.arange(a) + 1, target + a + 1, np.full(b, a + b + 1)])
    capacity = np.concatenate(
        [records.units, np.minimum(records.units[source], rows.units[target]), rows.units]
    )
    tail, head, sent = largest_flow(tail, head, capacity, 0, a + b + 1)
    used = (sent > 0) & (tail > 0) & (tail <= a)
    return tail[used] - 1, head[used] - a - 1, sent[used]


def largest_flow(
    tail: Ints, head: Ints, capacity: Ints, source: int, sink: int
) -> tuple[Ints, Ints, Ints]:
    """Return tail, head and flow of the arcs of a maximum flow to the last node of a network."""
    shape = (sink + 1, sink + 1)
    network = csr_array((capacity.astype(np.int32), (tail, head)), shape=shape)
    flow = coo_array(maximum_flow(network, source, sink).flow)
    tail, head = (part.astype(np.int64) for part in flow.coords)
    return tail, head, flow.data.astype(np.int64)


class _Search:
    """Augmenting paths within one group, over all classes, starting from a partial matching."""

    def __init__(
        self, records: _Side, rows: _Side, group: int, containments: Sequence[Containment]
    ) -> None:
        self.records = records
        self.begin, self.end = int(records.starts[group]), int(records.starts[group + 1])
        self.row_begin = int(rows.starts[group])
        self.table = _table(rows, group, containments)
        self.units = rows.units[self.row_begin : int(rows.starts[group + 1])]
        self.free = self.units.copy()
        self.open = self.table.all_classes()
        self.holders: list[dict[int, int]] = [{} for _ in self.units]

    def start(self, source: Ints, target: Ints, amount: Ints) -> None:
        """Take over what a flow has placed in this group."""
        inside = (source >= self.begin) & (source < self.end)
        places = target[inside] - self.row_begin
        np.subtract.at(self.free, places, amount[inside])
        self.table.remove(self.open, np.flatnonzero(self.free == 0))
        for record_type, place, units in zip(
            source[inside].tolist(), places.tolist(), amount[inside].tolist(), strict=True
        ):
            self.holders[place][record_type] = units

    def place_all(self, left: Ints) -> Shortage | None:
        """Place the units `left` (d,) of the group's types, which becomes 0 where it succeeds."""
        for record_type in range(self.begin, self.end):
            while left[record_type] > 0:
                amount_or_shortage = self._augment(record_type, int(left[record_type]))
                if isinstance(amount_or_shortage, Shortage):
                    return amount_or_shortage
                left[record_type] -= amount_or_shortage
        return None

    def _augment(self, record_type: int, wanted: int) -> int | Shortage:
        """Place up to `wanted` units along a shortest path, or prove that none exists."""
        unseen = self.table.all_classes()
        came_from: dict[int, int] = {}
        taken_by: dict[int, int] = {}
        seen = {record_type}
        queue = deque([record_type])
        while queue:
            current = queue.popleft()
            record = self.records.codes[current]
            available = self.table.containing(record, self.open)
            if len(available):
                path = [(current, int(available[0]))]
                while path[-1][0] != record_type:
                    place = came_from[path[-1][0]]
                    path.append((taken_by[place], place))
                return self._push(path, wanted)
            fresh = self.table.containing(record, unseen)
            self.table.remove(unseen, fresh)
            for place in fresh.tolist():
                taken_by[place] = current
                for holder in self.holders[place]:
                    if holder not in seen:
                        seen.add(holder)
                        came_from[holder] = place
                        queue.append(holder)
        return Shortage(
            int(self.records.units[list(seen)].sum()),
            int(self.units[list(taken_by)].sum()),
            int(self.records.first[record_type]),
        )

    def _push(self, path: list[tuple[int, int]], wanted: int) -> int:
        """Have each taker of a path take units in its place, and give up as many in the next."""
        last = path[0][1]
        given_up = [(taker, place) for (taker, _), (_, place) in pairwise(path)]
        held = [self.holders[place][taker] for taker, place in given_up]
        amount = min(wanted, int(self.free[last]), *held)
        self.free[last] -= amount
        if self.free[last] == 0:
            self.table.remove(self.open, np.array([last]))
        for taker, place in path:
            self.holders[place][taker] = self.holders[place].get(taker, 0) + amount
        for taker, place in given_up:
            self.holders[place][taker] -= amount
            if self.holders[place][taker] == 0:
                del self.holders[place][taker]
        return amount
