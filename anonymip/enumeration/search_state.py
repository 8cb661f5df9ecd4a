"""What the search for sets of rows is given, its partial set, and the sets that it has found.

All are plain arrays, so that a compiled caller keeps them from call to call and allocates nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.growing_sets import GrowingSets, TermRows, new_growing_sets
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import DiversityRule, ValueCounts, new_counts
from anonymip.runtime.packed import Packed


class SearchRows(Packed):
    """Row types in the order of falling duals; where all duals are equal, in any order.

    Parameters
    ----------
    duals, copies
        (t,) dual of a row of each type, and how many rows it has.
    terms
        The rows, as the loss reads them.
    diversity
        What a set must hold of the sensitive columns; of the types.
    conflicts
        (t, t) types that never share a set; (0, 0) if all may.
    """

    duals: NDArray[np.float64]
    copies: NDArray[np.int64]
    terms: TermRows
    diversity: DiversityRule
    conflicts: NDArray[np.bool_]


class SearchRules(Packed):
    """Which sets are looked for.

    Parameters
    ----------
    smallest, largest
        Fewest and most rows of a set.
    pruned
        Whether the loss is monotone, so that partial sets can be cut off by it.
    summed
        Whether a set of t rows costs t times its record loss, or once.
    """

    smallest: int
    largest: int
    pruned: bool
    summed: bool


class SearchPath(Packed):
    """The partial set and what may follow; the first index is the number of its rows.

    Parameters
    ----------
    depth
        (2,) rows of the partial set; rows that it was given and keeps.
    nodes
        (1,) partial sets looked at.
    members
        (largest,) types of its rows.
    duals
        (largest + 1,) duals of its rows, summed.
    sets
        (largest + 1, ...) what it covers.
    used
        (t,) rows of each type.
    end, at
        (largest + 1,) what may follow, as part of `followers`: from the end of the one before to
        behind the last, and the next.
    top
        (largest + 1,) workspace: highest duals of what may follow, summed.
    counts
        Of the sensitive values, a level for each number of rows.
    """

    depth: NDArray[np.int64]
    nodes: NDArray[np.int64]
    members: NDArray[np.int64]
    duals: NDArray[np.float64]
    sets: GrowingSets
    used: NDArray[np.int64]
    end: NDArray[np.int64]
    at: NDArray[np.int64]
    top: NDArray[np.float64]
    counts: ValueCounts


class Followers(Packed):
    """What may follow each partial set of the path, one behind the other.

    Parameters
    ----------
    rows, losses
        Types, and the record loss of the partial set with each.
    """

    rows: NDArray[np.int64]
    losses: NDArray[np.float64]


class SetsFound(Packed):
    """The sets found.

    Parameters
    ----------
    held
        (2,) how many they are, and how many members they have together.
    sizes, losses
        (capacity,) rows of each, and its loss.
    members
        Their types, set by set, ascending.
    """

    held: NDArray[np.int64]
    sizes: NDArray[np.int64]
    losses: NDArray[np.float64]
    members: NDArray[np.int32]


def new_path(
    tables: LossTables, diversity: DiversityRule, types: int, largest: int, words: int
) -> SearchPath:
    """Return the workspace of searches.

    Parameters
    ----------
    tables, diversity
        Of the loss, and what a set must hold of the sensitive columns.
    types, largest
        Row types and rows of a set at most.
    words
        That hold the bits of all values of set attributes.
    """
    deep, whole = largest + 1, np.int64
    return SearchPath(
        np.zeros(2, whole),
        np.zeros(1, whole),
        np.zeros(largest, whole),
        np.zeros(deep),
        new_growing_sets(tables, deep, words),
        np.zeros(types, whole),
        np.zeros(deep, whole),
        np.zeros(deep, whole),
        np.zeros(deep),
        new_counts(diversity, deep),
    )


def new_followers(room: int) -> Followers:
    """Return memory for so many followers of all partial sets of a path."""
    return Followers(np.zeros(room, np.int64), np.zeros(room))


def new_sets_found(sets: int, members: int) -> SetsFound:
    """Return memory for so many sets with so many members together."""
    return SetsFound(
        np.zeros(2, np.int64),
        np.zeros(sets, np.int64),
        np.zeros(sets),
        np.zeros(members, np.int32),
    )
