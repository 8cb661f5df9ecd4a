"""Classes that grow row by row while the rows of a few classes are regrouped, and the workspace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.pool import PoolRules
from anonymip.objectives.kernels.class_loss import KernelRows, pair_loss, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import ValueCounts, new_counts
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Rows at most: a word holds a bit for each of the values of a set.
MOST_ROWS = 60


class Grown(Packed):
    """Classes while they grow, one a line.

    Parameters
    ----------
    low, high
        (c, r) ends of the ranges.
    bits
        (c, s) values of the sets, a bit each.
    first, last
        (c, p) ranks of the range ends.
    joined
        (c, rows) record loss of the class with a row more.
    losses, sizes
        (c,) record loss, and number of rows.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    bits: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    joined: NDArray[np.float64]
    losses: NDArray[np.float64]
    sizes: NDArray[np.int64]


class RegroupWork(Packed):
    """Workspace for up to so many rows.

    Parameters
    ----------
    row_types
        (rows,) types of the rows: what is asked.
    found
        (rows,) class of each row in the best release found: the answer.
    labels
        (rows,) class of each row so far; -1 for none.
    values, bits, ranks
        (rows, r), (rows, s), (rows, p) what the classes are made of; each value of a set is a bit.
    least, low
        (rows,) bounds on the record loss of each row: of the rows alone, and of the classes so far.
    nearest
        (k,) losses of the pairs of a row with the nearest ones.
    grown
        Classes while they grow.
    saved
        The class that each step changed, as it was.
    opened
        (rows + 1,) classes opened before each step.
    chosen
        (rows,) row that each step places.
    options, bounds
        (rows, classes) classes that it can be placed in, and bounds on what is lost then.
    listed, tried
        (rows,) how many these are, and how many have been tried.
    counts
        Of the sensitive values of a class.
    nodes
        (1,) steps taken.
    """

    row_types: NDArray[np.int64]
    found: NDArray[np.int64]
    labels: NDArray[np.int64]
    values: NDArray[np.float64]
    bits: NDArray[np.int64]
    ranks: NDArray[np.int64]
    least: NDArray[np.float64]
    low: NDArray[np.float64]
    nearest: NDArray[np.float64]
    grown: Grown
    saved: Grown
    opened: NDArray[np.int64]
    chosen: NDArray[np.int64]
    options: NDArray[np.int64]
    bounds: NDArray[np.float64]
    listed: NDArray[np.int64]
    tried: NDArray[np.int64]
    counts: ValueCounts
    nodes: NDArray[np.int64]


def _new_grown(tables: LossTables, count: int, rows: int) -> Grown:
    ranges, sets, pairs = (
        len(tables.range_columns),
        len(tables.set_columns),
        len(tables.pair_columns),
    )
    return Grown(
        np.zeros((count, ranges)),
        np.zeros((count, ranges)),
        np.zeros((count, sets), np.int64),
        np.zeros((count, pairs), np.int64),
        np.zeros((count, pairs), np.int64),
        np.zeros((count, rows)),
        np.zeros(count),
        np.zeros(count, np.int64),
    )


def new_regroup_work(tables: LossTables, rules: PoolRules, rows: int) -> RegroupWork:
    """Return the workspace for up to so many rows, which are no more than MOST_ROWS."""
    if rows > MOST_ROWS:
        raise ValueError(f"{rows} rows are more than the {MOST_ROWS} that fit")
    classes = rows // rules.k + 1
    return RegroupWork(
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        np.zeros((rows, len(tables.range_columns))),
        np.zeros((rows, len(tables.set_columns)), np.int64),
        np.zeros((rows, len(tables.pair_columns)), np.int64),
        np.zeros(rows),
        np.zeros(rows),
        np.zeros(rules.k),
        _new_grown(tables, classes, rows),
        _new_grown(tables, rows, rows),
        np.zeros(rows + 1, np.int64),
        np.zeros(rows, np.int64),
        np.zeros((rows, classes), np.int64),
        np.zeros((rows, classes)),
        np.zeros(rows, np.int64),
        np.zeros(rows, np.int64),
        new_counts(rules.diversity),
        np.zeros(1, np.int64),
    )


@kernel
def lay_out(rows: KernelRows, work: RegroupWork, size: int) -> None:
    """Copy the rows side by side; the values of a set become bits."""
    for i in range(size):
        row_type = work.row_types[i]
        work.labels[i] = -1
        for r in range(work.values.shape[1]):
            work.values[i, r] = rows.range_values[row_type, r]
        for p in range(work.ranks.shape[1]):
            work.ranks[i, p] = rows.pair_codes[row_type, p]
        for s in range(work.bits.shape[1]):
            used = np.int64(0)
            bit = np.int64(0)
            for before in range(i):
                used |= work.bits[before, s]
                if rows.set_codes[work.row_types[before], s] == rows.set_codes[row_type, s]:
                    bit = work.bits[before, s]
                    break
            work.bits[i, s] = bit if bit else used + 1


@kernel
def _loss_with(tables: LossTables, work: RegroupWork, c: int, i: int) -> float:
    """Return the record loss of a class with a row more; of an empty class, of the row alone."""
    grown = work.grown
    empty = grown.sizes[c] == 0
    loss = tables.constant
    for r in range(work.values.shape[1]):
        value = work.values[i, r]
        low = value if empty else min(grown.low[c, r], value)
        high = value if empty else max(grown.high[c, r], value)
        loss += range_loss(tables, r, low, high)
    for s in range(work.bits.shape[1]):
        bits = work.bits[i, s]
        if not empty:
            bits |= grown.bits[c, s]
        count = 0
        while bits:
            bits &= bits - 1
            count += 1
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(work.ranks.shape[1]):
        rank = work.ranks[i, p]
        first = rank if empty else min(grown.first[c, p], rank)
        last = rank if empty else max(grown.last[c, p], rank)
        loss += tables.pair_losses[tables.pair_start[p] + first * tables.pair_sizes[p] + last]
    return loss


@kernel
def find_least(
    tables: LossTables, rows: KernelRows, rules: PoolRules, work: RegroupWork, size: int
) -> None:
    """Bound what each row loses: no less than with the k-th nearest row, itself counted."""
    nearest = work.nearest
    for i in range(size):
        for other in range(size):
            loss = pair_loss(tables, rows, work.row_types[i], work.row_types[other])
            if other >= rules.k and loss >= nearest[rules.k - 1]:
                continue
            at = min(other, rules.k - 1)
            while at > 0 and nearest[at - 1] > loss:
                nearest[at] = nearest[at - 1]
                at -= 1
            nearest[at] = loss
        work.least[i] = nearest[rules.k - 1]


@kernel
def copy_class(to: Grown, at: int, of: Grown, c: int, size: int) -> None:
    """Copy a class of `of`, with its losses for each of `size` rows more, to a place of `to`."""
    for r in range(to.low.shape[1]):
        to.low[at, r] = of.low[c, r]
        to.high[at, r] = of.high[c, r]
    for s in range(to.bits.shape[1]):
        to.bits[at, s] = of.bits[c, s]
    for p in range(to.first.shape[1]):
        to.first[at, p] = of.first[c, p]
        to.last[at, p] = of.last[c, p]
    for i in range(size):
        to.joined[at, i] = of.joined[c, i]
    to.losses[at] = of.losses[c]
    to.sizes[at] = of.sizes[c]


@kernel
def place_row(tables: LossTables, work: RegroupWork, size: int, c: int, i: int) -> None:
    """Put a row into a class."""
    grown = work.grown
    if grown.sizes[c] == 0:
        grown.losses[c] = _loss_with(tables, work, c, i)
        grown.low[c] = work.values[i]
        grown.high[c] = work.values[i]
        grown.bits[c] = work.bits[i]
        grown.first[c] = work.ranks[i]
        grown.last[c] = work.ranks[i]
    else:
        grown.losses[c] = grown.joined[c, i]
        for r in range(work.values.shape[1]):
            grown.low[c, r] = min(grown.low[c, r], work.values[i, r])
            grown.high[c, r] = max(grown.high[c, r], work.values[i, r])
        for s in range(work.bits.shape[1]):
            grown.bits[c, s] |= work.bits[i, s]
        for p in range(work.ranks.shape[1]):
            grown.first[c, p] = min(grown.first[c, p], work.ranks[i, p])
            grown.last[c, p] = max(grown.last[c, p], work.ranks[i, p])
    grown.sizes[c] += 1
    work.labels[i] = c
    for other in range(size):
        if work.labels[other] < 0:
            grown.joined[c, other] = _loss_with(tables, work, c, other)
