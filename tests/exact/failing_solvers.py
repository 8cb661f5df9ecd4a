"""Solvers that fail or lie, in a module that a worker process can import."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from anonymip.runtime.budget import Budget
from anonymip.solvers import Availability, SolverOptions, SolverResult, StandardForm
from anonymip.solvers.adapters.highs import HighsSolver
from anonymip.status import Stopped
from tests.solvers.lying import Adapter, Start


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


class Hasty(HighsSolver):
    """HiGHS that takes its first point for the best one."""

    name = "Hasty"
    stopped = Stopped.OPTIMAL

    def solve(
        self, form: StandardForm, start: Start, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Claim that nothing is below the first point."""
        first = replace(options, solver_options={"mip_max_improving_sols": 1})
        result = super().solve(form, start, first, budget)
        if result.values is None:
            return result
        return replace(result, stopped=self.stopped, bound=result.objective)


class Timid(Hasty):
    """The same, with a bound that is too high and no word of an optimum."""

    name = "Timid"
    stopped = Stopped.TIME


class Resigned(HighsSolver):
    """HiGHS to which every model is infeasible."""

    name = "Resigned"

    def solve(
        self, form: StandardForm, start: Start, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Find nothing."""
        return SolverResult(Stopped.INFEASIBLE, None, None, None, 0.0, "Resigned 1")


class Limited(HighsSolver):
    """HiGHS under a licence for models of some size."""

    name = "Limited"

    def availability(self) -> Availability:
        """Return that larger models are not allowed."""
        most = 100
        return Availability(True, False, "1", "too large", "size-limited", most, most)
