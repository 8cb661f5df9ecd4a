"""The best classes of the rows of a few classes, found depth first.

A row after the other joins a class or opens one. Next comes the row that can go to the fewest
classes, and of those the one that lies farthest from all. With a monotone record loss c two bounds
cut: a class S loses at least max(|S|, k) c(S) in the end, and a row without a class loses at least
the least c(S + row). What a row would cost in each class is kept and brought up to date for the one
class that a step changes.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from anonymip.heuristics.local_search.current_classes import ClassRules
from anonymip.objectives.kernels.class_loss import KernelRows, ends_loss, pair_loss, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import (
    ValueCounts,
    count_in,
    forget_row,
    may_be_diverse,
    new_counts,
    start_counts,
)
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Rows at most: a word holds a bit for each of the values of a set.
MOST_ROWS = 60


class Grown(Packed):
    """Classes while they grow, one a line."""

    #: Ends of the ranges.
    low: Annotated[Floats, "count, ranges"]
    high: Annotated[Floats, "count, ranges"]
    bits: Annotated[Ints, "count, sets"]  # values of the sets, a bit each
    #: Ranks of the range ends.
    first: Annotated[Ints, "count, pairs"]
    last: Annotated[Ints, "count, pairs"]
    joined: Annotated[Floats, "count, rows"]  # record loss of the class with a row more
    #: Record loss, and number of rows.
    losses: Annotated[Floats, "count"]
    sizes: Annotated[Ints, "count"]


class Steps(Packed):
    """The steps of a search that places one row at each depth."""

    saved: Grown  # the class that each step changed, as it was
    opened: Annotated[Ints, "rows + 1"]  # classes opened before each step
    chosen: Annotated[Ints, "rows"]  # row that each step places
    #: Classes that it can be placed in, and bounds on what is lost then.
    options: Annotated[Ints, "rows, classes"]
    bounds: Annotated[Floats, "rows, classes"]
    #: How many these are, and how many have been tried.
    listed: Annotated[Ints, "rows"]
    tried: Annotated[Ints, "rows"]


class RegroupWork(Packed):
    """Workspace for up to so many rows."""

    row_types: Annotated[Ints, "rows"]  # types of the rows: what is asked
    found: Annotated[Ints, "rows"]  # class of each row in the best release found: the answer
    labels: Annotated[Ints, "rows"]  # class of each row so far; -1 for none
    #: What the classes are made of; each value of a set is a bit.
    values: Annotated[Floats, "rows, ranges"]
    bits: Annotated[Ints, "rows, sets"]
    ranks: Annotated[Ints, "rows, pairs"]
    #: Bounds on the record loss of each row: of the rows alone, and of the classes so far.
    least: Annotated[Floats, "rows"]
    low: Annotated[Floats, "rows"]
    nearest: Annotated[Floats, "k"]  # losses of the pairs of a row with the nearest ones
    grown: Grown  # classes while they grow
    steps: Steps  # what led there
    counts: ValueCounts  # of the sensitive values of a class
    nodes: Annotated[Ints, "1"]  # steps taken


def new_regroup_work(rules: ClassRules, rows: int) -> RegroupWork:
    """Return the workspace for up to so many rows, which are no more than MOST_ROWS."""
    if rows > MOST_ROWS:
        raise ValueError(f"{rows} rows are more than the {MOST_ROWS} that fit")
    classes = rows // rules.k + 1
    ranges, sets, pairs = rules.rows.tables.term_counts
    sizes = {"rows": rows, "ranges": ranges, "sets": sets, "pairs": pairs}
    return RegroupWork.of_sizes(
        **sizes,
        k=rules.k,
        grown=Grown.of_sizes(**sizes, count=classes),
        steps=Steps.of_sizes(rows=rows, classes=classes, saved=Grown.of_sizes(**sizes, count=rows)),
        counts=new_counts(rules.diversity),
    )


@kernel
def _lay_out(rows: KernelRows, work: RegroupWork, size: int) -> None:
    """Copy the rows side by side; the values of a set become bits."""
    for i in range(size):
        row_type = work.row_types[i]
        work.labels[i] = -1
        for r in range(work.values.shape[1]):
            work.values[i, r] = rows.range_values[row_type, r]
        for p in range(work.ranks.shape[1]):
            work.ranks[i, p] = rows.pair_codes[row_type, p]
        for s in range(work.bits.shape[1]):
            used = np.int64(0)
            bit = np.int64(0)
            for before in range(i):
                used |= work.bits[before, s]
                if rows.set_codes[work.row_types[before], s] == rows.set_codes[row_type, s]:
                    bit = work.bits[before, s]
                    break
            work.bits[i, s] = bit if bit else used + 1


@kernel
def _loss_with(tables: LossTables, work: RegroupWork, c: int, i: int) -> float:
    """Return the record loss of a class with a row more; of an empty class, of the row alone."""
    grown = work.grown
    empty = grown.sizes[c] == 0
    loss = tables.constant
    for r in range(work.values.shape[1]):
        value = work.values[i, r]
        low = value if empty else min(grown.low[c, r], value)
        high = value if empty else max(grown.high[c, r], value)
        loss += range_loss(tables, r, low, high)
    for s in range(work.bits.shape[1]):
        bits = work.bits[i, s]
        if not empty:
            bits |= grown.bits[c, s]
        count = 0
        while bits:
            bits &= bits - 1
            count += 1
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(work.ranks.shape[1]):
        rank = work.ranks[i, p]
        first = rank if empty else min(grown.first[c, p], rank)
        last = rank if empty else max(grown.last[c, p], rank)
        loss += ends_loss(tables, p, first, last)
    return loss


@kernel
def _find_least(rules: ClassRules, work: RegroupWork, size: int) -> None:
    """Bound what each row loses: no less than with the k-th nearest row, itself counted."""
    nearest = work.nearest
    for i in range(size):
        for other in range(size):
            loss = pair_loss(rules.rows, work.row_types[i], work.row_types[other])
            if other >= rules.k and loss >= nearest[rules.k - 1]:
                continue
            at = min(other, rules.k - 1)
            while at > 0 and nearest[at - 1] > loss:
                nearest[at] = nearest[at - 1]
                at -= 1
            nearest[at] = loss
        work.least[i] = nearest[rules.k - 1]


@kernel
def _copy_class(to: Grown, at: int, of: Grown, c: int, size: int) -> None:
    """Copy a class of `of`, with its losses for each of `size` rows more, to a place of `to`."""
    for r in range(to.low.shape[1]):
        to.low[at, r] = of.low[c, r]
        to.high[at, r] = of.high[c, r]
    for s in range(to.bits.shape[1]):
        to.bits[at, s] = of.bits[c, s]
    for p in range(to.first.shape[1]):
        to.first[at, p] = of.first[c, p]
        to.last[at, p] = of.last[c, p]
    for i in range(size):
        to.joined[at, i] = of.joined[c, i]
    to.losses[at] = of.losses[c]
    to.sizes[at] = of.sizes[c]


@kernel
def _place_row(tables: LossTables, work: RegroupWork, size: int, c: int, i: int) -> None:
    """Put a row into a class."""
    grown = work.grown
    first = grown.sizes[c] == 0
    grown.losses[c] = _loss_with(tables, work, c, i) if first else grown.joined[c, i]
    # Value by value: to assign rows of arrays takes numba two seconds to compile.
    for r in range(work.values.shape[1]):
        value = work.values[i, r]
        grown.low[c, r] = value if first else min(grown.low[c, r], value)
        grown.high[c, r] = value if first else max(grown.high[c, r], value)
    for s in range(work.bits.shape[1]):
        grown.bits[c, s] = work.bits[i, s] | (0 if first else grown.bits[c, s])
    for p in range(work.ranks.shape[1]):
        rank = work.ranks[i, p]
        grown.first[c, p] = rank if first else min(grown.first[c, p], rank)
        grown.last[c, p] = rank if first else max(grown.last[c, p], rank)
    grown.sizes[c] += 1
    work.labels[i] = c
    for other in range(size):
        if work.labels[other] < 0:
            grown.joined[c, other] = _loss_with(tables, work, c, other)


class SearchNode(NamedTuple):
    """What is known before a row is placed."""

    opened: int  # number of classes
    extra: int  # rows left when each class has k
    #: Bounds on the summed loss: by the rows, and by the classes.
    placed: float
    full: float
    worst: float  # bound on the largest loss
    floor: float  # what each row of `extra` loses at least


@kernel
def _bounds_at(rules: ClassRules, work: RegroupWork, size: int, depth: int) -> SearchNode:
    """Return the bounds before the next row is placed; `low` gets those of the rows without one."""
    grown, k, opened = work.grown, rules.k, work.steps.opened[depth]
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
def _unbounded(rules: ClassRules, extra: int) -> bool:
    """Return whether a class may have any number of rows: a diversity can ask for many."""
    return extra > 0 and rules.diversity.values.shape[1] > 0


@kernel
def _bound_in(rules: ClassRules, work: RegroupWork, node: SearchNode, c: int, i: int) -> float:
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
def _choose(rules: ClassRules, work: RegroupWork, size: int, depth: int, cutoff: float) -> bool:
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
        while at > 0 and work.steps.bounds[depth, at - 1] > bound:
            work.steps.bounds[depth, at] = work.steps.bounds[depth, at - 1]
            work.steps.options[depth, at] = work.steps.options[depth, at - 1]
            at -= 1
        work.steps.bounds[depth, at] = bound
        work.steps.options[depth, at] = c
        count += 1
    work.steps.chosen[depth] = chosen
    work.steps.listed[depth] = count
    work.steps.tried[depth] = 0
    return True


@kernel
def _total(rules: ClassRules, work: RegroupWork, opened: int) -> float:
    total = 0.0 if rules.summed else -np.inf
    for c in range(opened):
        if rules.summed:
            total += work.grown.sizes[c] * work.grown.losses[c]
        else:
            total = max(total, work.grown.losses[c])
    return total


@kernel
def _all_diverse(rules: ClassRules, work: RegroupWork, size: int, opened: int) -> bool:
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
    rules: ClassRules, work: RegroupWork, size: int, cutoff: float, max_nodes: int
) -> float:
    """Return the loss of the best classes of the first rows below the cutoff; infinite if none."""
    _lay_out(rules.rows, work, size)
    for c in range(len(work.grown.sizes)):
        work.grown.sizes[c] = 0
    _find_least(rules, work, size)
    best, depth = np.inf, 0
    work.nodes[0] = 0
    work.steps.opened[0] = 0
    if not _choose(rules, work, size, 0, cutoff):
        return best
    # At each turn `depth` rows are placed, and each of their steps has saved the class that it
    # changed as it was before.
    while True:
        # No class left that could lead below the cutoff: the last row is taken back.
        if work.steps.tried[depth] == work.steps.listed[depth] or (
            work.steps.bounds[depth, work.steps.tried[depth]] >= cutoff
        ):
            if depth == 0:
                return best
            depth -= 1
            c = work.steps.options[depth, work.steps.tried[depth] - 1]
            _copy_class(work.grown, c, work.steps.saved, depth, size)
            work.labels[work.steps.chosen[depth]] = -1
            continue
        # The best so far is a release all the same.
        if work.nodes[0] >= max_nodes:
            return best
        work.nodes[0] += 1
        c = work.steps.options[depth, work.steps.tried[depth]]
        work.steps.tried[depth] += 1
        i = work.steps.chosen[depth]
        _copy_class(work.steps.saved, depth, work.grown, c, size)
        _place_row(rules.rows.tables, work, size, c, i)
        opened = max(work.steps.opened[depth], c + 1)
        depth += 1
        work.steps.opened[depth] = opened
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
        _copy_class(work.grown, c, work.steps.saved, depth, size)
        work.labels[i] = -1
