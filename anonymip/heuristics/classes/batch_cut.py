"""The optimal cut of an order, evaluated in batches: for every problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.growing.consecutive import cut_in_order
from anonymip.problem import Problem
from anonymip.problem_rules import are_diverse, losses_within_limits
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

#: Windows looked at at a time.
_BATCH = 5_000


def cut_in_batches(
    problem: Problem, records: NDArray[np.int64], budget: Budget
) -> tuple[NDArray[np.int64], Stopped | None]:
    """Return (n,) labels of the best cut and why it stopped early, if it did.

    Classes have k to 2k - 1 records, under a diversity up to 4k - 1. Records that no such cut can
    place under the rules are left out: as few as possible, or, where suppression is allowed, for
    the price of a suppressed record. They have the label -1.

    Parameters
    ----------
    problem
        Any problem with equivalence classes.
    records
        (n,) the order.
    budget
        When it ends, the records are cut into sets of k instead.

    Notes
    -----
    Complexity: O(n k^2 m) time and O(n k) memory.
    """
    n, k = problem.n, problem.k
    sizes = np.arange(k, min(n, (2 if problem.diversity is None else 4) * k - 1) + 1)
    losses = np.full((len(sizes), n), np.inf)
    for at, size in enumerate(sizes):
        stopped = _fill_losses(problem, records, int(size), losses[at], budget)
        if stopped is not None:
            labels = np.full(n, -1, np.int64)
            cut_in_order(labels, records, k, 0)
            return labels, stopped
        budget.report("cutting the order", done=at + 1, total=len(sizes))
    return _best_cut(problem, records, sizes, losses), None


def _fill_losses(
    problem: Problem,
    records: NDArray[np.int64],
    size: int,
    losses: NDArray[np.float64],
    budget: Budget,
) -> Stopped | None:
    """Write the losses of the windows of one size by their first places."""
    starts = problem.n - size + 1
    for begin in range(0, starts, _BATCH):
        reason = budget.stop_reason()
        if reason is not None:
            return reason
        first = np.arange(begin, min(begin + _BATCH, starts))
        windows = records[first[:, None] + np.arange(size)]
        found = np.full(len(first), np.inf)
        allowed = are_diverse(problem, windows)
        found[allowed] = losses_within_limits(problem, windows[allowed])
        losses[first] = found
    return None


def _best_cut(
    problem: Problem,
    records: NDArray[np.int64],
    sizes: NDArray[np.int64],
    losses: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Return labels by dynamic programming: fewest records left out first, then the least loss."""
    n = problem.n
    sums = problem.compiled.aggregate == "sum"
    recoding = problem.recoding
    may_suppress = isinstance(recoding, EquivalenceClasses) and recoding.suppression
    price = problem.compiled.suppression_price if may_suppress else 0.0
    nothing = 0.0 if sums else -np.inf
    best, absent = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    best[0] = nothing
    last = np.zeros(n + 1, np.int64)
    for end in range(1, n + 1):
        # Without the record in front of this place.
        absent[end] = absent[end - 1] + (not may_suppress)
        best[end] = best[end - 1]
        if may_suppress:
            best[end] = best[end - 1] + price if sums else max(best[end - 1], price)
        last[end] = 1
        usable = sizes[sizes <= end]
        begins = end - usable
        own = losses[np.arange(len(usable)), begins]
        totals = best[begins] + own if sums else np.maximum(best[begins], own)
        lacking = np.where(np.isfinite(own), absent[begins], n + 1)
        if len(usable):
            at = int(np.lexsort((totals, lacking))[0])
            if (lacking[at], totals[at]) < (absent[end], best[end]):
                absent[end], best[end] = lacking[at], totals[at]
                last[end] = usable[at]
    labels = np.full(n, -1, np.int64)
    end, label = n, 0
    while end > 0:
        size = int(last[end])
        if size > 1:
            labels[records[end - size : end]] = label
            label += 1
        end -= size
    return labels
