"""The line that says what a command is doing, how far it is, since when and until when."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import timedelta

from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from anonymip.runtime.budget import Progress

#: Characters of the bar.
_BAR = 12


class ProgressLine:
    """One line about a computation, drawn by whoever asks for it, however seldom it reports.

    The time since the start belongs to the command, not to a phase of it. The time left is what
    its limit leaves, and only falls; without a limit nobody knows what phases are to come, so that
    none is given.

    Parameters
    ----------
    clock
        Returns seconds that never fall.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._end = math.inf
        self._message = Progress("starting")
        self._spinner = Spinner("dots")

    def hear(self, message: Progress) -> None:
        """Take in what the computation reports."""
        if message.remaining is not None:
            self._end = min(self._end, self._clock() + message.remaining)
        self._message = message

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def left(self) -> float | None:
        """Seconds until the limit; None without one, and when what it limits is done."""
        if self._message.remaining is None:
            return None
        return max(0.0, self._end - self._clock())

    def __rich__(self) -> Table:
        """Return the line as it is now; what was found gives way where the terminal is narrow."""
        message, left = self._message, self.left
        times = _clock_text(self.elapsed)
        if left is not None:
            times += f", {_clock_text(math.ceil(left))} left"
        line = Table.grid(padding=(0, 1), expand=True)
        for _ in range(4):
            line.add_column(no_wrap=True)
        line.add_column(no_wrap=True, ratio=1)
        line.add_row(
            self._spinner,
            Text(message.phase),
            ProgressBar(total=message.total, completed=message.done or 0, width=_BAR),
            Text(times, "progress.elapsed"),
            Text(_found(message)),
        )
        return line


def _clock_text(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds."""
    return str(timedelta(seconds=int(seconds)))


def _found(message: Progress) -> str:
    parts = []
    if message.incumbent is not None:
        parts.append(f"loss {message.incumbent:.6g}")
    if message.bound is not None:
        parts.append(f"bound {message.bound:.6g}")
    if message.incumbent and message.bound is not None:
        gap = (message.incumbent - message.bound) / abs(message.incumbent)
        parts.append(f"gap {100 * gap:.1f} %")
    return ", ".join(parts)
