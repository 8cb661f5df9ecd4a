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
from anonymip.objectives.kernels.class_loss import pair_loss
from anonymip.objectives.kernels.growing_sets import (
    ChosenRows,
    GrowingSets,
    add_row,
    choose_row,
    copy_set,
    empty_set,
    losses_with,
    new_chosen_rows,
    new_growing_sets,
)
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
    """Classes while they grow, one a line, and behind them those that each step changed."""

    sets: GrowingSets  # what they cover
    joined: Annotated[Floats, "lines, rows"]  # record loss of the class with a row more
    #: Record loss, and number of rows.
    losses: Annotated[Floats, "lines"]
    sizes: Annotated[Ints, "lines"]


class Steps(Packed):
    """The steps of a search that places one row at each depth."""

    saved: int  # line of the class that the first step changed, as it was
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

    row_types: Annotated[Ints, "most"]  # types of the rows: what is asked
    found: Annotated[Ints, "most"]  # class of each row in the best release found: the answer
    labels: Annotated[Ints, "most"]  # class of each row so far; -1 for none
    rows: ChosenRows  # what the classes are made of
    #: Rows without a class, and what one loses with each.
    open: Annotated[Ints, "most"]
    losses: Annotated[Floats, "most"]
    #: Bounds on the record loss of each row: of the rows alone, and of the classes so far.
    least: Annotated[Floats, "most"]
    low: Annotated[Floats, "most"]
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
    tables, lines = rules.rows.tables, classes + rows
    growing = new_growing_sets(tables, lines, len(tables.set_columns))
    return RegroupWork.of_sizes(
        most=rows,
        k=rules.k,
        rows=new_chosen_rows(tables, rows),
        grown=Grown.of_sizes(rows=rows, lines=lines, sets=growing),
        steps=Steps.of_sizes(rows=rows, classes=classes, saved=classes),
        counts=new_counts(rules.diversity),
    )


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
def _copy_class(grown: Grown, of: int, to: int, size: int) -> None:
    """Copy the class of a line, with its losses for each of `size` rows more, to another one."""
    copy_set(grown.sets, of, to)
    for i in range(size):
        grown.joined[to, i] = grown.joined[of, i]
    grown.losses[to] = grown.losses[of]
    grown.sizes[to] = grown.sizes[of]


@kernel
def _place_row(work: RegroupWork, size: int, c: int, i: int) -> None:
    """Put a row into a class."""
    grown, terms = work.grown, work.rows.terms
    if grown.sizes[c] == 0:
        work.open[0] = i
        losses_with(terms, grown.sets, c, work.open, 0, 1, work.losses)
        grown.joined[c, i] = work.losses[0]
    grown.losses[c] = grown.joined[c, i]
    add_row(terms, grown.sets, c, c, i)
    grown.sizes[c] += 1
    work.labels[i] = c
    left = 0
    for other in range(size):
        if work.labels[other] < 0:
            work.open[left] = other
            left += 1
    losses_with(terms, grown.sets, c, work.open, 0, left, work.losses)
    for at in range(left):
        grown.joined[c, work.open[at]] = work.losses[at]


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
    for i in range(size):
        choose_row(rules.rows, work.rows, i, work.row_types[i])
        work.labels[i] = -1
    for c in range(work.steps.saved):
        empty_set(work.grown.sets, c)
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
            _copy_class(work.grown, work.steps.saved + depth, c, size)
            work.labels[work.steps.chosen[depth]] = -1
            continue
        # The best so far is a release all the same.
        if work.nodes[0] >= max_nodes:
            return best
        work.nodes[0] += 1
        c = work.steps.options[depth, work.steps.tried[depth]]
        work.steps.tried[depth] += 1
        i = work.steps.chosen[depth]
        _copy_class(work.grown, c, work.steps.saved + depth, size)
        _place_row(work, size, c, i)
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
        _copy_class(work.grown, work.steps.saved + depth, c, size)
        work.labels[i] = -1
