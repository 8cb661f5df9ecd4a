"""Perfect matchings of bipartite graphs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from anonymip.assignments import Cover


def perfect_matching(graph: Cover) -> NDArray[np.int32] | None:
    """Return (n,) an original for each published record, each original once; None if impossible.

    Parameters
    ----------
    graph
        The edges; records need not lie in their own sets.

    Notes
    -----
    Complexity: O(edges sqrt(n)), by Hopcroft and Karp's algorithm. The matching is no random one:
    nothing is to be published along it.
    """
    n = graph.n
    edges = csr_array((np.ones(len(graph.members), np.int8), graph.members, graph.start), (n, n))
    matched = maximum_bipartite_matching(edges, perm_type="column").astype(np.int32)
    return None if (matched < 0).any() else matched
