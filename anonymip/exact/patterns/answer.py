"""What a solver's answer to a pattern model means: a checked solution with a bound to rely on."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import NoSolution, SolverError
from anonymip.models import read
from anonymip.models.patterns.pattern_columns import PatternColumns
from anonymip.problem import Problem
from anonymip.solution import Bound, Solution
from anonymip.solvers import SolverOptions, SolverResult
from anonymip.status import Stopped
from anonymip.tolerances import (
    FINE_EFFECT,
    FINE_LOSS,
    FINE_STEP,
    SOLVER_RESOLUTION,
    contradicts,
    same_loss,
)

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

#: Decimals that costs may have for losses to lie on a grid.
_DECIMALS = 6


def read_answer(
    problem: Problem,
    model: ConcreteModel,
    result: SolverResult,
    begun: Solution | None,
    formulation: str,
    options: SolverOptions,
    trace: list[str],
) -> Solution:
    """Return the checked solution that a solver's result means.

    Parameters
    ----------
    problem, formulation, options
        What was solved, and how.
    model
        Holds the result's values.
    result
        Of the solver.
    begun
        The solution that the solver started from, kept if it found nothing better.
    trace
        Remarks so far; more are added.

    Raises
    ------
    SolverError
        If what the solver returns does not survive the checks.
    NoSolution
        If there is neither a result nor a start, or no release exists.
    """
    columns: PatternColumns = model.context
    if result.stopped is Stopped.INFEASIBLE:
        if begun is not None:
            raise SolverError(
                f"{result.solver} calls a feasible model infeasible", remedy="Use another solver"
            )
        raise NoSolution(
            f"no release keeps the mask and the rules, says {result.solver}",
            remedy="Allow more patterns, such as the one of stars only, or suppression",
        )
    if result.start_accepted is not None:
        trace.append(f"warm start {'accepted' if result.start_accepted else 'not used'}")
    found = begun
    if result.values is not None:
        found = Solution.of(problem, read(model), method="pattern-ilp")
        _compare(columns, result, found)
        if begun is not None and begun.objective < found.objective:
            if not same_loss(begun.objective, found.objective):
                trace.append("the start is better than what the solver returned")
            found = begun
    if found is None:
        raise NoSolution(
            f"{result.solver} found no solution before it stopped ({result.stopped.value})",
            remedy="Give it more time, or a warm start",
        )
    bound = None
    if result.bound is not None:
        if options.solver_options:
            trace.append("the solver ran with options of its own: its bound is not relied on")
        else:
            value = _trusted(columns, result.bound, found.objective)
            if value is None:
                trace.append("the solver's bound lies above a solution: it is not used")
            else:
                source = f"{formulation} with {result.solver}"
                bound = Bound(value, source, "solver", result.seconds)
    return Solution.of(
        problem,
        found.assignment,
        method="pattern-ilp",
        bound=bound,
        stopped=result.stopped,
        trace=tuple(trace),
        solver=result.solver,
    )


def _compare(columns: PatternColumns, result: SolverResult, found: Solution) -> None:
    """Refuse an objective far below the loss of the release that the model's values mean."""
    slack = columns.problem.n * _resolution(columns)
    if result.objective is not None and contradicts(result.objective + slack, found.objective):
        raise SolverError(
            f"{result.solver} returns objective {result.objective!r}, but the patterns it names "
            f"lose {found.objective!r}",
            remedy="Use another solver",
        )


def _resolution(columns: PatternColumns) -> float:
    """Return what the tolerances of a solver may turn into."""
    return SOLVER_RESOLUTION * float(np.abs(_losses(columns)).max(initial=0.0))


def _losses(columns: PatternColumns) -> NDArray[np.float64]:
    """Return the losses that a record can have."""
    price = [columns.price] if np.isfinite(columns.price) else []
    return np.concatenate([columns.costs, price])


def _trusted(columns: PatternColumns, claimed: float, objective: float) -> float | None:
    """Return what of a solver's bound can be relied on; None if it lies above a solution.

    A loss much below that of the dearest pattern, or one that much cheaper patterns add to, is
    finer than the solver's tolerances resolve: the bound is lowered by them. Where all losses are
    multiples of a number of few decimals, a bound between two of them is raised to the next.
    """
    losses, resolution = _losses(columns), _resolution(columns)
    if claimed - objective > resolution:
        return None
    effect = float(losses.max(initial=0.0))
    steps = np.diff(np.sort(losses))
    finest = float(losses[losses > 0].min(initial=np.inf))
    step = float(steps[steps > 4.0 * np.finfo(float).eps * effect].min(initial=np.inf))
    fine = abs(objective) < FINE_LOSS * effect or finest < FINE_EFFECT * effect
    fine |= step < FINE_STEP * effect
    value = claimed - resolution if fine else claimed
    for decimals in range(_DECIMALS + 1):
        grid = 10**decimals
        if np.array_equal(np.round(losses, decimals), losses):
            value = max(value, ceil((claimed - resolution) * grid) / grid)
            break
    return min(value, objective)
