"""The consistency graphs of several releases of one table, and what they rule out in each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anonymip.privacy.graph.consistency import Pairs, PublishedMatches
from anonymip.privacy.graph.regularity import GraphPart
from anonymip.privacy.reading.cells import SUPPRESSED
from anonymip.privacy.reading.manifests.manifest import Manifest
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable, dense_rows
from anonymip.privacy.reading.tables import TextColumn, aligned, distinct, paired_codes


@dataclass(frozen=True, eq=False)
class CompleteRelease:
    """A release with a row for every record: those that it leaves out are rows of stars.

    Parameters
    ----------
    original
        The n records.
    published
        n rows; those added show the untouched values of the records that are left out.
    absent
        (n,) which rows are added.
    in_order
        Whether row i belongs to the record in place i.
    known
        Untouched columns whose values the adversary knows of every person.
    """

    original: Original
    published: PublishedTable
    absent: NDArray[np.bool_]
    in_order: bool
    known: tuple[str, ...]

    @classmethod
    def of(
        cls,
        original: Original,
        published: PublishedTable,
        manifest: Manifest,
        known: Collection[str],
    ) -> CompleteRelease | None:
        """Return the completed release; None if it shows what the original does not have.

        Parameters
        ----------
        original, published, manifest
            The release as it is read.
        known
            Columns whose values the adversary knows, quasi-identifiers or not.
        """
        n, names = original.n, tuple(published.untouched)
        columns = []
        for name in names:
            pair = paired_codes(original.untouched[name], published.untouched[name])
            columns.append(np.concatenate(pair))
        group = dense_rows(np.stack(columns, axis=1)) if columns else np.zeros(n + published.n)
        group = group.astype(np.int64)
        in_original, in_release = (
            np.bincount(part, minlength=group.max() + 1) for part in np.split(group, [n])
        )
        if (in_release > in_original).any():
            return None
        # Of records with equal values it does not matter which is left out.
        order = np.argsort(group[:n], kind="stable")
        place = np.arange(n) - np.searchsorted(group[:n][order], group[:n][order])
        left_out = order[place >= in_release[group[:n][order]]]
        stars = np.array([[len(cells) for cells in published.cells]], np.int32)
        untouched = {}
        for name, column in published.untouched.items():
            before, after = aligned(original.untouched[name], column)
            null = np.concatenate([column.null, original.untouched[name].null[left_out]])
            texts = np.concatenate([after, before[left_out]])
            untouched[name] = TextColumn(texts, null, column.nature)
        return cls(
            original,
            replace(
                published,
                cells=tuple((*cells, SUPPRESSED) for cells in published.cells),
                codes=np.concatenate([published.codes, stars.repeat(len(left_out), axis=0)]),
                untouched=untouched,
            ),
            np.arange(n) >= published.n,
            manifest.order == "kept" and not manifest.is_cover and not len(left_out),
            tuple(name for name in names if name in known),
        )

    def known_values(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (n,) codes of the values of records, and of rows, in an untouched column."""
        return paired_codes(self.original.untouched[name], self.published.untouched[name])

    def knowledge(self) -> NDArray[np.int64]:
        """Return (n,) numbers of the records, equal where the adversary knows the same of two."""
        known = [self.known_values(name)[0] for name in self.known]
        return dense_rows(np.column_stack([self.original.codes, *known]))

    def looks(self) -> NDArray[np.int64]:
        """Return (n,) numbers of the rows, equal where two show the same beside their cells."""
        columns = [distinct(column.texts)[1] for column in self.published.untouched.values()]
        place = np.arange(self.original.n) * self.in_order
        return dense_rows(np.stack([self.absent, place, *columns], axis=1))


class JoinedView:
    """The matches of record and row that several releases leave in one of them.

    Parameters
    ----------
    release
        Which one.
    people
        (n,) numbers of the records, equal where the adversary knows the same of two.
    """

    def __init__(self, release: CompleteRelease, people: NDArray[np.int64]) -> None:
        self.release = release
        self._graph = PublishedMatches(release.original, release.published, people, release.looks())
        self._person = people[self._graph.first_records]
        self._absent = release.absent[self._graph.first_rows]
        source, target = self._graph.rows_of(np.arange(len(self._person)))
        for name in release.known:
            before, after = release.known_values(name)
            fits = (
                before[self._graph.first_records][source] == after[self._graph.first_rows][target]
            )
            kept = fits | self._absent[target]
            source, target = source[kept], target[kept]
        self._source, self._target = source, target

    def keep_possible(self) -> bool:
        """Keep the matches that lie in an assignment of all records; False if there is none."""
        # Asked for that many, the part holds all matches from the start.
        part = GraphPart(
            _Matches(self._graph, self._source, self._target), len(self._graph.row_units)
        )
        if not part.assign():
            return False
        inside = part.effective_part()
        self._source, self._target = part.source[inside], part.target[inside]
        return True

    def keep_linked(self, other: JoinedView, names: Collection[str], *, by_place: bool) -> bool:
        """Keep in both the matches that have a counterpart in the other; True if some had none.

        Parameters
        ----------
        other
            View of another release.
        names
            Columns that both publish untouched: rows of one record agree on them.
        by_place
            Whether rows of one record have the same place.
        """
        both = self.release.published, other.release.published
        n = self.release.original.n
        columns = [np.tile(np.arange(n), 2)] if by_place else [np.zeros(2 * n, np.int64)]
        for name in names:
            pair = paired_codes(both[0].untouched[name], both[1].untouched[name])
            columns.append(np.concatenate(pair))
        link = dense_rows(np.stack(columns, axis=1))
        ours, theirs = self._keys(link[:n], 2 * n), other._keys(link[n:], 2 * n)
        kept, left = np.isin(ours, theirs), np.isin(theirs, ours)
        self._source, self._target = self._source[kept], self._target[kept]
        other._source, other._target = other._source[left], other._target[left]
        return not (kept.all() and left.all())

    def rows_of_records(self) -> NDArray[np.int64]:
        """Return (n,) how many published rows can be each record's."""
        units = np.where(self._absent, 0, self._graph.row_units)[self._target]
        counts = np.bincount(self._source, units, len(self._person)).astype(np.int64)
        return counts[self._graph.record_type]

    def _keys(self, link: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        """Return for each match a number of who it is about and what links its row."""
        return self._person[self._source] * width + link[self._graph.first_rows][self._target]


class _Matches:
    """Some matches of a graph, with its types of records and rows."""

    def __init__(
        self, graph: PublishedMatches, source: NDArray[np.int64], target: NDArray[np.int64]
    ) -> None:
        self.record_units, self.row_units = graph.record_units, graph.row_units
        self.first_records, self.first_rows = graph.first_records, graph.first_rows
        self._source, self._target = source, target

    def rows_of(self, records: NDArray[np.int64], limit: int | None = None) -> Pairs:
        """Return all matches of some types of records."""
        asked = np.isin(self._source, records)
        return self._source[asked], self._target[asked]

    def records_of(self, rows: NDArray[np.int64]) -> Pairs:
        """Return all matches of some types of rows."""
        asked = np.isin(self._target, rows)
        return self._source[asked], self._target[asked]
