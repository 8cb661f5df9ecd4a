"""Tests of what a shell completes: the names there are, at once, and those of packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from anonymip import INSTANCES
from anonymip.cli import completion
from anonymip.methods.built_in import BUILT_IN
from anonymip.objectives import OBJECTIVES
from anonymip.recodings.registry import RECODINGS
from anonymip.solvers.registry import ADAPTERS
from tests.test_project import HEAVY, REPOSITORY

#: Prints what a shell would be given for each of some lines, and the libraries that were loaded.
CODE = """\
import os, sys
from anonymip.cli.app import run
sys.argv[0] = "anonymip"
for words in sys.argv[1:]:
    os.environ["COMP_WORDS"] = f"anonymip {words}"
    os.environ["COMP_CWORD"] = str(len(words.split(" ")))
    try:
        run()
    except SystemExit:
        print(flush=True)
        print("--", flush=True)
print("loaded", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""


def completed(*lines: str, place: Path = REPOSITORY) -> tuple[list[list[str]], set[str]]:
    """Return what bash is offered for the last word of each line, and the modules loaded."""
    environment = {
        **os.environ,
        "_ANONYMIP_COMPLETE": "complete_bash",
        "PYTHONPATH": os.pathsep.join(map(str, (REPOSITORY, place))),
    }
    ended = subprocess.run(
        [sys.executable, "-c", CODE, *lines],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    _, _, loaded = ended.stderr.partition("loaded ")
    offered = [one.split() for one in ended.stdout.split("\n--\n")]
    assert offered.pop() == []
    return offered, set(loaded.split())


@pytest.mark.parametrize(
    ("registry", "known"),
    [
        ("methods", BUILT_IN),
        ("recodings", RECODINGS),
        ("objectives", OBJECTIVES),
        ("solvers", ADAPTERS),
        ("instances", INSTANCES),
    ],
)
def test_the_names_are_those_of_the_registries(registry: str, known: Mapping[str, object]) -> None:
    """What is completed is what there is, by the names that they give themselves."""
    assert completion.built_in(registry) == list(known)
    for name, one in known.items():
        itself = getattr(one, "name", name)
        assert itself == name or not isinstance(itself, str)  # of a class it may be a property


def test_names_are_completed_and_nothing_heavy_is_loaded() -> None:
    """A shell is offered the names that begin so; NumPy and what is built on it stay away.

    Where no instance begins so, nothing is offered, and the shell completes files.
    """
    known = {
        "solve health-records --method mond": ["mondrian"],
        "anonymize people.csv --recoding free": ["freeform"],
        "bound x --solver hi": ["highs"],
        "solve x --objective leaf": ["leaf-loss"],
        "solve x --effort q": ["quick"],
        "solve tarr": ["tarragona"],
        "warm-up mond": ["mondrian"],
        "compare x --methods mondrian,hilb": ["mondrian,hilbert", "mondrian,hilbert-diversity"],
        "leader": ["leaderboard"],
        "solve ./people.cs": [],
    }
    offered, loaded = completed(*known)
    assert dict(zip(known, offered, strict=True)) == known
    assert "typer" in loaded
    assert not loaded & ((HEAVY - {"rich", "typer"}) | {"numpy"})


def test_names_of_packages_are_completed_without_importing_them() -> None:
    """What an installed package registers is offered; the package is not imported."""
    lines = ("solve x --method lexi", "solve x --solver bor")
    offered, loaded = completed(*lines, place=REPOSITORY / "tests" / "plugin")
    assert offered == [["lexicographic"], ["borrowed"]]
    assert "anonymip_example" not in loaded
