"""What is published for sets of records: the tight range, set or node of each attribute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import CellSets, Description
from anonymip.instances.microdata import Microdata

#: Most sizes of sets that are sorted one size at a time.
_SIZES = 64


def describe_sets(
    microdata: Microdata, start: NDArray[np.int64], members: NDArray[np.integer]
) -> Description:
    """Return what is published for each of the given sets of records.

    Parameters
    ----------
    microdata
        The table.
    start
        (sets + 1,) where each set begins in `members`; none is empty.
    members
        Records of all sets.

    Returns
    -------
    Description
        One row for each set.

    Notes
    -----
    Complexity: O(m e log s) for e members in all in sets of s; O(m e log e) if the sets have very
    many different sizes.
    """
    count, m = len(start) - 1, microdata.m
    lower, upper = np.full((count, m), np.nan), np.full((count, m), np.nan)
    begin, end = np.zeros((count, m), np.int64), np.zeros((count, m), np.int64)
    nodes = np.full((count, m), -1, np.int32)
    flat: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    offset = 0
    firsts = start[:-1]
    for a, attribute in enumerate(microdata.attributes if count else ()):
        # A column of its own is gathered faster than one of a table of rows.
        values = _sorted_within(np.ascontiguousarray(microdata.codes[:, a])[members], start)
        least, greatest = values[firsts], values[start[1:] - 1]
        if attribute.is_numeric:
            level = microdata.levels[a].astype(np.float64)
            lower[:, a], upper[:, a] = level[least], level[greatest]
        if attribute.hierarchy is not None:
            leaf = microdata.leaves(a)
            nodes[:, a] = attribute.hierarchy.tree.common_ancestors(leaf[least], leaf[greatest])
        is_first = np.ones(len(values), np.bool_)
        is_first[1:] = values[1:] != values[:-1]
        is_first[firsts] = True
        before = np.concatenate([[0], np.cumsum(is_first)])
        end[:, a], begin[:, a] = offset + before[start[1:]], offset + before[firsts]
        flat.append(values[is_first])
        offset += int(before[-1])
    return Description(
        lower,
        upper,
        CellSets(begin, end, np.concatenate(flat)),
        nodes,
        np.zeros((count, m), np.bool_),
    )


def _sorted_within(codes: NDArray[np.int32], start: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the codes, ascending within each set."""
    sizes = np.diff(start)
    distinct = np.unique(sizes)
    if len(distinct) == 1:
        return np.sort(codes.reshape(-1, distinct[0]), axis=1).ravel()
    if len(distinct) > _SIZES:
        return codes[np.lexsort((codes, np.repeat(np.arange(len(sizes)), sizes)))]
    values = np.empty_like(codes)
    for size in distinct:
        places = start[:-1][sizes == size][:, None] + np.arange(size)
        values[places] = np.sort(codes[places], axis=1)
    return values
