"""The vocabulary between what is asked and what is published: assignments and descriptions.

One file, since losses, recodings and releases share these few types and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymip.errors import InvalidAssignment
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.frozen import Frozen

SUPPRESSED = -1  # label of a record that is suppressed as a whole


def _marks(given: ArrayLike, what: str, mark: str) -> NDArray[np.integer]:
    """Return a vector of whole numbers, -1 for suppressed records; refuse anything else."""
    found = np.asarray(given)
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
        raise InvalidAssignment(None, f"{what}s are not a vector of integers")
    if len(found) and found.min() < SUPPRESSED:
        raise InvalidAssignment(
            int(found.argmin()), f"{what} below -1, the {mark} of suppressed records"
        )
    return found


@dataclass(frozen=True, eq=False)
class Classes(Frozen):
    """A partition of the records into equivalence classes.

    Parameters
    ----------
    labels
        (n,) integers, the class of each record; -1 for a suppressed record. Classes are
        renumbered in the order of their first records, so that equal partitions have equal labels.

    Raises
    ------
    InvalidAssignment
        If `labels` is not a vector of integers of at least -1.
    """

    labels: Codes

    def __post_init__(self) -> None:
        given = _marks(self.labels, "class label", "label")
        labels = np.full(len(given), SUPPRESSED, np.int32)
        kept = given != SUPPRESSED
        _, first, inverse = np.unique(given[kept], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int32)
        rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
        labels[kept] = rank[inverse.ravel()]
        labels.setflags(write=False)
        object.__setattr__(self, "labels", labels)

    @classmethod
    def from_groups(cls, groups: Iterable[ArrayLike], n: int) -> Classes:
        """Return the classes of the given groups of records; records in none are suppressed.

        Raises InvalidAssignment if a record is named twice or is not a record.
        """
        labels = np.full(n, SUPPRESSED, np.int64)
        for number, group in enumerate(groups):
            members = np.asarray(group).ravel()
            if members.size and not np.issubdtype(members.dtype, np.integer):
                raise InvalidAssignment(None, "a class names something else than records")
            for record in members:
                if not 0 <= record < n:
                    raise InvalidAssignment(int(record), f"not a record of a table of {n}")
                if labels[record] != SUPPRESSED:
                    raise InvalidAssignment(int(record), "belongs to two classes")
                labels[record] = number
        return cls(labels)  # type: ignore[arg-type]

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.labels)

    @cached_property
    def sizes(self) -> Ints:
        """(classes,) number of records of each class."""
        return np.bincount(self.labels[self.labels != SUPPRESSED])

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.sizes)

    @property
    def suppressed(self) -> int:
        """Number of suppressed records."""
        return int(np.count_nonzero(self.labels == SUPPRESSED))

    def groups(self) -> list[Ints]:
        """Return the records of each class, ascending."""
        order = np.argsort(self.labels, kind="stable")[self.suppressed :]
        return np.split(order, np.cumsum(self.sizes)[:-1]) if self.count else []

    def __repr__(self) -> str:
        return f"<Classes: {self.count} classes of {self.n} records, {self.suppressed} suppressed>"


@dataclass(frozen=True, eq=False)
class Cover(Frozen):
    """A set of original records for each published record; sets may overlap.

    Published record i is generalized until it covers its set. The sets are the edges of the
    generalization graph: original l *matches* published record i if l is in the set of i. The set
    of a suppressed record is empty.

    Parameters
    ----------
    start
        (n + 1,) int64, where the set of each record begins in `members`; the last entry ends it.
    members
        Original records of all sets, ascending within a set.

    Raises
    ------
    InvalidAssignment
        If `start` does not cut `members` into n sets, or a set names something else than records,
        or a record twice.
    """

    start: Ints
    members: Codes

    def __post_init__(self) -> None:
        start, given = np.asarray(self.start), np.asarray(self.members)
        if start.ndim != 1 or given.ndim != 1 or not len(start):
            raise InvalidAssignment(None, "start and members of a cover are not vectors")
        whole = [np.issubdtype(part.dtype, np.integer) or not part.size for part in (start, given)]
        if not all(whole):
            raise InvalidAssignment(None, "a cover names something else than records")
        if start[0] != 0 or start[-1] != len(given) or (np.diff(start) < 0).any():
            raise InvalidAssignment(None, "the sets of a cover do not follow each other")
        start = start.astype(np.int64)
        n = len(start) - 1
        owner = np.repeat(np.arange(n), np.diff(start))
        outside = (given < 0) | (given >= n)
        if outside.any():
            at = int(np.argmax(outside))
            raise InvalidAssignment(int(owner[at]), f"its set names no record of a table of {n}")
        members = given.astype(np.int32)
        if len(members) and ((np.diff(members) <= 0) & (np.diff(owner) == 0)).any():
            members = members[np.lexsort((members, owner))]
            twice = (np.diff(members) == 0) & (np.diff(owner) == 0)
            if twice.any():
                raise InvalidAssignment(
                    int(owner[np.argmax(twice)]), "its set names a record twice"
                )
        for name, array in (("start", start), ("members", members)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, matches: ArrayLike | Sequence[ArrayLike]) -> Cover:
        """Return the cover of the given matches.

        `matches`: for each published record the original records of its set: (n, k) integers, or a
        sequence of vectors. Raises InvalidAssignment if a set names something else than records, or
        a record twice.
        """
        if isinstance(matches, np.ndarray) and matches.ndim == 2:
            n, k = matches.shape
            return cls(np.arange(n + 1, dtype=np.int64) * k, matches.ravel())
        rows = [np.asarray(row).ravel() for row in matches]  # type: ignore[union-attr]
        start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        filled = [row for row in rows if row.size]
        return cls(start, np.concatenate(filled) if filled else np.empty(0, np.int32))

    @classmethod
    def joined(cls, n: int, pieces: Iterable[tuple[Ints, Cover]]) -> Cover:
        """Return the cover of n records that disjoint pieces are together.

        `n`: number of records; those of no piece have empty sets. `pieces`: records and their
        cover; record i of the cover is the i-th of them. Complexity: O(n + members).
        """
        pieces = list(pieces)
        sizes = np.zeros(n, np.int64)
        for records, cover in pieces:
            sizes[records] = cover.sizes
        start = np.concatenate([[0], np.cumsum(sizes)])
        members = np.empty(int(start[-1]), np.int32)
        for records, cover in pieces:
            own = np.repeat(start[records] - cover.start[:-1], cover.sizes)
            members[own + np.arange(len(cover.members))] = records[cover.members]
        return cls(start, members)

    @classmethod
    def of_classes(cls, classes: Classes) -> Cover:
        """Return the cover that publishes each record with its whole class.

        Raises InvalidAssignment if a record is suppressed.
        """
        if classes.suppressed:
            raise InvalidAssignment(
                int(np.argmax(classes.labels == SUPPRESSED)), "is suppressed, a cover has no such"
            )
        order = np.argsort(classes.labels, kind="stable")
        sizes = classes.sizes[classes.labels]
        first = (np.cumsum(classes.sizes) - classes.sizes)[classes.labels]
        start = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
        return cls(start, order[np.repeat(first, sizes) + within].astype(np.int32))

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.start) - 1

    @cached_property
    def sizes(self) -> Ints:
        """(n,) number of original records that each published record covers."""
        return np.diff(self.start)

    @cached_property
    def degrees(self) -> Ints:
        """(n,) number of published records that cover each original record."""
        return np.bincount(self.members, minlength=self.n)

    @cached_property
    def owners(self) -> Ints:
        """(edges,) published record of each entry of `members`."""
        return np.repeat(np.arange(self.n), self.sizes)

    @property
    def suppressed(self) -> int:
        """Number of suppressed records: those with an empty set."""
        return int(np.count_nonzero(self.sizes == 0))

    def without_suppressed(self) -> tuple[Ints, Cover]:
        """Return the records that are not suppressed, and their cover, numbered among them."""
        kept = np.flatnonzero(self.sizes)
        if len(kept) == self.n:
            return kept, self
        number = np.full(self.n, SUPPRESSED, np.int32)
        number[kept] = np.arange(len(kept))
        start = np.concatenate([[0], np.cumsum(self.sizes[kept])])
        return kept, Cover(start, number[self.members])

    def of_record(self, record: int) -> Codes:
        """Return the set of one published record, ascending."""
        return self.members[self.start[record] : self.start[record + 1]]

    @property
    def matches(self) -> Codes:
        """(n, k) sets as one array, ascending.

        Raises InvalidAssignment if the sets differ in size.
        """
        if len(np.unique(self.sizes)) > 1:
            record = int(np.argmax(self.sizes != self.sizes[0]))
            raise InvalidAssignment(
                record, f"covers {self.sizes[record]} records, another {self.sizes[0]}"
            )
        return self.members.reshape(self.n, -1)

    def __repr__(self) -> str:
        low, high = (self.sizes.min(), self.sizes.max()) if self.n else (0, 0)
        return f"<Cover: {self.n} records, sets of {low} to {high}>"


def by_size(start: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield sets of one size after the other, and (sets, size) places of their members.

    `start`: (all sets + 1,) where each begins, and the last one ends; empty ones are left out.
    """
    sizes = np.diff(start)
    for size in np.unique(sizes[sizes > 0]):
        sets = np.flatnonzero(sizes == size)
        yield sets, start[sets][:, None] + np.arange(size)


@dataclass(frozen=True, eq=False)
class Patterns(Frozen):
    """A pattern for each record: which of its cells are published, and which are stars.

    Parameters
    ----------
    index
        (n,) integers, row of the mask that each record is published with; -1 for a record that is
        suppressed as a whole and needs no companions.

    Raises
    ------
    InvalidAssignment
        If `index` is not a vector of integers of at least -1.
    """

    index: Codes

    def __post_init__(self) -> None:
        index = _marks(self.index, "pattern", "mark").astype(np.int32)
        index.setflags(write=False)
        object.__setattr__(self, "index", index)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.index)

    @property
    def suppressed(self) -> int:
        """Number of records suppressed as a whole, those under a pattern of stars not counted."""
        return int(np.count_nonzero(self.index == SUPPRESSED))

    def __repr__(self) -> str:
        used = len(np.unique(self.index[self.index != SUPPRESSED]))
        return f"<Patterns: {used} patterns for {self.n} records, {self.suppressed} suppressed>"


@dataclass(frozen=True, eq=False)
class Levels(Frozen):
    """One level of generalization for each attribute, and the records that are left out.

    Parameters
    ----------
    levels
        (m,) integers, 0 for exact values; an attribute without a hierarchy has level 1, a star.
    suppressed_records
        (n,) bool, records suppressed as a whole.

    Raises
    ------
    InvalidAssignment
        If the levels are not whole numbers of at least 0, or the records are not marked by a
        vector of truth values.
    """

    levels: Ints
    suppressed_records: Flags

    def __post_init__(self) -> None:
        given, left_out = np.asarray(self.levels), np.asarray(self.suppressed_records)
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer) or (given < 0).any():
            raise InvalidAssignment(None, "levels are not a vector of integers of at least 0")
        if left_out.ndim != 1 or left_out.dtype != np.bool_:
            raise InvalidAssignment(None, "suppressed records are not a vector of truth values")
        for name, array in (("levels", given.astype(np.int64)), ("suppressed_records", left_out)):
            kept = array.copy()
            kept.setflags(write=False)
            object.__setattr__(self, name, kept)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.suppressed_records)

    @property
    def suppressed(self) -> int:
        """Number of suppressed records."""
        return int(self.suppressed_records.sum())

    def __repr__(self) -> str:
        return f"<Levels: {self.levels.tolist()} of {self.n} records, {self.suppressed} suppressed>"


#: What a method returns; further recodings add their kinds here.
Assignment = Classes | Cover | Patterns | Levels


@dataclass(frozen=True, eq=False)
class CellSets:
    """A set of attribute values for each cell; equal sets share their place in one array.

    `start, stop`: (n, m) int64, where the cell's values stand in `codes`; empty if they are equal.
    `codes`: ranks in the attribute's levels, ascending within a cell.
    """

    start: Ints
    stop: Ints
    codes: Codes

    @property
    def count(self) -> Ints:
        """(n, m) number of values in each cell."""
        return self.stop - self.start

    def of(self, record: int, attribute: int) -> Codes:
        """Return the codes of one cell."""
        return self.codes[self.start[record, attribute] : self.stop[record, attribute]]


@dataclass(frozen=True, eq=False)
class Description:
    """What is published for each record. Losses, releases and reports read only this.

    Parameters
    ----------
    lower, upper
        (n, m) float64, ends of the published range; NaN where the attribute is not numeric.
    members
        The original values that each cell covers.
    nodes
        (n, m) int32, node of the hierarchy; -1 where the attribute has none.
    suppressed
        (n, m) bool, cells published as a star.
    """

    lower: Floats
    upper: Floats
    members: CellSets
    nodes: Codes
    suppressed: Flags
