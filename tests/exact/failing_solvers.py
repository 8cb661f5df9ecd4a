"""Solvers that fail, in a module that a worker process can import."""

from __future__ import annotations

import os
import signal

from anonymip.runtime.budget import Budget
from anonymip.solvers import Availability, SolverOptions, SolverResult, StandardForm
from anonymip.solvers.adapters.highs import HighsSolver
from tests.solvers.lying import Adapter


class Killed(Adapter):
    """Its worker is killed from outside, as by a system that is short of memory."""

    def solve(
        self, form: StandardForm, start: object, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Tell a bound, and end."""
        budget.report("solving", bound=-1.0)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("alive")


class Exhausted(Adapter):
    """Memory is short."""

    def solve(
        self, form: StandardForm, start: object, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Ask for more than there is."""
        raise MemoryError("no room")


class Limited(HighsSolver):
    """HiGHS under a licence for models of some size."""

    name = "Limited"

    def availability(self) -> Availability:
        """Return that larger models are not allowed."""
        most = 100
        return Availability(True, False, "1", "too large", "size-limited", most, most)
