"""The optimal cut of an order into consecutive classes, by kernels or in batches."""

from __future__ import annotations

from functools import partial

import numpy as np

from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import cut_in_order
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    kernel_rows,
    new_state,
    open_class,
    record_loss,
)
from anonymip.orders.orders import find_order
from anonymip.problem import Problem, are_diverse, is_plain, losses_within_limits
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_over
from anonymip.solution import Solution
from anonymip.status import Stopped


def ordered_cut(
    problem: Problem, *, order: str = "variance", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Cut an order into consecutive classes of k to 2k - 1 records with the least loss [1]_.

    The best of all such cuts, by dynamic programming. Even for one numeric attribute it need not be
    the optimum of the problem, as it is for squared errors: of 0, 1, 1, 1, 2 with k = 2 the best
    classes {0, 2}, {1, 1, 1} lose 4, every cut loses 5 or more. Where the objective takes the
    maximum over the records, the cut with the least maximum is found.

    Under limits or a diversity only classes that keep them are cut, under a diversity of up to
    4k - 1 records; records that no such cut can place join other classes.

    `problem`: with equivalence classes. `order`: name of an order: ``variance``, ``cardinality``,
    ``snake``, ``hilbert``, ``neighbour``; each with ``+2opt``. `budget`: when it ends, the records
    are cut into sets of k instead. Complexity: O(n k m) time and O(n) memory behind the sort.
    Raises InputError if there is no such order; NoSolution if no classes are found that keep the
    limits.

    References
    ----------
    .. [1] S. L. Hansen, S. Mukherjee: A polynomial algorithm for optimal univariate
       microaggregation, IEEE TKDE 15(4), 2003, doi:10.1109/TKDE.2003.1209020.
    """
    watch, budget = Stopwatch(), budget or Budget()
    records = find_order(problem, order, budget)
    labels, stopped = best_cut(problem, records, budget)
    return finish(
        problem,
        labels,
        "ordered-cut",
        watch,
        budget=budget,
        stopped=stopped,
        options={"order": order},
    )


def best_cut(problem: Problem, records: Ints, budget: Budget) -> tuple[Ints, Stopped | None]:
    """Return (n,) labels of the best cut and why it stopped early, if it did."""
    if not is_plain(problem):
        return cut_in_batches(problem, records, budget)
    rows = kernel_rows(problem.microdata, problem.compiled.tables, records)
    sums = problem.compiled.aggregate == "sum"
    return cut_rows(rows, records, problem.k, sums, budget)


def cut_rows(
    rows: KernelRows, records: Ints, k: int, sums: bool, budget: Budget
) -> tuple[Ints, Stopped | None]:
    """Return (n,) labels of the best cut under a loss and why it stopped early, if it did.

    `rows` are the records in their order, `sums` says whether their losses are summed; else the
    largest counts. When the budget ends, the records are cut into sets of k instead.
    """
    n = len(records)
    state = new_state(rows.tables, 2 * k)
    best = np.full(n + 1, np.inf)
    best[0] = 0.0 if sums else -np.inf
    begin = np.full(n + 1, -1, np.int64)
    step = partial(_extend_cuts, rows, state, k, sums, best, begin)
    stopped = run_over(step, n, budget, "cutting the order", first=1000)
    return _labels(records, k, begin if stopped is None else None), stopped


def _labels(records: Ints, k: int, begin: Ints | None) -> Ints:
    """Return (n,) labels, by where the class begins that ends at a place; single records have none.

    Without a cut those of sets of k.
    """
    labels, end, label = np.full(len(records), -1, np.int64), len(records), 0
    if begin is None:
        cut_in_order(labels, records, k, 0)
        return labels
    while end > 0:
        start = int(begin[end])
        if end - start > 1:
            labels[records[start:end]] = label
            label += 1
        end = start
    return labels


@kernel
def _extend_cuts(
    rows: KernelRows,
    state: ClassState,
    k: int,
    sums: bool,
    best: Floats,
    begin: Ints,
    first: int,
    last: int,
) -> None:
    """Extend the best cuts by classes that begin at one of the places before `last`."""
    n = len(begin) - 1
    for start in range(first, last):
        if best[start] == np.inf or n - start < k:
            continue
        open_class(rows, state, start)
        for end in range(start + 1, min(start + 2 * k, n + 1)):
            if end > start + 1:
                join_class(rows, state, end - 1)
            size = end - start
            if size >= k:
                loss = record_loss(rows.tables, state)
                loss = best[start] + size * loss if sums else max(best[start], loss)
                if loss < best[end]:
                    best[end] = loss
                    begin[end] = start


#: Windows looked at at a time.
_BATCH = 5_000


def cut_in_batches(problem: Problem, records: Ints, budget: Budget) -> tuple[Ints, Stopped | None]:
    """Return (n,) labels of the best cut and why it stopped early, if it did; for every problem.

    Classes have k to 2k - 1 records, under a diversity up to 4k - 1. Records that no such cut can
    place under the rules are left out: as few as possible, or, where suppression is allowed, for
    the price of a suppressed record. They have the label -1. When the budget ends, the records are
    cut into sets of k instead. Complexity: O(n k^2 m) time and O(n k) memory.
    """
    n, k = problem.n, problem.k
    sizes = np.arange(k, min(n, (2 if problem.diversity is None else 4) * k - 1) + 1)
    losses = np.full((len(sizes), n), np.inf)
    for at, size in enumerate(sizes):
        stopped = _fill_losses(problem, records, int(size), losses[at], budget)
        if stopped is not None:
            return _labels(records, k, None), stopped
        budget.report("cutting the order", done=at + 1, total=len(sizes))
    return _labels(records, k, _best_cut(problem, sizes, losses)), None


def _fill_losses(
    problem: Problem, records: Ints, size: int, losses: Floats, budget: Budget
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


def _best_cut(problem: Problem, sizes: Ints, losses: Floats) -> Ints:
    """Return where the class of each end begins: fewest records left out, then the least loss."""
    n = problem.n
    sums = problem.compiled.aggregate == "sum"
    may_suppress = problem.may_suppress
    price = problem.compiled.suppression_price if may_suppress else 0.0
    best, absent = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    best[0] = 0.0 if sums else -np.inf
    begin = np.arange(-1, n)
    for end in range(1, n + 1):
        # Without the record in front of this place.
        absent[end] = absent[end - 1] + (not may_suppress)
        best[end] = best[end - 1]
        if may_suppress:
            best[end] = best[end - 1] + price if sums else max(best[end - 1], price)
        usable = sizes[sizes <= end]
        begins = end - usable
        own = losses[np.arange(len(usable)), begins]
        totals = best[begins] + own if sums else np.maximum(best[begins], own)
        lacking = np.where(np.isfinite(own), absent[begins], n + 1)
        if len(usable):
            at = int(np.lexsort((totals, lacking))[0])
            if (lacking[at], totals[at]) < (absent[end], best[end]):
                absent[end], best[end] = lacking[at], totals[at]
                begin[end] = begins[at]
    return begin
