"""Remarks on the links of a chain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.split_carry.state import (
    PROVEN,
    REASON,
    REASONS,
    REPLACED,
    SIZE,
    START,
    START_ACCEPTED,
    START_REFUSED,
)


def remarks_on_links(table: NDArray[np.float64]) -> list[str]:
    """Return remarks on links: how many are proven, what kept the others from it, their starts.

    Parameters
    ----------
    table
        (links, columns) as a :class:`~anonymip.exact.split_carry.state.Chain` holds them.
    """
    if not len(table):
        return []
    proven, largest = int(table[:, PROVEN].sum()), int(table[:, SIZE].max())
    noun = "link" if len(table) == 1 else "links"
    counted = f"{len(table):,} {noun} of up to {largest} records, {proven:,} of them proven"
    remarks = [f"{counted}; a proof of a link says nothing of the whole table"]
    replaced = np.isin(table[:, REASON], [tuple(REASONS).index(name) for name in REPLACED])
    open_ones = table[(table[:, PROVEN] == 0.0) & ~replaced, REASON]
    counts = [
        f"{np.count_nonzero(open_ones == at):,} {text}"
        for at, text in enumerate(REASONS.values())
        if at in open_ones
    ]
    if counts:
        remarks.append(f"links without a proof: {', '.join(counts)}")
    for name in REPLACED:
        count = np.count_nonzero(table[:, REASON] == tuple(REASONS).index(name))
        if count:
            noun = "link" if count == 1 else "links"
            remarks.append(
                f"{count:,} {noun} {REASONS[name]} keep their start or what a search found"
            )
    accepted = int(np.count_nonzero(table[:, START] == START_ACCEPTED))
    asked = accepted + int(np.count_nonzero(table[:, START] == START_REFUSED))
    if asked:
        remarks.append(f"the start was accepted in {accepted:,} of {asked:,} links")
    return remarks
