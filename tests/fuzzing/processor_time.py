"""Processor time of a process that runs, with those that it started, where the system tells."""

from __future__ import annotations

import os
from pathlib import Path

_PROCESSES = Path("/proc")


def processor_time(process: int) -> float | None:
    """Return the seconds that a process and what it started have computed; None if unknown.

    On a machine with other work the clock says little of how long a computation is.
    """
    try:
        text = (_PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        tasks = list((_PROCESSES / str(process) / "task").glob("*/children"))
        children = [int(one) for task in tasks for one in task.read_text().split()]
    except OSError:
        return None
    # Its own time and that of processes that have ended, after the name in brackets.
    ticks = sum(map(int, text.rpartition(")")[2].split()[11:15]))
    own = ticks / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_time(child) or 0.0 for child in children)
