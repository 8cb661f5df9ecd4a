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
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymip.errors import InputError, SolverError
from anonymip.solvers.interface import ABSOLUTE_GAP, Availability, SolverOptions, SolverResult
from anonymip.status import Stopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonymip.runtime.budget import Budget
    from anonymip.solvers.modelling.standard_form import StandardForm

#: HiGHS's model status -> why it stopped. Unbounded models are errors and handled apart.
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

#: Seconds between two looks at the budget, and between two progress messages without news.
_POLL = 0.05
_HEARTBEAT = 1.0

#: Seconds that HiGHS gets to notice that the caller has gone.
_FAREWELL = 2.0


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
            log = options.log
            if log is None and start is not None:
                log = Path(folder) / "highs.log"  # the log alone tells whether it took the start
            highs = _new_solver(form, options, log)
            if start is not None and form.integer.any():
                columns = np.flatnonzero(form.integer).astype(np.int32)
                highs.setSolution(len(columns), columns, start[columns])
            run = _Run(highs, form, budget, began)
            run.wait()
            if highs.getModelStatus().name == "kUnboundedOrInfeasible":
                # Presolve cannot tell which; without it HiGHS can.
                highs.setOptionValue("presolve", "off")
                run = _Run(highs, form, budget, began)
                run.wait()
            stopped = _stopped(highs, run.reason)
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


@dataclass
class _Run:
    """One run of HiGHS in its own thread, watched from the caller's.

    `incumbent` and `bound` are written by HiGHS's callbacks and read by the watcher; they are
    minimised values.
    """

    highs: Any
    form: StandardForm
    budget: Budget
    began: float
    reason: Stopped | None = None
    incumbent: float = math.inf
    bound: float = -math.inf
    error: BaseException | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """Run HiGHS to its end, or to the end of the budget."""
        self._subscribe()
        worker = threading.Thread(target=self._work, name="highs", daemon=True)
        worker.start()
        try:
            self._watch(worker)
        finally:
            # Only an exception (a second Ctrl-C) leaves the worker alive here.
            self.stop.set()
            worker.join(_FAREWELL)
        self.highs.clearCallbacks()
        if self.error is not None:
            raise SolverError(f"HiGHS failed: {self.error}") from self.error

    def _work(self) -> None:
        try:
            self.highs.run()
        except Exception as error:  # noqa: BLE001 - handed to the caller's thread
            self.error = error

    def _watch(self, worker: threading.Thread) -> None:
        reported, last = math.inf, time.monotonic()
        while worker.is_alive():
            worker.join(_POLL)
            if self.reason is None:
                self.reason = self.budget.stop_reason()
                if self.reason is not None:
                    self.stop.set()
            now = time.monotonic()
            if self.incumbent < reported or now - last >= _HEARTBEAT:
                reported, last = self.incumbent, now
                self._report()

    def _report(self) -> None:
        self.budget.report(
            "HiGHS: branch and bound" if self.form.integer.any() else "HiGHS: linear program",
            incumbent=self._known(self.incumbent),
            bound=self._known(self.bound),
        )

    def _known(self, value: float) -> float | None:
        return self.form.in_model_sense(value) if math.isfinite(value) else None

    def _subscribe(self) -> None:
        self.highs.cbMipImprovingSolution += self._improved
        self.highs.cbMipInterrupt += self._asked
        self.highs.cbSimplexInterrupt += self._asked_in_lp
        self.highs.cbIpmInterrupt += self._asked_in_lp

    def _improved(self, event: Any) -> None:
        self.incumbent = min(self.incumbent, event.data_out.objective_function_value)

    def _asked(self, event: Any) -> None:
        self.bound = max(self.bound, event.data_out.mip_dual_bound)
        self._asked_in_lp(event)

    def _asked_in_lp(self, event: Any) -> None:
        if self.stop.is_set():
            event.interrupt()


def _stopped(highs: Any, reason: Stopped | None) -> Stopped:
    """Return why HiGHS stopped.

    Raises
    ------
    SolverError
        If the model is unbounded, or the status is one that no solve should end with.
    """
    status = highs.getModelStatus()
    if status.name in ("kUnbounded", "kUnboundedOrInfeasible"):
        raise SolverError(
            "HiGHS says that the model is unbounded", remedy="Bound the variables of the objective"
        )
    if status.name not in STATUS:
        raise SolverError(
            f"HiGHS ended with the status {highs.modelStatusToString(status)!r}",
            remedy="Keep its log with SolverOptions.log",
        )
    stopped = STATUS[status.name]
    return reason if stopped is Stopped.INTERRUPT and reason is not None else stopped


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
