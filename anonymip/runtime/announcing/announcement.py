"""What a user hears of compilation: never two seconds of silence, never twice the same."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from anonymip.runtime.announcing.needed_kernels import Left
from anonymip.runtime.announcing.notebook_bar import NotebookBar

_LOG = logging.getLogger("anonymip")
#: Compilation that takes less than so many seconds passes without a word.
_SILENT = 1.0


class Announcement:
    """What is said of the compilations of one run.

    Parameters
    ----------
    left
        Called when the first compilation begins: what is to be compiled; None if nobody knows.
    report
        As :meth:`anonymip.Budget.report`: hears of each kernel.
    """

    def __init__(
        self, left: Callable[[], Left | None], report: Callable[..., None] | None = None
    ) -> None:
        self._find_left = left
        self._report = report
        self._left: Left | None = None
        self._began = 0.0
        self._count = 0
        self._said = False
        self._bar = NotebookBar()

    def kernel_begins(self) -> None:
        """Say so: the first kernel tells how many there are, if that is known."""
        self._count += 1
        if self._count == 1:
            self._began = time.monotonic()
            self._left = self._find_left()
            if self._left is not None and self._left.seconds > _SILENT:
                self._say()
        self.goes_on()
        total = None if self._left is None else self._left.kernels
        if total is None or self._count > total:
            phase, total = f"compiling kernel {self._count}, first run only", None
        else:
            phase = f"compiling {self._count} of {total}, first run only"
        done = None if total is None else self._count - 1
        self._bar.show(phase, self._count - 1, total)
        if self._report is not None:
            self._report(phase, done=done, total=total)

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
            _LOG.warning("compiling kernels, first run only")
        else:
            count, seconds = self._left
            what = "kernel" if count == 1 else "kernels"
            _LOG.warning("compiling about %d %s, once; about %.0f s", count, what, seconds)
