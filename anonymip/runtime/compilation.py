"""Compilation of kernels ends with the run that asked for it, and what the run has found is kept.

A time limit is what a user's clock shows, seconds of the compiler included. numba cannot be asked
to stop, but it says when it begins a kernel or a step of one: there
:func:`stop_compilation_in_time` raises if the budget in force has ended. Nothing half made stays
behind, and a later call compiles the kernel as if nothing had been.

A run that ends while it computes may need kernels that nothing before has needed, to finish what it
has: for these it has a second more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from anonymip.errors import AnonymipError, Interrupted, NoSolution
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

Release = TypeVar("Release")

#: Seconds in which a run that has ended may compile what it finishes its work with.
SECONDS_TO_FINISH = 1.0


class CompilationStopped(BaseException):
    """The budget in force ended while a kernel was compiled.

    No :class:`Exception`: numba makes errors of its own of those, and tries other ways. `reason`:
    ``TIME`` or ``INTERRUPT``.
    """

    def __init__(self, reason: Stopped) -> None:
        super().__init__(reason.value)
        self.reason = reason

    def nothing_found(self) -> AnonymipError:
        """Return the exception for a user who has nothing of the run."""
        if self.reason is Stopped.INTERRUPT:
            return Interrupted("interrupted while kernels were compiled")
        return NoSolution(
            "the time limit ended while kernels were compiled",
            remedy="Compile them beforehand (anonymip warm-up), or give it more time",
        )


class RunInForce:
    """The run that compilation ends with, as its budget does; its problem is None if unknown."""

    def __init__(self, budget: Budget, problem: object = None) -> None:
        self.budget = budget
        self._problem = problem
        self._finishing_until: float | None = None
        #: The best checked release that any part of the run has made.
        self.at_hand: Any = None
        #: Gives the sets that the run's bound weighs, or None, when they are asked for.
        self.weighing: Callable[[], Any] | None = None
        #: Gives the program that the run's bound has solved with all its effort, or None.
        self.solving: Callable[[], Any] | None = None

    def stop_in_time(self, begins: bool) -> None:
        """Raise if the budget has ended, and with it what its run may compile."""
        reason = self.budget.stop_reason()
        if reason is None:
            return
        now = time.monotonic()
        if self._finishing_until is None:
            # What is half compiled at the end is no work that could be finished.
            self._finishing_until = now + SECONDS_TO_FINISH if begins else now
        if now >= self._finishing_until:
            raise CompilationStopped(reason)

    def weighed(self, problem: object) -> Any:
        """Return the sets that the bound weighs, if the run solves this problem; else None."""
        return None if self.weighing is None or problem is not self._problem else self.weighing()

    def solved_program(self, problem: object) -> Any:
        """Return the program, which the bound is done with, if the run solves this problem."""
        return None if self.solving is None or problem is not self._problem else self.solving()

    def offer(self, problem: object, release: Any) -> None:
        """Keep a release if it is of the problem that the run solves, and better than before."""
        if problem is not self._problem or problem is None:
            return
        if self.at_hand is None or release.objective < self.at_hand.objective:
            self.at_hand = release


_in_force: ContextVar[RunInForce | None] = ContextVar("in_force", default=None)


def run_in_force() -> RunInForce | None:
    """Return the run that compilation ends with; None outside any, where it goes on to its end."""
    return _in_force.get()


@contextmanager
def in_force(run: RunInForce | None) -> Iterator[None]:
    """Have compilation within the block end with a run; threads of a run each say so."""
    token = _in_force.set(run)
    try:
        yield
    finally:
        _in_force.reset(token)


@contextmanager
def handing_on(part: object, problem: object, converted: Callable[[Any], Any]) -> Iterator[None]:
    """Keep at hand what the block finds of another problem, which stands for the run's own.

    `part`: what the block solves. `converted`: makes a release of it out of one of the part.
    """
    outer = _in_force.get()
    if outer is None:
        yield
        return
    inner = RunInForce(outer.budget, part)
    if outer.solving is not None:
        inner.solving = partial(outer.solved_program, problem)
    try:
        with in_force(inner):
            yield
    except CompilationStopped:
        if inner.at_hand is not None:
            outer.offer(problem, converted(inner.at_hand))
        raise


def kept_at_hand(problem: object, release: Release) -> Release:
    """Return a checked release, known to the run in force in case a stop leaves its method."""
    run = _in_force.get()
    if run is not None:
        run.offer(problem, release)
    return release


def stop_compilation_in_time(*, begins: bool = False) -> None:
    """Raise CompilationStopped if the run in force has ended; `begins`: no kernel was under way."""
    run = _in_force.get()
    if run is not None:
        run.stop_in_time(begins)
