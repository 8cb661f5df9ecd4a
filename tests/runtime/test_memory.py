"""Tests of runs that memory is short for: refused in advance, or ended with what they have."""

from __future__ import annotations

import errno
import json
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymip import (
    Budget,
    EquivalenceClasses,
    Freeform,
    PatternGuided,
    Problem,
    Solution,
    Stopped,
    census,
    register_method,
    solve,
)
from anonymip.cli.app import run
from anonymip.errors import MemoryShort
from anonymip.exact import model_run
from anonymip.exact.classes.equivalence_mip import equivalence_mip
from anonymip.methods import memory_needs, registry
from anonymip.methods.memory_needs import COSTS, bytes_needed
from anonymip.runtime import memory
from anonymip.runtime.memory import Memory, in_words, memory_at_hand, ran_out
from anonymip.runtime.side_by_side import run_side_by_side
from anonymip.runtime.worker_pool import WorkerProcess
from tests import profiles
from tests.runtime import tasks as work

GB = 2**30
MEMINFO = "MemTotal:       16000000 kB\nMemFree:    1000 kB\nMemAvailable:    5000000 kB\n"


def described(root: Path, files: dict[str, str]) -> Path:
    """Write the files that a system describes itself in."""
    for name, content in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="ascii")
    return root


def test_memory_of_a_machine_alone(tmp_path: Path) -> None:
    """What can be had without swapping, whatever is free."""
    found = memory_at_hand(described(tmp_path, {"proc/meminfo": MEMINFO}))
    assert found == Memory(5_000_000 * 1024, "free memory of this machine")


def test_memory_that_nobody_tells_of(tmp_path: Path) -> None:
    """On other systems nothing is known, and nothing refused."""
    assert memory_at_hand(tmp_path) is None


@pytest.mark.parametrize("group", ["job/task", "job", ""])
def test_the_least_of_the_groups_around_a_process(tmp_path: Path, group: str) -> None:
    """A limit of the group or of one around it; what was read from files is given up."""
    top = Path("sys/fs/cgroup")
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/job/task\n",
        str(top / group / "memory.max"): "3000000\n",
        str(top / group / "memory.current"): "2500000\n",
        str(top / group / "memory.stat"): "anon 7\ninactive_file 400000\n",
        str(top / "other/memory.max"): "1\n",
        str(top / "other/memory.current"): "1\n",
    }
    found = memory_at_hand(described(tmp_path, files))
    assert found == Memory(900_000, "limit of the control group or container")


def test_groups_without_limit_and_of_the_first_version(tmp_path: Path) -> None:
    """Neither "max" nor numbers without end are limits; version 1 names its files otherwise."""
    v1 = "sys/fs/cgroup/memory"
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "4:cpu,memory:/a\n3:pids:/a\n0::/a\n",
        "sys/fs/cgroup/a/memory.max": "max\n",
        "sys/fs/cgroup/a/memory.current": "5\n",
        f"{v1}/memory.limit_in_bytes": "9223372036854771712\n",
        f"{v1}/memory.usage_in_bytes": "77\n",
        f"{v1}/a/memory.limit_in_bytes": "2000\n",
        f"{v1}/a/memory.usage_in_bytes": "2500\n",
        f"{v1}/a/memory.stat": "total_inactive_file 100\n",
    }
    found = memory_at_hand(described(tmp_path, files))
    # More than it may have is nothing, not less.
    assert found == Memory(0, "limit of the control group or container")


def test_limits_of_the_process_count_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address space that is left, less what must not be refused to the compiler."""
    limits = {resource.RLIMIT_AS: 4 * GB, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], limits[kind]))
    files = {"proc/self/status": f"Name:\tx\nVmSize:\t{3 * GB // 1024} kB\nVmData:\t5 kB\n"}
    found = memory_at_hand(described(tmp_path, files))
    assert found == Memory(GB - memory.SPARE, "limit of the address space, ulimit -v")


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), True),
        (np._core._exceptions._ArrayMemoryError((9,), np.dtype(float)), True),
        (MemoryShort("short"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.ENOMEM, "x"), True),
        (ImportError("lib.so: failed to map segment from shared object"), True),
        (RuntimeError("another"), False),
        (OSError(errno.ENOSPC, "x"), False),
        (ValueError("can't start new thread"), False),
        (KeyError(), False),
    ],
)
def test_what_says_that_memory_has_run_out(error: Exception, short: bool) -> None:
    """Also as the cause of another error, as libraries wrap it."""
    assert ran_out(error) is short
    wrapped = ValueError("wrapped")
    wrapped.__cause__ = error
    assert ran_out(wrapped) is short


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget methods that a test registers."""
    monkeypatch.setattr(registry, "_methods", dict(registry._methods))
    return iter(())


def greedy_method(name: str, *, first: bool) -> None:
    """Register a method that runs out of memory, after a release of its own or before any."""

    @register_method(name)
    def method(problem: Problem, *, budget: Budget, seed: int = 0) -> Any:
        if first:
            release = solve(problem, "mondrian", bound=False)
            Solution.of(problem, release.assignment, method=name)
        raise MemoryError


@pytest.mark.usefixtures("methods")
def test_a_run_without_memory_returns_its_best_release() -> None:
    """It is checked and has a bound; the status is that of a limit, and the trace says which."""
    greedy_method("hoarding", first=True)
    problem = Problem(census(60, 3, seed=1), 3)
    solution = solve(problem, "hoarding")
    assert solution.objective == solve(problem, "mondrian", bound=False).objective
    assert solution.status.stopped is Stopped.NODES
    assert solution.bound is not None
    assert solution.trace[0] == "hoarding was stopped: memory ended"


@pytest.mark.thorough
@pytest.mark.usefixtures("methods")
def test_a_run_without_memory_and_release_ends_in_a_frugal_one() -> None:
    """Where there is none for the recoding it is no solution, and no internal error."""
    greedy_method("hoarding", first=False)
    solution = solve(Problem(census(60, 3, seed=1), 3), "hoarding")
    assert solution.method == "initial"
    assert "this method needs little" in solution.trace[0]

    @register_method("hoarding-patterns", recoding="pattern")
    def method(problem: Problem, *, budget: Budget, seed: int = 0) -> Any:
        raise RuntimeError("can't start new thread")

    with pytest.raises(MemoryShort, match="memory ended while hoarding-patterns solved 60 records"):
        solve(Problem(census(60, 3, seed=1), 3, PatternGuided()), "hoarding-patterns")


def test_a_bound_without_memory_costs_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without a time limit the release comes, and a remark that there is no bound."""

    def refused(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("anonymip.solving.best_bound_in_time", refused)
    monkeypatch.setattr("anonymip.solving.Ladder.climb", refused)
    for limit in (None, 60):
        solution = solve(Problem(census(60, 3, seed=1), 3), "mondrian", time_limit=limit)
        assert solution.bound is None
        assert "memory ended while a bound was computed" in solution.trace


def test_what_is_needed_grows_with_the_table() -> None:
    """Cells for classes; members of sets too for covers; pairs of a part; what is published."""
    data = census(40, 3, seed=1)
    classes, covers = (Problem(data, 4, r) for r in (EquivalenceClasses(), Freeform()))
    cells, matches = COSTS.cell * 40 * 3, COSTS.match * 40 * 4
    assert bytes_needed(classes) == COSTS.started + cells
    assert bytes_needed(covers, "ring") == COSTS.started + cells + matches
    whole, cut = (bytes_needed(covers, "hungarian", {"part": part}) for part in (0, 10))
    assert whole - bytes_needed(covers) == COSTS.pair * 40**2
    assert cut - bytes_needed(covers) == COSTS.pair * 10**2
    published = bytes_needed(classes, publishes=True) - bytes_needed(classes)
    assert published == COSTS.published * 40 * 3


def test_a_run_that_does_not_fit_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message says what is needed, what there is, and which methods or records fit."""
    covers = Problem(census(2000, 3, seed=1), 4, Freeform())
    there = Memory(int(bytes_needed(covers)) + 1, "a limit of the test")
    monkeypatch.setattr(memory_needs, "memory_at_hand", lambda: there)
    with pytest.raises(MemoryShort) as caught:
        solve(covers, "hungarian")
    assert caught.value.exit_code == 3
    needed = in_words(bytes_needed(covers, "hungarian"))
    assert caught.value.message == (
        f"hungarian needs about {needed} of memory for 2,000 records of 3 columns, and there are "
        f"{in_words(there.bytes)} (a limit of the test)"
    )
    assert "ring" in str(caught.value.remedy)
    assert "hungarian" not in str(caught.value.remedy)
    assert solve(covers, "ring").method == "ring"
    half = Memory(int((bytes_needed(covers) + COSTS.started) / 2), "a limit of the test")
    monkeypatch.setattr(memory_needs, "memory_at_hand", lambda: half)
    with pytest.raises(MemoryShort, match=r"About (999|1,000) records fit"):
        solve(covers)


def test_a_model_that_does_not_fit_leaves_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its bound and the status of a limit; without a start another method makes one."""
    monkeypatch.setattr(model_run, "memory_at_hand", lambda: Memory(1000, "a limit of the test"))
    problem = Problem(census(12, 2, seed=1), 3)
    solution = solve(problem, "equivalence-mip", options={"formulation": "indicator"})
    assert solution.bound is not None
    assert any("of memory, and there are 0 MB" in remark for remark in solution.trace)
    assert solution.is_optimal or solution.status.stopped is Stopped.NODES
    settings = {"formulation": "indicator", "warm_start": "none"}
    with pytest.raises(MemoryShort, match="the model needs about"):
        equivalence_mip(problem, **settings)
    frugal = solve(problem, "equivalence-mip", options=settings)
    assert frugal.method == "initial"
    assert "the model needs about" in frugal.trace[0]


def refuse_threads(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Have the system refuse threads after so many."""
    begin = threading.Thread.start
    started = 0

    def start(thread: threading.Thread) -> None:
        nonlocal started
        started += 1
        if started > after:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)


@pytest.mark.parametrize("in_processes", [False, True])
def test_without_threads_tasks_run_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch, in_processes: bool
) -> None:
    """In this process, with the same results, and people hear how many have ended."""
    refuse_threads(monkeypatch, 0)
    heard: list[int | None] = []
    found = run_side_by_side(
        [partial(work.squared, number=number) for number in range(4)],
        Budget(progress=lambda message: heard.append(message.done)),
        jobs=2,
        in_processes=in_processes,
        phase="testing",
    )
    assert found == [0, 1, 4, 9]
    assert heard == [1, 2, 3, 4]


def test_a_worker_that_nobody_can_listen_to_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process does not stay behind, and a task that was meant for it is done here."""
    ended: list[WorkerProcess] = []
    end = WorkerProcess.end
    monkeypatch.setattr(WorkerProcess, "end", lambda worker: (ended.append(worker), end(worker)))
    with monkeypatch.context() as refusing:
        refuse_threads(refusing, 1)
        with pytest.raises(OSError, match="can't start new thread"):
            WorkerProcess()
    assert len(ended) == 1
    assert not ended[0].is_alive()


LIMITED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
sys.argv = ["anonymip", *json.loads(sys.argv[2])]
from anonymip.cli import main
main()
"""


def limited(address_space: float, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command with so much address space."""
    arguments = json.dumps([str(one) for one in command])
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(int(address_space)), arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("megabytes", [60, 150, 300, 350, 500])
def test_too_little_to_load_the_libraries_is_said(megabytes: int) -> None:
    """No traceback, no internal error and no process that hangs, whichever library asks for it."""
    done = limited(megabytes * 1e6, "solve", "health-records", "-k", 3)
    assert done.returncode == 3
    assert "memory" in done.stderr.partition("\n")[0]
    assert done.stderr.startswith("error: ")
    assert "ulimit -v" in done.stderr


@pytest.mark.thorough
def test_help_needs_little_memory() -> None:
    """Who looks for the option that needs less is not refused for it."""
    assert limited(200e6, "solve", "--help").returncode == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gigabytes", "records"), [(1, 20_000), pytest.param(4, 40_000, marks=pytest.mark.thorough)]
)
def test_a_table_that_does_not_fit_is_refused(gigabytes: int, records: int) -> None:
    """All pairs of so many records take more: the message names methods that need less."""
    done = limited(
        gigabytes * 1e9, *("solve", f"census:{records},2,1", "-k", 3, "--method", "hungarian")
    )
    assert done.returncode == 3, done.stderr
    assert f"for {records:,} records of 2 columns, and there are" in done.stderr
    assert "limit of the address space, ulimit -v" in done.stderr
    assert "ring" in done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("recoding", ["classes", *profiles.thorough("freeform")])
def test_a_gigabyte_is_enough_for_a_release(tmp_path: Path, recoding: str) -> None:
    """Libraries that would reserve a gigabyte for themselves are kept from it."""
    output = tmp_path / "release.csv"
    done = limited(
        1e9,
        *("anonymize", "census:300,4,1", "-k", 3, "--effort", "quick", "--recoding", recoding),
        *("-o", output),
    )
    assert done.returncode == 0, done.stderr
    assert "verified and written" in done.stdout


HOARDING = """
import resource
import numpy as np
import anonymip
from anonymip import Problem, Solution, register_method, solve

@register_method("hoarding")
def hoarding(problem, *, budget=None, seed=0):
    release = solve(problem, "mondrian", bound=False)
    Solution.of(problem, release.assignment, method="hoarding")
    held = []
    while True:
        held.append(np.ones(2**20))

problem = Problem(anonymip.census(60, 3, seed=1), 3)
solve(problem, "mondrian")
resource.setrlimit(resource.RLIMIT_AS, (int(GIGABYTES * 1e9),) * 2)
solution = solve(problem, "hoarding")
print(solution.status, solution.bound is not None, solution.assignment.sizes.min() >= 3)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("gigabytes", [2, 4])
def test_memory_that_really_ends_leaves_the_best_release(gigabytes: int) -> None:
    """What the method had taken is given back first, so that the rest of the work has room."""
    script = HOARDING.replace("GIGABYTES", str(gigabytes))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["node-limit", "True", "True"], done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("gigabytes", [1, 2, 4])
@pytest.mark.parametrize(
    "command",
    [
        ("census:200000,8,1", "-k", 5, "--recoding", "freeform", "--time-limit", 60),
        ("census:1000000,8,1", "-k", 5, "--method", "mondrian", "--time-limit", 60),
    ],
)
def test_large_tables_end_well_or_are_refused(gigabytes: int, command: tuple[object, ...]) -> None:
    """With a release or with what is missing, never with a fault of the program."""
    done = limited(gigabytes * 1e9, "solve", *command)
    assert done.returncode in (0, 3), done.stderr
    assert done.returncode == 0 or "memory" in done.stderr


def test_the_command_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Memory that ends outside of solving, where there is nothing to keep, is no internal error."""

    def refused(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("anonymip.cli.arguments.Question.problem", refused)
    assert run(["solve", "health-records", "-k", "3"]) == 3
    assert capsys.readouterr().err.startswith("error: memory ended while the command worked")
