"""Nearest-neighbour terms of a loss without tables: all pairs of distinct rows are looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.language.class_cells import cells_of_sets
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget

#: Pairs looked at in all; the terms of further rows are what they lose when published exactly.
_LARGEST_PAIRS = 10_000_000
#: Pairs described at a time.
_BATCH = 20_000


def pairwise_terms(problem: Problem, budget: Budget) -> tuple[NDArray[np.float64], bool]:
    """Return (n,) least losses of a record beside its (k-1)-th neighbour.

    Parameters
    ----------
    problem
        With a monotone loss of published records.
    budget
        When it ends, records not looked at count with the loss of being published exactly.

    Returns
    -------
    tuple
        The terms, and whether all were computed.

    Notes
    -----
    Complexity: O(t^2 m) time for t distinct rows.
    """
    types = problem.microdata.row_types()
    rows, t = types.first, len(types.counts)
    terms = _record_losses(problem, rows[:, None])
    affordable = min(t, _LARGEST_PAIRS // t)
    at_once = max(1, _BATCH // t)
    done = 0
    while done < affordable and budget.stop_reason() is None:
        some = rows[done : min(done + at_once, affordable)]
        pairs = np.stack(np.broadcast_arrays(some[:, None], rows[None, :]), axis=2)
        losses = _record_losses(problem, pairs.reshape(-1, 2)).reshape(len(some), t)
        terms[done : done + len(some)] = _kth_least(losses, types.counts, problem.k)
        done += len(some)
        budget.report("nearest-neighbour bound", done=done, total=affordable)
    return terms[types.inverse], done == t


def _record_losses(problem: Problem, sets: NDArray[np.int64]) -> NDArray[np.float64]:
    return problem.compiled.record_losses(cells_of_sets(problem.microdata, sets))


def _kth_least(
    losses: NDArray[np.float64], counts: NDArray[np.int64], k: int
) -> NDArray[np.float64]:
    """Return the k-th least loss of each line, counting types as often as they have rows.

    The record itself is the first: its line holds its own loss, which no other is below.
    """
    if (counts == 1).all():
        least: NDArray[np.float64] = np.partition(losses, k - 1, axis=1)[:, k - 1]
        return least
    order = np.argsort(losses, axis=1)
    enough = np.cumsum(counts[order], axis=1) >= k
    place = np.take_along_axis(order, enough.argmax(axis=1)[:, None], axis=1)
    return np.take_along_axis(losses, place, axis=1)[:, 0]
