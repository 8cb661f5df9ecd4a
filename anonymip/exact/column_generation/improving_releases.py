"""Better releases while a proof goes on: dives, neighbourhoods, perturbations, integer programs.

A dive keeps columns of the relaxation in steps. Those that the linear program uses nearly as whole
are kept together, at least one each time; then it is solved again with them, and new columns are
priced for the rows that are left, which the old ones suit less and less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Assignment, Classes
from anonymip.errors import SolverError
from anonymip.exact.column_generation.conditions import ColumnRules, columns_of, release_of
from anonymip.exact.column_generation.pricing import (
    Centre,
    Master,
    Prices,
    Relaxed,
)
from anonymip.exact.column_generation.release_neighbourhoods import (
    columns_below,
    improve_by_neighbourhoods,
    iterated_local_search,
)
from anonymip.exact.column_generation.run import Run
from anonymip.exact.column_generation.settings import FEW, NUMBERS, Settings
from anonymip.exact.set_partitioning.restricted_master import (
    Columns,
    KnownColumns,
    MasterPoint,
    Mip,
    Multipliers,
    solve_whole,
)
from anonymip.heuristics.growing.joining import place_leftovers
from anonymip.heuristics.local_search.local_search import improve
from anonymip.problem import is_plain
from anonymip.runtime.budget import Budget

_PRICING, _IMPROVING = NUMBERS.pricing, NUMBERS.improving


class Improver:
    """Looks for releases that lose less than the best one of a run, which is offered them."""

    def __init__(
        self, run: Run, settings: Settings, prices: Prices, master: Master, budget: Budget
    ) -> None:
        self._run, self._settings, self._budget = run, settings, budget
        self._prices, self._master = prices, master
        # The release that perturbations left as it was.
        self._perturbed: Assignment | None = None

    def after_relaxation(self, relaxed: Relaxed) -> None:
        """Look for a release when the relaxation has ended for the first time."""
        if not self._take_whole(relaxed) and self._goes_on():
            self._dive(_IMPROVING.kept[0])
            if self._goes_on() and self._run.problem.n <= FEW:
                self._whole_numbers(relaxed.centre, self._master.known.all())

    def after_cuts(self, relaxed: Relaxed) -> None:
        """Look for a better release when cuts have raised the bound."""
        if self._take_whole(relaxed) or relaxed.centre is None:
            return
        for share in _IMPROVING.kept:
            if self._goes_on():
                self._dive(share)
        if self._goes_on():
            self._whole_numbers(relaxed.centre, self._master.known.all())

    def at_length(self, relaxed: Relaxed) -> None:
        """Look for better releases in ways that take as long as a proof of moderate size."""
        centre = relaxed.centre
        if centre is None:
            return
        for _ in range(_IMPROVING.times):
            before = self._run.loss
            if self._goes_on():
                self._neighbourhoods(centre)
            if self._run.loss >= before:
                break
        if self._goes_on():
            self.perturb()

    def _goes_on(self) -> bool:
        return self._budget.stop_reason() is None and not self._run.is_closed(self._settings.gap)

    def _take_whole(self, relaxed: Relaxed) -> bool:
        """Take the vertex of the master if it is whole, and return whether it is."""
        point = relaxed.point
        if point is None or not point.feasible:
            return False
        times = np.rint(point.shares)
        if np.abs(point.shares - times).max(initial=0.0) > _IMPROVING.used:
            return False
        columns = self._master.known.all()
        # Columns that were found since are not in the point.
        used = np.zeros(len(columns), np.int64)
        used[: len(times)] = times
        self._run.offer_columns(columns, used)
        return True

    def _dive(self, share: float) -> None:
        """Take the columns that the master uses at least so much, and go on from these."""
        run, before = self._run, self._run.loss
        found = dive(self._master, self._prices, self._budget.share(_IMPROVING.time), share)
        if found is None:
            return
        run.offer(found)
        if isinstance(found, Classes) and self._moves():
            labels = improve(
                run.problem,
                found.labels,
                effort="normal",
                budget=self._budget.share(_IMPROVING.time),
                seed=self._settings.seed,
            )
            found = Classes(labels)  # type: ignore[arg-type]
            run.offer(found)
        # Parts of releases that are worse may be better.
        self._master.add(columns_of(run.rules, found))
        self._keep(f"sets of the linear program: {run.loss:.6g}", before)

    def perturb(self) -> None:
        """Exchange records of a few classes at random, and move others after them, many times."""
        run, problem = self._run, self._run.problem
        if run.incumbent is None or not self._moves():
            return
        release, before = run.incumbent.assignment, run.loss
        if not isinstance(release, Classes) or release is self._perturbed:
            return
        share = _IMPROVING.records / problem.n * (problem.k / _IMPROVING.k) ** 2
        rounds = int(self._settings.work.perturbations * min(share, _IMPROVING.perturbations))
        budget, seed = self._budget.share(_IMPROVING.time), self._settings.seed
        labels = iterated_local_search(
            problem,
            release.labels,
            rounds=rounds,
            patience=max(1, rounds // _IMPROVING.idle),
            budget=budget,
            seed=seed,
        )
        run.offer(Classes(labels))  # type: ignore[arg-type]
        self._perturbed = run.incumbent.assignment
        self._keep(f"classes perturbed: {run.loss:.6g}", before)

    def _moves(self) -> bool:
        """Return whether records are moved: not in few, where kernels would be compiled for it."""
        problem = self._run.problem
        return problem.n > FEW and is_plain(problem) and problem.compiled.has_tables

    def _neighbourhoods(self, centre: Centre) -> None:
        """Choose neighbouring sets of the best release again, and then sets of all of it."""
        run, before = self._run, self._run.loss
        # A larger table has more of them.
        most = int(
            self._settings.work.neighbourhoods * max(1.0, run.rules.types / _IMPROVING.types)
        )
        if not run.rules.freeform:
            # Neighbourhoods of large classes take long, and perturbing them gains as much.
            most = int(most * min(1.0, _IMPROVING.k / run.problem.k) ** 4)
        if not most:
            return
        pool = columns_below(run, self._prices, self._master, centre, self._budget)
        budget = self._budget.share(_IMPROVING.time)
        if improve_by_neighbourhoods(run, pool, centre, self._master.unit, most, budget):
            self._keep(f"neighbouring sets chosen again: {run.loss:.6g}", before)
        if self._goes_on():
            self._whole_numbers(centre, pool)

    def _whole_numbers(self, centre: Centre | None, columns: Columns) -> None:
        """Look for a better release of the columns of lowest reduced cost."""
        run, master, settings = self._run, self._master, self._settings
        if centre is None or not settings.work.nodes:
            return
        known = KnownColumns()
        known.add(run.incumbent_columns())
        known.add(columns)
        columns = known.all()
        own = run.incumbent_columns()
        places = [known.place(own.of(at)) for at in range(len(own))]
        start = np.bincount(np.array(places, np.int64), minlength=len(columns))
        reduced = master.reduced_costs(centre.multipliers, columns)
        most = min(
            max(_IMPROVING.whole_least, _IMPROVING.whole * run.rules.types),
            _IMPROVING.whole_most,
        )
        chosen = np.zeros(len(columns), np.bool_)
        chosen[np.argsort(reduced, kind="stable")[:most]] = True
        # What costs as much as the gap is in no better release.
        chosen &= reduced < run.loss - centre.value
        chosen |= start > 0
        if not chosen.any():
            return
        kept, before = columns.only(chosen), run.loss
        options = settings.options
        if settings.solver == "highs":
            options = replace(options, solver_options={"mip_max_nodes": settings.work.nodes})
        try:
            _, found = solve_whole(
                run.rules,
                kept,
                Mip(settings.solver, options, self._budget.share(_IMPROVING.time)),
                start=None if run.incumbent is None else start[chosen],
            )
        except SolverError:
            return
        if found is not None and run.offer_columns(kept, found):
            self._keep(f"whole numbers of sets: {run.loss:.6g}", before)

    def _keep(self, remark: str, before: float) -> None:
        """Note what was gained, and let the master know the sets."""
        if self._run.loss < before:
            self._run.trace.append(remark)
            self._master.add(self._run.incumbent_columns())


def dive(master: Master, prices: Prices, budget: Budget, share: float = 0.5) -> Assignment | None:
    """Return a release made of columns that the master uses; None if none came out in time.

    The master gets further columns and is left as it was otherwise. Columns used at least so much
    are kept together.
    """
    kept = _Kept(master, share)
    try:
        complete = _dive(kept, prices, budget)
    finally:
        kept.free()
    if not complete:
        return None
    columns = master.known.all()
    times = np.zeros(len(columns), np.int64)
    times[: len(kept.times)] = kept.times
    return _completed(master.rules, columns, times)


def _dive(kept: _Kept, prices: Prices, budget: Budget) -> bool:
    """Keep columns until none is left to keep; return whether there was time."""
    point = kept.master.solve(budget)
    while point is not None and budget.stop_reason() is None:
        if not kept.extend(point):
            return True
        point = kept.master.solve(budget)
        for _ in range(_IMPROVING.dive_rounds):
            if point is None or not kept.rows_left() or not kept.price(prices, point, budget):
                break
            point = kept.master.solve(budget)
    return False


class _Kept:
    """Columns that are kept, and what they leave."""

    def __init__(self, master: Master, share: float) -> None:
        self.master, self._share = master, share
        self.times = np.zeros(len(master.known), np.int64)
        self._left = master.rules.coverage.copy()

    def rows_left(self) -> int:
        """Return how many rows no column kept holds."""
        return int(self._left.sum())

    def extend(self, point: MasterPoint) -> bool:
        """Keep the columns that are used most and fit, and return whether there are any."""
        rules, columns = self.master.rules, self.master.known.all()
        self.times = np.append(self.times, np.zeros(len(columns) - len(self.times), np.int64))
        more = point.shares - self.times
        found = False
        for column in np.argsort(-more, kind="stable").tolist():
            if more[column] < (self._share if found else _IMPROVING.used):
                break
            types, counts = np.unique(columns.of(column), return_counts=True)
            fits = int((self._left[types] // counts).min())
            rest = self.rows_left() - int(counts.sum())
            # Fewer rows than a column holds would be left without one.
            if not fits or 0 < rest < rules.smallest:
                continue
            often = min(fits, max(1, int(more[column] + _IMPROVING.used)))
            self._left[types] -= often * counts
            self.times[column] += often
            found = True
        self.master.require(self.times)
        return found

    def price(self, prices: Prices, point: MasterPoint, budget: Budget) -> bool:
        """Add columns of the rows left, and return whether there are new ones."""
        rules, given = self.master.rules, point.multipliers
        # No column with a row that has been dealt with pays.
        least = -rules.largest * max(float(given.duals.max()), self.master.unit)
        duals = np.where(self._left > 0, given.duals, least)
        priced = prices.best(
            Multipliers(duals, given.cuts, given.count),
            self.master.cuts,
            below=-_PRICING.negative * self.master.unit,
            max_nodes=_PRICING.heuristic_nodes,
            budget=budget,
        )
        return bool(self.master.add(priced.columns))

    def free(self) -> None:
        """Let the master use the columns as it likes again."""
        self.master.require(np.zeros_like(self.times))


def _completed(rules: ColumnRules, columns: Columns, times: NDArray[np.int64]) -> Assignment | None:
    """Return the release of some columns, rows that are left over being put into classes."""
    if rules.freeform:
        held = columns.incidence(rules.types) @ times
        return release_of(rules, columns, times) if (held == rules.sides).all() else None
    classes = release_of(rules, columns, times)
    assert isinstance(classes, Classes)
    left = np.flatnonzero(classes.labels == SUPPRESSED)
    if np.isfinite(rules.price) or not len(left):
        return classes
    groups = [group.tolist() for group in classes.groups()]
    if place_leftovers(rules.problem, groups, left.tolist(), by_increase=True):
        return None
    labels = np.empty(rules.problem.n, np.int64)
    for label, group in enumerate(groups):
        labels[group] = label
    return Classes(labels)  # type: ignore[arg-type]
