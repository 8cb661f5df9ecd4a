"""Tests of the commands that list what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anonymip import INSTANCES, METHODS, __version__, solver_names
from anonymip.publishing import versions
from anonymip.solvers import Availability


def test_methods_are_listed(shell: Any) -> None:
    """Each method has a line with its recoding, role, needs, source and options."""
    result = shell("methods")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    for spec in METHODS.values():
        assert spec.recoding in lines[spec.name]
        assert spec.role in lines[spec.name]
        assert spec.source in lines[spec.name]
        for option in spec.options:
            assert f"{option.name}={option.default}" in lines[spec.name]


@pytest.mark.parametrize("name", ["greedy", "sort-greedy"])
def test_methods_say_that_they_follow_the_program(shell: Any, name: str) -> None:
    """Where the default is the authors' program and not the paper's text the list says so."""
    lines = {line.split()[0]: line for line in shell("methods").out.splitlines()}
    assert "authors' program" in lines[name]


def test_listing_methods_imports_none_of_them() -> None:
    """The registry is data: its listing loads no heuristic, no model and no solver."""
    code = (
        "import sys; from anonymip.cli.app import run; run(['methods'])\n"
        "rooms = ('anonymip.heuristics', 'anonymip.exact', 'anonymip.models', 'pyomo')\n"
        "print(*[name for name in sys.modules if name.startswith(rooms)], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "greedy-search" in ended.stdout
    assert ended.stderr == "\n"


def test_solvers_are_listed(shell: Any) -> None:
    """Each solver has a line; those of the default installation have full licences."""
    result = shell("solvers")
    assert result.code == 0
    lines = {line.split()[0]: line.split() for line in result.out.splitlines()}
    assert set(solver_names()) <= set(lines)
    assert lines["highs"][1:3] == ["yes", "full"]
    assert lines["cbc"][1:3] == ["yes", "full"]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Availability(False, False, None, "Install it"), "no -"),
        (Availability(True, False, "9", "x", "none"), "yes none"),
        (
            Availability(True, False, "9", "x", "size-limited", 2000, 1500),
            "yes size-limited (2000 variables, 1500 rows)",
        ),
    ],
)
def test_licences_are_told(
    shell: Any, monkeypatch: pytest.MonkeyPatch, found: Availability, text: str
) -> None:
    """A licence for small models is reported with its limits, and a missing one too."""
    monkeypatch.setattr("anonymip.solvers.availability", lambda name: found)
    lines = [" ".join(line.split()) for line in shell("solvers").out.splitlines()]
    assert [line for line in lines if line.startswith(f"gurobi {text} ")]


def test_instances_are_listed(shell: Any) -> None:
    """Each named instance has a line with its source; built-in ones are here."""
    result = shell("instances")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert {*INSTANCES, "census:n,m,seed"} <= set(lines)
    assert lines["health-records"].split()[1] == "yes"
    assert INSTANCES["health-records"].source in lines["health-records"]


def test_absent_data_are_told(shell: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the data folder an instance of it is marked, and asking for it is bad input."""
    monkeypatch.setenv("ANONYMIP_DATA", str(tmp_path / "nowhere"))
    result = shell("instances")
    assert result.code == 0
    (line,) = [line for line in result.out.splitlines() if line.startswith("census-1k ")]
    assert "no (ANONYMIP_DATA)" in line
    refused = shell("solve", "census-1k", "-k", 3)
    assert refused.code == 2
    assert "ANONYMIP_DATA" in refused.err


def test_versions_are_told(shell: Any) -> None:
    """The versions of the package, what it depends on, and the solvers are printed."""
    result = shell("versions")
    assert result.code == 0
    found = re.findall(r"^(solver \S+|\S+) (.+)$", result.out, re.MULTILINE)
    assert len(found) == len(result.out.splitlines())
    lines = dict(found)
    assert lines["anonymip"] == __version__
    assert versions().items() <= lines.items()
    assert {f"solver {name}" for name in solver_names()} <= set(lines)
