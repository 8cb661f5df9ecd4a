"""Duals by sums over pairs: a set of k rows loses at least a share of what its pairs lose together.

The range of k numbers is at least the sum of the distances of their pairs, divided by
floor(k/2) ceil(k/2): no gap between two neighbours lies within more pairs. With u distinct values
among k rows, no more pairs differ than if all were equally frequent. Of any other monotone term no
pair loses more than the set, so that their mean does not either. Scaled by these shares, term by
term, the losses p of pairs give p(S) <= c(S), p(S) being their sum over the pairs of a set S of k
rows, and c(S) what a record of the set loses.

Every row lies in k - 1 pairs of S, and loses in them no less than with its k - 1 nearest rows; each
pair is counted by both. So k / 2 times the sum of p over the k - 1 nearest rows are feasible duals
(:mod:`anonymip.bounds.record_duals`). The k-th nearest row, of which nearest neighbours speak,
proves less wherever a set of k covers much more than its furthest pair: with large k, and in tables
of many columns.
"""

from __future__ import annotations

import numpy as np

from anonymip.bounds.near_search import NearSearch, find_nearest
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps


class PairSums:
    """Feasible duals by the pairs that each row makes with its nearest.

    `search`: of sets of `k` rows, with losses that pairs bound. Complexity: a search in a k-d tree
    for every row type.

    `duals`: (t,) of a row of each type, without what all sets lose alike; 0 where it is not
    computed.
    """

    def __init__(self, search: NearSearch, k: int) -> None:
        rows = search.rows._replace(tables=scaled_to_pairs(search.rows.tables, k))
        self._search, self._k = search._replace(rows=rows), k
        self.duals, self._cursor = np.zeros(len(search.counts)), np.zeros(1, np.int64)

    @property
    def complete(self) -> bool:
        """Whether all duals are computed."""
        return bool(self._cursor[0] == len(self.duals))

    def go_on(self, budget: Budget) -> None:
        """Compute further duals until the budget ends."""

        def step(amount: int) -> int:
            return int(_sum_step(self._search, self._k, self.duals, self._cursor, amount))

        run_in_steps(step, len(self.duals), budget, "sums over pairs", first=100)


def bounds_by_pairs(tables: LossTables) -> bool:
    """Return whether no term may be negative, and none stands for a limit."""
    plain = (tables.range_low + tables.range_high == 0).all() and (tables.range_high >= 0).all()
    unlimited = (tables.pair_strides >= 0).all() and (tables.pair_losses >= 0).all()
    return bool(plain and unlimited and (tables.set_losses >= 0).all())


def scaled_to_pairs(tables: LossTables, k: int) -> LossTables:
    """Return losses whose sum over all pairs of k rows is at most what a record of the k loses."""
    halves, sets = (k // 2) * (k - k // 2), tables.set_losses.copy()
    for start, size in zip(tables.set_start, tables.set_sizes, strict=True):
        sets[start : start + size + 1] *= _share_of_values(sets[start + 1 : start + 1 + size], k)
    return tables._replace(
        constant=0.0,
        range_low=tables.range_low / halves,
        range_high=tables.range_high / halves,
        set_losses=sets,
        pair_losses=tables.pair_losses / (k * (k - 1) // 2),
    )


def _share_of_values(losses: Floats, k: int) -> float:
    """Return the least share of what their pairs lose that k rows lose, by losses of 1, 2, ...

    `losses`: (values,) of so many distinct values, rising.
    """
    one, two = losses[0], losses[min(1, len(losses) - 1)]
    shares = [0.0]
    for values in range(1, min(k, len(losses)) + 1):
        often, more = divmod(k, values)
        alike = (often * (often - 1) // 2) * values + often * more
        lost = alike * one + (k * (k - 1) // 2 - alike) * two
        if lost > 0:
            shares.append(float(losses[values - 1] / lost))
    return min(shares[1:], default=0.0)


@kernel
def _sum_step(search: NearSearch, k: int, duals: Floats, cursor: Ints, amount: int) -> int:
    """Compute the duals of up to `amount` further types; return how many are done."""
    for row in range(cursor[0], min(cursor[0] + amount, len(duals))):
        held, missing, total = find_nearest(search, row), k - 1, 0.0
        for at in range(held):
            # Of its own type there is the row itself.
            rows = min(missing, search.counts[search.near[at]] - (at == 0))
            total += rows * search.near_losses[at]
            missing -= rows
        duals[row] = 0.5 * k * total
        cursor[0] = row + 1
    return cursor[0]
