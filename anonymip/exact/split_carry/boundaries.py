"""Where segments of an order that were solved alone meet, their classes are solved together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.errors import NoSolution
from anonymip.exact.classes.best_classes import compiles
from anonymip.exact.classes.small import solve_small
from anonymip.exact.split_carry.options import LINK_NODES
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.tolerances import LOSS_RELATIVE

#: Rows around a boundary that the compiled search solves within milliseconds as a rule.
_COMPILED_ROWS = 24


@dataclass(frozen=True, eq=False)
class SolvedBoundaries:
    """What became of the boundaries.

    Parameters
    ----------
    labels
        (n,) class of the record at each place.
    solved
        Boundaries looked at before the time ended.
    gained
        Those whose classes changed for the better.
    """

    labels: NDArray[np.int64]
    solved: int
    gained: int


def solve_boundaries(
    problem: Problem,
    records: NDArray[np.int64],
    labels: NDArray[np.int64],
    boundaries: Sequence[int],
    *,
    most: int,
    budget: Budget,
    seed: int = 0,
) -> SolvedBoundaries:
    """Solve the classes around each boundary again, together, and take what loses less.

    Parameters
    ----------
    problem
        With equivalence classes.
    records
        (n,) the order.
    labels
        (n,) class of the record at each place of the order; -1 for none.
    boundaries
        Places at which segments begin, without 0.
    most
        Most records of a sub-problem; the nearest class of either side belongs to it whatever its
        size.
    budget
        When it ends, the boundaries left stay as they are.
    seed
        Of the solver of sub-problems.

    Notes
    -----
    Classes join in the order of their record nearest to the boundary, as long as there is room. No
    loss rises. Complexity: O(n) for each of them, beside the sub-problems.
    """
    labels = labels.copy()
    gained = 0
    for solved, at in enumerate(boundaries):
        if budget.stop_reason() is not None:
            return SolvedBoundaries(labels, solved, gained)
        budget.report("joining the chains", done=solved, total=len(boundaries))
        share = budget.share(1 / (len(boundaries) - solved))
        share.progress = None
        gained += _solved_again(problem, records, labels, _around(labels, at, most), share, seed)
    return SolvedBoundaries(labels, len(boundaries), gained)


def rows_of_boundaries(problem: Problem, sets: int) -> int:
    """Return how many records to solve together at each boundary of chains with S sets of k.

    Those of a window and k carried over, or more where the search is compiled: with short chains
    the loss is some percent lower for it.
    """
    window = (sets + 1) * problem.k
    return max(window, _COMPILED_ROWS) if compiles(problem) else window


def _around(labels: NDArray[np.int64], at: int, most: int) -> NDArray[np.int64]:
    """Return the places of the classes nearest to a boundary, ascending."""
    sides = labels[max(0, at - most) : at][::-1], labels[at : at + most]
    near = [int(side[rank]) for rank in range(most) for side in sides if rank < len(side)]
    taken: list[NDArray[np.int64]] = []
    room = most
    for label in dict.fromkeys(near):
        if label == SUPPRESSED:
            continue
        places = np.flatnonzero(labels == label)
        if len(taken) >= len(sides) and len(places) > room:
            break
        taken.append(places)
        room -= len(places)
    return np.sort(np.concatenate(taken)) if taken else np.empty(0, np.int64)


def _solved_again(
    problem: Problem,
    records: NDArray[np.int64],
    labels: NDArray[np.int64],
    places: NDArray[np.int64],
    budget: Budget,
    seed: int,
) -> bool:
    """Give the records at some places better classes if there are any; return whether there are."""
    before = labels[places]
    if len(np.unique(before)) < 2:
        return False
    part = problem.replace(microdata=problem.microdata.take(records[places]))
    try:
        solved = solve_small(part, budget=budget, max_nodes=LINK_NODES, seed=seed)
    except NoSolution:
        return False
    found = np.asarray(solved.labels, np.int64)
    loss, new = _loss(part, before), _loss(part, found)
    if new >= loss - LOSS_RELATIVE * abs(loss):
        return False
    labels[places] = np.where(found == SUPPRESSED, SUPPRESSED, found + labels.max() + 1)
    return True


def _loss(problem: Problem, labels: NDArray[np.int64]) -> float:
    """Return the loss of classes of all records of a small problem."""
    compiled = problem.compiled
    losses = np.full(problem.n, compiled.suppression_price)
    for label in np.unique(labels[labels != SUPPRESSED]):
        rows = np.flatnonzero(labels == label)
        share = len(rows) if compiled.aggregate == "sum" else 1
        losses[rows] = compiled.class_losses(rows[None, :])[0] / share
    return compiled.aggregated(losses)
