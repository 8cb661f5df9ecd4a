"""Which published cells contain which original values, as predicates and as bit tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anonymip.privacy.reading.cells import Cell
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable

#: Columns with more values than this are looked up by buckets and checked exactly afterwards.
_BUCKETS = 1024
#: Classes and record types treated at once; bounds the memory of temporary tables.
_CLASSES_AT_ONCE = 4096
_TYPES_AT_ONCE = 256


class Containment:
    """One column: which of its distinct cells contain which of its original values.

    Parameters
    ----------
    cells
        The distinct cells.
    levels
        Sorted distinct original values: float64, or object array of texts.

    Notes
    -----
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

    def holds(
        self, level_codes: NDArray[np.integer], cell_codes: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Return, pair by pair, whether the cell contains the value; arrays of equal shape."""
        levels, cells = level_codes.astype(np.int64), cell_codes.astype(np.int64)
        inside = (self.first[cells] <= levels) & (levels <= self.last[cells])
        if len(self._keys):
            wanted = cells * self.level_count + levels
            place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            inside |= self._keys[place] == wanted
        return np.asarray(inside, np.bool_)

    def log_share(self) -> NDArray[np.float64]:
        """Return the logarithm of the share of the values that each cell contains."""
        counts = np.maximum(self.last - self.first + 1, 0)
        counts += np.bincount(self.listed_cells, minlength=len(counts))
        return np.asarray(np.log(np.maximum(counts, 0.5) / self.level_count), np.float64)

    def buckets(self) -> NDArray[np.int64]:
        """Return the bucket of each level; a bucket holds neighbours, one if there are few."""
        ranks = np.arange(self.level_count)
        if self.level_count <= _BUCKETS:
            return ranks
        return ranks * _BUCKETS // self.level_count

    def bits(self, cell_codes: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Return (buckets, bytes): bit c of row b says whether cell c touches bucket b."""
        bucket = self.buckets()
        count = int(bucket[-1]) + 1
        parts = [
            np.packbits(self._touches(chunk, bucket, count), axis=1, bitorder="little")
            for chunk in _chunks(cell_codes, _CLASSES_AT_ONCE)
        ]
        table = np.concatenate(parts, axis=1)
        padding = -table.shape[1] % 8
        return np.ascontiguousarray(np.pad(table, ((0, 0), (0, padding))))

    def _touches(
        self, cells: NDArray[np.integer], bucket: NDArray[np.int64], count: int
    ) -> NDArray[np.bool_]:
        first, last = self.first[cells], self.last[cells]
        filled = first <= last
        low = np.where(filled, bucket[np.minimum(first, len(bucket) - 1)], 0)
        high = np.where(filled, bucket[last], -1)
        places = np.arange(count)[:, None]
        touches = (low[None, :] <= places) & (places <= high[None, :])
        begin = np.searchsorted(self.listed_cells, cells, "left")
        sizes = np.searchsorted(self.listed_cells, cells, "right") - begin
        steps = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        levels = self.listed_levels[np.repeat(begin, sizes) + steps]
        touches[bucket[levels], np.repeat(np.arange(len(cells)), sizes)] = True
        return np.asarray(touches, np.bool_)


def containments_of(published: PublishedTable, original: Original) -> list[Containment]:
    """Return the containments of all quasi-identifiers of a release and its original."""
    return [
        Containment(cells, levels)
        for cells, levels in zip(published.cells, original.levels, strict=True)
    ]


class BitTable:
    """All columns of a group of classes: finds the classes that contain a record.

    Parameters
    ----------
    codes
        (c, m) cell codes of the classes.
    containments
        One per column.

    Notes
    -----
    A question costs O(c m / 64) word operations; memory is c bits per column and bucket.
    """

    def __init__(self, codes: NDArray[np.int32], containments: Sequence[Containment]) -> None:
        self.codes = codes
        self.containments = containments
        self._buckets = [containment.buckets() for containment in containments]
        self._bits = [
            containment.bits(codes[:, attribute]).view(np.uint64)
            for attribute, containment in enumerate(containments)
        ]
        self._coarse = [
            attribute
            for attribute, containment in enumerate(containments)
            if containment.level_count > _BUCKETS
        ]

    def all_classes(self) -> NDArray[np.uint64]:
        """Return a mask of all classes."""
        return np.full(self._bits[0].shape[1], ~np.uint64(0))

    def remove(self, mask: NDArray[np.uint64], classes: NDArray[np.int64]) -> None:
        """Take classes out of a mask, in place."""
        bits = np.left_shift(np.uint64(1), (classes % 64).astype(np.uint64))
        np.bitwise_and.at(mask, classes // 64, ~bits)

    def containing(self, record: NDArray[np.int32], mask: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the classes of a mask that contain a record (m,), ascending."""
        hits = mask.copy()
        for attribute, bits in enumerate(self._bits):
            hits &= bits[self._buckets[attribute][record[attribute]]]
        words = np.flatnonzero(hits)
        _, classes = _set_bits(hits[words], words)
        inside = self._exactly(np.broadcast_to(record, (len(classes), len(record))), classes)
        return classes[inside]

    def first_containing(
        self, records: NDArray[np.int32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs (record, class that contains it), up to about `limit` per record.

        Parameters
        ----------
        records
            (t, m) value codes.
        limit
            The classes of the first `limit` words of 64 classes with a hit are examined, and at
            most `limit` of them returned.
        """
        found = [
            self._first_of_block(records[begin : begin + _TYPES_AT_ONCE], begin, limit)
            for begin in range(0, len(records), _TYPES_AT_ONCE)
        ]
        return np.concatenate([part[0] for part in found]), np.concatenate(
            [part[1] for part in found]
        )

    def _first_of_block(
        self, records: NDArray[np.int32], begin: int, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        hits = self._bits[0][self._buckets[0][records[:, 0]]]
        for attribute in range(1, len(self._bits)):
            hits &= self._bits[attribute][self._buckets[attribute][records[:, attribute]]]
        record, word = np.nonzero(hits)
        early = _place_in_run(record) < limit
        record, word = record[early], word[early]
        hit, classes = _set_bits(hits[record, word], word)
        record = record[hit]
        inside = self._exactly(records[record], classes)
        record, classes = record[inside], classes[inside]
        early = _place_in_run(record) < limit
        return record[early] + begin, classes[early]

    def _exactly(self, records: NDArray[np.int32], classes: NDArray[np.int64]) -> NDArray[np.bool_]:
        inside = np.ones(len(classes), np.bool_)
        for attribute in self._coarse:
            inside &= self.containments[attribute].holds(
                records[:, attribute], self.codes[classes, attribute]
            )
        return inside


def _chunks(codes: NDArray[np.integer], size: int) -> list[NDArray[np.integer]]:
    return [codes[begin : begin + size] for begin in range(0, len(codes), size)]


def _set_bits(
    words: NDArray[np.uint64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each set bit the index of its word and its class, in order."""
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 8)
    word, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    return word, places[word] * 64 + bit


def _place_in_run(sorted_values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, 2, ... within each run of equal values."""
    starts = np.searchsorted(sorted_values, sorted_values, "left")
    return np.arange(len(sorted_values)) - starts
