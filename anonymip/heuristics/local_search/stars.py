"""Kernels that suppress rows that cost their class more than stars, and that take others in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.move_work import MoveWork, gain_of
from anonymip.heuristics.local_search.pool import (
    CLASSES,
    SUPPRESSED_COPIES,
    ClassPool,
    PoolRules,
    add_copies,
    changed_loss,
    remove_copies,
    show_class,
    update_class,
)
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import stays_diverse
from anonymip.runtime.kernels import kernel


@kernel
def _suppress(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    label: int,
) -> None:
    """Suppress one row after the other while the class loses more by it than a row of stars."""
    while pool.sizes[label] > rules.k:
        show_class(rows, rules, pool, work.one, label)
        size = work.one.totals[1]
        old = size * pool.losses[label]
        best, row_type = 0.0, -1
        for at in range(work.one.totals[0]):
            candidate = work.one.types[at]
            new = (size - 1) * changed_loss(tables, rows, work.one, candidate, -1)
            gain = gain_of(rules, old, 0.0, new, rules.suppression_price)
            if gain > best and stays_diverse(rules.diversity, work.one.counts, size, candidate, -1):
                best, row_type = gain, candidate
        if row_type < 0:
            return
        remove_copies(pool, label, row_type, 1)
        pool.suppressed[row_type] += 1
        pool.cursor[SUPPRESSED_COPIES] += 1
        update_class(tables, rows, rules, pool, work.one, label)
        work.gain[0] += best


@kernel
def suppress_costly(
    tables: LossTables, rows: KernelRows, rules: PoolRules, pool: ClassPool, work: MoveWork
) -> None:
    """Suppress the rows of all classes that cost more than a row of stars; losses are summed."""
    for label in range(pool.cursor[CLASSES]):
        if pool.sizes[label] > rules.k:
            _suppress(tables, rows, rules, pool, work, label)


@kernel
def take_in(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    pool: ClassPool,
    work: MoveWork,
    row_types: NDArray[np.int64],
    near: NDArray[np.int64],
) -> None:
    """Let suppressed rows join the near class whose loss rises least, if by less than a star row.

    Parameters
    ----------
    tables, rows, rules, pool, work
        As everywhere; losses are summed.
    row_types
        (types,) of suppressed rows.
    near
        (types, candidates) classes near each type; -1 for none.
    """
    for place in range(len(row_types)):
        row_type = row_types[place]
        while pool.suppressed[row_type] > 0:
            best, label = 0.0, -1
            for candidate in near[place]:
                if candidate < 0 or pool.sizes[candidate] == 0:
                    continue
                show_class(rows, rules, pool, work.one, candidate)
                size = pool.sizes[candidate]
                new = (size + 1) * changed_loss(tables, rows, work.one, -1, row_type)
                old = size * pool.losses[candidate]
                gain = gain_of(rules, old, rules.suppression_price, new, 0.0)
                if gain > best and stays_diverse(
                    rules.diversity, work.one.counts, size, -1, row_type
                ):
                    best, label = gain, candidate
            if label < 0:
                break
            pool.suppressed[row_type] -= 1
            pool.cursor[SUPPRESSED_COPIES] -= 1
            add_copies(pool, label, row_type, 1)
            update_class(tables, rows, rules, pool, work.one, label)
            work.gain[0] += best
