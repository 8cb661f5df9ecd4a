"""Corruption: what an adversary who knows some true matches learns of the others.

Whoever knows that a published row is a certain person's takes both out of the consistency graph;
matches of others may then be in no assignment any more. In classes c known matches leave k - c
identities to everybody else, and the same holds for a graph in which i can be l if l can be i,
published along the identity; in other graphs it may be fewer [1]_.

References
----------
.. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
   ASIACCS 2015, Section 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from anonymip.errors import InputError
from anonymip.privacy.arrays import Flags, Floats, Ints
from anonymip.privacy.attacks.probabilities import (
    RandomAssignments,
    effective_parts,
    linked_parts,
    some_assignment,
)
from anonymip.privacy.graph.consistency import MatchGraph, PublishedMatches
from anonymip.privacy.reading.original import Original, Reading, read_inputs
from anonymip.privacy.reading.published import PublishedTable, read_published


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


def in_some_assignment(graph: MatchGraph, held: Ints, usable: Flags | None = None) -> Flags:
    """Return (matches,) which matches are in some assignment.

    `held`: (n,) an assignment. `usable`: (matches,) which matches there are; None means all.
    Complexity: O(n + matches).
    """
    part = linked_parts(graph, held, usable)
    linked: Flags = part[graph.rows] == part[np.argsort(held)[graph.records]]
    return linked if usable is None else usable & linked


def _identities(graph: MatchGraph, held: Ints, usable: Flags | None = None) -> tuple[Ints, Ints]:
    """Return (n,) records that each row can still be, and (n,) rows that each record can."""
    left = in_some_assignment(graph, held, usable)
    of_rows = np.bincount(graph.rows[left], minlength=graph.n)
    return of_rows, np.bincount(graph.records[left], minlength=graph.n)
