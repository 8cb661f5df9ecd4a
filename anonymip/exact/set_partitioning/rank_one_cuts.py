"""Rank-1 cuts, which whole numbers of columns keep and fractions of columns break; their search.

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

Sets of up to three types with d = 2 are found exactly: with p_S(T) = 1 where column S has an odd
number of members in T, the cut of an odd b(T) asks for sum_S p_S(T) y_S >= 1. Of three types, p is
a polynomial of their single parities: the sum over columns follows from how much of the columns
holds one, two and three of them oddly. Larger sets are found by exchanges of one type.

References
----------
D. Pecin, A. Pessoa, M. Poggi, E. Uchoa, H. Santos, "Limited memory rank-1 cuts for vehicle routing
problems", Operations Research Letters 45 (2017) 206-209.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array, triu, vstack

from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Columns whose coefficients are computed at a time.
_COLUMNS_AT_ONCE = 50_000
#: Types meet where columns of more than this hold both.
_MEETING = 1e-9


def violated_triples(held: csr_array, weights: Floats, coverage: Ints) -> tuple[list[Ints], Floats]:
    """Return sets of types and how much each breaks its cut, for those that do.

    All single types, all pairs and all triples are looked at whose types share columns pairwise,
    given (c, t) members held of each type, (c,) how much of each column is taken and (t,) the
    coverage.
    """
    odd = held.copy()
    odd.data = (odd.data % 2).astype(np.float64)
    odd.eliminate_zeros()
    odd.sort_indices()
    sums = np.asarray(held.T @ weights)
    weighted = odd.copy()
    weighted.data = weighted.data * np.repeat(weights, np.diff(odd.indptr))
    both = csr_array(odd.T @ weighted)
    single = both.diagonal()
    links = csr_array(triu(both, k=1))
    links.data[links.data <= _MEETING] = 0.0
    links.eliminate_zeros()
    links.sort_indices()
    first = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
    second = links.indices.astype(np.int64)
    pairs = np.stack([first, second], axis=1)
    shared = links.data
    triples = _triangles(links, first, second)
    odd_in_triples = single[triples].sum(axis=1)
    width = held.shape[1]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        at = np.searchsorted(first * width + second, triples[:, a] * width + triples[:, b])
        odd_in_triples -= 2.0 * shared[at]
    odd_in_triples += 4.0 * _in_all_three(odd, weights, triples)
    alone = np.arange(held.shape[1])[:, None]
    sets: list[Ints] = []
    excess: list[Floats] = []
    for members, parity in (
        (alone, single),
        (pairs, single[pairs].sum(axis=1) - 2.0 * shared),
        (triples, odd_in_triples),
    ):
        broken = (sums[members].sum(axis=1) - parity) / 2.0 - coverage[members].sum(axis=1) // 2
        worst = np.flatnonzero(broken > _MEETING)
        sets += list(members[worst])
        excess.append(broken[worst])
    return sets, np.concatenate(excess)


def _triangles(links: csr_array, first: Ints, second: Ints) -> Ints:
    """Return (g, 3) ascending types that are linked pairwise."""
    if not len(first):
        return np.empty((0, 3), np.int64)
    linked = links.copy()
    linked.data = np.ones_like(linked.data)
    common = csr_array(linked[first].multiply(linked[second])).tocoo()
    edge = common.coords[0]
    return np.stack([first[edge], second[edge], common.coords[1].astype(np.int64)], axis=1)


def _in_all_three(odd: csr_array, weights: Floats, triples: Ints) -> Floats:
    """Return (g,) how much of the columns holds all three types of a triple oddly."""
    width = odd.shape[1]
    asked = (triples[:, 0] * width + triples[:, 1]) * width + triples[:, 2]
    known, total = held_together(odd, weights, 3)
    if not len(known):
        return np.zeros(len(triples))
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[at] == asked, total[at], 0.0)


def held_together(held: csr_array, weights: Floats, size: int) -> tuple[Ints, Floats]:
    """Return the sets of so many types that columns hold, and how much of the columns does.

    `held`: (c, t) members of each type. `weights`: (c,) how much of each column is taken. The sets
    are ascending numbers: their types, ascending, are the digits to the base t.
    """
    width, sizes = held.shape[1], np.diff(held.indptr)
    keys, amounts = [np.empty(0, np.int64)], [np.empty(0)]
    for count in np.unique(sizes[sizes >= size]).tolist():
        columns = np.flatnonzero(sizes == count)
        types = np.sort(held.indices[held.indptr[columns][:, None] + np.arange(count)], axis=1)
        for places in combinations(types.astype(np.int64).T, size):
            key = np.zeros(len(columns), np.int64)
            for one in places:
                key = key * width + one
            keys.append(key)
            amounts.append(weights[columns])
    known, place = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(place, np.concatenate(amounts), minlength=len(known))
    return known, total.astype(np.float64)


#: Sizes of T and divisors where every type is covered once; triples with d = 2 are found exactly.
PLAIN_SHAPES = ((4, 3), (5, 2), (5, 3), (7, 2), (7, 4), (8, 3), (9, 2), (11, 2), (11, 3), (11, 4))

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
    """One cut, of ascending row types T and a divisor d of at least 2; they compare by these."""

    types: tuple[int, ...]
    divisor: int


def right_sides(cuts: Sequence[RankOneCut], coverage: Ints) -> Ints:
    """Return (q,) floor(b(T) / d) of every cut, given (t,) how often each type is covered."""
    sides = [int(coverage[list(cut.types)].sum()) // cut.divisor for cut in cuts]
    return np.array(sides, np.int64)


def coefficients(cuts: Sequence[RankOneCut], incidence: csr_array) -> csr_array:
    """Return (c, q) the coefficient of every column in every cut, given the (c, t) incidence."""
    types = [type_ for cut in cuts for type_ in cut.types]
    owner = np.repeat(np.arange(len(cuts)), [len(cut.types) for cut in cuts])
    chosen: Any = csr_array(
        (np.ones(len(types), np.int64), (np.array(types, np.int64), owner)),
        shape=(incidence.shape[1], len(cuts)),
    )
    divisors = np.array([cut.divisor for cut in cuts], np.int64)
    parts = []
    # Most of what columns hold is less than the divisor: few of them at a time have it in memory.
    for begin in range(0, max(1, incidence.shape[0]), _COLUMNS_AT_ONCE):
        part = incidence[begin : begin + _COLUMNS_AT_ONCE].astype(np.int64)
        held = csr_array(part @ chosen)
        held.data //= divisors[held.indices]
        held.eliminate_zeros()
        held.sort_indices()
        parts.append(held)
    return parts[0] if len(parts) == 1 else csr_array(vstack(parts))


def shapes_of(coverage: Ints, largest: int) -> tuple[tuple[int, int], ...]:
    """Return the sizes of T and divisors worth a search, triples with d = 2 left out.

    What holds for most types of the (t,) coverage decides, and the most records of a column.
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
    weights: Floats,
    coverage: Ints,
    *,
    known: Iterable[RankOneCut] = (),
    seed: int = 0,
    among: Flags | None = None,
    most: int = 80,
    starts: int = 60,
) -> list[RankOneCut]:
    """Return cuts that a fractional solution breaks, worst first within each shape.

    Given are (c, t) members of each row type in each column, (c,) how much of each is taken, and
    (t,) how often each type is covered. Known cuts are not returned; `among` (t,) says which types
    T may hold. There are `most` triples at most, and a quarter of that of every other shape, which
    a local search finds from so many starts; from none, there are triples alone.

    Triples with d = 2 are all looked at whose types meet in columns pairwise, which no violated one
    lacks where every type is covered equally often and no column holds a type twice. Other shapes
    are found by exchanging one type of T for the one that breaks the cut most, from random starts
    among types that share columns. The same seed gives the same cuts.
    """
    taken = np.flatnonzero(np.abs(weights - np.rint(weights)) > _FRACTION)
    if not len(taken):
        return []
    # What is taken as a whole belongs to no violation of its own, but to the sums.
    support = np.flatnonzero(weights > _FRACTION)
    present = np.unique(csr_array(incidence[taken]).indices).astype(np.int64)
    if among is not None:
        present = present[among[present]]
    held = csr_array(incidence[support][:, present]).astype(np.int64)
    held.sort_indices()
    shares, covered = weights[support], coverage[present]
    largest = int(np.asarray(incidence[support].sum(axis=1)).max(initial=0))
    seen = set(known)
    found: list[RankOneCut] = []
    sets, excess = violated_triples(held, shares, covered)
    found += _chosen(sets, excess, 2, present, seen, most)
    if not starts:
        return found
    fractional = np.flatnonzero(np.isin(support, taken))
    rng, packed = np.random.default_rng(seed), _support(held, shares, covered)
    for size, divisor in shapes_of(coverage, largest):
        if len(present) < size:
            continue
        members, excess = np.empty((starts, size), np.int64), np.empty(starts)
        draws = rng.random((starts, _DRAWS))
        exchange(packed, fractional, draws, divisor, _VIOLATION / 10, members, excess)
        members.sort(axis=1)
        found += _chosen(list(members), excess, divisor, present, seen, max(1, most // 4))
    return found


def _chosen(
    sets: Sequence[Ints],
    excess: Floats,
    divisor: int,
    present: Ints,
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


def _support(held: csr_array, weights: Floats, coverage: Ints) -> Support:
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

    column_starts: Ints
    column_types: Ints
    column_counts: Ints
    type_starts: Ints
    type_columns: Ints
    type_counts: Ints
    shares: Floats
    coverage: Ints
    most: int


@kernel
def exchange(
    support: Support,
    fractional: Ints,
    draws: Floats,
    divisor: int,
    least_gain: float,
    sets: Ints,
    excess: Floats,
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
                base = 0.0
                added[:] = 0.0
                for c in range(columns):
                    whole = counts[c] // divisor
                    base += support.shares[c] * whole
                    # What each type would add to the left side.
                    if counts[c] + support.most < (whole + 1) * divisor:
                        continue
                    for p in range(support.column_starts[c], support.column_starts[c + 1]):
                        more = (counts[c] + support.column_counts[p]) // divisor - whole
                        added[support.column_types[p]] += support.shares[c] * more
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
def _begin(support: Support, fractional: Ints, draws: Floats, inside: Flags, chosen: Ints) -> None:
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
def _count(support: Support, counts: Ints, i: int, sign: int) -> None:
    """Count the members of a type in its columns, or no longer."""
    for p in range(support.type_starts[i], support.type_starts[i + 1]):
        counts[support.type_columns[p]] += sign * support.type_counts[p]
