"""The sort that kernels use."""

from __future__ import annotations

import numpy as np

from anonymip.orders.stable_order import stable_order


def test_equal_keys_keep_their_order() -> None:
    """Any number of keys, with ties: the order is that of NumPy's stable sort."""
    random = np.random.default_rng(3)
    for n in (*range(20), 63, 64, 65, 500):
        keys = random.integers(-5, 5, n) / 2
        assert stable_order(keys).tolist() == np.argsort(keys, kind="stable").tolist()
