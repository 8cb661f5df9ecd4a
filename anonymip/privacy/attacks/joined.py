"""Several releases of one table, joined: the rows that can still be a record's.

``docs/joined.md`` says what the adversary knows and what is counted. Each release is made complete:
records that it leaves out are added as rows of stars, with their values. Then matches of record and
row are taken away that cannot be true, because no row of another release shows the same values and
fits the record as well, or because no assignment of all records holds the match; until none is left
to take away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from anonymip.errors import InputError
from anonymip.privacy.arrays import Flags, Ints
from anonymip.privacy.graph.consistency import PublishedMatches
from anonymip.privacy.graph.regularity import GraphPart
from anonymip.privacy.reading.original import Original, Reading, read_inputs
from anonymip.privacy.reading.published import (
    PublishedTable,
    dense_rows,
    groups_of_pairs,
    read_published,
)
from anonymip.privacy.reading.release_manifest import Manifest, digest_finding
from anonymip.privacy.reading.text_tables import TextColumn, aligned, distinct, paired_codes


@dataclass(frozen=True, eq=False)
class CompleteRelease:
    """A release with a row for every record: those that it leaves out are rows of stars."""

    original: Original  # the n records
    #: n rows; those added show the untouched values of the records that are left out.
    published: PublishedTable
    absent: Flags  # (n,) which rows are added
    in_order: bool  # whether row i belongs to the record in place i
    known: tuple[str, ...]  # untouched columns whose values the adversary knows of every person

    @classmethod
    def of(
        cls,
        original: Original,
        published: PublishedTable,
        manifest: Manifest,
        known: Collection[str],
    ) -> CompleteRelease | None:
        """Return the completed release; None if it shows what the original does not have.

        `original, published, manifest`: the release as it is read. `known`: columns whose values
        the adversary knows, quasi-identifiers or not.
        """
        n, names = original.n, tuple(published.untouched)
        pairs = [*original.paired(published.untouched).values()]
        group, shown = groups_of_pairs(pairs, n, published.n)
        size = int(max(group.max(), shown.max(initial=0))) + 1
        in_release = np.bincount(shown, minlength=size)
        if (in_release > np.bincount(group, minlength=size)).any():
            return None
        # Of records with equal values it does not matter which is left out.
        order = np.argsort(group, kind="stable")
        place = np.arange(n) - np.searchsorted(group[order], group[order])
        left_out = order[place >= in_release[group[order]]]
        untouched = {}
        for name, column in published.untouched.items():
            before, after = aligned(original.untouched[name], column)
            null = np.concatenate([column.null, original.untouched[name].null[left_out]])
            texts = np.concatenate([after, before[left_out]])
            untouched[name] = TextColumn(texts, null, column.nature)
        return cls(
            original,
            replace(published.with_rows_of_stars(len(left_out)), untouched=untouched),
            np.arange(n) >= published.n,
            manifest.order == "kept" and not manifest.is_cover and not len(left_out),
            tuple(name for name in names if name in known),
        )

    def known_values(self, name: str) -> tuple[Ints, Ints]:
        """Return (n,) codes of the values of records, and of rows, in an untouched column."""
        return paired_codes(self.original.untouched[name], self.published.untouched[name])

    def knowledge(self) -> Ints:
        """Return (n,) numbers of the records, equal where the adversary knows the same of two."""
        known = [self.known_values(name)[0] for name in self.known]
        return dense_rows(np.column_stack([self.original.codes, *known]))

    def looks(self) -> Ints:
        """Return (n,) numbers of the rows, equal where two show the same beside their cells."""
        columns = [distinct(column.texts)[1] for column in self.published.untouched.values()]
        place = np.arange(self.original.n) * self.in_order
        return dense_rows(np.stack([self.absent, place, *columns], axis=1))


class JoinedView:
    """The matches of record and row that several releases leave in one of them.

    `people`: (n,) numbers of the records, equal where the adversary knows the same of two.
    """

    def __init__(self, release: CompleteRelease, people: Ints) -> None:
        self.release = release
        self._graph = PublishedMatches(release.original, release.published, people, release.looks())
        self._person = people[self._graph.first_records]
        self._absent = release.absent[self._graph.first_rows]
        # Asked for that many, the part holds all matches from the start.
        self._part = GraphPart(self._graph, first=len(self._absent) + 1)
        for name in release.known:
            before, after = release.known_values(name)
            record = self._graph.first_records[self._part.source]
            row = self._graph.first_rows[self._part.target]
            self._part.keep((before[record] == after[row]) | self._absent[self._part.target])

    def keep_possible(self) -> bool:
        """Keep the matches that lie in an assignment of all records; False if there is none."""
        if not self._part.assign():
            return False
        self._part.keep(self._part.effective_part())
        return True

    def keep_linked(self, other: JoinedView, names: Collection[str], *, by_place: bool) -> bool:
        """Keep in both the matches that have a counterpart in the other; True if some had none.

        `other`: view of another release. `names`: columns that both publish untouched: rows of one
        record agree on them. `by_place`: whether rows of one record have the same place.
        """
        both = self.release.published, other.release.published
        n = self.release.original.n
        pairs = [paired_codes(*(one.untouched[name] for one in both)) for name in names]
        pairs += [(np.arange(n), np.arange(n))] * by_place
        our_links, their_links = groups_of_pairs(pairs, n, n)
        ours, theirs = self._keys(our_links, 2 * n), other._keys(their_links, 2 * n)
        kept, left = np.isin(ours, theirs), np.isin(theirs, ours)
        self._part.keep(kept)
        other._part.keep(left)
        return not (kept.all() and left.all())

    def rows_of_records(self) -> Ints:
        """Return (n,) how many published rows can be each record's."""
        units = np.where(self._absent, 0, self._graph.row_units)[self._part.target]
        counts = np.bincount(self._part.source, units, len(self._person)).astype(np.int64)
        return counts[self._graph.record_type]

    def _keys(self, link: Ints, width: int) -> Ints:
        """Return for each match a number of who it is about and what links its row."""
        linked = link[self._graph.first_rows][self._part.target]
        return self._person[self._part.source] * width + linked


@dataclass(frozen=True, eq=False)
class JoinedCandidates:
    """How many rows can still be each record's, to who has all the releases."""

    k: int  # what is asked of every record: the least that a release promises, unless it was given
    #: Columns that two releases publish untouched: rows of one record agree on them.
    linked_by: tuple[str, ...]
    rows: Ints  # (n,) row of each record in the original, from 0
    #: (releases, n) rows of each release that can be the record's, by that release alone.
    alone: Ints
    left: Ints  # (releases, n) the same once all are joined
    problems: tuple[str, ...] = ()  # why nothing could be counted, one sentence each
    #: Whether rows of two releases of classes are linked by the order of the original as well.
    in_order: bool = False

    @property
    def candidates(self) -> Ints:
        """(n,) rows left in the release that leaves the record fewest; 0 if none has any.

        A release without a row that can be the record's does not count: the record is not in it.
        """
        most = np.iinfo(np.int64).max
        least = np.where(self.left > 0, self.left, most).min(axis=0)
        return np.where(least == most, 0, least)

    @property
    def fewer(self) -> int:
        """Number of records with fewer than k candidates."""
        return int(np.sum((self.candidates > 0) & (self.candidates < self.k)))

    @property
    def unique(self) -> int:
        """Number of records with a single candidate."""
        return int(np.sum(self.candidates == 1))

    @property
    def ok(self) -> bool:
        """Whether every record keeps k candidates."""
        return not self.problems and self.fewer == 0

    def summary(self) -> str:
        """Return the text for a person, several lines."""
        if self.problems:
            return "\n".join(
                [
                    "The releases cannot be joined.",
                    *(f"  PROBLEM: {problem}" for problem in self.problems),
                ]
            )
        alone = " and ".join(str(int(np.sum((rows > 0) & (rows < self.k)))) for rows in self.alone)
        links = [*map(repr, self.linked_by), *(["their order"] if self.in_order else [])]
        rows_are = "Nothing links rows of one release to rows of another"
        if links:
            rows_are = f"Rows are linked by {', by '.join(links)}"
        kept = "Joined, the releases keep their promise." if self.ok else "Joined, they FAIL."
        return (
            f"{kept}\n{self.fewer} of {len(self.rows)} records have fewer than k = {self.k} rows "
            f"left that can be theirs, {self.unique} of them a single one ({alone} have fewer by "
            f"each release alone).\n{rows_are}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as an object for JSON, without the records that they are of."""
        held = self.candidates[self.candidates > 0]
        return {
            "ok": self.ok,
            "k": self.k,
            "records": len(self.rows),
            "fewer": self.fewer,
            "unique": self.unique,
            "fewest": int(held.min()) if len(held) else None,
            "linked_by": list(self.linked_by),
            "problems": list(self.problems),
        }


def joined_candidates(
    original: str | Path | Any,
    releases: Sequence[str | Path | Any],
    manifests: Sequence[Mapping[str, Any] | str | Path | None] | None = None,
    *,
    schema: str | Path | None = None,
    k: int | None = None,
    **reading: Unpack[Reading],
) -> JoinedCandidates:
    """Count the rows that can still be each record's to who joins several releases of a table.

    `original`: the table of which all are releases. `releases`: at least two. `manifests`: one
    each, or None: the files beside the releases. `schema, separator, encoding, decimal, columns,
    hierarchies, sheet`: as in :func:`~anonymip.privacy.verify`. `k`: rows that every record has to
    keep; default: the least k of the manifests. Raises InputError as `verify` does; if a release
    breaks the format, or the releases do not treat missing values alike.

    The releases themselves are not verified. Complexity: linear in the number of matches, all of
    which are held in memory, for every round; few rounds are needed.
    """
    if len(releases) < 2:
        raise InputError(
            f"{len(releases)} releases cannot be joined", remedy="Give at least two of one table"
        )
    given = [None] * len(releases) if manifests is None else list(manifests)
    if len(given) != len(releases):
        raise InputError(
            f"{len(given)} manifests for {len(releases)} releases", remedy="Give one for each"
        )
    inputs = [
        read_inputs(original, release, manifest, schema, **reading)
        for release, manifest in zip(releases, given, strict=True)
    ]
    tables = [
        read_published(release, one.manifest, one.hierarchies)
        for release, one in zip(releases, inputs, strict=True)
    ]
    records = [one.records for one in inputs]
    if any(not np.array_equal(one.rows, records[0].rows) for one in records):
        raise InputError(
            "the releases leave out different records with missing values",
            remedy="Join releases with the same policy for missing values",
        )
    names = tuple(dict.fromkeys(name for table in tables for name in table.untouched))
    linked_by = tuple(
        name for name in names if sum(name in table.untouched for table in tables) > 1
    )
    claims = [one.manifest for one in inputs]
    known = {column.name for one in claims for column in one.quasi_identifiers}
    complete = [
        CompleteRelease.of(*one, known) for one in zip(records, tables, claims, strict=True)
    ]
    found = JoinedCandidates(
        min(one.k for one in claims) if k is None else k,
        linked_by,
        records[0].rows,
        *np.zeros((2, len(inputs), records[0].n), np.int64),
    )
    false = [
        f"Release {number} is not the table that its manifest was written for."
        for number, (release, one) in enumerate(zip(releases, claims, strict=True), start=1)
        if digest_finding(release, one.table.sha256)[1]
    ]
    for name in {name for table in tables for name in table.pseudonyms}:
        shown = [set(one.pseudonyms[name].texts) for one in tables if name in one.pseudonyms]
        if any((one & other) - {""} for one, other in combinations(shown, 2)):
            raise InputError(
                f"the releases share pseudonyms of column {name!r}, which join rows of a person",
                remedy="Publish each with a key of its own: what these leave is not counted",
            )
    false += [
        f"Release {number} shows sensitive or kept values that the original does not have."
        for number, release in enumerate(complete, start=1)
        if release is None
    ]
    if false:
        return replace(found, problems=tuple(false))
    return _count(found, [release for release in complete if release is not None])


def _count(found: JoinedCandidates, releases: Sequence[CompleteRelease]) -> JoinedCandidates:
    """Return what was found with the rows that can be each record's, alone and joined."""
    people = dense_rows(np.stack([release.knowledge() for release in releases], axis=1))
    views = [JoinedView(release, people) for release in releases]
    false = [
        f"Release {number} has no row of its own for every record."
        for number, view in enumerate(views, start=1)
        if not view.keep_possible()
    ]
    if false:
        return replace(found, problems=tuple(false))
    alone = np.stack([view.rows_of_records() for view in views])
    ruled_out = True
    while ruled_out:
        ruled_out = False
        for one, other in combinations(views, 2):
            both = one.release, other.release
            names = both[0].published.untouched.keys() & both[1].published.untouched.keys()
            by_place = both[0].in_order and both[1].in_order
            ruled_out |= one.keep_linked(other, names, by_place=by_place)
        if ruled_out and not all(view.keep_possible() for view in views):
            return replace(found, problems=("The releases contradict each other.",))
    left = np.stack([view.rows_of_records() for view in views])
    in_order = sum(release.in_order for release in releases) > 1
    return replace(found, alone=alone, left=left, in_order=in_order)
