"""Efforts are counted in steps: no clock changes the classes, and none ends above a lower one."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from anonymip import Budget, Diversity, InputError, NoSolution, Problem, Solution, census
from anonymip.heuristics.classes import diving
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.classes.mondrian import mondrian
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.heuristics.local_search import iterated, rounds, starts
from anonymip.heuristics.local_search import local_search as engine
from anonymip.heuristics.local_search.local_search import improve, local_search
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime import budget, stepping
from tests.by_hand import table_of
from tests.hard_losses import PRODUCT
from tests.profiles import thorough

EFFORTS = ("quick", "normal", "thorough")


@pytest.fixture(params=["census", "repeated rows", "no tables"])
def problem(request: pytest.FixtureRequest) -> Problem:
    """Return tables without and with lenders, and one that is improved in batches."""
    if request.param == "census":
        return Problem(census(400, 5, seed=3), 4)
    if request.param == "no tables":
        return Problem(census(150, 4, seed=3), 3, objective=PRODUCT.objective)
    return Problem(census(900, 2, seed=1), 4)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let efforts end in the middle of a round of tables as small as these."""
    monkeypatch.setattr(rounds, "_STEPS", 100_000)
    monkeypatch.setattr(rounds, "_STEPS_A_RECORD", 100)
    few = {"quick": (0, 0), "normal": (1_000, 10**6), "thorough": (10_000, 10**7)}
    monkeypatch.setattr(iterated, "_STEPS", few)


def labels_of(solution: Solution) -> list[int]:
    """Return what the solution publishes together."""
    return solution.assignment.labels.tolist()  # type: ignore[union-attr]


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("effort", ["quick", "normal"])
def test_no_clock_changes_the_classes(
    problem: Problem, effort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tiny and long steps, slow listeners and a time limit far off: the same classes."""
    found = local_search(problem, effort=effort, seed=1)
    monkeypatch.setattr(stepping, "_SECONDS_A_STEP", 1e-9)
    slow = Budget(progress=lambda _: time.sleep(1e-4))
    assert labels_of(local_search(problem, effort=effort, seed=1, budget=slow)) == labels_of(found)
    monkeypatch.setattr(stepping, "_SECONDS_A_STEP", 1e3)
    far = Budget.of(1e6)
    again = local_search(problem, effort=effort, seed=1, budget=far)
    assert labels_of(again) == labels_of(found)
    assert again.trace == found.trace
    assert again.options["effort"] == effort


@pytest.mark.usefixtures("few_steps")
def test_no_effort_ends_above_a_lower_one(problem: Problem) -> None:
    """Each goes on where the one before stopped."""
    search = partial(local_search, problem, from_method="greedy-search")
    quick, normal, thorough = (search(effort=effort).objective for effort in EFFORTS)
    assert quick >= normal >= thorough
    assert quick > thorough


@pytest.mark.usefixtures("few_steps")
def test_the_trace_says_what_stopped_it(problem: Problem) -> None:
    """The effort, and what more may gain; or that nothing more is gained."""
    search = partial(local_search, problem, from_method="greedy-search")
    ended = search(effort="quick").trace[1]
    assert "stopped by effort quick" in ended
    assert "thorough may gain more" in ended
    assert "thorough may" not in str(search(effort="thorough").trace)


@pytest.mark.thorough
def test_the_trace_says_that_nothing_more_is_gained(problem: Problem) -> None:
    """Where the steps suffice, what was gained last is named."""
    ended = str(local_search(problem, effort="thorough").trace)
    assert "gained less than 0.02%" in ended or "nothing more gained" in ended


def test_the_default_is_thorough_only_within_a_time_limit() -> None:
    """A limit ends it then; `improve` knows the same efforts, and nobody any others."""
    problem = Problem(census(30, 3, seed=1), 3)
    assert local_search(problem).options["effort"] == "normal"
    assert local_search(problem, budget=Budget.of(60)).options["effort"] == "thorough"
    start = local_search(problem, effort="quick")
    assert len(improve(problem, start.assignment.labels, effort="normal")) == 30  # type: ignore[union-attr]
    with pytest.raises(InputError, match="effort"):
        local_search(problem, effort="lazy")


def test_steps_fall_where_each_takes_longer() -> None:
    """Twice the records, twice the steps; a million get less than 100,000, and all get some."""
    few, more, most, beyond = (
        rounds.most_steps("normal", n) for n in (50_000, 100_000, 1_000_000, 10_000_000)
    )
    assert few < more < 2 * few
    assert beyond < most < more
    assert beyond == rounds.most_steps("normal", 0) > 0
    assert 3 * rounds.most_steps("quick", 1000) < rounds.most_steps("normal", 1000)


@pytest.mark.usefixtures("few_steps")
def test_a_dive_takes_nothing_from_what_shorter_limits_find(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dive that takes half of the time, and loses more, is no reason to end worse."""
    clock = [0.0]

    def tick() -> float:
        clock[0] += 0.01
        return clock[0]

    def slow(problem: Problem, *, budget: Budget, **_: object) -> Solution:
        for _ in range(100):
            if budget.stop_reason() is not None:
                raise NoSolution("no time", remedy="Give more")
        return replace(initial(problem), trace=("slow",))

    monkeypatch.setattr(starts, "_SEVERAL", 50)
    monkeypatch.setattr(diving, "diving", slow)
    for module in (budget, stepping):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=tick, perf_counter=tick))
    problem, found = Problem(census(400, 5, seed=3), 4), []
    for limit in (0.5, 1, 2.25, 2.5, 5):
        deadline = Budget(clock[0] + limit)
        found.append(local_search(problem, from_method="best", budget=deadline).objective)
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


@pytest.mark.usefixtures("few_steps")
@pytest.mark.parametrize("seed", [2, *thorough(0, 1, 3, 4, 5)])
def test_more_effort_leaves_out_no_worse_outliers(seed: int) -> None:
    """Better classes of all records may hide outliers that a lower effort leaves out."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(np.exp(2 * rng.normal(size=(90, 3))), columns=list("abc"))
    problem = Problem(table_of(frame), 8, EquivalenceClasses(most_suppressed=3))
    losses = [local_search(problem, effort=effort).objective for effort in EFFORTS]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.parametrize("most_moved", [100, 1000])
def test_diverse_classes_of_repeated_rows_begin_with_those_that_are_cut(
    most_moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types of many rows are diverse as they are; what grows to the least size mixes them."""
    monkeypatch.setattr(starts, "_SEVERAL", 100)
    monkeypatch.setattr(engine, "MOST_MOVED", most_moved)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.integers(0, 5, 400), "b": rng.integers(0, 4, 400)})
    data = table_of(frame.assign(ill=rng.choice(list("xxyyzw"), 400)), "ill")
    problem = Problem(data, 2, diversity=Diversity(distinct=3))
    found = local_search(problem, from_method="best", effort="quick").objective
    cut = min(ordered_cut(problem).objective, mondrian(problem).objective)
    grown = local_search(problem, from_method="greedy-search", effort="quick").objective
    assert found <= cut < grown
