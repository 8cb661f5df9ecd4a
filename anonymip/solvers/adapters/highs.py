"""HiGHS through highspy: the matrices go straight to the solver.

Each solve runs in a thread of its own while the caller's thread watches the budget and reports
progress. That keeps Ctrl-C alive, and since HiGHS keeps one scheduler for each thread that
calls it, the number of threads may differ from solve to solve: in a thread that has solved
before, another number makes HiGHS fail until its scheduler is reset, which in turn is unsafe
while another solve runs.
"""

from __future__ import annotations

import math
import threading
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.errors import InputError, SolverError
from anonymip.solvers.adapters.watching import Search
from anonymip.solvers.interface import ABSOLUTE_GAP, Availability, SolverOptions, SolverResult
from anonymip.status import Stopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonymip.runtime.budget import Budget
    from anonymip.solvers.modelling.standard_form import StandardForm

#: HiGHS's model status -> why it stopped. Unbounded models are errors and handled separately.
STATUS = {
    "kOptimal": Stopped.OPTIMAL,
    "kInfeasible": Stopped.INFEASIBLE,
    "kTimeLimit": Stopped.TIME,
    "kInterrupt": Stopped.INTERRUPT,
    "kHighsInterrupt": Stopped.INTERRUPT,
    "kSolutionLimit": Stopped.NODES,
    "kIterationLimit": Stopped.NODES,
    "kObjectiveBound": Stopped.GAP,
    "kObjectiveTarget": Stopped.GAP,
    "kMemoryLimit": Stopped.ERROR,
    "kUnknown": Stopped.ERROR,
}
_UNBOUNDED = ("kUnbounded", "kUnboundedOrInfeasible")


class HighsSolver:
    """Adapter for HiGHS, versions 1.13 and 1.15."""

    name = "HiGHS"
    capabilities = frozenset(
        {"mip", "lp", "start", "bound", "interrupt", "threads", "seed", "gap", "log"}
    )
    supports_indicators = False
    own_process = False

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
        self,
        form: StandardForm,
        start: NDArray[np.float64] | None,
        options: SolverOptions,
        budget: Budget,
    ) -> SolverResult:
        """Solve a compiled model, see :meth:`anonymip.solvers.Solver.solve`."""
        began = time.monotonic()
        with TemporaryDirectory(prefix="anonymip-highs-") as folder:
            log = options.log_file
            if log is None and start is not None:
                log = Path(folder) / "highs.log"  # the log alone says whether it took the start
            highs = _new_solver(form, options, log)
            if start is not None and form.integer.any():
                columns = np.flatnonzero(form.integer).astype(np.int32)
                highs.setSolution(len(columns), columns, start[columns])
            search, stop = Search("HiGHS", form, budget), threading.Event()
            _listen(highs, search, stop)
            search.run(highs.run, stop.set)
            if highs.getModelStatus().name == "kUnboundedOrInfeasible":
                # Presolve cannot decide which; without it HiGHS can.
                highs.setOptionValue("presolve", "off")
                search.run(highs.run, stop.set)
            highs.clearCallbacks()
            stopped = search.stopped(highs.getModelStatus().name, STATUS, _UNBOUNDED)
            accepted = _start_accepted(log) if start is not None and log is not None else None
        return _result(highs, form, stopped, time.monotonic() - began, accepted)


#: The presolve rule, as a bit, that substitutes by equations and doubletons. In HiGHS 1.15.1 it
#: loses optima of mixed-integer models whose rows mix coefficients of 1e-8 and 1.
_AGGREGATOR = 1 << 12


@cache
def _version() -> str:
    version: str = import_module("highspy").Highs().version()
    return version


def _new_solver(form: StandardForm, options: SolverOptions, log: Path | None) -> Any:
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", log is not None)
    highs.setOptionValue("log_to_console", False)
    settings: dict[str, object] = {
        "mip_rel_gap": float(options.relative_gap),
        "mip_abs_gap": ABSOLUTE_GAP,
        "threads": options.threads,
        "parallel": "on" if options.threads > 1 else "off",
        "random_seed": options.seed,
        "presolve": "off" if options.presolve is False else "choose",
        **({"presolve_rule_off": _AGGREGATOR} if form.integer.any() else {}),
        **({} if options.node_limit is None else {"mip_max_nodes": options.node_limit}),
        **options.solver_options,
    }
    if options.time_limit is not None:
        settings.setdefault("time_limit", float(options.time_limit))
    for name, value in settings.items():
        _set_option(highs, name, value)
    if log is not None:
        highs.setOptionValue("log_file", str(log))
    if highs.passModel(_linear_program(form)) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refuses the model", remedy="Look for infinite or huge numbers")
    return highs


def _set_option(highs: Any, name: str, value: object) -> None:
    import highspy

    known = highs.getOptionValue(name)[0] == highspy.HighsStatus.kOk
    if not known:
        raise InputError(
            f"solver_options: HiGHS has no option {name!r}", remedy="See HiGHS's list of options"
        )
    try:
        accepted = highs.setOptionValue(name, value) == highspy.HighsStatus.kOk
    except TypeError:
        accepted = False
    if not accepted:
        raise InputError(
            f"solver_options: HiGHS refuses {value!r} for {name}",
            remedy="See HiGHS's list of options for the type and range",
        )


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


def _start_accepted(log: Path) -> bool | None:
    text = log.read_text(errors="replace")
    if "MIP start solution is feasible" in text:
        return True
    # If presolve alone solves the model, HiGHS says nothing about the start.
    return False if "Solving MIP model with" in text else None


def _result(
    highs: Any, form: StandardForm, stopped: Stopped, seconds: float, accepted: bool | None
) -> SolverResult:
    import highspy

    info = highs.getInfo()
    values = None
    if info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible):
        values = np.array(highs.getSolution().col_value, dtype=float)
    objective = info.objective_function_value
    if form.integer.any():
        bound = info.mip_dual_bound
    else:
        bound = objective if stopped is Stopped.OPTIMAL else -math.inf
    # Infinite where the model is infeasible: nothing that a caller could use as a number.
    known = math.isfinite(bound) and stopped is not Stopped.INFEASIBLE
    return SolverResult(
        stopped=stopped,
        values=None if stopped is Stopped.INFEASIBLE else values,
        objective=form.in_model_sense(objective) if values is not None else None,
        bound=form.in_model_sense(bound) if known else None,
        seconds=seconds,
        solver=f"HiGHS {_version()}",
        start_accepted=accepted,
        nodes=int(info.mip_node_count) if info.mip_node_count >= 0 else None,
    )
