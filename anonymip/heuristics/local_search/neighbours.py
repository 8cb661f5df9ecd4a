"""Which classes lie near each other: a k-d tree over their centres, in units of the loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from anonymip.heuristics.local_search.pool import ClassPool
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel

#: Values of a set attribute share so many coordinates: a tree is no help in hundreds of them.
_COORDINATES = 8


def embedding(tables: LossTables, rows: KernelRows) -> NDArray[np.float64]:
    """Return (t, d) points of the row types whose city-block distance is about their loss.

    A value of a range, and a rank among the leaves of a hierarchy or of a curved loss, is a
    coordinate, in units of what a range as wide loses. A value of a set is a unit vector scaled so
    that two values lie as far apart as a second value costs; beyond eight values some share a
    coordinate. What lies near is only proposed by this: the loss itself decides.
    """
    values = rows.range_values - rows.range_values.min(axis=0, initial=np.inf)
    parts = [values * (np.abs(tables.range_low) + np.abs(tables.range_high)) / 2]
    for s in range(len(tables.set_columns)):
        start, size = int(tables.set_start[s]), int(tables.set_sizes[s])
        if size < 2:
            continue
        second = abs(tables.set_losses[start + 2] - tables.set_losses[start + 1])
        used = min(size, _COORDINATES)
        point = np.zeros((len(rows.set_codes), used))
        point[np.arange(len(point)), rows.set_codes[:, s] % used] = second / 2
        parts.append(point)
    for p in range(len(tables.pair_columns)):
        start, size = int(tables.pair_start[p]), int(tables.pair_sizes[p])
        losses = tables.pair_losses[start : start + size * size].reshape(size, size)
        widest = abs(losses[0, -1] - losses[0, 0])
        parts.append(rows.pair_codes[:, [p]] * (widest / max(size - 1, 1)))
    if not sum(part.shape[1] for part in parts):
        return np.zeros((len(rows.range_values), 1))  # a loss that looks at nothing
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def centres_of(
    points: NDArray[np.float64], pool: ClassPool, labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (classes, d) means of the points of the given classes' rows."""
    centres = np.zeros((len(labels), points.shape[1]))
    _add_up(points, pool, labels, centres)
    return centres


def nearest_classes(
    centres: NDArray[np.float64],
    labels: NDArray[np.int64],
    points: NDArray[np.float64],
    wanted: int,
) -> NDArray[np.int64]:
    """Return (points, wanted) labels of the classes nearest to each point; -1 where there are less.

    Complexity: O(q log c) for q points and c classes in few dimensions.
    """
    near = np.full((len(points), wanted), -1, np.int64)
    count = min(wanted, len(labels))
    if count and len(points):
        at = cKDTree(centres).query(points, k=count, p=1)[1].reshape(len(points), count)
        near[:, :count] = labels[at]
    return near


@kernel
def _add_up(
    points: NDArray[np.float64],
    pool: ClassPool,
    labels: NDArray[np.int64],
    centres: NDArray[np.float64],
) -> None:
    for at in range(len(labels)):
        entry = pool.head[labels[at]]
        size = pool.sizes[labels[at]]
        while entry >= 0:
            share = pool.copies[entry] / size
            for d in range(points.shape[1]):
                centres[at, d] += share * points[pool.types[entry], d]
            entry = pool.following[entry]
