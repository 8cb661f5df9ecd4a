"""A k-d tree over rows: the row whose joining costs a class least, and the nearest of a type.

Rows can be deleted. For a monotone loss a box of rows has a lower bound on the joined loss, so
that most of the tree is never visited. Ties go to the first row, exactly as in a linear scan: the
bound adds up the same terms in the same order as the loss, so rounding cannot reverse the two.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    ends_loss,
    joined_loss,
    range_loss,
    record_loss,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

_LEAF_ROWS = 4  # small leaves: a box is about as cheap to look at as a row
#: Nodes that wait at most while a tree is searched: its depth, of any tree that fits in memory.
DEEPEST = 256


class BoxTree(Packed):
    """The tree; node 0 is the root, node i has the children left[i] and left[i] + 1."""

    items: Annotated[Ints, "rows"]  # rows ordered by leaf
    #: Rows of a node are items[begin:end].
    begin: Annotated[Ints, "nodes"]
    end: Annotated[Ints, "nodes"]
    left: Annotated[Ints, "nodes"]  # first child; -1 for a leaf
    parent: Annotated[Ints, "nodes"]  # -1 for the root
    alive: Annotated[Ints, "nodes"]  # rows not deleted
    first: Annotated[Ints, "nodes"]  # smallest row that the node was built with
    leaf: Annotated[Ints, "rows", -1]  # leaf of a row
    #: Boxes.
    range_min: Annotated[Floats, "nodes, r"]
    range_max: Annotated[Floats, "nodes, r"]
    set_min: Annotated[Codes, "nodes, s"]
    set_max: Annotated[Codes, "nodes, s"]
    pair_min: Annotated[Codes, "nodes, p"]
    pair_max: Annotated[Codes, "nodes, p"]
    size: Annotated[Ints, "1"]  # number of nodes
    #: Workspaces of a search: two places a level.
    stack: Annotated[Ints, "DEEPEST"]
    stack_bounds: Annotated[Floats, "DEEPEST"]


def new_tree(tables: LossTables, rows: int, *, split: bool = True) -> BoxTree:
    """Return the memory of a tree over up to `rows` rows; :func:`build_tree` fills it.

    One that is not `split` is a single leaf: a search looks at all rows, whatever the loss.
    """
    r, s, p = tables.term_counts
    nodes = 4 * (rows // _LEAF_ROWS + 1) if split else 1
    return BoxTree.of_sizes(rows=rows, nodes=nodes, r=r, s=s, p=p, DEEPEST=DEEPEST)


@kernel
def _fit_box(
    tree: BoxTree,
    node: int,
    values: NDArray[Any],
    smallest: NDArray[Any],
    largest: NDArray[Any],
) -> None:
    for column in range(values.shape[1]):
        small = values[tree.items[tree.begin[node]], column]
        large = small
        for at in range(tree.begin[node], tree.end[node]):
            value = values[tree.items[at], column]
            small = min(small, value)
            large = max(large, value)
        smallest[node, column] = small
        largest[node, column] = large


@kernel
def _split(tree: BoxTree, rows: KernelRows, node: int) -> int:
    """Order a node's items around their median where its box costs most; return the middle, or -1.

    -1 where all are alike. Dimensions: ranges, sets and pairs in a row.
    """
    tables, dimension, widest = rows.tables, -1, 0.0
    ranges, sets = tree.range_min.shape[1], tree.set_min.shape[1]
    for r in range(ranges):
        price = max(tables.range_high[r], -tables.range_low[r])
        width = price * (tree.range_max[node, r] - tree.range_min[node, r])
        if width > widest:
            dimension, widest = r, width
    for s in range(sets):
        if tree.set_min[node, s] < tree.set_max[node, s]:
            start = tables.set_start[s]
            width = tables.set_losses[start + 2] - tables.set_losses[start + 1]
            if width > widest:
                dimension, widest = ranges + s, width
    for p in range(tree.pair_min.shape[1]):
        least, most = tree.pair_min[node, p], tree.pair_max[node, p]
        width = ends_loss(tables, p, least, most) - ends_loss(tables, p, least, least)
        if width > widest:
            dimension, widest = ranges + sets + p, width
    if dimension < 0:
        return -1
    low, high = tree.begin[node], tree.end[node] - 1
    middle = (tree.begin[node] + tree.end[node]) // 2
    while low < high:
        pivot = _coordinate(rows, tree.items[(low + high) // 2], dimension)
        i, j = low, high
        while i <= j:
            while _coordinate(rows, tree.items[i], dimension) < pivot:
                i += 1
            while _coordinate(rows, tree.items[j], dimension) > pivot:
                j -= 1
            if i <= j:
                tree.items[i], tree.items[j] = tree.items[j], tree.items[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            break
    return middle


@kernel
def _coordinate(rows: KernelRows, row: int, dimension: int) -> float:
    ranges, sets = rows.range_values.shape[1], rows.set_codes.shape[1]
    if dimension < ranges:
        return rows.range_values[row, dimension]
    if dimension < ranges + sets:
        return float(rows.set_codes[row, dimension - ranges])
    return float(rows.pair_codes[row, dimension - ranges - sets])


@kernel
def build_tree(tree: BoxTree, rows: KernelRows, alive: Ints) -> None:
    """Fill the tree with the rows whose `alive` is positive, anew.

    Complexity: O(t log t) time for t rows.
    """
    kept = 0
    for row in range(len(alive)):
        if alive[row] > 0:
            tree.items[kept] = row
            kept += 1
    tree.size[0] = 1
    tree.begin[0], tree.end[0], tree.parent[0] = 0, kept, -1
    if kept == 0:
        tree.alive[0], tree.left[0] = 0, -1
        return
    # Nodes wait in the order in which they were made: two halves at the end for each that is split.
    node = 0
    while node < tree.size[0]:
        begin, end = tree.begin[node], tree.end[node]
        tree.first[node], tree.alive[node] = tree.items[begin], end - begin
        for at in range(begin, end):
            tree.first[node] = min(tree.first[node], tree.items[at])
        _fit_box(tree, node, rows.range_values, tree.range_min, tree.range_max)
        _fit_box(tree, node, rows.set_codes, tree.set_min, tree.set_max)
        _fit_box(tree, node, rows.pair_codes, tree.pair_min, tree.pair_max)
        tree.left[node] = -1
        middle = -1
        if end - begin > _LEAF_ROWS and len(tree.left) > 1:
            middle = _split(tree, rows, node)
        if middle >= 0:
            child = tree.size[0]
            tree.left[node] = child
            tree.begin[child], tree.end[child] = begin, middle
            tree.begin[child + 1], tree.end[child + 1] = middle, end
            tree.parent[child] = node
            tree.parent[child + 1] = node
            tree.size[0] += 2
        else:
            for at in range(begin, end):
                tree.leaf[tree.items[at]] = node
        node += 1


@kernel
def delete_row(tree: BoxTree, row: int) -> None:
    """Note that a row is gone; the caller marks it in its own `alive`."""
    node = tree.leaf[row]
    while node >= 0:
        tree.alive[node] -= 1
        node = tree.parent[node]


@kernel
def box_bound(tree: BoxTree, tables: LossTables, state: ClassState, node: int) -> float:
    """Return a lower bound on the joined loss of every row of a node (monotone losses)."""
    loss = tables.constant
    for r in range(len(state.low)):
        low = min(state.low[r], tree.range_max[node, r])
        high = max(state.high[r], tree.range_min[node, r])
        loss += range_loss(tables, r, low, high)
    for s in range(len(state.counts)):
        count = state.counts[s]
        smallest, largest = tree.set_min[node, s], tree.set_max[node, s]
        inside = count > state.listed.shape[1]
        for at in range(min(count, state.listed.shape[1])):
            if smallest <= state.listed[s, at] <= largest:
                inside = True
                break
        if not inside:
            count += 1
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(len(state.pair_low)):
        low_code = min(state.pair_low[p], tree.pair_max[node, p])
        high_code = max(state.pair_high[p], tree.pair_min[node, p])
        loss += ends_loss(tables, p, low_code, high_code)
    return loss


@kernel
def cheapest_row(tree: BoxTree, rows: KernelRows, state: ClassState, alive: Ints) -> int:
    """Return the first of the living rows whose joining gives the least record loss, or -1."""
    stack, stack_bounds = tree.stack, tree.stack_bounds
    best, best_loss = -1, np.inf
    if tree.alive[0] == 0:
        return best
    depth = 1
    stack[0] = 0
    stack_bounds[0] = box_bound(tree, rows.tables, state, 0)
    while depth > 0:
        depth -= 1
        node, bound = stack[depth], stack_bounds[depth]
        # At the same loss only an earlier row counts.
        if bound > best_loss or (bound == best_loss and tree.first[node] > best):
            continue
        child = tree.left[node]
        # A leaf: its living rows one by one.
        if child < 0:
            for at in range(tree.begin[node], tree.end[node]):
                row = tree.items[at]
                if alive[row] == 0:
                    continue
                loss = joined_loss(rows, state, row)
                if loss < best_loss or (loss == best_loss and row < best):
                    best, best_loss = row, loss
            continue
        # An inner box: the nearer half is opened first; one without living rows is not.
        near, far = child, child + 1
        near_bound = np.inf if tree.alive[near] == 0 else box_bound(tree, rows.tables, state, near)
        far_bound = np.inf if tree.alive[far] == 0 else box_bound(tree, rows.tables, state, far)
        if far_bound < near_bound:
            near, far = far, near
            near_bound, far_bound = far_bound, near_bound
        if far_bound < np.inf:
            stack[depth], stack_bounds[depth] = far, far_bound
            depth += 1
        if near_bound < np.inf:
            stack[depth], stack_bounds[depth] = near, near_bound
            depth += 1
    return best


@kernel
def _box_of_widths(
    constant: float,
    prices: Floats,
    low: Floats,
    high: Floats,
    least: Floats,
    greatest: Floats,
    node: int,
) -> float:
    """Return :func:`box_bound` of a loss of widths alone, or :func:`joined_loss` of a box of one.

    The same terms in the same order, of few arrays: to hand over the tuples of all takes longer
    than to add up.
    """
    loss = constant
    for r in range(len(prices)):
        loss += prices[r] * (max(high[r], least[node, r]) - min(low[r], greatest[node, r]))
    return loss


@kernel
def nearest_types(
    rows: KernelRows,
    tree: BoxTree,
    state: ClassState,
    counts: Ints,
    k: int,
    own: int,
    near: Codes,
    losses: Floats,
    looked: Ints,
) -> int:
    """List the types nearest to the opened one and return how many are needed for k rows.

    The loss is monotone. `counts`: (t,) rows of each type. `own`: the opened type, which comes
    first, whatever lies at distance 0. `near`: (k,) gets the types, the nearest first. `losses`: (k
    + 1,) gets what a record loses that is published as the class of both. `looked`: (1,) counts the
    nodes and rows that are looked at.
    """
    losses[0] = record_loss(rows.tables, state)
    near[0] = own
    held, total = 1, counts[own]
    if total >= k:
        return held
    tables = rows.tables
    constant, low, high, values = tables.constant, state.low, state.high, rows.range_values
    least, greatest, left = tree.range_min, tree.range_max, tree.left
    prices = tables.range_high
    # A range costs its width times a price, and nothing else costs anything.
    widths_alone = len(state.counts) == 0 and len(state.pair_low) == 0
    for r in range(len(low)):
        widths_alone = widths_alone and tables.range_low[r] + prices[r] == 0.0
    stack, bounds, depth, seen = tree.stack, tree.stack_bounds, 1, 0
    stack[0] = 0
    bounds[0] = box_bound(tree, tables, state, 0)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        # No row of the box is nearer than the last one that is needed.
        if total >= k and bounds[depth] >= losses[held - 1]:
            continue
        child = left[node]
        # An inner box: the nearer half is opened first, so it lies on top.
        if child >= 0:
            first, second = child, child + 1
            if widths_alone:
                first_bound = _box_of_widths(constant, prices, low, high, least, greatest, first)
                second_bound = _box_of_widths(constant, prices, low, high, least, greatest, second)
            else:
                first_bound = box_bound(tree, tables, state, first)
                second_bound = box_bound(tree, tables, state, second)
            if second_bound < first_bound:
                first, second = second, first
                first_bound, second_bound = second_bound, first_bound
            stack[depth], bounds[depth] = second, second_bound
            stack[depth + 1], bounds[depth + 1] = first, first_bound
            depth += 2
            seen += 2
            continue
        # A leaf: its rows one by one.
        seen += tree.end[node] - tree.begin[node]
        for at in range(tree.begin[node], tree.end[node]):
            row = tree.items[at]
            if row == own:
                continue
            if widths_alone:
                loss = _box_of_widths(constant, prices, low, high, values, values, row)
            else:
                loss = joined_loss(rows, state, row)
            if total >= k and loss >= losses[held - 1]:
                continue
            held, total = list_type(row, loss, counts, k, near, losses, held, total)
    looked[0] += seen
    return held


@kernel
def list_type(
    row: int, loss: float, counts: Ints, k: int, near: Codes, losses: Floats, held: int, total: int
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
