"""The best combinatorial bound that holds for a problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.ladder import ladder_bound
from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound, nearest_neighbour_terms
from anonymip.bounds.patterns.pattern_lagrangian import pattern_bound
from anonymip.bounds.squared_error import squared_error_bound, squared_error_terms
from anonymip.bounds.weaker_notions import weaker_notion_bound
from anonymip.objectives import SSE
from anonymip.problem import Problem
from anonymip.recodings import PatternGuided
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.solution import Bound


def lower_bound_of(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return a lower bound on the loss of any release, by whichever argument holds.

    Monotone record losses are bounded by duals of records, which begin with nearest neighbours, or
    by what the weaker notions leave of these; squared errors by nearest squared distances; releases
    by patterns by duals of records of their own.

    Parameters
    ----------
    problem
        What is asked.
    effort
        How much work; None for thorough within a time limit, else normal.
    budget
        When it ends, records not looked at count as if they were published exactly.

    Returns
    -------
    Bound or None
        None if no argument holds.
    """
    if isinstance(problem.recoding, PatternGuided):
        by_duals = pattern_bound(problem, budget=budget)
        if by_duals is not None:
            return by_duals
    if isinstance(problem.objective, SSE):
        return squared_error_bound(problem, budget=budget)
    for bound in (ladder_bound, nearest_neighbour_bound):
        found = bound(problem, effort=effort, budget=budget)
        if found is not None:
            return found
    return weaker_notion_bound(problem, effort=effort, budget=budget)


def bound_in_time(
    problem: Problem, *, effort: str | None = None, budget: Budget | None = None
) -> Bound | None:
    """Return :func:`lower_bound_of`, or None too if the run ends while its kernels are compiled."""
    try:
        return lower_bound_of(problem, effort=effort, budget=budget)
    except CompilationStopped:
        return None


def record_terms(problem: Problem, budget: Budget | None = None) -> NDArray[np.float64] | None:
    """Return (n,) what each record adds at least to the loss of its class; None if unknown.

    With the aggregate ``"max"`` it is what the record itself loses at least.

    Parameters
    ----------
    problem
        What is asked.
    budget
        When it ends, records not looked at count as if they were published exactly.
    """
    if isinstance(problem.objective, SSE):
        return squared_error_terms(problem, budget)
    if not problem.compiled.monotone:
        return None
    return nearest_neighbour_terms(problem, budget)
