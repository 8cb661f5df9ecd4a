"""Consecutive records of an order as classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cut_in_order(
    labels: NDArray[np.int64], order: NDArray[np.int64], k: int, next_label: int
) -> None:
    """Give the records without a label, in order, classes of k; the tail joins the last class.

    Fewer than k of them join the last class there is, or are a class if there is none.
    """
    rest = order[labels[order] < 0]
    sets = len(rest) // k
    if sets == 0:
        labels[rest] = max(next_label - 1, 0)
        return
    labels[rest] = next_label + np.minimum(np.arange(len(rest)) // k, sets - 1)
