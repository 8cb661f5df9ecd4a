"""The cells that records are published with, as an objective sees them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Description
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.record import CellBatch


def cells_of(description: Description) -> CellBatch:
    """Return the cells of a description, as an objective sees them."""
    return CellBatch(
        description.lower,
        description.upper,
        description.members.count,
        description.suppressed,
        description.nodes,
    )


def cells_of_sets(microdata: Microdata, rows: NDArray[np.int64]) -> CellBatch:
    """Return the cells of one record of each set: the tight range, set or node.

    Parameters
    ----------
    microdata
        The table.
    rows
        (B, s) records of each set.

    Notes
    -----
    Complexity: O(B s log s m) time and O(B s m) memory.
    """
    batch, m = len(rows), microdata.m
    lower, upper = np.full((batch, m), np.nan), np.full((batch, m), np.nan)
    nodes = np.full((batch, m), -1, np.int32)
    codes = np.sort(microdata.codes[rows], axis=1)
    count = 1 + (np.diff(codes, axis=1) > 0).sum(axis=1)
    for a, attribute in enumerate(microdata.attributes):
        if attribute.is_numeric:
            level = microdata.levels[a].astype(np.float64)
            lower[:, a], upper[:, a] = level[codes[:, 0, a]], level[codes[:, -1, a]]
        elif attribute.hierarchy is not None:
            leaf = microdata.leaves(a)
            nodes[:, a] = attribute.hierarchy.tree.common_ancestors(
                leaf[codes[:, 0, a]], leaf[codes[:, -1, a]]
            )
    return CellBatch(lower, upper, count, np.zeros((batch, m), np.bool_), nodes)
