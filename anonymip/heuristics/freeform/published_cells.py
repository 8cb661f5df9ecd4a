"""The cells of all published records while they grow: which originals each is consistent with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.tables import LARGEST_PAIR_TABLE
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class PublishedCells(Packed):
    """Cells of n published records, in ranks of the levels.

    Parameters
    ----------
    codes
        (n, m) int32, the originals.
    low, high
        (n, m) int32, lowest and highest rank covered by a range or a node.
    flag_start
        (m,) where the flags of an attribute published as sets begin; -1 for ranges and nodes.
    flags
        (n, values) bool, whether a set has a value.
    sizes
        (m,) number of levels.
    span_start
        (m,) where the spans of a hierarchical attribute begin, -1 for others.
    span_low, span_high
        Ranks that the lowest node over two ranks covers, flat [lowest * L + highest].
    """

    codes: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    flag_start: NDArray[np.int64]
    flags: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    span_start: NDArray[np.int64]
    span_low: NDArray[np.int32]
    span_high: NDArray[np.int32]


def exact_cells(microdata: Microdata) -> PublishedCells:
    """Return the cells of records published as they are.

    Raises
    ------
    InputError
        If a hierarchical attribute has too many values.
    """
    n, m = microdata.n, microdata.m
    sizes = np.array([len(level) for level in microdata.levels], np.int64)
    flag_start, span_start = np.full(m, -1, np.int64), np.full(m, -1, np.int64)
    values, spans = 0, 0
    lows, highs = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for a, attribute in enumerate(microdata.attributes):
        if attribute.hierarchy is not None:
            if sizes[a] ** 2 > LARGEST_PAIR_TABLE:
                raise InputError(
                    f"attribute {attribute.name!r} has {sizes[a]} distinct values; tables of "
                    f"nodes hold at most {int(LARGEST_PAIR_TABLE**0.5)}",
                    remedy="Use another method, or fewer values",
                )
            leaf, tree = microdata.leaves(a), attribute.hierarchy.tree
            nodes = tree.common_ancestors(leaf[:, None], leaf[None, :]).ravel()
            # The levels follow the leaves, so those below a node are a range of ranks.
            lows.append(np.searchsorted(leaf, tree.first[nodes]).astype(np.int32))
            highs.append((np.searchsorted(leaf, tree.last[nodes], "right") - 1).astype(np.int32))
            span_start[a] = spans
            spans += int(sizes[a]) ** 2
        elif attribute.publish == "set":
            flag_start[a] = values
            values += int(sizes[a])
    flags = np.zeros((n, values), np.bool_)
    for column in np.flatnonzero(flag_start >= 0):
        flags[np.arange(n), flag_start[column] + microdata.codes[:, column]] = True
    codes = np.ascontiguousarray(microdata.codes)
    return PublishedCells(
        codes,
        codes.copy(),
        codes.copy(),
        flag_start,
        flags,
        sizes,
        span_start,
        np.concatenate(lows),
        np.concatenate(highs),
    )


@kernel
def is_consistent(cells: PublishedCells, i: int, record: int) -> bool:
    """Return whether published record i is consistent with an original record."""
    for a in range(len(cells.sizes)):
        code = cells.codes[record, a]
        if cells.flag_start[a] >= 0:
            if not cells.flags[i, cells.flag_start[a] + code]:
                return False
        elif code < cells.low[i, a] or code > cells.high[i, a]:
            return False
    return True


@kernel
def widen(cells: PublishedCells, i: int, record: int) -> None:
    """Let published record i cover an original record."""
    for a in range(len(cells.sizes)):
        code = cells.codes[record, a]
        if cells.flag_start[a] >= 0:
            cells.flags[i, cells.flag_start[a] + code] = True
            continue
        low, high = min(cells.low[i, a], code), max(cells.high[i, a], code)
        if cells.span_start[a] >= 0:
            at = cells.span_start[a] + low * cells.sizes[a] + high
            low, high = cells.span_low[at], cells.span_high[at]
        cells.low[i, a], cells.high[i, a] = low, high


@kernel
def covered_by(cells: PublishedCells, i: int, found: NDArray[np.int32]) -> int:
    """Write the originals that published record i is consistent with; return how many."""
    count = 0
    for record in range(len(cells.codes)):
        if is_consistent(cells, i, record):
            found[count] = record
            count += 1
    return count
