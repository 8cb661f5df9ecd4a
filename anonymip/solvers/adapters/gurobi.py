"""Gurobi through gurobipy. The package brings a licence for small models."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.errors import InputError, LicenceLimit, SolverError
from anonymip.runtime.worker_pool import keep_log
from anonymip.solvers.adapters.packages import installed_version, package_availability
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

#: Gurobi's status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = {
    "OPTIMAL": Stopped.OPTIMAL,
    "INFEASIBLE": Stopped.INFEASIBLE,
    "CUTOFF": Stopped.GAP,
    "USER_OBJ_LIMIT": Stopped.GAP,
    "TIME_LIMIT": Stopped.TIME,
    "WORK_LIMIT": Stopped.TIME,
    "INTERRUPTED": Stopped.INTERRUPT,
    "NODE_LIMIT": Stopped.NODES,
    "ITERATION_LIMIT": Stopped.NODES,
    "SOLUTION_LIMIT": Stopped.NODES,
    "MEM_LIMIT": Stopped.ERROR,
    "NUMERIC": Stopped.ERROR,
    "SUBOPTIMAL": Stopped.ERROR,
}
_UNBOUNDED = ("UNBOUNDED", "INF_OR_UNBD")

#: Gurobi takes numbers from here on as infinite.
_INFINITY = 1e20

#: Largest model, variables and rows, of the licence in the package; its error above that.
SIZE_LIMIT = (2000, 2000)
_TOO_LARGE = 10010


class GurobiSolver:
    """Adapter for Gurobi 13."""

    name = "Gurobi"
    capabilities = frozenset(
        {"mip", "lp", "start", "bound", "interrupt", "threads", "seed", "gap", "log"}
    )
    supports_indicators = True
    own_process = False

    def availability(self) -> Availability:
        """Return whether gurobipy is installed, and what its licence allows."""
        return package_availability(
            "gurobipy",
            "gurobi",
            probe_licence,
            SIZE_LIMIT,
            "A full licence is found by the environment variable GRB_LICENSE_FILE",
        )

    def solve(
        self,
        form: StandardForm,
        start: NDArray[np.float64] | None,
        options: SolverOptions,
        budget: Budget,
    ) -> SolverResult:
        """Solve a compiled model, see :meth:`anonymip.solvers.Solver.solve`."""
        import gurobipy

        began = time.monotonic()
        try:
            with _environment() as environment, gurobipy.Model(env=environment) as model:
                return _solve(model, form, start, options, Search("Gurobi", form, budget), began)
        except gurobipy.GurobiError as error:
            raise _error(error) from error


def _environment() -> Any:
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)  # before the start, which prints a banner
    environment.start()
    return environment


def probe_licence(budget: Budget) -> str | None:
    """Return None under a full licence, "limited" under a small one, or why there is none."""
    import gurobipy

    try:
        with _environment() as environment, gurobipy.Model(env=environment) as model:
            model.addMVar(SIZE_LIMIT[0] + 1)
            model.optimize()
    except gurobipy.GurobiError as error:
        return "limited" if error.errno == _TOO_LARGE else str(error)
    return None


def _error(error: Any) -> SolverError | LicenceLimit:
    if error.errno == _TOO_LARGE:
        return LicenceLimit(f"Gurobi: {error}", remedy="Install a full licence")
    return SolverError(f"Gurobi failed: {error}", remedy=keep_log())


def _solve(
    model: Any,
    form: StandardForm,
    start: NDArray[np.float64] | None,
    options: SolverOptions,
    search: Search,
    began: float,
) -> SolverResult:
    variables = _fill(model, form)
    _set_parameters(model, options)
    has_start = start is not None and bool(form.integer.any())
    if start is not None and has_start:
        columns = np.flatnonzero(form.integer)
        variables[columns].Start = start[columns]
    listener = _Listener(search)
    for reductions in (None, 0):
        if reductions is not None:
            # Presolve cannot decide whether the model is infeasible or unbounded; without it
            # Gurobi can.
            model.Params.DualReductions = reductions
        if options.time_limit is not None and "TimeLimit" not in options.solver_options:
            model.Params.TimeLimit = max(0.1, options.time_limit - (time.monotonic() - began))
        search.run(lambda: model.optimize(listener), model.terminate)
        if _status(model) != "INF_OR_UNBD":
            break
    accepted = listener.accepted if has_start else None
    return _result(model, variables, form, search, accepted, began)


def _fill(model: Any, form: StandardForm) -> Any:
    """Add variables and rows to an empty model; return the variables."""
    variables = model.addMVar(
        len(form.cost), lb=form.lower, ub=form.upper, obj=form.cost, vtype=form.variable_types()
    )
    model.ObjCon = form.offset
    indicators = form.indicators()
    certain = indicators < 0
    for finite, side, sense in (
        (form.row_lower == form.row_upper, form.row_lower, "="),
        ((form.row_lower > -_INFINITY) & (form.row_lower != form.row_upper), form.row_lower, ">"),
        ((form.row_upper < _INFINITY) & (form.row_lower != form.row_upper), form.row_upper, "<"),
    ):
        rows = np.flatnonzero(finite & certain)
        if rows.size:
            model.addMConstr(form.matrix[rows], variables, sense, side[rows])
        for row in np.flatnonzero(finite & ~certain).tolist():
            _add_indicator(model, variables, form, row, sense, float(side[row]))
    model.update()
    return variables


def _add_indicator(
    model: Any, variables: Any, form: StandardForm, row: int, sense: str, side: float
) -> None:
    import gurobipy

    part = slice(form.matrix.indptr[row], form.matrix.indptr[row + 1])
    columns = form.matrix.indices[part].tolist()
    expression = gurobipy.LinExpr(
        form.matrix.data[part].tolist(), [variables[column].item() for column in columns]
    )
    switch = variables[int(form.indicators()[row])].item()
    model.addGenConstrIndicator(switch, True, expression, sense, side)


def _set_parameters(model: Any, options: SolverOptions) -> None:
    import gurobipy

    if options.log_file is not None:
        model.Params.LogToConsole = 0
        model.Params.OutputFlag = 1
        model.Params.LogFile = str(options.log_file)
    settings: dict[str, object] = {
        "MIPGap": float(options.relative_gap),
        "MIPGapAbs": ABSOLUTE_GAP,
        "FeasibilityTol": TOLERANCE,
        "OptimalityTol": TOLERANCE,
        "IntFeasTol": TOLERANCE,
        "Threads": options.threads,
        "Seed": options.seed,
        "Presolve": 0 if options.presolve is False else -1,
        **({} if options.node_limit is None else {"NodeLimit": float(options.node_limit)}),
        **options.solver_options,
    }
    for name, value in settings.items():
        if not isinstance(getattr(gurobipy.GRB.Param, name, None), str):
            raise InputError(
                f"solver_options: Gurobi has no parameter {name!r}",
                remedy="See Gurobi's list of parameters; capitals count",
            )
        try:
            model.setParam(name, value)
        except (gurobipy.GurobiError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                f"solver_options: Gurobi refuses {value!r} for {name} ({error})",
                remedy="See Gurobi's list of parameters for the type and range",
            ) from error


class _Listener:
    """Gurobi's callback: reports to the search what is found, and reads of the start."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self.accepted: bool | None = None

    def __call__(self, model: Any, where: int) -> None:
        from gurobipy import GRB

        if where == GRB.Callback.MIP:
            self._take(model.cbGet(GRB.Callback.MIP_OBJBST), model.cbGet(GRB.Callback.MIP_OBJBND))
        elif where == GRB.Callback.MIPSOL:
            self._take(
                model.cbGet(GRB.Callback.MIPSOL_OBJBST), model.cbGet(GRB.Callback.MIPSOL_OBJBND)
            )
        elif where == GRB.Callback.MESSAGE:
            text = model.cbGet(GRB.Callback.MSG_STRING)
            if "Loaded user MIP start" in text or "MIP start produced solution" in text:
                self.accepted = True
            elif "MIP start did not produce" in text:
                self.accepted = False

    def _take(self, incumbent: float, bound: float) -> None:
        self._search.incumbent = min(self._search.incumbent, incumbent)
        self._search.bound = max(self._search.bound, bound)


def _status(model: Any) -> str:
    from gurobipy import GRB

    names = {
        getattr(GRB.Status, name): name for name in dir(GRB.Status) if not name.startswith("_")
    }
    return names.get(model.Status, str(model.Status))


def _result(
    model: Any,
    variables: Any,
    form: StandardForm,
    search: Search,
    accepted: bool | None,
    began: float,
) -> SolverResult:
    stopped = search.stopped(_status(model), STATUS, _UNBOUNDED)
    values = objective = None
    bound = -math.inf
    if stopped is not Stopped.INFEASIBLE:
        if model.SolCount > 0:
            values, objective = np.array(variables.X, dtype=float), float(model.ObjVal)
        if form.integer.any():
            bound = float(model.ObjBound)
        elif stopped is Stopped.OPTIMAL and objective is not None:
            bound = objective
    return SolverResult(
        stopped=stopped,
        values=values,
        objective=None if objective is None else form.in_model_sense(objective),
        bound=form.in_model_sense(bound) if abs(bound) < _INFINITY else None,
        seconds=time.monotonic() - began,
        solver=f"Gurobi {installed_version('gurobipy')}",
        start_accepted=accepted,
    )
