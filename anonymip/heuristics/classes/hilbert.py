"""Hilbert order and the optimal cut: the baseline of Ghinita et al. and Wong et al."""

from __future__ import annotations

import numpy as np

from anonymip.errors import InputError, unknown_name
from anonymip.heuristics.classes.ordered_cut import best_cut, cut_rows
from anonymip.heuristics.growing.finish import finish
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.objectives.language.tables import pack
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
    """Return the best cut for the number of values in ranges or sets, less 1 over the domain's."""
    microdata = problem.microdata
    widths = [max(microdata.domain_size(a) - 1, 1) for a in range(microdata.m)]
    if ranges:
        tables = pack(0.0, [(a, 0.0, -1 / w, 1 / w) for a, w in enumerate(widths)], [], [])
        # How many values of the domain lie below each cell.
        places = microdata.codes.astype(np.float64)
        for a, attribute in enumerate(microdata.attributes):
            if attribute.is_whole:
                places[:, a] = microdata.values[:, a] - microdata.levels[a].astype(np.float64)[0]
        places = np.ascontiguousarray(places[records])
        places.setflags(write=False)
        rows = kernel_rows(microdata, tables, records)._replace(range_values=places)
    else:
        counts = [np.arange(len(level) + 1.0) for level in microdata.levels]
        sets = [(a, np.maximum(counts[a] - 1.0, 0.0) / w) for a, w in enumerate(widths)]
        rows = kernel_rows(microdata, pack(0.0, [], sets, []), records)
    sums = problem.compiled.aggregate == "sum"
    return cut_rows(rows, records, problem.k, sums, budget)
