"""The decorator of all kernels, the clock that leaves compilation out, what a user hears of it."""

from __future__ import annotations

import gc
import itertools
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event

from anonymip.runtime import kernels
from anonymip.runtime.budget import compilation_seconds
from anonymip.runtime.kernels import (
    Announcement,
    Left,
    Stopwatch,
    announcing_compilation,
    compiled_kernels,
    kernel,
)

_SERIAL = itertools.count()


def fresh() -> Callable[[float], float]:
    """Return a kernel that no cache holds, not yet compiled."""
    constant = float(next(_SERIAL))
    return numba.njit(lambda x: x + constant)  # type: ignore[no-any-return]


@kernel
def halves(values: Any) -> Any:
    """Return the sum of the halves: a kernel of the usual sort."""
    total = 0.0
    for value in values:
        total += value / 2
    return total


def test_kernels_take_read_only_arrays() -> None:
    """Instances are frozen; a kernel reads them without a copy."""
    values = np.array([1.0, 2.0, 5.0])
    values.setflags(write=False)
    assert halves(values) == 4.0


def test_kernels_are_compiled() -> None:
    """A kernel is a numba function, and keeps its name and docstring."""
    assert isinstance(halves, numba.core.registry.CPUDispatcher)
    assert halves.__name__ == "halves"
    assert (halves.__doc__ or "").startswith("Return the sum")


def test_kernels_let_other_threads_go_on() -> None:
    """They do not hold the interpreter's lock."""
    assert halves.targetoptions["nogil"]  # type: ignore[attr-defined]


def test_the_clock_counts_compilation() -> None:
    """A first call compiles and adds to the clock, a second one does not."""
    function = fresh()
    before = compilation_seconds()
    function(1.0)
    compiled = compilation_seconds()
    assert compiled > before
    function(2.0)
    assert compilation_seconds() == compiled


def test_the_stopwatch_leaves_compilation_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported seconds are those of the work: elapsed ones less those of the compiler."""
    now = iter([100.0, 110.0, 110.0])
    compiled = iter([5.0, 11.5, 20.0])
    monkeypatch.setattr("anonymip.runtime.kernels.time.perf_counter", lambda: next(now))
    monkeypatch.setattr("anonymip.runtime.kernels.compilation_seconds", lambda: next(compiled))
    watch = Stopwatch()
    assert watch.seconds == 3.5
    assert watch.seconds == 0.0


def test_compilation_is_announced_within_the_block_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels that Python calls are told, in the outer one of two blocks, and none afterwards."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    heard: list[str] = []

    def hear(name: str) -> Any:
        return announcing_compilation(
            lambda: None, lambda phase, **_: heard.append(f"{name}: {phase}")
        )

    def compiles() -> None:
        @kernel
        def part(x: Any) -> Any:
            return x + constant

        @kernel
        def whole(x: Any) -> Any:
            return part(x)

        constant = float(next(_SERIAL))
        whole(1.0)

    before = compiled_kernels()
    with hear("outer"):
        compiles()
        with hear("inner"):
            compiles()
    compiles()
    assert heard == [f"outer: compiling kernel {number}, first run only" for number in (1, 2)]
    assert compiled_kernels() == before + 3


def test_a_block_that_fails_ends_the_announcements() -> None:
    """An exception in the block does not leave the listener behind."""
    heard: list[str] = []
    with (
        pytest.raises(ValueError, match="stop"),
        announcing_compilation(lambda: None, heard.append),
    ):
        raise ValueError("stop")
    kernel(lambda x: x + float(1))(1)
    assert heard == []


def test_the_compiled_and_the_plain_function_agree() -> None:
    """No fast-math: the kernel computes the bits that Python computes."""
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(1000).clip(0, 200)
    plain: Callable[[Any], float] = halves.py_func  # type: ignore[attr-defined]
    assert halves(values) == plain(values)


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_waits_for_compilation(collects: bool) -> None:
    """Python's collector rests while numba compiles, and is then as it was before."""
    seen: list[bool] = []

    class Passes(event.Listener):
        def on_start(self, _: object) -> None:
            seen.append(gc.isenabled())

        def on_end(self, _: object) -> None:
            pass

    gc.enable() if collects else gc.disable()
    try:
        with event.install_listener("numba:run_pass", Passes()):  # type: ignore[no-untyped-call]
            fresh()(1.0)
        assert seen
        assert not any(seen)
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_garbage_is_collected_again_after_a_kernel_that_fails() -> None:
    """What cannot be compiled leaves the collector as it was, too."""
    with pytest.raises(numba.TypingError):
        numba.njit(lambda x: x.nothing)(1.0)
    assert gc.isenabled()


class Heard:
    """What a run reports."""

    def __init__(self) -> None:
        self.phases: list[tuple[str, int | None, int | None]] = []

    def __call__(self, phase: str, *, done: int | None = None, total: int | None = None) -> None:
        """Take a report down."""
        self.phases.append((phase, done, total))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a clock that is set by hand."""
    now = SimpleNamespace(now=100.0)
    monkeypatch.setattr(kernels, "time", SimpleNamespace(monotonic=lambda: now.now))
    return now


def test_the_first_kernel_says_how_many_there_are(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """One record for the whole run; each kernel is reported with its number."""
    heard = Heard()
    said = Announcement(lambda: Left(3, 24.6), heard)
    for _ in range(3):
        said.kernel_begins()
        clock.now += 8.0
        said.goes_on()
    assert caplog.record_tuples == [
        ("anonymip", logging.WARNING, "compiling about 3 kernels, once; about 25 s")
    ]
    assert heard.phases == [
        ("compiling 1 of 3, first run only", 0, 3),
        ("compiling 2 of 3, first run only", 1, 3),
        ("compiling 3 of 3, first run only", 2, 3),
    ]


def test_where_nobody_knows_no_number_is_claimed(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The record comes when it has lasted a second, the reports count."""
    heard = Heard()
    said = Announcement(lambda: None, heard)
    said.kernel_begins()
    assert not caplog.records
    clock.now += 1.5
    said.goes_on()
    said.kernel_begins()
    assert caplog.messages == ["compiling kernels, first run only"]
    assert [phase for phase, _, _ in heard.phases] == [
        "compiling kernel 1, first run only",
        "compiling kernel 2, first run only",
    ]


def test_more_kernels_than_expected_are_not_numbered_in_vain(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What is known is about so much: beyond, the report only counts."""
    heard = Heard()
    said = Announcement(lambda: Left(1, 0.3), heard)
    said.kernel_begins()
    said.kernel_begins()
    assert heard.phases[1] == ("compiling kernel 2, first run only", None, None)
    clock.now += 2.0
    said.goes_on()
    assert caplog.messages == ["compiling kernels, first run only"]


def test_a_trifle_passes_without_a_word(clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Less than a second needs no record, and before the first kernel there is nothing to say."""
    said = Announcement(lambda: Left(1, 0.3))
    clock.now += 50.0
    said.goes_on()
    said.kernel_begins()
    clock.now += 0.5
    said.goes_on()
    assert not caplog.records


def test_a_notebook_shows_a_bar(clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One output of the cell that changes; in a terminal of IPython there is none."""
    shown: list[str] = []
    handle = SimpleNamespace(update=lambda content: shown.append(f"changed: {content}"))

    def display(content: str, display_id: bool) -> Any:
        assert display_id
        shown.append(f"new: {content}")
        return handle

    running = SimpleNamespace(kernel=None)
    shell = SimpleNamespace(get_ipython=lambda: running)
    monkeypatch.setitem(sys.modules, "IPython", shell)  # type: ignore[arg-type]
    screen = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", screen)  # type: ignore[arg-type]
    Announcement(lambda: Left(2, 0.5)).kernel_begins()
    assert shown == []
    running.kernel = object()
    said = Announcement(lambda: Left(2, 0.5))
    said.ends()
    for _ in range(3):
        said.kernel_begins()
    said.ends()
    assert shown == [
        'new: <progress value="0" max="2"></progress> compiling 1 of 2, first run only',
        'changed: <progress value="1" max="2"></progress> compiling 2 of 2, first run only',
        "changed: <progress></progress> compiling kernel 3, first run only",
        "changed: kernels compiled",
    ]
