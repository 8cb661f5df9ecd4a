"""The row types nearest to one in a k-d tree, until they have k rows together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.box_tree import BoxTree, box_bound
from anonymip.objectives.kernels.class_loss import ClassState, KernelRows, joined_loss, record_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel

#: Nodes that wait at most while a tree is searched: its depth, of any tree that fits in memory.
DEEPEST = 256


@kernel
def nearest_types(
    tables: LossTables,
    rows: KernelRows,
    tree: BoxTree,
    state: ClassState,
    counts: NDArray[np.int64],
    k: int,
    own: int,
    near: NDArray[np.int32],
    losses: NDArray[np.float64],
    stack: NDArray[np.int64],
    bounds: NDArray[np.float64],
    looked: NDArray[np.int64],
) -> int:
    """List the types nearest to the opened one and return how many are needed for k rows.

    Parameters
    ----------
    tables
        Of a monotone objective.
    counts
        (t,) rows of each type.
    own
        The opened type, which comes first, whatever lies at distance 0.
    near
        (k,) gets the types, the nearest first.
    losses
        (k + 1,) gets what a record loses that is published as the class of both.
    stack, bounds
        (DEEPEST,) scratch.
    looked
        (1,) to which the nodes and rows that are looked at are added.
    """
    losses[0] = record_loss(tables, state)
    near[0] = own
    held, total = 1, counts[own]
    if total >= k:
        return held
    depth = 1
    stack[0] = 0
    bounds[0] = box_bound(tree, tables, state, 0)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if total >= k and bounds[depth] >= losses[held - 1]:
            continue
        child = tree.left[node]
        if child >= 0:
            first, second = child, child + 1
            first_bound = box_bound(tree, tables, state, first)
            second_bound = box_bound(tree, tables, state, second)
            if second_bound < first_bound:
                first, second = second, first
                first_bound, second_bound = second_bound, first_bound
            stack[depth], bounds[depth] = second, second_bound
            stack[depth + 1], bounds[depth + 1] = first, first_bound
            depth += 2
            looked[0] += 2
            continue
        looked[0] += tree.end[node] - tree.begin[node]
        for at in range(tree.begin[node], tree.end[node]):
            row = tree.items[at]
            if row == own:
                continue
            loss = joined_loss(tables, rows, state, row)
            if total >= k and loss >= losses[held - 1]:
                continue
            held, total = list_type(row, loss, counts, k, near, losses, held, total)
    return held


@kernel
def list_type(
    row: int,
    loss: float,
    counts: NDArray[np.int64],
    k: int,
    near: NDArray[np.int32],
    losses: NDArray[np.float64],
    held: int,
    total: int,
) -> tuple[int, int]:
    """List a type behind those that are as near; return how many types and rows are needed."""
    if held == k:
        # Full: types of one row each; the last makes room.
        held -= 1
        total -= counts[near[held]]
    place = held
    while place > 1 and losses[place - 1] > loss:
        losses[place] = losses[place - 1]
        near[place] = near[place - 1]
        place -= 1
    losses[place] = loss
    near[place] = row
    held += 1
    total += counts[row]
    while total - counts[near[held - 1]] >= k:
        held -= 1
        total -= counts[near[held]]
    return held, total
