"""Tests of computations that run at the same time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from anonymip import AnonymipError, Budget, InputError, NoSolution, Progress, Stopped
from anonymip.runtime.side_by_side import run_side_by_side, workers_of
from tests.runtime import tasks as work


def run(
    tasks: Sequence[Callable[[Budget], object]],
    budget: Budget | None = None,
    jobs: int = 2,
    in_processes: bool = False,
) -> list[object]:
    """Run tasks on an ample budget."""
    return run_side_by_side(
        tasks, budget or Budget(), jobs=jobs, in_processes=in_processes, phase="testing"
    )


@pytest.mark.parametrize("in_processes", [False, True])
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_tasks(in_processes: bool, jobs: int) -> None:
    """Whatever ends first."""
    tasks = [partial(work.squared, number=number) for number in range(4)]
    assert run(tasks, jobs=jobs, in_processes=in_processes) == [0, 1, 4, 9]


def test_in_processes_means_another_process() -> None:
    """Unless one task runs at a time, or a task cannot be sent."""
    here = os.getpid()
    tasks: list[Callable[[Budget], object]] = [work.process_number] * 2
    assert here not in run(tasks, in_processes=True)
    assert run(tasks, in_processes=False) == [here, here]
    assert run(tasks, in_processes=True, jobs=1) == [here, here]
    assert run([*tasks, lambda budget: os.getpid()], in_processes=True) == [here, here, here]


def test_tasks_run_at_the_same_time() -> None:
    """Two that wait for each other both end."""
    meeting = threading.Barrier(2, timeout=60)
    assert run([lambda budget: meeting.wait() >= 0] * 2) == [True, True]


@pytest.mark.parametrize("in_processes", [False, True])
def test_an_interrupt_reaches_all(in_processes: bool) -> None:
    """Tasks that run stop, and those that wait begin interrupted."""
    budget = Budget()
    threading.Timer(0.3, budget.interrupt).start()
    found = run([work.wait_for_interrupt] * 3, budget, in_processes=in_processes)
    assert found == [str(Stopped.INTERRUPT)] * 3


@pytest.mark.parametrize("in_processes", [False, True])
def test_the_time_is_shared_where_tasks_wait(in_processes: bool) -> None:
    """All of four tasks, two at a time, get some of it, and none more than is left."""
    budget = Budget.of(60.0)
    found = run([work.remaining] * 4, budget, in_processes=in_processes)
    assert all(isinstance(left, float) for left in found)
    first, second, third, last = (float(str(left)) for left in found)
    assert 0 < first <= 30
    assert 0 < second <= 40
    assert 0 < third <= 60
    assert 0 < last <= 60


def test_the_first_failure_ends_all() -> None:
    """Its error is raised, and the others are stopped, not waited for."""
    with pytest.raises(NoSolution, match="as told"):
        run([work.failing, work.wait_for_interrupt, work.wait_for_interrupt])


@pytest.mark.thorough
def test_a_process_that_does_not_end_in_time_is_replaced() -> None:
    """Its task is done here without time: whoever asks gets an answer."""
    found = run([work.deaf_elsewhere] * 2, Budget.of(0.5), in_processes=True)
    assert found == [Stopped.TIME.name] * 2


def test_a_process_that_dies_is_an_error() -> None:
    """It is named with what became of it and what to do; no solver is blamed."""
    with pytest.raises(AnonymipError, match=r"a worker process ended with exit code 3") as caught:
        run([work.dying] * 2, in_processes=True)
    assert type(caught.value) is AnonymipError
    assert "jobs = 1" in str(caught.value)


@pytest.mark.thorough
def test_a_process_that_ignores_an_interrupt_is_replaced() -> None:
    """Its task is done here with the same reason to stop."""
    budget = Budget()
    threading.Timer(0.3, budget.interrupt).start()
    found = run([work.deaf_elsewhere] * 2, budget, in_processes=True)
    assert found == [Stopped.INTERRUPT.name] * 2


@pytest.mark.parametrize("interrupted", [False, True])
def test_without_time_no_process_is_asked(interrupted: bool) -> None:
    """Its task is done here, instead of after two seconds in which a worker cannot even start."""
    budget = Budget() if interrupted else Budget(time.monotonic())
    if interrupted:
        budget.interrupt()
    assert run([work.process_number] * 2, budget, in_processes=True) == [os.getpid()] * 2


@pytest.mark.thorough
def test_what_is_killed_after_a_failure_is_not_done_again() -> None:
    """Nobody waits for it: the failure of the other task is what is raised."""
    begun: list[int] = []
    with pytest.raises(NoSolution, match="as told"):
        run([work.failing, Deaf(begun)], in_processes=True)
    assert begun == []


class Deaf:
    """A task that does not listen, and notes where it is called again."""

    def __init__(self, begun: list[int]) -> None:
        self.begun = begun

    def __reduce__(self) -> tuple[object, ...]:
        return partial, (work.deaf,)

    def __call__(self, budget: Budget) -> None:
        """Be noted."""
        self.begun.append(1)


def test_tasks_that_ended_are_counted() -> None:
    """A listener may ask for tasks instead of sums, each once and also from processes."""
    heard: list[Progress] = []
    tasks = [partial(work.squared, number=number) for number in range(4)]
    budget = Budget(progress=heard.append)
    run_side_by_side(tasks, budget, jobs=2, in_processes=True, phase="testing", by_task=True)
    assert [(message.done, message.total) for message in heard] == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_results_are_heard_as_they_come(monkeypatch: pytest.MonkeyPatch, one_by_one: bool) -> None:
    """What is said of each result stands beside how many have ended."""
    if one_by_one:
        monkeypatch.setattr("anonymip.runtime.side_by_side._threads_at_hand", lambda wanted: 0)
    told: list[Progress] = []
    tasks: list[Callable[[Budget], int]] = [partial(work.squared, number=n) for n in (2, 2, 2)]
    run_side_by_side(
        tasks,
        Budget(progress=told.append),
        jobs=2,
        in_processes=False,
        phase="testing",
        by_task=True,
        said_of=lambda result: {"note": f"found {result}"},
    )
    assert [(one.done, one.note) for one in told] == [(n, "found 4") for n in (1, 2, 3)]


def test_reports_are_summed_and_heard_in_the_callers_thread() -> None:
    """Work done, work in all and losses of all tasks."""
    heard: list[tuple[Progress, int]] = []
    budget = Budget.of(60.0, lambda message: heard.append((message, threading.get_ident())))
    done = threading.Event()

    def task(own: Budget) -> None:
        own.report("inner", done=2, total=5, incumbent=1.5)
        assert done.wait(60)

    def ender(own: Budget) -> None:
        while not heard or heard[-1][0].done != 4:
            time.sleep(0.01)
        done.set()

    run([task, task, ender], budget, jobs=3)
    message, thread = heard[-1]
    assert thread == threading.get_ident()
    assert (message.phase, message.done, message.total) == ("testing", 4, 10)
    assert message.incumbent == 3.0
    assert message.remaining is not None


def test_how_many_run_at_a_time() -> None:
    """As asked; by default two where there are two cores."""
    assert workers_of(3) == 3
    assert workers_of(0) == min(2, os.cpu_count() or 1)
    with pytest.raises(InputError, match="jobs is -1"):
        workers_of(-1)
