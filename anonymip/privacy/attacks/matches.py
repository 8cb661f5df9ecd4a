"""Matches of records and rows to an adversary: how probable each is, what known ones tell.

To who takes all assignments for equally likely, a match is as probable as the share of them that
hold it. It is counted exactly in small graphs, by the number of perfect matchings with and without
it; in larger ones it is estimated from assignments that a random walk draws. A publisher who draws
one of k disjoint assignments gives each of its k matches the same probability; this attack is what
remains to who knows the release only.

Corruption: whoever knows that a published row is a certain person's takes both out of the
consistency graph; matches of others may then be in no assignment any more. In classes c known
matches leave k - c identities to everybody else, and the same holds for a graph in which i can be l
if l can be i, published along the identity; in other graphs it may be fewer [1]_.

References
----------
.. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
   ASIACCS 2015, Section 2.2.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from anonymip.errors import InputError
from anonymip.privacy.arrays import Flags, Floats, Ints
from anonymip.privacy.graph.consistency import MatchGraph, PublishedMatches
from anonymip.privacy.reading.original import Original, Reading, read_inputs
from anonymip.privacy.reading.published import PublishedTable, read_published

#: Records up to which assignments are counted: their number, 20! at most, then fits 64 bits.
MOST_COUNTED = 20
#: Cycles walked between two drawn assignments in each part of the graph, and draws left out first.
_CYCLES = 16
_BURN_IN = 50


def consistency_graph(
    original: str | Path | Any,
    release: str | Path | Any,
    manifest: Mapping[str, Any] | str | Path | None = None,
    *,
    schema: str | Path | None = None,
    **reading: Unpack[Reading],
) -> MatchGraph:
    """Return which original records each published row can be, by its quasi-identifiers.

    Attacks take it: :func:`~anonymip.privacy.match_probabilities`,
    :func:`~anonymip.privacy.measure_corruption`.
    `original, release, manifest, schema`: as in :func:`~anonymip.privacy.verify`, and so is how
    they are read: `separator`, `encoding`, `decimal`, `columns`, `sheet`, `hierarchies`. Records
    are numbered in the order of the original, without those that the missing policy left out; rows
    in that of the release. For each suppressed record that has no row, a row of stars follows them:
    it could be anybody's. Raises InputError as `verify` does; and if the release breaks the format,
    or has not one row a record but for those that are left out. Complexity: linear in the number of
    matches, all of which are held in memory.
    """
    inputs = read_inputs(original, release, manifest, schema, **reading)
    published = read_published(release, inputs.manifest, inputs.hierarchies)
    return matches_of(inputs.records, published, inputs.manifest.left_out.suppressed).graph()


def matches_of(records: Original, published: PublishedTable, left_out: int) -> PublishedMatches:
    """Return what `consistency_graph` does, before its matches are listed.

    `records, published`: what is read of a table and its release. `left_out`: suppressed records
    without a row, as the manifest claims. Raises InputError if their numbers contradict each other.
    """
    if published.n + left_out != records.n:
        raise InputError(
            f"the release has {published.n + left_out} rows for {records.n} original records",
            remedy="Check that both belong together",
        )
    if left_out:
        published = published.with_rows_of_stars(left_out)
    return PublishedMatches(records, published)


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


def linked_parts(graph: MatchGraph, held: Ints, usable: Flags | None = None) -> tuple[Ints, Flags]:
    """Return (n,) the part of each row, and (matches,) which matches are in some assignment.

    A match is so exactly if its row and the row that holds its record are in one part: a
    strongly connected component of the graph of rows that can take each other's records [1]_.
    `held`: (n,) an assignment. `usable`: (matches,) which matches there are; None means all.
    Complexity: O(n + matches).

    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Theorem 1.
    """
    from_, to = graph.rows, np.argsort(held)[graph.records]
    there = np.ones(len(to), np.bool_) if usable is None else usable
    arrows = (from_[there], to[there])
    takes = csr_array((np.ones(len(arrows[0]), np.int8), arrows), shape=(graph.n, graph.n))
    part = np.asarray(connected_components(takes, connection="strong")[1], np.int64)
    return part, there & (part[from_] == part[to])


def effective_parts(graph: MatchGraph, held: Ints) -> tuple[list[Ints], Flags]:
    """Return the rows of each linked part, and (matches,) which matches are in some assignment."""
    part, effective = linked_parts(graph, held)
    order = np.argsort(part, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(part))[:-1])
    return parts, effective


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


@dataclass(frozen=True, eq=False)
class Corruption:
    """What is left after so many known matches, over random choices of them."""

    known: int  # number c of true matches known
    before: int  # identities of the record or row that has fewest, while none is known
    #: (draws,) identities left to the record or row, among the unknown ones, that has fewest.
    least: Ints
    mean: Floats  # (draws,) mean number of rows left to an unknown record

    @property
    def beyond(self) -> int:
        """The most that was lost beyond one identity for each known match: phi."""
        return max(0, self.before - self.known - int(self.least.min()))

    def summary(self) -> str:
        """Return one line for a person."""
        return (
            f"{self.known} known matches leave {int(self.least.min())} of {self.before} identities "
            f"in the worst of {len(self.least)} draws, {self.mean.mean():.4g} to the average record"
        )


def measure_corruption(
    graph: MatchGraph,
    known: int,
    *,
    truth: ArrayLike | None = None,
    draws: int = 100,
    seed: int = 0,
) -> Corruption:
    """Measure what random known matches leave to the others.

    `known`: number of true matches that the adversary knows, fewer than there are records. `truth`:
    (n,) the true record of each row, which only the publisher knows; None draws an assignment at
    random for each measurement, as an adversary has to. Raises InputError if `known` or `draws` is
    out of range, or `truth` is no assignment of the graph. Complexity: O(n + matches) a draw.
    """
    if not 0 <= known < graph.n:
        raise InputError(f"known is {known}", remedy=f"Give a number from 0 to {graph.n - 1}")
    if draws < 1:
        raise InputError(f"draws is {draws}", remedy="Give at least 1")
    held = some_assignment(graph) if truth is None else _checked(graph, truth)
    before = min(map(np.min, _identities(graph, held)))
    parts, effective = effective_parts(graph, held)
    walk = RandomAssignments(graph, effective, held, seed)
    rng = np.random.default_rng(seed)
    least, mean = np.empty(draws, np.int64), np.empty(draws)
    for draw in range(draws):
        if truth is None:
            for rows in parts:
                walk.renew(rows)
            held = graph.records[walk.match]
        rows = rng.choice(graph.n, known, replace=False)
        of_rows, of_records = _identities(graph, held, _without(graph, rows, held[rows]))
        of_rows, of_records = np.delete(of_rows, rows), np.delete(of_records, held[rows])
        least[draw] = min(of_rows.min(), of_records.min())
        mean[draw] = of_records.mean()
    return Corruption(known, int(before), least, mean)


def _checked(graph: MatchGraph, truth: ArrayLike) -> Ints:
    held = np.asarray(truth, np.int64)
    matches = graph.rows * graph.n + graph.records
    if (
        held.shape != (graph.n,)
        or len(np.unique(held)) < graph.n
        or not np.isin(np.arange(graph.n) * graph.n + held, matches).all()
    ):
        raise InputError("truth is no assignment of the graph", remedy="Check its order")
    return held


def _without(graph: MatchGraph, rows: Ints, records: Ints) -> Flags:
    """Return (matches,) which matches there are if some rows are known to be some records."""
    record_of, row_of = np.full(graph.n, -1), np.full(graph.n, -1)
    record_of[rows], row_of[records] = records, rows
    theirs, whose = record_of[graph.rows], row_of[graph.records]
    usable: Flags = (theirs < 0) & (whose < 0) | (theirs == graph.records)
    return usable


def _identities(graph: MatchGraph, held: Ints, usable: Flags | None = None) -> tuple[Ints, Ints]:
    """Return (n,) records that each row can still be, and (n,) rows that each record can."""
    left = linked_parts(graph, held, usable)[1]
    of_rows = np.bincount(graph.rows[left], minlength=graph.n)
    return of_rows, np.bincount(graph.records[left], minlength=graph.n)
