"""Classes whose rows share a sensitive value: k does not hide it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from anonymip.privacy.reading.manifests.fields import refuse, value_of
from anonymip.privacy.reading.tables import TextColumn, distinct


def homogeneous_counts(
    labels: NDArray[np.int64], sensitive: Mapping[str, TextColumn]
) -> dict[str, tuple[int, int]]:
    """Return by sensitive column how many classes share one value, and how many rows they have.

    Parameters
    ----------
    labels
        (n,) class of each row: rows that look alike, also those of stars only.
    sensitive
        The columns by name, n values each.

    Notes
    -----
    Complexity: O(n log n) for each column.
    """
    sizes = np.bincount(labels)
    counts = {}
    for name, column in sensitive.items():
        values = distinct(column.texts)[1]
        pairs = np.unique(np.stack([labels, values]), axis=1)
        one_value = np.bincount(pairs[0], minlength=len(sizes)) == 1
        counts[name] = (int(one_value.sum()), int(sizes[one_value].sum()))
    return counts


def homogeneous_sentence(counts: Mapping[str, tuple[int, int]], rows: int) -> str:
    """Return what the counts of all sensitive columns say."""
    counted = "; ".join(
        f"{classes} share one value of {name!r}, {of_them} of {rows} rows"
        for name, (classes, of_them) in counts.items()
    )
    return f"Classes that share one sensitive value are counted: {counted}."


def homogeneous_problems(
    claimed: Mapping[str, tuple[int, int]] | None, found: Mapping[str, tuple[int, int]]
) -> list[str]:
    """Return where the manifest counts other classes; it need not count any."""
    if claimed is None:
        return []
    problems = [
        f"The manifest counts {claimed[name][0]} classes with {claimed[name][1]} rows that share "
        f"one value of {name!r}; there are {classes} with {rows}."
        for name, (classes, rows) in found.items()
        if name in claimed and claimed[name] != (classes, rows)
    ]
    if set(claimed) != set(found):
        problems.append("The manifest counts classes of other columns than the sensitive ones.")
    return problems


def read_homogeneous(given: object, *, is_cover: bool) -> dict[str, tuple[int, int]] | None:
    """Return what a manifest counts; None if it counts nothing.

    Raises
    ------
    InputError
        If it is no object of counts by column, or the release has no classes.
    """
    if given is None:
        return None
    if is_cover:
        refuse("homogeneous", "counts classes, which a cover does not have")
    if not isinstance(given, Mapping):
        refuse("homogeneous", "is not an object")
    counts = {}
    for name, count in given.items():
        if not isinstance(count, Mapping) or set(count) != {"classes", "rows"}:
            refuse("homogeneous", "holds something else than numbers of classes and rows")
        where = "homogeneous."
        counts[name] = (
            int(value_of(count, "classes", int, where)),
            int(value_of(count, "rows", int, where)),
        )
    return counts
