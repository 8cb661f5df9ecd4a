"""Branching on how often two row types are together (Ryan and Foster).

In a whole solution the number of columns that hold both of two types is whole. Where each of the
two is covered once, it is 0 or 1, and either branch only loses columns: together, those that hold
one of the two; apart, those that hold both. Elsewhere a branch is a row, and where all pairs are
whole, it bounds the amount of one column.

References
----------
D. M. Ryan, B. A. Foster, "An integer programming approach to scheduling", in: Computer Scheduling
of Public Transport (1981) 269-280.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.column_generation.pool.pool import Pool
from anonymip.exact.column_generation.pool.relaxation import PoolRelaxation, Relaxed

#: So many pairs are tried before one is branched on.
_CANDIDATES = 8

#: Iterations of the simplex method for each side of a trial: with three times as many the trials
#: take half as long again and choose no better.
_ITERATIONS = 50

#: An amount is a fraction from here on.
_FRACTION = 1e-6

#: What a branch raises the bound by counts at least this much.
_LEAST_GAIN = 1e-6


@dataclass(frozen=True, eq=False)
class Branch:
    """One side of a branching.

    Parameters
    ----------
    kept
        (a,) which of the columns of the node stay.
    row
        (c,) which columns of the pool the branch's row counts; None without a row.
    side
        Of the row.
    least
        Whether it is a lower side.
    """

    kept: NDArray[np.bool_]
    row: NDArray[np.bool_] | None = None
    side: float = 0.0
    least: bool = False


def branches(
    pool: Pool,
    relaxation: PoolRelaxation,
    relaxed: Relaxed,
    active: NDArray[np.int64],
    cutoff: float,
) -> tuple[Branch, Branch] | None:
    """Return two branches that no whole solution lies outside of; None if the point is whole.

    Of the pairs whose amount is nearest to a half, the one is taken whose branches raise the value
    of the relaxation most, as far as few iterations with the columns in its program show.
    """
    pairs, amounts = _fractional_pairs(pool, relaxed)
    if len(pairs):
        plain = (pool.coverage[pairs] == 1).all(axis=1)
        if plain.any():
            return _together_or_apart(pool, relaxation, pairs[plain], active, cutoff, relaxed.bound)
        i, j = pairs[0].tolist()
        everything = np.arange(len(pool.costs))
        row = pool.holds(i, everything) & pool.holds(j, everything)
        return _by_row(row, float(amounts[0]), len(active))
    distance = np.abs(relaxed.weights - np.rint(relaxed.weights))
    if distance.max(initial=0.0) <= _FRACTION:
        return None
    worst = int(distance.argmax())
    row = np.zeros(len(pool.costs), np.bool_)
    row[relaxed.columns[worst]] = True
    return _by_row(row, float(relaxed.weights[worst]), len(active))


def _by_row(row: NDArray[np.bool_], amount: float, active: int) -> tuple[Branch, Branch]:
    kept = np.ones(active, np.bool_)
    below = float(np.floor(amount))
    return Branch(kept, row, below), Branch(kept, row, below + 1.0, least=True)


def _fractional_pairs(
    pool: Pool, relaxed: Relaxed
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (p, 2) pairs of types and (p,) their fractional amounts, nearest to a half first."""
    members = csr_array(pool.incidence[relaxed.columns])
    sizes = np.diff(members.indptr)
    t = len(pool.coverage)
    keys = [np.empty(0, np.int64)]
    weights = [np.empty(0)]
    for size in np.unique(sizes).tolist():
        columns = np.flatnonzero(sizes == size)
        types = members.indices[members.indptr[columns][:, None] + np.arange(size)]
        types = np.sort(types, axis=1).astype(np.int64)
        for a, b in combinations(range(size), 2):
            keys.append(types[:, a] * t + types[:, b])
            weights.append(relaxed.weights[columns])
    known, place = np.unique(np.concatenate(keys), return_inverse=True)
    amounts = np.bincount(place, np.concatenate(weights), minlength=len(known)).astype(np.float64)
    share = amounts - np.floor(amounts)
    broken = np.flatnonzero((share > _FRACTION) & (share < 1.0 - _FRACTION))
    order = broken[np.argsort(np.round(np.abs(share[broken] - 0.5), 9), kind="stable")]
    return np.stack([known[order] // t, known[order] % t], axis=1), amounts[order]


def _together_or_apart(
    pool: Pool,
    relaxation: PoolRelaxation,
    pairs: NDArray[np.int64],
    active: NDArray[np.int64],
    cutoff: float,
    value: float,
) -> tuple[Branch, Branch]:
    sides = []
    for i, j in pairs[:_CANDIDATES].tolist():
        first, second = pool.holds(i, active), pool.holds(j, active)
        sides.append((Branch(first == second), Branch(~(first & second))))
    tried = [active[side.kept] for both in sides for side in both]
    raised = np.minimum(relaxation.values_soon(tried, _ITERATIONS), cutoff) - value
    gains = np.maximum(raised.reshape(-1, 2), _LEAST_GAIN)
    return sides[int(gains.prod(axis=1).argmax())]
