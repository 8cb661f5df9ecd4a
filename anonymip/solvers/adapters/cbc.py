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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from anonymip.errors import InputError, SolverError, SolverUnavailable
from anonymip.files import private
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import GRACE
from anonymip.runtime.worker_pool import keep_log
from anonymip.solvers.interface import ABSOLUTE_GAP, Availability, SolverOptions, SolverResult
from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.runtime.budget import Budget
    from anonymip.solvers.standard_form import StandardForm

#: Column fixed at 1 that carries the constant part of the objective.
_CONSTANT = "one"

_NUMBER = r"([-+0-9.eE]+)"
_INCUMBENT = re.compile(rf"^Cbc0012I Integer solution of {_NUMBER} found", re.MULTILINE)
_OPEN = re.compile(rf"^Cbc0010I After .* best possible {_NUMBER}", re.MULTILINE)
_RELAXED = re.compile(rf"^Continuous objective value is {_NUMBER} ", re.MULTILINE)
_LOWER = re.compile(rf"^Lower bound: +{_NUMBER}", re.MULTILINE)
_PARTIAL = re.compile(rf"^Cbc0005I .*\(best possible {_NUMBER}\)", re.MULTILINE)
_WITHIN = re.compile(rf"^Cbc0011I Exiting as integer gap of {_NUMBER} ", re.MULTILINE)


def write_model(form: StandardForm, path: Path) -> None:
    """Write a model as an LP file: columns x0, x1, ... and one for the constant.

    Numbers are written with all their digits, each term on a line of its own.
    """
    with open(path, "w", encoding="ascii", newline="\n", opener=private) as file:
        file.writelines(f"{line}\n" for line in _model_lines(form))


def _model_lines(form: StandardForm) -> Iterator[str]:
    yield "min"
    yield "cost:"
    for column in np.flatnonzero(form.cost).tolist():
        yield f"{form.cost[column]:+.17g} x{column}"
    yield f"{form.offset:+.17g} {_CONSTANT}"
    yield "s.t."
    yield from _row_lines(form)
    yield "bounds"
    for column, (lower, upper) in enumerate(zip(form.lower, form.upper, strict=True)):
        yield f"{lower:.17g} <= x{column} <= {upper:+.17g}"
    yield f"1 <= {_CONSTANT} <= 1"
    if form.integer.any():
        yield "general"
        yield from (f"x{column}" for column in np.flatnonzero(form.integer).tolist())
    yield "end"


def _row_lines(form: StandardForm) -> Iterator[str]:
    matrix = form.matrix
    terms = [
        f"{coefficient:+.17g} x{column}"
        for coefficient, column in zip(matrix.data.tolist(), matrix.indices.tolist(), strict=True)
    ]
    starts = matrix.indptr.tolist()
    sides = zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True)
    for row, (lower, upper) in enumerate(sides):
        relations = [("=", lower)] if lower == upper else [(">=", lower), ("<=", upper)]
        for number, (relation, side) in enumerate(relations):
            if np.isfinite(side):
                yield f"r{row}_{number}:"
                yield from terms[starts[row] : starts[row + 1]]
                yield f"{relation} {side:.17g}"
    if not starts[-1]:
        # CBC fails on a model without rows.
        yield from ("fixed:", f"+1 {_CONSTANT}", "= 1")


def write_start(form: StandardForm, start: Floats, path: Path) -> None:
    """Write the values of all integer variables, zeros too: CBC needs every one."""
    columns = np.flatnonzero(form.integer).tolist()
    lines = [f"{number} x{column} {start[column]:.17g}" for number, column in enumerate(columns)]
    with open(path, "w", encoding="ascii", opener=private) as file:
        file.write("\n".join(["Stopped on iterations - objective value 0", *lines, ""]))


def lower_bound(log: str, claimed: float | None) -> float | None:
    """Return the bound that CBC printed, lowered by what its printing may have rounded up.

    The summary has three decimals. The line of a partial search and the gap within which CBC
    stopped have eight digits, and are used where they agree with the summary.
    """
    printed = _LOWER.findall(log)
    if not printed:
        return _bound_on_the_way(log)
    if abs(float(printed[-1])) >= 1e30:
        return None
    coarse = float(printed[-1])
    fine = [float(value) for value in _PARTIAL.findall(log)[-1:]]
    if claimed is not None:
        fine += [claimed - float(gap) for gap in _WITHIN.findall(log)[-1:]]
    agreeing = [value for value in fine if abs(value - coarse) <= 1e-3 + 1e-7 * abs(coarse)]
    lowered = [value - 1e-7 * abs(value) - 1e-8 for value in agreeing]
    return max([coarse - 5.1e-4, *lowered])


def _bound_on_the_way(log: str) -> float | None:
    """Return the last bound that CBC printed before it was killed, lowered by its rounding."""
    for pattern, digits in ((_OPEN, 1e-6), (_RELAXED, 1e-5)):
        printed = [float(value) for value in pattern.findall(log)]
        if printed and abs(printed[-1]) < 1e30:
            return printed[-1] - digits * abs(printed[-1]) - digits
    return None


def read_values(form: StandardForm, path: Path, names: list[str]) -> Floats | None:
    """Return the values of the form's variables from CBC's binary solution file.

    It holds the numbers of rows and columns (int32), the objective, the activities and duals
    of the rows, then the values and reduced costs of the columns (float64). A column that CBC
    does not list is a variable without influence, and gets the value nearest to 0.
    """
    if not path.exists():
        return None
    content = path.read_bytes()
    rows, columns = np.frombuffer(content, dtype=np.int32, count=2).tolist()
    numbers = np.frombuffer(content, dtype=np.float64, offset=8)
    found = numbers[1 + 2 * rows : 1 + 2 * rows + columns]
    values: Floats = np.clip(0.0, form.lower, form.upper)
    for name, value in zip(names[rows:], found.tolist(), strict=True):
        if name != _CONSTANT:
            values[int(name[1:])] = value
    return values


def progress(log: str) -> tuple[float | None, float | None]:
    """Return the last incumbent and bound in the log, minimised; None where there is none.

    These are for display. The bound of an inner search may be among them.
    """
    incumbents, bounds = _INCUMBENT.findall(log), _OPEN.findall(log)
    return (float(incumbents[-1]) if incumbents else None, float(bounds[-1]) if bounds else None)


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
        self, form: StandardForm, start: Floats | None, options: SolverOptions, budget: Budget
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
            arguments = [program, *_arguments(options, left), *own]
            arguments += ["-mipstart", "start.txt"] if has_start else []
            arguments += ["-printingOptions", "all", "-solve", "-solution", "solution.txt"]
            arguments += ["-saveSolution", "solution.bin"]
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
    return carried if carried is not None and os.access(carried, os.X_OK) else shutil.which("cbc")


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


@dataclass(frozen=True)
class _Run:
    """How a CBC process ended.

    `reason`: why it was asked to stop; None if it ended by itself. `killed`: whether it did not
    follow and was killed. `late`: whether it ran up to its time limit. `code`: its exit code; above
    128 the signal that ended it is added to 128.
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
    reason: Stopped | None = None
    patience = np.inf
    with open(log, "wb", opener=private) as output:
        process = subprocess.Popen(
            _guarded(arguments, folder),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        began = reported = time.monotonic()
        try:
            while not _ended(process):
                now = time.monotonic()
                if now - reported >= _HEARTBEAT:
                    reported = now
                    incumbent, bound = progress(log.read_text(errors="replace"))
                    budget.report(
                        "CBC: branch and bound" if form.integer.any() else "CBC: linear program",
                        incumbent=None if incumbent is None else form.in_model_sense(incumbent),
                        bound=None if bound is None else form.in_model_sense(bound),
                    )
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


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL)
    except subprocess.TimeoutExpired:
        return False
    return True


def _result(
    form: StandardForm, folder: Path, log: Path, run: _Run, began: float, version: str | None
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

    Raises SolverError if the model is unbounded, or the status is one that no solve should end
    with.
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
        raise SolverError(f"CBC ended {how} and printed last: {last[0]}", remedy=keep_log())
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
