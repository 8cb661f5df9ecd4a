"""Perfect matchings of regular bipartite graphs by random walks.

References
----------
.. [1] A. Goel, M. Kapralov, S. Khanna: Perfect Matchings in O(n log n) Time in Regular Bipartite
   Graphs, STOC 2010, Section 3.
.. [2] D. B. Wilson: Generating Random Spanning Trees More Quickly than the Cover Time, STOC 1996.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.graphs.open_edges import OpenEdges
from anonymip.runtime.kernels import kernel


@kernel
def walk_matching(edges: OpenEdges, rng: np.random.Generator) -> NDArray[np.int32]:
    """Return (n,) the original of each published record in a random perfect matching.

    Published records are served in random order. Each walks along random edges, and from an
    original that is taken on to the published record that holds it, until it meets a free one.
    Every published record remembers by which edge the walk left it last; following these edges
    from the first one gives the walk without its loops [2]_, an augmenting path.

    Parameters
    ----------
    edges
        A regular bipartite graph with at least one edge at each record.
    rng
        Source of randomness.

    Notes
    -----
    Complexity: O(n log n) steps expected, whatever the degree: the walk for the j-th record takes
    about 2 + n / (n - j) of them [1]_. The paper gives up walks that take much longer, for a bound
    that holds with high probability; without this they end with probability 1.
    """
    n = len(edges.start)
    order = rng.permutation(n)
    taken_by = np.full(n, -1, np.int32)
    held = np.full(n, -1, np.int64)  # place of the edge that matches a published record
    leaving = np.zeros(n, np.int64)
    for first in order:
        record = first
        while True:
            place = edges.start[record] + int(rng.random() * edges.left[record])
            if place == held[record]:
                continue
            leaving[record] = place
            holder = taken_by[edges.members[place]]
            if holder < 0:
                break
            record = holder
        # The edges by which the walk left its records last are an augmenting path.
        record = first
        while record >= 0:
            place = leaving[record]
            original = edges.members[place]
            holder = taken_by[original]
            taken_by[original] = record
            held[record] = place
            record = holder
    matching = np.empty(n, np.int32)
    for record in range(n):
        matching[record] = edges.members[held[record]]
    return matching
