"""Tests of kernels in steps: limits, interrupts and progress between them."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from anonymip import Budget, Progress, Stopped
from anonymip.runtime import stepping
from anonymip.runtime.budget import compilation_clock
from anonymip.runtime.stepping import run_in_steps


class Work:
    """Does what it is told and remembers how much that was."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self.amounts: list[int] = []

    def __call__(self, amount: int) -> int:
        """Do up to `amount`; return all that is done."""
        self.amounts.append(amount)
        self.done = min(self.total, self.done + amount)
        return self.done


def test_all_work_is_done() -> None:
    """Steps start with one unit, grow at most fourfold, and end with the work."""
    work = Work(1000)
    assert run_in_steps(work, 1000, Budget.of(), "cutting") is None
    assert work.done == 1000
    assert work.amounts[0] == 1
    pairs = zip(work.amounts, work.amounts[1:], strict=False)
    assert all(1 <= after <= 4 * before for before, after in pairs)


@pytest.mark.parametrize("first", [1, 7, 5000])
def test_the_first_step_can_be_sized(first: int) -> None:
    """The caller knows how long a unit takes; there is no more work than there is."""
    work = Work(100)
    assert run_in_steps(work, 100, Budget.of(), "cutting", first=first) is None
    assert work.amounts[0] == min(first, 100)


def test_a_step_that_failed_is_an_error() -> None:
    """A number below zero, by which kernels say that they failed, is not asked for again."""
    with pytest.raises(RuntimeError, match="counting failed"):
        run_in_steps(lambda amount: -1, 10, Budget(), "counting")


def test_no_work_needs_no_step() -> None:
    """Nothing to do is done."""
    work = Work(0)
    assert run_in_steps(work, 0, Budget.of(), "cutting") is None
    assert work.amounts == []


def test_slow_steps_stay_small() -> None:
    """A step that takes longer than intended is followed by one of a single unit."""
    work = Work(3)

    def slow(amount: int) -> int:
        time.sleep(0.12)
        return work(amount)

    assert run_in_steps(slow, 3, Budget.of(), "cutting") is None
    assert work.amounts == [1, 1, 1]


def test_an_interrupt_ends_the_work_after_the_step() -> None:
    """The step under way is finished, no other is begun."""
    budget, work = Budget.of(), Work(1000)

    def interrupted(amount: int) -> int:
        budget.interrupt()
        return work(amount)

    assert run_in_steps(interrupted, 1000, budget, "cutting") is Stopped.INTERRUPT
    assert work.amounts == [1]


def test_a_spent_budget_begins_nothing() -> None:
    """After the deadline not even the first step is taken."""
    work = Work(10)
    spent = Budget(deadline=time.monotonic() - 1)
    assert run_in_steps(work, 10, spent, "cutting") is Stopped.TIME
    assert work.amounts == []


def test_work_that_is_done_at_the_deadline_is_done() -> None:
    """A step that completes the work counts, even if the time is up by then."""
    budget = Budget.of()

    def last(amount: int) -> int:
        budget.interrupt()
        return amount

    assert run_in_steps(last, 5, budget, "cutting", first=5) is None


def test_every_step_is_reported() -> None:
    """The listener learns phase, work done and work in all, ascending to the end."""
    heard: list[Progress] = []
    run_in_steps(Work(50), 50, Budget.of(progress=heard.append), "cutting", first=20)
    assert [(report.phase, report.total) for report in heard] == [("cutting", 50)] * len(heard)
    done = [report.done or 0 for report in heard]
    assert done == sorted(done)
    assert done[-1] == 50


class Hours:
    """A clock that only work moves; every unit costs what it costs."""

    def __init__(self, costs: Sequence[float]) -> None:
        self.now, self.costs, self.done = 0.0, costs, 0
        self.steps: list[float] = []

    def perf_counter(self) -> float:
        """Return the seconds of the clock."""
        return self.now

    def work(self, amount: int) -> int:
        """Do up to `amount` units; return all that are done."""
        some = self.costs[self.done : self.done + amount]
        self.now += sum(some)
        self.steps.append(sum(some))
        self.done += len(some)
        return self.done


def test_steps_stay_short_where_units_are_now_cheap_now_costly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Cheap units do not make the next step over costly ones last for many seconds."""
    costly, cheap = [0.05] * 100, [1e-6] * 500
    clock = Hours((costly + cheap) * 8)
    monkeypatch.setattr("anonymip.runtime.stepping.time", clock)
    assert run_in_steps(clock.work, len(clock.costs), Budget.of(), "cutting") is None
    assert clock.done == len(clock.costs)
    assert max(clock.steps) <= 1.0
    # And the cheap ones are not done one by one.
    assert len(clock.steps) < len(clock.costs) / 5


def test_compilation_does_not_make_steps_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first step of a run often waits for the compiler; its units are as cheap as others."""
    clock = Hours([1e-4] * 1_000)
    monkeypatch.setattr("anonymip.runtime.stepping.time", clock)
    monkeypatch.setattr(compilation_clock, "seconds", 0.0)

    def compiled(amount: int) -> int:
        if not clock.steps:
            clock.now += 20.0
            monkeypatch.setattr(compilation_clock, "seconds", 20.0)
        return clock.work(amount)

    assert run_in_steps(compiled, 1_000, Budget.of(), "cutting") is None
    assert len(clock.steps) < 10


@pytest.mark.parametrize("seconds", [1e-9, 100.0])
def test_no_step_goes_beyond_the_work(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast the clock says that steps are, they are asked for what is left and no more."""
    monkeypatch.setattr(stepping, "_SECONDS_A_STEP", seconds)
    monkeypatch.setattr(stepping, "_LONGEST", seconds)
    asked: list[int] = []

    def step(amount: int) -> int:
        asked.append(amount)
        return sum(asked)

    assert run_in_steps(step, 1_000, Budget(), "counting", first=100) is None
    assert sum(asked) == 1_000
