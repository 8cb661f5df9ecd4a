"""The ladder of bounds: as high as an effort reaches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from anonymip.bounds.combinatorial import lower_bound_of
from anonymip.effort import check_effort
from anonymip.exact.column_generation.bounding import relaxation_bound
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.compilation import CompilationStopped
from anonymip.solution import Bound, Solution


def climb(
    problem: Problem,
    releases: Sequence[Solution] = (),
    *,
    known: Bound | None = None,
    effort: str | None = None,
    budget: Budget | None = None,
) -> Bound | None:
    """Return the best lower bound within reach; None if no argument holds.

    Parameters
    ----------
    problem
        What is asked.
    releases
        Known releases, which help the last rung.
    known
        The combinatorial bound, if it was computed before.
    effort
        How much work; None for thorough within a time limit, else normal.
    budget
        When it ends, the best bound so far is the result.

    Raises
    ------
    CompilationStopped
        If the budget ends while kernels are compiled, before any bound is known.

    Notes
    -----
    The linear program over all sets of records is above every combinatorial bound. Where it is
    not tried, or not solved within the effort, the others are computed too.
    """
    budget = budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    highest, solved = None, False
    with suppress(CompilationStopped):
        highest, solved = relaxation_bound(problem, releases, effort=effort, budget=budget)
    if solved:
        return highest
    if known is None:
        try:
            known = lower_bound_of(problem, effort=effort, budget=budget)
        except CompilationStopped:
            if highest is None:
                raise
    return max(filter(None, (highest, known)), key=lambda bound: bound.value, default=None)


def climb_in_time(problem: Problem, releases: Sequence[Solution], **settings: Any) -> Bound | None:
    """Return :func:`climb`, or None too if the run ends while kernels are compiled."""
    try:
        return climb(problem, releases, **settings)
    except CompilationStopped:
        return None
