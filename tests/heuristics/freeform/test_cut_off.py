"""Freeform heuristics that are cut off: what they have is completed, or a cheap start is better."""

from __future__ import annotations

import time
from typing import Any

import pytest

from anonymip import Budget, Cap, Freeform, Problem, Progress, Stopped, census
from anonymip.heuristics.freeform.greedy import greedy
from anonymip.heuristics.freeform.hungarian import hungarian
from anonymip.heuristics.freeform.min_cost_flow import min_cost_flow
from anonymip.heuristics.freeform.nh import nh
from anonymip.heuristics.freeform.ring import ring
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.heuristics.freeform.set_growth import FreeformNumbers
from anonymip.heuristics.freeform.sort_greedy import sort_greedy
from tests.brute_force import Column
from tests.hard_losses import PRODUCT
from tests.heuristics.freeform.freeform_methods import EVERY, sets_of
from tests.random_problems import Case


@pytest.fixture(scope="module")
def people() -> Problem:
    """Return a table that every heuristic needs several steps for."""
    return Problem(census(150, 5, seed=3), 6, recoding=Freeform())


@pytest.mark.parametrize("label", EVERY)
def test_expired_budget_gives_a_valid_solution(people: Problem, label: str) -> None:
    """A deadline in the past ends the work at once, with a cover and the status time limit."""
    solution = EVERY[label](people, budget=Budget(deadline=time.monotonic() - 1.0))
    assert solution.status.stopped is Stopped.TIME
    assert set(map(len, sets_of(solution))) == {people.k}
    assert any("along the order" in remark for remark in solution.trace)


@pytest.mark.parametrize("label", sorted(EVERY.keys() - {"min-cost-flow"}))
def test_interrupt_halfway_keeps_the_rounds_done(
    people: Problem, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The matches of the rounds before the interrupt stay; the rest is filled up."""
    monkeypatch.setattr(Rounds, "_find_start", lambda _: None)
    budget = Budget()

    def listen(progress: Progress) -> None:
        if progress.phase.startswith("round 3"):
            budget.interrupt()

    budget.progress = listen
    cut = EVERY[label](people, budget=budget)
    assert cut.status.stopped is Stopped.INTERRUPT
    done = sets_of(EVERY[label](people.replace(k=3)))
    pairs = zip(done, sets_of(cut), strict=True)
    kept = sum(len(set(one) & set(other)) for one, other in pairs)
    assert kept >= 0.95 * 3 * people.n
    assert cut.objective > EVERY[label](people).objective


def test_interrupted_flow_is_filled_up(people: Problem) -> None:
    """The flow gives rows their edges one after another; those without get them in order."""
    budget = Budget()
    budget.progress = lambda progress: budget.interrupt() if progress.phase != "weights" else None
    cut = min_cost_flow(people, budget=budget)
    assert cut.status.stopped is Stopped.INTERRUPT
    assert cut.objective != min_cost_flow(people).objective


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@pytest.mark.parametrize("method", [greedy, hungarian, min_cost_flow])
def test_a_method_cut_off_returns_no_worse_than_a_cheap_start(
    method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start is made meanwhile, and returned if the method does not end in time."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    problem = Problem(census(400, 8, seed=2), 12, Freeform())
    cheap = min(run(problem).objective for run in (ring, nh, sort_greedy))

    def slow(progress: Progress) -> None:
        clock.now += 6.0

    cut = method(problem, budget=Budget(deadline=clock.now + 10.0, progress=slow))
    assert cut.status.stopped is Stopped.TIME
    assert cut.objective <= cheap + 1e-9
    assert set(map(len, sets_of(cut))) == {12}
    whole = method(problem)
    assert whole.status.stopped is Stopped.HEURISTIC
    assert whole.trace == ()


def test_large_tables_begin_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """SortGreedy itself is cut off too: then its run on parts of the table is the result."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr(
        "anonymip.heuristics.freeform.rounds.rounds.NUMBERS", FreeformNumbers(start_part=100)
    )
    problem = Problem(census(400, 8, seed=2), 5, Freeform())
    parts = sort_greedy(problem, part=100, jobs=1)

    def slow(progress: Progress) -> None:
        clock.now += 6.0

    cut = sort_greedy(problem, budget=Budget(deadline=clock.now + 10.0, progress=slow))
    assert cut.objective <= parts.objective + 1e-9
    assert "sort-greedy in parts of 100 loses less: taken instead" in cut.trace


def test_cut_off_under_limits_the_start_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where matches added in order break a limit, the start that keeps it is the result."""
    problem = Problem(census(60, 3, seed=1), 3, Freeform())
    good = sort_greedy(problem)
    monkeypatch.setattr(
        Rounds,
        "_find_start",
        lambda rounds: setattr(rounds, "start", (good.assignment, 1.0, "a start")),
    )
    filled = "anonymip.heuristics.freeform.rounds.rounds.fill_up"
    monkeypatch.setattr(filled, lambda *_: 1)
    cut = hungarian(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert sets_of(cut) == sets_of(good)
    assert cut.trace == ("cut off: a start",)


@pytest.mark.parametrize("method", [greedy, sort_greedy, hungarian, min_cost_flow])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_rounds_without_time_are_no_worse_than_a_ring(method: Any, reciprocal: bool) -> None:
    """What is filled up along the order is compared with a ring."""
    if reciprocal and method is min_cost_flow:
        return
    problem = Problem(census(400, 5, seed=2), 6, Freeform())
    options = {"reciprocal": True} if reciprocal else {}
    solution = method(problem, budget=Budget(deadline=time.monotonic() - 1.0), **options)
    other = ring(problem.replace(recoding=Freeform(reciprocal=reciprocal)))
    assert solution.objective <= other.objective + 1e-9
    assert solution.status.stopped is Stopped.TIME


def test_what_is_filled_up_keeps_the_limits_of_losses_without_tables() -> None:
    """Paths ask what limits forbid now, not what they did when the round began."""
    ages = (4.0, 5.0, 4.0, 2.0, 8.0, 4.0, 1.0, 0.0, 3.0, 6.0, 6.0, 4.0, 8.0)
    weights = (5.0, 6.0, 2.0, 8.0, 0.0, 2.0, 3.0, 2.0, 8.0, 8.0, 3.0, 5.0, 8.0)
    case = Case((Column(ages), Column(weights)), 3, PRODUCT)
    problem = case.problem().replace(recoding=Freeform(), limits=(Cap("a", 2.0),))
    cut = greedy(problem, budget=Budget(deadline=time.monotonic() - 1.0))
    assert cut.trace == ("26 matches were added after the rounds, along the order",)
    published = problem.recoding.describe(problem, cut.assignment)
    assert (published.upper[:, 0] - published.lower[:, 0] <= 2.0).all()
