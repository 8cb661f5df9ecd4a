"""SCIP through pyscipopt.

SCIP searches with one thread. It takes a start of integer values alone as a partial solution
and completes it by a small search of its own.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.errors import InputError
from anonymip.solvers.adapters.packages import installed_version, package_availability
from anonymip.solvers.adapters.watching import Search
from anonymip.solvers.interface import (
    ABSOLUTE_GAP,
    TOLERANCE,
    Availability,
    SolverOptions,
    SolverResult,
)
from anonymip.solvers.modelling.standard_form import StandardForm, outside
from anonymip.status import Stopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonymip.runtime.budget import Budget

#: SCIP's status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = {
    "optimal": Stopped.OPTIMAL,
    "gaplimit": Stopped.GAP,
    "primallimit": Stopped.GAP,
    "duallimit": Stopped.GAP,
    "infeasible": Stopped.INFEASIBLE,
    "timelimit": Stopped.TIME,
    "userinterrupt": Stopped.INTERRUPT,
    "nodelimit": Stopped.NODES,
    "totalnodelimit": Stopped.NODES,
    "stallnodelimit": Stopped.NODES,
    "sollimit": Stopped.NODES,
    "bestsollimit": Stopped.NODES,
    "restartlimit": Stopped.NODES,
    "memlimit": Stopped.ERROR,
    "unknown": Stopped.ERROR,
}
_UNBOUNDED = ("unbounded", "inforunbd")

#: SCIP takes numbers from here on as infinite.
_INFINITY = 1e20


_TAKEN = re.compile(
    r"feasible solutions? given by solution candidate storage|found by completesol heuristic"
)
_REFUSED = re.compile(
    r"given by solution candidate storage (is|are) infeasible"
    r"|completion of a partial solution failed"
)


class ScipSolver:
    """Adapter for SCIP, as pyscipopt 6 brings it."""

    name = "SCIP"
    capabilities = frozenset({"mip", "lp", "start", "bound", "interrupt", "seed", "gap", "log"})
    supports_indicators = True
    own_process = False

    def availability(self) -> Availability:
        """Return whether pyscipopt is installed; SCIP is free for every size."""
        return package_availability("pyscipopt", "scip")

    def solve(
        self,
        form: StandardForm,
        start: NDArray[np.float64] | None,
        options: SolverOptions,
        budget: Budget,
    ) -> SolverResult:
        """Solve a compiled model, see :meth:`anonymip.solvers.Solver.solve`."""
        began = time.monotonic()
        scip, variables, slacks = _new_model(form)
        _set_parameters(scip, options)
        has_start = start is not None and bool(form.integer.any())
        if start is not None and has_start:
            _add_start(scip, variables, slacks, form, start)
        search = Search("SCIP", form, budget)
        scip.includeEventhdlr(_listener(search), "anonymip", "reports incumbents and bounds")
        with TemporaryDirectory(prefix="anonymip-scip-") as folder:
            log = options.log_file
            if log is None and has_start:
                log = Path(folder) / "scip.log"  # the log alone says whether it took the start
            if log is not None:
                scip.setLogfile(str(log))
            _search(scip, search, options, began)
            if scip.getStatus() == "inforunbd":
                # Presolve cannot decide which; without it SCIP can.
                scip.freeTransform()
                scip.setIntParam("presolving/maxrounds", 0)
                _search(scip, search, options, began)
            scip.setLogfile(None)
            accepted = _start_accepted(log) if has_start and log is not None else None
        return _result(scip, variables, form, search, accepted, began)


def _new_model(form: StandardForm) -> tuple[Any, list[Any], list[tuple[Any, int]]]:
    from pyscipopt import Model

    scip = Model()
    scip.hideOutput()
    variables = [
        scip.addVar(
            lb=None if lower <= -_INFINITY else lower,
            ub=None if upper >= _INFINITY else upper,
            vtype=type_,
            obj=cost,
        )
        for lower, upper, type_, cost in zip(
            form.lower.tolist(),
            form.upper.tolist(),
            form.variable_types().tolist(),
            form.cost.tolist(),
            strict=True,
        )
    ]
    scip.addObjoffset(form.offset)
    return scip, variables, _add_rows(scip, variables, form)


def _add_rows(scip: Any, variables: list[Any], form: StandardForm) -> list[tuple[Any, int]]:
    """Add all rows; return SCIP's slack variable and row of each indicator constraint."""
    from pyscipopt.scip import Expr, ExprCons, Term

    terms = [Term(variable) for variable in variables]
    starts, columns = form.matrix.indptr.tolist(), form.matrix.indices.tolist()
    data, slacks = form.matrix.data.tolist(), []
    rows = zip(
        form.row_lower.tolist(), form.row_upper.tolist(), form.indicators().tolist(), strict=True
    )
    for row, (lower, upper, indicator) in enumerate(rows):
        part = range(starts[row], starts[row + 1])
        low = None if lower <= -_INFINITY else lower
        high = None if upper >= _INFINITY else upper
        # SCIP's indicator constraints have one side.
        sides = [(low, high)] if indicator < 0 else [(low, None), (None, high)]
        for left, right in sides:
            if left is None and right is None:
                continue
            expression = Expr({terms[columns[entry]]: data[entry] for entry in part})
            constraint = ExprCons(expression, lhs=left, rhs=right)
            if indicator < 0:
                scip.addCons(constraint)
            else:
                added = scip.addConsIndicator(constraint, binvar=variables[indicator])
                slacks.append((scip.getSlackVarIndicator(added), row))
    return slacks


def _set_parameters(scip: Any, options: SolverOptions) -> None:
    settings: dict[str, object] = {
        "limits/gap": float(options.relative_gap),
        "limits/absgap": ABSOLUTE_GAP,
        "numerics/feastol": TOLERANCE,
        "numerics/dualfeastol": TOLERANCE,
        "randomization/randomseedshift": options.seed,
        "presolving/maxrounds": 0 if options.presolve is False else -1,
        **({} if options.node_limit is None else {"limits/totalnodes": options.node_limit}),
        "timing/clocktype": 2,  # elapsed seconds
        "misc/catchctrlc": False,
        "heuristics/completesol/maxunknownrate": 1.0,
        # With them SCIP 10.0 has called worse points optimal, see test_indicator.py.
        "constraints/indicator/dualreductions": False,
        **options.solver_options,
    }
    known = scip.getParams()
    for name, value in settings.items():
        if name not in known:
            raise InputError(
                f"solver_options: SCIP has no parameter {name!r}",
                remedy="Name it as SCIP does, such as 'presolving/maxrounds'",
            )
        try:
            scip.setParam(name, value)
        except (ValueError, TypeError, KeyError, OverflowError, AttributeError) as error:
            raise InputError(
                f"solver_options: SCIP refuses {value!r} for {name} ({error})",
                remedy="See SCIP's list of parameters for the type and range",
            ) from error


def _add_start(
    scip: Any,
    variables: list[Any],
    slacks: list[tuple[Any, int]],
    form: StandardForm,
    start: NDArray[np.float64],
) -> None:
    """Store a start; continuous values count only if every one is given."""
    complete = not np.isnan(start).any()
    solution = scip.createSol() if complete else scip.createPartialSol()
    for variable, value, integer in zip(
        variables, start.tolist(), form.integer.tolist(), strict=True
    ):
        if complete or integer:
            scip.setSolVal(solution, variable, value)
    if complete:
        missing = outside(form.matrix @ start, form.row_lower, form.row_upper)
        for slack, row in slacks:
            scip.setSolVal(solution, slack, float(missing[row]))
    scip.addSol(solution)


def _listener(search: Search) -> Any:
    """Return an event handler that reports to the search what SCIP finds."""
    from pyscipopt.scip import PY_SCIP_EVENTTYPE, Eventhdlr

    events = (
        PY_SCIP_EVENTTYPE.BESTSOLFOUND,
        PY_SCIP_EVENTTYPE.NODESOLVED,
        PY_SCIP_EVENTTYPE.LPSOLVED,
    )

    class Listener(Eventhdlr):
        def eventinit(self) -> None:
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            search.bound = max(search.bound, self.model.getDualbound())
            if event.getType() == PY_SCIP_EVENTTYPE.BESTSOLFOUND:
                search.incumbent = min(search.incumbent, self.model.getPrimalbound())

    return Listener()


def _search(scip: Any, search: Search, options: SolverOptions, began: float) -> None:
    if options.time_limit is not None and "limits/time" not in options.solver_options:
        left = options.time_limit - (time.monotonic() - began)
        scip.setRealParam("limits/time", max(0.1, left))
    search.run(scip.optimizeNogil, scip.interruptSolve)


def _start_accepted(log: Path) -> bool | None:
    text = log.read_text(errors="replace")
    if _TAKEN.search(text):
        return True
    return False if _REFUSED.search(text) else None


def _result(
    scip: Any,
    variables: list[Any],
    form: StandardForm,
    search: Search,
    accepted: bool | None,
    began: float,
) -> SolverResult:
    stopped = search.stopped(scip.getStatus(), STATUS, _UNBOUNDED)
    values = objective = bound = None
    if stopped is not Stopped.INFEASIBLE:
        if scip.getNSols() > 0:
            best = scip.getBestSol()
            values = np.array([scip.getSolVal(best, variable) for variable in variables])
            objective = form.in_model_sense(scip.getSolObjVal(best))
        if abs(scip.getDualbound()) < _INFINITY:
            bound = form.in_model_sense(scip.getDualbound())
    return SolverResult(
        stopped=stopped,
        values=values,
        objective=objective,
        bound=bound,
        seconds=time.monotonic() - began,
        solver=f"SCIP {scip.version()} (pyscipopt {installed_version('pyscipopt')})",
        start_accepted=accepted,
        nodes=int(scip.getNTotalNodes()),
    )
