"""More records under the pattern of stars only, so that k of them look alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymip.exact.patterns.components import PatternComponent


def fill_relaxed_pattern(components: Sequence[PatternComponent], k: int) -> None:
    """Take records out of their rows until k are in none, at little loss.

    Rows with more than k records give some away; otherwise a row is given up as a whole. Each time
    what costs least for a record that is needed is done.

    Parameters
    ----------
    components
        With a release each, which is changed.
    k
        Records that are to be in no row.

    Notes
    -----
    Complexity: O(k) times the number of pairs in use.
    """
    program = components[0].duals.program
    taken = [component.amounts for component in components if component.amounts is not None]
    used = [np.flatnonzero(own) for own in taken]
    amounts = np.concatenate([own[at] for own, at in zip(taken, used, strict=True)])
    extra = program.price - np.concatenate(
        [
            component.duals.program.costs[component.duals.pair_patterns[at]]
            for component, at in zip(components, used, strict=True)
        ]
    )
    offsets = np.cumsum([0, *(component.duals.program.rows for component in components)])
    rows = np.concatenate(
        [
            component.duals.pair_rows[at] + offset
            for component, at, offset in zip(components, used, offsets[:-1], strict=True)
        ]
    )
    records = sum(component.duals.program.records for component in components)
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
    for component, at, own in zip(components, used, np.split(amounts, cuts), strict=True):
        component.amounts = np.zeros(component.pairs, np.int64)
        component.amounts[at] = own
