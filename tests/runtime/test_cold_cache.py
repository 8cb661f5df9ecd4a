"""The answer does not depend on what is in the cache of kernels: empty, full or damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOLVING = """
import sys
import anonymip
from anonymip.runtime.kernels import compiled_kernels
problem = anonymip.Problem(anonymip.census(90, 3, seed=0), 3)
for effort in ("quick", "thorough"):
    bound = sys.argv[2] == "bound"
    solution = anonymip.solve(problem, sys.argv[1], seed=5, effort=effort, bound=bound)
    print(solution.assignment.labels.tolist(), solution.objective.hex(), solution.trace)
    print(solution.bound.value.hex() if bound else None)
print(compiled_kernels())
"""


def solved(cache: Path, *what: str) -> tuple[list[str], int]:
    """Return what a process with a cache of its own finds, and how many kernels it compiled."""
    done = subprocess.run(
        [sys.executable, "-c", SOLVING, *what],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        check=True,
        capture_output=True,
        text=True,
    )
    *found, compiled = done.stdout.splitlines()
    return found, int(compiled)


@pytest.mark.parametrize(
    ("method", "bound"),
    [
        ("ordered-cut", "none"),
        *(
            pytest.param(method, "bound", marks=pytest.mark.thorough)
            for method in ("ordered-cut", "greedy-search")
        ),
    ],
)
def test_the_answer_does_not_depend_on_the_cache(method: str, bound: str, tmp_path: Path) -> None:
    """Same seed, same classes, loss and bound; damaged entries are compiled again."""
    cold, compiled = solved(tmp_path, method, bound)
    assert compiled > 0
    assert solved(tmp_path, method, bound) == (cold, 0)
    entries = sorted(tmp_path.iterdir())
    for number, entry in enumerate(entries):
        content = entry.read_bytes()
        middle = len(content) // 2
        damaged = (b"", content[:middle], content[:middle] + b"?" + content[middle + 1 :])
        entry.write_bytes(damaged[number % 3])
    assert solved(tmp_path, method, bound) == (cold, compiled)
