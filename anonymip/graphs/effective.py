"""Effective matches: those that lie in some assignment of all originals to published records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import Cover


def effective_matches(cover: Cover) -> NDArray[np.bool_]:
    """Return (edges,) whether each entry of `cover.members` can be true.

    A match is *effective* if some assignment, one original for each published record, contains it
    (Wong et al. [1]_, Def. 4). Every record lies in its own set, so the identity is an assignment,
    and another match (l, i) is effective exactly if it closes a cycle: if l and i lie in one
    strongly connected component (Theorem 1).

    Parameters
    ----------
    cover
        Every record lies in its own set.

    Notes
    -----
    Complexity: O(n + edges).

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 4.1.
    """
    component = components(cover)
    inside: NDArray[np.bool_] = component[cover.owners] == component[cover.members]
    return inside


def components(cover: Cover) -> NDArray[np.int32]:
    """Return (n,) numbers of the strongly connected components of a generalization graph.

    No assignment leads from one component into another (Wong et al., Theorem 2).

    Notes
    -----
    Complexity: O(n + edges).
    """
    n = cover.n
    graph = csr_array((np.ones(len(cover.members), np.int8), cover.members, cover.start), (n, n))
    labels: NDArray[np.int32] = connected_components(graph, directed=True, connection="strong")[1]
    return labels


def effective_sizes(cover: Cover) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (n,) effective matches of each published record, and of each original record."""
    effective = effective_matches(cover)
    published = np.bincount(cover.owners[effective], minlength=cover.n)
    original = np.bincount(cover.members[effective], minlength=cover.n)
    return published, original
