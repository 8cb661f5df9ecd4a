"""How many assignments hold each match: counted on small graphs, sampled on large ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.graphs.matchings import draw_matching
from anonymip.runtime.kernels import kernel

#: The counts fit 64 bits up to 20 records, since 20! does; the tables take 2^n places each.
MOST_RECORDS = 20


def assignment_counts(graph: Cover) -> NDArray[np.int64]:
    """Return (edges,) in how many assignments each entry of ``graph.members`` lies.

    The counts of one published record add up to the number of all assignments, the permanent of
    the graph. An adversary who knows nothing but the graph, and takes all assignments for equally
    likely, gives a match the probability of its share. A release does better: it is published along
    one of k disjoint assignments, see :func:`anonymip.graphs.draw_matching`.

    Parameters
    ----------
    graph
        At most 20 records.

    Raises
    ------
    InputError
        If the graph is larger.

    Notes
    -----
    Dynamic programming over sets of originals, from the first published record on and from the
    last one back. Complexity: O(2^n n) time, two tables of 2^n numbers.
    """
    if graph.n > MOST_RECORDS:
        raise InputError(
            f"assignments of {graph.n} records are not counted, their number grows like 2^n",
            remedy=f"Use sampled_shares, or at most {MOST_RECORDS} records",
        )
    return _assignment_counts(graph.start, graph.members)


@kernel
def _assignment_counts(start: NDArray[np.int64], members: NDArray[np.int32]) -> NDArray[np.int64]:
    n = len(start) - 1
    full = (1 << n) - 1
    # A set of originals is given to as many first published records.
    given = np.zeros(full + 1, np.int64)
    given[0] = 1
    record_of = np.zeros(full + 1, np.int8)
    for one in range(1, full + 1):
        record_of[one] = record_of[one & (one - 1)] + 1
    for one in range(full):
        if given[one]:
            record = record_of[one]
            for place in range(start[record], start[record + 1]):
                bit = 1 << members[place]
                if not one & bit:
                    given[one | bit] += given[one]
    left = np.zeros(full + 1, np.int64)
    left[full] = 1
    counts = np.zeros(len(members), np.int64)
    for one in range(full - 1, -1, -1):
        record = record_of[one]
        for place in range(start[record], start[record + 1]):
            bit = 1 << members[place]
            if not one & bit:
                left[one] += left[one | bit]
                counts[place] += given[one] * left[one | bit]
    return counts


def sampled_shares(
    cover: Cover, draws: int, rng: np.random.Generator, *, way: str = "random walks"
) -> NDArray[np.float64]:
    """Estimate how likely the publication of a cover makes each match true.

    Parameters
    ----------
    cover
        Every record lies in its own set.
    draws
        How many matchings to draw.
    rng, way
        As in :func:`anonymip.graphs.draw_matching`.

    Returns
    -------
    shares
        (edges,) share of the matchings drawn that hold each entry of ``cover.members``.

    Raises
    ------
    InputError
        If there are no draws, or the way is unknown.

    Notes
    -----
    The standard error of a share p is the root of p (1 - p) / draws. On a regular cover of degree d
    every share tends to 1/d.
    """
    if draws < 1:
        raise InputError(f"{draws} draws", remedy="Draw at least once")
    # Edges are sorted by published record and original.
    keys = cover.owners * cover.n + cover.members
    rows = np.arange(cover.n) * cover.n
    drawn = np.zeros(len(keys), np.int64)
    for _ in range(draws):
        drawn[np.searchsorted(keys, rows + draw_matching(cover, rng, way=way))] += 1
    return drawn / draws
