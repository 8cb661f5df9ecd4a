"""HiGHS through highspy: the matrices go straight to the solver.

Each solve runs in a thread of its own while the caller's thread watches the budget and reports
progress. That keeps Ctrl-C alive, and since HiGHS keeps one scheduler for each thread that
calls it, the number of threads may differ from solve to solve: in a thread that has solved
before, another number makes HiGHS fail until its scheduler is reset, which in turn is unsafe
while another solve runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from anonymip.errors import SolverError
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import Budget
from anonymip.solvers.adapters.packages import PackageSolver, Search, Session, meanings
from anonymip.solvers.interface import ABSOLUTE_GAP, Availability, SolverOptions, SolverResult
from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.solvers.standard_form import StandardForm

#: HiGHS's model status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = meanings(
    {
        Stopped.OPTIMAL: "kOptimal",
        Stopped.INFEASIBLE: "kInfeasible",
        Stopped.TIME: "kTimeLimit",
        Stopped.INTERRUPT: "kInterrupt kHighsInterrupt",
        Stopped.NODES: "kSolutionLimit kIterationLimit",
        Stopped.GAP: "kObjectiveBound kObjectiveTarget",
        Stopped.ERROR: "kMemoryLimit kUnknown",
    }
)
_UNBOUNDED = ("kUnbounded", "kUnboundedOrInfeasible")


class HighsSolver(PackageSolver):
    """Adapter for HiGHS, versions 1.13 and 1.15."""

    name, package, optional = "HiGHS", "highspy", "highs"
    statuses, unbounded, unclear = STATUS, _UNBOUNDED, ("kUnboundedOrInfeasible",)
    naming = "See HiGHS's list of options"
    supports_indicators = False

    def availability(self) -> Availability:
        """Return whether highspy can be imported here."""
        try:
            version = _version()
        except ImportError as error:
            return Availability(
                False,
                False,
                None,
                f"highspy cannot be imported ({error}). Install it with "
                f"'pip install highspy', and do not import ortools in the same process",
            )
        return Availability(True, True, version, None, "full")

    def solve(
        self, form: StandardForm, start: Floats | None, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Solve a compiled model, once more without its start where that is called optimal at once.

        HiGHS 1.15.1 calls some starts optimal that are not, before it has looked at a node:
        presolve takes their objective for a bound, and drops all that is better. No single rule of
        presolve is to blame.
        """
        result = super().solve(form, start, options, budget)
        at_once = result.stopped is Stopped.OPTIMAL and not result.nodes
        if start is None or result.values is None or not form.integer.any() or not at_once:
            return result
        if form.cost @ result.values < form.cost @ np.nan_to_num(start) - ABSOLUTE_GAP:
            return result
        again = super().solve(form, None, options, budget)
        seconds = result.seconds + again.seconds
        return replace(again, seconds=seconds, start_accepted=result.start_accepted)

    @contextmanager
    def session(
        self, form: StandardForm, options: SolverOptions, search: Search, log: Path | None
    ) -> Iterator[Session]:
        """Hand the matrices over, and let HiGHS report to the search."""
        import highspy

        highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        highs.setOptionValue("output_flag", log is not None)
        highs.setOptionValue("log_to_console", False)
        if highs.passModel(_linear_program(form)) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS refuses the model", remedy="Look for infinite or huge numbers")
        session = _HighsSession(highs, form, options, log)
        _listen(highs, search, session.stopping)
        yield session
        highs.clearCallbacks()


#: The presolve rule, as a bit, that substitutes by equations and doubletons. In HiGHS 1.15.1 it
#: loses optima of mixed-integer models whose rows mix coefficients of 1e-8 and 1.
_AGGREGATOR = 1 << 12


@cache
def _version() -> str:
    version: str = import_module("highspy").Highs().version()
    return version


class _HighsSession(Session):
    """A model inside HiGHS."""

    time_parameter = "time_limit"
    without_reductions: ClassVar = {"presolve": "off"}
    taken = "MIP start solution is feasible"
    # If presolve alone solves the model, HiGHS says nothing about the start.
    refused = "Solving MIP model with"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.stopping = threading.Event()

    def settings(self) -> dict[str, object]:
        options = self.options
        return {
            "mip_rel_gap": float(options.relative_gap),
            "mip_abs_gap": ABSOLUTE_GAP,
            "threads": options.threads,
            "parallel": "on" if options.threads > 1 else "off",
            "random_seed": options.seed,
            "presolve": "off" if options.presolve is False else "choose",
            **({"presolve_rule_off": _AGGREGATOR} if self.form.integer.any() else {}),
            **({} if options.node_limit is None else {"mip_max_nodes": options.node_limit}),
        }

    def setter(self, name: str) -> Callable[[Any], object] | None:
        import highspy

        def set_value(value: Any) -> None:
            if self.native.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                raise ValueError("no such value")

        known = self.native.getOptionValue(name)[0] == highspy.HighsStatus.kOk
        return set_value if known else None

    def add_start(self, start: Floats) -> None:
        columns = np.flatnonzero(self.form.integer).astype(np.int32)
        self.native.setSolution(len(columns), columns, start[columns])

    def limit(self, seconds: float) -> None:
        # A linear program's limit is a reading of HiGHS's clock, which goes on from run to run;
        # that of a mixed-integer model is of the run.
        passed = 0.0 if self.form.integer.any() else self.native.getRunTime()
        super().limit(seconds + passed)

    def run(self) -> None:
        if self.log is not None:
            self.native.setOptionValue("log_file", str(self.log))
        self.native.run()

    def stop(self) -> None:
        self.stopping.set()

    def status(self) -> str:
        name: str = self.native.getModelStatus().name
        return name

    def point(self) -> tuple[Floats, float] | None:
        import highspy

        info = self.native.getInfo()
        if info.primal_solution_status != int(highspy.SolutionStatus.kSolutionStatusFeasible):
            return None
        values = np.array(self.native.getSolution().col_value, dtype=float)
        return values, info.objective_function_value

    def best_bound(self) -> float:
        bound: float = self.native.getInfo().mip_dual_bound
        return bound

    def version(self) -> str:
        return f"HiGHS {_version()}"

    def nodes(self) -> int | None:
        count = int(self.native.getInfo().mip_node_count)
        return count if count >= 0 else None

    def iterations(self) -> int | None:
        count = int(self.native.getInfo().simplex_iteration_count)
        return count if count >= 0 else None


def _linear_program(form: StandardForm) -> Any:
    import highspy

    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = form.matrix.shape
    program.col_cost_ = form.cost
    program.offset_ = form.offset
    program.col_lower_, program.col_upper_ = form.lower, form.upper
    program.row_lower_, program.row_upper_ = form.row_lower, form.row_upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = form.matrix.indptr
    program.a_matrix_.index_ = form.matrix.indices
    program.a_matrix_.value_ = form.matrix.data
    if form.integer.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        program.integrality_ = [kinds[integer] for integer in form.integer.tolist()]
    return program


def _listen(highs: Any, search: Search, stop: threading.Event) -> None:
    """Let HiGHS report to the search what it finds, and end when it is to stop."""

    def improved(event: Any) -> None:
        search.incumbent = min(search.incumbent, event.data_out.objective_function_value)

    def asked(event: Any) -> None:
        search.bound = max(search.bound, event.data_out.mip_dual_bound)
        asked_in_lp(event)

    def asked_in_lp(event: Any) -> None:
        if stop.is_set():
            event.interrupt()

    highs.cbMipImprovingSolution += improved
    highs.cbMipInterrupt += asked
    highs.cbSimplexInterrupt += asked_in_lp
    highs.cbIpmInterrupt += asked_in_lp
