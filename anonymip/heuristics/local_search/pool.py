"""Classes under improvement: how many copies of each row type every class holds.

Identical rows need no distinguishing, and a class of thousands of copies of one row is one entry.
What a class loses when a copy leaves it or joins it is read off a view of the class in time that
does not grow with its size.

One file, since each kernel leaves all arrays of the pool true for the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.class_loss import KernelRows, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    forget_row,
    new_counts,
    start_counts,
)
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Places of `ClassPool.cursor`: class numbers in use, the first free entry, the clock of changes,
#: copies without a class, classes freed.
CLASSES, FREE_ENTRY, CLOCK, SUPPRESSED_COPIES, FREED = 0, 1, 2, 3, 4


class PoolRules(Packed):
    """What classes must keep and what counts.

    Parameters
    ----------
    k
        Fewest rows of a class.
    summed
        Whether the losses of the records are summed; else the largest counts.
    monotone
        Whether a row can only raise the record loss of the class that it joins.
    borrows
        Whether classes borrow copies that their own class can spare: a monotone loss, no diversity.
    suppression_price
        Loss of a suppressed record; infinite where none may be.
    diversity
        What classes must hold of the sensitive columns; its rows are the types.
    """

    k: int
    summed: bool
    monotone: bool
    borrows: bool
    suppression_price: float
    diversity: DiversityRule


class ClassPool(Packed):
    """The classes, each a list of entries: a type and how many copies of it.

    Parameters
    ----------
    types, copies, following
        (entries,) type, copies, and the next entry of the class; -1 ends a list.
    head, sizes, losses
        (classes,) first entry, number of rows, record loss. Size 0: a number to be used again.
    changed
        (classes,) clock of the last change.
    surplus
        (t,) class that holds copies of the type and nothing else; -1 if there is none.
    suppressed
        (t,) copies without a class.
    freed
        (classes,) numbers to be used again.
    cursor
        (5,) see the constants above.
    """

    types: NDArray[np.int64]
    copies: NDArray[np.int64]
    following: NDArray[np.int64]
    head: NDArray[np.int64]
    sizes: NDArray[np.int64]
    losses: NDArray[np.float64]
    changed: NDArray[np.int64]
    surplus: NDArray[np.int64]
    suppressed: NDArray[np.int64]
    freed: NDArray[np.int64]
    cursor: NDArray[np.int64]


class ClassView(Packed):
    """One class laid open: what is published of it if one copy leaves, one joins, or both.

    Parameters
    ----------
    types, copies
        (entries,) what it holds.
    totals
        (2,) number of entries, of rows.
    low, high, pair_low, pair_high
        (r, 2) and (p, 2) the two lowest and the two highest values, each row counted.
    held, set_start
        Rows that hold each level of the set attributes, and where each attribute begins.
    distinct
        (s,) values in each set.
    counts
        Of the sensitive values.
    """

    types: NDArray[np.int64]
    copies: NDArray[np.int64]
    totals: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    pair_low: NDArray[np.int64]
    pair_high: NDArray[np.int64]
    held: NDArray[np.int64]
    set_start: NDArray[np.int64]
    distinct: NDArray[np.int64]
    counts: ValueCounts


def new_view(tables: LossTables, rules: PoolRules, entries: int) -> ClassView:
    """Return a view of no class yet, for classes of up to so many entries."""
    starts = np.concatenate([[0], np.cumsum(tables.set_sizes)]).astype(np.int64)
    ranges, pairs = len(tables.range_columns), len(tables.pair_columns)
    return ClassView(
        np.zeros(entries, np.int64),
        np.zeros(entries, np.int64),
        np.zeros(2, np.int64),
        np.zeros((ranges, 2)),
        np.zeros((ranges, 2)),
        np.zeros((pairs, 2), np.int64),
        np.zeros((pairs, 2), np.int64),
        np.zeros(int(starts[-1]), np.int64),
        starts[:-1].copy(),
        np.zeros(len(tables.set_columns), np.int64),
        new_counts(rules.diversity),
    )


@kernel
def clear_view(rows: KernelRows, rules: PoolRules, view: ClassView) -> None:
    """Make it the view of an empty class."""
    for at in range(view.totals[0]):
        row_type = view.types[at]
        for s in range(len(view.distinct)):
            view.held[view.set_start[s] + rows.set_codes[row_type, s]] = 0
        forget_row(rules.diversity, view.counts, row_type)
    start_counts(view.counts)
    view.totals[0] = 0
    view.totals[1] = 0
    view.low[:] = np.inf
    view.high[:] = -np.inf
    view.pair_low[:] = np.iinfo(np.int64).max
    view.pair_high[:] = -1
    view.distinct[:] = 0


@kernel
def put_in_view(
    rows: KernelRows, rules: PoolRules, view: ClassView, row_type: int, copies: int
) -> None:
    """Add an entry to the class in view."""
    at = view.totals[0]
    view.types[at] = row_type
    view.copies[at] = copies
    view.totals[0] += 1
    view.totals[1] += copies
    # The two lowest and the two highest values are kept, each copy counted, so that it is known
    # what the ends are when one copy has left. Further copies change neither.
    twice = min(copies, 2)
    for r in range(len(view.low)):
        value = rows.range_values[row_type, r]
        for _ in range(twice):
            if value < view.low[r, 0]:
                view.low[r, 1] = view.low[r, 0]
                view.low[r, 0] = value
            elif value < view.low[r, 1]:
                view.low[r, 1] = value
            if value > view.high[r, 0]:
                view.high[r, 1] = view.high[r, 0]
                view.high[r, 0] = value
            elif value > view.high[r, 1]:
                view.high[r, 1] = value
    for p in range(len(view.pair_low)):
        code = rows.pair_codes[row_type, p]
        for _ in range(twice):
            if code < view.pair_low[p, 0]:
                view.pair_low[p, 1] = view.pair_low[p, 0]
                view.pair_low[p, 0] = code
            elif code < view.pair_low[p, 1]:
                view.pair_low[p, 1] = code
            if code > view.pair_high[p, 0]:
                view.pair_high[p, 1] = view.pair_high[p, 0]
                view.pair_high[p, 0] = code
            elif code > view.pair_high[p, 1]:
                view.pair_high[p, 1] = code
    # `held` counts copies: a set loses a value only when the last copy with it leaves.
    for s in range(len(view.distinct)):
        place = view.set_start[s] + rows.set_codes[row_type, s]
        if view.held[place] == 0:
            view.distinct[s] += 1
        view.held[place] += copies
    count_in(rules.diversity, view.counts, row_type, copies, 0, 0)


@kernel
def show_class(
    rows: KernelRows, rules: PoolRules, pool: ClassPool, view: ClassView, label: int
) -> None:
    """Make it the view of a class of the pool."""
    clear_view(rows, rules, view)
    entry = pool.head[label]
    while entry >= 0:
        put_in_view(rows, rules, view, pool.types[entry], pool.copies[entry])
        entry = pool.following[entry]


@kernel
def changed_loss(
    tables: LossTables, rows: KernelRows, view: ClassView, leaving: int, joining: int
) -> float:
    """Return the record loss of the class without a copy of one type and with one of another.

    Either type may be -1: none. Where only a copy leaves, there must be a row left.
    """
    loss = tables.constant
    for r in range(len(view.low)):
        low, high = view.low[r, 0], view.high[r, 0]
        # If the copy that leaves is at an end, the next value is the end; with a second copy there
        # that is the same value.
        if leaving >= 0:
            gone = rows.range_values[leaving, r]
            low = view.low[r, 1] if gone == low else low
            high = view.high[r, 1] if gone == high else high
        if joining >= 0:
            come = rows.range_values[joining, r]
            low, high = min(low, come), max(high, come)
        loss += range_loss(tables, r, low, high)
    for s in range(len(view.distinct)):
        # The set shrinks if the only copy with a value leaves, and grows if a copy brings a value
        # that nobody has once the other one has left.
        count = view.distinct[s]
        gone_code = rows.set_codes[leaving, s] if leaving >= 0 else np.int32(-1)
        if leaving >= 0 and view.held[view.set_start[s] + gone_code] == 1:
            count -= 1
        if joining >= 0:
            code = rows.set_codes[joining, s]
            left = view.held[view.set_start[s] + code] - (1 if code == gone_code else 0)
            count += 1 if left == 0 else 0
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(len(view.pair_low)):
        first, last = view.pair_low[p, 0], view.pair_high[p, 0]
        if leaving >= 0:
            gone_rank = rows.pair_codes[leaving, p]
            first = view.pair_low[p, 1] if gone_rank == first else first
            last = view.pair_high[p, 1] if gone_rank == last else last
        if joining >= 0:
            rank = np.int64(rows.pair_codes[joining, p])
            first, last = min(first, rank), max(last, rank)
        loss += tables.pair_losses[tables.pair_start[p] + first * tables.pair_sizes[p] + last]
    return loss


@kernel
def part_of(rules: PoolRules, size: int, loss: float) -> float:
    """Return what a class adds to the objective: its rows' losses, or the loss of one of them."""
    return size * loss if rules.summed else loss


@kernel
def add_copies(pool: ClassPool, label: int, row_type: int, copies: int) -> None:
    """Put copies of a type into a class; :func:`update_class` is to follow."""
    pool.sizes[label] += copies
    entry = pool.head[label]
    while entry >= 0:
        if pool.types[entry] == row_type:
            pool.copies[entry] += copies
            return
        entry = pool.following[entry]
    entry = pool.cursor[FREE_ENTRY]
    pool.cursor[FREE_ENTRY] = pool.following[entry]
    pool.types[entry] = row_type
    pool.copies[entry] = copies
    pool.following[entry] = pool.head[label]
    pool.head[label] = entry


@kernel
def remove_copies(pool: ClassPool, label: int, row_type: int, copies: int) -> None:
    """Take copies of a type out of a class; :func:`update_class` is to follow."""
    pool.sizes[label] -= copies
    before, entry = -1, pool.head[label]
    while pool.types[entry] != row_type:
        before, entry = entry, pool.following[entry]
    pool.copies[entry] -= copies
    if pool.copies[entry] > 0:
        return
    if before < 0:
        pool.head[label] = pool.following[entry]
    else:
        pool.following[before] = pool.following[entry]
    pool.following[entry] = pool.cursor[FREE_ENTRY]
    pool.cursor[FREE_ENTRY] = entry


@kernel
def open_label(pool: ClassPool) -> int:
    """Return the number of a new, empty class."""
    if pool.cursor[FREED] > 0:
        pool.cursor[FREED] -= 1
        label = pool.freed[pool.cursor[FREED]]
    else:
        label = pool.cursor[CLASSES]
        pool.cursor[CLASSES] += 1
    pool.head[label] = -1
    pool.sizes[label] = 0
    pool.losses[label] = 0.0
    return int(label)


@kernel
def update_class(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    view: ClassView,
    label: int,
) -> None:
    """Bring loss, clock and surplus classes up to date after a class changed; `view` shows it then.

    A class of one type joins the other one of that type: it is worth more together, since all
    copies beyond k can be borrowed.
    """
    pool.cursor[CLOCK] += 1
    pool.changed[label] = pool.cursor[CLOCK]
    entry = pool.head[label]
    if entry < 0:
        pool.freed[pool.cursor[FREED]] = label
        pool.cursor[FREED] += 1
        clear_view(rows, rules, view)
        return
    row_type = pool.types[entry]
    if rules.borrows and pool.following[entry] < 0:
        surplus = pool.surplus[row_type]
        if surplus >= 0 and surplus != label and is_surplus(pool, surplus, row_type):
            copies = pool.copies[entry]
            remove_copies(pool, label, row_type, copies)
            pool.freed[pool.cursor[FREED]] = label
            pool.cursor[FREED] += 1
            add_copies(pool, surplus, row_type, copies)
            pool.changed[surplus] = pool.cursor[CLOCK]
            label = surplus
        else:
            pool.surplus[row_type] = label
    show_class(rows, rules, pool, view, label)
    pool.losses[label] = changed_loss(tables, rows, view, -1, -1)


@kernel
def is_surplus(pool: ClassPool, label: int, row_type: int) -> bool:
    """Return whether a class holds copies of a type and nothing else."""
    entry = pool.head[label]
    return bool(
        pool.sizes[label] > 0
        and entry >= 0
        and pool.types[entry] == row_type
        and pool.following[entry] < 0
    )


@kernel
def find_surplus(pool: ClassPool, row_type: int) -> int:
    """Return the class that holds copies of a type and nothing else; -1 if there is none."""
    surplus = pool.surplus[row_type]
    return surplus if surplus >= 0 and is_surplus(pool, surplus, row_type) else -1
