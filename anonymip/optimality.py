"""Proof that a loss is optimal: the gap of a bound, and what rounding leaves of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anonymip.assignments import Description
from anonymip.errors import UnsupportedObjective
from anonymip.objectives.language.tables import effects_of_cells, least_step
from anonymip.problem import Problem
from anonymip.recodings.output_rows import priced_patterns
from anonymip.tolerances import OPTIMALITY_RELATIVE, SEARCH_ROUNDING, closes_gap, equals_bound


def proves_optimal(
    problem: Problem,
    objective: float,
    bound: float,
    *,
    strict: bool,
    description: Callable[[], Description] | None = None,
) -> bool:
    """Return whether a bound proves that no release loses less than one that is known.

    The gap must be closed relative to the loss, and also relative to what a release can change of
    it: a large constant must not make different losses look alike. Nor may it be as much as one
    more value in a cell costs, since values may lie nearer to each other than that. What rounding
    may hide is counted as if it were there; so where all differences drown in it nothing is proven,
    unless the release loses no more than the exact table. `objective, bound`: of the release, and
    of all. `strict`: whether the bound comes from plain arithmetic, which has no tolerances but
    rounding. `description`: of the release; asked for where its loss is as good as that of the
    exact table.
    """
    if not closes_gap(objective, bound):
        return False
    if strict and not equals_bound(objective, bound):
        return False
    unseen = objective - bound + hidden_by_rounding(problem, objective)
    if unseen <= OPTIMALITY_RELATIVE * changeable(problem, objective) and _tells_apart(
        problem, objective, bound
    ):
        return True
    return (
        description is not None
        and problem.compiled.monotone
        and equals_bound(objective, bound)
        and loses_nothing(problem, description())
    )


def _tells_apart(problem: Problem, objective: float, bound: float) -> bool:
    """Return whether nothing between a bound and a loss is as much as a cell can change it by.

    Values that lie nearer to each other than a proof reaches make releases that lose less, and
    within all tolerances. Suppression by patterns looks at no such distances, but a large price of
    some records must not hide stars of others.
    """
    unseen = objective - bound
    if unseen <= hidden_by_rounding(problem, objective):
        return True
    compiled = problem.compiled
    if problem.recoding.name == "pattern":
        try:
            priced = priced_patterns(problem)
        except UnsupportedObjective:
            # Stars have no cost of their own, as where the largest loss counts.
            return True
        losses = np.append(priced.costs, priced.price)
        above = losses[np.isfinite(losses)] - losses.min()
        visible = above[above > 4.0 * np.finfo(float).eps * np.abs(priced.costs).max()]
        return bool(unseen < visible.min(initial=np.inf))
    return not compiled.has_tables or unseen < least_step(compiled.tables, problem.microdata)


def changeable(problem: Problem, objective: float) -> float:
    """Return how much of a loss is not there when every record is published exactly."""
    avoidable = abs(objective - problem.unavoidable)
    if problem.compiled.monotone or problem.compiled.superadditive:
        return avoidable
    # Such a loss may fall from the exact table on: all it can change by is the measure.
    ends = (problem.whole, problem.exact)
    return max(avoidable, *(abs(loss - problem.unavoidable) for loss in ends))


def hidden_by_rounding(problem: Problem, objective: float) -> float:
    """Return what rounding may hide in the comparison of a loss with a bound."""
    largest = max(abs(objective), abs(problem.unavoidable))
    return SEARCH_ROUNDING * largest + problem.rounding


def loses_nothing(problem: Problem, description: Description) -> bool:
    """Return whether all cells that the loss looks at are exact."""
    with np.errstate(invalid="ignore"):
        wide = (description.upper > description.lower) | (description.members.count > 1)
    wide |= description.suppressed
    for a, tree in enumerate(problem.compiled.domains.trees):
        if tree is not None:
            wide[:, a] |= tree.leaves_below[description.nodes[:, a]] > 1
    if problem.compiled.has_tables:
        wide = wide[:, effects_of_cells(problem.compiled.tables, problem.microdata) > 0]
    return not bool(wide.any()) and not _pays_for_suppression(problem, description)


def _pays_for_suppression(problem: Problem, description: Description) -> bool:
    """Return whether a record is suppressed as a whole for more than it loses published exactly.

    That may cost though no cell has an effect, as where all records are alike.
    """
    suppressed = np.flatnonzero(description.suppressed.all(axis=1))
    if not suppressed.size:
        return False
    try:
        exact = problem.compiled.class_losses(suppressed[:, None])
    except UnsupportedObjective:
        return True
    return bool((problem.compiled.suppression_price > exact).any())


def under_assumptions(problem: Problem, source: str, *remarks: str) -> str:
    """Return the source of a bound with remarks, and with what the objective's author declares."""
    assumed = problem.compiled.assumed
    said = [*remarks, *([f"assuming that {' and '.join(assumed)}"] if assumed else [])]
    return f"{source} ({', '.join(said)})" if said else source
