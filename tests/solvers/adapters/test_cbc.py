"""Tests of what is particular to the CBC adapter: processes that do not behave."""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyomo.environ as pyo
import pytest

from anonymip.errors import SolverError, SolverUnavailable
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions, compile_standard_form, get_solver, solve_model
from anonymip.solvers.adapters import cbc as adapter
from anonymip.solvers.adapters.cbc import (
    CbcSolver,
    _Run,
    lower_bound,
    progress,
    read_values,
    write_model,
    write_start,
)
from anonymip.status import Stopped
from tests.runtime.tasks import is_running, wait_until


def one_variable() -> pyo.ConcreteModel:
    """Return the smallest model that a solver is asked for."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(0, 3))
    model.row = pyo.Constraint(expr=model.x >= 0.5)
    model.cost = pyo.Objective(expr=model.x)
    return model


def impostor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a shell script in the place of CBC, which tells a version when asked nothing."""
    program = folder / "impostor"
    program.write_text(f'#!/bin/sh\n[ "$1" = -quit ] && echo "Version: 0" && exit\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setattr(adapter, "_program", lambda: str(program))


@pytest.mark.thorough
def test_process_that_ignores_its_limit_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that neither ends nor obeys is killed; time is up, and no file is left."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    impostor(tmp_path, monkeypatch, "trap '' INT\necho $$ > process.txt\nexec sleep 3600")
    result = solve_model(one_variable(), "cbc", SolverOptions(time_limit=0.2))
    assert (result.stopped, result.values, result.bound) == (Stopped.TIME, None, None)
    assert list(scratch.iterdir()) == []


@pytest.mark.thorough
def test_cbc_does_not_outlive_its_parent(tmp_path: Path) -> None:
    """Whoever kills the parent ends CBC too, and the model's file goes with it."""
    script = tmp_path / "orphan.py"
    script.write_text(
        "import sys, tempfile\n"
        "from pathlib import Path\n"
        "sys.path[:0] = [sys.argv[1]]\n"
        "tempfile.tempdir = sys.argv[2]\n"
        "from anonymip.solvers import solve_model\n"
        "from anonymip.solvers.adapters import cbc\n"
        "from tests.solvers.adapters.test_cbc import impostor, one_variable\n"
        "cbc._program = lambda: sys.argv[3]\n"
        "solve_model(one_variable(), 'cbc')\n",
        encoding="utf-8",
    )
    program, scratch, told = tmp_path / "impostor", tmp_path / "scratch", tmp_path / "process"
    scratch.mkdir()
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -quit ] && echo "Version: 0" && exit\necho $$ > {told}.new\n'
        f"mv {told}.new {told}\nexec sleep 600\n"
    )
    program.chmod(0o755)
    root = str(Path(__file__).parents[3])
    parent = subprocess.Popen([sys.executable, str(script), root, str(scratch), str(program)])
    try:
        wait_until(told.exists)
        process = int(told.read_text())
        assert is_running(process)
        assert list(scratch.iterdir()) != []
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not is_running(process))
    wait_until(lambda: list(scratch.iterdir()) == [])


def test_killed_cbc_is_reported_with_its_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error names the signal that ended it."""
    impostor(tmp_path, monkeypatch, "kill -9 $$")
    with pytest.raises(SolverError, match="by SIGKILL"):
        solve_model(one_variable(), "cbc")


@pytest.mark.thorough
def test_late_process_is_asked_before_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard_knapsack: Callable[..., pyo.ConcreteModel]
) -> None:
    """A process that overruns its limit and obeys the signal still delivers its point."""
    program = adapter._program()
    # CBC itself, told nothing of the limit, on a model that it does not finish.
    impostor(tmp_path, monkeypatch, f'shift 5\nexec "{program}" model.lp "$@"')
    # As long as it takes to write: a busy machine decides nothing here.
    monkeypatch.setitem(adapter._PATIENCE, Stopped.TIME, 300.0)
    model = hard_knapsack()
    result = solve_model(model, "cbc", SolverOptions(time_limit=0.5))
    assert result.stopped is Stopped.TIME
    assert result.values is not None
    assert result.bound is not None


def test_process_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends without a solution file raises with the last line it printed."""
    impostor(tmp_path, monkeypatch, "echo out of memory\nexit 1")
    with pytest.raises(SolverError, match="out of memory"):
        solve_model(one_variable(), "cbc")


def test_interrupt_before_cbc_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that the signal ends at once leaves no point, and that is no error."""
    impostor(tmp_path, monkeypatch, "exec sleep 3600")
    budget = Budget(progress=lambda progress: budget.interrupt())
    result = solve_model(one_variable(), "cbc", budget=budget)
    assert (result.stopped, result.values) == (Stopped.INTERRUPT, None)


def test_missing_program_says_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a CBC program the error tells how to get one."""
    monkeypatch.setattr(adapter, "_program", lambda: None)
    assert not CbcSolver().availability().installed
    with pytest.raises(SolverUnavailable, match="pip install"):
        get_solver("cbc")


def test_program_that_does_not_run_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program for another machine counts as absent."""
    program = tmp_path / "cbc"
    program.write_bytes(b"\x7fELF of another machine")
    program.chmod(0o755)
    monkeypatch.setattr(adapter, "_program", lambda: str(program))
    assert not CbcSolver().availability().installed


@pytest.mark.parametrize(
    ("status", "run", "stopped"),
    [
        ("Optimal", _Run(None, False, False, 0), Stopped.OPTIMAL),
        ("Optimal (within gap tolerance)", _Run(None, False, False, 0), Stopped.GAP),
        ("Integer infeasible", _Run(None, False, False, 0), Stopped.INFEASIBLE),
        ("Stopped on time", _Run(None, False, True, 0), Stopped.TIME),
        ("Stopped on iterations", _Run(Stopped.INTERRUPT, False, False, 0), Stopped.INTERRUPT),
        ("Stopped on iterations", _Run(Stopped.TIME, False, True, 0), Stopped.TIME),
        ("Stopped on iterations", _Run(None, False, True, 0), Stopped.TIME),
        ("Stopped on iterations", _Run(None, False, False, 0), Stopped.NODES),
        ("Stopped on nodes", _Run(None, False, False, 0), Stopped.NODES),
        ("Stopped on difficulties", _Run(None, False, False, 0), Stopped.ERROR),
    ],
)
def test_status_lines(status: str, run: _Run, stopped: Stopped) -> None:
    """Each first line of a solution file has its meaning."""
    assert adapter._stopped(status, run, "") is stopped


@pytest.mark.parametrize("status", ["", "Stopped on a whim", "Perfect", "Unbounded"])
def test_unmapped_status_lines_are_errors(status: str) -> None:
    """A line that the map does not know raises."""
    with pytest.raises(SolverError):
        adapter._stopped(status, _Run(None, False, False, 0), "last words")


def test_node_limit_of_the_caller_is_reported(
    hard_knapsack: Callable[..., pyo.ConcreteModel],
) -> None:
    """A node limit in CBC's own words ends in the status for nodes."""
    model = hard_knapsack(items=40, capacities=5)
    result = solve_model(model, "cbc", SolverOptions(solver_options={"maxNodes": 3}))
    assert result.stopped is Stopped.NODES


def mixed() -> pyo.ConcreteModel:
    """Return a maximisation with an integer, a free variable, an equality and a range."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(domain=pyo.Integers, bounds=(-2, None))
    model.y = pyo.Var()
    model.equal = pyo.Constraint(expr=model.x + 0.1 * model.y == 10)
    model.range = pyo.Constraint(expr=(-1, model.y, 2))
    model.value = pyo.Objective(expr=model.x - model.y + 3, sense=pyo.maximize)
    return model


def test_model_is_written_as_a_minimisation(tmp_path: Path) -> None:
    """The file holds turned signs, all digits, free bounds and the constant as a column."""
    path = tmp_path / "model.lp"
    write_model(compile_standard_form(mixed()), path)
    assert " ".join(path.read_text().split()) == (
        "min cost: -1 x0 +1 x1 -3 one s.t. "
        "r0_0: +1 x0 +0.10000000000000001 x1 = 10 r1_1: +1 x1 <= 2 r2_0: +1 x1 >= -1 "
        "bounds -2 <= x0 <= +inf -inf <= x1 <= +inf 1 <= one <= 1 general x0 end"
    )


def test_start_lists_all_integers(tmp_path: Path) -> None:
    """Zeros are written too, continuous variables are not."""
    path = tmp_path / "start.txt"
    write_start(compile_standard_form(mixed()), np.array([0.0, np.nan]), path)
    assert path.read_text().splitlines()[1:] == ["0 x0 0"]


def test_values_come_in_the_order_of_the_form(tmp_path: Path) -> None:
    """Columns are matched by name; one that CBC left out gets the value nearest to 0."""
    form = compile_standard_form(mixed())
    path = tmp_path / "solution.bin"
    numbers = [5.0, 10.0, 2.0, 0.5, 0.0, 1.0, 7.25, 0.0, 0.0]
    path.write_bytes(struct.pack("=ii9d", 2, 2, *numbers))
    values = read_values(form, path, ["r0_0", "r1_1", "one", "x1"])
    assert values is not None
    np.testing.assert_array_equal(values, [0.0, 7.25])
    assert read_values(form, tmp_path / "absent", []) is None


@pytest.mark.parametrize("optimum", [20.9137, 0.0123456, -43402.6449, 1234567.891234, 0.0])
def test_bound_is_lowered_by_what_printing_rounds(optimum: float) -> None:
    """However the digits fall, the bound read back is not above the one that CBC had."""
    summary = f"Lower bound:                    {optimum:.3f}\n"
    partial = f"Cbc0005I Partial search - best objective 9 (best possible {optimum:.8g}), took 1\n"
    coarse = lower_bound(summary, None)
    fine = lower_bound(partial + summary, 9.0)
    assert coarse is not None
    assert fine is not None
    assert optimum - 1.1e-3 <= coarse <= optimum
    assert optimum - 1.1e-3 <= fine <= optimum
    assert optimum - fine <= 2e-7 * abs(optimum) + 2e-8


def test_bound_within_a_gap_is_the_objective_less_the_gap() -> None:
    """Stopped within a gap, the printed gap has more digits than the summary."""
    log = "Cbc0011I Exiting as integer gap of 0.0011111111 less than 1e-09 or 2%\n"
    found = lower_bound(log + "Lower bound:    0.149\n", 0.15)
    assert found is not None
    assert found == pytest.approx(0.1488888889, abs=1e-7)
    assert found <= 0.1488888889


def test_line_of_an_inner_search_is_not_trusted() -> None:
    """A partial search that disagrees with the summary is not the whole search."""
    log = "Cbc0005I Partial search - best objective 9 (best possible 8.5), took 1\n"
    assert lower_bound(log + "Lower bound:   4.000\n", 9.0) == pytest.approx(4.0, abs=1e-3)


def test_no_bound() -> None:
    """Without a summary, or with an infinite one, the bound is unknown."""
    assert lower_bound("Result - Stopped\n", 3.0) is None
    assert lower_bound("Lower bound:   -1e+50\n", None) is None


def test_progress_reads_the_last_lines() -> None:
    """The newest incumbent and bound count, and none is None."""
    log = (
        "Cbc0012I Integer solution of 42 found by rounding after 0 iterations\n"
        "Cbc0012I Integer solution of 41.5 found by DiveCoefficient after 3 iterations\n"
        "Cbc0010I After 100 nodes, 7 on tree, 41.5 best solution, best possible 40.25 (1 seconds)\n"
    )
    assert progress(log) == (41.5, 40.25)
    assert progress("") == (None, None)
