"""The one decorator of all compiled kernels, what compilation costs, and what a user hears of it.

Kernels are kept on disk where that is possible; elsewhere they are compiled in each process.
Compilation is timed so that reported seconds can leave it out. A user who waits for it hears so:
never two seconds of silence, never twice the same.
"""

from __future__ import annotations

import gc
import html
import importlib
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NamedTuple, TypeVar, cast

import numba
from numba.core import event

from anonymip.errors import InputWarning
from anonymip.runtime.budget import Progress, compilation_clock, compilation_seconds
from anonymip.runtime.compilation import stop_compilation_in_time
from anonymip.runtime.packed import make_named_tuples

Function = TypeVar("Function", bound=Callable[..., Any])
#: Compiles what named runs need; None in place of who hears of its progress.
_Prepare = Callable[[Iterable[str], Callable[[Progress], None] | None], None]

_LOG = logging.getLogger("anonymip")
_SILENT = 1.0  # compilation that takes less than so many seconds passes without a word
#: The versions of numba whose private side is used: from the first, and before the second. In 0.61
#: parts cannot be linked; pyproject.toml ends where this ends.
TESTED = ((0, 68), (0, 69))


def _load_internals() -> ModuleType | None:
    """Return what uses the private side of numba; None where that may have changed, said once."""
    if os.environ.get("ANONYMIP_PLAIN_NUMBA"):
        return None
    first, end = ((".".join(map(str, version))) for version in TESTED)
    try:
        if not TESTED[0] <= tuple(map(int, numba.__version__.split(".")[:2])) < TESTED[1]:
            reason = f"is none of those tested (from {first}, before {end})"
        else:
            return importlib.import_module("anonymip.runtime.numba_internals")
    except Exception as error:  # noqa: BLE001 - whatever a module raises that has changed
        reason = f"has changed ({type(error).__name__})"
    warnings.warn(
        f"numba {numba.__version__} {reason}: kernels are compiled by its public functions alone, "
        f"which takes longer, and anew in each process. Install numba>={first},<{end}",
        InputWarning,
        stacklevel=2,
    )
    return None


_internals: Any = _load_internals()
if _internals is None:
    make_named_tuples()
#: Whether kernels are kept on disk where that is possible.
KEEPS_KERNELS = _internals is not None
_WHEN = "first run only" if KEEPS_KERNELS else "in each run"


def kernel(function: Function) -> Function:
    """Compile `function` with numba in nopython mode, cached where possible.

    Neither fast-math nor parallel reductions: the same input gives the same bits. Other threads of
    Python go on while a kernel runs.

    Workspaces of many arrays are handed over :class:`~anonymip.runtime.packed.Packed`. A kernel
    cannot call itself, and cannot be kept in a variable that holds one of several kernels.

    With a version of numba that was not tested, or with ``ANONYMIP_PLAIN_NUMBA`` set, kernels are
    compiled by numba's public functions: the answers are the same.
    """
    if _internals is None:
        plain: Any = numba.njit(nogil=True)(function)
        plain.called_from = "python"
        return cast(Function, plain)
    return cast(Function, _internals.compiled_in_parts(function))


class NotebookBar:
    """Shows nothing where no notebook is."""

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, text: str, done: int, total: int | None) -> None:
        """Show how far it is; a bar without a total only says that something goes on."""
        # Terminals of IPython have no kernel.
        shell = sys.modules.get("IPython")
        running = None if shell is None else shell.get_ipython()
        if getattr(running, "kernel", None) is None:
            return
        from IPython.display import HTML, display

        extent = "" if total is None else f' value="{done}" max="{total}"'
        content = HTML(f"<progress{extent}></progress> {html.escape(text)}")
        if self._shown is None:
            self._shown = display(content, display_id=True)
        else:
            self._shown.update(content)

    def end(self) -> None:
        """Leave one line of what was done."""
        if self._shown is not None:
            from IPython.display import HTML

            self._shown.update(HTML("kernels compiled"))
            self._shown = None


class Left(NamedTuple):
    """What is to be compiled, about."""

    kernels: int
    seconds: float  # as on the machine of the table


@dataclass
class Announcement:
    """What is said of the compilations of one run."""

    left: Callable[[], Left | None]  # asked when the first one begins; None if nobody knows
    report: Callable[..., None] | None = None  # hears of each kernel, as `Budget.report`
    _left: Left | None = None
    _began: float = 0.0
    _count: int = 0
    _said: bool = False
    _bar: NotebookBar = field(default_factory=NotebookBar)

    def kernel_begins(self) -> None:
        """Say so: the first kernel tells how many there are, if that is known."""
        self._count += 1
        if self._count == 1:
            self._began = time.monotonic()
            self._left = self.left()
            if self._left is not None and self._left.seconds > _SILENT:
                self._say()
        self.goes_on()
        total = None if self._left is None else self._left.kernels
        if total is None or self._count > total:
            phase, total = f"compiling kernel {self._count}, {_WHEN}", None
        else:
            phase = f"compiling {self._count} of {total}, {_WHEN}"
        done = None if total is None else self._count - 1
        self._bar.show(phase, self._count - 1, total)
        if self.report is not None:
            self.report(phase, done=done, total=total)

    def ends(self) -> None:
        """Say no more."""
        self._bar.end()

    def goes_on(self) -> None:
        """Break the silence where compilation takes longer than expected."""
        if self._count and not self._said and time.monotonic() - self._began > _SILENT:
            self._say()

    def _say(self) -> None:
        self._said = True
        # Python shows warnings where nobody has asked for a log: this is for who waits.
        if self._left is None or self._count > self._left.kernels:
            _LOG.warning("compiling kernels, %s", _WHEN)
        else:
            count, seconds = self._left
            what = "kernel" if count == 1 else "kernels"
            _LOG.warning("compiling about %d %s, once; about %.0f s", count, what, seconds)


class _Compilations(event.Listener):
    """Has the clock count while numba compiles, counts the kernels, and tells who listens.

    Python's garbage collector rests meanwhile. What numba makes of a kernel it holds until the
    kernel is done: a million objects that were looked at again and again, for a sixth of all
    compilation.
    """

    def __init__(self) -> None:
        self.announcement: Announcement | None = None
        #: Compiles what the named runs need before they begin; None where each does so itself.
        self.prepare: _Prepare | None = None
        #: Kernels that Python calls, compiled in this process.
        self.count = 0
        #: Compilations that go on, each within another; whether the collector runs after them.
        self._depth, self._collects = 0, False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1
        # Begun first: numba says the end also of what is stopped here.
        outermost = compilation_clock.begin()
        stop_compilation_in_time(begins=outermost)
        from_python = getattr(event.data["dispatcher"], "called_from", None) == "python"
        if outermost and from_python:
            self.count += 1
            if self.announcement is not None:
                self.announcement.kernel_begins()

    def on_end(self, event: Any) -> None:
        compilation_clock.end()
        self._depth -= 1
        if self._depth == 0 and self._collects:
            gc.enable()


class _Passes(event.Listener):
    """Stops numba between two steps of a kernel, which may take seconds."""

    def on_start(self, event: Any) -> None:
        stop_compilation_in_time()
        if _compilations.announcement is not None:
            _compilations.announcement.goes_on()

    def on_end(self, event: Any) -> None:
        pass


_compilations = _Compilations()
event.register("numba:compile", _compilations)  # type: ignore[no-untyped-call]
event.register("numba:run_pass", _Passes())  # type: ignore[no-untyped-call]


def compiled_kernels() -> int:
    """Return how many kernels that Python calls were compiled in this process, or are begun."""
    return _compilations.count


@contextmanager
def announcing_compilation(
    left: Callable[[], Left | None], report: Callable[..., None] | None = None
) -> Iterator[None]:
    """Say within the block what is compiled, as :class:`Announcement`; the outermost says it."""
    if _compilations.announcement is not None:
        yield
        return
    _compilations.announcement = Announcement(left, report)
    try:
        yield
    finally:
        _compilations.announcement.ends()
        _compilations.announcement = None


@contextmanager
def preparing_kernels(prepare: _Prepare) -> Iterator[None]:
    """Have `prepare` compile what the first runs within the block need."""
    _compilations.prepare = prepare
    try:
        yield
    finally:
        _compilations.prepare = None


def prepare_kernels(
    runs: Callable[[], Iterable[str]], progress: Callable[[Progress], None] | None
) -> None:
    """Compile what the first runs need if :func:`preparing_kernels` holds; `progress` hears."""
    # What they run on small tables themselves prepares nothing.
    prepare, _compilations.prepare = _compilations.prepare, None
    if prepare is not None:
        prepare(runs(), progress)


class Stopwatch:
    """Seconds since it was made, compilation left out."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._compiled = compilation_seconds()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        elapsed = time.perf_counter() - self._start
        return max(0.0, elapsed - (compilation_seconds() - self._compiled))
