"""Output: answers to standard output, all else to standard error, and the line of progress."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from anonymip.errors import InputWarning, ReleaseWarning, gap_text
from anonymip.extensions import ExtensionWarning
from anonymip.files import Outputs, writing
from anonymip.runtime.budget import Progress

_BAR = 12  # characters of the bar


class ProgressLine:
    """One line about a computation, drawn by whoever asks for it, however seldom it reports.

    The time since the start belongs to the command, not to a phase of it. The time left is what its
    limit leaves, and only falls; without a limit nobody knows what phases are to come, so that none
    is given. `clock`: returns seconds that never fall.
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
        return None if self._message.remaining is None else max(0.0, self._end - self._clock())

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
        parts.append(f"gap {gap_text(gap)}")
    return ", ".join([*parts, message.note] if message.note else parts)


out = Console(emoji=False)
err = Console(stderr=True, emoji=False)

_OURS = (ExtensionWarning, InputWarning, ReleaseWarning)  # warnings that are written for people
#: Kinds of characters that are not shown but obeyed: controls, directions and other formats, halves
#: of surrogates, ends of lines and paragraphs.
_COMMANDS = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"  # formats that words of some languages are written with
_said: set[str] = set()  # what the command in hand has said once
_WIDEST = 400  # width of tables that go to a file or a pipe


def human(json_target: str | None) -> Console:
    """Return the console for people: standard error if standard output carries JSON."""
    return err if json_target == "-" else out


def visible(text: str, keep: str = "\n\t") -> str:
    """Return a text whose characters all show: those that command a terminal are written out.

    Names of columns and files are anybody's, and reach people by way of ours: an escape would
    recolour or rewrite what stands there, and a sign of direction turn it around. `keep`:
    characters that lay it out.
    """
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign in keep or sign in _JOINERS or unicodedata.category(sign) not in _COMMANDS
        else sign.encode("unicode_escape").decode("ascii")
        for sign in text
    )


def say(console: Console, text: str) -> None:
    """Print plain text as it is, see :func:`visible`."""
    console.print(visible(text), markup=False, highlight=False, soft_wrap=True)


def say_once(text: str) -> None:
    """Print a text on standard error unless this command has done so."""
    if text not in _said:
        _said.add(text)
        say(err, text)


def say_run(file: Path) -> None:
    """Say that a file of Python is run: it may do all that its reader may."""
    say_once(f"{file} is run as Python code: it defines the objective")


def print_table(console: Console, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; where there is no terminal, as wide as its cells."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(Text(visible(name, keep="")), overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(text, keep="")) for text in row))
    if console.is_terminal:
        console.print(table)
    else:
        Console(file=console.file, width=_WIDEST, emoji=False).print(table)


def write_json(
    records: Sequence[dict[str, Any]], target: str | None, outputs: Outputs | None = None
) -> None:
    """Write a list of records to a file, or to standard output for ``-``.

    `target`: file, ``-``, or None for nowhere. `outputs`: others that a file is put in place with;
    None puts it there at once. Standard output gets the records when all are.
    """
    if target is None:
        return
    text = json.dumps(list(records), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    with writing(outputs) as files:
        if target == "-":
            files.then(lambda: sys.stdout.write(text))
        else:
            files.write_text(text, Path(target))


@contextmanager
def showing_warnings() -> Iterator[None]:
    """Print warnings of ours in one line each, without Python's place of it."""
    _said.clear()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, _OURS):
            # A comparison solves the same problem many times.
            say_once(f"warning: {message}")
        else:
            plain(message, category, *place, **more)

    with warnings.catch_warnings():
        plain = warnings.showwarning
        for ours in _OURS:
            warnings.simplefilter("always", ours)
        warnings.showwarning = show
        yield


class _Records(logging.Handler):
    """Prints what is logged for people in one line each; what the progress line says, it leaves."""

    has_line = False

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        if not self.has_line:
            say(err, record.getMessage())


_records = _Records()


@contextmanager
def showing_records() -> Iterator[None]:
    """Print what the package logs."""
    log = logging.getLogger("anonymip")
    log.addHandler(_records)
    try:
        yield
    finally:
        log.removeHandler(_records)


@contextmanager
def showing_progress() -> Iterator[Callable[[Progress], None] | None]:
    """Show what a computation reports, if standard error is a terminal."""
    if not err.is_terminal:
        yield None
        return
    line = ProgressLine()
    # A thread draws the line, so that its clock goes on while a kernel works and reports nothing.
    with Live(line, console=err, refresh_per_second=10, transient=True):
        _records.has_line = True
        try:
            yield line.hear
        finally:
            _records.has_line = False
