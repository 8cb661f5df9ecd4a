"""From the edges of a cover to classes of two or three rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

#: Leaves of a star up to which the nearest are paired first; beyond, neighbours in the order.
_PAIRED_BY_DISTANCE = 60


def star_classes(
    n: int,
    edges: NDArray[np.int64],
    weights: NDArray[np.float64],
    distances: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]],
) -> NDArray[np.int64]:
    """Return (n,) labels of classes of two or three rows.

    Edges that the cover does not need go first, the heaviest before others; what remains are
    stars. A star of more than two leaves hands over its leaves in pairs: by the triangle
    inequality the edge between two leaves is no heavier than their edges to the centre.

    Parameters
    ----------
    n
        Number of rows.
    edges, weights
        (e, 2), (e,) an edge cover.
    distances
        Returns the weights of the edges between given rows.
    """
    degree = np.bincount(edges.ravel(), minlength=n)
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for at in np.argsort(-weights, kind="stable"):
        one, other = edges[at].tolist()
        if degree[one] > 1 and degree[other] > 1:
            degree[one] -= 1
            degree[other] -= 1
        else:
            neighbours[one].append(other)
            neighbours[other].append(one)
    labels = np.full(n, -1, np.int64)
    classes = 0
    # Centres of several leaves come first; of a single edge either end may be the centre.
    for centre in np.argsort(-degree, kind="stable").tolist():
        if labels[centre] >= 0:
            continue
        pairs, rest = _paired(sorted(neighbours[centre]), distances)
        for group in (*pairs, (centre, *rest)):
            labels[list(group)] = classes
            classes += 1
    return labels


def _paired(
    leaves: Sequence[int],
    distances: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]],
) -> tuple[list[tuple[int, int]], list[int]]:
    """Return pairs of leaves, the nearest first, and the one or two that stay with the centre."""
    left = list(leaves)
    pairs: list[tuple[int, int]] = []
    if 2 < len(left) <= _PAIRED_BY_DISTANCE:
        rows = np.array(left, np.int64)
        one, other = np.triu_indices(len(rows), 1)
        for at in np.argsort(distances(rows[one], rows[other]), kind="stable"):
            pair = int(rows[one[at]]), int(rows[other[at]])
            if len(left) > 2 and pair[0] in left and pair[1] in left:
                pairs.append(pair)
                left = [leaf for leaf in left if leaf not in pair]
    while len(left) > 2:
        pairs.append((left.pop(0), left.pop(0)))
    return pairs, left
