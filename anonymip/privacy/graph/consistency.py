"""The consistency graph: the original records that each published row can be, by its cells alone.

An adversary who knows the quasi-identifiers of everybody joins them with the release; the pairs
that fit are the *matches*. Records with the same values and rows with the same cells are counted,
not listed, and the graph is never written down as a whole: bit tables answer which rows contain a
record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymip.errors import InputError
from anonymip.privacy.arrays import Codes, Flags, Floats, Ints
from anonymip.privacy.reading.cell_grammar import Cell
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable, dense_rows


@dataclass(frozen=True)
class GraphWork:
    """How much of the graph is looked at in a step: time and memory follow it, no answer does."""

    #: Columns with more values than this are looked up by buckets and checked exactly afterwards.
    buckets: int = 1024
    #: Classes, record types and comparisons of a column treated at once; bounds
    #: the memory of temporary tables.
    classes_at_once: int = 4096
    types_at_once: int = 256
    values_at_once: int = 1 << 22
    first_edges: int = 12  # rows per record in the first flow of a matching, the tightest ones
    #: Matches of each record type in the first part of the graph, times k ...
    first_matches: int = 4
    #: ... but so many at least; and how much wider the next part is, where a part falls short.
    fewest_matches: int = 64
    wider: int = 8
    #: A deficient set of rows is looked for among so many rows at most, one of records from so
    #: many.
    rows_visited: int = 256
    starts: int = 16
    #: Sets of records that are tried as those left out, where the release does not say which, and
    #: records of all these tables together.
    tried: int = 500
    tried_records: int = 100_000


WORK = GraphWork()
#: Two arrays of one length, such as the types of records and of rows that match.
Pairs = tuple[Ints, Ints]


def joined_pairs(parts: Iterable[Pairs]) -> Pairs:
    """Return the pairs of all parts, one after the other."""
    none = np.empty(0, np.int64)
    first, second = zip((none, none), *parts, strict=True)
    return np.concatenate(first), np.concatenate(second)


class Containment:
    """One column: which of its distinct cells contain which of its original values.

    `cells`: the distinct cells. `levels`: sorted distinct original values: float64, or object array
    of texts.

    A cell contains the levels from `first` to `last` (inclusive), or, if it is a set, the levels
    listed for it.
    """

    def __init__(self, cells: Sequence[Cell], levels: NDArray[np.generic]) -> None:
        self.level_count = len(levels)
        self.first = np.zeros(len(cells), np.int64)
        self.last = np.full(len(cells), -1, np.int64)
        rank = {value: place for place, value in enumerate(levels.tolist())}
        listed: list[tuple[int, int]] = []
        for code, cell in enumerate(cells):
            if cell.suppressed:
                self.last[code] = self.level_count - 1
            elif cell.is_range:
                self.first[code] = np.searchsorted(levels, cell.lower, "left")
                self.last[code] = np.searchsorted(levels, cell.upper, "right") - 1
            else:
                listed += [(code, rank[value]) for value in cell.members if value in rank]
        pairs = np.array(listed, np.int64).reshape(-1, 2)
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        self.listed_cells, self.listed_levels = pairs[order, 0], pairs[order, 1]
        self._keys = self.listed_cells * self.level_count + self.listed_levels

    @classmethod
    def of_equals(cls, count: int) -> Containment:
        """Return that of cells each of which contains the level of its own number alone."""
        equals = cls((), np.arange(count))
        equals.first = equals.last = np.arange(count)
        return equals

    def holds(self, level_codes: NDArray[np.integer], cell_codes: NDArray[np.integer]) -> Flags:
        """Return, pair by pair, whether the cell contains the value; arrays of equal shape."""
        levels, cells = level_codes.astype(np.int64), cell_codes.astype(np.int64)
        inside = (self.first[cells] <= levels) & (levels <= self.last[cells])
        if len(self._keys):
            wanted = cells * self.level_count + levels
            place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            inside |= self._keys[place] == wanted
        return np.asarray(inside, np.bool_)

    def log_share(self) -> Floats:
        """Return the logarithm of the share of the values that each cell contains."""
        counts = np.maximum(self.last - self.first + 1, 0)
        counts += np.bincount(self.listed_cells, minlength=len(counts))
        return np.asarray(np.log(np.maximum(counts, 0.5) / self.level_count), np.float64)

    def buckets(self) -> Ints:
        """Return the bucket of each level; a bucket holds neighbours, one if there are few."""
        ranks = np.arange(self.level_count)
        if self.level_count <= WORK.buckets:
            return ranks
        return ranks * WORK.buckets // self.level_count

    def bits(self, cell_codes: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Return (buckets, bytes): bit c of row b says whether cell c touches bucket b."""
        bucket = self.buckets()
        count = int(bucket[-1]) + 1
        parts = [
            np.packbits(self._touches(chunk, bucket, count), axis=1, bitorder="little")
            for begin in range(0, len(cell_codes), WORK.classes_at_once)
            for chunk in (cell_codes[begin : begin + WORK.classes_at_once],)
        ]
        table = np.concatenate(parts, axis=1)
        padding = -table.shape[1] % 8
        return np.ascontiguousarray(np.pad(table, ((0, 0), (0, padding))))

    def _touches(self, cells: NDArray[np.integer], bucket: Ints, count: int) -> Flags:
        first, last = self.first[cells], self.last[cells]
        filled = first <= last
        low = np.where(filled, bucket[np.minimum(first, len(bucket) - 1)], 0)
        high = np.where(filled, bucket[last], -1)
        places = np.arange(count)[:, None]
        touches = (low[None, :] <= places) & (places <= high[None, :])
        begin = np.searchsorted(self.listed_cells, cells, "left")
        sizes = np.searchsorted(self.listed_cells, cells, "right") - begin
        levels = self.listed_levels[np.repeat(begin, sizes) + places_in_runs(sizes)]
        touches[bucket[levels], np.repeat(np.arange(len(cells)), sizes)] = True
        return np.asarray(touches, np.bool_)


def containments_of(published: PublishedTable, original: Original) -> list[Containment]:
    """Return the containments of all quasi-identifiers of a release and its original."""
    return list(map(Containment, published.cells, original.levels))


class BitTable:
    """All columns of a group of classes: finds the classes that contain a record.

    `codes`: (c, m) cell codes of the classes. `containments`: one per column.

    A question costs O(c m / 64) word operations; memory is c bits per column and bucket.
    """

    def __init__(self, codes: Codes, containments: Sequence[Containment]) -> None:
        self.codes = codes
        self.containments = containments
        self._buckets = [containment.buckets() for containment in containments]
        self._bits = [
            containment.bits(codes[:, attribute]).view(np.uint64)
            for attribute, containment in enumerate(containments)
        ]
        # Words of the classes that touch each bucket of the first column: the first, and behind.
        filled = self._bits[0] != 0
        self._begin = filled.argmax(axis=1)
        self._end = filled.shape[1] - filled[:, ::-1].argmax(axis=1)
        # Columns whose buckets hold several values.
        self.coarse = [
            attribute
            for attribute, containment in enumerate(containments)
            if containment.level_count > WORK.buckets
        ]

    def first_containing(self, records: Codes, limit: int) -> Pairs:
        """Return pairs (record, class that contains it), up to about `limit` per record.

        `records`: (t, m) value codes. `limit`: the classes of the first `limit` words of 64 classes
        with a hit are examined, and at most `limit` of them returned.
        """
        return joined_pairs(
            self._first_of_block(records[begin : begin + WORK.types_at_once], begin, limit)
            for begin in range(0, len(records), WORK.types_at_once)
        )

    def _first_of_block(self, records: Codes, begin: int, limit: int) -> Pairs:
        bucket = self._buckets[0][records[:, 0]]
        words = slice(self._begin[bucket].min(), self._end[bucket].max())
        hits = self._bits[0][bucket, words]
        for attribute in range(1, len(self._bits)):
            hits &= self._bits[attribute][self._buckets[attribute][records[:, attribute]], words]
        # Flags are gone through much faster than words.
        record, word = np.divmod(np.flatnonzero(hits != 0), hits.shape[1])
        early = _place_in_run(record) < limit
        record, word = record[early], word[early]
        hit, classes = _set_bits(hits[record, word], word + words.start)
        record = record[hit]
        for attribute in self.coarse:
            inside = self.containments[attribute].holds(
                records[record, attribute], self.codes[classes, attribute]
            )
            record, classes = record[inside], classes[inside]
        early = _place_in_run(record) < limit
        return record[early] + begin, classes[early]


def _set_bits(words: NDArray[np.uint64], places: Ints) -> Pairs:
    """Return for each set bit the index of its word and its class, in order."""
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(octets, bitorder="little").view(np.bool_)
    word, bit = np.divmod(np.flatnonzero(bits), 64)
    return word, places[word] * 64 + bit


def _place_in_run(sorted_values: Ints) -> Ints:
    """Return 0, 1, 2, ... within each run of equal values."""
    places = np.arange(len(sorted_values))
    begins = np.ones(len(sorted_values), np.bool_)
    begins[1:] = sorted_values[1:] != sorted_values[:-1]
    return places - np.maximum.accumulate(np.where(begins, places, 0))


@dataclass(frozen=True, eq=False)
class MatchGraph:
    """A consistency graph that is given match by match.

    Raises InputError if the two do not describe a graph of n records and n rows.
    """

    #: (n + 1,) where the matches of each published row begin in `records`; the last entry ends it.
    start: Ints
    records: Ints  # original records that each row can be

    def __post_init__(self) -> None:
        start, records = np.asarray(self.start, np.int64), np.asarray(self.records, np.int64)
        n = len(start) - 1
        if n < 1 or start[0] != 0 or start[-1] != len(records) or (np.diff(start) < 0).any():
            raise InputError(
                "start does not cut the records into rows", remedy="Give n + 1 ascending places"
            )
        if len(records) and (records.min() < 0 or records.max() >= n):
            raise InputError("a row names no record", remedy=f"Give records from 0 to {n - 1}")
        order = np.lexsort((records, np.repeat(np.arange(n), np.diff(start))))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "records", records[order])
        if (np.diff(self.records * n + self.rows) == 0).any():
            raise InputError("a row names a record twice", remedy="Name each once")

    @classmethod
    def of(cls, rows: Sequence[ArrayLike]) -> MatchGraph:
        """Return the graph of which the records of each published row are given."""
        parts = [np.asarray(row, np.int64).ravel() for row in rows]
        sizes = [len(part) for part in parts]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(start, np.concatenate([np.empty(0, np.int64), *parts]))

    @property
    def n(self) -> int:
        """Number of records, and of rows."""
        return len(self.start) - 1

    @cached_property
    def rows(self) -> Ints:
        """(matches,) the published row of each entry of `records`."""
        return np.repeat(np.arange(self.n), np.diff(self.start))


class PublishedMatches:
    """The consistency graph of a release.

    `original, published`: tables of the same number of rows. `record_labels, row_labels`: (n,)
    numbers that records, or rows, of one type must share; None means no labels. `alike`: whether a
    row contains records of its own label alone; else labels do not matter for what contains what.

    Rows with narrow cells come first, so that limited answers name the tightest rows. A question
    for the rows of a record costs O(b m / 64) word operations, one for the records of a row
    O(a m) comparisons.
    """

    def __init__(
        self,
        original: Original,
        published: PublishedTable,
        record_labels: Ints | None = None,
        row_labels: Ints | None = None,
        *,
        alike: bool = False,
    ) -> None:
        self._containments = containments_of(published, original)
        record_codes, row_codes = original.codes, published.codes
        if alike and record_labels is not None and row_labels is not None:
            # The first column, so that types of one label lie side by side.
            equals = Containment.of_equals(int(record_labels.max()) + 1)
            self._containments.insert(0, equals)
            record_codes = np.column_stack([record_labels.astype(np.int32), record_codes])
            row_codes = np.column_stack([row_labels.astype(np.int32), row_codes])
            record_labels = row_labels = None
        self.record_type, self.first_records, self.record_units = types_of(
            record_codes, record_labels
        )
        row_type, first, units = types_of(row_codes, row_labels)
        # The logarithms of the shares of all records that the rows contain.
        cells = zip(self._containments, row_codes[first].T, strict=True)
        keys = [np.sum([one.log_share()[codes] for one, codes in cells], axis=0)]
        order = np.lexsort([*keys, row_codes[first, 0]] if alike else keys)
        self.row_type = np.argsort(order)[row_type]
        self.first_rows, self.row_units = first[order], units[order]
        self._record_codes = record_codes[self.first_records]
        self._row_codes = row_codes[self.first_rows]
        self._table = BitTable(self._row_codes, self._containments)

    def rows_of(self, records: Ints, limit: int | None = None) -> Pairs:
        """Return matches of some types of records, those with the tightest rows first."""
        most = len(self.row_units) if limit is None else limit
        source, target = self._table.first_containing(self._record_codes[records], most)
        if self._table.coarse and limit is not None:
            # Matches that only seemed to be some have used up the limit.
            few = np.bincount(source, minlength=len(records)) < limit
            rest, rows = self._table.first_containing(
                self._record_codes[records[few]], len(self.row_units)
            )
            rest = np.flatnonzero(few)[rest]
            early = _place_in_run(rest) < limit
            kept = ~few[source]
            source = np.concatenate([source[kept], rest[early]])
            target = np.concatenate([target[kept], rows[early]])
        return records[source], target

    def records_of(self, rows: Ints) -> Pairs:
        """Return all matches of some types of rows."""
        found: list[Pairs] = []
        columns = self._containments, self._record_codes.T, self._row_codes.T
        everyone = len(self._record_codes)
        at_once = max(1, WORK.values_at_once // everyone)
        for begin in range(0, len(rows), at_once):
            some = rows[begin : begin + at_once]
            source = np.tile(np.arange(everyone), len(some))
            target = np.repeat(some, everyone)
            for containment, records, cells in zip(*columns, strict=True):
                inside = containment.holds(records[source], cells[target])
                source, target = source[inside], target[inside]
            found.append((source, target))
        return joined_pairs(found)

    def graph(self) -> MatchGraph:
        """Return the graph match by match; for tables whose matches fit into memory."""
        source, target = self.rows_of(np.arange(len(self.record_units)))
        by_record = np.argsort(self.record_type, kind="stable")
        record_start = np.cumsum(self.record_units) - self.record_units
        order = np.argsort(target, kind="stable")
        source, type_sizes = source[order], np.bincount(target, minlength=len(self.row_units))
        type_start = np.cumsum(type_sizes) - type_sizes
        # First types of records of each row, then the records of each type.
        sizes = type_sizes[self.row_type]
        types = source[np.repeat(type_start[self.row_type], sizes) + places_in_runs(sizes)]
        units = self.record_units[types]
        records = by_record[np.repeat(record_start[types], units) + places_in_runs(units)]
        row = np.repeat(np.arange(len(self.row_type)), sizes)
        counts = np.bincount(row, weights=units, minlength=len(self.row_type)).astype(np.int64)
        return MatchGraph(np.concatenate([[0], np.cumsum(counts)]), records)


def types_of(codes: Codes, labels: Ints | None) -> tuple[Ints, Ints, Ints]:
    """Return the type of each row of codes; first row and number of rows of each type."""
    type_of = dense_rows(codes if labels is None else np.column_stack([codes, labels]))
    _, first, units = np.unique(type_of, return_index=True, return_counts=True)
    return type_of, first.astype(np.int64), units.astype(np.int64)


def places_in_runs(sizes: Ints) -> Ints:
    """Return 0, 1, ... within each of consecutive runs of the given sizes."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
