"""The steps of a proof: columns to start from, the relaxation, cuts, whole numbers, targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.column_generation.cuts import RankOneCut, separate
from anonymip.exact.column_generation.deepening import PoolSettings, deepen
from anonymip.exact.column_generation.regions import improve_by_regions
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
from anonymip.exact.column_generation.restricted import whole_solution
from anonymip.exact.column_generation.state import Run
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.solvers import SolverOptions
from anonymip.status import Stopped

#: Columns of the master that whole numbers are looked for, in a program that a solver ends soon.
_WHOLE = 3_000
#: Share of the time left that this may take.
_SHARE = 0.2
#: Rounds of cuts that raise the bound by less than this share of the gap, so many times in a row,
#: end them.
_STALLED, _PATIENCE = 0.004, 3
#: Columns up to which all of the gap are enumerated at once, before more cuts.
_FEW, _LOOKED_AT = 20_000, 2_000_000
#: A column counts from this share on.
_USED = 1e-6


@dataclass(frozen=True)
class Work:
    """What an effort allows.

    Parameters
    ----------
    rounds
        Of cuts.
    columns
        Of a pool at most.
    nodes
        Of a solver's search for whole numbers of the master's columns.
    regions
        Of a release that are chosen again.
    branches
        Nodes of the search of a pool, times the row types: what a node takes grows with them.
    searched
        Partial sets that the pricing looks at in all; None for no limit.
    """

    rounds: int
    columns: int
    nodes: int
    regions: int
    branches: int
    searched: int | None


@dataclass(frozen=True)
class Settings:
    """How a proof is looked for.

    Parameters
    ----------
    solver, options
        Of integer programs.
    gap
        Relative gap to stop at.
    work
        Of the effort.
    seed
        Of cuts.
    bound_only
        Whether to end with the relaxation.
    """

    solver: str
    options: SolverOptions
    gap: float
    work: Work
    seed: int
    bound_only: bool


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
        self._prices: Prices
        self._master: Master

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
        self._price_around_incumbent()
        relaxed = self._relax(None)
        self.relaxed = relaxed.solved
        if relaxed.point is not None and relaxed.solved:
            run.trace.append(
                f"linear program {relaxed.point.value:.6g} with {len(self._master.known):,} "
                f"sets in {relaxed.rounds} rounds"
            )
        if relaxed.point is not None and not settings.bound_only:
            self._whole_numbers(relaxed)
        if not settings.bound_only and relaxed.solved and self._goes_on():
            relaxed = self._cut(relaxed)
            if relaxed.centre is not None and run.incumbent is not None and self._goes_on():
                pools = PoolSettings(
                    settings.solver,
                    settings.options,
                    settings.work.columns,
                    max(1, settings.work.branches // run.rules.types),
                    settings.seed,
                    settings.gap,
                )
                self._improve(relaxed.centre)
                cuts = self._master.cuts

                def tighten(new: list[RankOneCut]) -> Centre | None:
                    self._master.add_cuts(new)
                    return self._relax(relaxed).centre

                deepen(run, prices, relaxed.centre, cuts, pools, tighten, budget)
        return budget.stop_reason() or Stopped.GAP

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

    def _relax(self, before: Relaxed | None) -> Relaxed:
        run = self._run
        centre = None if before is None else before.centre
        relaxed = solve_relaxation(self._master, self._prices, self._budget, centre=centre)
        if relaxed.centre is not None:
            run.raise_by_duals(relaxed.centre, self._master.cuts)
        return relaxed

    def _cut(self, relaxed: Relaxed) -> Relaxed:
        """Add cuts and solve again until the gap is closed, or that helps little."""
        run, master, settings = self._run, self._master, self._settings
        stalled, rounds = 0, 0
        while stalled < _PATIENCE and rounds < settings.work.rounds and self._goes_on():
            point, before = relaxed.point, run.lower
            if point is None or self._few_are_left(relaxed):
                break
            cuts = separate(
                csr_array(master.known.all().incidence(run.rules.types).T),
                point.shares,
                run.rules.coverage,
                known=master.cuts,
                seed=settings.seed + rounds,
            )
            if not cuts:
                break
            master.add_cuts(cuts)
            relaxed, rounds = self._relax(relaxed), rounds + 1
            gain = run.lower - before
            stalled = 0 if gain >= _STALLED * (run.loss - before) else stalled + 1
            if stalled == 1:
                self._whole_numbers(relaxed)
        if rounds:
            run.trace.append(f"{len(master.cuts):,} cuts in {rounds} rounds: bound {run.lower:.6g}")
        return relaxed

    def _improve(self, centre: Centre) -> None:
        """Choose neighbouring sets of the best release again."""
        run, most = self._run, self._settings.work.regions
        before = run.loss
        budget = self._budget.share(_SHARE)
        if improve_by_regions(run, self._prices, self._master, centre, most, budget):
            run.trace.append(f"neighbouring sets chosen again: {before:.6g} to {run.loss:.6g}")

    def _few_are_left(self, relaxed: Relaxed) -> bool:
        """Return whether all sets that a better release may hold are few."""
        if relaxed.centre is None:
            return False
        found = self._prices.all_below(
            relaxed.centre.multipliers,
            self._master.cuts,
            self._run.loss - relaxed.centre.bound,
            max_columns=_FEW,
            max_nodes=_LOOKED_AT,
            budget=self._budget,
        )
        return found.complete

    def _whole_numbers(self, relaxed: Relaxed) -> None:
        """Look for a better release of the master's columns of low reduced cost."""
        run, point, master = self._run, relaxed.point, self._master
        if point is None or not self._goes_on():
            return
        columns = master.known.all()
        used = point.shares > _USED
        if point.feasible and np.abs(point.shares - np.rint(point.shares)).max() <= _USED:
            run.offer_columns(columns.only(used), np.rint(point.shares[used]).astype(np.int64))
            return
        chosen = np.zeros(len(columns), np.bool_)
        likely = np.argsort(master.reduced_costs(point.multipliers), kind="stable")
        chosen[likely[:_WHOLE]] = True
        chosen |= used
        start = self._places_of_incumbent(len(columns))
        if start is not None:
            chosen |= start > 0
        settings, kept = self._settings, columns.only(chosen)
        options = settings.options
        if settings.solver == "highs":
            options = replace(options, solver_options={"mip_max_nodes": settings.work.nodes})
        found = whole_solution(
            run.rules,
            kept,
            settings.solver,
            options,
            self._budget.share(_SHARE),
            start=None if start is None else start[chosen],
        )
        if found is not None and run.offer_columns(kept, found):
            run.trace.append(f"whole numbers of the master's sets: {run.loss:.6g}")

    def _places_of_incumbent(self, count: int) -> NDArray[np.int64] | None:
        """Return (c,) how often the best release uses each column; None if some are not known."""
        own, times = self._run.incumbent_columns(), np.zeros(count, np.int64)
        for column in range(len(own)):
            place = self._master.known.place(own.of(column))
            if place is None:
                return None
            times[place] += 1
        return times if len(own) else None
