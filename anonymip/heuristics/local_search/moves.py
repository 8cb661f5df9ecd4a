"""What two classes gain most by: a row that moves, two that are swapped, or a merge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.move_work import MoveWork, count_steps, gain_of
from anonymip.heuristics.local_search.pool import (
    CLASSES,
    CLOCK,
    ClassPool,
    PoolRules,
    add_copies,
    changed_loss,
    clear_view,
    find_surplus,
    part_of,
    put_in_view,
    remove_copies,
    show_class,
    update_class,
)
from anonymip.heuristics.local_search.splitting import split_class
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import stays_diverse
from anonymip.runtime.kernels import kernel

#: What is done with two classes.
NOTHING, GIVE, TAKE, SWAP, MERGE = 0, 1, 2, 3, 4


@kernel
def improve_class(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    neighbours: NDArray[np.int64],
    label: int,
) -> None:
    """Split a class if that gains, then do with each neighbour what gains most while it does."""
    since, started = work.checked[label], pool.cursor[CLOCK]
    own_changed = pool.changed[label] > since
    if own_changed and pool.sizes[label] >= 2 * rules.k:
        split_class(tables, rows, rules, pool, work, neighbours, label)
    # Neighbours first, then the surplus classes of the types that the class holds.
    known = neighbours.shape[1]
    at = 0
    while at < known + work.one.totals[0]:
        if pool.sizes[label] == 0:
            return
        if at == known and not rules.borrows:
            break
        if at < known:
            other = neighbours[label, at]
        else:
            # Copies join the surplus class of their type for nothing.
            show_class(rows, rules, pool, work.one, label)
            if at - known >= work.one.totals[0]:
                break
            other = find_surplus(pool, work.one.types[at - known])
        at += 1
        if other < 0 or other == label or pool.sizes[other] == 0:
            continue
        # The two were compared since either changed, and nothing gained.
        if not own_changed and pool.changed[other] <= since:
            continue
        while _improve_two(tables, rows, rules, pool, work, label, other):
            own_changed = True
            if pool.sizes[label] == 0 or pool.sizes[other] == 0:
                break
    # If it changed meanwhile it is looked at again: the first neighbours saw it as it was.
    work.checked[label] = started


@kernel
def _improve_two(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    one: int,
    other: int,
) -> bool:
    """Do with two classes what gains most; false if nothing gains."""
    show_class(rows, rules, pool, work.one, one)
    show_class(rows, rules, pool, work.other, other)
    gain, what, first, second = best_move(
        tables, rows, rules, work, pool.losses[one], pool.losses[other]
    )
    if what == NOTHING:
        return False
    if what == MERGE:
        for at in range(work.other.totals[0]):
            remove_copies(pool, other, work.other.types[at], work.other.copies[at])
            add_copies(pool, one, work.other.types[at], work.other.copies[at])
    if what in (GIVE, SWAP):
        remove_copies(pool, one, first, 1)
    if what in (TAKE, SWAP):
        remove_copies(pool, other, second, 1)
        add_copies(pool, one, second, 1)
    if what in (GIVE, SWAP):
        add_copies(pool, other, first, 1)
    update_class(tables, rows, rules, pool, work.other, other)
    update_class(tables, rows, rules, pool, work.one, one)
    work.gain[0] += gain
    return True


@kernel
def best_move(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    work: MoveWork,
    loss: float,
    other_loss: float,
) -> tuple[float, int, int, int]:
    """Return the gain, what it is, and which type leaves the first and the second class in view.

    Notes
    -----
    Complexity: O(s^2 m) for classes of s types. With a monotone loss a swap is not looked at if
    the two classes would not gain enough even if nobody joined them.
    """
    one, other = work.one, work.other
    size, other_size, asked = one.totals[1], other.totals[1], rules.diversity
    old, other_old = part_of(rules, size, loss), part_of(rules, other_size, other_loss)
    best, what, first, second = 0.0, NOTHING, -1, -1
    most = 0.0  # what the other class could gain at most by a swap
    # A copy of each type of the second class may join the first. `relief` keeps what the second
    # would lose less without it: with a monotone loss no swap that gives it away gains it more.
    for at in range(other.totals[0]):
        row_type = other.types[at]
        without = changed_loss(tables, rows, other, row_type, -1)
        work.relief[1, at] = other_old - part_of(rules, other_size, without)
        most = max(most, work.relief[1, at])
        # The class must keep k rows; the diversity, which takes long, is asked only of what
        # would be the best move.
        if other_size > rules.k:
            gain = gain_of(
                rules,
                old,
                other_old,
                part_of(rules, size + 1, changed_loss(tables, rows, one, -1, row_type)),
                part_of(rules, other_size - 1, without),
            )
            if (
                gain > best
                and stays_diverse(asked, one.counts, size, -1, row_type)
                and stays_diverse(asked, other.counts, other_size, row_type, -1)
            ):
                best, what, first, second = gain, TAKE, -1, row_type
    # The other way round. Now `relief` is known of both classes.
    for at in range(one.totals[0]):
        row_type = one.types[at]
        without = changed_loss(tables, rows, one, row_type, -1)
        work.relief[0, at] = old - part_of(rules, size, without)
        if size > rules.k:
            gain = gain_of(
                rules,
                old,
                other_old,
                part_of(rules, size - 1, without),
                part_of(rules, other_size + 1, changed_loss(tables, rows, other, -1, row_type)),
            )
            if (
                gain > best
                and stays_diverse(asked, one.counts, size, row_type, -1)
                and stays_diverse(asked, other.counts, other_size, -1, row_type)
            ):
                best, what, first, second = gain, GIVE, row_type, -1
    # Swaps keep both sizes. One is skipped if the reliefs of the two copies together are no more
    # than the best gain: whoever joins only makes the classes lose more.
    prune = rules.monotone and rules.summed
    swaps = 0
    for at in range(one.totals[0]):
        row_type = one.types[at]
        if prune and work.relief[0, at] + most <= best:
            continue
        for place in range(other.totals[0]):
            partner = other.types[place]
            if partner == row_type or (
                prune and work.relief[0, at] + work.relief[1, place] <= best
            ):
                continue
            swaps += 1
            new = part_of(rules, size, changed_loss(tables, rows, one, row_type, partner))
            # The first class is known exactly here, the second by its relief.
            if prune and old - new + work.relief[1, place] <= best:
                continue
            other_new = part_of(
                rules, other_size, changed_loss(tables, rows, other, partner, row_type)
            )
            gain = gain_of(rules, old, other_old, new, other_new)
            if (
                gain > best
                and stays_diverse(asked, one.counts, size, row_type, partner)
                and stays_diverse(asked, other.counts, other_size, partner, row_type)
            ):
                best, what, first, second = gain, SWAP, row_type, partner
    count_steps(work, 2 * (swaps + one.totals[0] + other.totals[0]))
    # A monotone loss is never less in one class than in two.
    if not rules.monotone:
        gain = _merge_gain(tables, rows, rules, work, old, other_old)
        if gain > best:
            best, what, first, second = gain, MERGE, -1, -1
    return best, what, first, second


@kernel
def _merge_gain(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    work: MoveWork,
    old: float,
    other_old: float,
) -> float:
    """Return what one class of two gains; a monotone loss gains nothing by that."""
    one, other = work.one, work.other
    entries = one.totals[0]
    for at in range(other.totals[0]):
        put_in_view(rows, rules, one, other.types[at], other.copies[at])
    new = part_of(rules, one.totals[1], changed_loss(tables, rows, one, -1, -1))
    # The merged view is not needed any more: the class is shown again.
    row_types = one.types[:entries].copy()
    copies = one.copies[:entries].copy()
    clear_view(rows, rules, one)
    for at in range(entries):
        put_in_view(rows, rules, one, row_types[at], copies[at])
    if rules.summed:
        return gain_of(rules, old, other_old, new, 0.0)
    return gain_of(rules, old, other_old, new, new) if new < max(old, other_old) else 0.0


@kernel
def sweep_step(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    neighbours: NDArray[np.int64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Improve the next `amount` classes; return how many have been looked at."""
    last = min(cursor[0] + amount, pool.cursor[CLASSES])
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        label = cursor[0]
        cursor[0] += 1
        if pool.sizes[label] > 0:
            improve_class(tables, rows, rules, pool, work, neighbours, label)
    return int(cursor[0])
