"""What of a cover of some records is fixed, and what is carried over to the next ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import Cover


@dataclass(frozen=True, eq=False)
class CutComponent:
    """A component that is cut: its sets are given up.

    Parameters
    ----------
    stay, go
        Its records, ascending: those that are covered again by themselves, and those carried over.
    """

    stay: NDArray[np.int64]
    go: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CoverCarry:
    """Which records of a cover are fixed and which are carried over.

    Parameters
    ----------
    fixed
        Records whose sets stay as they are, ascending.
    whole
        Components that are carried over with their sets.
    cut
        Those that are cut.
    """

    fixed: NDArray[np.int64]
    whole: tuple[NDArray[np.int64], ...]
    cut: tuple[CutComponent, ...]


def carry_components(cover: Cover, boundary: int, degree: int, most: int) -> CoverCarry:
    """Divide a cover into what is fixed and what is carried over.

    Records are connected if one lies in the set of the other. The sets of a component hold its
    records alone, so it is a release by itself, what a class is to classes. A component without
    any of the last `boundary` records is fixed. Another is carried over whole if it has fewer than
    twice `degree` records, the largest class that is never cut, or if no more than `most` records
    are carried over with it; else `degree` of its records are, those nearest the end, and the
    others are enough for a cover of their own.

    Parameters
    ----------
    cover
        Of records in their order.
    boundary
        So many records at the end touch what comes next.
    degree
        Records that a set needs.
    most
        Records carried over beyond which larger components are cut.

    Notes
    -----
    Components of freeform covers are larger than classes, and those that are cut lose more: where
    all of 2k records or more were cut, losses on the census table were 1 to 8 percent higher.

    A component that is carried over holds at least one of the last l records, so no more than
    max(most, l (2k - 1)) records are; with classes it is l (2k - 1) (Lemma 2 of Liang & Samavi
    2020). In a regular cover weakly connected components are strongly connected too. Complexity:
    O(n + members).
    """
    n = cover.n
    graph = csr_array((np.ones(len(cover.members), np.int8), cover.members, cover.start), (n, n))
    labels = connected_components(graph, directed=True, connection="weak")[1]
    touching = np.unique(labels[max(0, n - boundary) :])
    components = sorted((np.flatnonzero(labels == label) for label in touching), key=len)
    whole = [records for records in components if len(records) < 2 * degree]
    large = components[len(whole) :]
    going = sum(map(len, whole)) + degree * len(large)
    cut: list[CutComponent] = []
    for records in large:
        going += len(records) - degree
        if going <= most:
            whole.append(records)
        else:
            going -= len(records) - degree
            cut.append(CutComponent(records[:-degree], records[-degree:]))
    fixed = np.flatnonzero(~np.isin(labels, touching))
    return CoverCarry(fixed, tuple(whole), tuple(cut))
