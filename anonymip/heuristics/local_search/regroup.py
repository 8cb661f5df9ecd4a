"""The best classes of the rows of a few classes, found depth first.

A row after the other joins a class or opens one. Next comes the row that can go to the fewest
classes, and of those the one that lies farthest from all. With a monotone record loss c two bounds
cut: a class S loses at least max(|S|, k) c(S) in the end, and a row without a class loses at least
the least c(S + row). What a row would cost in each class is kept and brought up to date for the one
class that a step changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonymip.heuristics.local_search.pool import PoolRules
from anonymip.heuristics.local_search.regroup_work import (
    RegroupWork,
    copy_class,
    find_least,
    lay_out,
    place_row,
)
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import (
    count_in,
    forget_row,
    may_be_diverse,
    start_counts,
)
from anonymip.runtime.kernels import kernel


class SearchNode(NamedTuple):
    """What is known before a row is placed.

    Parameters
    ----------
    opened
        Number of classes.
    extra
        Rows left when each class has k.
    placed, full
        Bounds on the summed loss: by the rows, and by the classes.
    worst
        Bound on the largest loss.
    floor
        What each row of `extra` loses at least.
    """

    opened: int
    extra: int
    placed: float
    full: float
    worst: float
    floor: float


@kernel
def _bounds_at(rules: PoolRules, work: RegroupWork, size: int, depth: int) -> SearchNode:
    """Return the bounds before the next row is placed; `low` gets those of the rows without one."""
    grown, k, opened = work.grown, rules.k, work.opened[depth]
    need, placed, full, worst, floor = 0, 0.0, 0.0, -np.inf, np.inf
    # `placed` counts the rows where they are, `full` as if each class already had k rows; `need` is
    # how many are lacking for that, and `extra` what is left when they are there.
    for c in range(opened):
        held, loss = grown.sizes[c], grown.losses[c]
        need += max(0, k - held)
        placed += held * loss
        full += max(k, held) * loss
        worst = max(worst, loss)
        floor = min(floor, loss)
    extra = size - depth - need
    # Each row without a class loses at least what the cheapest class that can take it will lose
    # with it, or in a new class what it loses with its nearest rows.
    for i in range(size):
        if work.labels[i] >= 0:
            continue
        low = np.inf
        if extra >= k:
            low = work.least[i]
            floor = min(floor, low)
        else:
            for c in range(opened):
                if grown.sizes[c] < (2 * k - 1 if extra else k) or _unbounded(rules, extra):
                    low = min(low, grown.joined[c, i])
            low = max(low, work.least[i])
        work.low[i] = low
        placed += low
        worst = max(worst, low)
    # The rows beyond those that fill the classes lose at least `floor`, the least loss of a class
    # that they may join or open.
    if extra > 0:
        full += extra * floor
    return SearchNode(opened, extra, placed, full, worst, floor)


@kernel
def _unbounded(rules: PoolRules, extra: int) -> bool:
    """Return whether a class may have any number of rows: a diversity can ask for many."""
    return extra > 0 and rules.diversity.values.shape[1] > 0


@kernel
def _bound_in(rules: PoolRules, work: RegroupWork, node: SearchNode, c: int, i: int) -> float:
    """Return a bound on what is lost if a class takes a row; infinite if it may not."""
    held, k = work.grown.sizes[c], rules.k
    if held >= (2 * k - 1 if node.extra else k) and not _unbounded(rules, node.extra):
        return np.inf
    old, new = work.grown.losses[c], work.grown.joined[c, i]
    if not rules.summed:
        return float(max(node.worst, new))
    placed = node.placed + held * (new - old) + max(new, work.least[i]) - work.low[i]
    full = node.full + max(held + 1, k) * new - max(held, k) * old
    if held >= k:
        full -= node.floor
    return float(max(placed, full))


@kernel
def _choose(rules: PoolRules, work: RegroupWork, size: int, depth: int, cutoff: float) -> bool:
    """Choose the row to place next and list its classes; false if the cutoff cannot be met."""
    node = _bounds_at(rules, work, size, depth)
    # The incumbent cannot be undercut from here.
    least = max(node.placed, node.full) if rules.summed else node.worst
    if least >= cutoff:
        return False
    may_open = node.extra >= rules.k
    fewest, farthest, chosen = node.opened + 2, -np.inf, -1
    # The row that the fewest classes can take is placed next, so that the tree stays narrow; a row
    # that no class can take ends this branch.
    for i in range(size):
        if work.labels[i] >= 0:
            continue
        count, nearest = 1 if may_open else 0, np.inf
        for c in range(node.opened):
            bound = _bound_in(rules, work, node, c, i)
            count += 1 if bound < cutoff else 0
            nearest = min(nearest, bound)
        if count == 0:
            return False
        if count < fewest or (count == fewest and nearest > farthest):
            fewest, farthest, chosen = count, nearest, i
    # The classes for it in the order of their bounds, the most promising first.
    count = 0
    for c in range(node.opened + (1 if may_open else 0)):
        bound = least if c == node.opened else _bound_in(rules, work, node, c, chosen)
        if bound >= cutoff:
            continue
        at = count
        while at > 0 and work.bounds[depth, at - 1] > bound:
            work.bounds[depth, at] = work.bounds[depth, at - 1]
            work.options[depth, at] = work.options[depth, at - 1]
            at -= 1
        work.bounds[depth, at] = bound
        work.options[depth, at] = c
        count += 1
    work.chosen[depth] = chosen
    work.listed[depth] = count
    work.tried[depth] = 0
    return True


@kernel
def _total(rules: PoolRules, work: RegroupWork, opened: int) -> float:
    total = 0.0 if rules.summed else -np.inf
    for c in range(opened):
        if rules.summed:
            total += work.grown.sizes[c] * work.grown.losses[c]
        else:
            total = max(total, work.grown.losses[c])
    return total


@kernel
def _all_diverse(rules: PoolRules, work: RegroupWork, size: int, opened: int) -> bool:
    """Return whether every class is diverse."""
    rule, counts = rules.diversity, work.counts
    for c in range(opened if rule.values.shape[1] else 0):
        start_counts(counts)
        for i in range(size):
            if work.labels[i] == c:
                count_in(rule, counts, work.row_types[i], 1, 0, 0)
        members = work.grown.sizes[c]
        diverse = may_be_diverse(rule, counts, 0, members, members)
        for i in range(size):
            if work.labels[i] == c:
                forget_row(rule, counts, work.row_types[i])
        if not diverse:
            return False
    return True


@kernel
def regroup(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    work: RegroupWork,
    size: int,
    cutoff: float,
    max_nodes: int,
) -> float:
    """Return the loss of the best classes of the first rows below the cutoff; infinite if none."""
    lay_out(rows, work, size)
    for c in range(len(work.grown.sizes)):
        work.grown.sizes[c] = 0
    find_least(tables, rows, rules, work, size)
    best, depth = np.inf, 0
    work.nodes[0] = 0
    work.opened[0] = 0
    if not _choose(rules, work, size, 0, cutoff):
        return best
    # At each turn `depth` rows are placed, and each of their steps has saved the class that it
    # changed as it was before.
    while True:
        # No class left that could lead below the cutoff: the last row is taken back.
        if work.tried[depth] == work.listed[depth] or (
            work.bounds[depth, work.tried[depth]] >= cutoff
        ):
            if depth == 0:
                return best
            depth -= 1
            c = work.options[depth, work.tried[depth] - 1]
            copy_class(work.grown, c, work.saved, depth, size)
            work.labels[work.chosen[depth]] = -1
            continue
        # The best so far is a release all the same.
        if work.nodes[0] >= max_nodes:
            return best
        work.nodes[0] += 1
        c = work.options[depth, work.tried[depth]]
        work.tried[depth] += 1
        i = work.chosen[depth]
        copy_class(work.saved, depth, work.grown, c, size)
        place_row(tables, work, size, c, i)
        opened = max(work.opened[depth], c + 1)
        depth += 1
        work.opened[depth] = opened
        # Rows are left: go on with the next, unless the bounds say no.
        if depth < size:
            if _choose(rules, work, size, depth, cutoff):
                continue
        else:
            # All rows are placed, and each class has k: no step left fewer rows than were lacking.
            total = _total(rules, work, opened)
            if total < cutoff and _all_diverse(rules, work, size, opened):
                best = cutoff = total
                for one in range(size):
                    work.found[one] = work.labels[one]
        # The last row is taken back, and its next class is tried.
        depth -= 1
        copy_class(work.grown, c, work.saved, depth, size)
        work.labels[i] = -1
