"""A few neighbouring classes re-solved exactly, as one small problem."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.improving.moves import MoveWork, gain_of
from anonymip.exact.improving.pool import (
    CLASSES,
    CLOCK,
    ClassPool,
    PoolRules,
    add_copies,
    find_home,
    open_label,
    part_of,
    remove_copies,
    settle,
    show_class,
)
from anonymip.exact.small.kernels import (
    INFEASIBLE,
    SmallRules,
    SmallWork,
    new_small_work,
    solve_rows,
)
from anonymip.kernels import kernel
from anonymip.objectives.class_loss import KernelRows
from anonymip.objectives.tables import LossTables

#: Most classes of a window.
MOST_CLASSES = 16


class ExactWork(NamedTuple):
    """Workspace of the windows that are solved as small problems.

    Parameters
    ----------
    labels
        (classes,) classes of the window.
    chosen
        (rows,) types of its rows.
    found
        (rows,) numbers of the classes made of them.
    checked
        (classes of the table,) clock at which the window around a class was last solved.
    small_rules, small
        Rules and workspace of the small problems.
    """

    labels: NDArray[np.int64]
    chosen: NDArray[np.int64]
    found: NDArray[np.int64]
    checked: NDArray[np.int64]
    small_rules: SmallRules
    small: SmallWork


def new_exact_work(tables: LossTables, rules: PoolRules, most_rows: int, classes: int) -> ExactWork:
    """Return the workspace for windows of up to so many rows, and so many class numbers."""
    small_rules = SmallRules(
        rules.k,
        rules.summed,
        rules.sensitive,
        rules.numerator,
        rules.denominator,
        rules.distinct,
    )
    return ExactWork(
        np.zeros(MOST_CLASSES, np.int64),
        np.zeros(most_rows, np.int64),
        np.zeros(most_rows, np.int64),
        np.full(classes, -1, np.int64),
        small_rules,
        new_small_work(tables, small_rules, most_rows),
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
def rows_to_place(pool: ClassPool, label: int, homeless: bool) -> int:
    """Return the rows of a class; of a class of several types perhaps only those without a home."""
    entry = pool.head[label]
    if not homeless or pool.following[entry] < 0:
        return int(pool.sizes[label])
    count = 0
    while entry >= 0:
        if find_home(pool, pool.types[entry]) < 0:
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
    homeless: bool,
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
    homeless
        Whether only rows without a home are counted.
    """
    labels[0] = label
    count, rows = 1, rows_to_place(pool, label, homeless)
    for at in range(neighbours.shape[1]):
        other = neighbours[label, at]
        if other < 0 or pool.sizes[other] == 0 or count == len(labels):
            continue
        if in_window(labels, count, other):
            continue
        more = rows_to_place(pool, other, homeless)
        if rows + more <= most_rows:
            labels[count] = other
            count += 1
            rows += more
    return count


@kernel
def resolve_window(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    exact: ExactWork,
    neighbours: NDArray[np.int64],
    label: int,
    max_nodes: int,
) -> bool:
    """Make the classes of the window around a class anew if that gains."""
    since = exact.checked[label]
    exact.checked[label] = pool.cursor[CLOCK]
    if pool.sizes[label] > len(exact.chosen):
        return False
    classes = gather_window(pool, exact.labels, neighbours, label, len(exact.chosen), False)
    if not any_changed(pool, exact.labels, classes, since):
        return False
    old, count = 0.0 if rules.summed else -np.inf, 0
    for at in range(classes):
        inside = exact.labels[at]
        part = part_of(rules, pool.sizes[inside], pool.losses[inside])
        old = old + part if rules.summed else max(old, part)
        entry = pool.head[inside]
        while entry >= 0:
            for _ in range(pool.copies[entry]):
                exact.chosen[count] = pool.types[entry]
                count += 1
            entry = pool.following[entry]
    if count < 2 * rules.k:
        return False
    status = solve_rows(
        tables, rows, exact.small_rules, exact.small, exact.chosen, count, max_nodes
    )
    if status == INFEASIBLE:
        return False
    new = exact.small.result[0]
    gain = gain_of(rules, old, old, new, new)
    if gain <= 0.0 or new >= old:
        return False
    _rebuild(tables, rows, rules, pool, work, exact, neighbours, classes, count)
    work.gain[0] += gain / 2 if rules.summed else gain
    return True


@kernel
def _rebuild(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    exact: ExactWork,
    neighbours: NDArray[np.int64],
    classes: int,
    count: int,
) -> None:
    """Make the classes that were found."""
    near = neighbours[exact.labels[0]].copy()
    for at in range(classes):
        inside = exact.labels[at]
        show_class(rows, rules, pool, work.one, inside)
        for place in range(work.one.totals[0]):
            remove_copies(pool, inside, work.one.types[place], work.one.copies[place])
        settle(tables, rows, rules, pool, work.other, inside)
    made = 0
    for at in range(count):
        local = exact.small.labels[at]
        if local == made:
            exact.found[made] = open_label(pool)
            made += 1
        add_copies(pool, exact.found[local], exact.chosen[at], 1)
    for at in range(made):
        label = exact.found[at]
        neighbours[label] = near
        # What took part is among the neighbours under its new number.
        neighbours[label, neighbours.shape[1] - 1] = exact.found[(at + 1) % made]
        work.checked[label] = -1
        exact.checked[label] = -1
        settle(tables, rows, rules, pool, work.other, label)


@kernel
def exact_windows_step(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    exact: ExactWork,
    neighbours: NDArray[np.int64],
    max_nodes: int,
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
        resolve_window(tables, rows, rules, pool, work, exact, neighbours, label, max_nodes)
    return int(cursor[0])
