"""The local search for rank-1 cuts: types of a set exchanged while that breaks its cut more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Share of a column's types that a start takes.
_TAKEN = 0.6
#: Columns that a start looks at before it takes any type.
_STEPS = 40


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
    fractional: NDArray[np.int64],
    draws: NDArray[np.float64],
    divisor: int,
    least_gain: float,
    sets: NDArray[np.int64],
    excess: NDArray[np.float64],
) -> None:
    """Fill (s, size) sets of types, and (s,) how much each breaks its cut.

    Each set begins in one of the fractional columns, with random numbers (s, r) below 1, and grows
    in columns that share types with it.
    """
    columns, types = len(support.shares), len(support.coverage)
    counts = np.empty(columns, np.int64)
    added = np.empty(types)
    inside = np.zeros(types, np.bool_)
    for s in range(sets.shape[0]):
        chosen = sets[s]
        _begin(support, fractional, draws[s], inside, chosen)
        counts[:] = 0
        covered = 0
        for at in range(len(chosen)):
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
def _begin(
    support: Support,
    fractional: NDArray[np.int64],
    draws: NDArray[np.float64],
    inside: NDArray[np.bool_],
    chosen: NDArray[np.int64],
) -> None:
    """Choose different types from columns that share types, and mark them."""
    size, drawn, steps = 0, 0, 0
    column = fractional[int(draws[0] * len(fractional))]
    while size < len(chosen):
        begin, end = support.column_starts[column], support.column_starts[column + 1]
        steps += 1
        is_new = False
        for p in range(begin, end):
            drawn = (drawn + 1) % len(draws)
            i = support.column_types[p]
            if size < len(chosen) and not inside[i]:
                is_new = True
                if draws[drawn] < _TAKEN:
                    inside[i], chosen[size] = True, i
                    size += 1
        if size < len(chosen) and (not is_new or steps > _STEPS):
            # No type near is left: any other one, so that the end is reached.
            drawn = (drawn + 1) % len(draws)
            i = int(draws[drawn] * len(inside))
            while inside[i]:
                i = (i + 1) % len(inside)
            inside[i], chosen[size] = True, i
            size += 1
        drawn = (drawn + 1) % len(draws)
        near = chosen[int(draws[drawn] * size)] if size else support.column_types[begin]
        begin, end = support.type_starts[near], support.type_starts[near + 1]
        drawn = (drawn + 1) % len(draws)
        column = support.type_columns[begin + int(draws[drawn] * (end - begin))]


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
