"""Options, results and the protocol of solver adapters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from anonymip.errors import InputError, argument
from anonymip.runtime.arrays import Floats
from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.runtime.budget import Budget
    from anonymip.solvers.standard_form import StandardForm

#: Solvers stop at this absolute gap: small enough to mean "proven" for losses of order 1e-3.
ABSOLUTE_GAP = 1e-9

#: Tolerance of rows, integrality and reduced costs, where a solver's own default is coarser.
TOLERANCE = 1e-7

#: The largest seed that every solver accepts (CBC gets the seed plus one).
LARGEST_SEED = 2**31 - 2

#: The most nodes that every solver counts.
_MOST_NODES = 2**31 - 1


@dataclass(frozen=True)
class SolverOptions:
    """Options that mean the same in every solver.

    Parameters
    ----------
    time_limit
        Seconds of wall-clock time, from when the model is compiled; None for no limit.
    relative_gap
        Stop when |objective - bound| / |objective| is at most this; 0 proves optimality.
    node_limit
        Nodes of the search tree after which the solver stops, on every machine alike; None for no
        limit.
    threads
        Threads of the solver. With 1 a run repeats exactly.
    presolve
        Whether the solver simplifies the model first; None leaves it to the model's
        ``presolve_pays``, if it has one. On set partitioning with many columns this can take
        longer than the search.
    seed
        Seed of the solver's random numbers, 0 to 2**31 - 2.
    log
        File that receives the solver's own log, overwritten; None for no log.
    solver_options
        Handed to the solver as they are, after all others; names it does not know are refused.
        Some make a solver stop early and call the point optimal: with any of them what it
        reports as optimal is the caller's to judge.

    Raises
    ------
    InputError
        If a value is out of range.
    """

    time_limit: float | None = None
    relative_gap: float = 0.0
    node_limit: int | None = None
    threads: int = 1
    presolve: bool | None = None
    seed: int = 0
    log: str | Path | None = None
    solver_options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        limit, gap, nodes = self.time_limit, self.relative_gap, self.node_limit
        allowed: dict[str, tuple[bool, str]] = {
            "time_limit": (
                limit is None or 0 < limit < math.inf,
                "Give a positive number of seconds, or None for no limit",
            ),
            "relative_gap": (
                _is_real(gap) and 0 <= gap < math.inf,
                "Give a fraction such as 0.01, or 0 to prove optimality",
            ),
            "node_limit": (
                nodes is None or (_is_whole(nodes) and 1 <= nodes <= _MOST_NODES),
                f"Give a whole number from 1 to {_MOST_NODES}, or None for no limit",
            ),
            "threads": (
                _is_whole(self.threads) and self.threads >= 1,
                "Give a whole number, at least 1",
            ),
            "seed": (
                _is_whole(self.seed) and 0 <= self.seed <= LARGEST_SEED,
                f"Give a whole number from 0 to {LARGEST_SEED}",
            ),
            "log": (
                self.log is None or (isinstance(self.log, str | Path) and bool(str(self.log))),
                "Give the path of a file",
            ),
        }
        for name, (holds, remedy) in allowed.items():
            if not holds:
                named = argument(name, option="--gap" if name == "relative_gap" else None)
                raise InputError(f"{named} is {getattr(self, name)!r}", remedy=remedy)
        for name in self.solver_options:
            if not isinstance(name, str) or not name:
                raise InputError(
                    f"solver_options is {name!r}",
                    remedy="Name each option by the solver's own name for it",
                )
        if self.log is not None:
            object.__setattr__(self, "log", Path(self.log))
        # A copy: the caller's mapping may change later, a frozen object must not.
        object.__setattr__(self, "solver_options", dict(self.solver_options))
        object.__setattr__(self, "threads", int(self.threads))
        object.__setattr__(self, "seed", int(self.seed))

    @property
    def log_file(self) -> Path | None:
        """The file of the solver's log; None for no log."""
        return None if self.log is None else Path(self.log)


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class SolverResult:
    """What a solver found."""

    stopped: Stopped  # why the solver stopped
    #: Value of each variable, shape (variables,), in the order of the standard form; None without
    #: an incumbent.
    values: Floats | None
    #: Objective of `values` in the model's own sense; None without an incumbent. An adapter puts in
    #: what its solver claims; :func:`anonymip.solvers.solve_model` replaces it by the value
    #: computed from the point.
    objective: float | None
    #: Proven bound on the optimum in the model's own sense (from below when the model minimises,
    #: from above when it maximises); None if unknown.
    bound: float | None
    seconds: float  # wall-clock time of the solver, without the compilation of the model
    solver: str  # name and version, such as ``"HiGHS 1.15.1"``
    #: Whether the solver could use the start; None if none was given or it does not say.
    start_accepted: bool | None = None
    nodes: int | None = None  # nodes of the search tree; None if the solver does not say
    iterations: int | None = None  # of the simplex method in all nodes; None if it does not say


@dataclass(frozen=True)
class Availability:
    """Whether a solver can be used here, and under which licence."""

    installed: bool  # whether its package or program is found
    licensed: bool  # whether it may be used for models of any size
    version: str | None  # its version; None if not installed
    reason: str | None  # what is missing and how to get it; None if nothing is
    #: ``"full"``, ``"size-limited"`` or ``"none"``; None if the solver is not installed.
    licence: Literal["full", "size-limited", "none"] | None = None
    #: The largest model that the licence allows; None without a limit.
    max_variables: int | None = None
    max_rows: int | None = None

    def allows(self, variables: int, rows: int) -> bool:
        """Return whether a model of this size is within the licence."""
        return (self.max_variables is None or variables <= self.max_variables) and (
            self.max_rows is None or rows <= self.max_rows
        )


class Solver(Protocol):
    """One solver behind the common interface."""

    name: str  # name for people, without version
    #: A subset of ``{"mip", "lp", "start", "bound", "interrupt", "threads", "seed", "gap",
    #: "log"}``.
    capabilities: frozenset[str]
    supports_indicators: bool  # whether it takes rows that hold only where a binary variable is 1
    #: Whether the solver is a program that :meth:`solve` starts and, past its limit, kills. All
    #: others are called in a worker process, which can be killed from outside; an object that
    #: cannot be pickled is called in the caller's process, where nothing can end it.
    own_process: bool

    def availability(self) -> Availability:
        """Return whether the solver can be used, without solving any model of the caller's."""

    def solve(
        self, form: StandardForm, start: Floats | None, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Solve a compiled model; what is returned is not yet checked.

        `form`: the model in matrix form, with at least one variable; without Pyomo's components.
        `start`: values, shape (variables,), NaN where there is none; integer variables all have
        one. None for no start. `budget`: asked at least ten times a second whether to stop, and
        given the incumbents. Raises InputError if `options.solver_options` has a name or value that
        the solver refuses. SolverError if the model is unbounded or the solver fails.
        """
