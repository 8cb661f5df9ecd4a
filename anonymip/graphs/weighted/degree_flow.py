"""Graphs of least total cost with given degrees, as a minimum cost flow."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_over
from anonymip.status import Stopped


class Flow(Packed):
    """The state of a flow; the reduced cost of an edge is costs[i, j] - left[i] - right[j].

    Unused edges have reduced costs of at least 0, used ones of at most 0.
    """

    used: Annotated[Flags, "n, n"]  # whether an edge is used
    #: (n,) edges that rows and columns still lack.
    supply: Ints
    demand: Ints
    #: Rows that use an edge into each column, and how many.
    holders: Annotated[Codes, "n, largest"]
    held: Annotated[Ints, "n"]
    #: Duals.
    left: Annotated[Floats, "n"]
    right: Annotated[Floats, "n"]
    lacking: Annotated[Ints, "1"]  # edges that could not be found
    #: Workspaces: distances; row before each column; column before each row.
    row_distance: Annotated[Floats, "n"]
    column_distance: Annotated[Floats, "n"]
    source: Annotated[Ints, "n"]
    exchanged: Annotated[Ints, "n"]
    #: Workspaces.
    row_settled: Annotated[Flags, "n"]
    column_settled: Annotated[Flags, "n"]


def cheapest_degrees(
    costs: NDArray[np.floating],
    degrees: Ints,
    budget: Budget | None = None,
    phase: str = "minimum cost flow",
) -> tuple[Flow, Stopped | None]:
    """Return the edges of least total cost that give row i and column i ``degrees[i]`` edges.

    `costs`: (n, n) C-contiguous, float64 or float32; infinite where an edge is forbidden. Returns:
    a flow with these edges, or those found until the budget ended, and its duals; why it stopped
    early. If it lacks edges although the budget lasted, no graph has the degrees.

    Successive shortest paths, by Dijkstra's rule on reduced costs. Complexity: O(n^2) time for
    each edge at worst, O(n^2) bytes beside the costs.
    """
    n = len(costs)
    largest = max(1, int(degrees.max()))
    flow = Flow.of_sizes(n=n, largest=largest, supply=degrees.copy(), demand=degrees.copy())
    _first_duals(costs, flow)
    step = partial(_serve_rows, costs, flow)
    return flow, run_over(step, n, budget or Budget(), phase)


def _first_duals(costs: NDArray[np.floating], flow: Flow) -> None:
    """Make all reduced costs at least 0: first by the columns, then by the rows."""
    right = costs.min(axis=0)
    flow.right[:] = np.where(right < np.inf, right, 0.0)
    # Row by row: a copy of all costs would not fit.
    left = np.array([(row - flow.right).min() for row in costs])
    flow.left[:] = np.where(left < np.inf, left, 0.0)


@kernel
def _serve_rows(costs: NDArray[np.floating], flow: Flow, begin: int, end: int) -> None:
    """Give some rows all their edges."""
    for i in range(begin, end):
        while flow.supply[i] > 0:
            if not _augment(costs, flow, i):
                flow.lacking[0] += flow.supply[i]
                break


@kernel
def _leave_row(costs: NDArray[np.floating], flow: Flow, i: int) -> None:
    """Shorten the distances of the columns through a row that is settled."""
    row, used, right = costs[i], flow.used[i], flow.right
    offset = flow.row_distance[i] - flow.left[i]
    for j in range(len(row)):
        reached = offset + (row[j] - right[j])
        if reached < flow.column_distance[j] and not used[j] and not flow.column_settled[j]:
            flow.column_distance[j] = reached
            flow.source[j] = i


@kernel
def _augment(costs: NDArray[np.floating], flow: Flow, start: int) -> bool:
    """Give a row one more edge along a shortest path; return whether there is one.

    A path runs along unused edges to columns and back along used ones to rows. Rows reached from
    a column wait among the columns' distances: at most `largest` of them a column.
    """
    n = len(costs)
    flow.row_distance[:] = np.inf
    flow.column_distance[:] = np.inf
    flow.row_settled[:] = False
    flow.column_settled[:] = False
    flow.exchanged[:] = -1
    flow.row_distance[start] = 0.0
    while True:
        # The nearest row or column that is not settled.
        row, least_row = -1, np.inf
        column, least = -1, np.inf
        for at in range(n):
            if not flow.row_settled[at] and flow.row_distance[at] < least_row:
                row, least_row = at, flow.row_distance[at]
            if not flow.column_settled[at] and flow.column_distance[at] < least:
                column, least = at, flow.column_distance[at]
        # No shorter way to this row is left: it may shorten those to columns.
        if row >= 0 and least_row <= least:
            flow.row_settled[row] = True
            _leave_row(costs, flow, row)
            continue
        # Nothing else is within reach, and no column that is has demand.
        if column < 0:
            return False
        # The nearest column with demand: a shortest path ends here.
        if flow.demand[column] > 0:
            for at in range(n):
                if flow.row_settled[at]:
                    flow.left[at] += least - flow.row_distance[at]
                if flow.column_settled[at]:
                    flow.right[at] -= least - flow.column_distance[at]
            _turn_path(flow, start, column)
            return True
        # The column is full: one of its rows may give up its edge and look for another.
        flow.column_settled[column] = True
        for place in range(flow.held[column]):
            i = flow.holders[column, place]
            if not flow.row_settled[i]:
                # Used edges have a reduced cost of at most 0, so the way back costs 0 or more, but
                # for rounding.
                back = flow.left[i] + flow.right[column] - costs[i, column]
                reached = least + max(back, 0.0)
                if reached < flow.row_distance[i]:
                    flow.row_distance[i] = reached
                    flow.exchanged[i] = column


@kernel
def _turn_path(flow: Flow, start: int, end: int) -> None:
    """Use the unused edges of a path, and the used ones no longer."""
    flow.supply[start] -= 1
    flow.demand[end] -= 1
    column = end
    while True:
        i = flow.source[column]
        flow.used[i, column] = True
        flow.holders[column, flow.held[column]] = i
        flow.held[column] += 1
        if i == start:
            break
        column = flow.exchanged[i]
        flow.used[i, column] = False
        for place in range(flow.held[column]):
            if flow.holders[column, place] == i:
                flow.held[column] -= 1
                flow.holders[column, place] = flow.holders[column, flow.held[column]]
                break
