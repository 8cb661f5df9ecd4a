"""What several releases of one table leave together: the rows that can still be a record's.

``docs/joined.md`` says what the adversary knows and what is counted. Each release is made complete:
records that it leaves out are added as rows of stars, with their values. Then matches of record and
row are taken away that cannot be true, because no row of another release shows the same values and
fits the record as well, or because no assignment of all records holds the match; until none is left
to take away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.privacy.attacks.joined_graph import CompleteRelease, JoinedView
from anonymip.privacy.reading.hierarchies import Paths
from anonymip.privacy.reading.inputs import read_inputs
from anonymip.privacy.reading.manifests.digests import digest_finding
from anonymip.privacy.reading.published import dense_rows, read_published


@dataclass(frozen=True, eq=False)
class JoinedCandidates:
    """How many rows can still be each record's, to who has all the releases.

    Parameters
    ----------
    k
        What is asked of every record: the least that a release promises, unless it was given.
    linked_by
        Columns that two releases publish untouched: rows of one record agree on them.
    rows
        (n,) row of each record in the original, from 0.
    alone
        (releases, n) rows of each release that can be the record's, by that release alone.
    left
        (releases, n) the same once all are joined.
    problems
        Why nothing could be counted, one sentence each.
    in_order
        Whether rows of two releases of classes are linked by the order of the original as well.
    """

    k: int
    linked_by: tuple[str, ...]
    rows: NDArray[np.int64]
    alone: NDArray[np.int64]
    left: NDArray[np.int64]
    problems: tuple[str, ...] = ()
    in_order: bool = False

    @property
    def candidates(self) -> NDArray[np.int64]:
        """(n,) rows left in the release that leaves the record fewest; 0 if none has any.

        A release without a row that can be the record's does not count: the record is not in it.
        """
        return _fewest(self.left)

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
    separator: str | None = None,
    encoding: str | None = None,
    columns: Sequence[str] | None = None,
    hierarchies: Mapping[str, Paths] | None = None,
) -> JoinedCandidates:
    """Count the rows that can still be each record's to who joins several releases of a table.

    Parameters
    ----------
    original
        The table of which all are releases.
    releases
        At least two.
    manifests
        One each, or None: the files beside the releases.
    schema, separator, encoding, columns, hierarchies
        As in :func:`~anonymip.privacy.verify`.
    k
        Rows that every record has to keep; default: the least k of the manifests.

    Raises
    ------
    InputError
        As `verify` does; if a release breaks the format, or the releases do not treat missing
        values alike.

    Notes
    -----
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
        read_inputs(
            original,
            release,
            manifest,
            schema=schema,
            separator=separator,
            encoding=encoding,
            columns=columns,
            hierarchies=hierarchies,
        )
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
        if digest_finding(release, one.sha256)[1]
    ]
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


def _fewest(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (n,) the least of (releases, n) numbers above 0; 0 where there is none."""
    most = np.iinfo(np.int64).max
    least = np.where(rows > 0, rows, most).min(axis=0)
    return np.where(least == most, 0, least)
