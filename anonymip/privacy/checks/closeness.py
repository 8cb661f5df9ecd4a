"""t-closeness: how far the sensitive values of a class may lie from those of the whole table."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from anonymip.privacy.reading.tables import distinct


def far_classes(
    everybody: NDArray[np.object_],
    published: NDArray[np.object_],
    labels: NDArray[np.int64],
    most: Fraction,
    *,
    ordered: bool,
) -> NDArray[np.bool_]:
    """Return (classes,) whether the values of a class lie farther than `most` from all values.

    Parameters
    ----------
    everybody
        (n,) sensitive values of all records, those left out included.
    published, labels
        (rows,) values of the published rows, and their classes, from 0.
    most
        The distance allowed, compared without rounding.
    ordered
        Whether numbers lie on a line, if all values are numbers; equal numbers are one value.

    Notes
    -----
    The distance is half the sum of the differences between the shares of the values. On a line of v
    values it is the sum of the differences between the shares of values up to each, divided by
    v - 1. Complexity: O(n + classes x values), in whole numbers of any size.
    """
    values, codes = distinct(np.concatenate([everybody, published]))
    scale = _numbers(values) if ordered else None
    if scale is not None:
        line = sorted(set(scale))
        place = {number: at for at, number in enumerate(line)}
        codes = np.array([place[number] for number in scale], np.int64)[codes]
    n = len(everybody)
    totals = Counter(codes[:n].tolist())
    held: dict[int, Counter[int]] = {}
    for code, label in zip(codes[n:].tolist(), labels.tolist(), strict=True):
        held.setdefault(label, Counter())[code] += 1
    far = np.zeros(len(held), np.bool_)
    for label, own in held.items():
        size = sum(own.values())
        differences = [own[value] * n - totals[value] * size for value in sorted(totals)]
        if scale is None:
            distance = Fraction(sum(map(abs, differences)), 2 * size * n)
        else:
            moved, total = 0, 0
            for difference in differences:
                moved += difference
                total += abs(moved)
            distance = Fraction(total, max(1, len(totals) - 1) * size * n)
        far[label] = distance > most
    return far


def _numbers(texts: list[str]) -> list[float] | None:
    """Return texts as numbers; None if one is none."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None
