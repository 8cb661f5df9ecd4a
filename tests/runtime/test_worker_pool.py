"""Tests of worker processes: reused, separate, silent, killed, and gone with their parent."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from anonymip import errors
from anonymip.errors import InvalidAssignment, SolverError
from anonymip.runtime import worker_pool
from anonymip.runtime.budget import Budget, Progress, compilation_seconds
from anonymip.runtime.worker_pool import Killed, run_isolated
from anonymip.solvers import prepare_solver
from anonymip.status import Stopped
from tests.runtime import tasks
from tests.runtime.tasks import is_running, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def fresh_pool() -> Iterator[None]:
    """Begin and end each test without idle workers."""
    worker_pool._pool.end()
    yield
    worker_pool._pool.end()


def test_worker_is_another_process_and_stays() -> None:
    """Tasks one after the other run in one process, which is not this one."""
    first, second = (run_isolated(tasks.process_number, None, Budget()) for _ in range(2))
    assert first == second != os.getpid()


def test_tasks_at_the_same_time_have_a_worker_each() -> None:
    """Two threads get two processes."""
    found: list[object] = []

    def work() -> None:
        found.append(run_isolated(tasks.number_after_a_while, None, Budget()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 2
    assert len(worker_pool._pool._idle) == 2


def test_worker_is_light() -> None:
    """Neither Pyomo nor numba, pandas or a solver is loaded before a task asks for it."""
    names = run_isolated(tasks.loaded, None, Budget())
    assert isinstance(names, list)
    heavy = {"pyomo", "numba", "pandas", "scipy", "highspy", "gurobipy", "cplex", "pyscipopt"}
    assert not {name.partition(".")[0] for name in names} & heavy


def test_worker_finds_the_modules_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search path of a task is its parent's at this moment, also in a worker that waited."""
    assert run_isolated(tasks.search_path, None, Budget()) == sys.path
    monkeypatch.setattr(sys, "path", [*sys.path, "elsewhere"])
    assert run_isolated(tasks.search_path, None, Budget()) == sys.path


def test_environment_and_folder_are_those_of_the_parent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A licence or a folder of kernels that is named later reaches a worker that waited."""
    before = run_isolated(tasks.process_number, None, Budget())
    monkeypatch.setenv("ANONYMIP_TESTED", "later")
    monkeypatch.chdir(tmp_path)
    assert run_isolated(tasks.surroundings, None, Budget()) == ("later", str(tmp_path))
    monkeypatch.undo()
    assert run_isolated(tasks.surroundings, None, Budget()) == (None, os.getcwd())
    assert run_isolated(tasks.process_number, None, Budget()) == before


def test_few_workers_wait() -> None:
    """What idle workers have loaded stays in memory: of three that ran two are kept."""
    taken = [worker_pool._pool.take(worker_pool.solver_failure) for _ in range(3)]
    for worker in taken:
        worker_pool._pool.give_back(worker)
    assert worker_pool._pool._idle == taken[:2]
    assert [worker.is_alive() for worker in taken] == [True, True, False]


def test_process_that_cannot_be_started_is_a_failure_of_the_solver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever has a start can then keep it."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(SolverError, match=r"cannot be started .Cannot allocate memory"):
        run_isolated(tasks.process_number, None, Budget())


def test_output_of_a_task_does_not_disturb_the_pipe() -> None:
    """What is written to standard output goes nowhere, and standard input is empty."""
    for _ in range(2):
        assert run_isolated(tasks.shout, None, Budget()) == ""


def test_progress_and_interrupt_cross_the_pipe() -> None:
    """The parent's listener hears the task, and the task hears the parent's interrupt."""
    told: list[Progress] = []

    def listen(message: Progress) -> None:
        told.append(message)
        budget.interrupt()

    budget = Budget(progress=listen)
    assert run_isolated(tasks.wait_for_interrupt, None, budget) == "Stopped.INTERRUPT"
    assert told == [Progress("waiting", 1, 2, 4.0, 3.0, None)]
    # The next task of the same worker begins anew.
    assert isinstance(run_isolated(tasks.process_number, None, Budget()), int)


def test_limit_reaches_the_task() -> None:
    """The task's budget ends when the limit does."""
    assert run_isolated(tasks.wait_for_interrupt, 1.0, Budget()) == "Stopped.TIME"
    left = run_isolated(tasks.remaining, 100.0, Budget())
    assert isinstance(left, float)
    assert 0 < left <= 100
    assert run_isolated(tasks.remaining, None, Budget()) is None


def test_compilation_in_a_worker_counts_as_here() -> None:
    """A worker's seconds of compilation are on its limit, and on the clock of this process."""
    before = compilation_seconds()
    outcome = run_isolated(tasks.compile_for_a_while, 30.0, Budget())
    assert not isinstance(outcome, Killed)
    left, number = outcome
    assert number != os.getpid()
    assert left is not None
    assert left <= 29.5
    # The clocks of two processes are read a moment apart.
    assert compilation_seconds() - before >= 0.4


def test_a_worker_that_stops_compiling_is_kept() -> None:
    """It ends in time by itself, says why, and does the next task."""
    number = run_isolated(tasks.process_number, None, Budget())
    assert run_isolated(tasks.compile_to_the_end_of_time, 0.3, Budget()) == Killed(
        Stopped.TIME, None
    )
    assert run_isolated(tasks.process_number, None, Budget()) == number


def test_temporary_files_are_removed_by_the_parent() -> None:
    """What a task leaves behind is gone with its folder."""
    path = run_isolated(tasks.litter, None, Budget())
    assert isinstance(path, str)
    assert not Path(path).exists()
    assert not Path(path).parent.exists()


def test_answer_that_cannot_be_sent_is_an_error() -> None:
    """It says so, and the worker lives on."""
    before = run_isolated(tasks.process_number, None, Budget())
    with pytest.raises(SolverError, match="TypeError"):
        run_isolated(tasks.unsendable, None, Budget())
    assert run_isolated(tasks.process_number, None, Budget()) == before


def test_exception_that_cannot_be_read_is_told_by_its_text() -> None:
    """Nobody waits for ever, and the worker lives on."""
    before = run_isolated(tasks.process_number, None, Budget())
    with pytest.raises(SolverError, match="column age fails in row 3"):
        run_isolated(tasks.raise_own_error, 5.0, Budget())
    assert run_isolated(tasks.process_number, None, Budget()) == before


def test_answer_that_cannot_be_read_is_an_error() -> None:
    """Nobody waits for ever, and the worker is replaced."""
    before = run_isolated(tasks.process_number, None, Budget())
    with pytest.raises(SolverError, match=r"cannot be read here .ValueError"):
        run_isolated(tasks.return_unreadable, None, Budget())
    assert run_isolated(tasks.process_number, None, Budget()) != before


def test_task_that_the_worker_cannot_read_is_an_error() -> None:
    """A pickle that names an unknown module is told as such."""
    content = pickle.dumps(tasks.process_number).replace(b"tests.runtime", b"tests.runtimz")
    with pytest.raises(SolverError, match="ModuleNotFoundError"):
        run_isolated(content, None, Budget())


def test_exception_of_a_listener_kills_the_worker() -> None:
    """What a listener raises reaches the caller, and nothing goes on computing."""

    def listen(message: Progress) -> None:
        raise KeyboardInterrupt

    before = run_isolated(tasks.process_number, None, Budget())
    with pytest.raises(KeyboardInterrupt):
        run_isolated(tasks.wait_for_interrupt, None, Budget(progress=listen))
    assert worker_pool._pool._idle == []
    assert isinstance(before, int)
    assert not is_running(before)


def test_idle_worker_that_died_is_replaced() -> None:
    """A worker that somebody killed between two tasks is not used again."""
    before = run_isolated(tasks.process_number, None, Budget())
    assert isinstance(before, int)
    (worker,) = worker_pool._pool._idle
    worker._process.kill()
    worker._process.wait()
    after = run_isolated(tasks.process_number, None, Budget())
    assert after != before


def test_prepared_worker_is_the_one_that_is_used() -> None:
    """Preparing twice starts one process, and the first task takes it."""
    worker_pool.prepare(tasks.process_number)
    worker_pool.prepare(tasks.process_number)
    (worker,) = worker_pool._pool._idle
    assert run_isolated(tasks.process_number, None, Budget()) == worker._process.pid


@pytest.mark.parametrize("loading", [tasks.failing, tasks.dying, lambda budget: None])
def test_what_goes_wrong_while_loading_hinders_no_task(
    loading: Callable[[Budget], object],
) -> None:
    """The task is done by a worker that failed to load, or by another if it died or was none."""
    worker_pool.prepare(loading)
    if loading is tasks.dying:
        (worker,) = worker_pool._pool._idle
        assert worker._process.wait() == 3
    assert run_isolated(tasks.process_number, None, Budget()) != os.getpid()


def test_prepared_worker_has_loaded_the_solver_that_is_there() -> None:
    """Solvers that are unknown or not installed start none and are no error yet."""
    prepare_solver("no-such-solver")
    assert not worker_pool._pool._idle
    prepare_solver("highs")
    assert "highspy" in run_isolated(tasks.loaded, None, Budget())


SCRIPT = """
import os, sys
from anonymip.runtime.budget import Budget
from anonymip.runtime.worker_pool import run_isolated
from tests.runtime import tasks
print(run_isolated(tasks.process_number, None, Budget()), flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_worker_ends_with_its_parent(end: str, tmp_path: Path) -> None:
    """However a script without a main guard ends, its worker does not outlive it."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(end=end))
    # What lies beside the script must not shadow the worker's modules.
    (tmp_path / "queue.py").write_text("raise ImportError('wrong queue')")
    done = subprocess.run(
        [sys.executable, "-P", str(script)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip().isdigit(), done.stderr
    assert done.stderr == ""
    number = int(done.stdout)
    wait_until(lambda: not is_running(number))


def test_errors_survive_the_way() -> None:
    """Each exception of the toolkit is the same after pickling, fields and text."""
    plain = [
        value
        for value in vars(errors).values()
        if isinstance(value, type)
        and issubclass(value, errors.AnonymipError)
        and value is not InvalidAssignment
    ]
    made: list[errors.AnonymipError] = [
        kind("bad column", remedy="Name another", value=3) for kind in plain
    ]
    for error in [*made, InvalidAssignment(4, "is alone")]:
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert vars(back) == vars(error)
