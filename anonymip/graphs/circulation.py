"""A circulation that is positive on every edge of a graph whose edges all lie on cycles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow


def circulation(
    n: int, tails: NDArray[np.integer], heads: NDArray[np.integer], most: int
) -> NDArray[np.int64]:
    """Return a whole flow of 1 to `most` on each edge, with as much into a node as out of it.

    Parameters
    ----------
    n
        Number of nodes.
    tails, heads
        (m,) ends of the edges: no loops, no edge twice.
    most
        Largest flow of an edge.

    Raises
    ------
    ValueError
        If there is none: an edge lies on no cycle, or `most` is too small.

    Notes
    -----
    One unit on each edge leaves some nodes with more in than out; a largest flow takes the surplus
    to the nodes that lack it (Hoffman 1960). Complexity: one maximum flow.
    """
    if not len(tails):
        return np.empty(0, np.int64)
    surplus = np.bincount(heads, minlength=n) - np.bincount(tails, minlength=n)
    rich, poor = np.flatnonzero(surplus > 0), np.flatnonzero(surplus < 0)
    source, sink = n, n + 1
    capacities = np.concatenate([np.full(len(tails), most - 1), surplus[rich], -surplus[poor]])
    rows = np.concatenate([tails, np.full(len(rich), source), poor])
    columns = np.concatenate([heads, rich, np.full(len(poor), sink)])
    network = csr_array((capacities.astype(np.int32), (rows, columns)), shape=(n + 2, n + 2))
    found = maximum_flow(network, source, sink)
    if found.flow_value < surplus[rich].sum():
        raise ValueError("the edges have no circulation that is positive on all of them")
    # An edge and its reverse share an entry of the answer with opposite signs.
    flow = np.asarray(found.flow[tails, heads], np.int64).ravel()
    return 1 + np.maximum(flow, 0)
