"""Structure of covers: effective matches, which lie in some assignment, components, and rings."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import Cover
from anonymip.runtime.arrays import Codes, Flags, Ints


def effective_matches(cover: Cover) -> Flags:
    """Return (edges,) whether each entry of `cover.members` can be true.

    A match is *effective* if some assignment, one original for each published record, contains it
    (Wong et al. [1]_, Def. 4). Every record lies in its own set, so the identity is an assignment,
    and another match (l, i) is effective exactly if it closes a cycle: if l and i lie in one
    strongly connected component (Theorem 1).

    `cover`: every record lies in its own set. Complexity: O(n + edges).

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 4.1.
    """
    component = components(cover)
    inside: Flags = component[cover.owners] == component[cover.members]
    return inside


def components(cover: Cover) -> Codes:
    """Return (n,) numbers of the strongly connected components of a generalization graph.

    No assignment leads from one component into another (Wong et al., Theorem 2).

    Complexity: O(n + edges).
    """
    labels: Codes = connected_components(_graph(cover), directed=True, connection="strong")[1]
    return labels


def _graph(cover: Cover) -> csr_array:
    """Return the (n, n) matrix of a generalization graph, a row a published record."""
    ones = np.ones(len(cover.members), np.int32)
    return csr_array((ones, cover.members, cover.start), (cover.n, cover.n))


def effective_sizes(cover: Cover) -> tuple[Ints, Ints]:
    """Return (n,) effective matches of each published record, and of each original record."""
    effective = effective_matches(cover)
    published = np.bincount(cover.owners[effective], minlength=cover.n)
    original = np.bincount(cover.members[effective], minlength=cover.n)
    return published, original


#: Entries of the sets that are compared at a time.
_BATCH = 4_000_000


def ring_successors(cover: Cover) -> Ints | None:
    """Return (n,) the next record on the ring of each record; None if the cover is no rings.

    The set of a record must be the record and its next ones on a closed order, all sets of one
    size; several rings, as of a table in parts, and classes are rings too. On a ring of more than K
    records only the set of the next record lacks exactly the record itself; on one of K all sets
    are equal, and any closed order will do. What is found is checked. Complexity: O(n K^2).
    """
    degree = int(cover.sizes[0])
    if (cover.sizes != degree).any() or (cover.degrees != degree).any():
        return None
    n, sets = cover.n, cover.matches
    if degree == 1:
        return np.arange(n)
    # How many records two sets share; many more where the second holds the owner of the first.
    edges = _graph(cover)
    back, following = edges.T.tocsr(), np.full(n, -1, np.int64)
    step = max(1, _BATCH // degree**2)
    for begin in range(0, n, step):
        part = slice(begin, begin + step)
        shared = edges[part].multiply(edges[part] @ back + degree * back[part]).tocoo()
        found = shared.data == degree - 1
        following[begin + shared.row[found]] = shared.col[found]
    # The members of sets that all records in them share follow each other, ascending.
    open_ends = np.flatnonzero(following < 0)
    own = sets[open_ends]
    shared = (sets[own] == own[:, None, :]).all(axis=(1, 2))
    open_ends, own = open_ends[shared], own[shared]
    place = (own == open_ends[:, None]).argmax(axis=1)
    following[open_ends] = own[np.arange(len(own)), (place + 1) % degree]
    if (following < 0).any() or (np.bincount(following, minlength=n) != 1).any():
        return None
    # Whether every set is the record and the next ones.
    walked = np.empty((n, degree), np.int64)
    walked[:, 0] = np.arange(n)
    for place in range(1, degree):
        walked[:, place] = following[walked[:, place - 1]]
    return following if (np.sort(walked, axis=1) == sets).all() else None
