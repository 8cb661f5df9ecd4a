"""Solvers that lie, crash or hang, in a module that a worker process can import."""

from __future__ import annotations

import ctypes
import os
import signal
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.runtime.budget import Budget
from anonymip.solvers import Availability, SolverOptions, SolverResult, StandardForm

Start = NDArray[np.float64] | None


def two_items(start: tuple[int, int] | None = None, sense: int = 1) -> pyo.ConcreteModel:
    """Return a cover that needs one of two items: the cheaper costs 3, the other 5."""
    model = pyo.ConcreteModel()
    model.use = pyo.Var(range(2), domain=pyo.Binary)
    model.need = pyo.Constraint(expr=model.use[0] + model.use[1] >= 1)
    cost = 3 * model.use[0] + 5 * model.use[1]
    model.cost = pyo.Objective(expr=sense * cost, sense=sense)
    for number, value in enumerate(start or ()):
        model.use[number].set_value(value)
    return model


class Adapter:
    """What all of them have in common; `answer`, where there is one, is what they return."""

    answer: SolverResult
    name = "Liar"
    capabilities = frozenset({"mip", "start", "bound"})
    supports_indicators = False
    own_process = False

    def availability(self) -> Availability:
        """Return that it is there."""
        return Availability(True, True, "1", None)

    def solve(
        self, form: StandardForm, start: Start, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Answer whatever is asked."""
        return self.answered(budget)

    def answered(self, budget: Budget) -> SolverResult:
        """Return the answer."""
        return self.answer


@dataclass(frozen=True)
class Liar(Adapter):
    """Answers what it was made with."""

    answer: SolverResult


@dataclass(frozen=True)
class Crasher(Adapter):
    """Does not come back: abort, segfault, exit, raise, memory, refuse."""

    how: str

    def answered(self, budget: Budget) -> SolverResult:
        """Crash."""
        if self.how == "abort":
            os.write(2, b"fatal: out of luck\n")
            os.abort()
        if self.how == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "exit":
            os._exit(7)
        if self.how == "memory":
            raise MemoryError("no room")
        if self.how == "refuse":
            raise InputError("presolve is 'perhaps'", remedy="Use on or off", value="perhaps")
        raise RuntimeError("index out of range")


@dataclass(frozen=True)
class Sleeper(Adapter):
    """Tells one bound, then sleeps in native code that lets no other thread run."""

    bound: float

    def answered(self, budget: Budget) -> SolverResult:
        """Ignore limit and interrupt."""
        budget.report("sleeping", incumbent=4.0, bound=self.bound)
        ctypes.PyDLL(None).sleep(3600)
        raise AssertionError("woke up")
