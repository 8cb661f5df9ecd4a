"""The solvers by name, and the one way to use them: compile, solve, check, load."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

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
from anonymip.solvers.modelling.checked_results import (
    check_result,
    clear_values,
    fill_values,
    keep_start,
)
from anonymip.solvers.modelling.standard_form import StandardForm, compile_standard_form
from anonymip.status import Stopped

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
    if _is_isolated(adapter):
        prepare()
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
    if _is_isolated(adapter):
        prepare()
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
