"""Several computations at a time, in threads or in processes, on one budget."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from anonymip.errors import InputError
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.isolation import Killed, can_isolate, run_isolated

T = TypeVar("T")

#: A computation: called with its budget, it returns what it found, also when its time is over.
Task = Callable[[Budget], T]

_POLL = 0.05


def workers_of(jobs: int) -> int:
    """Return how many computations run at a time; 0 asks for two, or one on one core.

    Raises
    ------
    InputError
        If the number is negative.
    """
    if jobs < 0:
        raise InputError(f"jobs is {jobs}", remedy="Give at least 1, or 0 for the number of cores")
    return jobs or min(2, os.cpu_count() or 1)


def run_side_by_side(
    tasks: Sequence[Task[T]],
    budget: Budget,
    *,
    jobs: int,
    apart: bool,
    phase: str,
) -> list[T]:
    """Run computations at the same time and return what they return, in their order.

    Parameters
    ----------
    tasks
        The computations.
    budget
        Each gets what is left of the time; where they are more than can run at a time, its share.
        An interrupt reaches all of them. Its listener hears the sums of what they report, in the
        caller's thread.
    jobs
        How many run at a time.
    apart
        Whether in processes of their own, for work that Python itself does; else in threads, for
        work of kernels, which do not wait for each other and start at once. What cannot be sent to
        another process is done in threads as well.
    phase
        What is being done, for people.

    Raises
    ------
    Exception
        What the first task that fails raises; the others are interrupted.
    """
    workers = min(jobs, len(tasks))
    apart = apart and workers > 1 and can_isolate() and all(map(_can_be_sent, tasks))
    heard: list[Progress | None] = [None] * len(tasks)
    budgets: list[Budget] = []

    def run(number: int, task: Task[T]) -> T:
        # Those that wait need their time too.
        share = min(1.0, workers / (len(tasks) - number))
        own = Budget()
        own.deadline = budget.share(share).deadline
        own.progress = lambda message: heard.__setitem__(number, message)
        budgets.append(own)
        if budget.is_interrupted:
            own.interrupt()
        return _apart(task, own) if apart else task(own)

    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(run, number, task) for number, task in enumerate(tasks)]
        try:
            _attend(futures, budget, budgets, heard, phase)
        finally:
            for future in futures:
                future.cancel()
            for own in budgets:
                own.interrupt()
    return [future.result() for future in futures]


def _attend(
    futures: list[Future[T]],
    budget: Budget,
    budgets: list[Budget],
    heard: list[Progress | None],
    phase: str,
) -> None:
    """Wait for the tasks; hand an interrupt on, report what they do together."""
    open_ones = set(futures)
    while open_ones:
        done, open_ones = wait(open_ones, _POLL, FIRST_EXCEPTION)
        for future in done:
            future.result()
        if budget.is_interrupted:
            for own in budgets:
                own.interrupt()
        told = [message for message in heard if message is not None]
        if told:
            budget.report(
                phase,
                done=sum(message.done or 0 for message in told),
                total=sum(message.total or 0 for message in told),
                incumbent=sum(message.incumbent or 0.0 for message in told),
            )


def _can_be_sent(task: Task[T]) -> bool:
    try:
        pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _apart(task: Task[T], budget: Budget) -> T:
    """Run a task in a process of its own; what does not end in time is done here without any."""
    outcome = run_isolated(task, budget.remaining(), budget)
    if isinstance(outcome, Killed):
        spent = Budget(time.monotonic())
        return task(spent)
    return outcome
