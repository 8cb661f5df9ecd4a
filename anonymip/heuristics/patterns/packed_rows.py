"""Rows as a few machine words, so that what a pattern shows of them is one operation a word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.packed import Packed

_WORD = 64


class PackedRows(Packed):
    """Rows and patterns as words: ``words[i] & masks[j]`` is what pattern j shows of row i.

    Parameters
    ----------
    words
        (t, w) uint64, the codes of each row side by side.
    masks
        (p, w) uint64, all bits of the columns that each pattern shows.
    """

    words: NDArray[np.uint64]
    masks: NDArray[np.uint64]


def pack_rows(codes: NDArray[np.int32], stars: NDArray[np.bool_]) -> PackedRows:
    """Return rows and patterns as words.

    Parameters
    ----------
    codes
        (t, m) of at least 0.
    stars
        (p, m) the patterns, true for columns that do not count.

    Notes
    -----
    Complexity: O((t + p) m).
    """
    bits = [int(column.max(initial=0)).bit_length() for column in codes.T]
    places: list[tuple[int, int]] = []
    word = used = 0
    for width in bits:
        if used + width > _WORD:
            word, used = word + 1, 0
        places.append((word, used))
        used += width
    words = np.zeros((len(codes), word + 1), np.uint64)
    masks = np.zeros((len(stars), word + 1), np.uint64)
    for a, (at, shift) in enumerate(places):
        words[:, at] |= codes[:, a].astype(np.uint64) << np.uint64(shift)
        ones = np.uint64(((1 << bits[a]) - 1) << shift)
        masks[:, at] |= np.where(stars[:, a], np.uint64(0), ones)
    return PackedRows(words, masks)
