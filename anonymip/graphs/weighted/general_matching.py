"""Matchings of greatest weight in general graphs: the blossom algorithm of rustworkx."""

from __future__ import annotations

import numpy as np
import rustworkx
from numpy.typing import NDArray

#: Weights that are no whole numbers are rounded to so many bits.
_BITS = 44


def heaviest_matching(
    nodes: int, ends: NDArray[np.int64], weights: NDArray[np.float64], *, perfect: bool = False
) -> tuple[NDArray[np.int64], float]:
    """Return a matching of greatest weight, and what rounding may have cost it.

    Parameters
    ----------
    nodes
        Number of nodes.
    ends, weights
        (e, 2), (e,) the edges, each pair of nodes once; weights of at least 0.
    perfect
        Whether as many nodes as possible must be matched, whatever that costs.

    Returns
    -------
    matched
        (p, 2) the edges taken, in ascending order.
    slack
        No matching is heavier by more than this; 0 if all weights are whole numbers.

    Notes
    -----
    The algorithm works on whole numbers and ends with duals that prove the matching heaviest,
    which are checked each time. It cannot be interrupted. Complexity: O(n^3) time at worst, far
    less on sparse graphs.
    """
    scale, slack = 1.0, 0.0
    if len(weights) and not (weights == np.floor(weights)).all():
        scale = 2.0 ** (_BITS - np.ceil(np.log2(weights.max())))
        slack = (nodes // 2) / scale
    rounded = np.rint(weights * scale)
    graph: rustworkx.PyGraph[None, int] = rustworkx.PyGraph()
    graph.add_nodes_from([None] * nodes)
    graph.add_edges_from(
        [(int(a), int(b), int(w)) for (a, b), w in zip(ends, rounded, strict=True)]
    )
    found = rustworkx.max_weight_matching(
        graph, max_cardinality=perfect, weight_fn=int, verify_optimum=True
    )
    matched = np.array(sorted((min(a, b), max(a, b)) for a, b in found), np.int64).reshape(-1, 2)
    return matched, slack
