"""Row types that no set can distinguish, merged, and the problem as a search for sets reads it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonymip.enumeration.rooted_search import SearchRows
from anonymip.instances.microdata import RowTypes
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.objectives.kernels.growing_sets import term_rows
from anonymip.objectives.language.tables import LossTables, losses_of_pairs
from anonymip.objectives.losses.squared_error import SSE
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity_counts import diversity_rule
from anonymip.recodings.rules.limits import Cap, conflicts
from anonymip.runtime.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class MergedRows:
    """Records type by type, highest duals first.

    `records`: (n,) int64, original records: type by type, ascending within a type. `starts`: (t +
    1,) int64, where each type begins in `records`. `duals`: (t,) float64, dual value of one row of
    each type, falling.
    """

    records: Ints
    starts: Ints
    duals: Floats

    @property
    def types(self) -> int:
        """Number of row types."""
        return len(self.duals)

    @cached_property
    def counts(self) -> Ints:
        """(t,) int64, rows of each type."""
        return np.diff(self.starts)

    @property
    def first(self) -> Ints:
        """(t,) int64, the first record of each type."""
        return self.records[self.starts[:-1]]

    @cached_property
    def type_of(self) -> Ints:
        """(n,) int64, the type of every original record."""
        types = np.empty(len(self.records), np.int64)
        types[self.records] = np.repeat(np.arange(self.types), self.counts)
        return types


def row_types(problem: Problem) -> RowTypes:
    """Return the records that are alike to loss, limits and diversity, by their first ones.

    Under losses of the members tier, which may look at more than the attributes, none are; squared
    errors look at these alone.
    """
    n = problem.n
    if _looks_at_more(problem):
        return RowTypes(np.arange(n), np.arange(n), np.ones(n, np.int64))
    columns = [problem.microdata.row_types(_columns(problem)).inverse]
    if problem.diversity is not None:
        columns += list(problem.microdata.counted_codes.T.astype(np.int64))
    stacked = np.stack(columns, axis=1)
    _, first, inverse = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    rank = np.empty(len(first), np.int64)
    rank[by_first] = np.arange(len(first))
    types = rank[inverse.ravel()]
    return RowTypes(first[by_first], types, np.bincount(types))


def _looks_at_more(problem: Problem) -> bool:
    return problem.compiled.tier == "members" and type(problem.objective) is not SSE


def merge_rows(problem: Problem, duals: Floats, *, merge: bool) -> MergedRows:
    """Merge records that have one dual value, of (n,), and are alike to loss, limits and diversity.

    Nothing is merged under a loss that may look at more than the attributes.
    """
    inverse = np.arange(problem.n)
    if merge and not _looks_at_more(problem):
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
    limited = (microdata.names.index(limit.attribute) for limit in problem.limits)
    return sorted({*problem.compiled.tables.columns, *limited})


def capped_tables(problem: Problem) -> LossTables:
    """Return the tables with an infinite loss for more values in a set than a limit allows.

    Sets that the loss ignores get terms that cost nothing up to there.
    """
    tables, microdata = problem.compiled.tables, problem.microdata
    capped: dict[int, int] = {}
    for limit in problem.limits:
        a = microdata.names.index(limit.attribute)
        if isinstance(limit, Cap) and microdata.attributes[a].publish == "set":
            capped[a] = min(int(limit.most), capped.get(a, microdata.n))
    if not capped:
        return tables
    extra = [a for a in capped if a not in tables.set_columns]
    sizes = np.array([len(microdata.levels[a]) for a in extra], np.int64)
    tables = tables._replace(
        set_columns=np.append(tables.set_columns, np.array(extra, np.int64)),
        set_sizes=np.append(tables.set_sizes, sizes),
        set_start=np.append(
            tables.set_start, len(tables.set_losses) + np.cumsum(sizes + 1) - sizes - 1
        ),
        set_losses=np.append(tables.set_losses, np.zeros(int(sizes.sum()) + len(sizes))),
    )
    for start, size, a in zip(tables.set_start, tables.set_sizes, tables.set_columns, strict=True):
        allowed = capped.get(int(a), microdata.n)
        tables.set_losses[start : start + size + 1][allowed + 1 :] = np.inf
    for array in list(tables)[1:]:
        array.setflags(write=False)
    return tables


def search_rows(problem: Problem, types: MergedRows | RowTypes, tables: LossTables) -> SearchRows:
    """Return the row types of a problem; duals that they do not bring are to be filled in.

    `problem`: gives values, diversity, and the limits that keep two types in different sets.
    `tables`: those of :func:`capped_tables`.
    """
    first = types.first
    duals = types.duals if isinstance(types, MergedRows) else np.zeros(len(first))
    diversity = diversity_rule(problem.diversity, problem.microdata).of_rows(first)
    conflicting = np.zeros((0, 0), np.bool_)
    if problem.limits:
        conflicting = conflicts(problem.microdata, problem.limits, first)
    terms = term_rows(kernel_rows(problem.microdata, tables, first))
    return SearchRows(duals, types.counts, terms, diversity, conflicting)


def loss_scale(problem: Problem) -> float:
    """Return how large the terms are that add up to the loss of a record; tables only."""
    tables, microdata = problem.compiled.tables, problem.microdata
    values = microdata.values[:, tables.range_columns] - tables.range_origin
    slopes = np.abs(tables.range_low + tables.range_high)
    scale = abs(tables.constant) + float((np.abs(values).max(axis=0) * slopes).sum())
    scale += float((np.ptp(values, axis=0) * np.abs(tables.range_high)).sum())
    for s, start in enumerate(tables.set_start):
        losses = tables.set_losses[start : start + tables.set_sizes[s] + 1]
        scale += float(np.abs(losses).max())
    for p in range(len(tables.pair_columns)):
        scale += float(np.abs(losses_of_pairs(tables, p)).max())
    return scale
