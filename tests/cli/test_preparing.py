"""Tests of the command warm-up, and of what a pipe reads of compilation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


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
