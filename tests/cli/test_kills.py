"""Tests of runs that are killed while they write: what is left is whole, or reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.kills import OUTPUTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.thorough
def test_a_killed_run_leaves_an_old_a_new_or_a_told_release(tmp_path: Path) -> None:
    """Between and within all writes: no table lies beside another's manifest untold.

    A process of its own is copied for each kill, in which nothing else runs. It checks of each kill
    that `verify` and the next run say what they must, and that the next run removes what was left.
    """
    code = "from tests.cli.kills import main_of_tests; main_of_tests()"
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "place")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found = ended.stdout.split()
    # A kill after each rename but the last leaves something in between.
    assert found.count("old") == len(OUTPUTS) + 2
    assert found.count("between") == len(OUTPUTS) - 1
    assert found.count("new") == 1
