"""A line of records, each with its best match; the record with the least weight comes first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class WaitingLine(Packed):
    """A binary heap; ties go to the match, then the record, that comes first in the order.

    Parameters
    ----------
    weight
        (n,) of the match of each record.
    match
        (n,) the other side of it.
    heap
        (n,) records.
    size
        (1,) records in line.
    """

    weight: NDArray[np.float64]
    match: NDArray[np.int64]
    heap: NDArray[np.int64]
    size: NDArray[np.int64]


def new_line(n: int) -> WaitingLine:
    """Return an empty line for n records."""
    return WaitingLine(
        np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(1, np.int64)
    )


@kernel
def _precedes(line: WaitingLine, one: int, other: int) -> bool:
    if line.weight[one] != line.weight[other]:
        return line.weight[one] < line.weight[other]
    if line.match[one] != line.match[other]:
        return line.match[one] < line.match[other]
    return one < other


@kernel
def join_line(line: WaitingLine, record: int, weight: float, match: int) -> None:
    """Put a record into the line; it must not be in it.

    Complexity: O(log n) time.
    """
    line.weight[record] = weight
    line.match[record] = match
    at = line.size[0]
    line.size[0] += 1
    while at > 0:
        above = (at - 1) // 2
        if not _precedes(line, record, line.heap[above]):
            break
        line.heap[at] = line.heap[above]
        at = above
    line.heap[at] = record


@kernel
def leave_line(line: WaitingLine) -> int:
    """Take the first record out of the line and return it; -1 if none waits.

    Complexity: O(log n) time.
    """
    if line.size[0] == 0:
        return -1
    first = line.heap[0]
    line.size[0] -= 1
    size = line.size[0]
    if size > 0:
        moved = line.heap[size]
        at = 0
        while True:
            below = 2 * at + 1
            if below >= size:
                break
            if below + 1 < size and _precedes(line, line.heap[below + 1], line.heap[below]):
                below += 1
            if not _precedes(line, line.heap[below], moved):
                break
            line.heap[at] = line.heap[below]
            at = below
        line.heap[at] = moved
    return first
