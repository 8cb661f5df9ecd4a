"""The cells that records are published with, as an objective sees them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Description
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.record import CellBatch

#: Records of a set up to which they are compared two at a time.
_MOST_COMPARED = 8


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
    lowest, highest, count = _covered(microdata.codes, rows)
    for a, attribute in enumerate(microdata.attributes):
        if attribute.is_numeric:
            level = microdata.levels[a].astype(np.float64)
            lower[:, a], upper[:, a] = level[lowest[:, a]], level[highest[:, a]]
        elif attribute.hierarchy is not None:
            leaf = microdata.leaves(a)
            nodes[:, a] = attribute.hierarchy.tree.common_ancestors(
                leaf[lowest[:, a]], leaf[highest[:, a]]
            )
    return CellBatch(lower, upper, count, np.zeros((batch, m), np.bool_), nodes)


def _covered(
    codes: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Return (B, m) lowest and highest codes of sets, and how many different ones there are.

    A few records are put in order by comparing two at a time, in all sets at once: far faster than
    sorting each set and attribute by itself.
    """
    size = rows.shape[1]
    if size > _MOST_COMPARED:
        ordered = np.sort(codes[rows], axis=1)
        return ordered[:, 0], ordered[:, -1], 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
    ranks = [codes[rows[:, member]] for member in range(size)]
    for end in range(size - 1, 0, -1):
        for at in range(end):
            one, other = ranks[at], ranks[at + 1]
            ranks[at], ranks[at + 1] = np.minimum(one, other), np.maximum(one, other)
    count = np.ones(ranks[0].shape, np.int64)
    for one, other in pairwise(ranks):
        count += other > one
    return ranks[0], ranks[-1], count
