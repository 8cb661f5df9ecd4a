"""A few neighbouring classes made again at the least loss, with copies borrowed from elsewhere.

Where a table repeats its rows, many classes hold copies of one row only; what such a class holds
beyond k rows, its surplus, any other class can borrow, and it comes back for nothing. So only the
rows of types without such a class have to be placed: a set of fewer than k of them is filled up
with copies of one type, and of all near types that can donate so many copies the one with the least
loss is taken. (By monotonicity copies of two types are never better than copies of one of the two.)

The best classes of the rows of a window are found by dynamic programming over its subsets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.move_work import MoveWork, gain_of
from anonymip.heuristics.local_search.pool import (
    CLASSES,
    CLOCK,
    ClassPool,
    PoolRules,
    add_copies,
    find_surplus,
    open_label,
    part_of,
    remove_copies,
    show_class,
    update_class,
)
from anonymip.heuristics.local_search.windows import (
    MOST_CLASSES,
    any_changed,
    gather_window,
    in_window,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    joined_loss,
    new_state,
    open_class,
    record_loss,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Most rows of a window: there are 2 to the power of that many subsets.
MOST_ROWS = 13


class BorrowingWork(Packed):
    """Workspace of the windows.

    Parameters
    ----------
    labels
        (classes,) classes of the window.
    row_types
        (rows,) types of its rows.
    least, choice, donor
        (subsets,) least loss of a subset of its rows, the class that holds the first of them then,
        and the type that fills that class up; -1 for none.
    useful
        (rows, subsets) for each row, the subsets that begin with it and are best as one class.
    found
        (rows,) how many.
    borrowed
        (rows,) copies that the classes found borrow.
    checked
        (classes of the table,) clock at which the window around a class was last solved.
    state
        One class.
    """

    labels: NDArray[np.int64]
    row_types: NDArray[np.int64]
    least: NDArray[np.float64]
    choice: NDArray[np.int64]
    donor: NDArray[np.int64]
    useful: NDArray[np.int64]
    found: NDArray[np.int64]
    borrowed: NDArray[np.int64]
    checked: NDArray[np.int64]
    state: ClassState


def new_borrowing_work(tables: LossTables, classes: int) -> BorrowingWork:
    """Return the workspace for a pool with so many class numbers."""
    subsets = 1 << MOST_ROWS
    return BorrowingWork(
        np.zeros(MOST_CLASSES, np.int64),
        np.zeros(MOST_ROWS, np.int64),
        np.zeros(subsets),
        np.zeros(subsets, np.int64),
        np.zeros(subsets, np.int64),
        np.zeros((MOST_ROWS, subsets), np.int64),
        np.zeros(MOST_ROWS, np.int64),
        np.zeros(MOST_ROWS, np.int64),
        np.full(classes, -1, np.int64),
        new_state(tables, 1),
    )


@kernel
def _list_rows(pool: ClassPool, window: BorrowingWork, classes: int) -> int:
    """Write the rows that no surplus class outside takes; return how many, -1 if too many."""
    count = 0
    for at in range(classes):
        entry = pool.head[window.labels[at]]
        while entry >= 0:
            row_type = pool.types[entry]
            surplus = find_surplus(pool, row_type)
            if surplus < 0 or in_window(window.labels, classes, surplus):
                if count + pool.copies[entry] > MOST_ROWS:
                    return -1
                for _ in range(pool.copies[entry]):
                    window.row_types[count] = row_type
                    count += 1
            entry = pool.following[entry]
    return count


@kernel
def _one_class(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    window: BorrowingWork,
    classes: int,
    donors: NDArray[np.int64],
    subset: int,
    count: int,
    cutoff: float,
) -> tuple[float, int]:
    """Return what a subset loses as one class and which type fills it up; infinite if none can.

    Looks no further once the loss is sure not to be below the cutoff.
    """
    members = 0
    for at in range(count):
        if subset >> at & 1:
            if members == 0:
                open_class(rows, window.state, window.row_types[at])
            else:
                join_class(rows, window.state, window.row_types[at])
            members += 1
    # What a borrowed copy loses in its own class it loses here as well: the others there remain.
    least = part_of(rules, members, record_loss(tables, window.state))
    if members >= rules.k or least >= cutoff:
        return least, -1
    # The class is filled up to k rows by copies of one type, of those near one of its members.
    missing = rules.k - members
    best, donor = np.inf, -1
    for at in range(count):
        if not subset >> at & 1:
            continue
        for candidate in donors[window.row_types[at]]:
            if candidate < 0:
                break
            # The donor keeps k rows, and classes of the window itself are about to be dissolved.
            surplus = find_surplus(pool, candidate)
            if surplus < 0 or pool.sizes[surplus] - missing < rules.k:
                continue
            if in_window(window.labels, classes, surplus):
                continue
            # Copies that leave a surplus class no longer lose what they lost there.
            loss = part_of(rules, rules.k, joined_loss(tables, rows, window.state, candidate))
            if rules.summed:
                loss -= missing * pool.losses[surplus]
            if loss < best:
                best, donor = loss, candidate
    return best, donor


@kernel
def _solve(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    window: BorrowingWork,
    classes: int,
    donors: NDArray[np.int64],
    count: int,
) -> float:
    """Return the least loss of classes of the window's rows; infinite if there are none."""
    window.found[:count] = 0
    window.least[0] = 0.0 if rules.summed else -np.inf
    # Subsets come in ascending order, so that all parts of one were solved before it.
    for subset in range(1, 1 << count):
        first = 0
        while not subset >> first & 1:
            first += 1
        # The class with the first row is one of the useful parts that begin with it; the rest of
        # the rows is solved already.
        best, chosen = np.inf, -1
        for at in range(window.found[first]):
            part = window.useful[first, at]
            if part & ~subset:
                continue
            rest = window.least[subset ^ part]
            loss = window.least[part]
            loss = loss + rest if rules.summed else max(loss, rest)
            if loss < best:
                best, chosen = loss, part
        # As one class: no longer than 2k - 1 rows, since more can be cut in two.
        members, left = 0, subset
        while left:
            left &= left - 1
            members += 1
        window.donor[subset] = -1
        if members < 2 * rules.k:
            loss, donor = _one_class(
                tables, rows, rules, pool, window, classes, donors, subset, count, best
            )
            # The subset is worth keeping as a part only if no cut of it is as good.
            if loss < best:
                best, chosen = loss, subset
                window.donor[subset] = donor
                window.useful[first, window.found[first]] = subset
                window.found[first] += 1
        window.least[subset] = best
        window.choice[subset] = chosen
    return float(window.least[(1 << count) - 1])


@kernel
def _donors_suffice(
    rules: PoolRules, pool: ClassPool, window: BorrowingWork, classes: int, count: int
) -> bool:
    """Return whether the surplus classes hold what all classes found borrow together."""
    subset = (1 << count) - 1
    borrowed = 0
    while subset:
        part = window.choice[subset]
        donor = window.donor[part]
        if donor >= 0:
            members, left = 0, part
            while left:
                left &= left - 1
                members += 1
            for _ in range(rules.k - members):
                window.borrowed[borrowed % MOST_ROWS] = donor
                borrowed += 1
                wanted = 0
                for at in range(min(borrowed, MOST_ROWS)):
                    wanted += 1 if window.borrowed[at] == donor else 0
                surplus = find_surplus(pool, donor)
                if borrowed > MOST_ROWS or pool.sizes[surplus] - wanted < rules.k:
                    return False
        subset ^= part
    return True


@kernel
def solve_window(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    window: BorrowingWork,
    neighbours: NDArray[np.int64],
    donors: NDArray[np.int64],
    label: int,
    most_rows: int,
) -> bool:
    """Rebuild the classes of the window around a class if that gains.

    Notes
    -----
    Complexity: O(2^r u) for a window of r rows of which at most u subsets with one first row are
    better as one class than as several.
    """
    since = window.checked[label]
    window.checked[label] = pool.cursor[CLOCK]
    classes = gather_window(pool, window.labels, neighbours, label, min(most_rows, MOST_ROWS), True)
    # None of the classes changed since the window was last solved.
    if not any_changed(pool, window.labels, classes, since):
        return False
    count = _list_rows(pool, window, classes)
    if count < 1:
        return False
    # What the window loses now. Copies whose surplus class lies outside go back there; `returned`
    # is what they lose then.
    old = 0.0 if rules.summed else -np.inf
    returned = 0.0
    for at in range(classes):
        inside = window.labels[at]
        part = part_of(rules, pool.sizes[inside], pool.losses[inside])
        old = old + part if rules.summed else max(old, part)
        entry = pool.head[inside]
        while entry >= 0:
            surplus = find_surplus(pool, pool.types[entry])
            if surplus >= 0 and not in_window(window.labels, classes, surplus):
                returned += pool.copies[entry] * pool.losses[surplus]
            entry = pool.following[entry]
    # The loss of all rows of the window, borrowed copies counted by what they lose more.
    new = _solve(tables, rows, rules, pool, window, classes, donors, count)
    if rules.summed:
        new += returned
    gain = (
        gain_of(rules, old, 0.0, new, 0.0) if rules.summed else gain_of(rules, old, old, new, new)
    )
    if gain <= 0.0 or (not rules.summed and new >= old):
        return False
    # Each class looked for its donors by itself: together they may want more than there is.
    if not _donors_suffice(rules, pool, window, classes, count):
        return False
    _rebuild(tables, rows, rules, pool, work, window, neighbours, classes, count)
    work.gain[0] += gain
    return True


@kernel
def _rebuild(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    window: BorrowingWork,
    neighbours: NDArray[np.int64],
    classes: int,
    count: int,
) -> None:
    """Make the classes that were found."""
    near = neighbours[window.labels[0]].copy()
    for at in range(classes):
        inside = window.labels[at]
        # Surplus classes are looked up before anything moves: an emptied one is none any more.
        show_class(rows, rules, pool, work.one, inside)
        for place in range(work.one.totals[0]):
            row_type, copies = work.one.types[place], work.one.copies[place]
            surplus = find_surplus(pool, row_type)
            remove_copies(pool, inside, row_type, copies)
            if surplus >= 0 and not in_window(window.labels, classes, surplus):
                add_copies(pool, surplus, row_type, copies)
                update_class(tables, rows, rules, pool, work.other, surplus)
        update_class(tables, rows, rules, pool, work.other, inside)
    # The window is empty. Its rows go into the parts of the best choice, the part with the first
    # row left each time.
    subset = (1 << count) - 1
    while subset:
        part = window.choice[subset]
        label = open_label(pool)
        members = 0
        for at in range(count):
            if part >> at & 1:
                add_copies(pool, label, window.row_types[at], 1)
                members += 1
        donor = window.donor[part]
        # Borrowed copies fill it up to k rows.
        if donor >= 0:
            surplus = find_surplus(pool, donor)
            remove_copies(pool, surplus, donor, rules.k - members)
            add_copies(pool, label, donor, rules.k - members)
            update_class(tables, rows, rules, pool, work.other, surplus)
        # The class is new: nothing that was known of its number holds.
        neighbours[label] = near
        work.checked[label] = -1
        window.checked[label] = -1
        update_class(tables, rows, rules, pool, work.other, label)
        subset ^= part


@kernel
def borrowing_step(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    window: BorrowingWork,
    neighbours: NDArray[np.int64],
    donors: NDArray[np.int64],
    most_rows: int,
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Solve the windows around the next `amount` classes of several types; return how many."""
    last = min(cursor[0] + amount, pool.cursor[CLASSES])
    while cursor[0] < last:
        label = cursor[0]
        cursor[0] += 1
        if pool.sizes[label] == 0 or pool.following[pool.head[label]] < 0:
            continue
        solve_window(tables, rows, rules, pool, work, window, neighbours, donors, label, most_rows)
    return int(cursor[0])
