"""The edges of a cover that no matching has used yet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class OpenEdges(Packed):
    """Edges that are left; removing one costs no more than finding it.

    Parameters
    ----------
    start
        (n,) where the originals of each published record begin in `members`.
    left
        (n,) int64, how many of them are open.
    members
        Original records; the open ones of a published record come first, in any order.
    """

    start: NDArray[np.int64]
    left: NDArray[np.int64]
    members: NDArray[np.int32]


def open_edges(cover: Cover, kept: NDArray[np.bool_] | None = None) -> OpenEdges:
    """Return the edges of a cover, all or only some of them, in arrays of their own."""
    if kept is None:
        return OpenEdges(cover.start[:-1].copy(), cover.sizes.copy(), cover.members.copy())
    left = np.bincount(cover.owners[kept], minlength=cover.n)
    return OpenEdges(np.cumsum(left) - left, left, cover.members[kept])


@kernel
def close_edges(edges: OpenEdges, matching: NDArray[np.int32]) -> None:
    """Take the edges of a matching out of those that are open."""
    for record in range(len(edges.start)):
        first = edges.start[record]
        last = first + edges.left[record] - 1
        place = first
        while edges.members[place] != matching[record]:
            place += 1
        edges.members[place] = edges.members[last]
        edges.members[last] = matching[record]
        edges.left[record] -= 1
