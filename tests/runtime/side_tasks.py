"""Tasks that another process can import."""

from __future__ import annotations

import os
import time

from anonymip import Budget, NoSolution


def squared(budget: Budget, number: int) -> int:
    """Return a square, the first ones last."""
    time.sleep(0.05 * (3 - number))
    return number**2


def process(budget: Budget) -> int:
    """Return the number of the process."""
    return os.getpid()


def until_stopped(budget: Budget) -> str:
    """Return why it had to stop."""
    while (reason := budget.stop_reason()) is None:
        time.sleep(0.01)
    return reason.name


def seconds_left(budget: Budget) -> float | None:
    """Return the time that it has."""
    return budget.remaining()


def failing(budget: Budget) -> None:
    """Fail."""
    raise NoSolution("as told", remedy="Ask for something else")


def dying(budget: Budget) -> None:
    """End the process."""
    os._exit(3)


def deaf(budget: Budget) -> None:
    """Never end."""
    time.sleep(600.0)


def deaf_elsewhere(budget: Budget) -> str:
    """Never end unless there is no time from the beginning."""
    while True:
        reason = budget.stop_reason()
        if reason is not None and not _has_run:
            return reason.name
        _has_run.append(True)
        time.sleep(0.01)


_has_run: list[bool] = []
