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


def fresh(cache: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, which has compiled nothing, with its own cache."""
    return subprocess.run(
        [sys.executable, "-m", "anonymip", *command],
        env={
            **os.environ,
            "NUMBA_CACHE_DIR": str(cache),
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        },
        check=True,
        capture_output=True,
        text=True,
    )


def test_what_commands_compile_is_told_once_and_warm_up_spares_it(tmp_path: Path) -> None:
    """Several methods and a bound: a pipe reads one line of all their kernels, then none.

    A warm-up says in one line what is ready and where; a second time nothing is compiled.
    """
    cache, written = tmp_path / "kernels", tmp_path / "done.json"
    command = ("compare", "census:40,3,1", "-k", "3", "--methods", "ordered-cut,initial")
    cold, warm = fresh(cache, *command), fresh(cache, *command)
    told = r"compiling about \d+ kernels, once; about \d+ s\n"
    assert re.fullmatch(told, cold.stderr), cold.stderr
    assert warm.stderr == ""
    first = fresh(cache, "warm-up", "hilbert", "--json", str(written))
    (record,) = json.loads(written.read_text(encoding="utf-8"))
    assert record["compiled"] >= 1
    assert record["folder"] == str(cache)
    ready = f"{record['kernels']} of {record['total']} kernels ready, with those they call"
    assert ready in first.stdout
    assert ": for hilbert; " in first.stdout
    assert record["total"] > 10 * record["kernels"]
    assert record["purpose"] == "hilbert"
    assert f"kept in {cache}" in first.stdout
    second = fresh(cache, "warm-up", "hilbert", "--json", "-")
    (again,) = json.loads(second.stdout)
    assert (again["compiled"], again["kernels"]) == (0, record["kernels"])
    assert ready in second.stderr


def test_warm_up_refuses_what_it_does_not_know(shell: Any) -> None:
    """A method that does not exist, as everywhere."""
    result = shell("warm-up", "mondrain")
    assert result.code == 2
    assert "unknown method 'mondrain'" in result.err


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
