"""Run a task in a worker process that is killed if it does not end in time.

Native code that ignores its time limit cannot be stopped from within its own process. Workers
are fresh interpreters, no forks and no :mod:`multiprocessing`: scripts need no main guard,
notebooks work, and nothing of the parent's state leaks into a solve. A worker is started at
the first task and kept for later ones; tasks that run at the same time get one worker each.
"""

from __future__ import annotations

import atexit
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
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from anonymip.errors import SolverError
from anonymip.runtime.budget import GRACE, Budget
from anonymip.runtime.messages import (
    Interrupt,
    Paths,
    Raised,
    Ready,
    Report,
    Request,
    Returned,
    read_message,
    write_message,
)
from anonymip.status import Stopped

T = TypeVar("T")

_POLL = 0.05
_FOLDER = str(Path(__file__).resolve().parents[2])


@dataclass(frozen=True)
class Killed:
    """A task that had to be killed.

    Parameters
    ----------
    reason
        ``TIME`` or ``INTERRUPT``.
    bound
        The last bound that it reported; None if none.
    """

    reason: Stopped
    bound: float | None


class _Ended:
    """Stands in the inbox after the last message of a worker that has gone."""


class _Worker:
    """The parent's side of one worker process.

    Threads of their own read and write the pipes, since a worker that hangs does neither.
    """

    def __init__(self) -> None:
        try:
            # Not unlinked by name: the file vanishes when both processes have closed it.
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
            # -P: a module in the working directory must not shadow those of the standard library.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "anonymip.runtime.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": _python_path()},
                start_new_session=True,
            )
        except OSError as error:
            raise SolverError(
                f"no process can be started for the solver ({error.strerror})",
                remedy="Free memory, processes or disk space, or use a heuristic",
            ) from error
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=target, name="anonymip-worker", daemon=True)
            for target in (self._read, self._write)
        ]
        for thread in self._threads:
            thread.start()
        self.is_ready = False
        self.send(Paths(tuple(sys.path)))

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(read_message(cast(BinaryIO, self._process.stdout)))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._inbox.put(_Ended())

    def _write(self) -> None:
        # If the worker has gone, the reading thread tells.
        with suppress(OSError, ValueError):
            while (message := self._outbox.get()) is not None:
                write_message(cast(BinaryIO, self._process.stdin), message)

    def send(self, message: object) -> None:
        """Hand a message to the writing thread."""
        self._outbox.put(message)

    def receive(self, timeout: float) -> object | None:
        """Return the next message, or None if none came in time."""
        try:
            message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        self.is_ready = self.is_ready or isinstance(message, Ready)
        return message

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def death(self) -> str:
        """Return how the process ended and the last line that it printed."""
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
        said = [line.strip() for line in lines if line.strip()]
        return f"{how} and printed last: {said[-1]}" if said else how

    def end(self) -> None:
        """Kill the process, if it still runs, and close its pipes."""
        self._outbox.put(None)
        if self.is_alive():
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join(GRACE)
        for stream in (self._process.stdout, self._process.stdin):
            if stream is not None:
                with suppress(OSError):  # what was never written is of no use now
                    stream.close()
        self._errors.close()


def _python_path() -> str:
    before = os.environ.get("PYTHONPATH")
    return _FOLDER if not before else os.pathsep.join((_FOLDER, before))


class _Pool:
    """The workers of this process that wait for a task."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew: after a fork the workers belong to the parent."""
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._numbers = itertools.count(1)

    def take(self) -> _Worker:
        """Return an idle worker, or a new one."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                worker.end()
        return _Worker()

    def give_back(self, worker: _Worker) -> None:
        """Keep a worker for the next task."""
        with self._lock:
            self._idle.append(worker)

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


def prepare() -> None:
    """Start a worker, if none waits, so that it loads while the caller does something else."""
    _pool.give_back(_pool.take())


def run_isolated(
    task: Callable[[Budget], T] | bytes, time_limit: float | None, budget: Budget
) -> T | Killed:
    """Run a task in a worker process and return what it returns.

    Parameters
    ----------
    task
        Called with a budget whose listener and interrupt are those of `budget`; or its pickle.
        It must come from a module that the worker can import.
    time_limit
        Seconds that the task has; `GRACE` seconds later it is killed. None for no limit.
    budget
        An interrupt is passed on, and the task is killed if it does not end `GRACE` seconds
        later. The listener is called in the caller's thread.

    Returns
    -------
    T or Killed
        What the task returned.

    Raises
    ------
    AnonymipError
        What the task raised.
    SolverError
        If the task raised anything else, or its process died.
    """
    content = task if isinstance(task, bytes) else pickle.dumps(task)
    began = time.monotonic()
    deadline = None if time_limit is None else began + time_limit
    worker, clean = _pool.take(), False
    try:
        with tempfile.TemporaryDirectory(
            prefix="anonymip-solve-", ignore_cleanup_errors=True
        ) as scratch:
            try:
                watch = _Watch(worker, _pool.number(), deadline, budget)
                outcome = watch.run(content, scratch)
                clean = not isinstance(outcome, Killed)
            except _TaskFailed as failure:
                clean = True
                raise failure.error from None
            finally:
                if not clean:
                    worker.end()  # before its folder is removed
    finally:
        if clean:
            _pool.give_back(worker)
    return cast("T | Killed", outcome)


class _TaskFailed(Exception):
    """Carries what a task raised out of a worker that is fit for the next one."""

    def __init__(self, error: Exception) -> None:
        self.error = error


@dataclass
class _Watch:
    """One task in its worker, watched until it ends or is given up."""

    worker: _Worker
    number: int
    deadline: float | None
    budget: Budget
    asked: float | None = None
    bound: float | None = None

    def run(self, content: bytes, scratch: str) -> object:
        """Send the task and return what came of it, or a `Killed` if it must be killed."""
        sent = False
        while True:
            # Sent when the worker is ready, so that its start counts as time spent.
            if not sent and self.worker.is_ready:
                self._send(content, scratch)
                sent = True
            message = self.worker.receive(_POLL)
            if isinstance(message, Returned) and message.number == self.number:
                return message.value
            self._take_in(message)
            reason = self._given_up()
            if reason is not None:
                return self._last_chance(reason)

    def _send(self, content: bytes, scratch: str) -> None:
        remaining = None
        if self.deadline is not None:
            remaining = max(0.1, self.deadline - time.monotonic())
        self.worker.send(Request(self.number, content, remaining, scratch))
        if self.asked is not None:
            self.worker.send(Interrupt(self.number))

    def _take_in(self, message: object | None) -> None:
        if isinstance(message, _Ended):
            raise SolverError(
                f"the solver's process {self.worker.death()}",
                remedy="Try another solver, or a smaller model if memory was short",
            )
        if isinstance(message, Raised) and message.number == self.number:
            raise _TaskFailed(message.error or _failed(message.text))
        if isinstance(message, Report) and message.number == self.number:
            if message.bound is not None:
                self.bound = message.bound
            self.budget.report(
                message.phase,
                done=message.done,
                total=message.total,
                incumbent=message.incumbent,
                bound=message.bound,
            )

    def _given_up(self) -> Stopped | None:
        """Pass an interrupt on; return why the task must be killed now, or None."""
        now = time.monotonic()
        if self.asked is None and self.budget.is_interrupted:
            self.asked = now
            self.worker.send(Interrupt(self.number))
        if self.asked is not None and now >= self.asked + GRACE:
            return Stopped.INTERRUPT
        if self.deadline is not None and now >= self.deadline + GRACE:
            return Stopped.TIME
        return None

    def _last_chance(self, reason: Stopped) -> object:
        """Return the answer if it has come already behind slow listeners, else the kill."""
        while (message := self.worker.receive(0)) is not None:
            if isinstance(message, Returned) and message.number == self.number:
                return message.value
            if isinstance(message, (Raised, _Ended)):
                self._take_in(message)
            if isinstance(message, Report) and message.bound is not None:
                self.bound = message.bound
        return Killed(reason, self.bound)


def _failed(text: str) -> SolverError:
    return SolverError(
        f"the solver's process failed with {text}",
        remedy="Try another solver; SolverOptions.log keeps the solver's log",
    )
