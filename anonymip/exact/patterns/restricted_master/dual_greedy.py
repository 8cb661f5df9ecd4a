"""A release by patterns from duals: the rows of least reduced cost first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.patterns.pattern_duals import PatternDuals

#: Rows of a higher reduced cost, in costs of a star, are not tried.
_MOST = 0.35
#: What the records that are left may cost a row more than its best, in costs of a star for each k.
_WORSE = 0.02


def amounts_by_duals(duals: PatternDuals) -> NDArray[np.int64] | None:
    """Return (pairs,) records of each pair; None if records are left over that need companions.

    Rows are taken by ascending reduced cost. One after the other takes, of the records that are
    left, those that cost less than their duals, and as many more as it needs, if these
    are hardly worse than its best. Records that no row has taken go to the cheapest row that
    is in use, or that has enough of them.

    Parameters
    ----------
    duals
        Good ones: of the Lagrangian bound.

    Notes
    -----
    Complexity: O(p t log(p t)).
    """
    program, k = duals.program, duals.program.k
    left = program.counts.copy()
    amounts = np.zeros(len(duals.pair_rows), np.int64)
    order = np.argsort(duals.pair_rows, kind="stable")
    begin = np.searchsorted(duals.pair_rows[order], np.arange(program.rows + 1))
    star = program.star_cost * duals.unit
    scaled = np.floor(program.costs * duals.unit).astype(np.int64)
    tried = np.flatnonzero((duals.row_losses <= _MOST * star) & (np.diff(begin) > 0))
    for row in tried[np.argsort(duals.row_losses[tried], kind="stable")].tolist():
        pairs = order[begin[row] : begin[row + 1]]
        types = duals.pair_types[pairs]
        have = left[types]
        if have.sum() < k:
            continue
        # Pairs of a row ascend by the cost of a record less its dual.
        net = scaled[duals.pair_patterns[pairs]] - duals.multipliers[types]
        ahead = np.cumsum(have) - have
        taken = np.where(net <= 0, have, np.clip(k - ahead, 0, have))
        if int(taken @ net) <= max(int(duals.row_losses[row]), 0) + _WORSE * star * k:
            amounts[pairs] = taken
            left[types] -= taken
    _fill(duals, amounts, left)
    return None if left.any() and np.isinf(program.price) else amounts


def _fill(duals: PatternDuals, amounts: NDArray[np.int64], left: NDArray[np.int64]) -> None:
    """Put records that are left into the cheapest rows in use, or with enough of them."""
    program = duals.program
    used = np.zeros(program.rows, np.bool_)
    used[duals.pair_rows[amounts > 0]] = True
    begin = np.searchsorted(duals.pair_patterns, np.arange(len(program.costs) + 1))
    for pattern in np.argsort(program.costs, kind="stable").tolist():
        if program.costs[pattern] >= program.price:
            break
        own = slice(begin[pattern], begin[pattern + 1])
        rows, types = duals.pair_rows[own], duals.pair_types[own]
        held = np.bincount(rows, weights=left[types], minlength=program.rows)
        taken = np.where((held[rows] >= program.k) | used[rows], left[types], 0)
        amounts[own] += taken
        left[types] -= taken
        used[rows[taken > 0]] = True
