"""Sets of up to three row types whose rank-1 cut with divisor 2 a fractional solution breaks.

With p_S(T) = 1 where column S has an odd number of members in T, the cut of an odd b(T) asks for
sum_S p_S(T) y_S >= 1. Of three types, p is a polynomial of their single parities: the sum over
columns follows from how much of the columns holds one, two and three of them oddly.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, triu

#: Types meet where columns of more than this hold both.
_MEETING = 1e-9


def violated_triples(
    held: csr_array, weights: NDArray[np.float64], coverage: NDArray[np.int64]
) -> tuple[list[NDArray[np.int64]], NDArray[np.float64]]:
    """Return sets of types and how much each breaks its cut, for those that do.

    Parameters
    ----------
    held
        (c, t) members of each type in each column.
    weights
        (c,) how much of each column is taken.
    coverage
        (t,) how often each type is covered.

    Notes
    -----
    All single types, all pairs and all triples are looked at whose types share columns pairwise.
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
    for a, b in ((0, 1), (0, 2), (1, 2)):
        odd_in_triples -= 2.0 * _links_of(links, triples[:, a], triples[:, b])
    odd_in_triples += 4.0 * _in_all_three(odd, weights, triples)
    alone = np.arange(held.shape[1])[:, None]
    sets: list[NDArray[np.int64]] = []
    excess: list[NDArray[np.float64]] = []
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


def _triangles(
    links: csr_array, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return (g, 3) ascending types that are linked pairwise."""
    if not len(first):
        return np.empty((0, 3), np.int64)
    linked = links.copy()
    linked.data = np.ones_like(linked.data)
    common = csr_array(linked[first].multiply(linked[second])).tocoo()
    edge = common.coords[0]
    return np.stack([first[edge], second[edge], common.coords[1].astype(np.int64)], axis=1)


def _links_of(links: csr_array, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what links pairs of types a < b, all of which are linked."""
    width = links.shape[1]
    first = np.repeat(np.arange(links.shape[0], dtype=np.int64), np.diff(links.indptr))
    return np.asarray(links.data[np.searchsorted(first * width + links.indices, a * width + b)])


def _in_all_three(
    odd: csr_array, weights: NDArray[np.float64], triples: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (g,) how much of the columns holds all three types of a triple oddly."""
    width = odd.shape[1]
    asked = (triples[:, 0] * width + triples[:, 1]) * width + triples[:, 2]
    sizes = np.diff(odd.indptr)
    keys, amounts = [np.empty(0, np.int64)], [np.empty(0)]
    for size in np.unique(sizes[sizes >= 3]).tolist():
        columns = np.flatnonzero(sizes == size)
        members = odd.indices[odd.indptr[columns][:, None] + np.arange(size)].astype(np.int64)
        for a, b, c in combinations(range(size), 3):
            keys.append((members[:, a] * width + members[:, b]) * width + members[:, c])
            amounts.append(weights[columns])
    known, place = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(place, np.concatenate(amounts), minlength=len(known))
    if not len(known):
        return np.zeros(len(triples))
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[at] == asked, total[at], 0.0)
