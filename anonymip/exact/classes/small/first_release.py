"""A first release of a small sub-problem and a first bound: the best cut, and nearest rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.row_types import is_diverse
from anonymip.exact.classes.small.workspace import SmallRules, SmallWork
from anonymip.objectives.kernels.class_loss import (
    KernelRows,
    join_class,
    open_class,
    pair_loss,
    record_loss,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel


@kernel
def cut_sorted_rows(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    size: int,
) -> bool:
    """Label the classes of the best cut of the sorted rows; false if no classes are allowed."""
    order, best, begin = work.order, work.cut_loss, work.cut_begin
    if size < rules.k or not is_diverse(rules, work, chosen, order, 0, size):
        return False
    # Longer classes could be cut in two without loss; under a diversity the halves need not keep
    # it, and the length only limits the effort.
    ruled = rules.diversity.values.shape[1] > 0
    longest = 4 * rules.k - 1 if ruled else 2 * rules.k - 1
    best[0] = 0.0 if rules.summed else -np.inf
    for end in range(1, size + 1):
        best[end] = np.inf
    # When a start comes up, the best cut of all rows before it is known.
    for start in range(size - rules.k + 1):
        if best[start] == np.inf:
            continue
        # The class grows by one row at a time, so its loss is never computed afresh.
        open_class(rows, work.state, chosen[order[start]])
        for end in range(start + 1, min(start + longest, size) + 1):
            if end > start + 1:
                join_class(rows, work.state, chosen[order[end - 1]])
            if end - start < rules.k:
                continue
            loss = record_loss(tables, work.state)
            loss = best[start] + (end - start) * loss if rules.summed else max(best[start], loss)
            if loss >= best[end]:
                continue
            if not ruled or is_diverse(rules, work, chosen, order, start, end):
                best[end] = loss
                begin[end] = start
    # Short classes alone may not keep the diversity, but all rows in one do.
    if best[size] == np.inf:
        begin[size] = 0
    # The classes are read off backwards.
    end, label = size, 0
    while end > 0:
        for at in range(begin[end], end):
            work.labels[order[at]] = label
        end = begin[end]
        label += 1
    return True


@kernel
def nearest_duals(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    types: int,
) -> float:
    """Write what a record of each type loses at least; return the bound that this gives.

    A class of k rows holds one that is no nearer than the (k-1)-th nearest: by monotonicity every
    record of the class loses as much as a class of these two.
    """
    nearest, wanted = work.nearest, rules.k - 1
    bound = 0.0 if rules.summed else -np.inf
    for one in range(types):
        row = chosen[work.order[work.begin[one]]]
        own = work.begin[one + 1] - work.begin[one]
        alone = pair_loss(tables, rows, row, row)
        # Rows that are alike are the nearest; they take the first places.
        held = min(own - 1, wanted)
        for at in range(held):
            nearest[at] = alone
        # `nearest` holds the least losses so far, ascending; a row that is no nearer than the last
        # of a full list changes nothing, nor do its copies.
        if held < wanted:
            for other in range(types):
                if other == one:
                    continue
                loss = pair_loss(tables, rows, row, chosen[work.order[work.begin[other]]])
                for _ in range(work.begin[other + 1] - work.begin[other]):
                    if held == wanted and loss >= nearest[wanted - 1]:
                        break
                    at = min(held, wanted - 1)
                    while at > 0 and nearest[at - 1] > loss:
                        nearest[at] = nearest[at - 1]
                        at -= 1
                    nearest[at] = loss
                    held = min(held + 1, wanted)
        work.duals[one] = nearest[wanted - 1]
        bound = bound + own * work.duals[one] if rules.summed else max(bound, work.duals[one])
    return bound
