"""Columns that a pricing found, with their costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PricedColumns:
    """Columns found, with their costs.

    Parameters
    ----------
    starts, types
        Members of the column c: types[starts[c]:starts[c + 1]] (int32), ascending; a type is
        repeated for each of its rows.
    costs, reduced
        (c,) costs by the objective's own function, and reduced costs.
    least
        Where only the best columns of each root were asked for: for each root that was asked for a
        lower bound on the reduced costs of its columns, no higher than `below` was. Minus infinity
        where the search did not get that far.
    complete
        Whether the search went through.
    nodes
        Partial sets that were looked at.
    """

    starts: NDArray[np.int64]
    types: NDArray[np.int32]
    costs: NDArray[np.float64]
    reduced: NDArray[np.float64]
    least: NDArray[np.float64]
    complete: bool
    nodes: int

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.costs)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(c,) int64, members of each column."""
        return np.diff(self.starts)


def dual_sums(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (c,) sums of parts, none of which is empty."""
    return np.add.reduceat(values, starts[:-1]) if len(starts) > 1 else np.empty(0)


def members_of(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the places of the members of some columns, one column behind the other.

    Parameters
    ----------
    starts, sizes
        Where the members of each column begin, and how many they are.
    columns
        Which columns.
    """
    lengths = sizes[columns]
    ends = np.cumsum(lengths)
    places: NDArray[np.int64] = np.repeat(starts[columns] - ends + lengths, lengths)
    return places + np.arange(len(places))
