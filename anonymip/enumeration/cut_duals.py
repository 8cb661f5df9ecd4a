"""Rank-1 cuts of a set-partitioning master, as the pricing of columns reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.enumeration.rooted_state import CutsOfRows
from anonymip.errors import InputError


@dataclass(frozen=True, eq=False)
class CutDuals:
    """Rank-1 cuts and their duals.

    A column pays the dual of a cut once for every `divisor` of its members in the cut, rounded
    down.

    Parameters
    ----------
    starts, types
        Row types of the cut q: types[starts[q]:starts[q + 1]], different ones.
    divisors
        (cuts,) whole numbers, at least 1.
    duals
        (cuts,) at least 0.
    """

    starts: NDArray[np.int64]
    types: NDArray[np.int64]
    divisors: NDArray[np.int64]
    duals: NDArray[np.float64]


def cuts_of_rows(types: int, cuts: CutDuals | None) -> CutsOfRows:
    """Return the cuts that cost anything, type by type."""
    if cuts is None:
        nothing = np.zeros(0, np.int64)
        return CutsOfRows(np.zeros(types + 1, np.int64), nothing, nothing, np.zeros(0), nothing)
    divisors = np.asarray(cuts.divisors, np.int64)
    duals = np.asarray(cuts.duals, np.float64)
    if not (np.isfinite(duals).all() and (duals >= 0).all() and (divisors >= 1).all()):
        raise InputError(
            "duals of cuts are negative or infinite, or divisors below 1",
            remedy="Give duals of at least 0 and divisors of at least 1",
        )
    kept = np.flatnonzero(duals > 0)
    by_type = _membership(cuts, types)[kept].tocsc()
    return CutsOfRows(
        by_type.indptr.astype(np.int64),
        by_type.indices.astype(np.int64),
        divisors[kept],
        duals[kept],
        np.zeros(len(kept), np.int64),
    )


def _membership(cuts: CutDuals, types: int) -> csr_array:
    """Return (cuts, t) which types each cut holds."""
    listed = np.asarray(cuts.types, np.int64)
    shape = len(cuts.duals), types
    return csr_array((np.ones(len(listed), np.int64), listed, np.asarray(cuts.starts)), shape)


def cuts_paid(
    cuts: CutDuals, members: NDArray[np.int32], starts: NDArray[np.int64], types: int
) -> NDArray[np.float64]:
    """Return (c,) what columns pay of the duals of cuts."""
    columns = csr_array(
        (np.ones(len(members), np.int64), members, starts), (len(starts) - 1, types)
    )
    held = (columns @ _membership(cuts, types).T).tocoo()
    cut = held.col
    paid = held.data // np.asarray(cuts.divisors, np.int64)[cut] * np.asarray(cuts.duals)[cut]
    return np.bincount(held.row, paid, len(starts) - 1).astype(np.float64)
