"""The solvers by name, and the one way to use them: compile, solve, check, load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from anonymip.budget import Budget, Progress
from anonymip.errors import InputError, NoSolution, SolverError, SolverUnavailable
from anonymip.solvers.interface import (
    Availability,
    Solver,
    SolverOptions,
    SolverResult,
    create_log,
)
from anonymip.solvers.standard_form import StandardForm, compile_standard_form
from anonymip.status import Stopped
from anonymip.tolerances import CLAIM_ABSOLUTE, OPTIMALITY_RELATIVE, closes_gap

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyomo.environ import ConcreteModel

#: Name on the command line -> "module:class".
ADAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "highs": "anonymip.solvers.highs:HighsSolver",
        "cbc": "anonymip.solvers.cbc:CbcSolver",
    }
)

#: Reasons to stop at which the solver claims nothing about the point it hands over.
_LIMITS = frozenset({Stopped.TIME, Stopped.INTERRUPT, Stopped.NODES, Stopped.ERROR})


def solver_names() -> tuple[str, ...]:
    """Return the names of all solvers that have an adapter, installed or not."""
    return tuple(ADAPTERS)


def availability(name: str) -> Availability:
    """Return whether a solver can be used here, and if not what to do.

    Raises
    ------
    InputError
        If no adapter has this name.
    """
    return _adapter(name).availability()


def get_solver(name: str) -> Solver:
    """Return the adapter of a solver that can be used here.

    Raises
    ------
    InputError
        If no adapter has this name.
    SolverUnavailable
        If the solver is not installed.
    """
    adapter = _adapter(name)
    found = adapter.availability()
    if not found.installed:
        raise SolverUnavailable(f"the solver {name} is not installed", remedy=found.reason)
    return adapter


def _adapter(name: str) -> Solver:
    if name not in ADAPTERS:
        raise InputError(
            f"there is no solver {name!r}", remedy=f"Choose one of: {', '.join(ADAPTERS)}"
        )
    module, _, attribute = ADAPTERS[name].partition(":")
    return cast(Solver, getattr(import_module(module), attribute)())


def solve_model(
    model: ConcreteModel,
    solver: str | Solver = "highs",
    options: SolverOptions | None = None,
    start: bool = False,
    budget: Budget | None = None,
) -> SolverResult:
    """Solve a linear Pyomo model, check what comes back, and load it into the variables.

    Nothing a solver says is taken on trust: integer variables are rounded where they lie
    within tolerance, bounds, integrality and rows are checked, the objective is recomputed,
    and the bound must fit it.

    Parameters
    ----------
    model
        A linear model with one active objective. Its variables receive the values found; fixed
        variables, and variables that no row and no cost uses, keep theirs.
    solver
        Name of a solver, or an adapter.
    options
        Options of the solver; the time limit is shortened to what `budget` has left.
    start
        Whether to hand the present values of the variables to the solver as a warm start.
    budget
        When to stop, and whom to tell; None for no limit.

    Returns
    -------
    SolverResult
        `stopped` is ``OPTIMAL`` only if the bound proves the recomputed objective. If the
        solver calls a point optimal and its bound leaves a gap, it is ``GAP``; without a bound,
        ``ERROR``. A limit at which the bound already meets the objective is ``OPTIMAL``.

    Raises
    ------
    InputError
        If the model is not linear, an option is refused, or `start` is asked for and an integer
        variable has no value.
    SolverUnavailable
        If the solver is not installed.
    SolverError
        If the model is unbounded, the solver fails, or a point it calls finished does not
        survive the check. A bad point handed over at a limit (time, interrupt, nodes) is
        dropped instead: there solvers do not vouch for it, and the bound still holds.
    """
    adapter = get_solver(solver) if isinstance(solver, str) else solver
    options = SolverOptions() if options is None else options
    budget = Budget() if budget is None else budget
    try:
        form = compile_standard_form(model)
    except NoSolution:
        return SolverResult(Stopped.INFEASIBLE, None, None, None, 0.0, adapter.name)
    result = _solve_scaled(form, model, adapter, options, start, budget)
    if result.values is not None:
        for variable, value in zip(form.variables, result.values.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
    return result


def _solve_scaled(
    form: StandardForm,
    model: ConcreteModel,
    adapter: Solver,
    options: SolverOptions,
    start: bool,
    budget: Budget,
) -> SolverResult:
    """Solve with costs of order 1, check the answer there, and give it in the model's unit.

    Tolerances of solvers are absolute: to costs of 1e-9 they are blind, and would call anything
    optimal.
    """
    factor = form.cost_factor()
    if factor == 1.0:
        return check_result(form, _solve_form(form, model, adapter, options, start, budget))
    scaled = replace(form, cost=factor * form.cost, offset=factor * form.offset)
    listener = budget.progress
    if listener is not None:
        tell = listener
        budget = replace(budget, progress=lambda message: tell(_unscaled(message, factor)))
    result = check_result(scaled, _solve_form(scaled, model, adapter, options, start, budget))
    return replace(
        result,
        objective=None if result.values is None else form.objective(result.values),
        bound=_divided(result.bound, factor),
    )


def _unscaled(message: Progress, factor: float) -> Progress:
    return replace(
        message,
        incumbent=_divided(message.incumbent, factor),
        bound=_divided(message.bound, factor),
    )


def _divided(value: float | None, factor: float) -> float | None:
    return None if value is None else value / factor


def _solve_form(
    form: StandardForm,
    model: ConcreteModel,
    adapter: Solver,
    options: SolverOptions,
    start: bool,
    budget: Budget,
) -> SolverResult:
    """Give the compiled model to the adapter, unless there is nothing to do or no time."""
    start_values = _start_values(form) if start else None
    if not form.variables:
        objective = form.objective(np.empty(0))
        return SolverResult(Stopped.OPTIMAL, np.empty(0), objective, objective, 0.0, adapter.name)
    reason = budget.stop_reason()
    if reason is not None:
        return SolverResult(reason, None, None, None, 0.0, adapter.name)
    options = replace(options, time_limit=_shorter(options.time_limit, budget.remaining()))
    if options.log is not None:
        create_log(options.log)
    return adapter.solve(form, model, start_values, options, budget)


def _shorter(limit: float | None, remaining: float | None) -> float | None:
    """Return the smaller of two limits in seconds, above zero; None if there is none."""
    if remaining is None:
        return limit
    remaining = max(remaining, 1e-3)  # the deadline may pass between two looks at the clock
    return remaining if limit is None else min(limit, remaining)


def _start_values(form: StandardForm) -> NDArray[np.float64]:
    values = form.start_values()
    if values is None:
        missing = next(
            variable.name
            for variable, integer in zip(form.variables, form.integer, strict=True)
            if integer and variable.value is None
        )
        raise InputError(
            f"start: integer variable {missing} has no value",
            remedy="Give every integer variable a value, zeros too, or solve without a start",
        )
    return values


def check_result(form: StandardForm, result: SolverResult) -> SolverResult:
    """Check a solver's answer against the model and return it with recomputed numbers.

    Raises
    ------
    SolverError
        As in :func:`solve_model`.
    """
    bound = result.bound if result.bound is not None and math.isfinite(result.bound) else None
    result = replace(result, bound=bound)
    if result.values is None:
        if result.stopped in (Stopped.OPTIMAL, Stopped.GAP):
            raise _distrust(result, f"it says {result.stopped.value} and returns no point")
        return replace(result, objective=None)
    if result.stopped is Stopped.INFEASIBLE:
        raise _distrust(result, "it says infeasible and returns a point")
    violation = form.violation(result.values)
    values = form.rounded(result.values) if violation is None else result.values
    violation = violation or form.violation(values)
    if violation is not None:
        if result.stopped in _LIMITS:
            return replace(result, values=None, objective=None)
        raise _distrust(result, violation)
    return _with_checked_numbers(form, result, result.values, values)


def _with_checked_numbers(
    form: StandardForm,
    result: SolverResult,
    raw: NDArray[np.float64],
    values: NDArray[np.float64],
) -> SolverResult:
    """Recompute the objective of the rounded point, compare the claims, settle the status."""
    objective = form.objective(values)
    moved = float(np.abs(form.cost) @ np.abs(values - raw))
    slack = max(CLAIM_ABSOLUTE, OPTIMALITY_RELATIVE * abs(objective)) + moved
    claimed = result.objective
    finished = result.stopped not in _LIMITS
    if finished and claimed is not None and not abs(claimed - objective) <= slack:
        raise _distrust(
            result, f"it reports the objective {claimed:.9g}; its point has {objective:.9g}"
        )
    # Multiplied by the sign, both senses read as a minimisation.
    sign = form.in_model_sense(1.0)
    bound = result.bound
    if bound is not None:
        if sign * (bound - objective) > slack:
            raise _distrust(
                result, f"its bound {bound:.9g} excludes its own point of objective {objective:.9g}"
            )
        bound = sign * min(sign * bound, sign * objective)
    stopped = _settled(result.stopped, bound is not None, _closed(objective, bound, sign))
    return replace(result, stopped=stopped, values=values, objective=objective, bound=bound)


def _closed(objective: float, bound: float | None, sign: float) -> bool:
    return bound is not None and closes_gap(sign * objective, sign * bound)


def _settled(claimed: Stopped, has_bound: bool, closed: bool) -> Stopped:
    """Return why the solver stopped, with OPTIMAL exactly where the bound proves it."""
    if closed and claimed in (Stopped.OPTIMAL, Stopped.GAP, Stopped.TIME, Stopped.NODES):
        return Stopped.OPTIMAL
    if claimed is Stopped.OPTIMAL:
        return Stopped.GAP if has_bound else Stopped.ERROR
    return claimed


def _distrust(result: SolverResult, reason: str) -> SolverError:
    return SolverError(
        f"the answer of {result.solver} does not survive the check: {reason}",
        remedy="Try another solver or formulation; SolverOptions.log keeps the solver's log",
    )
