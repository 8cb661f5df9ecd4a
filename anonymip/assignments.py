"""The vocabulary between what is asked and what is published: assignments and descriptions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymip.errors import InvalidAssignment

#: Label of a record that is suppressed as a whole.
SUPPRESSED = -1


@dataclass(frozen=True, eq=False)
class Classes:
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

    labels: NDArray[np.int32]

    def __post_init__(self) -> None:
        given = np.asarray(self.labels)
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
            raise InvalidAssignment(None, "class labels are not a vector of integers")
        if len(given) and given.min() < SUPPRESSED:
            raise InvalidAssignment(
                int(given.argmin()), "class label below -1, the label of suppressed records"
            )
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

        Raises
        ------
        InvalidAssignment
            If a record is named twice or is not a record.
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
    def sizes(self) -> NDArray[np.int64]:
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

    def groups(self) -> list[NDArray[np.int64]]:
        """Return the records of each class, ascending."""
        order = np.argsort(self.labels, kind="stable")[self.suppressed :]
        return np.split(order, np.cumsum(self.sizes)[:-1]) if self.count else []

    def __repr__(self) -> str:
        return f"<Classes: {self.count} classes of {self.n} records, {self.suppressed} suppressed>"


#: What a method returns; further recodings add their kinds here.
Assignment = Classes


@dataclass(frozen=True, eq=False)
class CellSets:
    """A set of attribute values for each cell; equal sets share their place in one array.

    Parameters
    ----------
    start, stop
        (n, m) int64, where the cell's values stand in `codes`; empty if they are equal.
    codes
        Ranks in the attribute's levels, ascending within a cell.
    """

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    codes: NDArray[np.int32]

    @property
    def count(self) -> NDArray[np.int64]:
        """(n, m) number of values in each cell."""
        return self.stop - self.start

    def of(self, record: int, attribute: int) -> NDArray[np.int32]:
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

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    members: CellSets
    nodes: NDArray[np.int32]
    suppressed: NDArray[np.bool_]
