"""The solvers by name, and the one way to use them: compile, solve, check, load."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from anonymip.errors import (
    AnonymipError,
    InputError,
    LicenceLimit,
    NoSolution,
    SolverError,
    SolverUnavailable,
    unknown_name,
)
from anonymip.extensions import Extensions
from anonymip.files import start_growing
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.worker_pool import (
    Killed,
    can_isolate,
    content_of,
    keep_log,
    prepare,
    run_isolated,
)
from anonymip.solvers.interface import Availability, Solver, SolverOptions, SolverResult
from anonymip.solvers.standard_form import StandardForm, compile_standard_form
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

#: Name on the command line -> "module:class".
ADAPTERS: Mapping[str, str] = MappingProxyType(
    {
        "highs": "anonymip.solvers.adapters.highs:HighsSolver",
        "cbc": "anonymip.solvers.adapters.cbc:CbcSolver",
        "scip": "anonymip.solvers.adapters.scip:ScipSolver",
        "gurobi": "anonymip.solvers.adapters.gurobi:GurobiSolver",
        "cplex": "anonymip.solvers.adapters.cplex:CplexSolver",
    }
)

#: A constant this large beside costs of order 1 is kept from solvers, whose relative tolerances
#: would hide all differences behind it.
_HUGE_OFFSET = 1e6


# What every adapter has: the public members of the protocol.
_MEMBERS = ("name", "capabilities", "supports_indicators", "own_process", "availability", "solve")


def _read(name: str, load: Callable[[], object]) -> Solver:
    """Return the adapter that an entry point registers: of a class that it makes, or itself."""
    found = load()
    made = found() if isinstance(found, type) else found
    missing = [member for member in _MEMBERS if not hasattr(made, member)]
    if missing:
        raise InputError(
            f"it registers an object of type {type(made).__name__}, which has no "
            f"{', '.join(missing)}",
            remedy="Register an object or a class that follows the Solver protocol",
        )
    return cast(Solver, made)


_OUTSIDE = Extensions("anonymip.solvers", "solver", _read, lambda: frozenset(ADAPTERS))


def solver_names() -> tuple[str, ...]:
    """Return the names of all solvers that have an adapter, importing packages that bring some."""
    return (*ADAPTERS, *_OUTSIDE.all())


def refuse_unknown_solver(name: str) -> None:
    """Refuse a solver that has no adapter, whether it is installed or not.

    Raises InputError if no adapter has this name, or the package that registers it cannot be used.
    """
    if name not in ADAPTERS and _OUTSIDE.find(name) is None:
        raise unknown_name("solver", name, solver_names())


def availability(name: str) -> Availability:
    """Return whether a solver can be used here, and if not what to do.

    Raises InputError if no adapter has this name.
    """
    return _adapter(name).availability()


def get_solver(name: str) -> Solver:
    """Return the adapter of a solver that can be used here.

    Raises InputError if no adapter has this name. SolverUnavailable if the solver is not installed,
    or its licence allows no model at all.
    """
    adapter = _adapter(name)
    found = adapter.availability()
    if not found.installed:
        raise SolverUnavailable(f"the solver {name} is not installed", remedy=found.reason)
    if found.licence == "none":
        raise SolverUnavailable(f"the solver {name} has no licence", remedy=found.reason)
    return adapter


def _adapter(name: str) -> Solver:
    refuse_unknown_solver(name)
    outside = None if name in ADAPTERS else _OUTSIDE.find(name)
    return cast(Solver, resolve_name(ADAPTERS[name])()) if outside is None else outside


def solve_model(
    model: ConcreteModel,
    solver: str | Solver = "highs",
    options: SolverOptions | None = None,
    start: bool = False,
    budget: Budget | None = None,
) -> SolverResult:
    """Solve a linear Pyomo model, check what comes back, and load it into the variables.

    Nothing a solver says is taken on trust: integer variables are rounded where they lie within
    tolerance, bounds, integrality and rows are checked, the objective is recomputed, and the bound
    must fit it. Nor is it trusted to stop: it runs in a process of its own and is killed
    :data:`~anonymip.runtime.budget.GRACE` seconds after its time limit, or after an interrupt.

    Parameters
    ----------
    model
        A linear model with one active objective. Its variables receive the values found, or none
        where none are found, so that what an earlier solve left is not taken for a solution; fixed
        variables, and variables that no row and no cost uses, keep theirs. Constraints of an
        active Disjunct hold where its binary indicator variable is 1.
    solver
        Name of a solver, or an adapter.
    options
        Options of the solver; the time limit is shortened to what `budget` has left.
    start
        Whether to hand the present values of the variables to the solver as a warm start. If
        all are given and they satisfy the model, what comes back is never worse: a solver that
        reaches a limit, or is killed, with nothing better leaves the start as the point.
    budget
        When to stop, and who listens; None for no limit.

    Returns
    -------
    SolverResult
        `stopped` is ``OPTIMAL`` only if the bound proves the recomputed objective. If the
        solver calls a point optimal and its bound leaves a gap, it is ``GAP``; without a bound,
        ``ERROR``. A limit at which the bound already meets the objective is ``OPTIMAL``.
        `start_accepted` is what the solver reports, also where the start is the point.

    Raises
    ------
    InputError
        If the model is not linear, an option is refused, `start` is asked for and an integer
        variable has no value, or the model has Disjuncts and the solver knows no indicators.
    SolverUnavailable
        If the solver is not installed, or its licence does not allow a model of this size.
    SolverError
        If the model is unbounded, the solver fails or its process dies, or its answer does not
        survive the check: a point it calls finished breaks the model, a bound excludes its own
        point or the start, or it calls a model infeasible that the start satisfies. A bad point
        handed over at a limit (time, interrupt, nodes) is dropped instead: there solvers do not
        vouch for it, and the bound still holds.
    """
    adapter = get_solver(solver) if isinstance(solver, str) else solver
    options = SolverOptions() if options is None else options
    budget = Budget() if budget is None else budget
    if options.presolve is None:
        options = replace(options, presolve=getattr(model, "presolve_pays", True))
    prepare_solver(adapter)
    try:
        form = compile_standard_form(model)
    except NoSolution:
        clear_values(model)
        return SolverResult(Stopped.INFEASIBLE, None, None, None, 0.0, adapter.name)
    result = _solve_scaled(form, adapter, options, start, budget)
    if result.values is None:
        clear_values(model)
    else:
        for variable, value in zip(form.variables, result.values.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
        fill_values(model)
    return result


def solve_form(
    form: StandardForm,
    solver: str | Solver = "highs",
    options: SolverOptions | None = None,
    start: bool = False,
    budget: Budget | None = None,
) -> SolverResult:
    """Solve a model that is given as matrices, and check what comes back as for any other.

    `form`: its variables need a name and, with `start`, a value; its constraints need a name.
    `solver, options, start, budget`: as for :func:`solve_model`. Raises InputError,
    SolverUnavailable, SolverError as :func:`solve_model` does.
    """
    adapter = get_solver(solver) if isinstance(solver, str) else solver
    prepare_solver(adapter)
    return _solve_scaled(form, adapter, options or SolverOptions(), start, budget or Budget())


def _solve_scaled(
    form: StandardForm, adapter: Solver, options: SolverOptions, start: bool, budget: Budget
) -> SolverResult:
    """Solve with costs of order 1, check the answer there, and give it in the model's unit.

    Tolerances of solvers are absolute: to costs of 1e-9 they are blind, and would call anything
    optimal. So they are beside a huge constant, which is kept from them, and which some refuse.
    """
    factor = form.cost_factor()
    huge = abs(factor * form.offset) > _HUGE_OFFSET
    if factor == 1.0 and not huge:
        return _solve_form(form, adapter, options, start, budget)
    scaled = replace(form, cost=factor * form.cost, offset=0.0 if huge else factor * form.offset)
    offset = form.in_model_sense(form.offset) if huge else 0.0
    report = budget.progress
    if report is not None:

        def unscaled(message: Progress) -> None:
            incumbent = _in_units(message.incumbent, factor, offset)
            bound = _in_units(message.bound, factor, offset)
            report(replace(message, incumbent=incumbent, bound=bound))

        budget = replace(budget, progress=unscaled)
    result = _solve_form(scaled, adapter, options, start, budget)
    return replace(
        result,
        objective=None if result.values is None else form.objective(result.values),
        bound=_in_units(result.bound, factor, offset),
    )


def _in_units(value: float | None, factor: float, offset: float) -> float | None:
    """Return a scaled value with its offset, in the model's unit."""
    return None if value is None else value / factor + offset


def _solve_form(
    form: StandardForm, adapter: Solver, options: SolverOptions, start: bool, budget: Budget
) -> SolverResult:
    """Give the compiled model to the adapter, unless there is no time; check what comes back."""
    start_values = form.start_values() if start else None
    if start and start_values is None:
        missing = next(
            variable.name
            for variable, integer in zip(form.variables, form.integer, strict=True)
            if integer and variable.value is None
        )
        raise InputError(
            f"start: integer variable {missing} has no value",
            remedy="Give every integer variable a value, zeros too, or solve without a start",
        )
    _refuse_what_does_not_fit(form, adapter)
    if not form.variables:
        objective = form.objective(np.empty(0))
        return SolverResult(Stopped.OPTIMAL, np.empty(0), objective, objective, 0.0, adapter.name)
    reason = budget.stop_reason()
    solve = _Solve(adapter, form.without_components(), start_values, options)
    if reason is not None:
        result = SolverResult(reason, None, None, None, 0.0, adapter.name)
    else:
        if options.log_file is not None:
            start_growing(options.log_file)
        result = _run(solve, budget)
    try:
        result = check_result(form, result)
    except SolverError:
        # CBC 2.10.3 rarely returns a point that its own preprocessing has bent out of the model.
        if not getattr(adapter, "retries_without_presolve", False) or options.presolve is False:
            raise
        solve = replace(solve, options=replace(options, presolve=False))
        result = check_result(form, _run(solve, budget))
    return keep_start(form, result, start_values)


def _refuse_what_does_not_fit(form: StandardForm, adapter: Solver) -> None:
    if form.has_indicators and not adapter.supports_indicators:
        able = [name for name in solver_names() if _adapter(name).supports_indicators]
        raise InputError(
            f"{adapter.name} knows no constraints that hold only where a binary variable is 1",
            remedy=f"Use a solver that does ({', '.join(able)}), or one of the formulations "
            f"bigm, hull and strengthened",
        )
    found = adapter.availability()
    rows, variables = form.matrix.shape
    if not found.allows(variables, rows):
        raise LicenceLimit(
            f"the licence of {adapter.name} allows {found.max_variables} variables and "
            f"{found.max_rows} rows; the model has {variables} variables and {rows} rows",
            remedy="Install a full licence, or use a solver without limits such as highs or scip",
        )


@dataclass(frozen=True)
class _Solve:
    """One solve as a task, for this process or another."""

    adapter: Solver
    form: StandardForm
    start: Floats | None
    options: SolverOptions

    def within(self, budget: Budget) -> _Solve:
        """Return it with no more time than the budget has."""
        limit, remaining = self.options.time_limit, budget.remaining()
        if remaining is not None:
            # The deadline may pass between two looks at the clock.
            limit = min(max(remaining, 1e-3), math.inf if limit is None else limit)
        return replace(self, options=replace(self.options, time_limit=limit))

    def __call__(self, budget: Budget) -> SolverResult:
        options = self.within(budget).options
        return self.adapter.solve(self.form, self.start, options, budget)


def prepare_solver(solver: str | Solver) -> None:
    """Have a worker load a solver that is needed soon, if it is there, while the caller goes on."""
    with suppress(InputError, SolverUnavailable):
        adapter = get_solver(solver) if isinstance(solver, str) else solver
        if _is_isolated(adapter):
            prepare(partial(_load, adapter))


def _load(adapter: Solver, budget: Budget) -> None:
    adapter.availability()


def _is_isolated(adapter: Solver) -> bool:
    """Return whether an adapter is called in a worker process.

    One from a script's or notebook's own namespace cannot be: no other process can import it.
    """
    return (
        not adapter.own_process
        and can_isolate()
        and type(adapter).__module__ not in ("__main__", "__mp_main__")
    )


def _run(solve: _Solve, budget: Budget) -> SolverResult:
    solve, adapter = solve.within(budget), solve.adapter
    content = content_of(solve) if _is_isolated(adapter) else None
    if content is not None:
        began = time.monotonic()
        outcome: SolverResult | Killed = run_isolated(content, solve.options.time_limit, budget)
        if not isinstance(outcome, Killed):
            return outcome
        name, seconds = f"{adapter.name} {adapter.availability().version}", time.monotonic() - began
        return SolverResult(outcome.reason, None, None, outcome.bound, seconds, name)
    try:
        return solve(budget)
    except AnonymipError:
        raise
    except Exception as error:
        raise SolverError(
            f"{adapter.name} failed with {type(error).__name__}: {error}",
            remedy=f"Try another solver; {keep_log()}",
        ) from error


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
