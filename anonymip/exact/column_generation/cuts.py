"""Rank-1 cuts: what whole numbers of columns keep, and fractions of columns break.

For a set T of row types and a divisor d, adding up the covering rows of T and rounding down gives

    sum_S floor(a_S(T) / d) y_S <= floor(b(T) / d),

where a_S(T) counts the members of column S whose types lie in T and b(T) is how often the types of
T are covered in all: by their multiplicities in classes, k times as often in freeform releases.

Which T and d are of use follows from what rounding leaves over: a_S(T) sums to b(T), so that the
cut asks for sum_S (a_S(T) mod d) y_S >= b(T) mod d. Where every type is covered once, the known
sizes serve: (|T|, d) = (3, 2), (4, 3), (5, 2), (5, 3), (7, 2), (7, 4) and (8, 3), and up to 11
types where classes are large. Where every type is covered c > 1 times, nothing is left over unless
c |T| mod d is positive, and most if it is d - 1: so d is no divisor of c, and |T| = -1 / c modulo
d. At k = 3 that is d = 2 with 3, 5 or 7 types; at k = 5 also (4, 3), (7, 3) and (7, 4); at k = 4
and 10 no cut by halves, but by thirds. A column of k records gives nothing to a divisor above k,
and d = k leaves nothing over.

References
----------
D. Pecin, A. Pessoa, M. Poggi, E. Uchoa, H. Santos, "Limited memory rank-1 cuts for vehicle routing
problems", Operations Research Letters 45 (2017) 206-209.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.column_generation.exchanges import Support, exchange
from anonymip.exact.column_generation.triples import violated_triples

#: Sizes of T and divisors where every type is covered once; triples with d = 2 are found exactly.
PLAIN_SHAPES = (
    (4, 3),
    (5, 2),
    (5, 3),
    (7, 2),
    (7, 4),
    (8, 3),
    (9, 2),
    (11, 2),
    (11, 3),
    (11, 4),
)

#: No T of types that are covered more than once is larger.
_LARGEST = 8

#: A fraction of a column counts from here on, a violation from there on.
_FRACTION, _VIOLATION = 1e-6, 0.03

#: Random numbers for each start.
_DRAWS = 64

#: A type is in at most so many new cuts of one shape.
_EACH_TYPE = 6


@dataclass(frozen=True, order=True)
class RankOneCut:
    """One cut; cuts of the same types and divisor are equal.

    Parameters
    ----------
    types
        Row types of T, ascending.
    divisor
        d, at least 2.
    """

    types: tuple[int, ...]
    divisor: int

    def right_side(self, coverage: NDArray[np.int64]) -> int:
        """Return floor(b(T) / d), given (t,) how often each type is covered."""
        return int(coverage[list(self.types)].sum()) // self.divisor


def right_sides(cuts: Sequence[RankOneCut], coverage: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (q,) the right side of every cut."""
    return np.array([cut.right_side(coverage) for cut in cuts], np.int64)


def coefficients(cuts: Sequence[RankOneCut], incidence: csr_array) -> csr_array:
    """Return (c, q) the coefficient of every column in every cut.

    Parameters
    ----------
    cuts
        The q cuts.
    incidence
        (c, t) members of each row type in each column.
    """
    types = [type_ for cut in cuts for type_ in cut.types]
    owner = np.repeat(np.arange(len(cuts)), [len(cut.types) for cut in cuts])
    chosen: Any = csr_array(
        (np.ones(len(types), np.int64), (np.array(types, np.int64), owner)),
        shape=(incidence.shape[1], len(cuts)),
    )
    held = csr_array(incidence.astype(np.int64) @ chosen)
    held.data //= np.array([cut.divisor for cut in cuts], np.int64)[held.indices]
    held.eliminate_zeros()
    held.sort_indices()
    return held


def shapes_of(coverage: NDArray[np.int64], largest: int) -> tuple[tuple[int, int], ...]:
    """Return the sizes of T and divisors worth a search, triples with d = 2 left out.

    Parameters
    ----------
    coverage
        (t,) how often each type is covered; what holds for most types decides.
    largest
        Most records in a column.
    """
    values, counts = np.unique(coverage, return_counts=True)
    usual = int(values[counts.argmax()])
    if usual == 1:
        return tuple((size, d) for size, d in PLAIN_SHAPES if d <= largest)
    return tuple(
        (size, d)
        for d in range(2, min(largest, _LARGEST))
        for size in range(max(d, 3), _LARGEST)
        if (usual * size) % d == d - 1 and (size, d) != (3, 2)
    )


def separate(
    incidence: csr_array,
    weights: NDArray[np.float64],
    coverage: NDArray[np.int64],
    *,
    known: Iterable[RankOneCut] = (),
    seed: int = 0,
    most: int = 80,
    starts: int = 60,
) -> list[RankOneCut]:
    """Return cuts that a fractional solution breaks, worst first within each shape.

    Parameters
    ----------
    incidence
        (c, t) members of each row type in each column.
    weights
        (c,) how much of each column is taken.
    coverage
        (t,) how often each type is covered.
    known
        Cuts that are not to be returned.
    seed
        Of the starts of the local search.
    most
        Triples, and a quarter of that of every other shape, at most.
    starts
        Of the local search for each shape.

    Notes
    -----
    Triples with d = 2 are all looked at whose types meet in columns pairwise, which no violated
    one lacks where every type is covered equally often and no column holds a type twice. Other
    shapes are found by exchanging one type of T for the one that breaks the cut most, from random
    starts among types that share columns. The same seed gives the same cuts.
    """
    taken = np.flatnonzero(np.abs(weights - np.rint(weights)) > _FRACTION)
    if not len(taken):
        return []
    # What is taken as a whole belongs to no violation of its own, but to the sums.
    support = np.flatnonzero(weights > _FRACTION)
    present = np.unique(csr_array(incidence[taken]).indices).astype(np.int64)
    held = csr_array(incidence[support][:, present]).astype(np.int64)
    held.sort_indices()
    shares, covered = weights[support], coverage[present]
    largest = int(np.asarray(incidence[support].sum(axis=1)).max(initial=0))
    seen = set(known)
    found: list[RankOneCut] = []
    sets, excess = violated_triples(held, shares, covered)
    found += _chosen(sets, excess, 2, present, seen, most)
    fractional = np.flatnonzero(np.isin(support, taken))
    rng, packed = np.random.default_rng(seed), _support(held, shares, covered)
    for size, divisor in shapes_of(coverage, largest):
        if len(present) < size:
            continue
        members, excess = _search(packed, fractional, size, divisor, starts, rng)
        found += _chosen(list(members), excess, divisor, present, seen, max(1, most // 4))
    return found


def _chosen(
    sets: Sequence[NDArray[np.int64]],
    excess: NDArray[np.float64],
    divisor: int,
    present: NDArray[np.int64],
    seen: set[RankOneCut],
    most: int,
) -> list[RankOneCut]:
    """Return the new cuts that are broken most, no type in many of them."""
    chosen: list[RankOneCut] = []
    uses = np.zeros(len(present), np.int64)
    for at in np.argsort(-excess, kind="stable").tolist():
        if excess[at] <= _VIOLATION or len(chosen) == most:
            break
        members = sets[at]
        cut = RankOneCut(tuple(sorted(present[members].tolist())), divisor)
        if cut in seen or uses[members].max() >= _EACH_TYPE:
            continue
        uses[members] += 1
        seen.add(cut)
        chosen.append(cut)
    return chosen


def _search(
    support: Support,
    fractional: NDArray[np.int64],
    size: int,
    divisor: int,
    starts: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (starts, size) sets of types and (starts,) how much each breaks its cut."""
    sets, excess = np.empty((starts, size), np.int64), np.empty(starts)
    draws = rng.random((starts, _DRAWS))
    exchange(support, fractional, draws, divisor, _VIOLATION / 10, sets, excess)
    sets.sort(axis=1)
    return sets, excess


def _support(held: csr_array, weights: NDArray[np.float64], coverage: NDArray[np.int64]) -> Support:
    by_type = csr_array(held.T)
    return Support(
        column_starts=held.indptr.astype(np.int64),
        column_types=held.indices.astype(np.int64),
        column_counts=held.data.astype(np.int64),
        type_starts=by_type.indptr.astype(np.int64),
        type_columns=by_type.indices.astype(np.int64),
        type_counts=by_type.data.astype(np.int64),
        shares=np.ascontiguousarray(weights, np.float64),
        coverage=np.ascontiguousarray(coverage, np.int64),
        most=int(held.data.max(initial=1)),
    )
