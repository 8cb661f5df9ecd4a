"""The carry rule of Split & Carry: which rows of a solved window are settled, which go on.

A window holds rows in the order of the chain: the carried ones first, which are older, then the
new ones. One rule for all engines, compiled; it knows classes, not losses.

One file, since it is one rule, whose steps read the same window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.exact.split_carry.state import OPEN
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
from anonymip.runtime.kernels import kernel

#: How an attribute is published.
_RANGE, _SET, _NODE = 0, 1, 2
_MODES = {"range": _RANGE, "set": _SET, "node": _NODE}


class CarryRule(NamedTuple):
    """What goes on from one window to the next, for records by their places in the order.

    Parameters
    ----------
    k
        Least rows of a class.
    boundary
        The last so many rows of a window are its boundary.
    least
        Of a boundary class of fewer than 2k rows only what exceeds k goes, the rows that
        contribute least to its loss (Section 6); else the whole class.
    accepted
        0, or so many classes of a window of fixed size are settled, whatever the boundary.
    cheapest
        Whether these are the classes of least record loss; else the oldest.
    merged
        Whether classes of equal cells are one. They are not where the loss looks at members.
    cells
        (n, m) int32, codes by place; leaves where a node is published.
    modes
        (m,) int64, how an attribute is published.
    node_start, node_last, node_parent
        Of the attributes published as nodes: where their trees begin, the last leaf below each
        node, its parent.
    diversity
        What a class must hold of the sensitive columns; its rows are the places.
    """

    k: int
    boundary: int
    least: bool
    accepted: int
    cheapest: bool
    merged: bool
    cells: NDArray[np.int32]
    modes: NDArray[np.int64]
    node_start: NDArray[np.int64]
    node_last: NDArray[np.int64]
    node_parent: NDArray[np.int64]
    diversity: DiversityRule

    @property
    def needs_losses(self) -> bool:
        """Whether it asks what rows or classes cost."""
        return self.least or self.cheapest


class Outcome(NamedTuple):
    """What becomes of the rows of a window.

    Parameters
    ----------
    joint
        (size,) class of each row once classes of equal cells are one, numbered from 0 in the order
        of first appearance; -1 suppressed.
    settled
        (size,) the same for the rows that stay; -2 for those that go on.
    marks
        (size,) workspace.
    counts
        Of the sensitive values of a class.
    """

    joint: NDArray[np.int64]
    settled: NDArray[np.int64]
    marks: NDArray[np.int64]
    counts: ValueCounts


def new_outcome(rule: CarryRule, most: int) -> Outcome:
    """Return room for windows of up to `most` rows."""
    return Outcome(
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        new_counts(rule.diversity),
    )


def carry_rule(
    problem: Problem,
    records: NDArray[np.int64],
    *,
    boundary: int,
    least: bool = False,
    accepted: int = 0,
    cheapest: bool = False,
) -> CarryRule:
    """Return the rule for a problem whose records come in the given order."""
    microdata = problem.microdata
    cells = microdata.codes[records]
    modes = np.zeros(microdata.m, np.int64)
    starts, last, parent = np.zeros(microdata.m, np.int64), [-1], [-1]
    for a, attribute in enumerate(microdata.attributes):
        modes[a] = _MODES[str(attribute.publish)]
        if attribute.publish == "node" and attribute.hierarchy is not None:
            tree = attribute.hierarchy.tree
            cells[:, a] = microdata.leaves(a)[cells[:, a]]
            starts[a] = len(last)
            last += tree.last.tolist()
            parent += tree.parent.tolist()
    return CarryRule(
        problem.k,
        boundary,
        least,
        accepted,
        cheapest,
        problem.compiled.tier != "members",
        np.ascontiguousarray(cells),
        modes,
        starts,
        np.array(last, np.int64),
        np.array(parent, np.int64),
        diversity_rule(problem.diversity, microdata).of_rows(records),
    )


@kernel
def settle_window(
    rule: CarryRule,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    losses: NDArray[np.float64],
    last: bool,
    outcome: Outcome,
) -> None:
    """Decide which rows of a window stay and which go on.

    Classes of equal cells are one. A class that touches the boundary goes on whole if it has
    fewer than 2k rows; else exactly k of its rows go, those nearest the window's end, and the
    rest is a class. Under a diversity the rest must be diverse; where it is not, those of the
    window's own classes go that touch the boundary. Suppressed rows of the boundary go on.

    Parameters
    ----------
    rule
        What goes on.
    places
        (>= size,) places of the window's rows, ascending.
    size
        Rows of the window.
    labels
        (>= size,) class of each row, numbered from 0 in the order of first appearance; -1
        suppressed.
    losses
        (>= size,) where the rule asks for losses: for `least` of each row the loss of its class
        without it, for `cheapest` the record loss of its class.
    last
        Whether no window follows: everything stays.
    outcome
        Receives the answer.

    Notes
    -----
    Complexity: O(s c m) for c classes of s rows in all, and O(c s^2 m) where sets are compared.
    """
    settled = outcome.settled
    _join_equal(rule, places, size, labels, outcome)
    for at in range(size):
        settled[at] = outcome.joint[at]
    if last:
        return
    if rule.accepted > 0:
        _keep_accepted(rule, size, labels, losses, outcome)
        return
    first = max(0, size - rule.boundary)
    for at in range(first, size):
        if outcome.joint[at] == SUPPRESSED:
            settled[at] = OPEN
        elif _is_first(outcome.joint, first, at):
            _open_class(rule, places, size, labels, losses, outcome.joint[at], outcome)


@kernel
def _is_first(labels: NDArray[np.int64], begin: int, at: int) -> bool:
    """Return whether no row from `begin` on and before `at` has the label of `at`."""
    for before in range(begin, at):  # noqa: SIM110 - numba compiles no generators
        if labels[before] == labels[at]:
            return False
    return True


@kernel
def _open_class(
    rule: CarryRule,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    losses: NDArray[np.float64],
    label: int,
    outcome: Outcome,
) -> None:
    """Let those rows of a boundary class go on that have to."""
    settled, joint, marks = outcome.settled, outcome.joint, outcome.marks
    rows = 0
    for at in range(size):
        rows += joint[at] == label
    leaving = rows
    if rows >= 2 * rule.k:
        leaving = rule.k
        _mark_last(size, joint, label, leaving, marks)
    elif rule.least:
        leaving = rows - rule.k
        _mark_cheapest(size, joint, losses, label, leaving, marks)
    if leaving < rows and _rest_is_diverse(rule, places, size, label, outcome):
        for at in range(size):
            if joint[at] == label and marks[at] == 1:
                settled[at] = OPEN
        return
    # All go, save the window's own classes within it that do not touch the boundary.
    first = max(0, size - rule.boundary)
    for at in range(size):
        if joint[at] != label:
            continue
        for other in range(first, size):
            if labels[other] == labels[at] or leaving == rows:
                settled[at] = OPEN
                break


@kernel
def _mark_last(
    size: int, joint: NDArray[np.int64], label: int, leaving: int, marks: NDArray[np.int64]
) -> None:
    """Mark the rows of a class that are nearest the window's end."""
    left = leaving
    for at in range(size - 1, -1, -1):
        if joint[at] == label:
            marks[at] = 1 if left > 0 else 0
            left -= 1


@kernel
def _mark_cheapest(
    size: int,
    joint: NDArray[np.int64],
    losses: NDArray[np.float64],
    label: int,
    leaving: int,
    marks: NDArray[np.int64],
) -> None:
    """Mark the rows without which the class loses most; of equal ones those nearest the end."""
    for at in range(size):
        marks[at] = 0
    for _ in range(leaving):
        best = -1
        for at in range(size - 1, -1, -1):
            if joint[at] == label and marks[at] == 0 and (best < 0 or losses[at] > losses[best]):
                best = at
        marks[best] = 1


@kernel
def _rest_is_diverse(
    rule: CarryRule, places: NDArray[np.int64], size: int, label: int, outcome: Outcome
) -> bool:
    """Return whether the unmarked rows of a class are diverse."""
    joint, marks, counts, rows = outcome.joint, outcome.marks, outcome.counts, 0
    start_counts(counts)
    for at in range(size):
        if joint[at] == label and marks[at] == 0:
            count_in(rule.diversity, counts, places[at], 1, 0, 0)
            rows += 1
    for at in range(size):
        if joint[at] == label:
            forget_row(rule.diversity, counts, places[at])
    return may_be_diverse(rule.diversity, counts, 0, rows, rows)


@kernel
def _keep_accepted(
    rule: CarryRule,
    size: int,
    labels: NDArray[np.int64],
    losses: NDArray[np.float64],
    outcome: Outcome,
) -> None:
    """Settle so many classes of a window of fixed size; all of it if there is no class in it."""
    settled, joint, marks = outcome.settled, outcome.joint, outcome.marks
    classes = 0
    for at in range(size):
        classes = max(classes, labels[at] + 1)
        marks[at] = 0
        joint[at] = labels[at]
        settled[at] = labels[at]
    if classes == 0:
        return
    for _ in range(min(rule.accepted, classes)):
        best, end = -1, size
        for at in range(size):
            if labels[at] == SUPPRESSED or marks[at] == 1:
                continue
            last = at if rule.cheapest else _last_of(labels, size, labels[at])
            if best < 0 or (losses[at] < losses[best] if rule.cheapest else last < end):
                best, end = at, last
        for at in range(size):
            if labels[at] == labels[best]:
                marks[at] = 1
    for at in range(size):
        classed = labels[at] != SUPPRESSED
        if (classed and marks[at] == 0) or (not classed and at >= size - rule.boundary):
            settled[at] = OPEN


@kernel
def _last_of(labels: NDArray[np.int64], size: int, label: int) -> int:
    """Return the last row of a class."""
    at = size - 1
    while labels[at] != label:
        at -= 1
    return at


@kernel
def _join_equal(
    rule: CarryRule,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    outcome: Outcome,
) -> None:
    """Give the classes new numbers, those of equal cells the same."""
    joint, marks = outcome.joint, outcome.marks
    held = 0
    for at in range(size):
        joint[at] = SUPPRESSED
        if labels[at] == SUPPRESSED:
            continue
        if not _is_first(labels, 0, at):
            joint[at] = marks[labels[at]]
            continue
        # The first row of a class; marks tell the new number of each old one.
        found = -1
        if rule.merged:
            for other in range(at):
                if (
                    labels[other] != SUPPRESSED
                    and _is_first(joint, 0, other)
                    and _are_equal(rule, places, size, labels, labels[other], labels[at])
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
    rule: CarryRule,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    one: int,
    other: int,
) -> bool:
    """Return whether two classes are published with equal cells."""
    for a in range(len(rule.modes)):
        low, high = _ends(rule, places, size, labels, one, a)
        other_low, other_high = _ends(rule, places, size, labels, other, a)
        if rule.modes[a] == _NODE:
            if _node(rule, a, low, high) != _node(rule, a, other_low, other_high):
                return False
            continue
        if low != other_low or high != other_high:
            return False
        if rule.modes[a] == _SET and not (
            _covers(rule, places, size, labels, one, other, a)
            and _covers(rule, places, size, labels, other, one, a)
        ):
            return False
    return True


@kernel
def _ends(
    rule: CarryRule,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    label: int,
    attribute: int,
) -> tuple[int, int]:
    """Return the least and the greatest code of a class."""
    low, high = 2**31 - 1, -1
    for at in range(size):
        if labels[at] == label:
            code: int = np.int64(rule.cells[places[at], attribute])  # type: ignore[assignment]
            low = min(low, code)
            high = max(high, code)
    return low, high


@kernel
def _node(rule: CarryRule, attribute: int, low: int, high: int) -> int:
    """Return the lowest node above two leaves."""
    start = rule.node_start[attribute]
    node = low
    while rule.node_last[start + node] < high:
        node = rule.node_parent[start + node]
    return node


@kernel
def _covers(
    rule: CarryRule,
    places: NDArray[np.int64],
    size: int,
    labels: NDArray[np.int64],
    one: int,
    other: int,
    attribute: int,
) -> bool:
    """Return whether a class holds all values of another one."""
    for at in range(size):
        if labels[at] != other:
            continue
        code = rule.cells[places[at], attribute]
        found = False
        for mine in range(size):
            if labels[mine] == one and rule.cells[places[mine], attribute] == code:
                found = True
                break
        if not found:
            return False
    return True
