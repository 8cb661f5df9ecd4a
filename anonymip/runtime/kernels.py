"""The one decorator of all compiled kernels, and what compiling them costs.

Kernels are kept on disk where that is possible; elsewhere they are compiled in each process.
Compilation is timed so that reported seconds can leave it out.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numba
from numba.core import event

from anonymip.runtime.announcing.announcement import Announcement
from anonymip.runtime.announcing.needed_kernels import Left
from anonymip.runtime.budget import compilation_clock, compilation_seconds
from anonymip.runtime.compilation import stop_compilation_in_time
from anonymip.runtime.kernel_cache import KernelCache
from anonymip.runtime.kernel_parts import EntryCompiler, PartCompiler

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` with numba in nopython mode, cached where possible.

    Neither fast-math nor parallel reductions: the same input gives the same bits. Other threads of
    Python go on while a kernel runs.

    Notes
    -----
    What other kernels call is compiled for them alone, by :mod:`anonymip.runtime.kernel_parts`:
    without the code that takes a call of Python's apart, and not to run by itself. Neither has an
    entry for C. Workspaces of many arrays are handed over :class:`~anonymip.runtime.packed.Packed`.
    A kernel cannot call itself, and cannot be kept in a variable that holds one of several kernels.
    """
    from_python = _dispatcher(function, called_from="python")
    from_kernels = _dispatcher(function, called_from="kernels")
    _never_for_one_value(from_kernels)
    from_python.get_call_template = from_kernels.get_call_template
    from_python.get_overload = from_kernels.get_overload
    return cast(Function, from_python)


def _dispatcher(function: Callable[..., Any], called_from: str) -> Any:
    # numba's annotations leave these options out.
    entries: dict[str, Any] = {
        "no_cfunc_wrapper": True,
        "no_cpython_wrapper": called_from != "python",
    }
    entries["pipeline_class"] = PartCompiler if called_from == "kernels" else EntryCompiler
    compiled: Any = numba.njit(nogil=True, **entries)(function)
    compiled._cache = KernelCache(compiled.py_func, called_from)
    return compiled


def _never_for_one_value(compiled: Any) -> None:
    """Compile a kernel for types only, never for one value of an argument.

    While numba infers the types of a caller, a variable that begins as 0 is for a moment of the
    type "the number 0", and every kernel that it is handed to would be compiled for that as well,
    in vain: it cost a third of all compilation.
    """
    template = compiled.get_call_template

    def for_types(args: Any, kws: Any) -> Any:
        plain: Any = numba.types.unliteral
        return template(
            tuple(map(plain, args)), {name: plain(kind) for name, kind in dict(kws).items()}
        )

    compiled.get_call_template = for_types


class _PausedCollector:
    """Keeps Python's garbage collector from running while numba compiles, one kernel at a time.

    What numba makes of a kernel it holds until the kernel is done: a million objects that were
    looked at again and again, for a sixth of all compilation.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._was_on = False

    def pause(self) -> None:
        """Let it rest; kernels that a kernel calls are compiled within."""
        if self._depth == 0:
            self._was_on = gc.isenabled()
            gc.disable()
        self._depth += 1

    def go_on(self) -> None:
        """Let it run again when the outermost kernel is done."""
        self._depth -= 1
        if self._depth == 0 and self._was_on:
            gc.enable()


class _Compilations(event.Listener):
    """Has the clock count while numba compiles, counts the kernels, and tells who listens."""

    def __init__(self) -> None:
        self.announcement: Announcement | None = None
        #: Kernels that Python calls, compiled in this process.
        self.count = 0
        self._collector = _PausedCollector()

    def on_start(self, event: Any) -> None:
        self._collector.pause()
        # Begun first: numba says the end also of what is stopped here.
        outermost = compilation_clock.begin()
        stop_compilation_in_time(begins=outermost)
        kept = event.data["dispatcher"]._cache
        if outermost and isinstance(kept, KernelCache) and kept.is_called_by_python:
            self.count += 1
            if self.announcement is not None:
                self.announcement.kernel_begins()

    def on_end(self, event: Any) -> None:
        compilation_clock.end()
        self._collector.go_on()


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
    """Say within the block what is compiled; within such a block, the outer one says it all.

    Parameters
    ----------
    left
        Called when the first compilation begins: what is to be compiled; None if nobody knows.
    report
        As :meth:`anonymip.Budget.report`: hears of each kernel.
    """
    if _compilations.announcement is not None:
        yield
        return
    _compilations.announcement = Announcement(left, report)
    try:
        yield
    finally:
        _compilations.announcement.ends()
        _compilations.announcement = None


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
