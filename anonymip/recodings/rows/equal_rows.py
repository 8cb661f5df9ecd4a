"""The classes that published rows make: rows that look alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Classes


def equal_rows(cells: NDArray[np.integer], left_out: NDArray[np.bool_]) -> Classes:
    """Return the classes of records whose published cells are equal.

    Parameters
    ----------
    cells
        (n, m) number of each published cell: equal exactly where cells of a column are.
    left_out
        (n,) records that are in no class.

    Notes
    -----
    Complexity: O(m n log n).
    """
    labels = np.zeros(len(cells), np.int64)
    for column in cells.T:
        # Labels stay below n, so the product of two columns always fits.
        spread = int(column.max(initial=0)) - int(column.min(initial=0)) + 1
        wide = labels * spread + (column - column.min(initial=0))
        labels = np.unique(wide, return_inverse=True)[1].ravel().astype(np.int64)
    labels[left_out] = SUPPRESSED
    return Classes(labels.astype(np.int32))
