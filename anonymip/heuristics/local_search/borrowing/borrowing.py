"""A few neighbouring classes made again at the least loss, with copies borrowed from elsewhere.

Where a table repeats its rows, many classes hold copies of one row only; what such a class holds
beyond k rows, its surplus, any other class can borrow, and it comes back for nothing. So only the
rows of types without such a class have to be placed: a set of fewer than k of them is filled up
with copies of one type, and of all near types that can donate so many copies the one with the least
loss is taken. (By monotonicity copies of two types are never better than copies of one of the two.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.borrowing.listed_work import (
    MOST_DONORS,
    MOST_ROWS,
    ListedWork,
    members_of,
    new_listed_work,
)
from anonymip.heuristics.local_search.borrowing.window_classes import best_classes
from anonymip.heuristics.local_search.move_work import MoveWork, count_steps, gain_of
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
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class BorrowingWork(Packed):
    """Workspace of the windows.

    Parameters
    ----------
    labels
        (classes,) classes of the window.
    checked
        (classes of the table,) clock at which the window around a class was last solved.
    known
        (classes of the table,) which window that was.
    listed
        Its rows, donors, and the best classes of them.
    """

    labels: NDArray[np.int64]
    checked: NDArray[np.int64]
    known: NDArray[np.int64]
    listed: ListedWork


def new_borrowing_work(tables: LossTables, rules: PoolRules, classes: int) -> BorrowingWork:
    """Return the workspace for a pool with so many class numbers."""
    return BorrowingWork(
        np.zeros(MOST_CLASSES, np.int64),
        np.full(classes, -1, np.int64),
        np.zeros(classes, np.int64),
        new_listed_work(tables, rules.k),
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
                    window.listed.row_types[count] = row_type
                    count += 1
            entry = pool.following[entry]
    return count


@kernel
def _list_donors(
    pool: ClassPool,
    window: BorrowingWork,
    classes: int,
    donors: NDArray[np.int64],
    count: int,
    k: int,
) -> None:
    """Write the types near the window's rows that can spare copies, each once."""
    listed = window.listed
    found = 0
    for at in range(count):
        row_type = listed.row_types[at]
        for candidate in donors[row_type]:
            if candidate < 0:
                break
            place = 0
            while place < found and listed.donors[place] != candidate:
                place += 1
            if place < found:
                listed.near[place] |= np.int64(1) << at
                continue
            # The donor keeps k rows, and classes of the window itself are about to be dissolved.
            surplus = find_surplus(pool, candidate)
            if surplus < 0 or pool.sizes[surplus] <= k or found == MOST_DONORS:
                continue
            if in_window(window.labels, classes, surplus):
                continue
            listed.donors[found] = candidate
            listed.near[found] = np.int64(1) << at
            listed.spare[found] = pool.sizes[surplus] - k
            listed.surplus_losses[found] = pool.losses[surplus]
            found += 1
    listed.size[0] = count
    listed.size[1] = found


@kernel
def _donors_suffice(rules: PoolRules, window: BorrowingWork) -> bool:
    """Return whether the donors hold what all classes found borrow together."""
    listed = window.listed
    spare = listed.spare
    covered = (np.int64(1) << listed.size[0]) - 1
    enough = True
    while covered:
        at = listed.choice[covered]
        covered ^= listed.part[at]
        donor = listed.filler[at]
        if donor >= 0:
            spare[donor] -= rules.k - members_of(listed.part[at])
            enough = enough and spare[donor] >= 0
    return enough


@kernel
def _window_sum(labels: NDArray[np.int64], classes: int) -> int:
    """Return a number that hardly any other window around the same class has."""
    total = np.int64(0)
    for at in range(1, classes):
        # In any order: a product would wrap around, as it may.
        total += (labels[at] + 1) * (labels[at] + 0x9E3779B1)
    return int(total)


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
    max_nodes: int,
) -> bool:
    """Rebuild the classes of the window around a class if that gains.

    Notes
    -----
    Complexity: that of :func:`best_classes`.
    """
    since, known = window.checked[label], window.known[label]
    classes = gather_window(pool, window.labels, neighbours, label, most_rows, True)
    window.checked[label] = pool.cursor[CLOCK]
    window.known[label] = _window_sum(window.labels, classes)
    # The window was solved before, and none of its classes changed since.
    if known == window.known[label] and not any_changed(pool, window.labels, classes, since):
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
    _list_donors(pool, window, classes, donors, count, rules.k)
    wanted = old - returned if rules.summed else old
    new = best_classes(tables, rows, rules, window.listed, wanted, max_nodes)
    count_steps(work, window.listed.nodes[0])
    if rules.summed:
        new += returned
    gain = (
        gain_of(rules, old, 0.0, new, 0.0) if rules.summed else gain_of(rules, old, old, new, new)
    )
    if gain <= 0.0 or (not rules.summed and new >= old):
        return False
    # Each class looked for its donors by itself: together they may want more than there is.
    if not _donors_suffice(rules, window):
        return False
    _rebuild(tables, rows, rules, pool, work, window, neighbours, classes)
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
    # The window is empty. Its rows go into the classes found, the last one first.
    listed = window.listed
    covered = (np.int64(1) << listed.size[0]) - 1
    while covered:
        chosen = listed.choice[covered]
        part, filler = listed.part[chosen], listed.filler[chosen]
        label = open_label(pool)
        for at in range(listed.size[0]):
            if part >> at & 1:
                add_copies(pool, label, listed.row_types[at], 1)
        # Borrowed copies fill it up to k rows.
        if filler >= 0:
            donor, missing = listed.donors[filler], rules.k - members_of(part)
            surplus = find_surplus(pool, donor)
            remove_copies(pool, surplus, donor, missing)
            add_copies(pool, label, donor, missing)
            update_class(tables, rows, rules, pool, work.other, surplus)
        # The class is new: nothing that was known of its number holds.
        for place in range(len(near)):  # compiles in less time than the row at once
            neighbours[label, place] = near[place]
        work.checked[label] = -1
        window.checked[label] = -1
        update_class(tables, rows, rules, pool, work.other, label)
        covered ^= part


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
    max_nodes: int,
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Solve the windows around the next `amount` classes of several types; return how many."""
    last = min(cursor[0] + amount, pool.cursor[CLASSES])
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        label = cursor[0]
        cursor[0] += 1
        if pool.sizes[label] == 0 or pool.following[pool.head[label]] < 0:
            continue
        solve_window(
            tables, rows, rules, pool, work, window, neighbours, donors, label, most_rows, max_nodes
        )
    return int(cursor[0])
