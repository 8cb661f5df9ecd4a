"""First runs of commands, with an empty home and cache, and once more.

Seconds are those of the processor, of the command and of all processes that it starts.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonymip.instances import INSTANCES

_CHECKOUT = Path(__file__).parents[1]
_ANONYMIP = Path(sys.executable).parent / "anonymip"
_COLUMNS = " ".join(f"-q {name}" for name in "abcdefgh")
#: Commands, and the seconds that they may take the first time and later.
_COMMANDS: tuple[tuple[str, float, float], ...] = (
    ("--help", 0.5, 0.5),
    ("anonymize adult -k 5 -o release.csv", 60, 20),
    ("compare health-records -k 2 --exact", 30, 2),
    (f"anonymize mixed.csv {_COLUMNS} -k 5 -o release.csv", 45, 5),
    ("anonymize census:300,4,1 -k 3 --method local-search -o release.csv", 25, 5),
)


def first_runs() -> Iterator[dict[str, Any]]:
    """Run each command in an empty home, and again in the same home."""
    for command, first_goal, later_goal in _COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            if "mixed.csv" in command:
                _mixed_table().to_csv(home / "mixed.csv", index=False)
            first, output = _processor_seconds([str(_ANONYMIP), *command.split()], home)
            kernels = list((home / ".cache" / "anonymip" / "kernels").glob("*"))
            later, again = _processor_seconds([str(_ANONYMIP), *command.split()], home)
            yield {
                "command": f"anonymip {command}",
                "first_seconds": round(first, 1),
                "goal": first_goal,
                "later_seconds": round(later, 1),
                "later_goal": later_goal,
                "kernels": len(kernels),
                "gcp": _loss(output),
                "same_release": _loss(output) == _loss(again),
            }


def demo_from_a_clone() -> Iterator[dict[str, Any]]:
    """Clone the last commit, and run ``make demo`` in the clone with an empty home."""
    with tempfile.TemporaryDirectory() as folder:
        home, clone = Path(folder) / "home", Path(folder) / "clone"
        home.mkdir()
        subprocess.run(["git", "clone", "--quiet", str(_CHECKOUT), str(clone)], check=True)
        first, _ = _processor_seconds(["make", "-C", str(clone), "demo"], home)
        shutil.rmtree(clone / "out", ignore_errors=True)
        later, _ = _processor_seconds(["make", "-C", str(clone), "demo"], home)
    yield {
        "command": "make demo",
        "first_seconds": round(first, 1),
        "goal": 60,
        "later_seconds": round(later, 1),
    }


def _processor_seconds(command: list[str], home: Path) -> tuple[float, str]:
    """Run a command as someone who has nothing but this home; return its seconds and output."""
    environment = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    data = os.environ.get("ANONYMIP_DATA")
    if "adult" in command:
        environment["ANONYMIP_DATA"] = data or str(INSTANCES["adult"].paths()[0].parents[1])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, env=environment, cwd=home, check=True, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return seconds, done.stdout


def _loss(output: str) -> str:
    """Return the loss that the command printed; empty if it printed none."""
    for line in output.splitlines():
        if line.startswith("loss "):
            return line.removeprefix("loss ").partition(";")[0]
    return ""


def _mixed_table() -> pd.DataFrame:
    """Return 5,000 records of four numbers and four names, none of them uniform."""
    random = np.random.default_rng(1)
    n = 5000
    numbers = {
        "a": random.normal(45, 15, n).round(),
        "b": random.lognormal(10, 1, n).round(-2),
        "c": random.integers(0, 100, n),
        "d": random.exponential(5, n).round(1),
    }
    names = {
        name: np.array([f"{name}{code:02}" for code in random.zipf(1.6, n) % kinds])
        for name, kinds in zip("efgh", (2, 5, 12, 40), strict=True)
    }
    return pd.DataFrame(numbers | names)
