"""Seconds that processors worked for a run, in this process and in those that it started."""

from __future__ import annotations

import os
import time
from pathlib import Path

from anonymip.runtime.budget import compilation_clock


class ProcessorTime:
    """Counts from when it is made; what compilation takes is left out.

    Solvers run in worker processes that outlive a run. The system says of each process what it
    took; where it does not, those alone count that have ended.
    """

    def __init__(self) -> None:
        self._before = compilation_clock.listener
        self._compiling = 0.0
        self._began_compiling = 0.0
        compilation_clock.listener = self._hear
        self._start = _seconds()

    def stop(self) -> float:
        """Return the seconds until now, and count no more."""
        compilation_clock.listener = self._before
        return max(0.0, _seconds() - self._start - self._compiling)

    def _hear(self, begins: bool) -> None:
        if begins:
            self._began_compiling = _seconds()
        else:
            self._compiling += _seconds() - self._began_compiling
        if self._before is not None:
            self._before(begins)


def _seconds() -> float:
    """Return what this process took, those that it waited for, and those that it has now."""
    times = os.times()
    ended = times.children_user + times.children_system
    return time.process_time() + ended + sum(map(_of_process, _children(os.getpid())))


def _of_process(process: int) -> float:
    """Return what another process took, with those that it started."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        # The name of the program, in brackets, may hold blanks.
        ticks = text.rpartition(")")[2].split()[11:15]
        own = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0  # it has ended meanwhile, and what it took is its parent's
    return own + sum(map(_of_process, _children(process)))


def _children(process: int) -> list[int]:
    try:
        files = list(Path(f"/proc/{process}/task").glob("*/children"))
        return [int(one) for file in files for one in file.read_text().split()]
    except OSError:
        return []
