"""Tests of the table of kernels: what is left to compile, and that the table is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from anonymip import Problem, compare, lower_bound, solve
from anonymip.instances import census
from anonymip.methods.best_bound import ASCENT
from anonymip.runtime import needed_kernels as needed
from anonymip.runtime.kernels import Left, kernel
from anonymip.runtime.needed_kernels import kernels_left, needed_kernels
from anonymip.warm_up import usual_runs

ASKED = """
import json, sys
from anonymip.runtime.budget import Budget
from anonymip.runtime.numba_internals import asked
from anonymip.warm_up import run_for_kernels
run_for_kernels(sys.argv[1], Budget())
print(json.dumps(asked))
"""


@kernel
def doubled(values: Any) -> Any:
    """Return twice the first value: two signatures of it are in the table of these tests."""
    return 2 * values[0]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Put a table of our own and an empty cache in place."""
    name = f"{__name__}:doubled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    runs = {"doubling": {name: 2}, "more": {name: 1, f"{__name__}:gone": 4}}
    monkeypatch.setattr(needed, "needed_kernels", lambda: runs)
    monkeypatch.setattr(needed, "kernel_seconds", lambda: {name: 1.5})


def test_the_kernels_of_the_table_exist() -> None:
    """A kernel that was moved or renamed is in the table by its new name."""
    names = {name for run in needed_kernels().values() for name in run}
    assert all(hasattr(resolve_name(name), "_cache") for name in names)
    assert set(needed.kernel_seconds()) == names


@pytest.mark.usefixtures("table")
def test_what_is_on_disk_is_not_left() -> None:
    """Signatures are counted; kernels that this version does not have are not."""
    assert kernels_left(["doubling"]) == Left(2, 3.0)
    assert kernels_left(["more"]) == Left(1, 1.5)
    assert kernels_left(["doubling", "more"]) == Left(2, 3.0)
    doubled(np.ones(1))
    assert kernels_left(["doubling"]) == Left(1, 1.5)
    doubled(np.ones(1, np.int64))
    assert kernels_left(["doubling"]) == Left(0, 0.0)


@pytest.mark.usefixtures("table")
def test_nothing_is_said_of_runs_that_nobody_knows() -> None:
    """Methods from outside are in no table."""
    assert kernels_left(["doubling", "from-outside"]) is None


def test_the_table_knows_the_usual_runs() -> None:
    """Each has its kernels there, and each kernel its seconds."""
    other = set(needed_kernels()) ^ set(usual_runs())
    assert not other, "run python -m benchmarks.needed_kernels " + " ".join(sorted(other))
    kernels = {name for run in needed_kernels().values() for name in run}
    assert kernels <= set(needed.kernel_seconds())


class Heard(Exception):
    """Ends a run as soon as it could say what it compiles."""


@pytest.mark.parametrize(("n", "ascends"), [(300, False), (3_000, True)])
@pytest.mark.parametrize("command", ["solve", "bound", "compare"])
def test_tables_of_thousands_count_the_kernels_of_their_bounds(
    command: str, n: int, ascends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is announced holds those of the ascent where the bound is one, and is always known."""
    named: list[set[str]] = []

    @contextmanager
    def listening(left: Callable[[], Left | None], _: object) -> Iterator[None]:
        assert left() is not None, "a run is not in the table: test_the_table_knows_the_usual_runs"
        raise Heard
        yield

    def noted(runs: Iterable[str]) -> Left | None:
        named.append(set(runs))
        return kernels_left(named[-1])

    for module in ("anonymip.solving", "anonymip.experiments.comparison"):
        monkeypatch.setattr(f"{module}.announcing_compilation", listening)
        monkeypatch.setattr(f"{module}.kernels_left", noted)
    problem = Problem(census(n, 4, seed=1), 5)
    run = {
        "solve": lambda: solve(problem),
        "bound": lambda: lower_bound(problem),
        "compare": lambda: compare(problem, [3, 5]),
    }
    with pytest.raises(Heard):
        run[command]()
    assert (ASCENT in named[0]) == ascends


@pytest.mark.thorough
@pytest.mark.parametrize(
    "run",
    # The first computes the bound as well.
    ["greedy-search", "bound", "dual-ascent", "local-search", "split-carry", "forest"],
)
def test_the_table_is_true(run: str) -> None:
    """What a run asks for is about what the table says: at most a fifth, or two, beside it.

    If this fails: ``python -m benchmarks.needed_kernels``.
    """
    done = subprocess.run(
        [sys.executable, "-c", ASKED, run],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    asked, known = Counter(json.loads(done.stdout)), Counter(needed_kernels()[run])
    wrong = (asked - known).total() + (known - asked).total()
    assert wrong <= max(2, asked.total() / 5), sorted((asked - known) + (known - asked))
