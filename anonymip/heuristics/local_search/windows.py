"""A few neighbouring classes made again at the least loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.move_work import ROUNDING, MoveWork, count_steps
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
from anonymip.heuristics.local_search.regroup import regroup
from anonymip.heuristics.local_search.regroup_work import RegroupWork, new_regroup_work
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Most classes of a window.
MOST_CLASSES = 16


class WindowsWork(Packed):
    """Workspace of the windows.

    Parameters
    ----------
    labels
        (classes,) classes of the window.
    found
        (rows,) numbers of the classes made of its rows.
    checked
        (classes of the table,) clock at which the windows around a class were last solved.
    regroup
        Its rows, and the best classes of them.
    """

    labels: NDArray[np.int64]
    found: NDArray[np.int64]
    checked: NDArray[np.int64]
    regroup: RegroupWork


def new_windows_work(
    tables: LossTables, rules: PoolRules, most_rows: int, classes: int
) -> WindowsWork:
    """Return the workspace for windows of up to so many rows, and so many class numbers."""
    return WindowsWork(
        np.zeros(MOST_CLASSES, np.int64),
        np.zeros(most_rows, np.int64),
        np.full(classes, -1, np.int64),
        new_regroup_work(tables, rules, most_rows),
    )


@kernel
def in_window(labels: NDArray[np.int64], classes: int, label: int) -> bool:
    """Return whether a class is among the first so many of a window."""
    found = False
    for at in range(classes):
        found = found or labels[at] == label
    return found


@kernel
def any_changed(pool: ClassPool, labels: NDArray[np.int64], classes: int, since: int) -> bool:
    """Return whether a class of the window changed after a moment of the clock."""
    newest = pool.changed[labels[0]]
    for at in range(1, classes):
        newest = max(newest, pool.changed[labels[at]])
    return bool(newest > since)


@kernel
def rows_to_place(pool: ClassPool, label: int, unplaced: bool) -> int:
    """Return the rows of a class; of one of several types perhaps not those of surplus classes."""
    entry = pool.head[label]
    if not unplaced or pool.following[entry] < 0:
        return int(pool.sizes[label])
    count = 0
    while entry >= 0:
        if find_surplus(pool, pool.types[entry]) < 0:
            count += pool.copies[entry]
        entry = pool.following[entry]
    return count


@kernel
def gather_window(
    pool: ClassPool,
    labels: NDArray[np.int64],
    neighbours: NDArray[np.int64],
    label: int,
    most_rows: int,
    unplaced: bool,
) -> int:
    """Write a class and its first neighbours that fit; return how many classes that are.

    Parameters
    ----------
    pool
        The classes.
    labels
        (classes,) the window.
    neighbours
        (classes, q) of each class; -1 for none.
    label
        The class in the middle.
    most_rows
        Rows that the window may have.
    unplaced
        Whether only rows of types without a surplus class are counted.
    """
    labels[0] = label
    count, rows = 1, rows_to_place(pool, label, unplaced)
    for at in range(neighbours.shape[1]):
        other = neighbours[label, at]
        if other < 0 or pool.sizes[other] == 0 or count == len(labels):
            continue
        if in_window(labels, count, other):
            continue
        more = rows_to_place(pool, other, unplaced)
        if rows + more <= most_rows:
            labels[count] = other
            count += 1
            rows += more
    return count


@kernel
def _solve_window(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    windows: WindowsWork,
    neighbours: NDArray[np.int64],
    classes: int,
    max_nodes: int,
) -> bool:
    """Rebuild the first so many classes of the window if that gains."""
    old, slack, count = 0.0 if rules.summed else -np.inf, 0.0, 0
    for at in range(classes):
        count += pool.sizes[windows.labels[at]]
    if count < 2 * rules.k or count > len(windows.found):
        return False
    # The window's rows side by side, and what they lose now.
    count = 0
    for at in range(classes):
        inside = windows.labels[at]
        part = part_of(rules, pool.sizes[inside], pool.losses[inside])
        old = old + part if rules.summed else max(old, part)
        slack += abs(part)
        entry = pool.head[inside]
        while entry >= 0:
            for _ in range(pool.copies[entry]):
                windows.regroup.row_types[count] = pool.types[entry]
                count += 1
            entry = pool.following[entry]
    cutoff = old - ROUNDING * slack
    new = regroup(tables, rows, rules, windows.regroup, count, cutoff, max_nodes)
    # At each node about half of the rows have to be placed, and each looks at the class changed.
    count_steps(work, count * (count + windows.regroup.nodes[0] // 2))
    if new >= cutoff:
        return False
    _rebuild(tables, rows, rules, pool, work, windows, neighbours, classes, count)
    work.gain[0] += old - new
    return True


@kernel
def _rebuild(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    windows: WindowsWork,
    neighbours: NDArray[np.int64],
    classes: int,
    count: int,
) -> None:
    """Make the classes that were found."""
    near = neighbours[windows.labels[0]].copy()
    for at in range(classes):
        inside = windows.labels[at]
        show_class(rows, rules, pool, work.one, inside)
        for place in range(work.one.totals[0]):
            remove_copies(pool, inside, work.one.types[place], work.one.copies[place])
        update_class(tables, rows, rules, pool, work.other, inside)
    made = 0
    for at in range(count):
        made = max(made, windows.regroup.found[at] + 1)
    for at in range(made):
        windows.found[at] = open_label(pool)
    for at in range(count):
        label = windows.found[windows.regroup.found[at]]
        add_copies(pool, label, windows.regroup.row_types[at], 1)
    for at in range(made):
        label = windows.found[at]
        for place in range(len(near)):  # compiles in less time than the row at once
            neighbours[label, place] = near[place]
        # What took part is among the neighbours under its new number.
        neighbours[label, neighbours.shape[1] - 1] = windows.found[(at + 1) % made]
        work.checked[label] = -1
        windows.checked[label] = -1
        update_class(tables, rows, rules, pool, work.other, label)


@kernel
def _known(
    pool: ClassPool, windows: WindowsWork, neighbours: NDArray[np.int64], width: int, classes: int
) -> bool:
    """Return whether a window of two or three was solved around another of its classes before."""
    for one in range(classes):
        inside = windows.labels[one]
        if any_changed(pool, windows.labels, classes, windows.checked[inside]):
            continue
        near = 0
        for at in range(width):
            if neighbours[inside, at] != inside and in_window(
                windows.labels, classes, neighbours[inside, at]
            ):
                near += 1
        if near == classes - 1:
            return True
    return False


@kernel
def _improve_around(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    windows: WindowsWork,
    neighbours: NDArray[np.int64],
    label: int,
    width: int,
    max_nodes: int,
) -> bool:
    """Solve the windows of a class with one and with two near ones; whether one gained."""
    labels, started = windows.labels, pool.cursor[CLOCK]
    labels[0] = label
    # Windows of two: the class and each of its neighbours.
    for first in range(width):
        labels[1] = neighbours[label, first]
        if labels[1] < 0 or labels[1] == label or pool.sizes[labels[1]] == 0:
            continue
        if not _known(pool, windows, neighbours, width, 2) and _solve_window(
            tables, rows, rules, pool, work, windows, neighbours, 2, max_nodes
        ):
            return True
    # Windows of three: it and each pair of neighbours. A gain changes the class, so its caller
    # begins again.
    for first in range(width):
        labels[1] = neighbours[label, first]
        if labels[1] < 0 or labels[1] == label or pool.sizes[labels[1]] == 0:
            continue
        for second in range(first):
            labels[2] = neighbours[label, second]
            if labels[2] < 0 or pool.sizes[labels[2]] == 0 or in_window(labels, 2, labels[2]):
                continue
            if not _known(pool, windows, neighbours, width, 3) and _solve_window(
                tables, rows, rules, pool, work, windows, neighbours, 3, max_nodes
            ):
                return True
    # The widest window last: the class with as many neighbours as fit; those of two or three have
    # been solved above.
    since = windows.checked[label]
    windows.checked[label] = started
    if pool.sizes[label] > len(windows.found):
        return False
    classes = gather_window(pool, labels, neighbours, label, len(windows.found), False)
    if classes in (2, 3) or not any_changed(pool, labels, classes, since):
        return False
    return _solve_window(tables, rows, rules, pool, work, windows, neighbours, classes, max_nodes)


@kernel
def windows_step(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    windows: WindowsWork,
    neighbours: NDArray[np.int64],
    width: int,
    max_nodes: int,
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Solve the windows around the next `amount` classes of several types; return how many."""
    last = min(cursor[0] + amount, pool.cursor[CLASSES])
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        label = cursor[0]
        cursor[0] += 1
        while (
            work.steps[0] < work.steps[1]
            and pool.sizes[label] > 0
            and pool.following[pool.head[label]] >= 0
        ):
            if not _improve_around(
                tables, rows, rules, pool, work, windows, neighbours, label, width, max_nodes
            ):
                break
    return int(cursor[0])
