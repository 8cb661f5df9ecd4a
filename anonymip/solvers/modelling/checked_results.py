"""Checks of what solvers return, points, numbers and verdicts, and of the values of models."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.errors import InputError, NoSolution, SolverError
from anonymip.runtime.arrays import Floats
from anonymip.runtime.worker_pool import keep_log
from anonymip.solvers.interface import SolverResult
from anonymip.solvers.modelling.standard_form import StandardForm, compile_standard_form
from anonymip.status import Stopped
from anonymip.tolerances import (
    CLAIM_ABSOLUTE,
    FEASIBILITY,
    OPTIMALITY_RELATIVE,
    SOLVER_RESOLUTION,
    closes_gap,
)

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

#: Reasons to stop at which the solver claims nothing about the point it hands over.
_LIMITS = frozenset({Stopped.TIME, Stopped.INTERRUPT, Stopped.NODES, Stopped.ERROR})

#: What is left of a difference of costs of order 1 by rounding.
_ZERO = 1e-12


def check_result(form: StandardForm, result: SolverResult) -> SolverResult:
    """Check a solver's answer against the model and return it with recomputed numbers.

    Raises SolverError as in :func:`~anonymip.solvers.solve_model`.
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
    objective = form.objective(values)
    moved = float(np.abs(form.cost) @ np.abs(values - result.values))
    slack = _slack(objective) + moved
    claimed = result.objective
    finished = result.stopped not in _LIMITS
    if finished and claimed is not None and not abs(claimed - objective) <= slack:
        raise _distrust(
            result, f"it reports the objective {claimed:.9g}; its point has {objective:.9g}"
        )
    # Multiplied by the sign, both senses read as a minimisation.
    sign = form.in_model_sense(1.0)
    if bound is not None and sign * (bound - objective) > slack:
        raise _distrust(
            result, f"its bound {bound:.9g} excludes its own point of objective {objective:.9g}"
        )
    return _with_point(result, values, objective, bound, sign)


def keep_start(form: StandardForm, result: SolverResult, start: Floats | None) -> SolverResult:
    """Return the better of a checked answer and the start, (variables,), that the solver was given.

    A start counts if it has all values and satisfies the model. Whatever limit ends a solve,
    the point is then at least as good as the start. A bound that passes the start by no more
    than the tolerances of solvers explain is lowered by them.

    Raises SolverError if the solver calls the model infeasible, or its bound excludes the start.
    """
    if start is None or np.isnan(start).any() or form.violation(start) is not None:
        return result
    if result.stopped is Stopped.INFEASIBLE:
        raise _distrust(result, "it says infeasible, and the start it was given is feasible")
    objective, sign = form.objective(start), form.in_model_sense(1.0)
    bound = result.bound
    if bound is not None and sign * (bound - objective) > _slack(objective):
        resolution = SOLVER_RESOLUTION * form.largest_effect()
        if sign * (bound - objective) > max(_slack(objective), resolution):
            raise _distrust(
                result, f"its bound {bound:.9g} excludes the start, of objective {objective:.9g}"
            )
        # Solvers keep rows up to their tolerances, which here are coarser than the costs.
        bound = objective - sign * resolution
        result = replace(result, bound=bound)
    if result.objective is not None and sign * (result.objective - objective) <= 0:
        return result
    return _with_point(result, start, objective, bound, sign)


def _with_point(
    result: SolverResult, values: Floats, objective: float, bound: float | None, sign: float
) -> SolverResult:
    """Return an answer with a point that its bound does not exclude.

    It is called optimal exactly where the bound proves it. `sign`: of a minimisation.
    """
    closed = False
    if bound is not None:
        excess = sign * (bound - objective)
        # What is too high by so much may be so again.
        bound = objective - sign * excess if excess > 0 else bound
        # A loss of 0 has no relative gap; costs are of order 1 here.
        closed = sign * (objective - bound) <= _ZERO
        closed = closed or closes_gap(sign * objective, sign * bound)
    stopped = result.stopped
    if closed and stopped in (Stopped.OPTIMAL, Stopped.GAP, Stopped.TIME, Stopped.NODES):
        stopped = Stopped.OPTIMAL
    elif stopped is Stopped.OPTIMAL:
        stopped = Stopped.ERROR if bound is None else Stopped.GAP
    return replace(result, stopped=stopped, values=values, objective=objective, bound=bound)


def _slack(objective: float) -> float:
    return max(CLAIM_ABSOLUTE, OPTIMALITY_RELATIVE * abs(objective))


def _distrust(result: SolverResult, reason: str) -> SolverError:
    return SolverError(
        f"the answer of {result.solver} does not survive the check: {reason}",
        remedy=f"Try another solver or formulation; {keep_log()}",
    )


def clear_values(model: ConcreteModel) -> None:
    """Take the values from all variables that are not fixed."""
    from pyomo.environ import Var

    for variable in model.component_data_objects(Var, descend_into=True):
        if not variable.fixed:
            variable.set_value(None)


def fill_values(model: ConcreteModel) -> None:
    """Give variables without a value, which stand in no row, the one next to 0 in their bounds."""
    from pyomo.environ import Var

    for variable in model.component_data_objects(Var, descend_into=True):
        if variable.value is None:
            low, high = variable.bounds
            value = 0.0 if low is None else max(0.0, low)
            variable.set_value(value if high is None else min(value, high), skip_validation=True)


def broken_by_values(model: ConcreteModel) -> str | None:
    """Return a sentence about what the values of a model's variables break, or None.

    Linear models are measured as what solvers return is. Others are measured constraint by
    constraint, relative to their bounds where those are above 1.

    Raises InputError if the model has a component that cannot be evaluated.
    """
    try:
        form = compile_standard_form(model)
    except NoSolution as error:
        return error.message
    except InputError:
        return _broken_constraint(model)
    values = form.start_values()
    if values is None:
        return "an integer variable has no value"
    held = [variable.value for variable in form.variables]
    for at, value in enumerate(held):
        if value is not None:
            values[at] = value
    return form.violation(values)


def _broken_constraint(model: ConcreteModel) -> str | None:
    """Return a sentence about the first constraint, linear or not, that does not hold."""
    from pyomo.environ import Constraint, value

    for constraint in model.component_data_objects(Constraint, active=True, descend_into=True):
        lower, body, upper = constraint.to_bounded_expression(evaluate_bounds=True)
        held: Any = value(body, exception=False)
        if held is None:
            return f"constraint {constraint.name} has a variable without a value"
        for bound, excess in ((lower, -1.0), (upper, 1.0)):
            amount = 0.0 if bound is None else excess * (held - bound)
            if bound is not None and amount > FEASIBILITY * max(1.0, abs(bound)):
                return f"constraint {constraint.name} is violated by {amount:.3g}"
    return None
