"""CBC as a program of its own: a model file goes in, a solution file comes out.

The model is always written as a minimisation: CBC 2.10 takes the objective of a MIP start with
the wrong sign when the model maximises, and may then cut off everything better. The time limit
is in elapsed seconds: with CBC's default, CPU seconds, the point it writes at the limit and the
objective it reports disagree.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from anonymip.errors import InputError, SolverError, SolverUnavailable
from anonymip.files import private
from anonymip.runtime.budget import GRACE
from anonymip.runtime.worker_pool import keep_log
from anonymip.solvers.adapters.cbc_files import (
    lower_bound,
    progress,
    read_values,
    write_model,
    write_start,
)
from anonymip.solvers.interface import (
    ABSOLUTE_GAP,
    Availability,
    SolverOptions,
    SolverResult,
)
from anonymip.status import Stopped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonymip.runtime.budget import Budget
    from anonymip.solvers.modelling.standard_form import StandardForm

#: What CBC may have stopped on, as its solution file says -> why it stopped. "iterations" is
#: written for an interrupt and for several limits, and distinguished by what was asked of it.
STOPPED_ON = {
    "time": Stopped.TIME,
    "nodes": Stopped.NODES,
    "solutions": Stopped.NODES,
    "iterations": Stopped.NODES,
    "gap": Stopped.GAP,
    "ctrl-c": Stopped.INTERRUPT,
    "difficulties": Stopped.ERROR,
}
STATUS = {
    "Optimal": Stopped.OPTIMAL,
    "Optimal (within gap tolerance)": Stopped.GAP,
    "Infeasible": Stopped.INFEASIBLE,
    "Integer infeasible": Stopped.INFEASIBLE,
}

_POLL = 0.05
_HEARTBEAT = 1.0
#: Seconds after the limit at which CBC is asked to stop, and seconds it then has to write.
_LATE = GRACE / 2
#: What a kill and reading the log take must fit into the grace as well.
_PATIENCE = {Stopped.TIME: GRACE - _LATE - 0.25, Stopped.INTERRUPT: GRACE}

_REFUSED = re.compile(r"No match for|Multiple matches|Short match|is illegal|Possible options")


class CbcSolver:
    """Adapter for the CBC program, the one in PuLP's package or else the one on the path."""

    name = "CBC"
    capabilities = frozenset(
        {"mip", "lp", "start", "bound", "interrupt", "threads", "seed", "gap", "log"}
    )
    supports_indicators = False
    own_process = True
    retries_without_presolve = True

    def availability(self) -> Availability:
        """Return whether a CBC program is found that runs here."""
        program = _program()
        version = None if program is None else _version(program)
        if version is None:
            return Availability(
                False,
                False,
                None,
                "No CBC program runs here. Install PuLP, which carries one for Linux x86-64 "
                "('pip install \"pulp<4\"'), or put 'cbc' on the path",
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
        program = _program()
        if program is None:
            raise SolverUnavailable(
                "the solver cbc is not installed", remedy=self.availability().reason
            )
        own = _own_arguments(program, options)
        with TemporaryDirectory(prefix="anonymip-cbc-") as name:
            folder = Path(name)
            write_model(form, folder / "model.lp")
            has_start = start is not None and bool(form.integer.any())
            if start is not None and has_start:
                write_start(form, start, folder / "start.txt")
            left = None
            if options.time_limit is not None:
                left = max(0.1, options.time_limit - (time.monotonic() - began))
            arguments = [program, *_arguments(options, left), *own, *_actions(has_start)]
            log = folder / "cbc.log" if options.log_file is None else options.log_file
            run = _run(arguments, folder, log, left, form, budget)
            return _result(form, folder, log, run, began, _version(program))


@cache
def _program() -> str | None:
    """Return the path of CBC, or None."""
    import shutil

    try:
        from pulp.apis import PULP_CBC_CMD
    except ImportError:
        carried = None
    else:
        # The class attribute: making an object of it warns of its removal in PuLP 4.
        carried = str(PULP_CBC_CMD.pulp_cbc_path)
    if carried is not None and os.access(carried, os.X_OK):
        return carried
    return shutil.which("cbc")


@cache
def _version(program: str) -> str | None:
    """Return the version that the program prints, or None if it does not run."""
    try:
        text = _ask(program, [])
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^Version: *(\S+)", text, re.MULTILINE)
    return found[1] if found else None


def _ask(program: str, arguments: list[str]) -> str:
    """Return what CBC prints about its arguments, without a model."""
    done = subprocess.run(
        [program, *arguments, "-quit"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=20,
        check=False,
    )
    return done.stdout


def _own_arguments(program: str, options: SolverOptions) -> list[str]:
    """Return the caller's own options as arguments, after CBC has accepted each of them."""
    arguments: list[str] = []
    for name, value in options.solver_options.items():
        pair = [f"-{name}"] if value is None else [f"-{name}", str(value)]
        if _REFUSED.search(_ask(program, pair)):
            raise InputError(
                f"solver_options: CBC refuses the option {name!r} with {value!r}",
                remedy="Run 'cbc -?' for its options",
            )
        arguments += pair
    return arguments


def _arguments(options: SolverOptions, time_limit: float | None) -> list[str]:
    # CBC takes seed 0 to mean the time of day.
    seed = str(options.seed + 1)
    arguments = ["model.lp", "-timeMode", "elapsed"]
    if time_limit is not None:
        arguments += ["-sec", f"{time_limit:.3f}"]
    arguments += ["-ratioGap", repr(float(options.relative_gap))]
    arguments += ["-allowableGap", repr(ABSOLUTE_GAP)]
    # By default CBC drops what improves by less than 1e-5.
    arguments += ["-increment", repr(ABSOLUTE_GAP)]
    arguments += ["-randomCbcSeed", seed, "-randomSeed", seed]
    if options.presolve is False:
        arguments += ["-presolve", "off", "-preprocess", "off"]
    if options.node_limit is not None:
        arguments += ["-maxNodes", str(options.node_limit)]
    if options.threads > 1:
        arguments += ["-threads", str(options.threads)]
    return arguments


def _actions(has_start: bool) -> list[str]:
    start = ["-mipstart", "start.txt"] if has_start else []
    files = ["-solution", "solution.txt", "-saveSolution", "solution.bin"]
    return [*start, "-printingOptions", "all", "-solve", *files]


@dataclass(frozen=True)
class _Run:
    """How a CBC process ended.

    Parameters
    ----------
    reason
        Why it was asked to stop; None if it ended by itself.
    killed
        Whether it did not follow and was killed.
    late
        Whether it ran up to its time limit.
    code
        Its exit code; above 128 the signal that ended it is added to 128.
    """

    reason: Stopped | None
    killed: bool
    late: bool
    code: int


def _run(
    arguments: list[str],
    folder: Path,
    log: Path,
    time_limit: float | None,
    form: StandardForm,
    budget: Budget,
) -> _Run:
    """Run CBC to its end, or to the end of the budget.

    It gets a session of its own: Ctrl-C at the terminal then reaches us alone, and we pass it
    on once. A second one would make CBC quit without writing its point.
    """
    log = log.absolute()
    with open(log, "wb", opener=private) as output:
        process = subprocess.Popen(
            _guarded(arguments, folder),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return _watch(process, log, time_limit, form, budget)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _guarded(arguments: list[str], folder: Path) -> list[str]:
    """Return the command behind a guardian that kills CBC if this process ends first."""
    if not sys.executable or getattr(sys, "frozen", False):
        return arguments
    guardian = str(Path(__file__).with_name("guardian.py"))
    return [sys.executable, "-I", "-S", guardian, str(folder), *arguments]


def _watch(
    process: subprocess.Popen[bytes],
    log: Path,
    time_limit: float | None,
    form: StandardForm,
    budget: Budget,
) -> _Run:
    began = reported = time.monotonic()
    reason: Stopped | None = None
    patience = np.inf
    while not _ended(process):
        now = time.monotonic()
        if now - reported >= _HEARTBEAT:
            reported = now
            _report(log, form, budget)
        if now >= patience:
            return _Run(reason, killed=True, late=True, code=128 + signal.SIGKILL)
        if reason is None:
            # Not at the deadline itself: CBC keeps it and may just be writing its point.
            if budget.stop_reason() is Stopped.INTERRUPT:
                reason = Stopped.INTERRUPT
            elif time_limit is not None and now - began >= time_limit + _LATE:
                reason = Stopped.TIME
            if reason is not None:
                os.killpg(process.pid, signal.SIGINT)
                patience = now + _PATIENCE[reason]
    late = time_limit is not None and time.monotonic() - began >= time_limit
    return _Run(reason, killed=False, late=late, code=process.returncode)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL)
    except subprocess.TimeoutExpired:
        return False
    return True


def _report(log: Path, form: StandardForm, budget: Budget) -> None:
    incumbent, bound = progress(log.read_text(errors="replace"))
    budget.report(
        "CBC: branch and bound" if form.integer.any() else "CBC: linear program",
        incumbent=None if incumbent is None else form.in_model_sense(incumbent),
        bound=None if bound is None else form.in_model_sense(bound),
    )


def _result(
    form: StandardForm,
    folder: Path,
    log: Path,
    run: _Run,
    began: float,
    version: str | None,
) -> SolverResult:
    text = log.read_text(errors="replace")
    solution = folder / "solution.txt"
    head, names = "", []
    if solution.exists():
        head, *rows = solution.read_text(errors="replace").splitlines() or [""]
        names = [row.replace("**", "").split()[1] for row in rows]
    status, _, claim = head.partition(" - objective value ")
    if run.killed or (run.reason is not None and not status):
        stopped, status = run.reason or Stopped.TIME, ""
    else:
        stopped = _stopped(status, run, text)
    has_point = stopped is not Stopped.INFEASIBLE and bool(status) and "no integer" not in status
    claimed = float(claim) if has_point else None
    bound = claimed if stopped is Stopped.OPTIMAL else lower_bound(text, claimed)
    if stopped is Stopped.INFEASIBLE:
        bound = None
    return SolverResult(
        stopped=stopped,
        values=read_values(form, folder / "solution.bin", names) if has_point else None,
        objective=None if claimed is None else form.in_model_sense(claimed),
        bound=None if bound is None else form.in_model_sense(bound),
        seconds=time.monotonic() - began,
        solver=f"CBC {version}",
        start_accepted=_start_accepted(text),
    )


def _stopped(status: str, run: _Run, log: str) -> Stopped:
    """Return why CBC stopped, from the first line of its solution file.

    Raises
    ------
    SolverError
        If the model is unbounded, or the status is one that no solve should end with.
    """
    if status == "Unbounded":
        raise SolverError(
            "CBC says that the model is unbounded", remedy="Bound the variables of the objective"
        )
    if status in STATUS:
        return STATUS[status]
    word = re.match(r"Stopped on (\S+)", status)
    if word is None or word[1] not in STOPPED_ON:
        last = log.strip().splitlines()[-1:] or ["nothing"]
        how = f"with the status {status!r}" if status else _death(run.code)
        raise SolverError(
            f"CBC ended {how} and printed last: {last[0]}",
            remedy=keep_log(),
        )
    if word[1] == "iterations" and run.reason is not None:
        return run.reason
    if word[1] == "iterations" and run.late:
        return Stopped.TIME
    return STOPPED_ON[word[1]]


def _death(code: int) -> str:
    """Return how CBC ended, from the exit code of its guardian or its own."""
    number = -code if code < 0 else code - 128
    try:
        return f"by {signal.Signals(number).name}"
    except ValueError:
        return f"with exit code {code}"


def _start_accepted(log: str) -> bool | None:
    if "MIPStart provided solution with cost" in log:
        return True
    return False if "mipstart values could not be used" in log else None
