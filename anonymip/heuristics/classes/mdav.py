"""The fixed-size microaggregation of Domingo-Ferrer & Torra."""

from __future__ import annotations

import numpy as np

from anonymip.errors import InputError
from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import cut_in_order
from anonymip.objectives import SSE
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped


def mdav(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Take classes of k around the two most distant records, again and again (MDAV) [1]_.

    While 3k records or more are left, r is the one farthest from their mean and s the one farthest
    from r; r and its k - 1 nearest are a class, s and its k - 1 nearest of the rest another. Of 2k
    or more, r and its nearest are a class and the rest the last; of fewer, the rest is a class. Of
    equal distances the record that comes first counts.

    Distances are those of the objective :class:`~anonymip.SSE`, and of its default scale, every
    attribute over its standard deviation, for any other objective.

    `problem`: with equivalence classes and numeric attributes. Classes that break a limit or lack
    the diversity are repaired. `budget`: when it ends, the records left are cut into sets of k by
    their distance from the mean. Complexity: O(n**2 m / k) time, O(n m) memory. Raises InputError
    if an attribute is not numeric; NoSolution if no classes are found that keep the limits.

    References
    ----------
    .. [1] J. Domingo-Ferrer, V. Torra: Ordinal, continuous and heterogeneous k-anonymity through
       microaggregation, Data Mining and Knowledge Discovery 11(2), 2005,
       doi:10.1007/s10618-005-0007-5.
    """
    watch, budget = Stopwatch(), budget or Budget()
    for attribute in problem.microdata.attributes:
        if not attribute.is_numeric:
            raise InputError(
                f"mdav needs numeric attributes; {attribute.name!r} is not numeric",
                remedy="Declare it numeric, or use another method, such as k-member",
            )
    objective = problem.objective if isinstance(problem.objective, SSE) else SSE()
    labels, stopped = _take_classes(objective.points(problem.microdata), problem.k, budget)
    return finish(problem, labels, "mdav", watch, budget=budget, stopped=stopped)


def _take_classes(points: Floats, k: int, budget: Budget) -> tuple[Ints, Stopped | None]:
    """Return (n,) labels of the (n, m) points, and why it stopped early, if it did."""
    n = len(points)
    labels = np.full(n, -1, np.int64)
    left, label = np.arange(n), 0
    stopped = None
    while len(left) >= 2 * k:
        stopped = budget.stop_reason()
        if stopped is not None:
            break
        budget.report("taking classes", done=n - len(left), total=n)
        start = int(_distances(points[left], points[left].mean(axis=0)).argmax())
        # Of fewer than 3k records a second class would leave less than k for the last one.
        for _ in range(2 if len(left) >= 3 * k else 1):
            distances = _distances(points[left], points[left[start]])
            taken = np.argsort(distances, kind="stable")[:k]
            # The farthest record from r is still there: it is among the k nearest only if all
            # that are left are as near, and any record serves then.
            distances[taken] = -1.0
            labels[left[taken]] = label
            label += 1
            farthest = left[int(distances.argmax())]
            left = np.delete(left, taken)
            start = int(np.searchsorted(left, farthest))
    order = left[np.argsort(_distances(points[left], points.mean(axis=0)), kind="stable")]
    cut_in_order(labels, order, k, label)
    return labels, stopped


def _distances(points: Floats, centre: Floats) -> Floats:
    """Return (n,) squared distances from a centre."""
    return np.square(points - centre).sum(axis=1)
