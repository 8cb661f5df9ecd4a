"""More effort or a longer limit never makes loss, bound or gap worse, whatever the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonymip import (
    Attribute,
    EquivalenceClasses,
    Freeform,
    KConcealment,
    Microdata,
    Problem,
    Solution,
    census,
    solve,
)
from anonymip.bounds import ladder
from anonymip.enumeration import pricing
from anonymip.exact.column_generation import column_generation
from anonymip.recodings.recoding import Recoding
from anonymip.runtime import budget, stepping
from benchmarks.shapes import amounts, answers, codes, coordinates, mixed, numbers
from tests import profiles


class Ticking:
    """A clock that every reading moves on: the same run reads the same time, however busy."""

    def __init__(self, tick: float) -> None:
        self._now, self._tick = 0.0, tick

    def monotonic(self) -> float:
        """Return the time."""
        self._now += self._tick
        return self._now

    perf_counter = monotonic

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let limits be counted in readings of the clock; returns how a clock is started."""

    def start(tick: float) -> None:
        clock = Ticking(tick)
        for module in (budget, stepping, pricing):
            monkeypatch.setattr(module, "time", clock)

    return start


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each effort do a part of its work: what it leaves undone is as good a place to end."""
    if profiles.NAME != "thorough":
        for effort, numbers in ladder.NUMBERS.cells.items():
            part = tuple(0.01 * one for one in numbers)
            monkeypatch.setitem(ladder.NUMBERS.cells, effort, part)
        for effort, searched in column_generation._SEARCHED.items():
            monkeypatch.setitem(column_generation._SEARCHED, effort, searched // 100)


def _table(frame: pd.DataFrame, n: int, k: int, recoding: Recoding | None = None) -> Problem:
    frame = frame.sample(n, random_state=n + k).reset_index(drop=True).iloc[:, :8]
    kinds = ["numeric" if frame[name].dtype.kind in "if" else "categorical" for name in frame]
    table = Microdata(frame, tuple(map(Attribute, frame, kinds)))
    return Problem(table, k, recoding or EquivalenceClasses())


def _tailed() -> pd.DataFrame:
    random = np.random.default_rng(5)
    return pd.DataFrame(random.pareto(1.2, (400, 4)).round(3), columns=list("abcd"))


def _copied() -> pd.DataFrame:
    return pd.DataFrame(census(60, 4, seed=3).frame).sample(400, replace=True, random_state=1)


#: A dozen tables of shapes of many kinds.
TABLES: dict[str, Callable[[], Problem]] = {
    "tails, k = 10": lambda: _table(_tailed(), 110, 10),
    "mixed, k = 7": lambda: _table(mixed(), 210, 7),
    "covers of mixed": lambda: _table(mixed(), 60, 4, Freeform()),
    "copies, k = 5": lambda: _table(_copied(), 300, 5),
    "few copies, k = 5": lambda: _table(_copied(), 45, 5),
    "numbers, k = 10": lambda: _table(numbers(), 300, 10),
    "codes, k = 5": lambda: _table(codes(), 500, 5),
    "coordinates, k = 10": lambda: _table(coordinates(), 400, 10),
    "amounts, k = 5": lambda: _table(amounts(), 450, 5),
    "answers, k = 3": lambda: _table(answers(), 300, 3),
    "census, k = 10": lambda: Problem(census(300, 8, seed=2), 10),
    "covers of numbers": lambda: _table(numbers(), 300, 5, Freeform()),
    "concealed": lambda: _table(mixed(), 100, 5, KConcealment()),
}
#: Those of every run, by what is asked of them.
_EFFORTS = ("covers of mixed", "few copies, k = 5")
_LIMITS = ("tails, k = 10", "covers of mixed")


def _assert_order(found: list[Solution]) -> None:
    """Each is no worse than the one before, in what is lost, proven, and left between these."""
    for less, more in pairwise(found):
        assert more.objective <= less.objective * (1 + 1e-12)
        if less.bound is not None:
            assert more.bound is not None
            assert more.bound.value >= less.bound.value * (1 - 1e-9)
        if less.gap is not None:
            assert more.gap is not None
            assert more.gap <= less.gap + 1e-9
    for one in found:
        assert one.bound is None or all(
            one.bound.value <= other.objective * (1 + 1e-9) for other in found
        )


def _marked(often: tuple[str, ...]) -> list[Any]:
    rest = [name for name in TABLES if name not in often]
    return [*often, *profiles.thorough(*rest)]


@pytest.mark.parametrize("name", _marked(_EFFORTS))
def test_more_effort_is_never_worse(name: str) -> None:
    """Quick, normal, thorough."""
    problem = TABLES[name]()
    efforts = ["quick", "normal", "thorough"]
    _assert_order([solve(problem, effort=effort) for effort in efforts])


@pytest.mark.thorough("tails, k = 10")
@pytest.mark.parametrize("name", _marked(_LIMITS))
def test_a_longer_limit_is_never_worse(ticking: Callable[[float], None], name: str) -> None:
    """Limits of 1, 3, 10 and 30 seconds of a clock that counts how often it is read."""
    problem, found = TABLES[name](), []
    # What is compiled does not count: here nothing is any more.
    solve(problem, effort="quick")
    for limit in (1, 3, 10, 30):
        ticking(0.01)
        found.append(solve(problem, time_limit=limit))
    _assert_order(found)
