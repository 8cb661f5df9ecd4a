"""More records under the pattern of stars only, so that k of them look alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymip.exact.patterns.parts import PatternPart


def enough_lone(parts: Sequence[PatternPart], k: int) -> None:
    """Take records out of their rows until k are in none, at little loss.

    Rows with more than k records give some away; otherwise a row is given up as a whole. Each time
    what costs least for a record that is needed is done.

    Parameters
    ----------
    parts
        With a release each, which is changed.
    k
        Records that are to be in no row.

    Notes
    -----
    Complexity: O(k) times the number of pairs in use.
    """
    program = parts[0].prices.program
    taken = [part.amounts for part in parts if part.amounts is not None]
    used = [np.flatnonzero(own) for own in taken]
    amounts = np.concatenate([own[at] for own, at in zip(taken, used, strict=True)])
    extra = program.price - np.concatenate(
        [
            part.prices.program.costs[part.prices.pair_patterns[at]]
            for part, at in zip(parts, used, strict=True)
        ]
    )
    offsets = np.cumsum([0, *(part.prices.program.rows for part in parts)])
    rows = np.concatenate(
        [
            part.prices.pair_rows[at] + offset
            for part, at, offset in zip(parts, used, offsets[:-1], strict=True)
        ]
    )
    records = sum(part.prices.program.records for part in parts)
    while (needed := k - (records - int(amounts.sum()))) > 0:
        held = np.bincount(rows, weights=amounts, minlength=offsets[-1]).astype(np.int64)
        spare = np.minimum(amounts, held[rows] - k)
        giving = np.where(spare > 0, extra, np.inf)
        whole = np.bincount(rows, weights=extra * amounts, minlength=offsets[-1])
        ending = np.where(held > 0, whole / np.maximum(1, np.minimum(held, needed)), np.inf)
        pair, row = int(np.argmin(giving)), int(np.argmin(ending))
        if giving[pair] <= ending[row]:
            amounts[pair] -= min(int(spare[pair]), needed)
        else:
            amounts[rows == row] = 0
    cuts = np.cumsum([len(at) for at in used])[:-1]
    for part, at, own in zip(parts, used, np.split(amounts, cuts), strict=True):
        part.amounts = np.zeros(part.pairs, np.int64)
        part.amounts[at] = own
