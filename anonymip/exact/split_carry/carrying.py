"""Split & Carry as one compiled loop: fill a window, solve it, fix classes, carry the rest over.

A window holds rows in the order of the chain: those carried over first, which are older, then the
new ones. Which rows of a solved one are fixed and which are carried over is one rule for all
engines; it knows classes, not losses.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from anonymip.assignments import SUPPRESSED
from anonymip.exact.classes.best_classes import PROVEN as SOLVED
from anonymip.exact.classes.best_classes import labelled_loss, solve_rows
from anonymip.exact.classes.set_search import SmallRules, SmallWork
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.state import (
    BOUND,
    CARRIED,
    FROM_BEFORE,
    LINKS,
    LOSS,
    NEXT_LABEL,
    NO_START,
    OBJECTIVE,
    OPEN,
    PROVEN,
    READ,
    SIZE,
    START,
    Chain,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    open_class,
    record_loss,
)
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    diversity_rule,
    forget_row,
    may_be_diverse,
    new_counts,
    start_counts,
)
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: How an attribute is published.
_RANGE, _SET, _NODE = 0, 1, 2
_MODES = {"range": _RANGE, "set": _SET, "node": _NODE}


class WindowCells(Packed):
    """The values of records by their places in the order, and how they are published."""

    codes: Codes  # (n, m) int32, codes by place; leaves where a node is published
    modes: Ints  # (m,) int64, how an attribute is published
    #: Of the attributes published as nodes: where their trees begin, the last leaf below each node,
    #: its parent.
    node_start: Ints
    node_last: Ints
    node_parent: Ints


def window_cells(problem: Problem, records: Ints) -> WindowCells:
    """Return the cells of a problem whose records come in the given order."""
    microdata = problem.microdata
    codes = microdata.codes[records]
    modes = np.zeros(microdata.m, np.int64)
    starts, last, parent = np.zeros(microdata.m, np.int64), [-1], [-1]
    for a, attribute in enumerate(microdata.attributes):
        modes[a] = _MODES[str(attribute.publish)]
        if attribute.publish == "node" and attribute.hierarchy is not None:
            tree = attribute.hierarchy.tree
            codes[:, a] = microdata.leaves(a)[codes[:, a]]
            starts[a] = len(last)
            last += tree.last.tolist()
            parent += tree.parent.tolist()
    return WindowCells(
        np.ascontiguousarray(codes),
        modes,
        starts,
        np.array(last, np.int64),
        np.array(parent, np.int64),
    )


@kernel
def is_first(labels: Ints, begin: int, at: int) -> bool:
    """Return whether no row from `begin` on and before `at` has the label of `at`."""
    for before in range(begin, at):  # noqa: SIM110 - numba compiles no generators
        if labels[before] == labels[at]:
            return False
    return True


@kernel
def _join_equal(rule: CarryRule, places: Ints, size: int, labels: Ints, outcome: Outcome) -> None:
    """Give the classes numbers in the order of first appearance, those of equal cells the same.

    If the rule merges none, each gets a number of its own. `outcome.joint` receives the numbers.
    """
    held, joint, marks = 0, outcome.joint, outcome.marks
    for at in range(size):
        joint[at] = SUPPRESSED
        if labels[at] == SUPPRESSED:
            continue
        if not is_first(labels, 0, at):
            joint[at] = marks[labels[at]]
            continue
        # The first row of a class: marks hold the number that each class before it has got.
        found = -1
        if rule.merged:
            # The first rows of all classes that are different so far: at most one has equal cells.
            for other in range(at):
                if (
                    labels[other] != SUPPRESSED
                    and is_first(joint, 0, other)
                    and _are_equal(rule.cells, places, size, labels, labels[other], labels[at])
                ):
                    found = joint[other]
                    break
        if found < 0:
            found = held
            held += 1
        marks[labels[at]] = found
        joint[at] = found


@kernel
def _are_equal(
    cells: WindowCells, places: Ints, size: int, labels: Ints, one: int, other: int
) -> bool:
    """Return whether two classes are published with equal cells."""
    for a in range(len(cells.modes)):
        low, other_low, high, other_high = 2**31 - 1, 2**31 - 1, -1, -1
        for at in range(size):
            code: int = np.int64(cells.codes[places[at], a])  # type: ignore[assignment]
            if labels[at] == one:
                low, high = min(low, code), max(high, code)
            elif labels[at] == other:
                other_low, other_high = min(other_low, code), max(other_high, code)
        if cells.modes[a] == _NODE:
            if _node(cells, a, low, high) != _node(cells, a, other_low, other_high):
                return False
            continue
        if low != other_low or high != other_high:
            return False
        if cells.modes[a] != _SET:
            continue
        # Each value of the one is a value of the other.
        for at in range(size):
            if labels[at] != one and labels[at] != other:
                continue
            found, mate = False, other if labels[at] == one else one
            for place in range(size):
                same = cells.codes[places[place], a] == cells.codes[places[at], a]
                found = found or (labels[place] == mate and same)
            if not found:
                return False
    return True


@kernel
def _node(cells: WindowCells, attribute: int, low: int, high: int) -> int:
    """Return the lowest node above two leaves."""
    start = cells.node_start[attribute]
    node = low
    while cells.node_last[start + node] < high:
        node = cells.node_parent[start + node]
    return node


class CarryRule(NamedTuple):
    """How windows are filled, and what is carried over; records by their places in the order."""

    k: int  # least rows of a class
    new: int  # new rows of a window
    rows: int  # 0, or rows of a window: as many new ones as fill it up
    boundary: int  # the last so many rows of a window are its boundary
    #: Of a boundary class of fewer than 2k rows only what exceeds k is carried over, the rows that
    #: contribute least to its loss (Section 6); else the whole class.
    least: bool
    accepted: int  # 0, or so many classes of a window of one size are fixed, whatever the boundary
    cheapest: bool  # whether these are the classes of least record loss; else the oldest
    #: Whether classes of equal cells are one. They are not where the loss looks at members.
    merged: bool
    cells: WindowCells  # what is published of the records
    #: What a class must hold of the sensitive columns; its rows are the places.
    diversity: DiversityRule


class Outcome(Packed):
    """What becomes of the rows of a window, of up to `most` rows."""

    #: Class of each row once classes of equal cells are one, numbered from 0 in the order of first
    #: appearance; -1 suppressed.
    joint: Annotated[Ints, "most"]
    fixed: Annotated[Ints, "most"]  # the same of rows that are fixed; -2 of those carried over
    marks: Annotated[Ints, "most"]  # workspace
    #: Where the rule asks for losses: for `least` of each row the loss of its class without it, for
    #: `cheapest` the record loss of its class.
    losses: Annotated[Floats, "most"]
    counts: ValueCounts  # of the sensitive values of a class


def new_outcome(rule: CarryRule, most: int) -> Outcome:
    """Return room for windows of up to `most` rows."""
    return Outcome.of_sizes(most=most, counts=new_counts(rule.diversity))


def carry_rule(problem: Problem, records: Ints, options: ChainOptions) -> CarryRule:
    """Return the rule for a problem whose records come in the given order."""
    return CarryRule(
        problem.k,
        options.S * problem.k,
        options.fixed,
        options.boundary or problem.k,
        options.carry == "least",
        options.accepted_of(problem.k),
        options.prefer == "loss",
        problem.compiled.tier != "members",
        window_cells(problem, records),
        diversity_rule(problem.diversity, problem.microdata).of_rows(records),
    )


@kernel
def divide_window(
    rule: CarryRule, places: Ints, size: int, labels: Ints, last: bool, outcome: Outcome
) -> None:
    """Decide which rows of a window are fixed and which are carried over.

    Classes of equal cells are one. A class that touches the boundary is carried over whole if it
    has fewer than 2k rows; else exactly k of its rows are, those nearest the window's end, and the
    rest is a class. Under a diversity the rest must be diverse; where it is not, those of the
    window's own classes are carried over that touch the boundary. So are suppressed rows of the
    boundary.

    `places`: (>= size,) places of the window's rows, ascending. `labels`: their classes, numbered
    from 0 in the order of first appearance; -1 suppressed. `last`: whether no window follows:
    everything is fixed. `outcome`: with losses where the rule asks for them; receives the answer.
    Complexity: O(s c m) for c classes of s rows in all, and O(c s^2 m) where sets are compared.
    """
    fixed = outcome.fixed
    _join_equal(rule, places, size, labels, outcome)
    # All rows are fixed until the rule says otherwise.
    for at in range(size):
        fixed[at] = outcome.joint[at]
    if last:
        return
    if rule.accepted > 0:
        _fix_accepted(rule, size, labels, outcome)
        return
    # Each class with a row in the boundary is looked at once, at the first of these rows.
    first = max(0, size - rule.boundary)
    for at in range(first, size):
        if outcome.joint[at] == SUPPRESSED:
            fixed[at] = OPEN
        elif is_first(outcome.joint, first, at):
            _carry_class(rule, places, size, labels, outcome.joint[at], outcome)


@kernel
def _carry_class(
    rule: CarryRule, places: Ints, size: int, labels: Ints, label: int, outcome: Outcome
) -> None:
    """Carry over those rows of a boundary class that have to be."""
    fixed, joint, marks = outcome.fixed, outcome.joint, outcome.marks
    losses, counts, rows = outcome.losses, outcome.counts, 0
    for at in range(size):
        rows += joint[at] == label
    # Marked are the rows to carry over where the others, at least k of them, can be a class.
    leaving = rows
    if rows >= 2 * rule.k:
        # Those that are nearest the window's end.
        leaving = left = rule.k
        for at in range(size - 1, -1, -1):
            if joint[at] == label:
                marks[at] = 1 if left > 0 else 0
                left -= 1
    elif rule.least:
        leaving = rows - rule.k
        # Those without which the class loses most; of equal ones those nearest the end.
        marks[:size] = 0
        for _ in range(leaving):
            best = -1
            for at in range(size - 1, -1, -1):
                unmarked = joint[at] == label and marks[at] == 0
                if unmarked and (best < 0 or losses[at] > losses[best]):
                    best = at
            marks[best] = 1
    if leaving < rows:
        start_counts(counts)
        for at in range(size):
            if joint[at] == label and marks[at] == 0:
                count_in(rule.diversity, counts, places[at], 1, 0, 0)
        for at in range(size):
            if joint[at] == label:
                forget_row(rule.diversity, counts, places[at])
        if may_be_diverse(rule.diversity, counts, 0, rows - leaving, rows - leaving):
            for at in range(size):
                if joint[at] == label and marks[at] == 1:
                    fixed[at] = OPEN
            return
    # All are carried over; but if a part should have been, the window's own classes in it that do
    # not touch the boundary are fixed, since the solver found each of them diverse.
    first = max(0, size - rule.boundary)
    for at in range(size):
        if joint[at] != label:
            continue
        for other in range(first, size):
            if labels[other] == labels[at] or leaving == rows:
                fixed[at] = OPEN
                break


@kernel
def _fix_accepted(rule: CarryRule, size: int, labels: Ints, outcome: Outcome) -> None:
    """Fix so many classes of a window of one size; all of it if there is no class in it."""
    fixed, joint, marks, losses = outcome.fixed, outcome.joint, outcome.marks, outcome.losses
    # Such a window fixes classes as they were found, so those of equal cells stay several.
    classes = 0
    for at in range(size):
        classes = max(classes, labels[at] + 1)
        marks[at] = 0
        joint[at] = labels[at]
        fixed[at] = labels[at]
    if classes == 0:
        return
    # Marked are the rows of accepted classes; each turn accepts the best of the other classes.
    for _ in range(min(rule.accepted, classes)):
        best, end = -1, size
        for at in range(size):
            if labels[at] == SUPPRESSED or marks[at] == 1:
                continue
            last = at
            if not rule.cheapest:
                last = size - 1
                while labels[last] != labels[at]:
                    last -= 1
            if best < 0 or (losses[at] < losses[best] if rule.cheapest else last < end):
                best, end = at, last
        for at in range(size):
            if labels[at] == labels[best]:
                marks[at] = 1
    # Carried over are all other classes, and suppressed rows of the boundary.
    for at in range(size):
        classed = labels[at] != SUPPRESSED
        if (classed and marks[at] == 0) or (not classed and at >= size - rule.boundary):
            fixed[at] = OPEN


@kernel
def window_size(rule: CarryRule, chain: Chain, chunks: int) -> int:
    """Return the number of rows of the next window if it takes in so many chunks of new rows.

    Fewer rows than k at the end belong to the window before.
    """
    carried: int = chain.cursor[CARRIED]
    unread: int = len(chain.records) - chain.cursor[READ]
    new = rule.new
    if rule.rows > 0:
        new = max(rule.k, rule.rows - carried)
    new = min(unread, new + (chunks - 1) * rule.new)
    if unread - new < rule.k:
        new = unread
    return carried + new


@kernel
def move_on(chain: Chain, size: int, places: Ints, outcome: Outcome) -> None:
    """Label the fixed rows of a window and carry the others over."""
    fixed, joint, number = outcome.fixed, outcome.joint, outcome.marks
    read = chain.cursor[READ] + size - chain.cursor[CARRIED]
    # A class gets the chain's next label at its first fixed row; suppressed rows are fixed as such.
    number[:size] = -1
    for at in range(size):
        label = fixed[at]
        if label >= 0:
            if number[label] < 0:
                number[label] = chain.cursor[NEXT_LABEL]
                chain.cursor[NEXT_LABEL] += 1
            chain.labels[places[at]] = number[label]
        elif label == SUPPRESSED:
            chain.labels[places[at]] = SUPPRESSED
    # Rows carried over keep their order, oldest first, and are numbered by class among themselves.
    number[:size] = -1
    carried, classes = 0, 0
    for at in range(size):
        if fixed[at] != OPEN:
            continue
        chain.carried[carried] = places[at]
        chain.started[carried] = SUPPRESSED
        if joint[at] >= 0:
            if number[joint[at]] < 0:
                number[joint[at]] = classes
                classes += 1
            chain.started[carried] = number[joint[at]]
        carried += 1
    chain.cursor[CARRIED] = carried
    chain.cursor[READ] = read


#: What a step ends with: its work is done, or the next window needs another solver.
ADVANCED, STUCK = 0, 1


@kernel
def advance_links(
    rules: SmallRules,
    work: SmallWork,
    state: ClassState,
    rule: CarryRule,
    chain: Chain,
    outcome: Outcome,
    places: Ints,
    max_nodes: int,
    amount: int,
) -> int:
    """Solve up to `amount` links; stop in front of a window that is not solved within max_nodes."""
    n = len(chain.records)
    for _ in range(amount):
        # Here all links so far are in the table, and all their rows are fixed or carried over; a
        # step that ends here leaves the chain as the next one needs it.
        carried = chain.cursor[CARRIED]
        size = window_size(rule, chain, 1)
        if size == 0:
            break
        # Too large a window, or one that the search does not prove, is left to another engine.
        if size > len(places):
            return STUCK
        for at in range(size):
            is_carried = at < carried
            places[at] = chain.carried[at] if is_carried else chain.cursor[READ] + at - carried
        if solve_rows(rules, work, places, size, max_nodes) != SOLVED:
            return STUCK
        # The last window fixes everything, so nobody asks what its classes lose.
        last = places[size - 1] == n - 1
        if (rule.least or rule.cheapest) and not last:
            fill_losses(rules.rows, state, rule, places, size, work.labels, outcome.losses)
        divide_window(rule, places, size, work.labels, last, outcome)
        # The link's objective is that of all its rows; the chain sums up what is fixed alone.
        link = chain.table[chain.cursor[LINKS]]
        link[SIZE], link[FROM_BEFORE], link[START] = size, carried, NO_START
        link[OBJECTIVE], link[BOUND], link[PROVEN] = work.result[0], work.result[1], 1.0
        chain.cursor[LINKS] += 1
        loss = labelled_loss(rules.rows, state, rules.summed, places, size, outcome.fixed)
        if rules.summed:
            chain.sums[LOSS] += loss
        else:
            chain.sums[LOSS] = max(chain.sums[LOSS], loss)
        move_on(chain, size, places, outcome)
    return ADVANCED


@kernel
def fill_losses(
    rows: KernelRows,
    state: ClassState,
    rule: CarryRule,
    places: Ints,
    size: int,
    labels: Ints,
    losses: Floats,
) -> None:
    """Write what the carry rule asks for: record losses of the classes, whole or without a row."""
    for at in range(size):
        if labels[at] < 0:
            continue
        members = 0
        for other in range(size):
            if labels[other] != labels[at] or (rule.least and other == at):
                continue
            if members == 0:
                open_class(rows, state, places[other])
            else:
                join_class(rows, state, places[other])
            members += 1
        losses[at] = record_loss(rows.tables, state)
