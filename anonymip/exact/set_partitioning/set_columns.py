"""Columns as lists of row types, each multiset once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array


@dataclass(frozen=True, eq=False)
class Columns:
    """Multisets of row types with their costs.

    Parameters
    ----------
    starts
        (c + 1,) where the members of each column begin.
    types
        (members,) row types of the members, ascending within a column, repeated as often as they
        occur.
    costs
        (c,) what a release pays for each.
    """

    starts: NDArray[np.int64]
    types: NDArray[np.int32]
    costs: NDArray[np.float64]

    @classmethod
    def none(cls) -> Columns:
        """Return no columns."""
        return cls(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.costs)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(c,) members of each column."""
        return np.diff(self.starts)

    def of(self, column: int) -> NDArray[np.int32]:
        """Return the members of one column."""
        return self.types[self.starts[column] : self.starts[column + 1]]

    def only(self, kept: NDArray[np.bool_]) -> Columns:
        """Return some of the columns.

        Parameters
        ----------
        kept
            (c,) which ones.
        """
        sizes = self.sizes
        starts = np.concatenate([[0], np.cumsum(sizes[kept])])
        return Columns(starts, self.types[np.repeat(kept, sizes)], self.costs[kept])

    def and_also(self, others: Columns) -> Columns:
        """Return these columns and, behind them, others."""
        return Columns(
            np.concatenate([self.starts, self.starts[-1] + others.starts[1:]]),
            np.concatenate([self.types, others.types]),
            np.concatenate([self.costs, others.costs]),
        )

    def incidence(self, types: int) -> csc_array:
        """Return (types, c) how many rows of each type each column holds."""
        ones = np.ones(len(self.types))
        # What is repeated is summed up in place, in copies.
        parts = (ones, self.types.copy(), self.starts.copy())
        matrix = csc_array(parts, shape=(types, len(self)))
        matrix.sum_duplicates()
        return matrix

    def reduced_costs(self, duals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (c,) costs less the duals of the members."""
        if not len(self):
            return np.empty(0)
        return self.costs - np.add.reduceat(duals[self.types], self.starts[:-1])


class KnownColumns:
    """All columns that were ever added, each once."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._parts: list[Columns] = []
        self._all = Columns.none()

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._places)

    def add(self, columns: Columns) -> Columns:
        """Add what is not known yet and return it."""
        new = np.zeros(len(columns), np.bool_)
        for column in range(len(columns)):
            key = columns.of(column).tobytes()
            if key not in self._places:
                self._places[key] = len(self._places)
                new[column] = True
        added = columns.only(new)
        if len(added):
            self._parts.append(added)
        return added

    def place(self, members: NDArray[np.int32]) -> int | None:
        """Return which column has these members; None if it is not known."""
        return self._places.get(members.tobytes())

    def all(self) -> Columns:
        """Return all columns in the order in which they were added."""
        for part in self._parts:
            self._all = self._all.and_also(part)
        self._parts = []
        return self._all
