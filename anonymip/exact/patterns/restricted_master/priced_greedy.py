"""A release by patterns from prices: the rows that cost least beyond them first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.patterns.pattern_duals import PatternDuals

#: Rows that cost more beyond the prices of their records, in costs of a star, are not tried.
_MOST = 0.35
#: What the records that are left may cost a row more than its best, in costs of a star for each k.
_WORSE = 0.02


def priced_amounts(prices: PatternDuals) -> NDArray[np.int64] | None:
    """Return (pairs,) records of each pair; None if records are left over that need companions.

    Rows stand by what they cost at least beyond the prices of their records. One after the other
    takes, of the records that are left, those that the prices want and as many more as it needs, if
    these are hardly worse than its best. Records that no row has taken go to the cheapest row that
    is in use, or that has enough of them.

    Parameters
    ----------
    prices
        Good ones: of the Lagrangian bound.

    Notes
    -----
    Complexity: O(p t log(p t)).
    """
    program, k = prices.program, prices.program.k
    left = program.counts.copy()
    amounts = np.zeros(len(prices.pair_rows), np.int64)
    order = np.argsort(prices.pair_rows, kind="stable")
    begin = np.searchsorted(prices.pair_rows[order], np.arange(program.rows + 1))
    star = program.star_cost * prices.unit
    scaled = np.floor(program.costs * prices.unit).astype(np.int64)
    tried = np.flatnonzero((prices.row_losses <= _MOST * star) & (np.diff(begin) > 0))
    for row in tried[np.argsort(prices.row_losses[tried], kind="stable")].tolist():
        pairs = order[begin[row] : begin[row + 1]]
        kinds = prices.pair_types[pairs]
        have = left[kinds]
        if have.sum() < k:
            continue
        # Pairs of a row stand by ascending cost beyond the price.
        beyond = scaled[prices.pair_patterns[pairs]] - prices.duals[kinds]
        ahead = np.cumsum(have) - have
        taken = np.where(beyond <= 0, have, np.clip(k - ahead, 0, have))
        if int(taken @ beyond) <= max(int(prices.row_losses[row]), 0) + _WORSE * star * k:
            amounts[pairs] = taken
            left[kinds] -= taken
    _fill(prices, amounts, left)
    return None if left.any() and np.isinf(program.price) else amounts


def _fill(prices: PatternDuals, amounts: NDArray[np.int64], left: NDArray[np.int64]) -> None:
    """Put records that are left into the cheapest rows in use, or with enough of them."""
    program = prices.program
    used = np.zeros(program.rows, np.bool_)
    used[prices.pair_rows[amounts > 0]] = True
    begin = np.searchsorted(prices.pair_patterns, np.arange(len(program.costs) + 1))
    for pattern in np.argsort(program.costs, kind="stable").tolist():
        if program.costs[pattern] >= program.price:
            break
        own = slice(begin[pattern], begin[pattern + 1])
        rows, kinds = prices.pair_rows[own], prices.pair_types[own]
        held = np.bincount(rows, weights=left[kinds], minlength=program.rows)
        taken = np.where((held[rows] >= program.k) | used[rows], left[kinds], 0)
        amounts[own] += taken
        left[kinds] -= taken
        used[rows[taken > 0]] = True
