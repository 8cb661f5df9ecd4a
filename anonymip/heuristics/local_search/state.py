"""From labels to a pool of classes and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.heuristics.local_search.pool import (
    CLASSES,
    CLOCK,
    FREE_ENTRY,
    SUPPRESSED_COPIES,
    ClassPool,
    ClassView,
    PoolRules,
    changed_loss,
    new_view,
    show_class,
)
from anonymip.objectives.kernels.class_loss import KernelRows, kernel_rows
from anonymip.objectives.language.tables import LossTables
from anonymip.orders.arrangement import in_type_order
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.recodings.rules.diversity_counts import diversity_rule
from anonymip.runtime.kernels import kernel

#: Class numbers beyond the most classes that there can be.
_SPARE_LABELS = 64


@dataclass(frozen=True, eq=False)
class PooledClasses:
    """A release as the kernels improve it.

    Parameters
    ----------
    tables, rows, rules
        Loss, row types, and what classes must keep.
    pool
        The classes.
    records
        (n,) records, type by type.
    first
        (t + 1,) where each type begins in them.
    """

    tables: LossTables
    rows: KernelRows
    rules: PoolRules
    pool: ClassPool
    records: NDArray[np.int64]
    first: NDArray[np.int64]

    @property
    def types(self) -> int:
        """Number of row types."""
        return len(self.first) - 1

    @classmethod
    def of(cls, problem: Problem, labels: NDArray[np.integer]) -> PooledClasses:
        """Return the classes of the labels; classes of copies of one row are put together.

        Complexity: O(n log n).
        """
        tables = problem.compiled.tables
        records, row_types = in_type_order(problem, np.arange(problem.n))
        types = int(row_types[-1]) + 1
        first = np.searchsorted(row_types, np.arange(types + 1))
        rules = _rules(problem, records[first[:-1]])
        own = np.asarray(labels, np.int64)[records]
        kept = own != SUPPRESSED
        suppressed = np.bincount(row_types[~kept], minlength=types).astype(np.int64)
        held, label, copies = _entries(own[kept], row_types[kept], types)
        if rules.borrows:
            label = _put_together(label, held)
            held, label, copies = _entries(np.repeat(label, copies), np.repeat(held, copies), types)
        pool = _filled_pool(problem, held, label, copies, suppressed)
        rows = kernel_rows(problem.microdata, tables, records[first[:-1]])
        view = new_view(tables, rules, types)
        _update_all(tables, rows, rules, pool, view)
        return cls(tables, rows, rules, pool, records, first)

    def labels(self) -> NDArray[np.int64]:
        """Return (n,) labels of the records as the classes are now."""
        labels = np.full(len(self.records), SUPPRESSED, np.int64)
        _write_labels(self.pool, self.records, self.first[:-1].copy(), labels)
        return labels

    def living(self) -> NDArray[np.int64]:
        """Return the numbers of the classes that there are."""
        return np.flatnonzero(self.pool.sizes[: self.pool.cursor[CLASSES]] > 0)


def _rules(problem: Problem, rows: NDArray[np.int64]) -> PoolRules:
    compiled, diversity = problem.compiled, problem.diversity
    recoding = problem.recoding
    may_suppress = isinstance(recoding, EquivalenceClasses) and recoding.suppression
    return PoolRules(
        problem.k,
        compiled.aggregate == "sum",
        compiled.monotone,
        compiled.monotone and diversity is None,
        float(compiled.suppression_price) if may_suppress else np.inf,
        diversity_rule(diversity, problem.microdata).of_rows(rows),
    )


def _entries(
    labels: NDArray[np.int64], row_types: NDArray[np.int64], types: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return type, label and copies of each entry, class by class; labels 0, 1, ..."""
    dense = np.unique(labels, return_inverse=True)[1].ravel()
    key, copies = np.unique(dense * np.int64(types) + row_types, return_counts=True)
    return key % types, key // types, copies.astype(np.int64)


def _put_together(label: NDArray[np.int64], held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return labels of the entries with one class for all classes of copies of one row."""
    alone = np.bincount(label)[label] == 1
    target = label.copy()
    row_types, first, inverse = np.unique(held[alone], return_index=True, return_inverse=True)
    if len(row_types):
        target[alone] = label[alone][first][inverse.ravel()]
    return target


def _filled_pool(
    problem: Problem,
    held: NDArray[np.int64],
    label: NDArray[np.int64],
    copies: NDArray[np.int64],
    suppressed: NDArray[np.int64],
) -> ClassPool:
    n, entries = problem.n, len(held)
    room, numbers = n + 4, n // problem.k + _SPARE_LABELS
    count = int(label[-1]) + 1 if entries else 0
    types, held_copies = np.zeros(room, np.int64), np.zeros(room, np.int64)
    types[:entries], held_copies[:entries] = held, copies
    following = np.arange(1, room + 1)
    following[-1] = -1
    ends = np.flatnonzero(np.diff(label, append=-1) != 0)
    following[ends] = -1
    head, sizes = np.full(numbers, -1, np.int64), np.zeros(numbers, np.int64)
    head[:count] = np.searchsorted(label, np.arange(count))
    sizes[:count] = np.bincount(label, copies, count).astype(np.int64)
    cursor = np.zeros(5, np.int64)
    cursor[CLASSES], cursor[FREE_ENTRY], cursor[CLOCK] = count, entries, 1
    cursor[SUPPRESSED_COPIES] = suppressed.sum()
    return ClassPool(
        types,
        held_copies,
        following,
        head,
        sizes,
        np.zeros(numbers),
        np.ones(numbers, np.int64),
        np.full(len(suppressed), -1, np.int64),
        suppressed,
        np.zeros(numbers, np.int64),
        cursor,
    )


@kernel
def _update_all(
    tables: LossTables, rows: KernelRows, rules: PoolRules, pool: ClassPool, view: ClassView
) -> None:
    """Compute all losses and find all surplus classes."""
    for label in range(pool.cursor[CLASSES]):
        show_class(rows, rules, pool, view, label)
        pool.losses[label] = changed_loss(tables, rows, view, -1, -1)
        if pool.following[pool.head[label]] < 0:
            pool.surplus[pool.types[pool.head[label]]] = label


@kernel
def _write_labels(
    pool: ClassPool,
    records: NDArray[np.int64],
    next_record: NDArray[np.int64],
    labels: NDArray[np.int64],
) -> None:
    """Hand out the records of each type to the classes; those left stay as they are."""
    for label in range(pool.cursor[CLASSES]):
        entry = pool.head[label]
        while entry >= 0:
            row_type = pool.types[entry]
            for _ in range(pool.copies[entry]):
                labels[records[next_record[row_type]]] = label
                next_record[row_type] += 1
            entry = pool.following[entry]
