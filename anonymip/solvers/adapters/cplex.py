"""CPLEX through its Python package, which brings a licence for small models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from anonymip.runtime.arrays import Floats
from anonymip.solvers.adapters.packages import INFINITY, PackageSolver, Search, Session, meanings
from anonymip.solvers.interface import ABSOLUTE_GAP, TOLERANCE, SolverOptions
from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.runtime.budget import Budget
    from anonymip.solvers.standard_form import StandardForm

#: CPLEX's status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = meanings(
    {
        Stopped.OPTIMAL: "optimal MIP_optimal",
        Stopped.GAP: "optimal_tolerance abort_obj_limit abort_primal_obj_limit "
        "abort_dual_obj_limit",
        Stopped.ERROR: "optimal_infeasible MIP_optimal_infeasible mem_limit_feasible "
        "mem_limit_infeasible fail_feasible fail_infeasible fail_feasible_no_tree "
        "fail_infeasible_no_tree num_best",
        Stopped.INFEASIBLE: "infeasible MIP_infeasible",
        Stopped.TIME: "abort_time_limit abort_dettime_limit MIP_time_limit_feasible "
        "MIP_time_limit_infeasible MIP_dettime_limit_feasible "
        "MIP_dettime_limit_infeasible",
        Stopped.INTERRUPT: "abort_user MIP_abort_feasible MIP_abort_infeasible",
        Stopped.NODES: "abort_iteration_limit solution_limit node_limit_feasible "
        "node_limit_infeasible",
    }
)
_UNCLEAR = ("infeasible_or_unbounded", "MIP_infeasible_or_unbounded")
_UNBOUNDED = (*_UNCLEAR, "unbounded", "MIP_unbounded", "relaxation_unbounded")

#: Largest model, variables and rows, of the licence in the package; its error above that.
SIZE_LIMIT = (1000, 1000)
_TOO_LARGE = 1016


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


class CplexSolver(PackageSolver):
    """Adapter for CPLEX 22."""

    name, package, optional = "CPLEX", "cplex", "cplex"
    probe, size_limit = staticmethod(probe_licence), SIZE_LIMIT
    licence_remedy = "A full installation of CPLEX has no limit"
    statuses, unbounded, unclear = STATUS, _UNBOUNDED, _UNCLEAR
    naming = "Name it as in Python, such as 'mip.limits.nodes'"
    failure = "cplex.exceptions:CplexError"

    def is_too_large(self, error: Any) -> bool:
        """Return whether the licence is for smaller models."""
        return len(error.args) > 2 and error.args[2] == _TOO_LARGE

    @contextmanager
    def session(
        self, form: StandardForm, options: SolverOptions, search: Search, log: Path | None
    ) -> Iterator[Session]:
        """Open CPLEX, fill the model in, and let it report to the search."""
        import cplex

        with (
            cplex.Cplex() as solver,
            open(log or os.devnull, "w", encoding="utf-8", buffering=1) as written,
            cplex.Aborter() as aborter,
        ):
            for stream in _streams(solver):
                stream(written)
            _fill(solver, form)
            solver.use_aborter(aborter)
            if form.integer.any():
                _listen(solver, search)
            yield _CplexSession(aborter, solver, form, options, log)
            solver.remove_aborter()


class _CplexSession(Session):
    """A model inside CPLEX."""

    time_parameter = "timelimit"
    without_reductions: ClassVar = {"preprocessing.presolve": 0, "preprocessing.reduce": 0}
    taken, refused = "MIP starts provided solutions", "No solution found from"

    def __init__(self, aborter: Any, *given: Any) -> None:
        super().__init__(*given)
        self._aborter = aborter

    def settings(self) -> dict[str, object]:
        options = self.options
        return {
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
        }

    def setter(self, name: str) -> Callable[[Any], object] | None:
        from cplex._internal._parameter_classes import Parameter

        found: Any = self.native.parameters
        for part in name.split("."):
            found = None if part.startswith("_") else getattr(found, part, None)
        if found is None or not issubclass(type(found), Parameter):
            return None
        setter: Callable[[Any], object] = found.set
        return setter

    def add_start(self, start: Floats) -> None:
        import cplex

        columns, starts = np.flatnonzero(self.form.integer).tolist(), self.native.MIP_starts
        starts.add(
            cplex.SparsePair(columns, start[columns].tolist()), starts.effort_level.solve_fixed
        )

    def run(self) -> None:
        self.native.solve()

    def stop(self) -> None:
        self._aborter.abort()

    def status(self) -> str:
        solution = self.native.solution
        name: str = solution.status[solution.get_status()]
        return name

    def point(self) -> tuple[Floats, float] | None:
        solution = self.native.solution
        if not solution.is_primal_feasible():
            return None
        values = np.array(solution.get_values(), dtype=float)
        return values, float(solution.get_objective_value())

    def best_bound(self) -> float:
        return float(self.native.solution.MIP.get_best_objective())

    def version(self) -> str:
        return f"CPLEX {self.native.get_version()}"


def _fill(solver: Any, form: StandardForm) -> None:
    import cplex

    solver.variables.add(
        obj=form.cost.tolist(),
        lb=np.maximum(form.lower, -INFINITY).tolist(),
        ub=np.minimum(form.upper, INFINITY).tolist(),
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
    if lower > -INFINITY:
        sides.append(("G", lower))
    if upper < INFINITY:
        sides.append(("L", upper))
    return sides


def _listen(solver: Any, search: Search) -> None:
    """Let CPLEX report to the search what it finds."""
    from cplex.callbacks import MIPInfoCallback

    class Listener(MIPInfoCallback):
        def __call__(self) -> None:
            search.bound = max(search.bound, self.get_best_objective_value())
            if self.has_incumbent():
                search.incumbent = min(search.incumbent, self.get_incumbent_objective_value())

    solver.register_callback(Listener)
