"""Row types of an enumeration: records that no set can distinguish, merged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import RowTypes
from anonymip.problem import Problem


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Records type by type, highest duals first.

    Parameters
    ----------
    records
        (n,) int64, original records: type by type, ascending within a type.
    starts
        (t + 1,) int64, where each type begins in `records`.
    duals
        (t,) float64, dual value of one row of each type, falling.
    """

    records: NDArray[np.int64]
    starts: NDArray[np.int64]
    duals: NDArray[np.float64]

    @property
    def types(self) -> int:
        """Number of row types."""
        return len(self.duals)

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


def row_types(problem: Problem) -> RowTypes:
    """Return the records that are alike to loss, limits and diversity, by their first ones.

    Under losses of the members tier, which may look at more than the attributes, none are.
    """
    n = problem.n
    if problem.compiled.tier == "members":
        return RowTypes(np.arange(n), np.arange(n), np.ones(n, np.int64))
    columns = [problem.microdata.row_types(_columns(problem)).inverse]
    if problem.diversity is not None:
        columns += list(problem.microdata.sensitive_codes.T.astype(np.int64))
    stacked = np.stack(columns, axis=1)
    _, first, inverse = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[by_first] = np.arange(len(first))
    types = rank[inverse.ravel()]
    return RowTypes(first[by_first], types, np.bincount(types))


def merge_rows(problem: Problem, duals: NDArray[np.float64], *, merge: bool) -> MergedRows:
    """Merge records that have one dual value and are alike to loss, limits and diversity.

    Parameters
    ----------
    problem
        Says what distinguishes records.
    duals
        (n,) dual value of each record.
    merge
        Whether to merge at all. Losses of the members tier may look at more than the attributes,
        so there nothing is merged in any case.
    """
    inverse = np.arange(problem.n)
    if merge and problem.compiled.tier != "members":
        columns = [row_types(problem).inverse, np.unique(duals, return_inverse=True)[1].ravel()]
        _, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        inverse = inverse.ravel()
    # Highest duals first; of equal ones the one whose first record comes first.
    _, first = np.unique(inverse, return_index=True)
    by_dual = np.lexsort((first, -duals[first]))
    rank = np.empty(len(first), np.int64)
    rank[by_dual] = np.arange(len(first))
    types = rank[inverse]
    counts = np.bincount(types, minlength=len(first))
    return MergedRows(
        np.argsort(types, kind="stable"),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.ascontiguousarray(duals[first[by_dual]], np.float64),
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
