"""How far a solver's numbers can be relied on, given its tolerances and the scale of the loss."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import Classes
from anonymip.errors import SolverError
from anonymip.objectives.kernels.effects import effects_of_cells, least_step, size_of_exact
from anonymip.optimality import changeable
from anonymip.problem import Problem
from anonymip.solution import Solution
from anonymip.solvers import SolverResult
from anonymip.tolerances import (
    FINE_EFFECT,
    FINE_LOSS,
    SOLVER_BLUR,
    SOLVER_RESOLUTION,
    contradicts,
)


def trusted_bound(
    problem: Problem, claimed: float, objective: float, own_options: bool, *, by_cells: bool
) -> tuple[float | None, list[str]]:
    """Return what of a solver's bound can be relied on, and remarks.

    A solver keeps rows up to its tolerances, and the rows that link records turn these into a
    loss of `SOLVER_RESOLUTION` times the largest effect of one cell. Ordinary losses are far above
    that; a finer one is not proven by a solver's word. Nor are losses told apart that differ by
    less, as where values lie near each other.

    Parameters
    ----------
    problem
        What was solved.
    claimed
        The solver's bound.
    objective
        Loss of the best solution that is known.
    own_options
        Whether the caller gave the solver options that it may stop early by.
    by_cells
        Whether the model adds up losses of cells. Then effects of all sizes stand side by side in
        it, and those of the finest attribute must be told apart too.
    """
    if own_options:
        return None, ["the solver ran with options of its own: its bound is not relied on"]
    effect = _largest_of_model(problem, by_cells=by_cells)
    resolution = SOLVER_RESOLUTION * effect
    excess = claimed - objective
    if excess > resolution:
        return None, ["the solver's bound lies above a solution that was found: it is not used"]
    if is_too_fine(problem, objective, by_cells=by_cells):
        return claimed - resolution, [
            "the loss is finer than the solver's tolerances resolve: its bound is lowered by them"
        ]
    value = objective - excess if excess > 0 else claimed
    if not problem.compiled.has_tables or _least_step(problem) < resolution:
        # Costs of sets that lie so near to each other look alike to a solver; of a loss without
        # tables nobody knows how near they lie.
        return min(value, objective - SOLVER_BLUR * effect), []
    return value, []


def is_too_fine(problem: Problem, objective: float, *, by_cells: bool) -> bool:
    """Return whether a loss is finer than what a solver's tolerances let it tell apart.

    Parameters
    ----------
    problem
        What was solved.
    objective
        Loss of the best solution that is known.
    by_cells
        Whether the model adds up losses of cells.
    """
    effect = _largest_of_model(problem, by_cells=by_cells)
    # A constant part of the loss is none of the differences that the solver has to see.
    if min(abs(objective), changeable(problem, objective)) < FINE_LOSS * effect:
        return True
    if not by_cells:
        return False
    near = problem.compiled.has_tables and _least_step(problem) < SOLVER_RESOLUTION * effect
    return near or _smallest_effect(problem) < FINE_EFFECT * effect


def _largest_of_model(problem: Problem, *, by_cells: bool) -> float:
    effect = largest_effect(problem)
    if getattr(problem.recoding, "suppression", False):
        # A star beside ranges of no width to speak of has a price that hides what they cost.
        effect = max(effect, float(np.nan_to_num(problem.compiled.suppression_price)))
    if by_cells or not problem.compiled.has_tables:
        return effect
    # The costs of sets hold what exact cells cost as well.
    return max(effect, size_of_exact(problem.compiled.tables, problem.microdata))


def largest_effect(problem: Problem) -> float:
    """Return the most that one cell of the table can add to the loss of a record.

    Where the loss has no tables: how much the record loss of the whole table and of single
    records differ, or the largest of these losses if that is more.
    """
    if problem.compiled.has_tables:
        return float(effects_of_cells(problem.compiled.tables, problem.microdata).max(initial=0.0))
    n = problem.n
    single = problem.compiled.class_losses(np.arange(n)[:, None])
    whole = problem.compiled.class_losses(np.arange(n)[None, :])
    if problem.compiled.aggregate == "sum":
        whole = whole / n
    price = np.nan_to_num(problem.compiled.suppression_price)
    return float(np.abs(np.concatenate([single, whole, [price]])).max())


def _smallest_effect(problem: Problem) -> float:
    """Return the least of what a cell of any attribute can add to the loss of a record."""
    effects = effects_of_cells(problem.compiled.tables, problem.microdata)
    return float(effects[effects > 0].min(initial=np.inf))


def _least_step(problem: Problem) -> float:
    """Return the least that a cell which takes in one more value costs more."""
    return least_step(problem.compiled.tables, problem.microdata)


def compare_losses(problem: Problem, result: SolverResult, found: Solution) -> None:
    """Refuse an objective far below the loss of the release that the model's binaries mean.

    The tolerances of all cells may add up; beyond them the model or the solver is wrong.

    Raises
    ------
    SolverError
        If the two contradict each other.
    """
    cells = problem.n * problem.m
    slack = max(1.0, cells) * SOLVER_RESOLUTION * largest_effect(problem)
    claimed = result.objective
    if claimed is not None and contradicts(claimed + slack, found.objective):
        named = "classes" if isinstance(found.assignment, Classes) else "sets"
        raise SolverError(
            f"{result.solver} returns objective {claimed!r}, but the {named} it names lose "
            f"{found.objective!r}",
            remedy="Use another solver",
        )
