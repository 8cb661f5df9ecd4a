"""k disjoint assignments of records to rows, and effective matches.

An assignment hands every original record a row of its own that contains it. There are k disjoint
ones exactly if the consistency graph has a spanning subgraph in which every record and every row
has k matches, for such a graph falls into k perfect matchings [1]_; a maximum flow finds it or
shows that there is none. A match is *effective* if it lies in some assignment [2]_. One assignment
within groups of equal untouched values is what makes a release true; a set of records that have
fewer rows proves that there is none [3]_.

The graph of a large release is not built. Any part of it that holds such a subgraph proves the
claim, and a part fails for good only if its deficient records, and all that are reached from
them, have all their matches in it: until then they get more of them.

References
----------
.. [1] D. König: Über Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre,
   Mathematische Annalen 77, 1916.
.. [2] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy Preserving
   Data Publishing, SIGMOD 2010, Section 4.
.. [3] P. Hall: On representatives of subsets, 1935, doi:10.1112/jlms/s1-10.37.26.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, maximum_flow

from anonymip.privacy.arrays import Flags, Ints
from anonymip.privacy.graph.consistency import WORK, Pairs, PublishedMatches, joined_pairs


@dataclass(frozen=True)
class Deficiency:
    """A proof that no k disjoint assignments exist.

    `side`: ``"records"`` or ``"rows"``: what the set consists of. `size`: number of its members.
    `needed, available`: matches that they need, k each, and how many they can have: at most k of
    any partner. `example`: one of them, by its index.
    """

    side: str
    size: int
    needed: int
    available: int
    example: int


def _graph_of(arrows: Pairs, size: int) -> csr_array:
    return csr_array((np.ones(len(arrows[0]), np.int8), arrows), shape=(size, size))


def reached(arrows: Pairs, starts: Ints, size: int) -> Flags:
    """Return (size,) which nodes are reached along arrows from the starts, these included."""
    rooted = joined_pairs([arrows, (np.full(len(starts), size), starts)])
    seen = np.zeros(size + 1, np.bool_)
    seen[breadth_first_order(_graph_of(rooted, size + 1), size, return_predecessors=False)] = True
    return seen[:size]


def largest_flow(
    tail: Ints, head: Ints, capacity: Ints, source: int, sink: int
) -> tuple[Ints, Ints, Ints]:
    """Return tail, head and flow of the arcs of a maximum flow to the last node of a network."""
    shape = (sink + 1, sink + 1)
    network = csr_array((capacity.astype(np.int32), (tail, head)), shape=shape)
    flow = coo_array(maximum_flow(network, source, sink).flow)
    tail, head = (part.astype(np.int64) for part in flow.coords)
    return tail, head, flow.data.astype(np.int64)


class GraphPart:
    """A part of a consistency graph that grows where it has to.

    `graph`: the whole graph; it has as many records as rows. `k`: disjoint assignments that will be
    asked for. `first`: rows of each type of records in the first part; None has k size it.

    Memory grows with the matches that are looked at, not with those there are. A release that
    fails may need all matches of the records that are reached from the deficient ones.
    """

    def __init__(self, graph: PublishedMatches, k: int = 1, first: int | None = None) -> None:
        self.graph = graph
        self.a, self.b = len(graph.record_units), len(graph.row_units)
        self._limit = np.zeros(self.a, np.int64)
        first = first or max(WORK.fewest_matches, WORK.first_matches * k)
        source, target = self._ask(np.arange(self.a), first)
        self._take(source * self.b + target)

    def degrees(self, k: int) -> tuple[Ints, Ints]:
        """Return matches of one record and of one row of each type; exact where below k.

        Complexity: that of finding the first part, and all matches of what has too few in it.
        """
        records = np.bincount(self.source, self.graph.row_units[self.target], self.a)
        short = np.flatnonzero((records < k) & (self._limit < self.b))
        if len(short):
            source, target = self.graph.rows_of(short)
            found = np.bincount(source, self.graph.row_units[target], self.a)
            records[short] = found[short]
        rows = np.bincount(self.target, self.graph.record_units[self.source], self.b)
        short = np.flatnonzero(rows < k)
        if len(short) and (self._limit < self.b).any():
            source, target = self.graph.records_of(short)
            found = np.bincount(target, self.graph.record_units[source], self.b)
            rows[short] = found[short]
        return records.astype(np.int64), rows.astype(np.int64)

    def find_deficiency(self, k: int) -> Deficiency | None:
        """Look for k disjoint assignments; None if they exist, else why they do not.

        Complexity: that of a maximum flow from a + b nodes over the matches of the part.
        """
        short = self.lacking(k)
        if not len(short):
            return None
        found: list[Deficiency | None] = [
            self.deficient_records(start, k) for start in short[: WORK.starts]
        ]
        into = np.bincount(self.target, self.flow, self.b).astype(np.int64)
        poor = np.flatnonzero(into < k * self.graph.row_units)[: WORK.starts]
        found += [self._deficient_rows(row, k) for row in poor.tolist()]
        return min(filter(None, found), key=attrgetter("size"))

    def lacking(self, k: int) -> Ints:
        """Send k matches of each record and row; return the types of records that lack some.

        The part grows until they have them, or have all that they can.
        """
        self.flow = np.zeros(len(self.source), np.int64)
        while True:
            self._set_gates(k)
            self._send(k)
            out = np.bincount(self.source, self.flow, self.a).astype(np.int64)
            short = np.flatnonzero(out < k * self.graph.record_units)
            if not len(short) or not self._grow(self._reached(short)[0]):
                return short

    def effective(self, least: int | None = None) -> tuple[Ints, Ints] | None:
        """Return effective matches of one record and of one row of each type.

        None if there is no assignment at all. `least`: numbers from here on need not be exact, and
        are lower bounds; None means that all are.
        """
        if not self.assign():
            return None
        most = np.iinfo(np.int64).max if least is None else least
        while True:
            inside = self.effective_part()
            source, target = self.source[inside], self.target[inside]
            records = np.bincount(source, self.graph.row_units[target], self.a).astype(np.int64)
            rows = np.bincount(target, self.graph.record_units[source], self.b).astype(np.int64)
            if not self.widen(np.flatnonzero(records < most), np.flatnonzero(rows < most)):
                return records, rows

    def assign(self) -> bool:
        """Find one assignment; returns whether there is one."""
        return not len(self.lacking(1))

    def effective_part(self) -> Flags:
        """Return which of the part's matches are effective within it; an assignment is known.

        Send an arrow from each record to the rows that contain it, and from each row of an
        assignment to its record: a match is effective if it closes a cycle, so both its ends lie
        in one strongly connected component. Complexity: linear in the matches.
        """
        arrows = _graph_of(self._all_arrows(), self.a + self.b)
        _, component = connected_components(arrows, connection="strong")
        inside: Flags = component[self.source] == component[self.a + self.target]
        return inside

    def keep(self, matches: Flags) -> None:
        """Keep some of the matches of the part, and no flow."""
        self._take(self._keys[matches])

    def widen(self, records: Ints, rows: Ints) -> bool:
        """Add matches that can make more matches of some records and rows effective.

        Returns False if there are none: then all their effective matches are in the part.
        """
        starts = np.concatenate([records, self.a + rows])
        if not len(starts):
            return False
        # All cycles through a record pass what is reached from it.
        return self._grow(reached(self._all_arrows(), starts, self.a + self.b)[: self.a])

    def _ask(self, records: Ints, limit: int) -> Pairs:
        """Return matches of some types of records, and note what is still to be asked of them."""
        source, target = self.graph.rows_of(records, limit if limit < self.b else None)
        found = np.bincount(source, minlength=self.a)[records]
        self._limit[records] = np.where(found < limit, self.b, limit)
        return source, target

    def _take(self, keys: Ints) -> None:
        """Hold matches in the order of their keys, without flow."""
        self._keys = np.sort(keys)
        self.source, self.target = np.divmod(self._keys, self.b)
        self.flow = np.zeros(len(keys), np.int64)

    def _grow(self, records: Flags) -> bool:
        """Give some types of records more matches; returns False if they have all."""
        wanting = np.flatnonzero(records & (self._limit < self.b))
        if not len(wanting):
            return False
        source, target = self._ask(wanting, WORK.wider * int(self._limit[wanting].max()))
        keys, flow = self._keys, self.flow
        fresh = np.sort(np.concatenate([keys, source * self.b + target]))
        self._take(fresh[np.diff(fresh, prepend=-1) > 0])
        self.flow[np.searchsorted(self._keys, keys)] = flow
        return True

    def _set_gates(self, k: int) -> None:
        """Lay out the network of the part: the two ends of each match, and how often it serves.

        Nodes are records, then rows, then what stands between: gates behind records and doors
        before rows, each as node, owner and room; here there are none.
        """
        self.capacity = self._capacity(self.source, self.target, k)
        self.tails, self.heads = self.source, self.a + self.target
        self.gates = self.doors = (np.empty(0, np.int64),) * 3
        self.size = self.a + self.b

    def _residue(self) -> tuple[Ints, Ints, Ints]:
        """Return tails and heads of the arcs, and what more can be sent over them."""
        out = np.bincount(self.tails, self.flow, self.size).astype(np.int64)
        into = np.bincount(self.heads, self.flow, self.size).astype(np.int64)
        gates, owners, room = self.gates
        doors, rows, space = self.doors
        arcs = (
            (owners, gates, room - out[gates]),
            (gates, owners, out[gates]),
            (self.tails, self.heads, self.capacity - self.flow),
            (self.heads, self.tails, self.flow),
            (doors, rows, space - into[doors]),
            (rows, doors, into[doors]),
        )
        tail, head, left = (np.concatenate([arc[place] for arc in arcs]) for place in range(3))
        some = left > 0
        return tail[some], head[some], left[some]

    def _send(self, k: int) -> None:
        """Make the flow a maximum one within the part."""
        if not len(self.source):
            return
        tail, head, left = self._residue()
        out = np.bincount(self.source, self.flow, self.a).astype(np.int64)
        into = np.bincount(self.target, self.flow, self.b).astype(np.int64)
        start, sink = self.size, self.size + 1
        tail = np.concatenate([tail, np.full(self.a, start), self.a + np.arange(self.b)])
        head = np.concatenate([head, np.arange(self.a), np.full(self.b, sink)])
        units, row_units = self.graph.record_units, self.graph.row_units
        left = np.concatenate([left, k * units - out, k * row_units - into])
        tail, head, sent = largest_flow(tail, head, left, start, sink)
        nodes = self.size + 2
        arcs, used = self.tails * nodes + self.heads, tail * nodes + head
        order = np.argsort(arcs, kind="stable")
        place = np.minimum(np.searchsorted(arcs[order], used), len(arcs) - 1)
        ours = arcs[order][place] == used
        self.flow[order[place[ours]]] += sent[ours]

    def _all_arrows(self) -> Pairs:
        """Return steps from records to rows over all matches, and back over those with flow.

        Any match can be taken once more, by another record or row of its types.
        """
        used = self.flow > 0
        tail = np.concatenate([self.source, self.a + self.target[used]])
        return tail, np.concatenate([self.a + self.target, self.source[used]])

    def _reached(self, starts: Ints) -> tuple[Flags, Flags]:
        """Return the types of records and of rows that are reached from records in the residue."""
        tail, head, _ = self._residue()
        seen = reached((tail, head), starts, self.size)
        return seen[: self.a], seen[self.a : self.a + self.b]

    def deficient_records(self, start: np.int64, k: int) -> Deficiency:
        """Return the set of records that is reached from one that lacks matches."""
        records, rows = self._reached(np.array([start]))
        units, row_units = self.graph.record_units, self.graph.row_units
        leaving = records[self.source] & ~rows[self.target]
        available = k * row_units[rows].sum() + self.capacity[leaving].sum()
        size = int(units[records].sum())
        example = int(self.graph.first_records[start])
        return Deficiency("records", size, k * size, int(available), example)

    def _deficient_rows(self, start: int, k: int) -> Deficiency | None:
        """Return the set of rows that is reached backwards from one; None if it is a large one."""
        units, row_units = self.graph.record_units, self.graph.row_units
        rows, records = {start}, np.zeros(self.a, np.bool_)
        fresh = np.array([start], np.int64)
        crossing = 0
        matches: list[Pairs] = []
        while len(fresh):
            matches.append(self.graph.records_of(fresh))
            source, target = matches[-1]
            new = np.zeros(self.a, np.bool_)
            open_ = self._flow_of(source, target) < self._capacity(source, target, k)
            new[source[open_]] = True
            new &= ~records
            records |= new
            taken = np.unique(self.target[new[self.source] & (self.flow > 0)])
            fresh = np.array([row for row in taken.tolist() if row not in rows], np.int64)
            rows.update(fresh.tolist())
            if len(rows) > WORK.rows_visited:
                return None
        for source, target in matches:
            outside = ~records[source]
            crossing += int(self._capacity(source[outside], target[outside], k).sum())
        size = int(row_units[list(rows)].sum())
        available = k * int(units[records].sum()) + crossing
        return Deficiency("rows", size, k * size, available, int(self.graph.first_rows[start]))

    def _flow_of(self, source: Ints, target: Ints) -> Ints:
        """Return the flow over matches, 0 over those outside the part."""
        if not len(self._keys):
            return np.zeros(len(source), np.int64)
        wanted = source * self.b + target
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[place] == wanted, self.flow[place], 0)

    def _capacity(self, source: Ints, target: Ints, k: int) -> Ints:
        """Return how often k assignments can use each match of two types."""
        units, row_units = self.graph.record_units[source], self.graph.row_units[target]
        capacity: Ints = np.minimum(units * row_units, k * np.minimum(units, row_units))
        return capacity


def disjoint_assignments(graph: PublishedMatches, claimed: int) -> tuple[int, Deficiency | None]:
    """Return how many disjoint assignments exist, up to a claim; and why not so many.

    `claimed`: at least 1. Returns: the claim and None if so many exist; else the largest number
    below, perhaps 0, and what the claim fails at. Complexity: a flow if the claim holds, else O(log
    claimed) further ones.
    """
    part = GraphPart(graph, claimed)
    deficiency = part.find_deficiency(claimed)
    if deficiency is None:
        return claimed, None
    # Fewer assignments exist wherever more do.
    low, high = 0, claimed
    while high - low > 1:
        middle = (low + high) // 2
        if part.find_deficiency(middle) is None:
            low = middle
        else:
            high = middle
    return low, deficiency
