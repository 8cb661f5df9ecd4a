"""Tests of runs that are killed, interrupted or out of time, and go on."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from anonymip.cli.app import run
from tests import profiles

#: Slow links, on a solver, so that a signal comes in the midst of them.
RUN = (
    *("anonymize", "census:400,3,1", "-k", "3", "--method", "split-carry", "--keep-order"),
    *("--option", "split-carry.subsolver=set-partition", "-o", "release.csv", "--json", "out.json"),
)
#: Quick ones.
QUICK = ("anonymize", "census:300,3,1", "-k", "3", "--method", "split-carry", "-o", "release.csv")


def signalled(folder: Path, number: signal.Signals, *more: str) -> subprocess.Popen[str]:
    """Start a run in a process of its own, send it a signal in the midst, and wait for its end."""
    beside = folder / "release.csv.checkpoint"
    process = subprocess.Popen(
        [sys.executable, "-m", "anonymip", *RUN, *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
    )
    end = time.monotonic() + 300
    while not beside.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    process.wait(300)
    return process


def groups(shell: Any) -> list[int]:
    """Return the class of every record, as the run tells it."""
    (record,) = json.loads(shell.read("out.json"))
    found: list[int] = record["groups"]
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[int]]:
    """Return release and classes of a run to which nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(list(RUN)) == 0
    assert {path.name for path in folder.iterdir()} == {
        *("release.csv", "release.csv.manifest.json", "out.json")
    }
    (record,) = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return (folder / "release.csv").read_text(encoding="utf-8"), record["groups"]


@pytest.mark.thorough
def test_a_killed_run_goes_on(shell: Any, undisturbed: tuple[str, list[int]]) -> None:
    """Kill -9, a look at what is left, and --resume: the release of an undisturbed run."""
    process = signalled(shell.folder, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert "release.csv" not in shell.files()
    left = shell.folder / "release.csv.checkpoint"
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    content = left.read_bytes()
    result = shell(*RUN)
    assert result.code == 2
    assert "release.csv.checkpoint is there already" in result.err
    assert "--resume" in result.err
    assert left.read_bytes() == content
    result = shell(*RUN, "--resume")
    assert result.code == 0
    assert "went on behind" in result.out
    assert "went on behind 0 links" not in result.out
    assert (shell.read("release.csv"), groups(shell)) == undisturbed
    assert not any("checkpoint" in name for name in shell.files())


@pytest.mark.thorough
def test_an_interrupted_run_gives_a_release_and_goes_on(
    shell: Any, undisturbed: tuple[str, list[int]]
) -> None:
    """Ctrl-C: a release that holds, and a file to go on from, which the next one does."""
    process = signalled(shell.folder, signal.SIGINT)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "the same command with --resume goes on" in out
    assert "verified and written: release.csv" in out
    interrupted = groups(shell)
    assert len(interrupted) == 400
    assert min(interrupted.count(label) for label in set(interrupted)) >= 3
    assert "release.csv.checkpoint" in shell.files()
    assert shell(*RUN, "--resume").code == 0
    assert (shell.read("release.csv"), groups(shell)) == undisturbed
    assert "release.csv.checkpoint" not in shell.files()


def test_a_run_out_of_time_can_be_given_again(shell: Any) -> None:
    """Only who names a checkpoint keeps it; the same command works twice."""
    for _ in range(2):
        assert shell(*RUN, "--time-limit", "0.2").code == 0
        assert not any("checkpoint" in name for name in shell.files())


def test_a_named_checkpoint_stays_until_the_chain_has_ended(shell: Any) -> None:
    """No time at all, then as much as it takes."""
    named = (*(RUN if profiles.NAME == "thorough" else QUICK), "--checkpoint", "mine")
    result = shell(*named, "--time-limit", "1e-6")
    assert result.code == 0
    assert "the same command with --checkpoint mine --resume goes on" in result.out
    assert "mine" in shell.files()
    assert "release.csv.checkpoint" not in shell.files()
    assert shell(*named).code == 2
    result = shell(*named, "--resume")
    assert result.code == 0
    assert "went on behind" in result.out
    assert "time ended" not in result.out
    assert "mine" not in shell.files()


def test_the_checkpoint_of_something_else_is_refused_and_stays(shell: Any) -> None:
    """A table, text or checkpoint of others is not overwritten, nor removed."""
    shell.write("mine", "no checkpoint\n")
    before = shell.files()
    for more in ([], ["--resume"]):
        result = shell(*QUICK, "--checkpoint", "mine", *more)
        assert result.code == 2
        assert "mine" in result.err
        assert shell.files() == before
    result = shell(*QUICK, "--checkpoint", "release.csv")
    assert result.code == 2
    assert "two outputs" in result.err


def test_a_method_that_keeps_none(shell: Any) -> None:
    """It is refused by name, and has no file beside its output otherwise."""
    quick = ("anonymize", "census:60,3,1", "-k", "3", "--method", "mondrian", "-o", "release.csv")
    for more in (["--resume"], ["--checkpoint", "mine"]):
        result = shell(*quick, *more)
        assert result.code == 2
        assert "mondrian keeps no checkpoints" in result.err
    assert shell(*quick).code == 0


def test_what_auto_does_not_use_is_not_removed(shell: Any) -> None:
    """A file of the user's that the method picked never looks at."""
    shell.write("mine", "precious\n")
    result = shell("solve", "health-records", "-k", "3", "--checkpoint", "mine", "--resume")
    assert result.code == 0
    assert shell.read("mine") == "precious\n"


def test_solve_goes_on_too(shell: Any) -> None:
    """It makes no file beside which a checkpoint could lie: it is named."""
    arguments = ("solve", "census:300,3,1", "-k", "3", "--method", "split-carry")
    result = shell(*arguments, "--resume")
    assert result.code == 2
    assert "(--checkpoint)" in result.err
    result = shell(*arguments, "--checkpoint", "mine", "--resume", "--json", "out.json")
    assert result.code == 0
    assert "went on behind" not in result.out
    assert "mine" not in shell.files()
