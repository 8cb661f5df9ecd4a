"""Probabilities of matches to an adversary who takes all assignments for equally likely.

The share of the assignments that hold a match is counted exactly in small graphs, by the number of
perfect matchings with and without it; in larger ones it is estimated from assignments that a
random walk draws. A publisher who draws one of k disjoint assignments gives each of its k matches
the same probability; this attack is what remains to who knows the release only.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from anonymip.errors import InputError
from anonymip.privacy.arrays import Flags, Floats, Ints
from anonymip.privacy.graph.consistency import MatchGraph

#: Records up to which assignments are counted: their number, 20! at most, then fits 64 bits.
MOST_COUNTED = 20
#: Cycles walked between two drawn assignments in each part of the graph, and draws left out first.
_CYCLES = 16
_BURN_IN = 50


@dataclass(frozen=True, eq=False)
class MatchProbabilities:
    """The probability of each match."""

    graph: MatchGraph  # the consistency graph
    #: (matches,) for each entry of ``graph.records``; 0 where no assignment holds the match.
    probability: Floats
    is_exact: Flags  # (matches,) whether it was counted; else it is an estimate
    #: Number of assignments; None if not all parts of the graph were counted.
    assignments: int | None

    @property
    def largest(self) -> float:
        """The probability of the most probable match."""
        return float(self.probability.max())

    def of_row(self, row: int) -> dict[int, float]:
        """Return the probability of each record that a row can be."""
        some = slice(int(self.graph.start[row]), int(self.graph.start[row + 1]))
        records, shares = self.graph.records[some], self.probability[some]
        return dict(zip(records.tolist(), shares.tolist(), strict=True))


def match_probabilities(
    graph: MatchGraph, *, draws: int = 1000, seed: int = 0
) -> MatchProbabilities:
    """Return the share of all assignments that hold each match.

    `draws`: assignments drawn for the parts of the graph that are too large to count, parts of more
    than 20 records connected by effective matches. The standard error of a share p is that of the
    square root of p (1 - p) / draws at least, since draws follow each other. Raises InputError if
    the graph has no assignment, or `draws` is below 1. Complexity: O(2^s s) for a part of s <= 20
    records; about O(s) steps for a draw of a larger one. Draws are by a walk that takes the record
    from a row at random and hands records on until it is back: its steps are reversible, and all
    assignments are equally likely in the long run.
    """
    if draws < 1:
        raise InputError(f"draws is {draws}", remedy="Give at least 1")
    held = some_assignment(graph)
    parts, effective = effective_parts(graph, held)
    counts = np.zeros(len(graph.records), np.int64)
    totals = np.full(len(graph.records), draws, np.int64)
    assignments: int | None = 1
    large: list[Ints] = []
    for rows in parts:
        if len(rows) > MOST_COUNTED:
            large.append(rows)
            assignments = None
            continue
        places = [_places(graph, effective, int(row)) for row in rows]
        total, found = _count([graph.records[place] for place in places], held[rows])
        for place, counted in zip(places, found, strict=True):
            counts[place], totals[place] = counted, total
        assignments = None if assignments is None else assignments * total
    is_exact = ~np.isin(graph.rows, np.concatenate([np.empty(0, np.int64), *large]))
    if large:
        walk = RandomAssignments(graph, effective, held, seed)
        for draw in range(_BURN_IN + draws):
            for rows in large:
                walk.renew(rows)
            if draw >= _BURN_IN:
                counts[walk.match[~is_exact[walk.match]]] += 1
    totals[~effective & is_exact] = 1
    return MatchProbabilities(graph, counts / totals, is_exact, assignments)


def some_assignment(graph: MatchGraph) -> Ints:
    """Return (n,) the record of each row in some assignment. Raises InputError if there is none."""
    shape = (graph.n, graph.n)
    contains = csr_array((np.ones(len(graph.records), np.int8), graph.records, graph.start), shape)
    held = maximum_bipartite_matching(contains, perm_type="column").astype(np.int64)
    if (held < 0).any():
        raise InputError(
            "the records cannot be handed out to the rows one to one",
            remedy="Check that release and original belong together; verify names a row",
        )
    return held


def linked_parts(graph: MatchGraph, held: Ints, usable: Flags | None = None) -> Ints:
    """Return (n,) the part of the graph that each row belongs to.

    A match is effective exactly if its row and the row that holds its record are in one part: a
    strongly connected component of the graph of rows that can take each other's records [1]_.
    `held`: (n,) an assignment. `usable`: (matches,) which matches there are; None means all.
    Complexity: O(n + matches).

    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Theorem 1.
    """
    from_, to = graph.rows, np.argsort(held)[graph.records]
    if usable is not None:
        from_, to = from_[usable], to[usable]
    takes = csr_array((np.ones(len(from_), np.int8), (from_, to)), shape=(graph.n, graph.n))
    return np.asarray(connected_components(takes, connection="strong")[1], np.int64)


def effective_parts(graph: MatchGraph, held: Ints) -> tuple[list[Ints], Flags]:
    """Return the rows of each linked part, and (matches,) which matches are in some assignment."""
    part = linked_parts(graph, held)
    order = np.argsort(part, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(part))[:-1])
    return parts, part[graph.rows] == part[np.argsort(held)[graph.records]]


class RandomAssignments:
    """Assignments drawn by a reversible walk.

    `graph, effective`: the matches, and which of them can be used. `held`: (n,) the assignment to
    start from; `match` is (n,) the match of each row in the one drawn, as its place in the graph.
    """

    def __init__(self, graph: MatchGraph, effective: Flags, held: Ints, seed: int) -> None:
        self._records = graph.records.tolist()
        self._choices = [_places(graph, effective, row).tolist() for row in range(graph.n)]
        holder = np.argsort(held)
        self.match = np.flatnonzero(graph.rows == holder[graph.records])
        self._holder = holder.tolist()
        self._random = random.Random(seed)

    def renew(self, rows: Ints) -> None:
        """Walk cycles in the part of the graph that consists of some rows."""
        for _ in range(_CYCLES):
            row = int(rows[self._random.randrange(len(rows))])
            free = self._records[int(self.match[row])]
            # In the state with a free record and a row without one the row picks among all its
            # matches, so the weight of that state is the number of them: the steps are reversible.
            while True:
                choices = self._choices[row]
                match = choices[self._random.randrange(len(choices))]
                record = self._records[match]
                displaced = self._holder[record]
                self.match[row], self._holder[record] = match, row
                if record == free:
                    break
                row = displaced


def _places(graph: MatchGraph, effective: Flags, row: int) -> Ints:
    begin, end = int(graph.start[row]), int(graph.start[row + 1])
    return begin + np.flatnonzero(effective[begin:end])


def _count(rows: list[Ints], records: Ints) -> tuple[int, list[Ints]]:
    """Return the number of assignments of rows to records, and of those that hold each match."""
    s = len(rows)
    bit_of = {record: bit for bit, record in enumerate(sorted(records.tolist()))}
    bits = [[bit_of[record] for record in row.tolist()] for row in rows]
    sets = np.arange(1 << s)
    sizes = np.zeros(1 << s, np.int8)
    for bit in range(s):
        sizes += ((sets >> bit) & 1).astype(np.int8)
    order = np.argsort(sizes, kind="stable")
    layers = np.split(order, np.cumsum(np.bincount(sizes))[:-1])
    # The first rows are handed a set of records, the others the rest of them.
    before, after = np.zeros(1 << s, np.int64), np.zeros(1 << s, np.int64)
    before[0] = after[-1] = 1
    for row in range(s):
        for bit in bits[row]:
            without = layers[row][(layers[row] >> bit) & 1 == 0]
            before[without | (1 << bit)] += before[without]
    counts: list[Ints] = []
    for row in reversed(range(s)):
        found = np.empty(len(bits[row]), np.int64)
        for place, bit in enumerate(bits[row]):
            without = layers[row][(layers[row] >> bit) & 1 == 0]
            ways = after[without | (1 << bit)]
            after[without] += ways
            found[place] = before[without] @ ways
        counts.append(found)
    return int(after[0]), counts[::-1]
