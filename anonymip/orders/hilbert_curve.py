"""Positions along a Hilbert curve in any number of dimensions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.kernels import kernel

#: Bits a dimension: finer than the differences that matter for a loss.
_BITS = 12
#: Dimensions that fit one word of a key.
_WORD = 62


def hilbert_keys(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return keys whose lexicographic order is the order along the curve.

    Parameters
    ----------
    points
        (n, m) coordinates from 0 to 1.

    Returns
    -------
    numpy.ndarray
        (n, words) int64.

    Notes
    -----
    The bit transposition of J. Skilling: Programming the Hilbert curve, AIP Conference Proceedings
    707, 2004, doi:10.1063/1.1751381. Complexity: O(n m bits).
    """
    top = 2**_BITS - 1
    grid = np.ascontiguousarray(np.rint(np.clip(points, 0.0, 1.0) * top).astype(np.int64))
    _to_transpose(grid, _BITS)
    n, m = grid.shape
    words = []
    for bit in range(_BITS - 1, -1, -1):
        for begin in range(0, m, _WORD):
            word = np.zeros(n, np.int64)
            for dimension in range(begin, min(begin + _WORD, m)):
                word = 2 * word + ((grid[:, dimension] >> bit) & 1)
            words.append(word)
    return np.stack(words, axis=1)


@kernel
def _to_transpose(grid: NDArray[np.int64], bits: int) -> None:
    """Replace the coordinates of each point by the bits of its position, in place."""
    n, m = grid.shape
    for i in range(n):
        q = 1 << (bits - 1)
        while q > 1:
            p = q - 1
            for d in range(m):
                if grid[i, d] & q:
                    grid[i, 0] ^= p
                else:
                    t = (grid[i, 0] ^ grid[i, d]) & p
                    grid[i, 0] ^= t
                    grid[i, d] ^= t
            q >>= 1
        for d in range(1, m):
            grid[i, d] ^= grid[i, d - 1]
        t = 0
        q = 1 << (bits - 1)
        while q > 1:
            if grid[i, m - 1] & q:
                t ^= q - 1
            q >>= 1
        for d in range(m):
            grid[i, d] ^= t
