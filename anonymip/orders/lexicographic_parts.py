"""Lexicographic partitioning of Wong et al."""

from __future__ import annotations

import numpy as np

from anonymip.orders.orders import cardinality_order, cardinality_ranks
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class Parts(Packed):
    """Parts that follow each other in an order: its (n,) records, and where each part begins."""

    order: Ints
    starts: Ints

    @property
    def sizes(self) -> Ints:
        """Number of records of each part."""
        return np.diff(np.append(self.starts, len(self.order)))

    @property
    def labels(self) -> Ints:
        """(n,) part of each record."""
        labels = np.empty(len(self.order), np.int64)
        labels[self.order] = np.repeat(np.arange(len(self.starts)), self.sizes)
        return labels


def lexicographic_parts(problem: Problem, k: int) -> Parts:
    """Partition the records by the values of one attribute after the other [1]_.

    Attributes by ascending number of values, so that those whose second value costs most come
    first. A part with fewer than k records takes what it lacks from a neighbour that can spare it,
    or is merged with one if both together have fewer than 2k; of two that are moved from, the
    larger, of two that are merged with, the smaller. Parts whose records agree on the attribute are
    partitioned by the next one, except that fewer than 2k records stay together. Where a part and
    its neighbour have exactly 2k records, the text of Section 5.3.1 moves, its Figure 8 merges;
    here they are moved. Complexity: O(n (m + log n)).

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 5.3.1 and Figure 8.
    """
    order = cardinality_order(problem, Budget()).astype(np.int64)
    columns = problem.microdata.codes[:, cardinality_ranks(problem)]
    codes = np.ascontiguousarray(columns[order].T)
    starts = np.empty(problem.n // k + 1, np.int64)
    return Parts(order, starts[: _part(codes, k, starts)].copy())


@kernel
def _part(codes: Codes, k: int, starts: Ints) -> int:
    """Write the starts of all parts and return how many there are."""
    m, n = codes.shape
    starts[0] = 0
    count = 1
    fresh = np.empty(len(starts), np.int64)
    # Parts whose records differ in an attribute that was used before.
    is_mixed = np.zeros(len(starts), np.bool_)
    mixed = np.zeros(len(starts), np.bool_)
    for a in range(m):
        made = 0
        for part in range(count):
            begin = starts[part]
            end = starts[part + 1] if part + 1 < count else n
            first = made
            if is_mixed[part] or end - begin < 2 * k:
                fresh[made] = begin
                mixed[made] = True
                made += 1
                continue
            made = _part_by_runs(codes[a], begin, end, k, fresh, made)
            for at in range(first, made):
                last = (fresh[at + 1] if at + 1 < made else end) - 1
                mixed[at] = codes[a, fresh[at]] != codes[a, last]
        for part in range(made):
            starts[part] = fresh[part]
            is_mixed[part] = mixed[part]
        count = made
    return count


@kernel
def _part_by_runs(codes: Codes, begin: int, end: int, k: int, starts: Ints, made: int) -> int:
    """Append the starts of the parts of one part; return how many starts there are then."""
    base, at = made, begin
    while at < end:
        start, stop = at, _run_end(codes, at, end)
        while stop - start < k:
            # Too small: records of a neighbour that can spare them, else the smaller neighbour.
            size = stop - start
            left = start - starts[made - 1] if made > base else 0
            right = _run_end(codes, stop, end) - stop if stop < end else 0
            if left + size >= 2 * k and (right + size < 2 * k or left >= right):
                start = stop - k
            elif right + size >= 2 * k:
                stop = start + k
            elif left > 0 and (right == 0 or left <= right):
                made -= 1
                start = starts[made]
            else:
                stop += right
        starts[made] = start
        made += 1
        at = stop
    return made


@kernel
def _run_end(codes: Codes, at: int, end: int) -> int:
    """Return where the run of equal codes that begins at a place ends."""
    stop = at + 1
    while stop < end and codes[stop] == codes[at]:
        stop += 1
    return stop
