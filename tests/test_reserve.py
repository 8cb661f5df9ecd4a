"""Tests of the time limit of a whole command: what solving may take follows from the table."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    Budget,
    EquivalenceClasses,
    Freeform,
    InputError,
    Microdata,
    Problem,
    Solution,
    anonymize,
    load_instance,
    register_method,
    solve,
)
from anonymip.anonymization import COSTS, LEAST_SHARE, PublishingCosts, before_publishing
from anonymip.cli.app import run
from anonymip.errors import ReleaseWarning
from anonymip.instances import Attribute, Schema
from anonymip.methods import registry
from anonymip.publishing.checking import read_back
from anonymip.publishing.release import publish
from anonymip.runtime.budget import MachineClock
from tests.by_hand import table_of


def numbers(n: int, m: int) -> pd.DataFrame:
    """Return n rows of m columns of whole numbers, all of a column different."""
    return pd.DataFrame({f"c{a}": np.arange(n) * (a + 1) for a in range(m)})


def problem(n: int, m: int, k: int = 2, *, freeform: bool = False) -> Problem:
    """Return the problem of such a table."""
    data = Microdata(numbers(n, m), tuple(Attribute(f"c{a}") for a in range(m)))
    return Problem(data, k, Freeform() if freeform else EquivalenceClasses())


class FakeClock(MachineClock):
    """A clock that began some time ago on a machine as busy as it is told."""

    def __init__(self, ago: float = 0.0, slowness: float = 1.0) -> None:
        super().__init__()
        self.began = time.monotonic() - ago
        self._told = slowness

    @property
    def slowness(self) -> float:
        """As told."""
        return self._told


def test_what_publishing_takes_is_a_sum_over_columns_cells_texts_and_matches() -> None:
    """Six rows of two columns: 12 cells, 12 values, 3 classes a column, or 6 sets of two."""
    unit = PublishingCosts(*(10.0**place for place in range(len(fields(PublishingCosts)))))
    assert unit.seconds(problem(6, 2)) == 1 + 10 * 2 + 100 * 12 + 1_000 * (12 + 2 * 3)
    covers = unit.seconds(problem(6, 2, freeform=True))
    assert covers == 1 + 10 * 2 + 100 * 12 + 1_000 * (12 + 2 * 6) + 10_000 * 6 * 2


def test_few_values_make_few_texts() -> None:
    """Of two values three ranges and three sets can be published, however many rows there are."""
    data = table_of({"age": [1, 2] * 50, "sex": ["F", "M"] * 50})
    only_texts = PublishingCosts(0, 0, 0, 1, 0)
    assert only_texts.seconds(Problem(data, 2)) == (2 + 3) + (2 + 4)


def test_the_reserve_grows_with_the_table_and_where_the_machine_is_busy() -> None:
    """Solving ends so much before the deadline as publishing takes on this machine."""
    whole = Budget.of(1000)
    small, large = (before_publishing(problem(n, 3), whole, FakeClock()) for n in (10, 4000))
    busy = before_publishing(problem(10, 3), whole, FakeClock(slowness=20.0))
    assert whole.deadline is not None
    for part, expected in (
        (small, COSTS.seconds(problem(10, 3))),
        (large, COSTS.seconds(problem(4000, 3))),
        (busy, 20 * COSTS.seconds(problem(10, 3))),
    ):
        assert part.deadline is not None
        assert whole.deadline - part.deadline == pytest.approx(expected)


def test_without_a_limit_nothing_is_reserved() -> None:
    """There is no deadline to end before."""
    assert before_publishing(problem(6, 2), Budget.of(), FakeClock()).deadline is None


def test_where_reading_took_all_the_time_solving_has_a_tenth_and_it_is_said() -> None:
    """The limit of 100 s began 400 s ago: the warning tells both, and 10 s are left for solving."""
    clock = FakeClock(ago=400.0)
    whole = Budget.of(100.0, since=clock.began)
    with pytest.warns(ReleaseWarning, match=r"of the time limit of 100 s, reading took 400\.\d s"):
        part = before_publishing(problem(6, 2), whole, clock)
    assert part.deadline is not None
    assert part.deadline - time.monotonic() <= LEAST_SHARE * 100 < part.deadline - clock.began


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Register a method "watched" that keeps what is left to it, and return what it keeps."""
    left: list[float | None] = []
    monkeypatch.setattr(registry, "_methods", dict(registry._methods))

    @register_method("watched", needs=())
    def watching(problem: Problem, *, budget: Budget, seed: int = 0) -> Solution:
        left.append(budget.remaining())
        return replace(solve(problem, "initial", bound=False), method="watched")

    return left


def test_a_command_has_its_limit_from_its_start(tmp_path: Path, watched: list[float]) -> None:
    """A command that began 600 s ago has less than 400 of 1000 s left, minus the reserve."""
    output = tmp_path / "release.csv"
    command = ["anonymize", "health-records", "-k", "3", "--method", "watched"]
    given = [*command, "--time-limit", "1000", "-o", str(output)]
    assert run(given, clock=FakeClock(ago=600.0, slowness=2.0)) == 0
    reserve = 2 * COSTS.seconds(Problem(load_instance("health-records"), k=3))
    assert 0 < watched[0] <= 400 - reserve
    given = ["solve", "health-records", "-k", "3", "--method", "watched", "--time-limit", "1000"]
    assert run(given, clock=FakeClock(ago=600.0)) == 0
    assert 0 < watched[1] <= 400


def test_a_command_whose_limit_is_over_before_the_work_still_ends_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is a verified release, and the user is told why it may lose much."""
    output = tmp_path / "release.csv"
    given = ["anonymize", "census:60,4,1", "-k", "3", "--time-limit", "1", "-o", str(output)]
    assert run(given, clock=FakeClock(ago=600.0)) == 0
    assert output.exists()
    assert "of the time limit of 1 s, reading took 600" in capsys.readouterr().err


def test_a_bad_limit_is_refused_before_the_table_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table is not there either, which nobody has looked for yet."""
    given = ["anonymize", str(tmp_path / "absent.csv"), "-k", "3", "--time-limit", "-1"]
    assert run([*given, "-o", str(tmp_path / "release.csv")]) == 2
    assert "--time-limit is -1.0" in capsys.readouterr().err


def test_python_keeps_the_reserve_too(watched: list[float]) -> None:
    """The limit of anonymize is that of the whole call."""
    frame = load_instance("health-records").frame
    names = load_instance("health-records").names
    columns = [name for name in frame.columns if name not in names]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anonymize(frame, names, 3, drop=columns, method="watched", time_limit=1000)
        with pytest.raises(InputError, match="time_limit is 0"):
            anonymize(frame, names, 3, drop=columns, method="watched", time_limit=0)
    assert 0 < watched[0] <= 1000 - COSTS.release


def _calls(work: Callable[[], Any]) -> int:
    """Return how many calls of Python functions something makes, generators counted each time."""
    count = 0

    def counting(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_reading_and_verifying_a_column_do_not_look_at_all_the_others() -> None:
    """Ten times the columns make at most some ten times the calls."""
    counted = []
    for m in (30, 300):
        frame = numbers(4, m)
        schema = Schema({name: {"kind": "numeric"} for name in frame.columns})
        # Texts, as files are read.
        texts = frame.astype(str)
        reading = _calls(lambda texts=texts, schema=schema: schema.apply(texts))
        solution = solve(Problem(schema.apply(texts), 2), "initial", bound=False)
        release = publish(solution)
        verifying = _calls(
            lambda: read_back(solution, release.frame, release.manifest, None)  # noqa: B023
        )
        counted.append((reading, verifying))
    for few, many in zip(*counted, strict=True):
        assert many <= 12 * few
