"""The state of a run of column generation: the best release, the best bound, who proves it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from anonymip.assignments import Assignment
from anonymip.certificates import CutDual, DualProof
from anonymip.enumeration.cluster_sets import Columns
from anonymip.exact.column_generation.conditions import ColumnRules, columns_of, release_of
from anonymip.exact.column_generation.pricing import Centre
from anonymip.exact.column_generation.settings import Settings
from anonymip.exact.model_run import FAILED, what_failed
from anonymip.exact.set_partitioning.restricted_master import Multipliers
from anonymip.exact.trust import RefutedClaim, TrustOfLosses, refuse_refuted
from anonymip.problem import Problem
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget, Progress
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution, under_assumptions


@dataclass(eq=False)
class Run:
    """One run: what is asked, the best release and bound so far, and remarks.

    Whatever reports to its budget tells the loss and the bound of this run: what searches and
    solvers know are parts of it: targets, pools, sums in other units. `by_duals` is the best bound
    that needs no solver's word; `solver` the name and version of that of integer programs, None if
    none was needed.
    """

    problem: Problem
    rules: ColumnRules
    settings: Settings = field(default_factory=Settings)
    budget: Budget = field(default_factory=Budget)
    watch: Stopwatch = field(default_factory=Stopwatch)
    incumbent: Solution | None = None
    bound: Bound | None = None
    trace: list[str] = field(default_factory=list)
    solver: str | None = None
    by_duals: Bound | None = None

    @property
    def loss(self) -> float:
        """Loss of the best release; infinite without one."""
        return np.inf if self.incumbent is None else self.incumbent.objective

    @property
    def lower(self) -> float:
        """The best bound; minus infinity without one."""
        return -np.inf if self.bound is None else self.bound.value

    def __post_init__(self) -> None:
        listener = self.budget.progress
        if listener is None:
            return

        def progress(message: Progress) -> None:
            loss = None if self.incumbent is None else self.loss
            bound = None if self.bound is None else self.lower
            listener(replace(message, incumbent=loss, bound=bound))

        self.budget = replace(self.budget, progress=progress)

    @property
    def goes_on(self) -> bool:
        """Whether there is something left to find, and time for it."""
        return self.budget.stop_reason() is None and not self.is_closed()

    def is_closed(self, gap: float | None = None) -> bool:
        """Return whether the bound is within a relative gap of the loss, or proves it optimal.

        The gap is that of the settings if none is given.
        """
        gap = self.settings.gap if gap is None else gap
        if self.incumbent is None or self.bound is None:
            return False
        if gap and self.loss - self.lower <= gap * abs(self.loss):
            return True
        return self.incumbent.with_bound(self.bound).is_optimal

    def offer(self, assignment: Assignment) -> bool:
        """Take a release if it is better than what is known, and return whether it is."""
        found = Solution.of(self.problem, assignment, method="column-generation")
        if found.objective >= self.loss:
            return False
        self.incumbent = found
        return True

    def offer_columns(self, columns: Columns, times: Ints) -> bool:
        """Take what whole numbers of columns make, and return whether it is better."""
        covered = columns.incidence(self.rules.types) @ times
        # What a solver's tolerances leave uncovered is no release, unless rows may be left out.
        short = not np.isfinite(self.rules.price) and (covered < self.rules.sides).any()
        if short or (covered > self.rules.sides).any():
            return False
        assignment = release_of(self.rules, columns, times)
        return assignment is not None and self.offer(assignment)

    def incumbent_columns(self) -> Columns:
        """Return the columns of the best release, each as often as it uses it."""
        if self.incumbent is None:
            return Columns.none()
        return columns_of(self.rules, self.incumbent.assignment)

    def raise_by_duals(self, centre: Centre) -> None:
        """Take the bound of feasible duals, which plain arithmetic proves."""
        known = -np.inf if self.by_duals is None else self.by_duals.value
        if centre.bound <= known:
            return
        source = under_assumptions(self.problem, "column generation, linear program")
        duals = dual_proof(self.rules, centre.multipliers)
        self.by_duals = Bound(centre.bound, source, "argument", self.watch.seconds, duals)
        if centre.bound > self.lower:
            self.bound = self.by_duals

    def go_without_solver(self, failure: BaseException, compared: Solution | None) -> None:
        """Keep what is known when a solver fails; when it is refuted, no bound of it either.

        `compared` is a release that needs no solver; None if there is none.
        """
        if isinstance(failure, RefutedClaim):
            self.bound = self.by_duals
        if compared is not None:
            self.offer(compared.assignment)
        self.trace.append(f"{what_failed(failure)}: {FAILED}the best release so far is kept")

    def raise_by_pool(
        self,
        value: float,
        solver: str | None,
        duals: DualProof | None,
        compared: Callable[[], Solution | None],
    ) -> None:
        """Take the bound that the search of a pool ends with, up to a resolution as solvers have.

        A solver reported it, or it rests on duals that were checked. `compared` returns a release
        that needs no solver, which its claims are held against: RefutedClaim if it is better than
        any can be.
        """
        source = "column generation, sets below a target"
        if solver is not None:
            self.solver = solver
            source = f"{source} with {solver}"
            trust = TrustOfLosses.of(self.problem, "set-partition")
            for known in (self.incumbent, compared()):
                if known is not None:
                    refuse_refuted(solver, value, known.objective, trust.slack, known)
            trusted, remarks = trust.bound(value, self.loss)
            self.trace += [remark for remark in remarks if remark not in self.trace]
            if trusted is None:
                return
            value = trusted
        source = under_assumptions(self.problem, source)
        found = Bound(max(value, self.lower), source, "solver", self.watch.seconds, duals)
        proven = self.incumbent is not None and self.incumbent.with_bound(found).is_optimal
        if value > self.lower or (proven and not self.is_closed(0.0)):
            self.bound = found


def dual_proof(rules: ColumnRules, multipliers: Multipliers) -> DualProof | None:
    """Return feasible duals as a certificate reads them; None where rows may be left out."""
    if np.isfinite(rules.price):
        return None
    type_of = rules.rows.type_of
    used = [
        CutDual(np.flatnonzero(np.isin(type_of, cut.types)), cut.divisor, dual)
        for cut, dual in multipliers.paid_cuts
    ]
    return DualProof(
        duals=multipliers.duals[type_of],
        smallest=rules.smallest,
        largest=rules.largest,
        weight="one" if rules.freeform else "size",
        coverage=rules.smallest if rules.freeform else 1,
        count_dual=multipliers.count,
        count_limit=rules.most,
        cuts=tuple(used),
    )
