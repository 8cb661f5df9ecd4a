"""Status: why a computation stopped, and what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Stopped(Enum):
    """Why a computation stopped."""

    OPTIMAL = "optimal"
    """Optimality is proven."""
    TIME = "time-limit"
    GAP = "gap-limit"
    """The gap that was asked for is reached."""
    TOLERANCE = "tolerance-limit"
    """The search is complete; what is left of the gap is a solver's tolerance, or rounding."""
    INTERRUPT = "interrupted"
    NODES = "node-limit"
    """The work that the method was allowed is spent: nodes, sets, or what the effort says."""
    HEURISTIC = "heuristic"
    """The method ended by itself and proves nothing."""
    INFEASIBLE = "infeasible"
    """Proven: no solution exists."""
    ERROR = "solver-error"
    """The solver failed; what is held was known before, or came by other means."""


@dataclass(frozen=True)
class Status:
    """Why a computation stopped, and what it holds.

    Parameters
    ----------
    stopped
        The reason.
    solution
        Whether a solution is held.
    bound
        Whether a proven bound is held.
    """

    stopped: Stopped
    solution: bool
    bound: bool

    def __str__(self) -> str:
        return self.stopped.value
