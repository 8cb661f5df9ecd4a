"""Regular subgraphs by maximum flow, or proofs that there are none, and circulations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.runtime.arrays import Flags, Ints


@dataclass(frozen=True, eq=False)
class Deficiency:
    """A proof that a subgraph with the wanted degrees does not exist.

    The published records need more edges than the originals outside `originals` could give them
    (one for each edge that leads there) and those inside may take: `needed` is more than
    `available`.
    """

    published: Ints
    originals: Ints
    needed: int
    available: int


def regular_subgraph(graph: Cover, degrees: int | NDArray[np.integer]) -> Flags | Deficiency:
    """Choose edges so that every record has its degree, as a published and as an original one.

    A generalization graph keeps k-anonymity if it contains a k-regular graph, which falls into k
    disjoint assignments (Doka et al. [1]_, Section 2.1; Wong et al., Lemma 1).

    `degrees`: wanted number of edges of each record, or of all. Returns: (edges,) which entries of
    ``graph.members`` are chosen, or why there is no choice. Raises InputError if degrees are
    negative. Dinic's algorithm: O(edges sqrt(edges)) as all inner edges have capacity 1.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015.
    """
    n, edges = graph.n, len(graph.members)
    wanted = np.broadcast_to(np.asarray(degrees, np.int64), n)
    if (wanted < 0).any():
        raise InputError("a wanted degree is negative", remedy="Give degrees of at least 0")
    # Nodes: published records, original records, source, sink.
    source, sink = 2 * n, 2 * n + 1
    start = np.concatenate([graph.start, edges + np.arange(1, n + 1), [edges + 2 * n] * 2])
    target = np.concatenate([graph.members + n, np.full(n, sink), np.arange(n)])
    capacity = np.concatenate([np.ones(edges, np.int64), wanted, wanted])
    network = csr_array(
        (capacity.astype(np.int32), target.astype(np.int32), start.astype(np.int32)),
        shape=(2 * n + 2, 2 * n + 2),
    )
    found = maximum_flow(network, source, sink, method="dinic")
    if found.flow_value == wanted.sum():
        # The flow has an entry, maybe 0, for every edge, and one back to the source.
        flow = csr_array(found.flow[:n])
        flow.sort_indices()
        chosen: Flags = flow.data[flow.indices < 2 * n] > 0
        return chosen
    # The side of the source in a minimum cut.
    residual = csr_array(network - found.flow)
    residual.eliminate_zeros()
    reached = np.zeros(2 * n + 2, np.bool_)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = True
    published, originals = reached[:n], reached[n : 2 * n]
    leaving = published[graph.owners] & ~originals[graph.members]
    return Deficiency(
        np.flatnonzero(published),
        np.flatnonzero(originals),
        int(wanted[published].sum()),
        int(wanted[originals].sum() + np.count_nonzero(leaving)),
    )


def circulation(n: int, tails: NDArray[np.integer], heads: NDArray[np.integer], most: int) -> Ints:
    """Return a whole flow of 1 to `most` on each edge, with as much into a node as out of it.

    The (m,) edges have no loops, and none is there twice. One unit on each edge leaves some nodes
    with more in than out; a largest flow takes the surplus to the nodes that lack it (Hoffman
    1960). Complexity: one maximum flow. Raises ValueError if there is none: an edge lies on no
    cycle, or `most` is too small.
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
