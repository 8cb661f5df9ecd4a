"""Moves and swaps of single rows between the classes of a small sub-problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.row_types import is_diverse
from anonymip.exact.classes.small.workspace import SmallRules, SmallWork
from anonymip.objectives.kernels.class_loss import KernelRows, join_class, open_class, record_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel

#: Rounds through all rows at most; hardly ever are there more than four.
_ROUNDS = 20


@kernel
def swap_rows(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    size: int,
    slack: float,
) -> None:
    """Move and swap single rows while that makes two classes better by more than the slack.

    Leaves the record loss of every class in `class_loss`.

    Notes
    -----
    Complexity: O(size^2 k m) a round.
    """
    labels, sizes = work.labels, work.class_size
    classes = 0
    sizes[:size] = 0
    for at in range(size):
        label = labels[at]
        work.members[label, sizes[label]] = at
        sizes[label] += 1
        classes = max(classes, label + 1)
    for label in range(classes):
        work.class_loss[label] = _changed_loss(tables, rows, rules, work, chosen, label, -1, -1)
    for _ in range(_ROUNDS):
        better = False
        for one in range(size):
            for to in range(classes):
                if to != labels[one] and sizes[labels[one]] > rules.k:
                    better |= _exchange(tables, rows, rules, work, chosen, one, -1, to, slack)
            for other in range(one + 1, size):
                to = labels[other]
                if to != labels[one]:
                    better |= _exchange(tables, rows, rules, work, chosen, one, other, to, slack)
        if not better:
            return


@kernel
def _exchange(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    one: int,
    other: int,
    to: int,
    slack: float,
) -> bool:
    """Bring a row into class `to`, and another one (-1: none) back, if the two get better."""
    labels, sizes, losses = work.labels, work.class_size, work.class_loss
    own, moved = labels[one], 1 if other < 0 else 0
    if rules.summed:
        most = sizes[own] * losses[own] + sizes[to] * losses[to] - slack
    else:
        most = max(losses[own], losses[to]) - slack
    own_loss = _changed_loss(tables, rows, rules, work, chosen, own, one, other)
    part = (sizes[own] - moved) * own_loss if rules.summed else own_loss
    # With losses below zero the other class may still make up for it.
    if own_loss == np.inf or (part >= most and tables.constant >= 0.0):
        return False
    to_loss = _changed_loss(tables, rows, rules, work, chosen, to, other, one)
    if rules.summed:
        part += (sizes[to] + moved) * to_loss
    else:
        part = max(part, to_loss)
    if part >= most:
        return False
    _replace_member(work, own, one, other)
    _replace_member(work, to, other, one)
    losses[own], losses[to] = own_loss, to_loss
    return True


@kernel
def _replace_member(work: SmallWork, label: int, leaving: int, joining: int) -> None:
    """Take a row out of a class and put another one in (-1: none)."""
    members, sizes = work.members, work.class_size
    if joining >= 0:
        work.labels[joining] = label
    for at in range(sizes[label]):
        if members[label, at] == leaving:
            if joining < 0:
                sizes[label] -= 1
                joining = members[label, sizes[label]]
            members[label, at] = joining
            return
    members[label, sizes[label]] = joining
    sizes[label] += 1


@kernel
def _changed_loss(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    label: int,
    leaving: int,
    joining: int,
) -> float:
    """Return the record loss of a class without a row and with another one (-1: none).

    Infinite if it is not diverse then.
    """
    count, scratch = 0, work.scratch
    if joining >= 0:
        scratch[0], count = joining, 1
    for at in range(work.class_size[label]):
        if work.members[label, at] != leaving:
            scratch[count] = work.members[label, at]
            count += 1
    ruled = rules.diversity.values.shape[1] > 0
    if ruled and not is_diverse(rules, work, chosen, scratch, 0, count):
        return np.inf
    open_class(rows, work.state, chosen[scratch[0]])
    for at in range(1, count):
        join_class(rows, work.state, chosen[scratch[at]])
    return record_loss(tables, work.state)
