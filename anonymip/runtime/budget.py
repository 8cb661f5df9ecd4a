"""The one stop object: deadline, interrupt and progress of a computation."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from numbers import Real
from types import FrameType

from anonymip.errors import InputError, argument
from anonymip.status import Stopped

_LEAST_WORK = 0.02  # less work than this, in seconds, is too little to judge the machine by
#: Seconds that a process has after its time limit, or after an interrupt, before it is killed.
GRACE = 2.0


@dataclass(frozen=True)
class Progress:
    """One message about a running computation.

    Parameters
    ----------
    phase
        What is being done, for people.
    done, total
        Work done and work in all, in units of the phase; None if unknown.
    incumbent, bound
        Best objective and best proven bound so far, in units of the objective; None if unknown.
    remaining
        Seconds until the deadline of the whole computation; None without one.
    note
        What else there is to say, for people.
    """

    phase: str
    done: int | None = None
    total: int | None = None
    incumbent: float | None = None
    bound: float | None = None
    remaining: float | None = None
    note: str = ""


class _CompilationClock:
    """Adds up the seconds in which kernels are compiled or loaded, here or in worker processes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        #: Called with True when compilation begins and with False when it ends; in a worker.
        self.listener: Callable[[bool], None] | None = None
        self._lock = threading.Lock()
        self._depth = 0
        self._began = 0.0

    def begin(self) -> bool:
        """Count from now, unless a compilation is going on; return whether none was."""
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return False
            self._began = time.perf_counter()
            if self.listener is not None:
                self.listener(True)
            return True

    def end(self) -> None:
        """Count no longer, if no other compilation is going on."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - self._began
                if self.listener is not None:
                    self.listener(False)


class MachineClock:
    """Measures how many seconds pass while this process works for one, since it was made."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._work = time.process_time()

    @property
    def slowness(self) -> float:
        """At least 1; more where others keep the machine busy."""
        work = time.process_time() - self._work
        return max(1.0, (time.monotonic() - self.began) / work) if work > _LEAST_WORK else 1.0


compilation_clock = _CompilationClock()


def compilation_seconds() -> float:
    """Return the seconds since the process started in which kernels were compiled or loaded."""
    return compilation_clock.seconds


@dataclass
class Budget:
    """What a method may spend, and who hears of its progress.

    Seconds in which kernels are compiled count like all others.

    Parameters
    ----------
    deadline
        Moment on the clock of :func:`time.monotonic` at which to stop, in seconds; None for
        no limit.
    progress
        Called with :class:`Progress` messages from the thread that computes.

    Raises
    ------
    InputError
        If `progress` cannot be called.
    """

    deadline: float | None = None
    progress: Callable[[Progress], None] | None = None
    _interrupted: threading.Event = field(default_factory=threading.Event, repr=False)
    # The limited budget that this is a part of.
    _whole: Budget | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given: object = self.progress
        if given is not None and not callable(given):
            raise InputError(
                f"progress is {given!r}",
                remedy="Give a function that takes a Progress, such as print, or leave it out",
            )

    @classmethod
    def of(
        cls,
        time_limit: float | None = None,
        progress: Callable[[Progress], None] | None = None,
        *,
        since: float | None = None,
    ) -> Budget:
        """Return a budget that ends `time_limit` seconds from now, or from a moment before.

        `time_limit`: seconds; None for no limit. `progress`: the listener. `since`: moment on the
        clock of :func:`time.monotonic` from which they count. Raises InputError if `time_limit` is
        not positive, or `progress` cannot be called.
        """
        if time_limit is None:
            return cls(progress=progress)
        given: object = time_limit
        is_number = isinstance(given, Real) and not isinstance(given, bool)
        seconds = float(time_limit) if is_number else math.nan
        if not 0 < seconds < math.inf:
            raise InputError(
                f"{argument('time_limit')} is {time_limit!r} seconds",
                remedy="Give a positive number of seconds",
            )
        return cls((time.monotonic() if since is None else since) + seconds, progress)

    def renewed(self, time_limit: float | None) -> Budget:
        """Return a budget with its own time limit and the same listener and interrupt."""
        return self._with_part(Budget.of(time_limit, self.progress))

    def share(self, fraction: float) -> Budget:
        """Return a budget with a fraction of the time left, the same listener and interrupt."""
        left = self.remaining()
        part = Budget(None if left is None else time.monotonic() + fraction * left, self.progress)
        return self._with_part(part)

    def leaving(self, seconds: float, *, least: float = 0.0) -> Budget:
        """Return a budget that ends so many seconds before this one, for what comes after it.

        `seconds`: what comes after it takes. `least`: seconds that it has all the same.
        """
        deadline = self.deadline
        if deadline is not None:
            deadline = max(deadline - seconds, time.monotonic() + least)
        return self._with_part(Budget(deadline, self.progress))

    def _with_part(self, part: Budget) -> Budget:
        """Return a part of this budget that obeys its interrupt and reports its time left."""
        part._interrupted = self._interrupted
        part._whole = self._whole or (None if self.deadline is None else self)
        return part

    @property
    def is_interrupted(self) -> bool:
        """Whether the user asked to stop."""
        return self._interrupted.is_set()

    def interrupt(self) -> None:
        """Ask the computation to stop at its next opportunity."""
        self._interrupted.set()

    def remaining(self) -> float | None:
        """Return the seconds left, at least 0, or None without a limit."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def stop_reason(self) -> Stopped | None:
        """Return why to stop now, or None to go on."""
        if self._interrupted.is_set():
            return Stopped.INTERRUPT
        if self.remaining() == 0.0:
            return Stopped.TIME
        return None

    def report(
        self,
        phase: str,
        *,
        done: int | None = None,
        total: int | None = None,
        incumbent: float | None = None,
        bound: float | None = None,
        note: str = "",
    ) -> None:
        """Send a message to the listener, if there is one."""
        self.hand_on(Progress(phase, done, total, incumbent, bound, note=note))

    def hand_on(self, message: Progress) -> None:
        """Send a message to the listener, if there is one, with the time that is left here."""
        if self.progress is not None:
            self.progress(replace(message, remaining=(self._whole or self).remaining()))

    @contextmanager
    def catching_interrupts(self) -> Iterator[None]:
        """Turn the first Ctrl-C into a request to stop, the second into KeyboardInterrupt.

        Outside the main thread signals cannot be caught; there this does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handler(number: int, frame: FrameType | None) -> None:
            if self._interrupted.is_set():
                raise KeyboardInterrupt
            self._interrupted.set()

        before = signal.signal(signal.SIGINT, handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
