"""Row types that no set can distinguish, merged, and loss and limits as searches read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonymip.enumeration.rooted_search import SearchRows
from anonymip.instances.microdata import Microdata, RowTypes
from anonymip.objectives.kernels.class_loss import KernelRows, kernel_rows
from anonymip.objectives.kernels.growing_sets import term_rows
from anonymip.objectives.language.record import cells_of_sets
from anonymip.objectives.language.tables import LossTables, losses_of_pairs
from anonymip.objectives.losses.squared_error import SSE
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity_counts import diversity_rule
from anonymip.recodings.rules.limits import Apart, Cap, Limit, conflicts, met_by_sets
from anonymip.runtime.arrays import Codes, Floats, Ints


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
    types = np.argsort(by_first)[inverse.ravel()]
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
    types = np.argsort(by_dual)[inverse]
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


def limited_tables(problem: Problem, first: Ints) -> KernelRows:
    """Return the tables of a problem's loss and limits, and the given records as these read them.

    A cap on a set makes the losses of larger sets infinite. All other limits forbid cells from a
    lowest to a highest rank, and with a cell every wider one, so that a term holds the highest rank
    that is allowed from each rank on.

    Complexity: O(L m log L) for L values of each limited attribute.
    """
    microdata, tables = problem.microdata, capped_tables(problem)
    rows = kernel_rows(microdata, tables, first)
    pair_codes = [rows.pair_codes]
    for limit in problem.limits:
        a = microdata.names.index(limit.attribute)
        if microdata.attributes[a].publish != "set":
            codes, highest = microdata.codes[:, a], _highest_ranks(microdata, limit, a)
        elif isinstance(limit, Apart):
            codes, highest = _disjoint_values(microdata, limit, a)
        else:
            continue
        tables = tables._replace(
            pair_columns=np.append(tables.pair_columns, a),
            pair_sizes=np.append(tables.pair_sizes, len(highest)),
            pair_strides=np.append(tables.pair_strides, -1),
            pair_start=np.append(tables.pair_start, len(tables.pair_losses)),
            pair_losses=np.append(tables.pair_losses, highest),
        )
        pair_codes.append(codes[first, None])
    rows = rows._replace(tables=tables, pair_codes=np.hstack(pair_codes))
    for array in (*list(tables)[1:], *list(rows)[1:]):
        array.setflags(write=False)
    return rows


def _highest_ranks(microdata: Microdata, limit: Limit, a: int) -> Floats:
    """Return (L,) the highest rank that a cell from each rank on may reach, by bisection."""
    # A part of a table need not hold all of its values.
    held, first = np.unique(microdata.codes[:, a], return_index=True)
    low, high = np.arange(len(held)), np.full(len(held), len(held) - 1)
    while (low < high).any():
        middle = (low + high + 1) // 2
        rows = np.stack([first, first[middle]], axis=1)
        met = met_by_sets(microdata, [limit], rows, cells_of_sets(microdata, rows))
        low, high = np.where(met, middle, low), np.where(met, high, middle - 1)
    highest = np.zeros(len(microdata.levels[a]))
    highest[held] = held[low]
    return highest


def _disjoint_values(microdata: Microdata, limit: Apart, a: int) -> tuple[Codes, Floats]:
    """Rank one value of a set 0, the other 2, all else 1: from 0 on no set may reach 2."""
    codes = np.ones(microdata.n, np.int32)
    for rank, code in zip((0, 2), limit.codes(microdata) or (), strict=False):
        codes[microdata.codes[:, a] == code] = rank
    return codes, np.array([1.0, 2.0, 2.0])


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
