"""The optimal cut of an order into consecutive classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.classes.batch_cut import cut_in_batches
from anonymip.heuristics.growing.consecutive import cut_in_order
from anonymip.heuristics.growing.finish import finish
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    kernel_rows,
    new_state,
    open_class,
    record_loss,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.problem_rules import is_plain
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.stepping import run_in_steps
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

    Parameters
    ----------
    problem
        With equivalence classes.
    order
        Name of an order: ``variance``, ``cardinality``, ``snake``, ``hilbert``, ``neighbour``;
        each with ``+2opt``.
    budget
        When it ends, the records are cut into sets of k instead.
    seed
        Not used: nothing is random.

    Notes
    -----
    Complexity: O(n k m) time and O(n) memory behind the sort.

    References
    ----------
    .. [1] S. L. Hansen, S. Mukherjee: A polynomial algorithm for optimal univariate
       microaggregation, IEEE TKDE 15(4), 2003, doi:10.1109/TKDE.2003.1209020.

    Raises
    ------
    InputError
        If there is no such order.
    NoSolution
        If no classes are found that keep the limits.
    """
    watch, budget = Stopwatch(), budget or Budget()
    records = find_order(problem, order, budget)
    cut = cut_with_kernels if is_plain(problem) else cut_in_batches
    labels, stopped = cut(problem, records, budget)
    return finish(
        problem,
        labels,
        "ordered-cut",
        watch,
        budget=budget,
        stopped=stopped,
        options={"order": order},
    )


def cut_with_kernels(
    problem: Problem, records: NDArray[np.int64], budget: Budget
) -> tuple[NDArray[np.int64], Stopped | None]:
    """Return (n,) labels of the best cut and why it stopped early, if it did."""
    tables = problem.compiled.tables
    rows = kernel_rows(problem.microdata, tables, records)
    sums = problem.compiled.aggregate == "sum"
    return cut_rows(tables, rows, records, problem.k, sums, budget)


def cut_rows(
    tables: LossTables,
    rows: KernelRows,
    records: NDArray[np.int64],
    k: int,
    sums: bool,
    budget: Budget,
) -> tuple[NDArray[np.int64], Stopped | None]:
    """Return the best cut of an order under a loss.

    Parameters
    ----------
    tables
        The loss of a record.
    rows
        The records in their order, as the kernels read them.
    records
        (n,) the order.
    k
        Least number of records of a class.
    sums
        Whether the losses are summed; else the largest counts.
    budget
        When it ends, the records are cut into sets of k instead.

    Returns
    -------
    labels
        (n,) class of each record.
    stopped
        Why it stopped early, if it did.
    """
    n = len(records)
    state = new_state(tables, 2 * k)
    best = np.full(n + 1, np.inf)
    best[0] = 0.0 if sums else -np.inf
    begin = np.full(n + 1, -1, np.int64)
    cursor = np.zeros(1, np.int64)

    def step(amount: int) -> int:
        return int(_cut_step(tables, rows, state, k, sums, best, begin, cursor, amount))

    stopped = run_in_steps(step, n, budget, "cutting the order", first=1000)
    labels = np.full(n, -1, np.int64)
    if stopped is None:
        end, label = n, 0
        while end > 0:
            labels[records[begin[end] : end]] = label
            end, label = int(begin[end]), label + 1
    else:
        cut_in_order(labels, records, k, 0)
    return labels, stopped


@kernel
def _cut_step(
    tables: LossTables,
    rows: KernelRows,
    state: ClassState,
    k: int,
    sums: bool,
    best: NDArray[np.float64],
    begin: NDArray[np.int64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Extend the best cuts by classes that begin at the next `amount` places."""
    n = len(begin) - 1
    for start in range(cursor[0], min(cursor[0] + amount, n)):
        cursor[0] = start + 1
        if best[start] == np.inf or n - start < k:
            continue
        open_class(rows, state, start)
        for end in range(start + 1, min(start + 2 * k, n + 1)):
            if end > start + 1:
                join_class(rows, state, end - 1)
            size = end - start
            if size >= k:
                loss = record_loss(tables, state)
                loss = best[start] + size * loss if sums else max(best[start], loss)
                if loss < best[end]:
                    best[end] = loss
                    begin[end] = start
    return cursor[0]
