"""SCIP through pyscipopt.

SCIP searches with one thread. It takes a start of integer values alone as a partial solution
and completes it by a small search of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

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
from anonymip.solvers.standard_form import StandardForm, outside
from anonymip.status import Stopped

#: SCIP's status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = meanings(
    {
        Stopped.OPTIMAL: "optimal",
        Stopped.GAP: "gaplimit primallimit duallimit",
        Stopped.INFEASIBLE: "infeasible",
        Stopped.TIME: "timelimit",
        Stopped.INTERRUPT: "userinterrupt",
        Stopped.NODES: "nodelimit totalnodelimit stallnodelimit sollimit bestsollimit restartlimit",
        Stopped.ERROR: "memlimit unknown",
    }
)
_UNBOUNDED = ("unbounded", "inforunbd")


class ScipSolver(PackageSolver):
    """Adapter for SCIP, as pyscipopt 6 brings it; free for every size."""

    name, package, optional = "SCIP", "pyscipopt", "scip"
    capabilities = PackageSolver.capabilities - {"threads"}
    statuses, unbounded, unclear = STATUS, _UNBOUNDED, ("inforunbd",)
    naming = "Name it as SCIP does, such as 'presolving/maxrounds'"

    @contextmanager
    def session(
        self, form: StandardForm, options: SolverOptions, search: Search, log: Path | None
    ) -> Iterator[Session]:
        """Make a model, fill it in, and let it report to the search."""
        scip, variables, slacks = _new_model(form)
        scip.includeEventhdlr(_listener(search), "anonymip", "reports incumbents and bounds")
        if log is not None:
            scip.setLogfile(str(log))
        yield _ScipSession(variables, slacks, scip, form, options, log)
        scip.setLogfile(None)


class _ScipSession(Session):
    """A model inside SCIP."""

    time_parameter = "limits/time"
    without_reductions: ClassVar = {"presolving/maxrounds": 0}
    taken = (
        r"feasible solutions? given by solution candidate storage|found by completesol heuristic"
    )
    refused = (
        r"given by solution candidate storage (is|are) infeasible"
        r"|completion of a partial solution failed"
    )

    def __init__(self, variables: list[Any], slacks: list[tuple[Any, int]], *given: Any) -> None:
        super().__init__(*given)
        self._variables, self._slacks = variables, slacks
        self._known = self.native.getParams()

    def settings(self) -> dict[str, object]:
        options = self.options
        return {
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
            # With them SCIP 10.0 has called worse points optimal, see test_pairs.py.
            "constraints/indicator/dualreductions": False,
        }

    def setter(self, name: str) -> Callable[[Any], object] | None:
        known = name in self._known
        return (lambda value: self.native.setParam(name, value)) if known else None

    def add_start(self, start: Floats) -> None:
        """Store a start; continuous values count only if every one is given."""
        scip, form, complete = self.native, self.form, not np.isnan(start).any()
        solution = scip.createSol() if complete else scip.createPartialSol()
        for variable, value, integer in zip(
            self._variables, start.tolist(), form.integer.tolist(), strict=True
        ):
            if complete or integer:
                scip.setSolVal(solution, variable, value)
        if complete:
            missing = outside(form.matrix @ start, form.row_lower, form.row_upper)
            for slack, row in self._slacks:
                scip.setSolVal(solution, slack, float(missing[row]))
        scip.addSol(solution)

    def run(self) -> None:
        self.native.optimizeNogil()

    def stop(self) -> None:
        self.native.interruptSolve()

    def status(self) -> str:
        status: str = self.native.getStatus()
        return status

    def turn_off_reductions(self) -> None:
        self.native.freeTransform()
        super().turn_off_reductions()

    def start_accepted(self) -> bool | None:
        self.native.setLogfile(None)
        return super().start_accepted()

    def point(self) -> tuple[Floats, float] | None:
        if self.native.getNSols() == 0:
            return None
        best = self.native.getBestSol()
        values = np.array([self.native.getSolVal(best, variable) for variable in self._variables])
        return values, self.native.getSolObjVal(best)

    def bound(self, stopped: Stopped, objective: float | None) -> float:
        return self.best_bound()

    def best_bound(self) -> float:
        return float(self.native.getDualbound())

    def version(self) -> str:
        return f"SCIP {self.native.version()} (pyscipopt {installed_version('pyscipopt')})"

    def nodes(self) -> int:
        return int(self.native.getNTotalNodes())


def _new_model(form: StandardForm) -> tuple[Any, list[Any], list[tuple[Any, int]]]:
    from pyscipopt import Model

    scip = Model()
    scip.hideOutput()
    variables = [
        scip.addVar(
            lb=None if lower <= -INFINITY else lower,
            ub=None if upper >= INFINITY else upper,
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
        low = None if lower <= -INFINITY else lower
        high = None if upper >= INFINITY else upper
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
