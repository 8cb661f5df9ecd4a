"""Pairs of records out of an assignment: its cycles, cut into pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.graphs.weighted.assignment import assign
from anonymip.heuristics.freeform.rounds.reciprocal.pairs import (
    make_pair,
    open_records,
    pair_in_order,
)
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.heuristics.freeform.rounds.weight_matrix import fill_costs, new_costs
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped


def assign_pairs(rounds: Rounds, budget: Budget) -> Stopped | None:
    """Run the rounds of a reciprocal cover; return why they stopped early, if they did.

    Each round solves the assignment on the weights both ways of the records that lack partners. A
    cycle of even length falls into pairs in two ways, the cheaper is taken; one of odd length
    leaves out the record that makes the rest cheapest. Those left out pair in order.
    """
    costs = new_costs(rounds)
    for number in range(1, rounds.count + 1):
        before = rounds.cover.sizes.copy()
        phase = f"round {number} of {rounds.count}"
        stopped = fill_costs(rounds, costs, budget, phase)
        if stopped is not None:
            return stopped
        _add_transpose(costs)
        room = rounds.sizes_after(number) - before
        lacking = np.flatnonzero(room > 0)
        among = costs if len(lacking) == len(costs) else costs[np.ix_(lacking, lacking)]
        columns, _, stopped = assign(among, budget, phase=phase)
        open_ = open_records(rounds.weights, room, bounded=rounds.bounds_hold)
        for cycle in _cycles(columns):
            for one, other in _pairs(cycle, among):
                make_pair(
                    rounds.cover, rounds.weights, open_, int(lacking[one]), int(lacking[other])
                )

        def step(amount: int, open_: Any = open_) -> int:
            return int(pair_in_order(rounds.cover, rounds.weights, open_, rounds.limited, amount))

        stopped = stopped or run_in_steps(step, len(room), budget, phase, first=100)
        rounds.refresh(before)
        if stopped is not None:
            return stopped
    return None


@kernel
def _add_transpose(costs: NDArray[np.floating[Any]]) -> None:
    """Make each weight the sum of both ways."""
    for i in range(len(costs)):
        for j in range(i):
            costs[i, j] += costs[j, i]
            costs[j, i] = costs[i, j]


def _cycles(columns: NDArray[np.int64]) -> list[list[int]]:
    """Return the cycles of an assignment, without the rows that have no column."""
    seen = columns < 0
    cycles = []
    for start in range(len(columns)):
        cycle: list[int] = []
        at = start
        while at >= 0 and not seen[at]:
            seen[at] = True
            cycle.append(at)
            at = int(columns[at])
        if cycle and at == start:
            cycles.append(cycle)
    return cycles


def _pairs(cycle: list[int], costs: NDArray[np.floating[Any]]) -> list[tuple[int, int]]:
    """Return the cheapest pairs of neighbours in a cycle that leave out at most one record.

    With an odd number of records every second edge, twice around, is a list in which the pairs
    that leave out one record are consecutive.
    """
    m = len(cycle)
    if m < 2:
        return []
    following = [*cycle[1:], cycle[0]]
    edges = [float(costs[one, other]) for one, other in zip(cycle, following, strict=True)]
    half = m // 2
    if m % 2 == 0:
        first = 0 if m == 2 or sum(edges[::2]) <= sum(edges[1::2]) else 1
        chosen = [(first + 2 * at) % m for at in range(half)]
    else:
        places = [(2 * at) % m for at in range(2 * m)]
        sums = np.cumsum([0.0, *(edges[place] for place in places)])
        start = int(np.argmin(sums[half : half + m] - sums[:m]))
        chosen = places[start : start + half]
    return [(cycle[place], following[place]) for place in chosen]
