"""Tests of the command warm-up, and of what a pipe reads of compilation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from anonymip import Freeform, Problem, census, publish, solve


def test_warm_up_compiles_what_a_command_needs(
    shell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line of what is ready and where; a second time nothing is compiled."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    first = shell("warm-up", "ordered-cut", "--json", "done.json")
    assert first.code == 0
    (record,) = json.loads(shell.read("done.json"))
    assert record["compiled"] >= 1
    assert record["folder"] == str(tmp_path / "kernels")
    assert f"{record['kernels']} kernels ready" in first.out
    assert f"kept in {tmp_path / 'kernels'}" in first.out
    assert any((tmp_path / "kernels").iterdir())
    second = shell("warm-up", "ordered-cut", "--json", "-")
    (again,) = json.loads(second.out)
    assert (again["compiled"], again["kernels"]) == (0, record["kernels"])
    assert "kernels ready" in second.err


def test_warm_up_refuses_what_it_does_not_know(shell: Any) -> None:
    """A method that does not exist, as everywhere."""
    result = shell("warm-up", "mondrain")
    assert result.code == 2
    assert "unknown method 'mondrain'" in result.err


def test_a_pipe_reads_one_line_of_compilation(tmp_path: Path) -> None:
    """A comparison runs several methods and a bound: one line tells of the kernels of all."""
    command = ("compare", "census:40,3,1", "-k", "3", "--methods", "ordered-cut,hilbert")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
    first, second = (
        subprocess.run(
            [sys.executable, "-m", "anonymip", *command],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        for _ in range(2)
    )
    told = r"compiling about \d+ kernels, once; about \d+ s\n"
    assert re.fullmatch(told, first.stderr), first.stderr
    assert second.stderr == ""


def test_publishing_a_cover_says_what_it_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk that draws an assignment takes seconds to compile, after the method has ended."""
    told: list[str] = []

    @contextmanager
    def announcing(left: Any) -> Iterator[None]:
        told.append("begins")
        assert left() is not None
        yield
        told.append("ends")

    monkeypatch.setattr("anonymip.publishing.release.announcing_compilation", announcing)
    problem = Problem(census(20, 2, seed=0), 2, Freeform())
    publish(solve(problem, "reassign"))
    assert told == ["begins", "ends"]
