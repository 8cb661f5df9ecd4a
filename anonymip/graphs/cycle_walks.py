"""Random perfect matchings by random cycles, as Wong et al. draw them.

References
----------
.. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy Preserving
   Data Publishing, SIGMOD 2010, Fig. 7 and Section 5.2.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.graphs.open_edges import OpenEdges
from anonymip.runtime.kernels import kernel


@kernel
def cycle_matching(
    edges: OpenEdges, permutation: NDArray[np.int32], rng: np.random.Generator
) -> NDArray[np.int32]:
    """Return (n,) the original of each published record in a random perfect matching.

    Start from a permutation, whose pairs need not be edges. While a record has no valid match,
    take one of these at random; it takes a random open original, whose holder has to take another
    one, and so on until one takes what the first one gave up. No original is visited twice in
    one walk; at a dead end the walk steps back. Then all records of the cycle are matched [1]_.

    Parameters
    ----------
    edges
        A graph with a perfect matching.
    permutation
        (n,) a first original for each published record, all different.
    rng
        Source of randomness.

    Returns
    -------
    matching
        Empty if there is no perfect matching.

    Notes
    -----
    The paper walks from originals to published records; this is its mirror image, since a cover
    lists the originals of published records. The walk always closes: by Hall's condition the
    published records reached from the first one have at least as many open originals as they are,
    and held ones only among their own, unless what the first one gave up is among them.
    Complexity: O(edges) a cycle. Cycles are few where walks are long: a walk that
    avoids what it has seen takes in a good share of a component.
    """
    n = len(edges.start)
    matching = permutation.copy()
    holder = np.empty(n, np.int32)
    valid = np.zeros(n, np.bool_)
    # A pair of the permutation is valid if it is an open edge.
    for record in range(n):
        holder[matching[record]] = record
        for place in range(edges.start[record], edges.start[record] + edges.left[record]):
            if edges.members[place] == matching[record]:
                valid[record] = True
    seen = np.full(n, -1, np.int32)  # number of the walk that saw an original last
    tried = np.zeros(n, np.int64)
    taking = np.empty(n, np.int32)
    parent = np.empty(n, np.int32)
    for walk, first in enumerate(rng.permutation(n)):
        if valid[first]:
            continue
        # Walk until some record takes what the first one gave up; dead ends are left backwards.
        goal = matching[first]
        record = first
        parent[first] = -1
        tried[first] = 0
        while True:
            # A dead end: who wanted the original of this record tries another one.
            if tried[record] == edges.left[record]:
                record = parent[record]
                if record < 0:
                    return np.empty(0, np.int32)
                continue
            # Originals tried come first, so each open one is picked once.
            begin = edges.start[record] + tried[record]
            place = begin + int(rng.random() * (edges.left[record] - tried[record]))
            original = edges.members[place]
            edges.members[place] = edges.members[begin]
            edges.members[begin] = original
            tried[record] += 1
            # Seen in this walk: it lies on it already, or leads to a dead end.
            if seen[original] == walk:
                continue
            seen[original] = walk
            taking[record] = original
            if original == goal:
                break
            # Its holder has to take another one; it is asked once, as an original is seen once.
            parent[holder[original]] = record
            record = holder[original]
            tried[record] = 0
        # Match all records of the cycle.
        record = first
        while True:
            original = taking[record]
            following = holder[original]
            matching[record] = original
            holder[original] = record
            valid[record] = True
            if original == goal:
                break
            record = following
    return matching
