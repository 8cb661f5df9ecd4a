"""A native solve in a thread of its own, watched from the caller's."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from anonymip.errors import SolverError
from anonymip.runtime.budget import GRACE, Budget
from anonymip.runtime.worker_pool import keep_log
from anonymip.solvers.modelling.standard_form import StandardForm
from anonymip.status import Stopped

#: Seconds between two looks at the budget, and between two progress messages without news.
_POLL = 0.05
_HEARTBEAT = 1.0


@dataclass
class Search:
    """What a solver's callbacks report and what the budget asks, between the two threads.

    Parameters
    ----------
    name
        The solver, for people.
    form
        The model that it solves.
    budget
        Asked every twentieth of a second whether to stop, and given the incumbents.
    incumbent, bound
        Minimised values, written by the solver's callbacks.
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

        Raises
        ------
        SolverError
            If `work` raises.
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
        """Return why the solver stopped.

        Parameters
        ----------
        status
            As the solver names it.
        meanings
            What each status means; one that was asked for takes the reason of the budget.
        unbounded
            Statuses of unbounded models.

        Raises
        ------
        SolverError
            If the model is unbounded, or the status is one that no solve should end with.
        """
        if status in unbounded:
            raise SolverError(
                f"{self.name} says that the model is unbounded",
                remedy="Bound the variables of the objective",
            )
        if status not in meanings:
            raise SolverError(
                f"{self.name} ended with the status {status!r}",
                remedy=keep_log(),
            )
        meaning = meanings[status]
        if meaning is Stopped.INTERRUPT and self.reason is not None:
            return self.reason
        return meaning

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
                self._report()

    def _report(self) -> None:
        kind = "branch and bound" if self.form.integer.any() else "linear program"
        self.budget.report(
            f"{self.name}: {kind}",
            incumbent=self._known(self.incumbent),
            bound=self._known(self.bound),
        )

    def _known(self, value: float) -> float | None:
        return self.form.in_model_sense(value) if abs(value) < 1e20 else None
