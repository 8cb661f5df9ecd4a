"""Gurobi through gurobipy. The package brings a licence for small models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from anonymip.runtime.arrays import Floats
from anonymip.solvers.adapters.packages import (
    INFINITY,
    PackageSolver,
    Search,
    Session,
    installed_version,
    meanings,
)
from anonymip.solvers.interface import ABSOLUTE_GAP, TOLERANCE, SolverOptions
from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.runtime.budget import Budget
    from anonymip.solvers.standard_form import StandardForm

#: Gurobi's status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = meanings(
    {
        Stopped.OPTIMAL: "OPTIMAL",
        Stopped.INFEASIBLE: "INFEASIBLE",
        Stopped.GAP: "CUTOFF USER_OBJ_LIMIT",
        Stopped.TIME: "TIME_LIMIT WORK_LIMIT",
        Stopped.INTERRUPT: "INTERRUPTED",
        Stopped.NODES: "NODE_LIMIT ITERATION_LIMIT SOLUTION_LIMIT",
        Stopped.ERROR: "MEM_LIMIT NUMERIC SUBOPTIMAL",
    }
)
_UNBOUNDED = ("UNBOUNDED", "INF_OR_UNBD")

#: Largest model, variables and rows, of the licence in the package; its error above that.
SIZE_LIMIT = (2000, 2000)
_TOO_LARGE = 10010


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


class GurobiSolver(PackageSolver):
    """Adapter for Gurobi 13."""

    name, package, optional = "Gurobi", "gurobipy", "gurobi"
    probe, size_limit = staticmethod(probe_licence), SIZE_LIMIT
    licence_remedy = "A full licence is found by the environment variable GRB_LICENSE_FILE"
    statuses, unbounded, unclear = STATUS, _UNBOUNDED, ("INF_OR_UNBD",)
    naming = "See Gurobi's list of parameters; capitals count"
    failure = "gurobipy:GurobiError"

    def is_too_large(self, error: Any) -> bool:
        """Return whether the licence is for smaller models."""
        return bool(error.errno == _TOO_LARGE)

    @contextmanager
    def session(
        self, form: StandardForm, options: SolverOptions, search: Search, log: Path | None
    ) -> Iterator[Session]:
        """Open Gurobi, fill the model in, and let it report to the search."""
        import gurobipy

        with _environment() as environment, gurobipy.Model(env=environment) as model:
            if log is not None:
                model.Params.LogToConsole = 0
                model.Params.OutputFlag = 1
                model.Params.LogFile = str(log)
            variables = _fill(model, form)
            yield _GurobiSession(variables, search, model, form, options, log)


class _GurobiSession(Session):
    """A model inside Gurobi."""

    time_parameter = "TimeLimit"
    without_reductions: ClassVar = {"DualReductions": 0}
    taken = "Loaded user MIP start|MIP start produced solution"
    refused = "MIP start did not produce"

    def __init__(self, variables: Any, search: Search, *given: Any) -> None:
        super().__init__(*given)
        self._variables, self._search = variables, search

    def settings(self) -> dict[str, object]:
        options = self.options
        return {
            "MIPGap": float(options.relative_gap),
            "MIPGapAbs": ABSOLUTE_GAP,
            "FeasibilityTol": TOLERANCE,
            "OptimalityTol": TOLERANCE,
            "IntFeasTol": TOLERANCE,
            "Threads": options.threads,
            "Seed": options.seed,
            "Presolve": 0 if options.presolve is False else -1,
            **({} if options.node_limit is None else {"NodeLimit": float(options.node_limit)}),
        }

    def setter(self, name: str) -> Callable[[Any], object] | None:
        from gurobipy import GRB

        known = isinstance(getattr(GRB.Param, name, None), str)
        return (lambda value: self.native.setParam(name, value)) if known else None

    def add_start(self, start: Floats) -> None:
        columns = np.flatnonzero(self.form.integer)
        self._variables[columns].Start = start[columns]

    def run(self) -> None:
        self.native.optimize(self._listen)

    def stop(self) -> None:
        self.native.terminate()

    def status(self) -> str:
        from gurobipy import GRB

        names = {
            getattr(GRB.Status, name): name for name in dir(GRB.Status) if not name.startswith("_")
        }
        return names.get(self.native.Status, str(self.native.Status))

    def start_accepted(self) -> bool | None:
        self.native.Params.LogFile = ""  # what it has not written yet, it writes now
        return super().start_accepted()

    def point(self) -> tuple[Floats, float] | None:
        if self.native.SolCount == 0:
            return None
        return np.array(self._variables.X, dtype=float), float(self.native.ObjVal)

    def best_bound(self) -> float:
        return float(self.native.ObjBound)

    def version(self) -> str:
        return f"Gurobi {installed_version('gurobipy')}"

    def _listen(self, model: Any, where: int) -> None:
        """Report to the search what is found."""
        from gurobipy import GRB

        if where == GRB.Callback.MIP:
            self._take(model.cbGet(GRB.Callback.MIP_OBJBST), model.cbGet(GRB.Callback.MIP_OBJBND))
        elif where == GRB.Callback.MIPSOL:
            self._take(
                model.cbGet(GRB.Callback.MIPSOL_OBJBST), model.cbGet(GRB.Callback.MIPSOL_OBJBND)
            )

    def _take(self, incumbent: float, bound: float) -> None:
        self._search.incumbent = min(self._search.incumbent, incumbent)
        self._search.bound = max(self._search.bound, bound)


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
        ((form.row_lower > -INFINITY) & (form.row_lower != form.row_upper), form.row_lower, ">"),
        ((form.row_upper < INFINITY) & (form.row_lower != form.row_upper), form.row_upper, "<"),
    ):
        rows = np.flatnonzero(finite & certain)
        if rows.size:
            model.addMConstr(form.matrix[rows], variables, sense, side[rows])
        for row in np.flatnonzero(finite & ~certain).tolist():
            import gurobipy

            part = slice(form.matrix.indptr[row], form.matrix.indptr[row + 1])
            columns = form.matrix.indices[part].tolist()
            expression = gurobipy.LinExpr(
                form.matrix.data[part].tolist(), [variables[column].item() for column in columns]
            )
            switch = variables[int(form.indicators()[row])].item()
            model.addGenConstrIndicator(switch, True, expression, sense, float(side[row]))
    model.update()
    return variables
