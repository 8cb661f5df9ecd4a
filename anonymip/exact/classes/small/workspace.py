"""What the solver of small sub-problems is given, and the workspace that it writes over.

Every array is made once, for the largest sub-problem; a call allocates nothing.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.exact_cover import (
    CoverSearch,
    FoundSets,
    Packing,
    new_cover,
    new_packing,
)
from anonymip.objectives.kernels.class_loss import ClassState, new_state
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import DiversityRule, ValueCounts, new_counts
from anonymip.runtime.packed import Packed

#: Sets that are listed at most.
_MOST_SETS = 1 << 17
#: Sets of k rows in the linear relaxation at most.
_MOST_ROW_SETS = 1 << 18


class SmallRules(Packed):
    """What classes must keep and what counts.

    Parameters
    ----------
    k
        Fewest rows of a class.
    summed
        Whether the losses of the records are summed; else the largest counts.
    diversity
        What a class must hold of the sensitive columns; of all rows.
    """

    k: int
    summed: bool
    diversity: DiversityRule


class TypeRows(Packed):
    """The row types of a sub-problem, highest duals first, as the search reads them.

    Parameters
    ----------
    rank
        (most,) types in the order in which they were merged, highest duals first.
    duals
        (most,) dual of a row of each type.
    values
        (most, r) as in :class:`~anonymip.objectives.kernels.class_loss.KernelRows`.
    set_bits
        (most, s) bit of the value, among those that occur in the sub-problem.
    pair_codes
        (most, p) as there.
    diversity
        What a class must hold of the sensitive columns; of the types.
    """

    rank: NDArray[np.int64]
    duals: NDArray[np.float64]
    values: NDArray[np.float64]
    set_bits: NDArray[np.int64]
    pair_codes: NDArray[np.int64]
    diversity: DiversityRule


class SetSearch(Packed):
    """The partial set of the search and what may follow; the first index is the number of its rows.

    Parameters
    ----------
    members
        (most + 1,) types of its rows.
    dual_sum, packed
        (most + 1,) duals summed; counts of its types in one word.
    low, high, pair_low, pair_high
        (most + 1, r) and (most + 1, p) ends of the description.
    held, set_counts
        (most + 1, s) bits of the values in each set, and how many there are.
    used
        (most,) rows of each type.
    followers, losses
        (most + 1, most) types that may follow, and the record loss of the partial set with each.
    end, at
        (most + 1,) how many may follow, and which is next.
    top
        (most + 1,) highest duals of what may follow, summed.
    counts
        Of the sensitive values, a level for each number of rows.
    """

    members: NDArray[np.int64]
    dual_sum: NDArray[np.float64]
    packed: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    pair_low: NDArray[np.int64]
    pair_high: NDArray[np.int64]
    held: NDArray[np.int64]
    set_counts: NDArray[np.int64]
    used: NDArray[np.int64]
    followers: NDArray[np.int64]
    losses: NDArray[np.float64]
    end: NDArray[np.int64]
    at: NDArray[np.int64]
    top: NDArray[np.float64]
    counts: ValueCounts


class RowSets(Packed):
    """All sets of k rows, those together that differ in the last row only.

    Parameters
    ----------
    shared
        (capacity, k - 1) types of the rows before the last one, ascending.
    begin
        (capacity + 1,) where the sets begin that share them.
    last, costs
        (capacity,) type of the last row, and loss of the set.
    held
        (1,) how many are shared.
    """

    shared: NDArray[np.int64]
    begin: NDArray[np.int64]
    last: NDArray[np.int64]
    costs: NDArray[np.float64]
    held: NDArray[np.int64]


class Simplex(Packed):
    """A basis of the linear relaxation over the sets of k rows.

    Parameters
    ----------
    inverse
        (most, most) of the basis matrix.
    amounts
        (most,) values of the basic columns.
    duals
        (most,) duals of the types.
    column
        (most,) the entering column in terms of the basis.
    """

    inverse: NDArray[np.float64]
    amounts: NDArray[np.float64]
    duals: NDArray[np.float64]
    column: NDArray[np.float64]


class SmallWork(Packed):
    """Workspace for sub-problems of up to a number of rows, written over by every call.

    Parameters
    ----------
    labels
        (most,) class of each row of the sub-problem, in the order in which they were given.
    result
        (2,) loss and lower bound.
    nodes
        (1,) partial sets and partial covers looked at.
    order
        (most,) places in the sub-problem, rows that are alike behind each other.
    begin
        (most + 1,) where each type begins in it.
    duals
        (most,) for each type, the dual of a row of it: summed over the rows of any class no more
        than its loss, or where the largest loss counts, what a record loses at least.
    cut_loss, cut_begin
        (most + 1,) least loss of a cut of the rows up to a place, and where its last class begins.
    nearest
        (most,) losses with the nearest rows.
    least
        (most,) for each ranked type, the least known loss of a class with it.
    class_size, class_loss
        (most,) rows of each class, and the loss of one of them.
    members
        (most, most) places of the rows of each class.
    scratch
        (most + 1,) for a moment.
    counts
        Of the sensitive values of a class.
    state
        One class.
    packing, types, search, found, cover
        Of the search.
    row_sets, simplex
        Of the linear relaxation.
    """

    labels: NDArray[np.int64]
    result: NDArray[np.float64]
    nodes: NDArray[np.int64]
    order: NDArray[np.int64]
    begin: NDArray[np.int64]
    duals: NDArray[np.float64]
    cut_loss: NDArray[np.float64]
    cut_begin: NDArray[np.int64]
    nearest: NDArray[np.float64]
    least: NDArray[np.float64]
    class_size: NDArray[np.int64]
    class_loss: NDArray[np.float64]
    members: NDArray[np.int64]
    scratch: NDArray[np.int64]
    counts: ValueCounts
    state: ClassState
    packing: Packing
    types: TypeRows
    search: SetSearch
    found: FoundSets
    cover: CoverSearch
    row_sets: RowSets
    simplex: Simplex


def new_small_work(tables: LossTables, rules: SmallRules, most: int) -> SmallWork:
    """Return the workspace of sub-problems of up to `most` rows."""
    ranges, sets, pairs = (
        len(tables.range_columns),
        len(tables.set_columns),
        len(tables.pair_columns),
    )
    deep, whole = most + 1, np.int64
    largest = most if rules.diversity.values.shape[1] else min(most, 2 * rules.k - 1)
    possible = sum(comb(most, size) for size in range(rules.k, largest + 1))
    capacity = min(_MOST_SETS, max(possible, 1))
    return SmallWork(
        np.zeros(most, whole),
        np.zeros(2),
        np.zeros(1, whole),
        np.zeros(most, whole),
        np.zeros(deep, whole),
        np.zeros(most),
        np.zeros(deep),
        np.zeros(deep, whole),
        np.zeros(max(most, rules.k)),
        np.zeros(most),
        np.zeros(most, whole),
        np.zeros(most),
        np.zeros((most, most), whole),
        np.zeros(deep, whole),
        new_counts(rules.diversity),
        new_state(tables, 1),
        new_packing(most),
        TypeRows(
            np.zeros(most, whole),
            np.zeros(most),
            np.zeros((most, ranges)),
            np.zeros((most, sets), whole),
            np.zeros((most, pairs), whole),
            rules.diversity.of_rows(np.zeros(most, whole)),
        ),
        SetSearch(
            np.zeros(deep, whole),
            np.zeros(deep),
            np.zeros(deep, whole),
            np.zeros((deep, ranges)),
            np.zeros((deep, ranges)),
            np.zeros((deep, pairs), whole),
            np.zeros((deep, pairs), whole),
            np.zeros((deep, sets), whole),
            np.zeros((deep, sets), whole),
            np.zeros(most, whole),
            np.zeros((deep, most), whole),
            np.zeros((deep, most)),
            np.zeros(deep, whole),
            np.zeros(deep, whole),
            np.zeros(deep),
            new_counts(rules.diversity, deep),
        ),
        FoundSets(
            np.zeros(capacity, whole),
            np.zeros(capacity),
            np.zeros(deep, whole),
            np.zeros(1, whole),
        ),
        new_cover(most),
        _new_row_sets(most, rules.k),
        Simplex(np.zeros((most, most)), np.zeros(most), np.zeros(most), np.zeros(most)),
    )


def _new_row_sets(most: int, k: int) -> RowSets:
    """Return the workspace of the sets of k out of `most` rows, or of as many as are listed."""
    capacity = min(comb(most, k), _MOST_ROW_SETS)
    shared = min(comb(most, k - 1), _MOST_ROW_SETS)
    return RowSets(
        np.zeros((shared, k - 1), np.int64),
        np.zeros(shared + 1, np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros(1, np.int64),
    )
