"""The classes that published rows make: rows that look alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Classes, Description
from anonymip.instances.attribute import Attribute


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


def published_numbers(
    attributes: Sequence[Attribute], cells: Description, records: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return (records, m) numbers of published cells: equal exactly where cells of a column are.

    Parameters
    ----------
    attributes
        Of the table: a range is told by its ends, a node by itself, a set by its values.
    cells
        What is published.
    records
        Those to look at.

    Notes
    -----
    Complexity: O(m n log n), and the values of all sets.
    """
    numbers = np.empty((len(records), len(attributes)), np.int64)
    for a, attribute in enumerate(attributes):
        if attribute.publish == "range":
            low = np.unique(cells.lower[records, a], return_inverse=True)[1].ravel()
            high = np.unique(cells.upper[records, a], return_inverse=True)[1].ravel()
            numbers[:, a] = low * (int(high.max(initial=0)) + 1) + high
        elif attribute.publish == "node":
            numbers[:, a] = cells.nodes[records, a]
        else:
            sets = [cells.members.of(record, a).tobytes() for record in records.tolist()]
            numbers[:, a] = pd.factorize(np.array(sets, dtype=object))[0]
        numbers[cells.suppressed[records, a], a] = -1
    return numbers
