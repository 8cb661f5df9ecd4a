"""A class cut in two while that gains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.move_work import MoveWork, gain_of
from anonymip.heuristics.local_search.pool import (
    ClassPool,
    PoolRules,
    add_copies,
    changed_loss,
    clear_view,
    open_label,
    part_of,
    put_in_view,
    remove_copies,
    show_class,
    update_class,
)
from anonymip.objectives.kernels.class_loss import KernelRows, pair_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.orders.orders import stable_order
from anonymip.recodings.rules.diversity_counts import may_be_diverse
from anonymip.runtime.kernels import kernel


@kernel
def split_class(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    neighbours: NDArray[np.int64],
    label: int,
) -> None:
    """Cut a class in two while that gains.

    Its rows are sorted by how much nearer they are to one of two rows far apart than to the other,
    and cut where the losses are least.
    """
    while pool.sizes[label] >= 2 * rules.k and pool.following[pool.head[label]] >= 0:
        show_class(rows, rules, pool, work.one, label)
        size = work.one.totals[1]
        cut = _best_cut(tables, rows, rules, pool, work, label)
        if cut == 0:
            return
        # The new class has the neighbours of the old one, and the old one among them.
        part = open_label(pool)
        # One by one: numba compiles the assignment of a whole row for two seconds.
        last = neighbours.shape[1] - 1
        for at in range(last):
            neighbours[part, at] = neighbours[label, at]
        neighbours[part, last] = label
        work.checked[part] = -1
        old = part_of(rules, size, pool.losses[label])
        for at in range(cut):
            remove_copies(pool, label, work.order[at], 1)
            add_copies(pool, part, work.order[at], 1)
        # A part of one type joins the surplus class of that type, and the view shows that one: its
        # rows lose as much each, so that the share of the part can be read off it.
        update_class(tables, rows, rules, pool, work.other, part)
        new = part_of(rules, cut, changed_loss(tables, rows, work.other, -1, -1))
        update_class(tables, rows, rules, pool, work.one, label)
        rest = part_of(rules, size - cut, changed_loss(tables, rows, work.one, -1, -1))
        work.gain[0] += old - new - rest if rules.summed else 0.0


@kernel
def _best_cut(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    label: int,
) -> int:
    """Sort the rows of the class in view and return how many are cut off; 0 if that gains nothing.

    Complexity: O(s log s + s m) for s rows; O(s^2) more under a diversity.
    """
    # Two types far apart: the farthest from the first, and the farthest from that.
    view, size = work.one, work.one.totals[1]
    entries = view.totals[0]
    row_types, copies = view.types[:entries].copy(), view.copies[:entries].copy()
    seed = _farthest(tables, rows, row_types, row_types[0])
    far = _farthest(tables, rows, row_types, seed)
    # The rows in the order from the one to the other, copy by copy.
    for at in range(entries):
        work.keys[at] = pair_loss(tables, rows, seed, row_types[at]) - pair_loss(
            tables, rows, far, row_types[at]
        )
    ranked = stable_order(work.keys[:entries])
    place = 0
    for at in ranked:
        for _ in range(copies[at]):
            work.order[place] = row_types[at]
            place += 1
    # `ends[at]` is what the rows from a place on lose, for each place with k rows before it.
    clear_view(rows, rules, work.other)
    for at in range(size - 1, rules.k - 1, -1):
        put_in_view(rows, rules, work.other, work.order[at], 1)
        work.ends[at] = part_of(rules, size - at, changed_loss(tables, rows, work.other, -1, -1))
    # Now the beginning grows: the second view shows what would be cut off.
    clear_view(rows, rules, work.other)
    old = part_of(rules, size, pool.losses[label])
    best, cut = 0.0, 0
    for at in range(1, size - rules.k + 1):
        put_in_view(rows, rules, work.other, work.order[at - 1], 1)
        if at < rules.k:
            continue
        begin = part_of(rules, at, changed_loss(tables, rows, work.other, -1, -1))
        if rules.summed:
            gain = gain_of(rules, old, 0.0, begin, work.ends[at])
        else:
            gain = gain_of(rules, old, old, begin, work.ends[at])
        # The diversity is asked only of cuts that would be the best.
        if gain <= best:
            continue
        if rules.diversity.values.shape[1] > 0 and not (
            may_be_diverse(rules.diversity, work.other.counts, 0, at, at)
            and _diverse_end(rows, rules, work, at, size)
        ):
            continue
        best, cut = gain, at
    return cut


@kernel
def _diverse_end(rows: KernelRows, rules: PoolRules, work: MoveWork, begin: int, size: int) -> bool:
    """Return whether the rows from a place on are diverse; the first view is used for it."""
    clear_view(rows, rules, work.one)
    for at in range(begin, size):
        put_in_view(rows, rules, work.one, work.order[at], 1)
    return may_be_diverse(rules.diversity, work.one.counts, 0, size - begin, size - begin)


@kernel
def _farthest(
    tables: LossTables, rows: KernelRows, row_types: NDArray[np.int64], row_type: int
) -> int:
    best, farthest = -np.inf, row_type
    for candidate in row_types:
        loss = pair_loss(tables, rows, row_type, candidate)
        if loss > best:
            best, farthest = loss, candidate
    return farthest
