"""The weights of all pairs as a matrix of costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.heuristics.freeform.rounds.growing_cover import GrowingCover, PairWeights
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.heuristics.freeform.set_growth import fill_weights
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

#: From more records on the weights are kept in single precision.
_DOUBLE = 2_000
#: The matrix of more records would not fit the memory of an ordinary machine.
LARGEST_TABLE = 20_000

Costs = NDArray[np.floating[Any]]


def new_costs(rounds: Rounds) -> Costs:
    """Return the memory of the weights of all pairs.

    Raises
    ------
    InputError
        If there are more than 20 000 records.
    """
    n = rounds.problem.n
    if n > LARGEST_TABLE:
        raise InputError(
            f"{rounds.method} keeps the weights of all pairs, and {n} records have {n * n} of them",
            remedy=f"Use greedy or sort-greedy beyond {LARGEST_TABLE} records",
        )
    return np.empty((n, n), np.float64 if n <= _DOUBLE else np.float32)


def fill_costs(rounds: Rounds, costs: Costs, budget: Budget, phase: str) -> Stopped | None:
    """Write the weights [published, original], infinite where the set has the record already.

    Complexity: O(n^2 m) time.
    """
    cursor = np.zeros(1, np.int64)
    table = np.empty(int(rounds.weights.terms.table_start[-1]))

    def step(amount: int) -> int:
        return int(_fill_step(rounds.cover, rounds.weights, costs, table, cursor, amount))

    return run_in_steps(step, len(costs), budget, phase, first=100)


@kernel
def _fill_step(
    cover: GrowingCover,
    weights: PairWeights,
    costs: Costs,
    table: NDArray[np.float64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Fill up to `amount` further rows; return how many are done."""
    everyone = np.empty(0, np.int64)
    for _ in range(amount):
        i = cursor[0]
        if i == len(costs):
            break
        if weights.matrix.shape[0] > 0:
            costs[i] = weights.matrix[i]
        else:
            fill_weights(weights.terms, weights.states, i, everyone, table, costs[i])
        for at in range(cover.sizes[i]):
            costs[i, cover.members[i, at]] = np.inf
        cursor[0] += 1
    return cursor[0]
