"""The parent's side of one worker process: its start, its messages and its end."""

from __future__ import annotations

import errno
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from anonymip.runtime.budget import GRACE
from anonymip.runtime.messages import Ready, read_message, write_message

_FOLDER = str(Path(__file__).resolve().parents[2])


class Ended:
    """The last thing in the inbox of a worker that has gone."""


class WorkerProcess:
    """A fresh interpreter that runs one task after the other.

    Threads of their own read and write the pipes, since a worker that hangs does neither.

    Raises
    ------
    OSError
        If no process can be started, or no thread that listens to it.
    """

    def __init__(self) -> None:
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
                self._inbox.put(read_message(cast(BinaryIO, self._process.stdout)))
        except (EOFError, OSError):
            self._inbox.put(Ended())
        except Exception as error:  # noqa: BLE001 - whatever reading a pickle may raise
            self._unreadable = type(error).__name__
            self._inbox.put(Ended())

    def _write(self) -> None:
        # If the worker has gone, the reading thread reports it.
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
