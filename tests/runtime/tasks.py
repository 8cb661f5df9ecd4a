"""Tasks for worker processes, in a module that they can import; and whether a process lives."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from anonymip.errors import NoSolution
from anonymip.runtime.budget import Budget, compilation_clock
from anonymip.runtime.compilation import stop_compilation_in_time


def process_number(budget: Budget) -> int:
    """Return the number of the process that runs this."""
    return os.getpid()


def number_after_a_while(budget: Budget) -> int:
    """Return the number of the process, late enough to run beside another task."""
    time.sleep(0.5)
    return os.getpid()


def loaded(budget: Budget) -> list[str]:
    """Return the names of the modules that are loaded."""
    return sorted(sys.modules)


def search_path(budget: Budget) -> list[str]:
    """Return where modules are looked for."""
    return sys.path


def surroundings(budget: Budget) -> tuple[str | None, str]:
    """Return an environment variable and the working directory."""
    return os.environ.get("ANONYMIP_TESTED"), os.getcwd()


def shout(budget: Budget) -> str:
    """Write to standard output in all ways there are, and read what there is to read."""
    print("by Python", flush=True)
    os.write(1, b"by native code\n")
    subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
    return sys.stdin.read()


def wait_for_interrupt(budget: Budget) -> str:
    """Return when the budget is interrupted."""
    budget.report("waiting", done=1, total=2, incumbent=4.0, bound=3.0)
    while budget.stop_reason() is None:
        time.sleep(0.01)
    return str(budget.stop_reason())


def remaining(budget: Budget) -> float | None:
    """Return the seconds left."""
    return budget.remaining()


def litter(budget: Budget) -> str:
    """Leave a temporary file behind and return its path."""
    handle, path = tempfile.mkstemp()
    os.close(handle)
    Path(path).write_text("left")
    return path


def unsendable(budget: Budget) -> object:
    """Return what cannot be sent."""
    return threading.Lock()


def compile_for_a_while(budget: Budget) -> tuple[float | None, int]:
    """Spend time as if in compiling kernels."""
    compilation_clock.begin()
    time.sleep(0.5)
    compilation_clock.end()
    return budget.remaining(), os.getpid()


def compile_to_the_end_of_time(budget: Budget) -> None:
    """Compile until the budget ends."""
    while True:
        time.sleep(0.01)
        stop_compilation_in_time()


class OwnError(NoSolution):
    """An exception that cannot be made again from its text."""

    def __init__(self, column: str, row: int) -> None:
        super().__init__(f"column {column} fails in row {row}")


def raise_own_error(budget: Budget) -> None:
    """Raise an exception that cannot be read back from its pickle."""
    raise OwnError("age", 3)


class Unreadable:
    """Can be pickled, but not read."""

    def __reduce__(self) -> tuple[type[int], tuple[str]]:
        """Claim to be a number that is none."""
        return int, ("none",)


def return_unreadable(budget: Budget) -> Unreadable:
    """Return what can be sent, but not read."""
    return Unreadable()


def squared(budget: Budget, number: int) -> int:
    """Return a square, the first ones last."""
    time.sleep(0.05 * (3 - number))
    return number**2


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


def is_running(process: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that must happen soon."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen")
