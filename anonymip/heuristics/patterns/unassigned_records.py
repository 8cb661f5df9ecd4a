"""Records that the greedy leaves find a row: an old one, a new one, or that of stars."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.patterns.open_rows import (
    HEAD,
    PATTERN,
    SIZE,
    OpenRows,
    close_row,
    fits,
    is_diverse,
    move,
    open_row,
)
from anonymip.heuristics.patterns.row_moves import NEXT, ONLY_UNASSIGNED, Gathering, try_patterns
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps

#: What is gained must be more than rounding.
LEAST_GAIN = 1e-9


def place_unassigned(state: OpenRows, work: Gathering, budget: Budget) -> None:
    """Find rows for records in none, the cheapest first; some may be left.

    A record joins the cheapest row in use that it fits, unless a row of its own, filled by records
    that other rows can spare, costs less. Who fits no row in use takes the cheapest row that can be
    filled. Where suppressing a record is allowed, that competes.

    Parameters
    ----------
    state, work
        The rows and the workspace; ``work.unassigned_costs`` is overwritten.
    budget
        When it ends, records only join rows in use.

    Notes
    -----
    Complexity: a pass over all patterns, O(p n), while anything is gained.
    """
    large = (len(state.row_of) + 1.0) * (1.0 + float(work.costs.max()))
    work.numbers[ONLY_UNASSIGNED] = 1
    # Others than these pay what joining costs, so that only better rows are opened.
    _joining_costs(state, work, min(large, work.alone))
    _pass(state, work, budget)
    _join(state, work)
    while (state.row_of < 0).any() and np.isinf(work.alone):
        before = int((state.row_of < 0).sum())
        work.unassigned_costs[:] = large
        if _pass(state, work, budget):
            break
        _join(state, work)
        if int((state.row_of < 0).sum()) == before:
            break
    work.numbers[ONLY_UNASSIGNED] = 0
    work.unassigned_costs[:] = work.alone


def gather_under_stars(state: OpenRows, work: Gathering, stars: int, k: int) -> bool:
    """Put records in no row under the pattern of stars only, with whole rows until that is allowed.

    Rows of the costliest patterns come first.

    Parameters
    ----------
    stars
        Number of that pattern.
    k
        Records of a row.

    Returns
    -------
    bool
        Whether the row keeps the diversity; all records together do if the table does.
    """
    rows = state.rows
    existing = np.flatnonzero(rows[:, PATTERN] == stars)
    target = int(existing[0]) if len(existing) else int(open_row(state, stars))
    for record in np.flatnonzero(state.row_of < 0).tolist():
        move(state, record, target)
    by_cost = np.where(rows[:, PATTERN] >= 0, work.costs[rows[:, PATTERN]], -np.inf)
    for row in np.argsort(-by_cost, kind="stable"):
        if rows[target, SIZE] >= k and is_diverse(state, target):
            return True
        if row == target or rows[row, PATTERN] < 0:
            continue
        while rows[row, HEAD] >= 0:
            move(state, rows[row, HEAD], target)
        close_row(state, row)
    return bool(rows[target, SIZE] >= k and is_diverse(state, target))


def _pass(state: OpenRows, work: Gathering, budget: Budget) -> bool:
    """Try all patterns once; return whether the budget ended."""
    work.numbers[NEXT] = 0

    def step(amount: int) -> int:
        done = int(work.numbers[NEXT])
        try_patterns(state, work, LEAST_GAIN, min(len(work.order), done + amount))
        return int(work.numbers[NEXT])

    return run_in_steps(step, len(work.order), budget, "finding rows for records") is not None


def _joining_costs(state: OpenRows, work: Gathering, most: float) -> None:
    """Write what each record in no row pays to join the cheapest it fits, `most` at most."""
    work.unassigned_costs[:] = most
    unassigned = np.flatnonzero(state.row_of < 0)
    rows = _by_cost(state, work.costs)
    _least_fitting(state, work.costs, unassigned, rows, work.unassigned_costs)


def _join(state: OpenRows, work: Gathering) -> None:
    """Let records in no row join the cheapest that they fit and that stays diverse."""
    unassigned = np.flatnonzero(state.row_of < 0)
    _join_rows(state, work.costs, unassigned, _by_cost(state, work.costs), work.alone)


def _by_cost(state: OpenRows, costs: NDArray[np.float64]) -> NDArray[np.int64]:
    rows = np.flatnonzero(state.rows[:, PATTERN] >= 0)
    return rows[np.argsort(costs[state.rows[rows, PATTERN]], kind="stable")].astype(np.int64)


@kernel
def _least_fitting(
    state: OpenRows,
    costs: NDArray[np.float64],
    unassigned: NDArray[np.int64],
    rows: NDArray[np.int64],
    unassigned_costs: NDArray[np.float64],
) -> None:
    for record in unassigned:
        for row in rows:
            if fits(state, record, row):
                unassigned_costs[record] = min(
                    unassigned_costs[record], costs[state.rows[row, PATTERN]]
                )
                break


@kernel
def _join_rows(
    state: OpenRows,
    costs: NDArray[np.float64],
    unassigned: NDArray[np.int64],
    rows: NDArray[np.int64],
    alone: float,
) -> None:
    for record in unassigned:
        for row in rows:
            if costs[state.rows[row, PATTERN]] > alone:
                break
            if fits(state, record, row):
                move(state, record, row)
                if is_diverse(state, row):
                    break
                move(state, record, -1)
