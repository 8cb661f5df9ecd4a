"""Reduced-cost fixing: the output rows that a release of at most a known loss may use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.bounds.patterns.pattern_duals import pattern_duals
from anonymip.bounds.patterns.pattern_lagrangian import ascend
from anonymip.bounds.patterns.pattern_program import PatternProgram
from anonymip.models.patterns.pattern_columns import PatternColumns
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound
from anonymip.tolerances import LOSS_RELATIVE


def columns_within(
    columns: PatternColumns, loss: float, budget: Budget
) -> tuple[PatternColumns, Bound]:
    """Return the columns that a release of at most a loss may use, and a bound on any release.

    Dual values of records prove how much more than the bound any release costs that publishes a
    record of some row type as some output row (:mod:`anonymip.bounds.patterns.pattern_duals`);
    where that exceeds the loss, the pair is left out. Single use and diversity only raise these
    costs.

    Parameters
    ----------
    columns
        Of the strong model.
    loss
        Of a release that is known.
    budget
        Ends the search for good duals.

    Notes
    -----
    Nothing is left out that a release of this very loss uses. Complexity: that of the bound.
    """
    watch = Stopwatch()
    program = _program(columns)
    duals = pattern_duals(program, program.cheapest)
    if duals.bound < loss:
        duals = ascend(program, None, budget, enough=loss)
    bound = Bound(min(duals.bound, loss), "pattern Lagrangian", "argument", watch.seconds)
    # The loss is a sum of floating-point numbers, the duals are whole ones.
    room = np.ceil((loss + LOSS_RELATIVE * abs(loss)) * duals.unit) - duals.value
    fits = duals.reduced_costs <= room
    t = len(columns.counts)
    wanted = duals.pair_rows[fits].astype(np.int64) * t + duals.pair_types[fits]
    return _only(columns, np.isin(columns.rows * t + columns.types, wanted)), bound


def _program(columns: PatternColumns) -> PatternProgram:
    """Return the columns as the program that duals are of."""
    row_of = np.full((len(columns.costs), len(columns.counts)), -1, np.int32)
    row_of[columns.patterns[columns.rows], columns.types] = columns.rows
    positive = columns.costs[columns.costs > 0]
    return PatternProgram(
        columns.problem.k,
        columns.counts,
        np.arange(len(columns.counts)),
        np.arange(len(columns.costs)),
        columns.costs,
        row_of,
        columns.count,
        columns.price,
        SUPPRESSED,
        float(positive.min(initial=np.inf)) if len(positive) else 1.0,
    )


def _only(columns: PatternColumns, kept: NDArray[np.bool_]) -> PatternColumns:
    """Return some of the pairs, and the output rows of these."""
    rows = np.unique(columns.rows[kept])
    number = np.full(columns.count + 1, -1, np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    t = len(columns.counts)
    pairs = np.append(columns.rows * t + columns.types, -1)
    # A row type keeps the rows of its own pairs; where another row stands for one, that counts.
    types, patterns = np.nonzero(columns.row_of >= 0)
    asked = columns.row_of[types, patterns].astype(np.int64) * t + types
    lost = ~np.append(kept, False)[np.searchsorted(pairs[:-1], asked)]
    row_of = number[columns.row_of]
    row_of[types[lost], patterns[lost]] = -1
    return replace(
        columns,
        patterns=columns.patterns[rows],
        row_of=row_of,
        types=columns.types[kept],
        rows=number[columns.rows[kept]].astype(np.int64),
    )
