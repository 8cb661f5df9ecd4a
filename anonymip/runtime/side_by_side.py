"""Several computations at a time, in threads or in processes, on one budget."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from anonymip.errors import AnonymipError, InputError, MemoryShort
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.compilation import in_force, run_in_force
from anonymip.runtime.memory import ran_out
from anonymip.runtime.worker_pool import Killed, can_isolate, content_of, run_isolated
from anonymip.status import Stopped

T = TypeVar("T")

#: A computation: called with its budget, it returns what it found, also when its time is over.
Task = Callable[[Budget], T]

_POLL = 0.05


def workers_of(jobs: int) -> int:
    """Return how many computations run at a time; 0 asks for two, or one on one core."""
    if jobs < 0:
        raise InputError(f"jobs is {jobs}", remedy="Give at least 1, or 0 for the number of cores")
    return jobs or min(2, os.cpu_count() or 1)


def run_side_by_side(
    tasks: Sequence[Task[T]],
    budget: Budget,
    *,
    jobs: int,
    in_processes: bool,
    phase: str,
    by_task: bool = False,
    said_of: Callable[[T], Mapping[str, Any]] = lambda _: {},
) -> list[T]:
    """Run computations at the same time and return what they return, in their order.

    `budget`: each gets what is left of the time; where they are more than can run at a time, its
    share. An interrupt reaches all of them. Its listener is called in the caller's thread. `jobs`:
    how many run at a time. `in_processes`: whether in worker processes, for work that Python itself
    does; else in threads, for work of kernels, which do not wait for each other and start at once.
    What cannot be sent to another process is done in threads as well. `by_task`: whether the
    listener hears how many tasks have ended; else the sums of what they report. `said_of`: called
    with what each task returns as it ends: what the listener then hears beside, as
    :meth:`Budget.report` takes it. Raises AnonymipError if a worker process dies; a
    :class:`~anonymip.errors.MemoryShort` if memory ended it. Raises what the first task that fails
    raises; the others are interrupted.
    """
    workers = min(jobs, len(tasks))
    contents: list[bytes | None] = [None] * len(tasks)
    if in_processes and workers > 1 and can_isolate():
        contents = [content_of(task) for task in tasks]
    in_processes = None not in contents
    reports: list[Progress | None] = [None] * len(tasks)
    budgets: list[Budget] = []
    unwanted = threading.Event()
    governing = run_in_force()

    def run(number: int, task: Task[T]) -> T:
        # Those that wait need their time too.
        share = min(1.0, workers / (len(tasks) - number))
        own = Budget()
        own.deadline = budget.share(share).deadline
        if not by_task:
            own.progress = lambda message: reports.__setitem__(number, message)
        budgets.append(own)
        if budget.is_interrupted:
            own.interrupt()
        content = contents[number] if in_processes else None
        with in_force(governing):
            return task(own) if content is None else _in_process(task, content, own, unwanted)

    threads = _threads_at_hand(workers)
    if threads == 0:
        # One after the other, each with its share, and in this process.
        workers, in_processes, found = 1, False, list[T]()
        for number, task in enumerate(tasks):
            # None hears of an interrupt while it runs.
            found.append(run(number, task))
            budget.report(phase, **{"done": number + 1, "total": len(tasks), **said_of(found[-1])})
        return found
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(run, number, task) for number, task in enumerate(tasks)]
        try:
            open_ones, ended = set(futures), 0
            while open_ones:
                done, open_ones = wait(open_ones, _POLL, FIRST_COMPLETED)
                for future in done:
                    result = future.result()
                    ended += 1
                    if by_task:
                        counted = {"done": ended, "total": len(tasks)}
                        budget.report(phase, **{**counted, **said_of(result)})
                if budget.is_interrupted:
                    for own in budgets:
                        own.interrupt()
                known = [message for message in reports if message is not None]
                if known:
                    budget.report(
                        phase,
                        done=sum(message.done or 0 for message in known),
                        total=sum(message.total or 0 for message in known),
                        incumbent=sum(message.incumbent or 0.0 for message in known),
                    )
        finally:
            unwanted.set()
            for future in futures:
                future.cancel()
            for own in budgets:
                own.interrupt()
    return [future.result() for future in futures]


def _threads_at_hand(wanted: int) -> int:
    """Return how many threads can be started at a time, of those that are wanted.

    Where the address space is limited the system refuses them, and a pool of threads that gets
    fewer than it counts on loses tasks.
    """
    go = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(wanted):
            thread = threading.Thread(target=go.wait, daemon=True)
            thread.start()
            started.append(thread)
    except (RuntimeError, MemoryError) as error:
        if not ran_out(error):
            raise
    finally:
        go.set()
        for thread in started:
            thread.join()
    return len(started)


def _in_process(task: Task[T], content: bytes, budget: Budget, unwanted: threading.Event) -> T:
    """Run a task in a worker process; what does not end in time is done here without any.

    Unless it is `unwanted` by then, since another task has failed. A task that has no time from the
    beginning is done here at once: a new worker could only be killed before it is ready.
    """
    reason = budget.stop_reason()
    if reason is None:
        try:
            outcome: T | Killed = run_isolated(content, budget.remaining(), budget, _failure)
        except _NotStarted:
            return task(budget)
        if not isinstance(outcome, Killed):
            return outcome
        reason = outcome.reason
    if unwanted.is_set():
        raise CancelledError
    spent = Budget(time.monotonic())
    if reason is Stopped.INTERRUPT:
        spent.interrupt()
    return task(spent)


#: In what is told of a worker that had no memory: the system kills it, or it says so itself.
_SIGNS = ("SIGKILL", "memory", "MemoryError", "bad_alloc", "can't start new thread")


class _NotStarted(AnonymipError):
    """There is no process for a task, which can be done in this one."""


def _failure(what: str) -> AnonymipError:
    if what.startswith("cannot be started"):
        return _NotStarted(f"a worker process {what}")
    if any(sign in what for sign in _SIGNS):
        return MemoryShort(
            f"memory ended: a worker process {what}",
            remedy="Use jobs = 1, a smaller table, or a machine with more memory",
        )
    return AnonymipError(f"a worker process {what}", remedy="Use jobs = 1, or please report it")
