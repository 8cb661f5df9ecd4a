"""The local search for rank-1 cuts: types of a set exchanged while that breaks its cut more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class Support(Packed):
    """The columns that a fractional solution takes.

    Columns with the types that they hold, and types with the columns that hold them: starts,
    numbers, and how many members each time. `shares` is how much of each column is taken,
    `coverage` how often each type is covered, `most` the most members of one type in a column.
    """

    column_starts: NDArray[np.int64]
    column_types: NDArray[np.int64]
    column_counts: NDArray[np.int64]
    type_starts: NDArray[np.int64]
    type_columns: NDArray[np.int64]
    type_counts: NDArray[np.int64]
    shares: NDArray[np.float64]
    coverage: NDArray[np.int64]
    most: int


@kernel
def exchange(
    support: Support,
    sets: NDArray[np.int64],
    divisor: int,
    least_gain: float,
    excess: NDArray[np.float64],
) -> None:
    """Improve each of (s, size) sets of types, and fill (s,) how much each breaks its cut."""
    columns, types = len(support.shares), len(support.coverage)
    counts = np.empty(columns, np.int64)
    added = np.empty(types)
    inside = np.zeros(types, np.bool_)
    for s in range(sets.shape[0]):
        chosen = sets[s]
        counts[:] = 0
        covered = 0
        for at in range(len(chosen)):
            inside[chosen[at]] = True
            covered += support.coverage[chosen[at]]
            _count(support, counts, chosen[at], 1)
        while True:
            value = 0.0
            for c in range(columns):
                value += support.shares[c] * (counts[c] // divisor)
            value -= covered // divisor
            best, place, other = value + least_gain, -1, -1
            for at in range(len(chosen)):
                # Without the type at this place, then with any other in its stead.
                _count(support, counts, chosen[at], -1)
                base = _added(support, counts, divisor, added)
                left = covered - support.coverage[chosen[at]]
                for i in range(types):
                    if not inside[i]:
                        gain = base + added[i] - (left + support.coverage[i]) // divisor
                        if gain > best:
                            best, place, other = gain, at, i
                _count(support, counts, chosen[at], 1)
            if place < 0:
                break
            out = chosen[place]
            _count(support, counts, out, -1)
            _count(support, counts, other, 1)
            covered += support.coverage[other] - support.coverage[out]
            inside[out], inside[other] = False, True
            chosen[place] = other
        excess[s] = value
        for at in range(len(chosen)):
            inside[chosen[at]] = False


@kernel
def _count(support: Support, counts: NDArray[np.int64], i: int, sign: int) -> None:
    """Count the members of a type in its columns, or no longer."""
    for p in range(support.type_starts[i], support.type_starts[i + 1]):
        counts[support.type_columns[p]] += sign * support.type_counts[p]


@kernel
def _added(
    support: Support, counts: NDArray[np.int64], divisor: int, added: NDArray[np.float64]
) -> float:
    """Return the left side of a cut, and fill what each type would add to it."""
    added[:] = 0.0
    base = 0.0
    for c in range(len(counts)):
        held = counts[c] // divisor
        base += support.shares[c] * held
        if counts[c] + support.most < (held + 1) * divisor:
            continue
        for p in range(support.column_starts[c], support.column_starts[c + 1]):
            more = (counts[c] + support.column_counts[p]) // divisor - held
            added[support.column_types[p]] += support.shares[c] * more
    return base
