"""Rows of a small sub-problem, merged into types, and labelled by the classes of types."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.workspace import SmallRules, SmallWork
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.recodings.rules.diversity_counts import (
    count_in,
    forget_row,
    may_be_diverse,
    start_counts,
)
from anonymip.runtime.kernels import kernel


@kernel
def compare_rows(rows: KernelRows, rules: SmallRules, one: int, other: int) -> int:
    """Return whether a row comes before (-1) or behind (1) another, or is alike (0)."""
    for r in range(rows.range_values.shape[1]):
        difference = rows.range_values[one, r] - rows.range_values[other, r]
        if difference != 0.0:
            return -1 if difference < 0.0 else 1
    for s in range(rows.set_codes.shape[1]):
        step = rows.set_codes[one, s] - rows.set_codes[other, s]
        if step != 0:
            return -1 if step < 0 else 1
    for p in range(rows.pair_codes.shape[1]):
        step = rows.pair_codes[one, p] - rows.pair_codes[other, p]
        if step != 0:
            return -1 if step < 0 else 1
    sensitive = rules.diversity.values
    for c in range(sensitive.shape[1]):
        part = sensitive[one, c] - sensitive[other, c]
        if part != 0:
            return -1 if part < 0 else 1
    return 0


@kernel
def merge_types(
    rows: KernelRows, rules: SmallRules, work: SmallWork, chosen: NDArray[np.int64], size: int
) -> int:
    """Sort the rows, write the types and return how many there are."""
    order = work.order
    for place in range(size):
        at = place
        while at > 0:
            if compare_rows(rows, rules, chosen[order[at - 1]], chosen[place]) <= 0:
                break
            order[at] = order[at - 1]
            at -= 1
        order[at] = place
    count = 0
    for at in range(size):
        if at == 0 or compare_rows(rows, rules, chosen[order[at - 1]], chosen[order[at]]) != 0:
            work.begin[count] = at
            count += 1
    work.begin[count] = size
    return count


@kernel
def is_diverse(
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    places: NDArray[np.int64],
    begin: int,
    end: int,
) -> bool:
    """Return whether the rows at a segment of `places` are diverse."""
    rule, counts = rules.diversity, work.counts
    start_counts(counts)
    for at in range(begin, end):
        count_in(rule, counts, chosen[places[at]], 1, 0, 0)
    for at in range(begin, end):
        forget_row(rule, counts, chosen[places[at]])
    return may_be_diverse(rule, counts, 0, end - begin, end - begin)


@kernel
def label_cover(work: SmallWork, count: int, sets: int) -> None:
    """Label the rows by the best cover."""
    packing, following = work.packing, work.scratch
    for t in range(count):
        following[t] = work.begin[work.types.rank[t]]
    for label in range(sets):
        for t in range(count):
            copies = (work.cover.best[label] & packing.fields[t]) >> packing.shift[t]
            for _ in range(copies):
                work.labels[work.order[following[t]]] = label
                following[t] += 1
