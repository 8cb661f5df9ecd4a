"""Tests of the line of progress: its clock goes on, its time left only falls."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.progress_bar import ProgressBar

from anonymip.cli.console import ProgressLine
from anonymip.runtime.budget import Progress


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 5000.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return a clock."""
    return Clock()


def drawn(line: ProgressLine, width: int = 120) -> str:
    """Return the line as a terminal shows it now."""
    terminal = io.StringIO()
    Console(file=terminal, width=width, force_terminal=True, color_system=None).print(line)
    return terminal.getvalue()


def bar_of(line: ProgressLine) -> ProgressBar:
    """Return the bar of the line."""
    bars = [cell for column in line.__rich__().columns for cell in column.cells]
    return next(cell for cell in bars if isinstance(cell, ProgressBar))


def test_the_clock_goes_on_while_nothing_is_reported(clock: Clock) -> None:
    """A kernel that works for minutes reports nothing, and its minutes are shown all the same."""
    line = ProgressLine(clock)
    line.hear(Progress("making classes again", done=3, total=10))
    clock.now += 584
    assert "0:09:44" in drawn(line)


def test_the_clock_goes_on_when_a_phase_is_done(clock: Clock) -> None:
    """Phases end and begin, with totals or without; the time is that of the command."""
    line = ProgressLine(clock)
    clock.now += 38
    line.hear(Progress("moving records", done=10, total=10))
    clock.now += 32
    line.hear(Progress("improving classes", done=1))
    assert "0:01:10" in drawn(line)
    line.hear(Progress("moving records", done=2, total=10))
    clock.now += 1
    assert "0:01:11" in drawn(line)


def test_a_phase_without_a_total_shows_no_share_of_the_one_before(clock: Clock) -> None:
    """The bar of rounds whose number nobody knows moves to and fro, whatever went before."""
    line = ProgressLine(clock)
    line.hear(Progress("moving records", done=10, total=10))
    assert bar_of(line).total == 10
    line.hear(Progress("improving classes", done=1))
    assert bar_of(line).total is None


def test_without_a_limit_no_time_left_is_claimed(clock: Clock) -> None:
    """Nobody knows what phases are to come."""
    line = ProgressLine(clock)
    line.hear(Progress("cutting", done=1, total=2))
    assert line.left is None
    assert "left" not in drawn(line)


def test_the_time_left_is_that_of_the_limit_and_only_falls(clock: Clock) -> None:
    """It falls between reports too; a report that speaks of more time does not raise it."""
    line, shown = ProgressLine(clock), []
    for seconds, left in ((0.0, 120.0), (1.0, 119.0), (10.0, 112.0), (1.0, 30.0), (40.0, 70.0)):
        clock.now += seconds
        shown.append(line.left)
        line.hear(Progress("cutting", remaining=left))
        shown.append(line.left)
    assert shown == [None, 120.0, 119.0, 119.0, 109.0, 109.0, 108.0, 30.0, 0.0, 0.0]
    assert "0:00:00 left" in drawn(line)


def test_what_is_on_no_limit_has_no_time_left(clock: Clock) -> None:
    """While a release is verified nobody is told that no second is left for it."""
    line = ProgressLine(clock)
    line.hear(Progress("solving", remaining=5.0))
    clock.now += 5
    assert "0:00:05, 0:00:00 left" in drawn(line)
    line.hear(Progress("publishing"))
    clock.now += 2
    assert "0:00:07" in drawn(line)
    assert "left" not in drawn(line)


@pytest.mark.parametrize("width", [70, 120])
def test_a_narrow_terminal_keeps_the_times(clock: Clock, width: int) -> None:
    """One line it is; what was found is cut before the phase and the times are."""
    line = ProgressLine(clock)
    found = Progress("nearest-neighbour bound", 3, 9, 123.4567, 99.1234, 118.0)
    line.hear(found)
    text = drawn(line, width)
    assert text.count("\n") == 1
    assert "nearest-neighbour bound" in text
    assert "0:00:00, 0:01:58 left" in text
    assert ("loss 123.457, bound 99.1234, gap 19.7 %" in text) is (width == 120)
