"""The steps of a proof: columns to start from, the relaxation, cuts, whole numbers, targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from anonymip.exact.column_generation.cuts import RankOneCut, separate
from anonymip.exact.column_generation.deepening import PoolSettings, deepen
from anonymip.exact.column_generation.improving.improver import Improver
from anonymip.exact.column_generation.relaxation.loop import (
    HEURISTIC_NODES,
    Relaxed,
    solve_relaxation,
)
from anonymip.exact.column_generation.relaxation.master import Master
from anonymip.exact.column_generation.relaxation.multipliers import Centre, Multipliers
from anonymip.exact.column_generation.relaxation.prices import (
    ListedColumns,
    Prices,
    SearchedColumns,
)
from anonymip.exact.column_generation.releases import columns_of
from anonymip.exact.column_generation.settings import Settings
from anonymip.exact.column_generation.state import Run
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Rounds of cuts that raise the bound by less than this share of the gap, so many times in a row,
#: end them.
_STALLED, _PATIENCE = 0.004, 3
#: Share of the time left that they may take.
_CUTTING = 0.5
#: Columns up to which all of the gap are enumerated at once, before more cuts.
_FEW, _LOOKED_AT = 20_000, 2_000_000
#: So few are searched sooner than a better release is found.
_PROVEN_AT_ONCE = 2_000


class Proof:
    """The steps of one run.

    Parameters
    ----------
    run
        What is known so far.
    settings
        Of the steps.
    budget
        Ends them.

    Attributes
    ----------
    relaxed
        Whether the linear program over all columns was solved.
    """

    def __init__(self, run: Run, settings: Settings, budget: Budget) -> None:
        self._run, self._settings, self._budget = run, settings, budget
        self.relaxed = False
        # Whether targets need no better release, since all sets that one may hold are few.
        self._left = np.inf
        self._prices: Prices
        self._master: Master
        self._improver: Improver

    def prove(self, releases: Sequence[Solution]) -> Stopped:
        """Go as far as settings and budget allow, and return what ended it.

        Parameters
        ----------
        releases
            Whose columns the master starts from.
        """
        run, budget, settings = self._run, self._budget, self._settings
        prices = self._priced()
        if prices is None:
            return budget.stop_reason() or Stopped.TIME
        self._prices = prices
        self._master = Master(run.rules, self._unit())
        for release in releases:
            self._master.add(columns_of(run.rules, release.assignment))
        self._improver = Improver(run, settings, prices, self._master, budget)
        self._price_around_incumbent()
        relaxed = self._relax(None)
        self.relaxed = relaxed.solved
        if relaxed.point is not None and relaxed.solved:
            run.trace.append(
                f"linear program {relaxed.point.value:.6g} with {len(self._master.known):,} "
                f"sets in {relaxed.rounds} rounds"
            )
        if relaxed.point is not None and not settings.bound_only:
            self._improver.after_relaxation(relaxed)
        if not settings.bound_only and relaxed.solved and self._goes_on():
            relaxed = self._cut(relaxed, budget.share(_CUTTING))
            self._finish(relaxed)
        # The last message tells what all of it came to.
        budget.report(f"{len(self._master.known):,} sets of records")
        return budget.stop_reason() or Stopped.GAP

    def _finish(self, relaxed: Relaxed) -> None:
        """Look for better releases and try targets, of which few take less than a long search."""
        run, settings, master = self._run, self._settings, self._master
        few = self._left <= _PROVEN_AT_ONCE
        if not few and not run.is_closed(settings.gap):
            self._improver.after_cuts(relaxed)
        if relaxed.centre is None or run.incumbent is None or not self._goes_on():
            return
        pools = PoolSettings(
            settings.solver,
            settings.options,
            settings.work.columns,
            max(1, settings.work.branches // (run.rules.types * run.problem.k**2)),
            settings.seed,
            settings.gap,
        )
        last, searched = relaxed, few

        def tighten(new: list[RankOneCut]) -> Centre | None:
            nonlocal last
            master.add_cuts(new)
            last = self._relax(relaxed)
            return last.centre

        def improve() -> None:
            nonlocal searched
            if not searched and self._goes_on():
                self._improver.at_length(last)
            searched = True

        if run.rules.freeform:
            # A solver takes their pools as a whole.
            improve()
        centre, cuts = relaxed.centre, master.cuts
        deepen(run, self._prices, centre, cuts, pools, tighten, improve, self._budget)
        improve()

    def _goes_on(self) -> bool:
        ended = self._budget.stop_reason() is not None or self._prices.spent
        return not ended and not self._run.is_closed(self._settings.gap)

    def _priced(self) -> Prices | None:
        """Return the pricing; None if there was no time to list all columns."""
        rules = self._run.rules
        compiled = rules.problem.compiled
        if compiled.has_tables and compiled.monotone:
            return SearchedColumns(rules, self._settings.work.searched)
        listed = ListedColumns(rules, self._budget)
        return listed if listed.stopped is None else None

    def _unit(self) -> float:
        run = self._run
        typical = [run.loss if np.isfinite(run.loss) else 0.0, run.problem.whole]
        return next((abs(loss) / run.problem.n for loss in typical if loss), 1.0)

    def _price_around_incumbent(self) -> None:
        """Add the best sets of each record if every record is worth what it loses now."""
        run, rules = self._run, self._run.rules
        if run.incumbent is None:
            duals = np.full(rules.types, abs(run.problem.whole) / rules.sides.sum())
        else:
            columns = columns_of(rules, run.incumbent.assignment)
            share = columns.costs / columns.sizes
            held = columns.incidence(rules.types)
            duals = held @ share / np.maximum(held.sum(axis=1), 1.0)
        asked = Multipliers(np.minimum(duals, rules.price), np.empty(0), 0.0)
        priced = self._prices.best(
            asked, [], below=np.inf, max_nodes=HEURISTIC_NODES, budget=self._budget
        )
        self._master.add(priced.columns)

    def _relax(self, before: Relaxed | None, budget: Budget | None = None) -> Relaxed:
        run, budget = self._run, budget or self._budget
        centre = None if before is None else before.centre
        relaxed = solve_relaxation(self._master, self._prices, budget, centre=centre)
        if relaxed.centre is not None:
            run.raise_by_duals(relaxed.centre, self._master.cuts)
        return relaxed

    def _cut(self, relaxed: Relaxed, budget: Budget) -> Relaxed:
        """Add cuts and solve again until the gap is closed, or that helps little."""
        run, master, settings = self._run, self._master, self._settings
        stalled, rounds = 0, 0
        while stalled < _PATIENCE and rounds < settings.work.rounds and self._goes_on():
            if budget.stop_reason() is not None:
                break
            point, before = relaxed.point, run.lower
            self._left = self._sets_left(relaxed)
            if point is None or self._left <= _FEW:
                break
            if not rounds:
                self._improver.deal()
            # Columns that were found since are not in the point.
            held = csr_array(master.known.all().incidence(run.rules.types).T)
            cuts = separate(
                held[: len(point.shares)],
                point.shares,
                run.rules.coverage,
                known=master.cuts,
                seed=settings.seed + rounds,
            )
            if not cuts:
                break
            master.add_cuts(cuts)
            relaxed, rounds = self._relax(relaxed, budget), rounds + 1
            gain = run.lower - before
            stalled = 0 if gain >= _STALLED * (run.loss - before) else stalled + 1
        if rounds:
            run.trace.append(f"{len(master.cuts):,} cuts in {rounds} rounds: bound {run.lower:.6g}")
        return relaxed

    def _sets_left(self, relaxed: Relaxed) -> float:
        """Return how many sets a better release may hold, infinite if they are not few."""
        if relaxed.centre is None:
            return np.inf
        found = self._prices.all_below(
            relaxed.centre.multipliers,
            self._master.cuts,
            self._run.loss - relaxed.centre.value,
            max_columns=_FEW,
            max_nodes=_LOOKED_AT,
            budget=self._budget,
        )
        return len(found.columns) if found.complete else np.inf
