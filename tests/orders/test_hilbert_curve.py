"""The Hilbert curve visits each cell once and never jumps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from anonymip.orders.orders import hilbert_keys


@pytest.mark.parametrize(("dimensions", "side"), [(1, 32), (2, 16), (3, 8), (4, 4)])
def test_neighbours_on_the_curve_touch(dimensions: int, side: int) -> None:
    """On a full grid of 2**b cells a side each step changes one coordinate by one."""
    cells = np.array(list(product(range(side), repeat=dimensions)))
    keys = hilbert_keys((cells + 0.5) / side)
    order = np.lexsort(keys.T[::-1])
    steps = np.abs(np.diff(cells[order], axis=0)).sum(axis=1)
    assert steps.tolist() == [1] * (side**dimensions - 1)


def test_more_dimensions_than_bits_of_a_word() -> None:
    """70 dimensions take two words a bit; equal points have equal keys, others do not."""
    points = np.random.default_rng(0).random((40, 70))
    keys = hilbert_keys(np.vstack([points, points]))
    assert keys.shape == (80, 24)
    np.testing.assert_array_equal(keys[:40], keys[40:])
    assert len(np.unique(keys, axis=0)) == 40
    assert keys.min() >= 0
