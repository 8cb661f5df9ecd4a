"""Triples of records of which a fractional choice of groups holds two too often."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

#: Violation, above 1, from which on a triple counts, and new triples that one record is in at most.
_VIOLATION, _SHARED = 0.02, 5


def violated_triples(
    members: NDArray[np.int64], shares: NDArray[np.float64], single: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return (c, 3) triples of which groups hold two or three more than once in sum, worst first.

    Parameters
    ----------
    members
        (g, s) row types of the records of each group, -1 for none.
    shares
        (g,) how much of each group is used; each record is used once in sum.
    single
        (t,) whether a row type has one record. Triples are of such.

    Notes
    -----
    All three pairs of such a triple share a group: if two of them do not, the groups that hold the
    third record, whose shares sum to 1, hold all the pairs. These are the subset-row inequalities
    of set partitioning [1]_.

    References
    ----------
    .. [1] M. Jepsen, B. Petersen, S. Spoorendonk, D. Pisinger: Subset-Row Inequalities Applied to
       the Vehicle-Routing Problem with Time Windows, Operations Research 56(2), 2008.
    """
    of: dict[int, dict[int, float]] = defaultdict(dict)
    near: dict[int, set[int]] = defaultdict(set)
    together: dict[tuple[int, int], float] = defaultdict(float)
    for group in np.flatnonzero(shares > 0).tolist():
        own = [
            row_type for row_type in members[group].tolist() if row_type >= 0 and single[row_type]
        ]
        share = float(shares[group])
        for place, row_type in enumerate(own):
            of[row_type][group] = share
            # Row types of a group ascend.
            for other in own[place + 1 :]:
                near[row_type].add(other)
                together[row_type, other] += share
    found: list[tuple[float, int, int, int]] = []
    for (a, b), ab in together.items():
        for c in near[a] & near[b]:
            total = ab + together[a, c] + together[b, c]
            if total <= 1.0 + _VIOLATION:
                continue
            # A group of all three was counted three times.
            total -= 2.0 * sum(of[a][group] for group in of[a].keys() & of[b].keys() & of[c].keys())
            if total > 1.0 + _VIOLATION:
                found.append((1.0 - total, a, b, c))
    taken: dict[int, int] = defaultdict(int)
    chosen: list[tuple[int, int, int]] = []
    for _, a, b, c in sorted(found):
        if max(taken[a], taken[b], taken[c]) < _SHARED:
            chosen.append((a, b, c))
            for row_type in (a, b, c):
                taken[row_type] += 1
    return np.array(chosen, np.int64).reshape(-1, 3)
