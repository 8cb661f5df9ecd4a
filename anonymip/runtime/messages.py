"""The messages between a worker process and the process that started it.

They go through a connection of :mod:`multiprocessing`. A task travels as a pickle of its own inside
its message: if it cannot be read on the other side, the message that names it still can.
"""

from __future__ import annotations

from dataclasses import dataclass

from anonymip.runtime.budget import Progress
from anonymip.status import Stopped


@dataclass(frozen=True)
class Request:
    """Run a task: a callable that takes a budget."""

    number: int  # repeated in every message about this request
    task: bytes  # pickle of the callable
    remaining: float | None  # seconds until its budget's deadline; None for none
    scratch: str | None  # folder for temporary files; the parent removes it: a killed worker cannot
    search: tuple[str, ...]  # where the worker finds modules, as its parent does at this moment
    environment: dict[str, str]  # the environment variables of its parent at this moment
    folder: str | None  # the working directory of its parent at this moment; None if it was removed


@dataclass(frozen=True)
class Interrupt:
    """Ask the task to stop at its next opportunity."""

    number: int


@dataclass(frozen=True)
class Ready:
    """The worker has loaded what it needs."""


@dataclass(frozen=True)
class Report:
    """What the task reported to its budget."""

    number: int
    progress: Progress


@dataclass(frozen=True)
class Compiling:
    """The task begins to compile kernels, or has ended it: no reported seconds include that."""

    number: int
    begins: bool


@dataclass(frozen=True)
class GivenUp:
    """The task's budget ended while it compiled kernels, with nothing to return."""

    number: int
    reason: Stopped


@dataclass(frozen=True)
class Returned:
    """What the task returned."""

    number: int
    value: object


@dataclass(frozen=True)
class Raised:
    """What the task raised; other exceptions than the toolkit's own as their text alone."""

    number: int
    error: Exception | None
    text: str
