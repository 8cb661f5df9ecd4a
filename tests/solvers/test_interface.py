"""Tests of the options and of what importing the solvers loads."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError

import pytest

from anonymip.errors import InputError
from anonymip.solvers import SolverOptions


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("time_limit", 0),
        ("time_limit", -1.0),
        ("time_limit", float("nan")),
        ("time_limit", float("inf")),
        ("relative_gap", -0.1),
        ("relative_gap", float("nan")),
        ("node_limit", 0),
        ("node_limit", 2.5),
        ("node_limit", 2**31),
        ("threads", 0),
        ("threads", 1.5),
        ("threads", True),
        ("seed", -1),
        ("seed", 2**31),
        ("solver_options", {"": 1}),
    ],
)
def test_options_out_of_range_are_refused(argument: str, value: object) -> None:
    """The message names the argument and its value."""
    with pytest.raises(InputError, match=argument):
        SolverOptions(**{argument: value})  # type: ignore[arg-type]


def test_options_do_not_change_with_the_callers_mapping() -> None:
    """Options are frozen, keep a copy of the mapping, and can be sent to a process."""
    own = {"presolve": "off"}
    options = SolverOptions(solver_options=own)
    own["presolve"] = "on"
    assert options.solver_options == {"presolve": "off"}
    assert pickle.loads(pickle.dumps(options)) == options
    with pytest.raises(FrozenInstanceError):
        options.seed = 3  # type: ignore[misc]


def test_import_is_light() -> None:
    """Importing the solvers loads neither Pyomo nor any solver nor SciPy nor pandas."""
    heavy = ("pyomo", "highspy", "pulp", "scipy", "pandas")
    program = f"import sys, anonymip.solvers; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
