"""Solvers that are Python packages: whether they are installed, their licence, and a solve.

A licence is probed once a process, in the worker: a licence server that does not answer must
not hang the caller, and the solver's library is not loaded here. A solve runs in a thread of its
own, watched from the caller's.
"""

from __future__ import annotations

import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from anonymip.errors import AnonymipError, InputError, LicenceLimit, SolverError
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import GRACE, Budget
from anonymip.runtime.worker_pool import Killed, can_isolate, keep_log, run_isolated
from anonymip.solvers.interface import Availability, SolverOptions, SolverResult
from anonymip.solvers.standard_form import StandardForm
from anonymip.status import Stopped

#: The solvers take numbers from here on as infinite.
INFINITY = 1e20
#: What their setters raise besides exceptions of their own.
_REFUSALS = (TypeError, ValueError, KeyError, OverflowError, AttributeError)
#: Seconds that a licence server has to answer.
_PATIENCE = 20.0

#: Solves a model above the size limit; returns None if that is allowed, "limited" if the licence
#: is for small models, and otherwise the solver's reason for refusing.
Probe = Callable[[Budget], str | None]


def meanings(given: Mapping[Stopped, str]) -> dict[str, Stopped]:
    """Return why each of a solver's statuses ends it, given those of each reason as one text."""
    return {status: reason for reason, names in given.items() for status in names.split()}


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, without importing it; None if absent."""
    if find_spec(package) is None:
        return None
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _asked(probe: Probe) -> str | None:
    if not can_isolate():
        return probe(Budget())
    try:
        answer = run_isolated(probe, _PATIENCE, Budget())
    except AnonymipError as error:
        return error.message
    return "The licence check did not end" if isinstance(answer, Killed) else answer


#: Seconds between two looks at the budget, and between two progress messages without news.
_POLL = 0.05
_HEARTBEAT = 1.0


@dataclass
class Search:
    """What a solver's callbacks report and what the budget asks, between the two threads.

    The budget is asked every twentieth of a second; the callbacks write the minimised incumbent and
    bound. `name` is the solver's, for people.
    """

    name: str
    form: StandardForm
    budget: Budget
    incumbent: float = math.inf
    bound: float = -math.inf
    reason: Stopped | None = None
    _error: Exception | None = field(default=None, repr=False)

    def run(self, work: Callable[[], object], stop: Callable[[], object]) -> None:
        """Do the work in a thread; call `stop` from this one when the budget ends.

        Raises SolverError if `work` raises.
        """
        worker = threading.Thread(target=self._work, args=(work,), name=self.name, daemon=True)
        worker.start()
        try:
            self._watch(worker, stop)
        finally:
            # Only an exception (a listener's, or a second Ctrl-C) leaves the worker alive here.
            if worker.is_alive():
                stop()
                worker.join(GRACE)
        if self._error is not None:
            raise SolverError(f"{self.name} failed: {self._error}") from self._error

    def stopped(
        self, status: str, meanings: Mapping[str, Stopped], unbounded: Collection[str]
    ) -> Stopped:
        """Return why the solver stopped, from what each of its statuses means.

        One that was asked for takes the reason of the budget.

        Raises SolverError if the model is unbounded, or the status is one that no solve should end
        with.
        """
        if status in unbounded:
            raise SolverError(
                f"{self.name} says that the model is unbounded",
                remedy="Bound the variables of the objective",
            )
        if status not in meanings:
            raise SolverError(f"{self.name} ended with the status {status!r}", remedy=keep_log())
        meaning = meanings[status]
        return self.reason if meaning is Stopped.INTERRUPT and self.reason is not None else meaning

    def _work(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - handed to the caller's thread
            self._error = error

    def _watch(self, worker: threading.Thread, stop: Callable[[], object]) -> None:
        reported, last = math.inf, time.monotonic()
        while worker.is_alive():
            worker.join(_POLL)
            if self.reason is None:
                self.reason = self.budget.stop_reason()
            if self.reason is not None and worker.is_alive():
                stop()  # again and again: some solvers forget a call that comes too early
            now = time.monotonic()
            if self.incumbent < reported or now - last >= _HEARTBEAT:
                reported, last = self.incumbent, now
                kind = "branch and bound" if self.form.integer.any() else "linear program"
                self.budget.report(
                    f"{self.name}: {kind}",
                    incumbent=self._known(self.incumbent),
                    bound=self._known(self.bound),
                )

    def _known(self, value: float) -> float | None:
        return self.form.in_model_sense(value) if abs(value) < INFINITY else None


class Session(ABC):
    """A model inside a solver, for one solve; it begins with the model filled in.

    `native`: the solver's own model. `log`: the file of its log; None for none.
    """

    #: Its parameter of the time limit.
    time_parameter: str
    #: Parameters that let the next run tell an infeasible model from an unbounded one.
    without_reductions: ClassVar[Mapping[str, object]]
    #: What the log says of a start that was taken, and of one that was not.
    taken: str
    refused: str

    def __init__(
        self, native: Any, form: StandardForm, options: SolverOptions, log: Path | None
    ) -> None:
        self.native, self.form, self.options, self.log = native, form, options, log

    @abstractmethod
    def settings(self) -> dict[str, object]:
        """Return the common options in the solver's own words."""

    @abstractmethod
    def setter(self, name: str) -> Callable[[Any], object] | None:
        """Return what sets a parameter; None if there is none of this name."""

    @abstractmethod
    def add_start(self, start: Floats) -> None:
        """Hand over a start with all integer values."""

    @abstractmethod
    def run(self) -> object:
        """Solve; called in a thread of its own."""

    @abstractmethod
    def stop(self) -> object:
        """End the run, from another thread."""

    @abstractmethod
    def status(self) -> str:
        """Return the solver's name for what the run ended with."""

    @abstractmethod
    def point(self) -> tuple[Floats, float] | None:
        """Return the values of the best point and its minimised objective."""

    @abstractmethod
    def best_bound(self) -> float:
        """Return the bound on the minimised objective of a mixed-integer model."""

    @abstractmethod
    def version(self) -> str:
        """Return name and version."""

    def set(self, name: str, value: object) -> None:
        """Set a parameter that the solver has."""
        setter = self.setter(name)
        assert setter is not None
        setter(value)

    def limit(self, seconds: float) -> None:
        """Limit the next run."""
        self.set(self.time_parameter, seconds)

    def turn_off_reductions(self) -> None:
        """Let the next run tell an infeasible model from an unbounded one."""
        for name, value in self.without_reductions.items():
            self.set(name, value)

    def start_accepted(self) -> bool | None:
        """Return whether the start was taken, as the log says; None if it does not."""
        text = "" if self.log is None else self.log.read_text(errors="replace")
        if re.search(self.taken, text):
            return True
        return False if re.search(self.refused, text) else None

    def bound(self, stopped: Stopped, objective: float | None) -> float:
        """Return the bound on the minimised objective; infinite if there is none."""
        if self.form.integer.any():
            return self.best_bound()
        return objective if stopped is Stopped.OPTIMAL and objective is not None else -math.inf

    def nodes(self) -> int | None:
        """Return the nodes searched, if the solver counts them."""
        return None

    def iterations(self) -> int | None:
        """Return the iterations of the simplex method in all nodes, if the solver counts them."""
        return None


class PackageSolver(ABC):
    """Base of the adapters of optional packages: all but what happens inside the solver."""

    name: str
    #: Names on the package index, and of the optional dependency.
    package: str
    optional: str
    probe: Probe | None = None  # asks for the licence; None of free solvers
    size_limit: tuple[int, int] = (
        0,
        0,
    )  # variables and rows that the bare package's licence allows
    licence_remedy: str = ""
    #: Why it stopped, by its status; statuses of unbounded models, and those of them that may mean
    #: infeasible ones.
    statuses: Mapping[str, Stopped]
    unbounded: Collection[str]
    unclear: Collection[str]
    naming: str  # how to find names of parameters
    failure: str | None = None  # where its own exception is found
    capabilities = frozenset(
        {"mip", "lp", "start", "bound", "interrupt", "threads", "seed", "gap", "log"}
    )
    supports_indicators = True
    own_process = False

    @abstractmethod
    def session(
        self, form: StandardForm, options: SolverOptions, search: Search, log: Path | None
    ) -> AbstractContextManager[Session]:
        """Open the solver, fill the model in, and let it report to the search, and to a log."""

    def failures(self) -> tuple[type[Exception], ...]:
        """Return the solver's own exceptions."""
        return () if self.failure is None else (resolve_name(self.failure),)

    def is_too_large(self, error: Any) -> bool:
        """Return whether one of its exceptions means that the licence is for smaller models."""
        return False

    def availability(self) -> Availability:
        """Return whether the package is installed, and what its licence allows."""
        found = installed_version(self.package)
        if found is None:
            return Availability(
                False,
                False,
                None,
                f"Install it with 'pip install {self.package}', or with the package: "
                f"pip install 'anonymip[{self.optional}]'",
            )
        refusal = None if self.probe is None else _asked(self.probe)
        if refusal is None:
            return Availability(True, True, found, None, "full")
        if refusal == "limited":
            variables, rows = self.size_limit
            reason = f"The licence allows {variables} variables and {rows} rows. "
            reason += self.licence_remedy
            return Availability(True, False, found, reason, "size-limited", variables, rows)
        return Availability(True, False, found, f"{refusal}. {self.licence_remedy}", "none")

    def solve(
        self, form: StandardForm, start: Floats | None, options: SolverOptions, budget: Budget
    ) -> SolverResult:
        """Solve a compiled model, see :meth:`anonymip.solvers.Solver.solve`."""
        began, search = time.monotonic(), Search(self.name, form, budget)
        has_start = start is not None and bool(form.integer.any())
        try:
            with TemporaryDirectory(prefix=f"anonymip-{self.optional}-") as folder:
                log = options.log_file
                if log is None and has_start:
                    log = Path(folder) / "log"  # the log alone says whether it took the start
                with self.session(form, options, search, log) as session:
                    self.set_parameters(session)
                    if start is not None and has_start:
                        session.add_start(start)
                    self._run(session, search, began)
                    if session.status() in self.unclear:
                        session.turn_off_reductions()
                        self._run(session, search, began)
                    accepted = session.start_accepted() if has_start else None
                    return self._result(session, search, accepted, began)
        except self.failures() as error:
            if self.is_too_large(error):
                raise LicenceLimit(
                    f"{self.name}: {error}", remedy="Install a full licence"
                ) from error
            raise SolverError(f"{self.name} failed: {error}", remedy=keep_log()) from error

    def set_parameters(self, session: Session) -> None:
        """Set the common options and those in the solver's own words, which win."""
        refusals: tuple[type[Exception], ...] = (*self.failures(), *_REFUSALS)
        for name, value in {**session.settings(), **session.options.solver_options}.items():
            setter = session.setter(name)
            if setter is None:
                raise InputError(
                    f"solver_options: {self.name} has no parameter {name!r}", remedy=self.naming
                )
            try:
                setter(value)
            except refusals as error:
                raise InputError(
                    f"solver_options: {self.name} refuses {value!r} for {name} ({error})",
                    remedy=f"See {self.name}'s list of parameters for the type and range",
                ) from error

    def _run(self, session: Session, search: Search, began: float) -> None:
        limit = session.options.time_limit
        if limit is not None and session.time_parameter not in session.options.solver_options:
            session.limit(max(0.1, limit - (time.monotonic() - began)))
        search.run(session.run, session.stop)

    def _result(
        self, session: Session, search: Search, accepted: bool | None, began: float
    ) -> SolverResult:
        form, point, bound = session.form, None, -math.inf
        stopped = search.stopped(session.status(), self.statuses, self.unbounded)
        if stopped is not Stopped.INFEASIBLE:
            point = session.point()
            bound = session.bound(stopped, None if point is None else point[1])
        return SolverResult(
            stopped=stopped,
            values=None if point is None else point[0],
            objective=None if point is None else form.in_model_sense(point[1]),
            bound=form.in_model_sense(bound) if abs(bound) < INFINITY else None,
            seconds=time.monotonic() - began,
            solver=session.version(),
            start_accepted=accepted,
            nodes=session.nodes(),
            iterations=session.iterations(),
        )
