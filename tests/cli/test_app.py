"""Tests of the application: help, exit codes, and what becomes of errors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anonymip import __version__
from anonymip.errors import AnonymipError, NoSolution

COMMON = (
    *("--recoding", "--objective", "--time-limit", "--gap", "--solver", "--threads", "--seed"),
    *("--schema", "-q", "--sensitive", "--keep", "--drop", "--missing", "--json"),
)
FLAGS = {
    "demo": ("--out",),
    "anonymize": (*COMMON, "-o", "--method", "--option", "--report", "--layout", "--keep-order"),
    "solve": (*COMMON, "-k", "--method", "--option", "--warm-start", "--show-values"),
    "compare": (
        *(*COMMON, "--methods", "--exact", "--option", "--plot", "--csv", "--markdown"),
        *("--samples", "--sample-size"),
    ),
    "experiment": ("SPEC.toml", "-o", "--jobs", "--json"),
    "bound": (*COMMON, "-k"),
    "verify": ("ORIGINAL", "RELEASE", "--schema", "-k", "--json", "--show-values"),
    "risk": (
        *("TABLE", "RELEASE", "-q", "--sensitive", "--schema", "-k", "--weights", "--population"),
        *("--json", "--show-values"),
    ),
    "methods": (),
    "solvers": (),
    "instances": (),
    "leaderboard": ("--instance", "--method", "--exact", "--known", "--check", "--update", "-o"),
    "versions": (),
}


def anonymip(*arguments: str, folder: Path, **settings: Any) -> subprocess.Popen[str]:
    """Start a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "anonymip", *arguments],
        cwd=folder,
        text=True,
        stderr=subprocess.PIPE,
        stdout=settings.pop("stdout", subprocess.PIPE),
        **settings,
    )


@pytest.mark.parametrize("command", FLAGS)
def test_every_command_tells_its_flags(shell: Any, command: str) -> None:
    """The help of a command names all flags that the command promises."""
    outcome = shell(command, "--help")
    assert outcome.code == 0
    assert [flag for flag in FLAGS[command] if flag not in outcome.out] == []


def test_the_help_lists_the_commands(shell: Any) -> None:
    """The help names all commands, and a call without any shows it and is bad input."""
    outcome, bare = shell("--help"), shell()
    assert outcome.code == 0
    assert bare.code == 2
    for command in FLAGS:
        assert f"\n│ {command} " in outcome.out
        assert f"\n│ {command} " in bare.out + bare.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("frobnicate",), "frobnicate"),
        (("solve", "health-records"), "-k"),
        (("solve", "health-records", "-k", "three"), "-k"),
        (("solve", "health-records", "-k", "3", "--colour", "red"), "--colour"),
        (("solve", "health-records", "-k", "3", "--time-limit", "soon"), "--time-limit"),
        (("anonymize", "health-records", "-k", "3"), "--output"),
        (("verify", "people.csv"), "RELEASE"),
    ],
)
def test_errors_of_usage(shell: Any, arguments: tuple[str, ...], words: str) -> None:
    """A call that cannot be parsed is bad input; the message names the argument."""
    outcome = shell(*arguments)
    assert outcome.code == 2
    assert words in outcome.err
    assert outcome.out == ""


def test_internal_errors_are_called_so(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the program has exit code 4, no traceback, and shows no value of the table."""

    def fail(*arguments: Any, **settings: Any) -> None:
        raise RuntimeError("cannot handle 55107")

    monkeypatch.setattr("anonymip.solving.solve", fail)
    outcome = shell("solve", "health-records", "-k", 3)
    assert outcome.code == 4
    assert "internal error: RuntimeError in test_app.py, line " in outcome.err
    assert "report it" in outcome.err
    assert "55107" not in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert "55107" in shell("solve", "health-records", "-k", 3, "--show-values").err


def test_the_traceback_is_shown_on_request(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wants to mend the program can see where it failed."""

    def fail(*arguments: Any, **settings: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("anonymip.solving.solve", fail)
    monkeypatch.setenv("ANONYMIP_TRACEBACK", "1")
    assert "Traceback" in shell("solve", "health-records", "-k", 3).err


@pytest.mark.parametrize(("error", "code"), [(AnonymipError, 4), (NoSolution, 3)])
def test_own_errors_have_their_exit_codes(
    shell: Any, monkeypatch: pytest.MonkeyPatch, error: type[AnonymipError], code: int
) -> None:
    """An error raised on purpose is printed with its remedy and ends with its own code."""

    def fail(*arguments: Any, **settings: Any) -> None:
        raise error("nothing works", remedy="Do [bold]this[/bold]")

    monkeypatch.setattr("anonymip.solving.solve", fail)
    outcome = shell("solve", "health-records", "-k", 3)
    assert outcome.code == code
    assert outcome.err == "error: nothing works. Do [bold]this[/bold]\n"


def test_an_interrupt_with_nothing_to_show(shell: Any) -> None:
    """Ctrl-C before there is a solution ends with 130 and without a traceback."""
    shell.write("slow.py", "raise KeyboardInterrupt\n")
    outcome = shell("solve", "health-records", "-k", 3, "--objective", "slow.py:loss")
    assert outcome.code == 130
    assert outcome.err.splitlines()[1:] == ["interrupted"]


def test_bad_input_ends_the_process_with_two(tmp_path: Path) -> None:
    """The process ends with exit code 2, a message on standard error, and no traceback."""
    with anonymip("solve", "nowhere.csv", "-k", "3", folder=tmp_path) as process:
        out, err = process.communicate()
    assert process.returncode == 2
    assert out == ""
    assert err.startswith("error: there is no instance and no file 'nowhere.csv'")
    assert "Traceback" not in err


@pytest.mark.thorough
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """A pipe whose reader has gone, as behind `head`, ends quietly with exit code 0."""
    with anonymip("instances", folder=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
    assert process.returncode == 0
    assert err == ""


@pytest.mark.thorough
def test_ctrl_c_keeps_the_best_solution(tmp_path: Path) -> None:
    """Ctrl-C during a long solve ends with the best solution found, exit code 0, and says so."""
    import json
    import signal

    log, result = tmp_path / "solver.log", tmp_path / "result.json"
    arguments = ("solve", "census:40,8,1", "-k", "3", "--method", "equivalence-mip")
    arguments += ("--effort", "thorough")
    outputs = ("--log", str(log), "--json", str(result))
    with anonymip(*arguments, *outputs, folder=tmp_path) as process:
        # The log tells that the solver runs; Ctrl-C is of interest only from then on.
        while process.poll() is None and not (log.is_file() and log.stat().st_size):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert "(interrupted)" in out
    assert "Traceback" not in err
    (record,) = json.loads(result.read_text(encoding="utf-8"))
    assert record["status"] == "interrupted"
    assert len(record["groups"]) == 40
    assert record["bound"] < record["objective"]


def test_the_version_is_told(shell: Any) -> None:
    """The version is one line, without those of all that results depend on."""
    outcome = shell("--version")
    assert (outcome.code, outcome.out) == (0, f"anonymip {__version__}\n")


def modules_loaded(folder: Path, *calls: Sequence[str]) -> tuple[list[int], set[str]]:
    """Return the exit codes of some commands in a process of their own, and what it imports."""
    script = (
        "import json, sys\n"
        "from anonymip.cli.app import run\n"
        "codes = [run(call) for call in json.loads(sys.argv[1])]\n"
        "print(json.dumps([codes, list(sys.modules)]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(calls)],
        cwd=folder,
        text=True,
        capture_output=True,
        check=True,
    )
    codes, loaded = json.loads(done.stdout.splitlines()[-1])
    return codes, set(loaded)


def test_help_loads_nothing_that_computes(tmp_path: Path) -> None:
    """Help, the version and errors of usage come at once: what takes long to import is not."""
    calls = [["--help"], ["--version"], [], ["frobnicate"], ["solve", "census", "-k", "three"]]
    calls += [[command, flag] for command in FLAGS for flag in ("--help", "--no-such-option")]
    codes, loaded = modules_loaded(tmp_path, *calls)
    assert codes == [0 if call and call[-1] in ("--help", "--version") else 2 for call in calls]
    heavy = {"highspy", "llvmlite", "matplotlib", "numba", "numpy", "pandas", "pulp", "pyarrow"}
    assert not {*heavy, "pyomo", "rustworkx", "scipy"} & loaded


def test_heuristics_of_classes_load_no_models(tmp_path: Path) -> None:
    """Comparing heuristics waits for no import of Pyomo or matplotlib; the bound asks HiGHS."""
    names = "local-search,split-carry,mondrian"
    codes, loaded = modules_loaded(
        tmp_path, ["compare", "health-records", "-k", "2", "--methods", names]
    )
    assert codes == [0]
    assert "numba" in loaded
    assert not {"matplotlib", "pyomo", "scipy.optimize", "scipy.stats"} & loaded


@pytest.mark.thorough
def test_the_process_ends_when_the_answer_is_written(tmp_path: Path) -> None:
    """At the end Python is not left to look for garbage in all that was loaded, for a second."""
    script = (
        "import atexit, gc, sys\n"
        "atexit.register(lambda: print('left to look at:', len(gc.get_objects())))\n"
        "sys.argv = ['anonymip', 'versions']\n"
        "from anonymip.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, text=True, capture_output=True, check=True
    )
    assert "anonymip " in done.stdout
    assert int(done.stdout.rpartition(":")[2]) < 1000
