"""Run a task in a worker process that is killed if it does not end in time.

Native code that ignores its time limit cannot be stopped from within its own process, and work
that Python does itself runs on one core in a process. Workers are fresh interpreters, no forks and
no processes of :mod:`multiprocessing`: scripts need no main guard, notebooks work, and nothing of
the parent's state leaks into a task. A worker is started at the first task and kept for later ones;
tasks that run at the same time (:mod:`anonymip.runtime.side_by_side`) get one worker each.
"""

from __future__ import annotations

import atexit
import errno
import itertools
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from typing import TypeVar, cast

from anonymip.errors import AnonymipError, InputError, SolverError, argument
from anonymip.runtime import messages
from anonymip.runtime.budget import GRACE, Budget, compilation_clock
from anonymip.status import Stopped

_FOLDER = str(Path(__file__).resolve().parents[2])


class Ended:
    """The last thing in the inbox of a worker that has gone."""


class WorkerProcess:
    """A fresh interpreter that runs one task after the other.

    Threads of their own read and write, since a worker that hangs does neither. Raises
    OSError if no process can be started, or no thread that listens to it.
    """

    def __init__(self) -> None:
        # Not unlinked by name: the file vanishes when both processes have closed it.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        before = os.environ.get("PYTHONPATH")
        self._connection, theirs = Pipe()
        # -P: a module in the working directory must not shadow those of the standard library.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "anonymip.runtime.worker"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=self._errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (_FOLDER, before)))},
            start_new_session=True,
        )
        theirs.close()
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=target, name="anonymip-worker", daemon=True)
            for target in (self._read, self._write)
        ]
        self.is_ready = False
        self._unreadable: str | None = None
        started: list[threading.Thread] = []
        try:
            for thread in self._threads:
                thread.start()
                started.append(thread)
        except RuntimeError as error:
            self._threads = started
            self.end()
            raise OSError(errno.EAGAIN, str(error)) from error

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(self._connection.recv())
        except (EOFError, OSError):
            self._inbox.put(Ended())
        except Exception as error:  # noqa: BLE001 - whatever reading a pickle may raise
            self._unreadable = type(error).__name__
            self._inbox.put(Ended())

    def _write(self) -> None:
        # If the worker has gone, the reading thread reports it.
        with suppress(OSError, ValueError):
            while (message := self._outbox.get()) is not None:
                self._connection.send(message)

    def send(self, message: object) -> None:
        """Hand a message to the writing thread."""
        self._outbox.put(message)

    def receive(self, timeout: float) -> object | None:
        """Return the next message, or None if none came in time."""
        try:
            message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        self.is_ready = self.is_ready or isinstance(message, messages.Ready)
        return message

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def death(self) -> str:
        """Return how the process ended and the last line that it printed."""
        if self._unreadable is not None:
            return f"sent what cannot be read here ({self._unreadable})"
        code = self._process.wait()
        if code < 0:
            try:
                how = f"was ended by {signal.Signals(-code).name}"
            except ValueError:
                how = f"was ended by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        printed = [line.strip() for line in lines if line.strip()]
        return f"{how} and printed last: {printed[-1]}" if printed else how

    def end(self) -> None:
        """Kill the process, if it still runs, and close what led to it."""
        self._outbox.put(None)
        if self.is_alive():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join(GRACE)
        self._connection.close()
        self._errors.close()


T = TypeVar("T")

#: Makes the exception of a worker that did not do its work from what happened to it.
Failure = Callable[[str], AnonymipError]

_POLL = 0.05
_MOST_IDLE = 2  # idle workers that are kept: what they have loaded stays in memory
_NO_TASK = 0  # the number of what nobody waits for


@dataclass(frozen=True)
class Killed:
    """A task that had to be killed, or stopped where it could return nothing."""

    reason: Stopped  # ``TIME`` or ``INTERRUPT``
    bound: float | None  # the last one that it reported


def keep_log() -> str:
    """Return the advice to have a solver tell what it does."""
    kept = argument("log", "FILE", option="'anonymip solve --log FILE'")
    return f"{kept} keeps the solver's log"


def solver_failure(what: str) -> AnonymipError:
    """Return the exception that a worker which runs a solver is replaced by."""
    return SolverError(
        f"the solver's process {what}",
        remedy=f"Try another solver, or a smaller model if memory was short; {keep_log()}",
    )


class _Pool:
    """The workers of this process that wait for a task."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Be empty: after a fork the workers belong to the parent."""
        self._lock = threading.Lock()
        self._idle: list[WorkerProcess] = []
        self._numbers = itertools.count(1)

    def take(self, failure: Failure) -> WorkerProcess:
        """Return an idle worker, or a new one."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.end()
        try:
            return WorkerProcess()
        except OSError as error:
            raise failure(f"cannot be started ({error.strerror})") from error

    def give_back(self, worker: WorkerProcess) -> None:
        """Keep a worker for a later task, unless enough wait for one."""
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(worker)
                return
        worker.end()

    def number(self) -> int:
        """Return a number that no other task of this process has."""
        return next(self._numbers)

    def end(self) -> None:
        """End all idle workers."""
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.end()


_pool = _Pool()
atexit.register(_pool.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def can_isolate() -> bool:
    """Return whether this process knows an interpreter to run a worker with."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def content_of(task: Callable[[Budget], object]) -> bytes | None:
    """Return a task as bytes; None if it cannot leave this process."""
    try:
        return pickle.dumps(task)
    except (pickle.PicklingError, AttributeError, TypeError, InputError):
        return None


def prepare(loading: Callable[[Budget], object]) -> None:
    """Start a worker, if none waits, that loads what a task needs while the caller goes on.

    `loading`: done in the worker; what goes wrong there, the task itself meets and tells.
    """
    content = content_of(loading)
    if content is not None:
        with suppress(SolverError):
            worker = _pool.take(solver_failure)
            if not worker.is_ready:
                worker.send(_request(_NO_TASK, content))
            _pool.give_back(worker)


def end_idle_workers() -> None:
    """End the workers that wait for a task: what they have taken of the memory is given back."""
    _pool.end()


def run_isolated(
    task: Callable[[Budget], T] | bytes,
    time_limit: float | None,
    budget: Budget,
    failure: Failure = solver_failure,
    *,
    grace: float = GRACE,
) -> T | Killed:
    """Run a task in a worker process and return what it returns.

    `task`: called with a budget whose listener and interrupt are those of `budget`; or its pickle.
    It must come from a module that the worker can import. `time_limit`: seconds that the task has;
    `grace` seconds later it is killed. None for no limit. `budget`: an interrupt is passed on, and
    the task is killed if it does not end `grace` seconds later. The listener is called in the
    caller's thread. `failure`: makes the exception for a worker that fails. `grace`: seconds that
    the task has to end in: more, if it does much with what it found so far. Returns: what the task
    returned. Raises AnonymipError: what the task raised. Raises SolverError: or what `failure`
    makes: the task raised anything else, or its process died.
    """
    content = task if isinstance(task, bytes) else pickle.dumps(task)
    began = time.monotonic()
    deadline = None if time_limit is None else began + time_limit
    worker = _pool.take(failure)
    watch = _Watch(worker, _pool.number(), deadline, budget, failure, grace)
    try:
        with tempfile.TemporaryDirectory(
            prefix="anonymip-solve-", ignore_cleanup_errors=True
        ) as scratch:
            try:
                return cast("T | Killed", watch.run(content, scratch))
            finally:
                watch.compiles(False)
                if not watch.has_ended:
                    worker.end()  # before its folder is removed
    finally:
        if watch.has_ended:
            _pool.give_back(worker)


def _request(
    number: int, content: bytes, remaining: float | None = None, scratch: str | None = None
) -> messages.Request:
    """Return what a worker is sent to do a task as if it were done here and now."""
    folder = None
    with suppress(OSError):  # it may have been removed
        folder = os.getcwd()
    return messages.Request(
        number, content, remaining, scratch, tuple(sys.path), dict(os.environ), folder
    )


@dataclass
class _Watch:
    """One task in its worker, watched until it ends or is given up."""

    worker: WorkerProcess
    number: int
    deadline: float | None
    budget: Budget
    failure: Failure
    grace: float = GRACE
    interrupted: float | None = None
    bound: float | None = None
    compiling: bool = False
    has_ended: bool = False  # whatever the task ended with, its worker is fit for the next one

    def run(self, content: bytes, scratch: str) -> object:
        """Send the task and return what came of it; a `Killed` if nothing came in time."""
        sent = False
        while True:
            # Sent when the worker is ready, so that its start counts as time spent.
            if not sent and self.worker.is_ready:
                self._send(content, scratch)
                sent = True
            if ended := self._take_in(self.worker.receive(_POLL)):
                return ended[0]
            reason = self._given_up()
            if reason is not None:
                # The answer may have come already, behind slow listeners.
                while (message := self.worker.receive(0)) is not None:
                    if ended := self._take_in(message, late=True):
                        return ended[0]
                return Killed(reason, self.bound)

    def _send(self, content: bytes, scratch: str) -> None:
        remaining = None
        if self.deadline is not None:
            remaining = max(0.1, self.deadline - time.monotonic())
        self.worker.send(_request(self.number, content, remaining, scratch))
        if self.interrupted is not None:
            self.worker.send(messages.Interrupt(self.number))

    def _take_in(self, message: object | None, *, late: bool = False) -> tuple[object] | None:
        """Do what a message says; return what came of the task, if that is its end.

        `late`: whether it is time no more to hand on what is reported.
        """
        if isinstance(message, Ended):
            raise self.failure(self.worker.death())
        if getattr(message, "number", None) != self.number:
            return None  # nothing, or about another task
        if isinstance(message, messages.Report):
            if message.progress.bound is not None:
                self.bound = message.progress.bound
            if not late:
                self.budget.hand_on(message.progress)
            return None
        if isinstance(message, messages.Compiling):
            self.compiles(message.begins)
            return None
        self.has_ended = True
        if isinstance(message, messages.Raised):
            raise message.error or self.failure(f"failed with {message.text}")
        if isinstance(message, messages.GivenUp):
            return (Killed(message.reason, self.bound),)
        return (cast(messages.Returned, message).value,)

    def compiles(self, begins: bool) -> None:
        """Count the seconds in which the task compiles like those in which this process does."""
        if begins:
            compilation_clock.begin()
        elif self.compiling:
            compilation_clock.end()
        self.compiling = begins

    def _given_up(self) -> Stopped | None:
        """Pass an interrupt on; return why the task must be killed now, or None."""
        now = time.monotonic()
        if self.interrupted is None and self.budget.is_interrupted:
            self.interrupted = now
            self.worker.send(messages.Interrupt(self.number))
        if self.interrupted is not None and now >= self.interrupted + self.grace:
            return Stopped.INTERRUPT
        if self.deadline is not None and now >= self.deadline + self.grace:
            return Stopped.TIME
        return None
