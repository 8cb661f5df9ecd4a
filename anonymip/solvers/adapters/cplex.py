"""CPLEX through its Python package, which brings a licence for small models."""

from __future__ import annotations

import io
import math
import time
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from anonymip.errors import InputError, LicenceLimit, SolverError
from anonymip.runtime.worker_pool import keep_log
from anonymip.solvers.adapters.packages import package_availability
from anonymip.solvers.adapters.watching import Search
from anonymip.solvers.interface import (
    ABSOLUTE_GAP,
    TOLERANCE,
    Availability,
    SolverOptions,
    SolverResult,
)
from anonymip.status import Stopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonymip.runtime.budget import Budget
    from anonymip.solvers.modelling.standard_form import StandardForm

#: CPLEX's status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = {
    "optimal": Stopped.OPTIMAL,
    "optimal_tolerance": Stopped.GAP,
    "MIP_optimal": Stopped.OPTIMAL,
    "optimal_infeasible": Stopped.ERROR,
    "MIP_optimal_infeasible": Stopped.ERROR,
    "infeasible": Stopped.INFEASIBLE,
    "MIP_infeasible": Stopped.INFEASIBLE,
    "abort_time_limit": Stopped.TIME,
    "abort_dettime_limit": Stopped.TIME,
    "MIP_time_limit_feasible": Stopped.TIME,
    "MIP_time_limit_infeasible": Stopped.TIME,
    "MIP_dettime_limit_feasible": Stopped.TIME,
    "MIP_dettime_limit_infeasible": Stopped.TIME,
    "abort_user": Stopped.INTERRUPT,
    "MIP_abort_feasible": Stopped.INTERRUPT,
    "MIP_abort_infeasible": Stopped.INTERRUPT,
    "abort_iteration_limit": Stopped.NODES,
    "abort_obj_limit": Stopped.GAP,
    "abort_primal_obj_limit": Stopped.GAP,
    "abort_dual_obj_limit": Stopped.GAP,
    "solution_limit": Stopped.NODES,
    "node_limit_feasible": Stopped.NODES,
    "node_limit_infeasible": Stopped.NODES,
    "mem_limit_feasible": Stopped.ERROR,
    "mem_limit_infeasible": Stopped.ERROR,
    "fail_feasible": Stopped.ERROR,
    "fail_infeasible": Stopped.ERROR,
    "fail_feasible_no_tree": Stopped.ERROR,
    "fail_infeasible_no_tree": Stopped.ERROR,
    "num_best": Stopped.ERROR,
}
_UNCLEAR = ("infeasible_or_unbounded", "MIP_infeasible_or_unbounded")
_UNBOUNDED = (*_UNCLEAR, "unbounded", "MIP_unbounded", "relaxation_unbounded")

#: CPLEX takes numbers from here on as infinite.
_INFINITY = 1e20

#: Largest model, variables and rows, of the licence in the package; its error above that.
SIZE_LIMIT = (1000, 1000)
_TOO_LARGE = 1016


class CplexSolver:
    """Adapter for CPLEX 22."""

    name = "CPLEX"
    capabilities = frozenset(
        {"mip", "lp", "start", "bound", "interrupt", "threads", "seed", "gap", "log"}
    )
    supports_indicators = True
    own_process = False

    def availability(self) -> Availability:
        """Return whether the package is installed, and what its licence allows."""
        return package_availability(
            "cplex",
            "cplex",
            probe_licence,
            SIZE_LIMIT,
            "A full installation of CPLEX has no limit",
        )

    def solve(
        self,
        form: StandardForm,
        start: NDArray[np.float64] | None,
        options: SolverOptions,
        budget: Budget,
    ) -> SolverResult:
        """Solve a compiled model, see :meth:`anonymip.solvers.Solver.solve`."""
        import cplex

        began = time.monotonic()
        try:
            with cplex.Cplex() as solver, _log(options) as log:
                for stream in _streams(solver):
                    stream(log)
                search = Search("CPLEX", form, budget)
                return _solve(solver, form, start, options, search, log, began)
        except cplex.exceptions.CplexSolverError as error:
            raise _error(error) from error


def _log(options: SolverOptions) -> TextIO:
    """Return what CPLEX writes its log to; it is read again for what became of the start."""
    if options.log_file is None:
        return io.StringIO()
    return options.log_file.open("w+", encoding="utf-8", buffering=1)


def _streams(solver: Any) -> tuple[Any, ...]:
    return (
        solver.set_log_stream,
        solver.set_results_stream,
        solver.set_warning_stream,
        solver.set_error_stream,
    )


def probe_licence(budget: Budget) -> str | None:
    """Return None under a full licence, "limited" under a small one, or why there is none."""
    import cplex

    try:
        with cplex.Cplex() as solver:
            for stream in _streams(solver):
                stream(None)
            solver.variables.add(obj=[1.0] * (SIZE_LIMIT[0] + 1))
            solver.solve()
    except cplex.exceptions.CplexError as error:
        code = error.args[2] if len(error.args) > 2 else None
        return "limited" if code == _TOO_LARGE else str(error)
    return None


def _error(error: Any) -> SolverError | LicenceLimit:
    if error.args[2] == _TOO_LARGE:
        return LicenceLimit(f"{error}", remedy="Install a full licence")
    return SolverError(f"CPLEX failed: {error}", remedy=keep_log())


def _solve(
    solver: Any,
    form: StandardForm,
    start: NDArray[np.float64] | None,
    options: SolverOptions,
    search: Search,
    log: TextIO,
    began: float,
) -> SolverResult:
    import cplex

    _fill(solver, form)
    _set_parameters(solver, options)
    has_start = start is not None and bool(form.integer.any())
    if start is not None and has_start:
        columns = np.flatnonzero(form.integer).tolist()
        solver.MIP_starts.add(
            cplex.SparsePair(columns, start[columns].tolist()),
            solver.MIP_starts.effort_level.solve_fixed,
        )
    with cplex.Aborter() as aborter:
        solver.use_aborter(aborter)
        if form.integer.any():
            _listen(solver, search)
        _search(solver, search, aborter, options, began)
        if _status(solver) in _UNCLEAR:
            # Presolve cannot decide which; without it CPLEX can.
            solver.parameters.preprocessing.presolve.set(0)
            solver.parameters.preprocessing.reduce.set(0)
            _search(solver, search, aborter, options, began)
        solver.remove_aborter()
    log.seek(0)
    accepted = _start_accepted(log.read()) if has_start else None
    return _result(solver, form, search, accepted, began)


def _fill(solver: Any, form: StandardForm) -> None:
    import cplex

    solver.variables.add(
        obj=form.cost.tolist(),
        lb=np.maximum(form.lower, -_INFINITY).tolist(),
        ub=np.minimum(form.upper, _INFINITY).tolist(),
        # Types make a mixed-integer program even where all are continuous.
        types="".join(form.variable_types()) if form.integer.any() else "",
    )
    solver.objective.set_offset(form.offset)
    starts, columns = form.matrix.indptr.tolist(), form.matrix.indices.tolist()
    data = form.matrix.data.tolist()
    rows: list[tuple[Any, str, float]] = []
    switched: list[tuple[Any, str, float, int]] = []
    limits = zip(
        form.row_lower.tolist(), form.row_upper.tolist(), form.indicators().tolist(), strict=True
    )
    for row, (lower, upper, indicator) in enumerate(limits):
        part = slice(starts[row], starts[row + 1])
        pair = cplex.SparsePair(columns[part], data[part])
        for sense, side in _sides(lower, upper):
            if indicator >= 0:
                switched.append((pair, sense, side, indicator))
            else:
                rows.append((pair, sense, side))
    if rows:
        pairs, senses, sides = zip(*rows, strict=True)
        solver.linear_constraints.add(lin_expr=pairs, senses="".join(senses), rhs=sides)
    for pair, sense, side, indicator in switched:
        solver.indicator_constraints.add(
            lin_expr=pair, sense=sense, rhs=side, indvar=indicator, complemented=0
        )


def _sides(lower: float, upper: float) -> list[tuple[str, float]]:
    if lower == upper:
        return [("E", lower)]
    sides = []
    if lower > -_INFINITY:
        sides.append(("G", lower))
    if upper < _INFINITY:
        sides.append(("L", upper))
    return sides


def _set_parameters(solver: Any, options: SolverOptions) -> None:
    import cplex

    settings: dict[str, object] = {
        "mip.tolerances.mipgap": min(1.0, float(options.relative_gap)),
        "mip.tolerances.absmipgap": ABSOLUTE_GAP,
        "mip.tolerances.integrality": TOLERANCE,
        "simplex.tolerances.feasibility": TOLERANCE,
        "simplex.tolerances.optimality": TOLERANCE,
        "threads": options.threads,
        "randomseed": options.seed,
        "preprocessing.presolve": int(options.presolve is not False),
        **({} if options.node_limit is None else {"mip.limits.nodes": options.node_limit}),
        "clocktype": 2,  # elapsed seconds
        **options.solver_options,
    }
    for name, value in settings.items():
        parameter: Any = solver.parameters
        for part in name.split("."):
            parameter = None if part.startswith("_") else getattr(parameter, part, None)
        if parameter is None or not issubclass(type(parameter), _parameter_type()):
            raise InputError(
                f"solver_options: CPLEX has no parameter {name!r}",
                remedy="Name it as in Python, such as 'mip.limits.nodes'",
            )
        try:
            parameter.set(value)
        except (cplex.exceptions.CplexError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"solver_options: CPLEX refuses {value!r} for {name} ({error})",
                remedy="See CPLEX's list of parameters for the type and range",
            ) from error


def _parameter_type() -> type:
    from cplex._internal._parameter_classes import Parameter

    found: type = Parameter
    return found


def _listen(solver: Any, search: Search) -> None:
    """Let CPLEX report to the search what it finds."""
    from cplex.callbacks import MIPInfoCallback

    class Listener(MIPInfoCallback):
        def __call__(self) -> None:
            search.bound = max(search.bound, self.get_best_objective_value())
            if self.has_incumbent():
                search.incumbent = min(search.incumbent, self.get_incumbent_objective_value())

    solver.register_callback(Listener)


def _search(
    solver: Any, search: Search, aborter: Any, options: SolverOptions, began: float
) -> None:
    if options.time_limit is not None and "timelimit" not in options.solver_options:
        left = options.time_limit - (time.monotonic() - began)
        solver.parameters.timelimit.set(max(0.1, left))
    search.run(solver.solve, aborter.abort)


def _status(solver: Any) -> str:
    name: str = solver.solution.status[solver.solution.get_status()]
    return name


def _start_accepted(log: str) -> bool | None:
    if "MIP starts provided solutions" in log:
        return True
    return False if "No solution found from" in log else None


def _result(
    solver: Any, form: StandardForm, search: Search, accepted: bool | None, began: float
) -> SolverResult:
    stopped = search.stopped(_status(solver), STATUS, _UNBOUNDED)
    values = objective = None
    bound = -math.inf
    if stopped is not Stopped.INFEASIBLE:
        if solver.solution.is_primal_feasible():
            values = np.array(solver.solution.get_values(), dtype=float)
            objective = float(solver.solution.get_objective_value())
        if form.integer.any():
            bound = float(solver.solution.MIP.get_best_objective())
        elif stopped is Stopped.OPTIMAL and objective is not None:
            bound = objective
    return SolverResult(
        stopped=stopped,
        values=values,
        objective=None if objective is None else form.in_model_sense(objective),
        bound=form.in_model_sense(bound) if abs(bound) < _INFINITY else None,
        seconds=time.monotonic() - began,
        solver=f"CPLEX {solver.get_version()}",
        start_accepted=accepted,
    )
