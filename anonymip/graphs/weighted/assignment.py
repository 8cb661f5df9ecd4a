"""Assignments of least total cost: the shortest augmenting paths of Jonker and Volgenant."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

#: So often unassigned rows try to take their cheapest column from others before paths are searched.
_SWEEPS = 2
#: Tries of a sweep for each row, after which a row that lost its column waits for the next.
_TRIES = 8


class Assigning(Packed):
    """The state of an assignment; the reduced cost of an entry is costs[i, j] - duals[j]."""

    columns: Annotated[Ints, "n", -1]  # column of each row; -1: none yet
    rows: Annotated[Ints, "n", -1]  # row of each column; -1: none yet
    duals: Floats  # (n,) duals of the columns
    free: Ints  # (n,) rows without a column
    #: Rows in `free`; of these those served; in a sweep the place in `free`, the rows kept for
    #: later, and the tries made.
    cursor: Annotated[Ints, "5"]
    #: Workspaces of the path search.
    distance: Annotated[Floats, "n"]
    source: Annotated[Ints, "n"]
    todo: Annotated[Ints, "n"]


def assign(
    costs: NDArray[np.floating],
    budget: Budget | None = None,
    *,
    duals: Floats | None = None,
    phase: str = "assignment",
) -> tuple[Ints, Floats, Stopped | None]:
    """Return an assignment of least total cost [1]_.

    `costs`: (n, n) C-contiguous, float64 or float32; infinite where a pair is forbidden. `duals`:
    (n,) duals of the columns to start from, such as those of a similar matrix: any do, good ones
    save most of the work. None starts from the least cost of each column. `phase`: what the
    assignment is for, for people. Returns (n,) the column of each row, -1 where the budget ended
    before or no assignment is allowed; (n,) the duals of the columns at the end; why it stopped
    early.

    All arithmetic is in float64, so the answer is optimal for the costs as they are stored.
    Complexity: O(n^3) time, O(n) memory beside the costs.

    References
    ----------
    .. [1] R. Jonker, A. Volgenant: A shortest augmenting path algorithm for dense and sparse
       linear assignment problems, Computing 38, 1987.
    """
    n = len(costs)
    if duals is None:
        duals = costs.min(axis=0, initial=np.inf)
        duals = np.where(duals == np.inf, 0.0, duals)
    work = Assigning.of_sizes(n=n, duals=np.array(duals, np.float64), free=np.arange(n))
    work.cursor[0] = n
    budget = budget or Budget()
    for _ in range(_SWEEPS):
        _sweep(costs, work, budget, phase)
    waiting = int(work.cursor[0])

    def step(amount: int) -> int:
        return int(_augment_step(costs, work, amount)) + n - waiting

    stopped = run_in_steps(step, n, budget, phase, first=10) if waiting else None
    return work.columns, work.duals, stopped


def _sweep(costs: NDArray[np.floating], work: Assigning, budget: Budget, phase: str) -> None:
    """Let each free row take its cheapest column, as far as the budget goes."""
    work.cursor[2:] = 0
    most = _TRIES * len(costs) + 1

    def step(amount: int) -> int:
        ended = _take_cheapest(costs, work, amount)
        return most if ended else min(int(work.cursor[4]), most - 1)

    run_in_steps(step, most, budget, phase, first=10)
    waiting, at, kept = (int(work.cursor[place]) for place in (0, 2, 3))
    work.free[kept : kept + waiting - at] = work.free[at:waiting].copy()
    work.cursor[0] = kept + waiting - at


@kernel
def _take_cheapest(costs: NDArray[np.floating], work: Assigning, amount: int) -> bool:
    """Let free rows take their cheapest column, and lower its dual to the second choice.

    A row that loses its column tries again at once if the dual fell, else in the next sweep.
    Returns whether all have tried.
    """
    n = len(costs)
    waiting, at, kept, tries = work.cursor[0], work.cursor[2], work.cursor[3], work.cursor[4]
    for _ in range(amount):
        if at == waiting:
            break
        # work.free[:kept] wait for the next sweep, work.free[at:waiting] for their try.
        i = work.free[at]
        at += 1
        tries += 1
        # The least and the second least reduced cost of the row.
        row = costs[i]
        first, second = np.inf, np.inf
        one, two = -1, -1
        for j in range(n):
            reduced = row[j] - work.duals[j]
            if reduced < second:
                if reduced < first:
                    first, second = reduced, first
                    one, two = j, one
                else:
                    second, two = reduced, j
        # No column is allowed: the row stays free, and the search for paths finds out.
        if one < 0:
            work.free[kept] = i
            kept += 1
            continue
        # The column stays the cheapest of the row until its dual has fallen by the difference.
        before = work.rows[one]
        rise = second - first
        lowered = 0.0 < rise < np.inf
        if lowered:
            work.duals[one] -= rise
            lowered = row[one] - work.duals[one] > first
        # Two columns are as cheap: no dual falls, and the row leaves the first to its holder.
        elif before >= 0 and two >= 0 and rise == 0.0:
            one = two
            before = work.rows[one]
        # The row that held the column is free again.
        work.columns[i] = one
        work.rows[one] = i
        if before >= 0:
            work.columns[before] = -1
            # Where the dual did not fall the row could take it back at once, and so on for ever.
            if lowered and tries < _TRIES * n:
                at -= 1
                work.free[at] = before
            else:
                work.free[kept] = before
                kept += 1
    work.cursor[2], work.cursor[3], work.cursor[4] = at, kept, tries
    return bool(at == waiting)


@kernel
def _augment_step(costs: NDArray[np.floating], work: Assigning, amount: int) -> int:
    """Assign up to `amount` further rows along shortest paths; return how many are done."""
    for _ in range(amount):
        if work.cursor[1] == work.cursor[0]:
            break
        _augment(costs, work, work.free[work.cursor[1]])
        work.cursor[1] += 1
    return int(work.cursor[1])


@kernel
def _augment(costs: NDArray[np.floating], work: Assigning, start: int) -> None:
    """Assign one row along a shortest path of reduced costs, by Dijkstra's rule.

    The order of `todo`: columns settled first, then those at the present least distance, then
    the others.
    """
    n = len(costs)
    distance, source, todo, duals = work.distance, work.source, work.todo, work.duals
    row = costs[start]
    # At first every column is as far as the edge from the start.
    for j in range(n):
        distance[j] = row[j] - duals[j]
        source[j] = start
        todo[j] = j
    settled, near, last = 0, 0, 0
    least, end = 0.0, -1
    while end < 0:
        if settled == near:
            # Gather the columns at the next distance; a free one of them ends the path.
            last = settled
            least = distance[todo[near]]
            near += 1
            for at in range(near, n):
                j = todo[at]
                if distance[j] <= least:
                    if distance[j] < least:
                        least = distance[j]
                        near = settled
                    todo[at] = todo[near]
                    todo[near] = j
                    near += 1
            if least == np.inf:
                return  # no assignment is allowed that has all rows so far
            for at in range(settled, near):
                if work.rows[todo[at]] < 0:
                    end = todo[at]
                    break
            if end >= 0:
                break
        # Settle a column: its row may reach others by way of its reduced costs.
        column = todo[settled]
        settled += 1
        i = work.rows[column]
        row = costs[i]
        # Rows have no duals of their own: that of row i is the reduced cost of the edge it has.
        offset = row[column] - duals[column] - least
        for at in range(near, n):
            j = todo[at]
            reached = row[j] - duals[j] - offset
            if reached < distance[j]:
                distance[j] = reached
                source[j] = i
                # No other column is nearer: a free one ends the path, others are settled at this
                # distance.
                if reached <= least:
                    if work.rows[j] < 0:
                        end = j
                        break
                    todo[at] = todo[near]
                    todo[near] = j
                    near += 1
        if end >= 0:
            break
    # Columns settled before the present distance: their duals fall by what they were nearer.
    for at in range(last):
        duals[todo[at]] += distance[todo[at]] - least
    # Along the path every row takes the column by which it was reached.
    j = end
    while True:
        i = source[j]
        work.rows[j] = i
        j, work.columns[i] = work.columns[i], j
        if i == start:
            break
