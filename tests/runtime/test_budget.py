"""Tests of the budget: deadline, interrupt and progress in one object."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from anonymip import Budget, InputError, Progress, Stopped
from anonymip.runtime import budget as clocked
from anonymip.runtime.budget import compilation_clock, compilation_seconds


@pytest.fixture
def python_handler() -> Iterator[None]:
    """Let Ctrl-C mean what it means in Python, whatever the test runner set."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_without_a_limit_there_is_no_end() -> None:
    """No deadline: nothing remains to be counted, nothing stops."""
    budget = Budget.of()
    assert budget.deadline is None
    assert budget.remaining() is None
    assert budget.stop_reason() is None


def test_a_deadline_stops() -> None:
    """A deadline that has passed is a reason to stop, and leaves 0 seconds, never less."""
    budget = Budget(deadline=time.monotonic() - 5)
    assert budget.stop_reason() is Stopped.TIME
    assert budget.remaining() == 0.0


def test_a_time_limit_counts_from_now() -> None:
    """What remains is at most the limit and more than nothing."""
    remaining = Budget.of(1000).remaining()
    assert remaining is not None
    assert 0 < remaining <= 1000


@pytest.mark.parametrize("limit", [0, -1, math.nan, -math.inf, math.inf])
def test_limits_that_are_not_positive_are_refused(limit: float) -> None:
    """The message says what was given and what is accepted."""
    with pytest.raises(InputError, match="time_limit is") as caught:
        Budget.of(limit)
    assert caught.value.remedy == "Give a positive number of seconds"


def test_a_listener_that_cannot_be_called_is_refused() -> None:
    """At once, and not when the first message is due, minutes later."""
    listener: Any = True
    with pytest.raises(InputError, match="progress is True") as caught:
        Budget.of(progress=listener)
    assert "function" in str(caught.value.remedy)


def test_an_interrupt_goes_before_the_deadline() -> None:
    """Who interrupts wants to read that, even if the time was up as well."""
    budget = Budget(deadline=time.monotonic() - 5)
    budget.interrupt()
    assert budget.stop_reason() is Stopped.INTERRUPT


def test_an_interrupt_may_come_from_another_thread() -> None:
    """A notebook's stop button runs elsewhere."""
    budget = Budget.of()
    thread = threading.Thread(target=budget.interrupt)
    thread.start()
    thread.join()
    assert budget.stop_reason() is Stopped.INTERRUPT


def test_progress_reaches_the_listener() -> None:
    """Reports arrive as they are; without a listener nothing happens."""
    heard: list[Progress] = []
    Budget.of(progress=heard.append).report("cut", done=1, total=3, incumbent=2.0, bound=1.0)
    Budget.of().report("cut")
    assert heard == [Progress("cut", 1, 3, 2.0, 1.0)]


@pytest.mark.usefixtures("python_handler")
def test_the_first_interrupt_asks_the_second_insists() -> None:
    """The first Ctrl-C is a request to stop, the second raises KeyboardInterrupt."""
    budget = Budget.of()
    with budget.catching_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        assert budget.stop_reason() is Stopped.INTERRUPT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("python_handler")
@pytest.mark.parametrize("fails", [False, True])
def test_the_former_handler_comes_back(fails: bool) -> None:
    """After the block, an exception in it or not, Ctrl-C means what it meant before."""
    try:
        with Budget.of().catching_interrupts():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            if fails:
                raise ValueError
    except ValueError:
        assert fails
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_catch_nothing() -> None:
    """Signals reach the main thread only; elsewhere the block just runs."""
    before = signal.getsignal(signal.SIGINT)
    seen: list[object] = []

    def run() -> None:
        with Budget.of().catching_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [before]


def test_reports_tell_the_time_left() -> None:
    """With a deadline a listener learns how much time is left; without one, nothing."""
    told: list[Progress] = []
    Budget.of(100, told.append).report("working")
    Budget.of(None, told.append).report("working")
    assert told[0].remaining is not None
    assert 0 < told[0].remaining <= 100
    assert told[1].remaining is None


def test_parts_of_a_budget_report_the_time_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listener does not hear the time left rise when one part ends and the next begins."""
    ticks = count(1000)
    monkeypatch.setattr(clocked, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 100))
    told: list[Progress] = []
    whole = Budget.of(100, told.append)
    for part in (whole.share(0.25), whole.share(0.5).share(0.5), whole.renewed(3)):
        assert (part.remaining() or 0.0) <= 26
        part.report("working")
    # Without a limit of the whole, the run's own is what is known.
    Budget.of(None, told.append).renewed(3).report("working")
    left = [message.remaining or 0.0 for message in told]
    assert all(90 < seconds <= 100 for seconds in left[:3])
    assert left[:3] == sorted(left[:3], reverse=True)
    assert 2 < left[3] <= 3


def test_compilation_counts_like_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit is what a user's clock shows: seconds of the compiler prolong none."""
    early, expired = Budget.of(100.0), Budget(deadline=time.monotonic() - 1.0)
    monkeypatch.setattr(compilation_clock, "seconds", compilation_clock.seconds + 50.0)
    assert (early.remaining() or 0.0) <= 100.0
    assert expired.stop_reason() is Stopped.TIME


def test_compilations_at_the_same_time_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled here and in worker processes at once takes the time of the longest."""
    now = [100.0]
    monkeypatch.setattr(clocked, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(compilation_clock, "seconds", 5.0)
    assert compilation_clock.begin()
    assert not compilation_clock.begin()
    now[0] += 8.0
    compilation_clock.end()
    assert compilation_seconds() == 5.0
    compilation_clock.end()
    assert compilation_seconds() == 13.0


def test_a_limit_may_have_begun_before() -> None:
    """Its seconds count from the moment that is given."""
    now = time.monotonic()
    assert Budget.of(10.0, since=now - 4.0).deadline == now + 6.0
    assert Budget.of(10.0, since=now - 40.0).stop_reason() is Stopped.TIME
    assert Budget.of(since=now).deadline is None


def test_a_budget_leaves_time_for_what_comes_after_it() -> None:
    """It ends so much earlier, yet has what it has at least, and shares the interrupt."""
    whole = Budget.of(1000.0)
    part = whole.leaving(300.0)
    assert whole.deadline is not None
    assert part.deadline == whole.deadline - 300.0
    late = whole.leaving(3000.0, least=50.0)
    assert late.deadline is not None
    assert 0 < late.deadline - time.monotonic() <= 50.0
    assert Budget().leaving(5.0).deadline is None
    part.interrupt()
    assert whole.is_interrupted
