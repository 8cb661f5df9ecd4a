"""Hilbert order and the optimal cut: the baseline of Ghinita et al. and Wong et al."""

from __future__ import annotations

import numpy as np

from anonymip.errors import InputError, unknown_name
from anonymip.heuristics.classes.ordered_cut import best_cut, cut_rows
from anonymip.heuristics.growing.repair import finish
from anonymip.instances.microdata import Microdata
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.orders.orders import hilbert_order
from anonymip.problem import Problem, has_rules
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped

#: What the cut minimises.
CELLS = ("objective", "HR", "HS")


def hilbert(
    problem: Problem, *, cells: str = "objective", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Sort the records along a Hilbert curve and cut the order into the best classes [1]_.

    The comparison in [2]_ runs it twice: HR publishes ranges and counts every domain value inside
    them, HS publishes the set of the values that occur. What is published here, and what it loses,
    is for the table and the objective to say; `cells` says which of these losses the cut is
    optimal for. To measure HR and HS as the paper does, take the objective SetGCP, which counts
    domain values inside the ranges of numeric attributes that are published as ranges, and values
    that occur of attributes that are published as sets.

    `problem`: with equivalence classes.
    `cells`: ``objective``: the cut is the best one for the problem's objective, rules included.
    ``HR``: for (values in the range - 1) / (domain size - 1), summed over all attributes,
    categories in the order of their codes. ``HS``: for (values that occur - 1) / (domain size - 1).
    `budget`: when it ends, the records are cut into sets of k instead.
    Raises InputError if `cells` is unknown, or HR or HS are asked for under limits or a diversity;
    NoSolution if no classes are found that keep the limits.

    Complexity: O(n k m) time behind the sort.

    References
    ----------
    .. [1] G. Ghinita, P. Karras, P. Kalnis, N. Mamoulis: Fast Data Anonymization with Low
       Information Loss, VLDB 2007.
    .. [2] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 7.
    """
    watch, budget = Stopwatch(), budget or Budget()
    if cells not in CELLS:
        raise unknown_name("cells", cells, CELLS)
    if cells != "objective" and has_rules(problem):
        raise InputError(
            f"hilbert does not look at limits and diversity with cells {cells!r}",
            remedy="Use the cells objective",
        )
    records = hilbert_order(problem, budget).astype(np.int64)
    if cells == "objective":
        labels, stopped = best_cut(problem, records, budget)
    else:
        labels, stopped = _cut_by_counts(problem, records, cells == "HR", budget)
    return finish(
        problem, labels, "hilbert", watch, budget=budget, stopped=stopped, options={"cells": cells}
    )


def _cut_by_counts(
    problem: Problem, records: Ints, ranges: bool, budget: Budget
) -> tuple[Ints, Stopped | None]:
    """Return the best cut for the number of values in ranges or sets."""
    microdata = problem.microdata
    tables = _count_tables(microdata, ranges)
    none = np.empty((problem.n, 0), np.int32)
    if ranges:
        # How many values of the domain lie below each cell.
        places = microdata.codes.astype(np.float64)
        for a, attribute in enumerate(microdata.attributes):
            if attribute.is_whole:
                places[:, a] = microdata.values[:, a] - microdata.levels[a].astype(np.float64)[0]
        arrays = (np.ascontiguousarray(places[records]), none, none)
    else:
        codes = np.ascontiguousarray(microdata.codes[records])
        arrays = (np.empty((problem.n, 0)), codes, none)
    for array in arrays:
        array.setflags(write=False)
    rows = KernelRows(tables, *arrays)
    sums = problem.compiled.aggregate == "sum"
    return cut_rows(rows, records, problem.k, sums, budget)


def _count_tables(microdata: Microdata, ranges: bool) -> LossTables:
    """Return the tables of (count - 1) / (domain size - 1), summed over all attributes."""
    m = microdata.m
    span = np.array([max(microdata.domain_size(a) - 1, 1) for a in range(m)], np.float64)
    levels = np.array([len(level) for level in microdata.levels], np.int64)
    columns, none, numbers = np.arange(m), np.empty(0, np.int64), np.empty(0)
    no_term = (none, none, none, numbers)
    if ranges:
        by_range = (columns, np.zeros(m), -1.0 / span, 1.0 / span)
        tables = LossTables(0.0, *by_range, *no_term, none, *no_term)
    else:
        counted = [np.maximum(np.arange(size + 1) - 1.0, 0.0) for size in levels]
        losses = [count / width for count, width in zip(counted, span, strict=True)]
        starts = np.concatenate([[0], np.cumsum(levels + 1)[:-1]]).astype(np.int64)
        by_count = (columns, levels, starts, np.concatenate(losses))
        tables = LossTables(0.0, none, numbers, numbers, numbers, *by_count, none, *no_term)
    for table in list(tables)[1:]:
        table.setflags(write=False)
    return tables
