"""The plain way of numba: the same answers without its private side, as for unknown versions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numba
import pytest

from anonymip.runtime.kernels import KEEPS_KERNELS, TESTED

TOP = Path(__file__).resolve().parents[2]
SOLVING = """
import sys
import anonymip
from anonymip.runtime.kernels import KEEPS_KERNELS
print(KEEPS_KERNELS)
for name in sys.argv[1:]:
    recoding = anonymip.METHODS[name].recoding
    kinds = {"freeform": anonymip.Freeform, "pattern": anonymip.PatternGuided}
    problem = anonymip.Problem(
        anonymip.census(60, 3, seed=0), 3, kinds.get(recoding, anonymip.EquivalenceClasses)()
    )
    solution = anonymip.solve(problem, name, seed=5, effort="quick", bound=False)
    print(name, repr(solution.assignment), solution.objective.hex())
"""
IMPORTING = """
import sys, warnings
import numba
{change}
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    from anonymip.runtime.kernels import KEEPS_KERNELS, kernel
print(KEEPS_KERNELS)
print(*(one.message for one in heard))
"""


def printed(script: str, *names: str, plain: str = "") -> list[str]:
    """Return what a process prints; `plain` has it keep to the public side."""
    done = subprocess.run(
        [sys.executable, "-c", script, *names],
        env={**os.environ, "ANONYMIP_PLAIN_NUMBA": plain, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "names",
    [
        ("hilbert", "mondrian", "ring"),
        *(
            pytest.param((name,), marks=pytest.mark.thorough)
            for name in ("greedy-search", "local-search", "reassign", "pattern-search", "forest")
        ),
    ],
)
def test_the_plain_way_gives_the_same_answers(names: tuple[str, ...]) -> None:
    """Same seed, same bits, whoever compiles the kernels."""
    kept, *answers = printed(SOLVING, *names)
    plainly_kept, *plain_answers = printed(SOLVING, *names, plain="1")
    assert (kept, plainly_kept) == ("True", "False")
    assert len(answers) >= len(names)
    assert plain_answers == answers


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *(
            (f"numba.__version__ = '{version}'", f"numba {version} is none of those tested")
            for version in ("9.1.0", "0.61.2")
        ),
        ("numba.__version__ = 'unknown'", r"numba unknown has changed \(ValueError\)"),
        ("del numba.core.codegen.JITCodeLibrary", r"has changed \(AttributeError\)"),
    ],
)
def test_what_is_not_known_of_numba_is_not_used(change: str, reason: str) -> None:
    """Another version, or a private part that has gone: said once, with what to install."""
    kept, heard = printed(IMPORTING.format(change=change))
    assert kept == "False"
    assert re.search(reason, heard)
    assert heard.endswith("Install numba>=0.68,<0.69")


def test_the_versions_are_those_of_the_package() -> None:
    """The range in pyproject.toml ends where tests end; the pinned version is within."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    end = ".".join(map(str, TESTED[1]))
    assert f"numba>=0.61,<{end}" in project["dependencies"]
    pinned = re.search(r"^numba==(.*)$", (TOP / "constraints.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    for version in (pinned.group(1), numba.__version__):
        assert TESTED[0] <= tuple(map(int, version.split(".")[:2])) < TESTED[1]
    assert KEEPS_KERNELS
