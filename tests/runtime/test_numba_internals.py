"""Parts of kernels, linked into their callers; the plain way of numba gives the same answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import compiler

from anonymip import InputWarning
from anonymip.runtime import kernels
from anonymip.runtime.kernels import KEEPS_KERNELS, TESTED, kernel
from anonymip.runtime.numba_internals import Flags
from tests import profiles

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
import numba.core.codegen
del numba.core.codegen.JITCodeLibrary
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    "names",
    [
        ("ordered-cut",),
        *profiles.thorough(
            ("mondrian", "hilbert", "ring", "forest"), ("local-search",), ("pattern-search",)
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


@pytest.mark.thorough
def test_what_has_gone_from_numba_is_not_used() -> None:
    """Where a private part is no more: said once, with what to install."""
    kept, heard = printed(IMPORTING)
    assert kept == "False"
    assert "has changed (AttributeError)" in heard
    assert heard.endswith("Install numba>=0.68,<0.69")


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("9.1.0", "is none of those tested"),
        ("0.61.2", "is none of those tested"),
        ("unknown", r"has changed \(ValueError\)"),
    ],
)
def test_other_versions_of_numba_are_not_used(
    version: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before and after what was tested, and one that is no number."""
    monkeypatch.setattr(numba, "__version__", version)
    with pytest.warns(InputWarning, match=rf"numba {version} {reason}.*Install numba>=0.68,<0.69"):
        assert kernels._load_internals() is None


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


@kernel
def _ordered(values):
    ordered = values.copy()
    for at in range(1, len(ordered)):
        for before in range(at, 0, -1):
            if ordered[before] < ordered[before - 1]:
                ordered[before], ordered[before - 1] = ordered[before - 1], ordered[before]
    return ordered


@kernel
def _middle(values):
    if len(values) == 0:
        raise ValueError("nothing is in the middle")
    return _ordered(values)[len(values) // 2]


@kernel
def _spread(values):
    return _ordered(values)[-1] - _ordered(values)[0]


@kernel
def _both(values):
    return _middle(values) + _spread(values)


@kernel
def _combined(values):
    """Hold a comprehension, a closure, and an expression of whole arrays."""

    def doubled(value):
        return 2.0 * value

    squares = np.array([value * value for value in values])
    difference = squares - 3.0 * values
    return doubled(difference.sum()) + len("ab" + "c")


def test_steps_that_few_kernels_need_are_done_where_they_are():
    """Comprehensions, closures, expressions of arrays and strings are compiled as numba does."""
    values = np.array([4.0, 1.0, 9.0])
    assert _combined(values) == 2.0 * (values**2 - 3.0 * values).sum() + 3


def test_parts_of_parts_are_linked():
    """A kernel called on two ways and from Python as well is the same everywhere."""
    values = np.array([4.0, 1.0, 9.0])
    assert (_both(values), _middle(values), _ordered(values).tolist()) == (12.0, 4.0, [1, 4, 9])


def test_errors_of_parts_reach_python():
    """What a kernel raises in a kernel leaves the one that Python called, each time."""
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing is in the middle"):
            _both(np.zeros(0))
    assert _both(np.array([2.0])) == 2.0


def test_options_are_looked_up_as_numba_does() -> None:
    """They are equal to numba's, hash alike, and name symbols alike, whatever is set."""
    theirs = compiler.Flags()  # type: ignore[no-untyped-call]
    for name, value in (("no_compile", True), ("nrt", True), ("release_gil", False)):
        setattr(theirs, name, value)
        ours = Flags(theirs)
        assert ours == theirs
        assert theirs == ours
        assert hash(ours) == hash(theirs)
        assert ours.copy().get_mangle_string() == theirs.get_mangle_string()
    assert Flags() != theirs
