"""Row types of an enumeration: records that no set can tell apart, merged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonymip.problem import Problem


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Records type by type, dearest types first.

    Parameters
    ----------
    records
        (n,) int64, original records: type by type, ascending within a type.
    starts
        (t + 1,) int64, where each type begins in `records`.
    prices
        (t,) float64, price of one row of each type, falling.
    """

    records: NDArray[np.int64]
    starts: NDArray[np.int64]
    prices: NDArray[np.float64]

    @property
    def types(self) -> int:
        """Number of row types."""
        return len(self.prices)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(t,) int64, rows of each type."""
        return np.diff(self.starts)

    @property
    def first(self) -> NDArray[np.int64]:
        """(t,) int64, the first record of each type."""
        return self.records[self.starts[:-1]]

    @cached_property
    def type_of(self) -> NDArray[np.int64]:
        """(n,) int64, the type of every original record."""
        types = np.empty(len(self.records), np.int64)
        types[self.records] = np.repeat(np.arange(self.types), self.counts)
        return types


def merge_rows(problem: Problem, prices: NDArray[np.float64], *, merge: bool) -> MergedRows:
    """Merge records that have one price and are alike to loss, limits and diversity.

    Parameters
    ----------
    problem
        Says what records are told apart by.
    prices
        (n,) price of each record.
    merge
        Whether to merge at all. Losses of the members tier may look at more than the attributes,
        so there nothing is merged in any case.
    """
    n = problem.n
    if merge and problem.compiled.tier != "members":
        columns = [problem.microdata.row_types(_columns(problem)).inverse]
        columns.append(np.unique(prices, return_inverse=True)[1].ravel())
        if problem.diversity is not None:
            columns += list(problem.microdata.sensitive_codes.T.astype(np.int64))
        _, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        inverse = inverse.ravel()
    else:
        inverse = np.arange(n)
    # Dearest types first; of one price the one whose first record comes first.
    _, first = np.unique(inverse, return_index=True)
    by_price = np.lexsort((first, -prices[first]))
    rank = np.empty(len(first), np.int64)
    rank[by_price] = np.arange(len(first))
    types = rank[inverse]
    counts = np.bincount(types, minlength=len(first))
    return MergedRows(
        np.argsort(types, kind="stable"),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.ascontiguousarray(prices[first[by_price]], np.float64),
    )


def _columns(problem: Problem) -> list[int]:
    """Return the attributes that loss or limits look at."""
    microdata = problem.microdata
    if not problem.compiled.has_tables:
        return list(range(microdata.m))
    tables = problem.compiled.tables
    read = {*tables.range_columns, *tables.set_columns, *tables.pair_columns}
    limited = {microdata.names.index(limit.attribute) for limit in problem.limits}
    return sorted({int(a) for a in read} | limited)
