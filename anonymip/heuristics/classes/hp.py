"""Homogeneous partitioning: the partitions of Wong et al. as classes."""

from __future__ import annotations

from anonymip.heuristics.growing.finish import finish
from anonymip.orders.lexicographic_parts import lexicographic_parts
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution


def hp(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Part the table by one attribute after the other; each part is a class [1]_.

    The same partitions as :func:`~anonymip.heuristics.freeform.nh.nh`, with one class in place of
    a ring: what of the latter's gain is due to the partitions. Classes that break a limit or the
    diversity are repaired. Parts whose records agree on an attribute are partitioned by the next
    one, as Figure 8 of the paper has it; its other figures look like those of a program that stops
    there.

    `problem`: with equivalence classes, any objective. `budget`: of the repair. Complexity: O(n (m
    + log n)). Raises NoSolution if no classes are found that keep the limits.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 7.
    """
    watch, budget = Stopwatch(), budget or Budget()
    stopped = budget.stop_reason()
    labels = lexicographic_parts(problem, problem.k).labels
    return finish(problem, labels, "hp", watch, budget=budget, stopped=stopped)
