"""Diversity of the values that published rows show, once an assignment has been drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.graphs import effective_matches
from anonymip.recodings.rules.diversity import Diversity


@dataclass(frozen=True, eq=False)
class RowsOfRecords:
    """The published rows that each original record can be: its effective matches.

    Parameters
    ----------
    start
        (n + 1,) int64, where those of each record begin in `rows`.
    rows
        Published records, ascending within an original.
    """

    start: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, cover: Cover) -> RowsOfRecords:
        """Return those of a cover in which every record lies in its own set."""
        effective = effective_matches(cover)
        members, owners = cover.members[effective], cover.owners[effective]
        order = np.argsort(members, kind="stable")
        start = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=cover.n))])
        return cls(start, owners[order])

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(n,) number of rows of each record."""
        return np.diff(self.start)


def lacking_records(
    diversity: Diversity,
    sensitive: NDArray[np.integer],
    rows: RowsOfRecords,
    matching: NDArray[np.integer],
) -> NDArray[np.bool_]:
    """Return (n,) whether the rows that a record can be do not show values as diverse as asked.

    Of the rows that an original record can be, no more than a share of 1/l may show one value
    (Wong et al. [1]_, Definition 9, each row being as likely), and enough values are to be shown.

    Parameters
    ----------
    diversity
        What is asked for.
    sensitive
        (n, columns) codes of the originals.
    rows
        Rows that each original can be.
    matching
        (n,) original of each published record, whose values the row shows.

    Notes
    -----
    Complexity: O(edges log k) for each column.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 6.
    """
    shown = sensitive[matching]
    lacking = np.zeros(len(rows.sizes), np.bool_)
    for size in np.unique(rows.sizes):
        records = np.flatnonzero(rows.sizes == size)
        at = rows.start[records][:, None] + np.arange(size)
        lacking[records] = ~diversity.met_by(shown[rows.rows[at]])
    return lacking
