"""A problem as the search for columns reads it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.enumeration.merging import MergedRows
from anonymip.enumeration.rooted_state import SearchRows
from anonymip.instances.microdata import RowTypes
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.objectives.kernels.growing_sets import term_rows
from anonymip.objectives.language.tables import LossTables
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity_counts import diversity_rule
from anonymip.recodings.rules.limits import Cap, conflicts


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


def search_rows(problem: Problem, merged: MergedRows, tables: LossTables) -> SearchRows:
    """Return the row types of a problem.

    Parameters
    ----------
    problem
        Gives values, diversity, and the limits that keep two types in different sets.
    merged
        The types with their duals, falling.
    tables
        Those of :func:`capped_tables`.
    """
    return _rows(problem, merged.first, merged.counts, merged.duals, tables)


def type_rows(problem: Problem, types: RowTypes, tables: LossTables) -> SearchRows:
    """Return the same for row types without duals, which are to be filled in."""
    return _rows(problem, types.first, types.counts, np.zeros(len(types.first)), tables)


def _rows(
    problem: Problem,
    first: NDArray[np.int64],
    counts: NDArray[np.int64],
    duals: NDArray[np.float64],
    tables: LossTables,
) -> SearchRows:
    diversity = diversity_rule(problem.diversity, problem.microdata).of_rows(first)
    conflicting = np.zeros((0, 0), np.bool_)
    if problem.limits:
        conflicting = conflicts(problem.microdata, problem.limits, first)
    terms = term_rows(kernel_rows(problem.microdata, tables, first))
    return SearchRows(duals, counts, terms, diversity, conflicting)


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
    for p, start in enumerate(tables.pair_start):
        losses = tables.pair_losses[start : start + tables.pair_sizes[p] ** 2]
        scale += float(np.abs(losses).max())
    return scale
