"""The worker process: runs tasks that its parent sends, and can be killed.

Started by :mod:`anonymip.runtime.worker_pool` as ``python -m anonymip.runtime.worker``. Tasks
come in and answers go out by what was standard input and output at the start; after that, nothing a
task prints gets there. The process ends when its parent closes it. By itself it loads neither Pyomo
nor numba.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from anonymip.errors import AnonymipError, InputWarning
from anonymip.runtime import messages
from anonymip.runtime.budget import Budget, Progress, compilation_clock
from anonymip.runtime.compilation import CompilationStopped, RunInForce, in_force


class _Worker:
    """Runs tasks one after the other; a thread of its own listens to the parent meanwhile."""

    def __init__(self, parent: Any) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[tuple[messages.Request, Budget]] = queue.SimpleQueue()
        self._current: tuple[int, Budget] | None = None
        self._scratch: str | None = None

    def run(self) -> None:
        """Serve until the parent closes the connection."""
        threading.Thread(target=self._listen, name="parent", daemon=True).start()
        self._send(messages.Ready())
        while True:
            request, budget = self._waiting.get()
            _settle(request)
            tempfile.tempdir = request.scratch
            compilation_clock.listener = lambda begins, number=request.number: self._send(
                messages.Compiling(number, begins)
            )
            self._send(_answer(request, budget))

    def _listen(self) -> None:
        try:
            while True:
                message = self._parent.recv()
                if isinstance(message, messages.Request):
                    self._scratch = message.scratch
                    budget = self._budget(message)
                    self._current = (message.number, budget)
                    self._waiting.put((message, budget))
                elif isinstance(message, messages.Interrupt):
                    if self._current is not None and self._current[0] == message.number:
                        self._current[1].interrupt()
                else:
                    raise TypeError(f"unexpected message {message!r}")
        finally:
            # The parent has gone, or is out of step: no answer is awaited, and no other
            # process clears up.
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)
            os._exit(0)

    def _budget(self, request: messages.Request) -> Budget:
        deadline = None if request.remaining is None else time.monotonic() + request.remaining

        def send(progress: Progress) -> None:
            self._send(messages.Report(request.number, progress))

        return Budget(deadline, send)

    def _send(self, message: object) -> None:
        with self._lock:
            self._parent.send(message)


def _settle(request: messages.Request) -> None:
    """Take over what may have changed in the parent since this process began."""
    sys.path[:] = request.search
    if dict(os.environ) != request.environment:
        os.environ.clear()
        os.environ.update(request.environment)
    if request.folder is not None:
        with suppress(OSError):  # it may have been removed
            os.chdir(request.folder)


def _answer(
    request: messages.Request, budget: Budget
) -> messages.Returned | messages.Raised | messages.GivenUp:
    """Return what the task of a request gave, in a form that certainly can be sent."""
    try:
        with in_force(RunInForce(budget)):
            value = pickle.loads(request.task)(budget)
        pickle.dumps(value)
    except CompilationStopped as stopped:
        return messages.GivenUp(request.number, stopped.reason)
    except AnonymipError as error:
        return messages.Raised(request.number, error if _can_be_read(error) else None, str(error))
    except Exception as error:  # noqa: BLE001 - handed to the parent, which raises it
        return messages.Raised(request.number, None, f"{type(error).__name__}: {error}")
    return messages.Returned(request.number, value)


def _can_be_read(error: AnonymipError) -> bool:
    """Return whether an exception, perhaps of another author's class, arrives as it is."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever its class does
        return False
    return True


def main() -> None:
    """Run the worker of this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What is said to people of their surroundings is the parent's to say; of this process the last
    # line is read where it dies.
    warnings.simplefilter("ignore", InputWarning)
    parent = Connection(os.dup(0))
    # What native code prints goes where its errors go, to a file of the parent's.
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    _Worker(parent).run()


if __name__ == "__main__":
    main()
