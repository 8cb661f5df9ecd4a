"""Tests of what is said of compilation: how many kernels, once, and never for a trifle."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from anonymip.runtime import kernels
from anonymip.runtime.kernels import Announcement, Left


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
