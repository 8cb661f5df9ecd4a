"""The approximation algorithm of Aggarwal et al. for k = 3: a lightest 2-factor, its cycles cut."""

from __future__ import annotations

from math import fsum

import numpy as np

from anonymip.errors import InputError
from anonymip.graphs.weighted.light_factors import cycles_of, lightest_two_factor
from anonymip.heuristics.approximation.guarantees import concluded, guide, is_binary, loss_obstacle
from anonymip.heuristics.approximation.nearest_rows import all_distances
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.tolerances import LOSS_RELATIVE

#: The matrix of all distances, and the flow on it, of more records would take too long.
LARGEST_TABLE = 5_000


def two_factor(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Lay cycles of least weight through the records and cut them into classes [1]_.

    If c is the weight of the lightest 2-factor of a binary table, no release loses less than 1.5 c,
    and cutting its cycles into classes of three to five neighbours loses at most 3 c. The
    bound holds for ranges charged by their width as well. For all other attributes it is c, and
    a pair of records weighs as much as their distance, or as that of one of the two to its
    second nearest neighbour if that is more. Where no 2-factor is proven lightest the value of the
    relaxation takes the place of c. Where the records' distances to their second nearest neighbours
    are more, their sum is the bound: it is never weaker than the forest's.

    The solution carries the bound, and the trace the factor 2 of binary tables; for others, and
    under a diversity or limits, no factor is claimed. There is neither where whole records may be
    suppressed, since these lie on no cycle, nor for a loss that lacks the forest's conditions. A
    cycle is cut in the cheapest of all ways, by dynamic programming, of which the paper's are some.

    `problem`: with equivalence classes and k = 3. `budget`: when it ends before cycles are found,
    the records are cut into sets of three in the variance order. Raises InputError if k is not 3,
    or the table has more than 5,000 records; NoSolution if no classes are found that keep the
    limits and the diversity.

    The proof stands in ``docs/approximation.md``. A loss without tables, or not monotone, is taken
    to be GCP while cycles are looked for. Complexity: O(n^2) memory, O(n^3) time and the matchings.

    References
    ----------
    .. [1] G. Aggarwal et al.: Approximation Algorithms for k-Anonymity, Journal of Privacy
       Technology 20051120001, 2005, Section 6.
    """
    if problem.k != 3:
        raise InputError(
            f"two-factor makes classes for k = 3, and k is {problem.k}",
            remedy="Use edge-cover for k = 2, forest for any k",
        )
    if problem.n > LARGEST_TABLE:
        raise InputError(
            f"two-factor keeps the distances of all pairs, and the table has {problem.n} records",
            remedy=f"Use forest beyond {LARGEST_TABLE}",
        )
    watch, budget = Stopwatch(), budget or Budget()
    types = problem.microdata.row_types()
    rows = kernel_rows(problem.microdata, guide(problem).compiled.tables, types.first)
    # Rows in the order of the types: equal rows are neighbours.
    records = np.argsort(types.inverse, kind="stable")
    weights, stopped = all_distances(rows, types.inverse[records], budget)
    labels = np.full(problem.n, -1, np.int64)
    bound, is_lightest, factor = None, False, None
    if not problem.may_suppress and loss_obstacle(problem) is None:
        # How many times the lightest 2-factor every release loses. A range charged by its width is
        # a sum of binary columns, one for each step.
        others = (*problem.compiled.tables.set_columns, *problem.compiled.tables.pair_columns)
        binary = all(len(problem.microdata.levels[column]) <= 2 for column in others)
        factor = 1.5 if binary else 1.0
    if stopped is None:
        weights = np.maximum(weights, 0.0)
        # Every class of a record holds two others.
        near = np.partition(weights, 1, axis=1)[:, 1]
        if factor == 1.0:
            weights = np.maximum(weights, np.maximum(near[:, None], near[None, :]))
        found, stopped = lightest_two_factor(weights, budget)
        is_lightest = found.is_lightest
        classes = 0
        for cycle in cycles_of(problem.n, found.edges) if len(found.edges) else ():
            classes = _cut(problem, records[cycle], labels, classes)
        if stopped is None and factor is not None:
            # What is left of a difference by rounding must not lift the bound.
            sure = np.maximum(near - problem.rounding, 0.0)
            value, source = fsum(sure), "second nearest neighbours"
            if (cycles := factor * max(0.0, float(found.least))) >= value:
                value, source = cycles, f"{factor:g} x lightest 2-factor"
            bound = value * (1.0 - LOSS_RELATIVE), source
    told, lacks = "2 times the optimum: binary table", None
    if not problem.compiled.has_tables or not is_binary(problem):
        lacks = "the table is not binary"
    elif not is_lightest:
        lacks = "the 2-factor is not proven lightest"
    given = problem, labels, "two-factor", watch, budget, stopped
    return concluded(*given, factor=told, lacks=lacks, everyone=True, bound=bound)


def _cut(problem: Problem, cycle: Ints, labels: Ints, classes: int) -> int:
    """Label the classes of a cycle, cut in the cheapest way; return how many there are now."""
    length = len(cycle)
    if length <= 5:
        labels[cycle] = classes
        return classes + 1
    around = np.concatenate([cycle, cycle[:5]])
    losses = {
        size: problem.compiled.class_losses(
            np.stack([around[at : at + length] for at in range(size)], axis=1)
        )
        for size in (3, 4, 5)
    }
    # One of five neighbours begins a class.
    _, at, sizes = min(_cheapest_cut(length, first, losses) for first in range(5))
    for size in sizes:
        labels[np.take(cycle, range(at, at + size), mode="wrap")] = classes
        classes += 1
        at += size
    return classes


def _cheapest_cut(
    length: int, first: int, losses: dict[int, Floats]
) -> tuple[float, int, list[int]]:
    """Return loss, beginning and class sizes of the cheapest cut of a cycle that begins there."""
    cost = [0.0] + [np.inf] * length
    last = [0] * (length + 1)
    for end in range(3, length + 1):
        for size, of_windows in losses.items():
            if size <= end:
                total = cost[end - size] + of_windows[(first + end - size) % length]
                if total < cost[end]:
                    cost[end], last[end] = float(total), size
    sizes: list[int] = []
    end = length
    while end > 0:
        sizes.append(last[end])
        end -= last[end]
    return cost[length], first, sizes[::-1]
