"""How far the sensitive values of a class lie from those of the whole table."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata


@dataclass(frozen=True, eq=False)
class SensitiveScale:
    """A sensitive column as distances between its distributions need it.

    Parameters
    ----------
    codes
        (n,) int64 value of each record; ascending with the numbers where the scale is ordered.
    totals
        (values,) int64 records of the table with each value.
    ordered
        Whether values lie on a line, one step apart, so that near ones are more alike than far
        ones.
    """

    codes: NDArray[np.int64]
    totals: NDArray[np.int64]
    ordered: bool

    @property
    def steps(self) -> int:
        """What a distance of 1 is, in whole numbers: see :meth:`excess`."""
        return max(1, len(self.totals) - 1) if self.ordered else 2

    def excess(
        self, counts: NDArray[np.int64], sizes: NDArray[np.int64], most: tuple[int, int]
    ) -> NDArray[np.bool_]:
        """Return (classes,) whether classes are farther from the table than a fraction.

        Parameters
        ----------
        counts
            (classes, values) records of each class with each value.
        sizes
            (classes,) records of each class.
        most
            Numerator and denominator of the fraction.

        Notes
        -----
        The distance is half the sum of the differences between the shares of each value; on an
        ordered scale the sum of the differences between the shares up to each value, divided by one
        less than the number of values [1]_. It is computed in whole numbers, without rounding, of
        any size. Complexity: O(classes x values).

        References
        ----------
        .. [1] N. Li, T. Li, S. Venkatasubramanian: t-Closeness: Privacy Beyond k-Anonymity and
           l-Diversity, ICDE 2007, doi:10.1109/ICDE.2007.367856.
        """
        n, (numerator, denominator) = int(self.totals.sum()), most
        # Products of whole numbers: those that may not fit a machine word are Python's.
        dtype = object if self.steps * n * n * max(most) >= 2**62 else np.int64
        difference = (
            counts.astype(dtype) * n - self.totals.astype(dtype) * sizes.astype(dtype)[:, None]
        )
        if self.ordered:
            difference = np.cumsum(difference, axis=1)
        distance = np.abs(difference).sum(axis=1)
        allowed = sizes.astype(dtype) * (self.steps * n * numerator)
        return np.asarray(distance * denominator > allowed, np.bool_)


def sensitive_scales(microdata: Microdata, *, ordered: bool) -> tuple[SensitiveScale, ...]:
    """Return the sensitive columns.

    Parameters
    ----------
    microdata
        The table.
    ordered
        Whether columns whose values are all numbers are ordered. A column with missing or empty
        values, or with any other text, never is.

    Notes
    -----
    Complexity: O(n log n) for each column.
    """
    scales = []
    for at, name in enumerate(microdata.sensitive):
        codes = microdata.sensitive_codes[:, at].astype(np.int64)
        ranks = None
        if ordered:
            _, first = np.unique(codes, return_index=True)
            texts = microdata.frame[name].iloc[first].astype(object).map(str)
            ranks = number_ranks(texts.tolist())
        if ranks is not None:
            codes = ranks[codes]
        scales.append(SensitiveScale(codes, np.bincount(codes), ranks is not None))
    return tuple(scales)


def number_ranks(texts: list[str]) -> NDArray[np.int64] | None:
    """Return the ranks of texts as numbers, equal numbers sharing one; None if not all are."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    if not all(map(isfinite, numbers)):
        return None
    return np.unique(numbers, return_inverse=True)[1].ravel().astype(np.int64)
