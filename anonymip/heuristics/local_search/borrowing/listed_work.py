"""Workspace in which the sets of a window's rows grow that may become classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.class_loss import KernelRows, pair_loss, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Most rows of a window, most types that can fill up its classes, and most sets listed.
MOST_ROWS, MOST_DONORS, MOST_PARTS = 16, 64, 16_384
#: The bit of the values that no row of the window has: one donor brings at most one of them.
_STRANGE = np.int64(1) << 62


class ListedWork(Packed):
    """Workspace of one window.

    Parameters
    ----------
    row_types
        (rows,) types of the rows: what is asked.
    donors, surplus_losses, spare, near
        (donors,) types that may fill up a class, what a copy loses in its own class, how many
        copies can leave that, and the rows that each may be put with, a bit each.
    values, bits, ranks
        (rows + donors, r), (.., s), (.., p) what classes are made of; a value of a set is a bit.
    bounds
        (rows,) what each row loses at least.
    highest
        (rows + 1, k) highest bounds of the rows from each on.
    pairs
        (rows, donors) loss of a row and a donor.
    low, high, held, counts, first, last, losses, far
        (depth, ...) the set that grows: ends, values, ranks, loss, and for each donor the largest
        loss of it with a row of the set.
    chosen
        (depth,) row that each step put into the set.
    begin, part, excess, filler
        (rows + 1,) and (parts,) sets listed by first row: the rows, the excess, and the donor.
    least, choice
        (subsets,) least excess of classes of these rows, and the last one of them.
    size, found
        (2,) numbers of rows and donors; (1,) parts listed.
    nodes
        (1,) sets looked at.
    """

    row_types: NDArray[np.int64]
    donors: NDArray[np.int64]
    surplus_losses: NDArray[np.float64]
    spare: NDArray[np.int64]
    near: NDArray[np.int64]
    values: NDArray[np.float64]
    bits: NDArray[np.int64]
    ranks: NDArray[np.int64]
    bounds: NDArray[np.float64]
    highest: NDArray[np.float64]
    pairs: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    held: NDArray[np.int64]
    counts: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    losses: NDArray[np.float64]
    far: NDArray[np.float64]
    chosen: NDArray[np.int64]
    begin: NDArray[np.int64]
    part: NDArray[np.int64]
    excess: NDArray[np.float64]
    filler: NDArray[np.int64]
    least: NDArray[np.float64]
    choice: NDArray[np.int64]
    size: NDArray[np.int64]
    nodes: NDArray[np.int64]


def new_listed_work(tables: LossTables, k: int) -> ListedWork:
    """Return the workspace of windows for classes of k rows."""
    ranges, sets, pairs = (
        len(tables.range_columns),
        len(tables.set_columns),
        len(tables.pair_columns),
    )
    both = MOST_ROWS + MOST_DONORS
    return ListedWork(
        np.zeros(MOST_ROWS, np.int64),
        np.zeros(MOST_DONORS, np.int64),
        np.zeros(MOST_DONORS),
        np.zeros(MOST_DONORS, np.int64),
        np.zeros(MOST_DONORS, np.int64),
        np.zeros((both, ranges)),
        np.zeros((both, sets), np.int64),
        np.zeros((both, pairs), np.int64),
        np.zeros(MOST_ROWS),
        np.zeros((MOST_ROWS + 1, k)),
        np.zeros((MOST_ROWS, MOST_DONORS)),
        np.zeros((MOST_ROWS, ranges)),
        np.zeros((MOST_ROWS, ranges)),
        np.zeros((MOST_ROWS, sets), np.int64),
        np.zeros((MOST_ROWS, sets), np.int64),
        np.zeros((MOST_ROWS, pairs), np.int64),
        np.zeros((MOST_ROWS, pairs), np.int64),
        np.zeros(MOST_ROWS),
        np.zeros((MOST_ROWS, MOST_DONORS)),
        np.zeros(MOST_ROWS, np.int64),
        np.zeros(MOST_ROWS + 1, np.int64),
        np.zeros(MOST_PARTS, np.int64),
        np.zeros(MOST_PARTS),
        np.zeros(MOST_PARTS, np.int64),
        np.zeros(1 << MOST_ROWS),
        np.zeros(1 << MOST_ROWS, np.int64),
        np.zeros(2, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def lay_out(tables: LossTables, rows: KernelRows, work: ListedWork) -> None:
    """Copy rows and donors side by side; the values that rows have in a set become bits."""
    count, donors = work.size[0], work.size[1]
    for at in range(count + donors):
        row_type = work.row_types[at] if at < count else work.donors[at - count]
        for r in range(work.values.shape[1]):
            work.values[at, r] = rows.range_values[row_type, r]
        for p in range(work.ranks.shape[1]):
            work.ranks[at, p] = rows.pair_codes[row_type, p]
        for s in range(work.bits.shape[1]):
            code = rows.set_codes[row_type, s]
            bit = _STRANGE if at >= count else np.int64(1) << at
            for before in range(min(at, count)):
                if rows.set_codes[work.row_types[before], s] == code:
                    bit = work.bits[before, s]
                    break
            work.bits[at, s] = bit
    for i in range(count):
        for d in range(donors):
            work.pairs[i, d] = pair_loss(tables, rows, work.row_types[i], work.donors[d])


@kernel
def find_bounds(tables: LossTables, rows: KernelRows, k: int, work: ListedWork) -> float:
    """Bound what each row loses: no less than with its k-th nearest row, or a donor."""
    count, donors = work.size[0], work.size[1]
    nearest = np.empty(k)
    total = 0.0
    work.highest[count, :] = -np.inf
    for i in range(count - 1, -1, -1):
        nearest[:] = np.inf
        for other in range(count):
            loss = pair_loss(tables, rows, work.row_types[i], work.row_types[other])
            at = k
            while at > 0 and nearest[at - 1] > loss:
                if at < k:
                    nearest[at] = nearest[at - 1]
                at -= 1
            if at < k:
                nearest[at] = loss
        bound = nearest[k - 1]
        for d in range(donors):
            bound = min(bound, work.pairs[i, d])
        work.bounds[i] = bound
        total += bound
        # The highest bounds from this row on: those of the next, this one among them.
        at = 0
        while at < k and work.highest[i + 1, at] >= bound:
            work.highest[i, at] = work.highest[i + 1, at]
            at += 1
        if at < k:
            work.highest[i, at] = bound
            for place in range(at + 1, k):
                work.highest[i, place] = work.highest[i + 1, place - 1]
    return total


@kernel
def put_row(tables: LossTables, work: ListedWork, depth: int, i: int) -> None:
    """Make the set of a depth: the one before and a row more; at depth 0 the row alone."""
    before, loss = depth - 1, tables.constant
    low, high, held, counts = work.low, work.high, work.held, work.counts
    first, last, far = work.first, work.last, work.far
    for r in range(low.shape[1]):
        value = work.values[i, r]
        low[depth, r] = value if depth == 0 else min(low[before, r], value)
        high[depth, r] = value if depth == 0 else max(high[before, r], value)
        loss += range_loss(tables, r, low[depth, r], high[depth, r])
    for s in range(held.shape[1]):
        bit = work.bits[i, s]
        known = held[before, s] if depth else np.int64(0)
        count = counts[before, s] if depth else np.int64(0)
        count += 0 if known & bit else 1
        held[depth, s] = known | bit
        counts[depth, s] = count
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(first.shape[1]):
        rank = work.ranks[i, p]
        first[depth, p] = rank if depth == 0 else min(first[before, p], rank)
        last[depth, p] = rank if depth == 0 else max(last[before, p], rank)
        at = tables.pair_start[p] + first[depth, p] * tables.pair_sizes[p] + last[depth, p]
        loss += tables.pair_losses[at]
    work.losses[depth] = loss
    pairs = work.pairs
    for d in range(work.size[1]):
        far[depth, d] = pairs[i, d] if depth == 0 else max(far[before, d], pairs[i, d])


@kernel
def loss_with_donor(tables: LossTables, work: ListedWork, depth: int, donor: int) -> float:
    """Return the record loss of the set of a depth with copies of a donor."""
    at = work.size[0] + donor
    loss = tables.constant
    for r in range(work.values.shape[1]):
        value = work.values[at, r]
        low, high = min(work.low[depth, r], value), max(work.high[depth, r], value)
        loss += range_loss(tables, r, low, high)
    for s in range(work.bits.shape[1]):
        count = work.counts[depth, s]
        if not work.held[depth, s] & work.bits[at, s]:
            count += 1
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(work.ranks.shape[1]):
        rank = work.ranks[at, p]
        first, last = min(work.first[depth, p], rank), max(work.last[depth, p], rank)
        loss += tables.pair_losses[tables.pair_start[p] + first * tables.pair_sizes[p] + last]
    return loss


@kernel
def members_of(subset: int) -> int:
    """Return how many rows a set has."""
    count = 0
    while subset:
        subset &= subset - 1
        count += 1
    return count
