"""Records that join classes that are there already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.problem import Problem, are_diverse, losses_within_limits


def joining_losses(
    problem: Problem,
    groups: list[list[int]],
    newcomers: list[int],
    *,
    by_increase: bool,
    keep_diverse: bool = True,
) -> NDArray[np.float64]:
    """Return (groups,) losses of each class with the newcomers in it.

    Parameters
    ----------
    problem
        Gives loss and rules.
    groups
        Records of each class.
    newcomers
        Records that join together.
    by_increase
        Whether the loss of the class without them is subtracted. The maximum over all records
        grows by no class's increase, so with the aggregate ``"max"`` nothing is.
    keep_diverse
        Whether a diverse class must stay diverse.

    Returns
    -------
    numpy.ndarray
        Infinite where a rule would be broken.
    """
    losses = np.full(len(groups), np.inf)
    sizes = np.array([len(group) for group in groups], np.int64)
    for size in np.unique(sizes):
        at = np.flatnonzero(sizes == size)
        members = np.array([groups[g] for g in at], np.int64)
        joined = np.concatenate([members, np.tile(newcomers, (len(at), 1))], axis=1)
        found = losses_within_limits(problem, joined)
        if by_increase and problem.compiled.aggregate == "sum":
            found = found - problem.compiled.class_losses(members)
        if keep_diverse and problem.diversity is not None:
            spoiled = are_diverse(problem, members) & ~are_diverse(problem, joined)
            found = np.where(spoiled, np.inf, found)
        losses[at] = found
    return losses


def place_leftovers(
    problem: Problem, groups: list[list[int]], leftovers: list[int], *, by_increase: bool
) -> list[int]:
    """Put leftovers, in order, each into the class with the least new loss or increase.

    Returns
    -------
    list of int
        Those that no class can take in under the rules.
    """
    unassigned: list[int] = []
    for record in leftovers:
        losses = joining_losses(problem, groups, [record], by_increase=by_increase)
        best = int(losses.argmin()) if len(losses) else -1
        if best < 0 or losses[best] == np.inf:
            unassigned.append(record)
        else:
            groups[best].append(record)
    return unassigned
