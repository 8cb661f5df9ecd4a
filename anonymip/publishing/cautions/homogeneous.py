"""Classes whose records share a sensitive value: k does not hide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.errors import argument
from anonymip.instances import Microdata

#: By sensitive column, how many classes share a value, and how many rows they have.
Counts = Mapping[str, Mapping[str, int]]


def count_homogeneous(
    cells: Sequence[NDArray[np.object_]], microdata: Microdata, published: NDArray[np.integer]
) -> Counts:
    """Count the classes that share a sensitive value, for each sensitive column.

    Parameters
    ----------
    cells
        The published columns of the quasi-identifiers, (rows,) texts each. Rows that look alike
        are one class, also those of stars, and those that the solution calls two classes.
    microdata
        The table.
    published
        (rows,) record of each row.

    Notes
    -----
    Complexity: O(m n log n).
    """
    labels = np.zeros(len(published), np.int64)
    for column in cells:
        wide = labels * len(published) + pd.factorize(column)[0]
        labels = np.unique(wide, return_inverse=True)[1].ravel()
    sizes = np.bincount(labels)
    counts: dict[str, dict[str, int]] = {}
    for name, codes in zip(
        microdata.sensitive, microdata.sensitive_codes[published].T, strict=True
    ):
        pairs = np.unique(np.stack([labels, codes]), axis=1)
        one_value = np.bincount(pairs[0], minlength=len(sizes)) == 1
        counts[name] = {"classes": int(one_value.sum()), "rows": int(sizes[one_value].sum())}
    return counts


def homogeneous_classes(counts: Counts, rows: int) -> list[str]:
    """Return a caution for each sensitive column that classes share a value of.

    Parameters
    ----------
    counts
        As they stand in the manifest.
    rows
        Number of published rows.
    """
    return [
        f"{_classes(count['classes'])} one value of {name!r}, {count['rows']} of {rows} rows: who "
        "finds the class of a person learns it. A diversity "
        f"({argument('diversity', ..., option='--l-diversity')}) asks for more"
        for name, count in counts.items()
        if count["classes"]
    ]


def _classes(count: int) -> str:
    return "1 class shares" if count == 1 else f"{count} classes share"
