"""Better releases while a proof goes on: out of the relaxation, by chance, by whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anonymip.assignments import Assignment, Classes
from anonymip.exact.column_generation.improving.dealing import deal_again
from anonymip.exact.column_generation.improving.diving import dive
from anonymip.exact.column_generation.improving.regions import columns_below, improve_by_regions
from anonymip.exact.column_generation.improving.restricted import whole_solution
from anonymip.exact.column_generation.relaxation.columns import Columns, KnownColumns
from anonymip.exact.column_generation.relaxation.loop import Relaxed
from anonymip.exact.column_generation.relaxation.master import Master
from anonymip.exact.column_generation.relaxation.multipliers import Centre
from anonymip.exact.column_generation.relaxation.prices import Prices
from anonymip.exact.column_generation.releases import columns_of
from anonymip.exact.column_generation.settings import Settings
from anonymip.exact.column_generation.state import Run
from anonymip.exact.column_generation.warm_columns import FEW
from anonymip.heuristics.local_search.local_search import improve
from anonymip.problem_rules import is_plain
from anonymip.runtime.budget import Budget

#: Columns that whole numbers are looked for, for each row type, and at least and at most.
_WHOLE, _LEAST, _MOST = 3, 500, 3_000
#: Columns that the master uses at least so much are kept together, one time after the other.
_SHARES_KEPT = (0.5, 0.8)
#: Neighbouring sets are chosen again so often at most, in as many regions as the effort says for so
#: many row types.
_TIMES, _REGIONS = 3, 500
#: Share of the time left that each step may take.
_SHARE = 0.2
#: A column counts from this share on.
_USED = 1e-6
#: Deals pay the more, the larger classes are and the fewer; and so much more at most.
_RECORDS, _K, _DEALS = 400, 3, 10
#: They end when this part of them has gained nothing.
_IDLE = 3


class Improver:
    """Looks for releases that lose less than the best one of a run.

    Parameters
    ----------
    run
        Is offered what is found.
    settings
        How much is tried.
    prices, master
        Give columns.
    budget
        Ends it.
    """

    def __init__(
        self, run: Run, settings: Settings, prices: Prices, master: Master, budget: Budget
    ) -> None:
        self._run, self._settings, self._budget = run, settings, budget
        self._prices, self._master = prices, master
        # The release that dealing classes again left as it was.
        self._dealt: Assignment | None = None

    def after_relaxation(self, relaxed: Relaxed) -> None:
        """Look for a release when the relaxation has ended for the first time."""
        if not self._take_whole(relaxed) and self._goes_on():
            self._dive(_SHARES_KEPT[0])
            if self._goes_on() and self._run.problem.n <= FEW:
                self._whole_numbers(relaxed.centre, self._master.known.all())

    def after_cuts(self, relaxed: Relaxed) -> None:
        """Look for a better release when cuts have raised the bound."""
        if self._take_whole(relaxed) or relaxed.centre is None:
            return
        for share in _SHARES_KEPT:
            if self._goes_on():
                self._dive(share)
        if self._goes_on():
            self._whole_numbers(relaxed.centre, self._master.known.all())

    def at_length(self, relaxed: Relaxed) -> None:
        """Look for better releases in ways that take as long as a proof of moderate size."""
        centre = relaxed.centre
        if centre is None:
            return
        for _ in range(_TIMES):
            before = self._run.loss
            if self._goes_on():
                self._regions(centre)
            if self._run.loss >= before:
                break
        if self._goes_on():
            self.deal()

    def _goes_on(self) -> bool:
        return self._budget.stop_reason() is None and not self._run.is_closed(self._settings.gap)

    def _take_whole(self, relaxed: Relaxed) -> bool:
        """Take the vertex of the master if it is whole, and return whether it is."""
        point = relaxed.point
        if point is None or not point.feasible:
            return False
        times = np.rint(point.shares)
        if np.abs(point.shares - times).max(initial=0.0) > _USED:
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
        found = dive(self._master, self._prices, self._budget.share(_SHARE), share)
        if found is None:
            return
        run.offer(found)
        if isinstance(found, Classes) and self._moves():
            labels = improve(
                run.problem,
                found.labels,
                effort="normal",
                budget=self._budget.share(_SHARE),
                seed=self._settings.seed,
            )
            found = Classes(labels)  # type: ignore[arg-type]
            run.offer(found)
        # Parts of releases that are worse may be better.
        self._master.add(columns_of(run.rules, found))
        self._keep(f"sets of the linear program: {run.loss:.6g}", before)

    def deal(self) -> None:
        """Deal records of a few classes again, and move others after them, many times."""
        run, problem = self._run, self._run.problem
        if run.incumbent is None or not self._moves():
            return
        release, before = run.incumbent.assignment, run.loss
        if not isinstance(release, Classes) or release is self._dealt:
            return
        share = _RECORDS / problem.n * (problem.k / _K) ** 2
        rounds = int(self._settings.work.deals * min(share, _DEALS))
        budget, seed = self._budget.share(_SHARE), self._settings.seed
        labels = deal_again(
            problem,
            release.labels,
            rounds=rounds,
            patience=max(1, rounds // _IDLE),
            budget=budget,
            seed=seed,
        )
        run.offer(Classes(labels))  # type: ignore[arg-type]
        self._dealt = run.incumbent.assignment
        self._keep(f"classes dealt again: {run.loss:.6g}", before)

    def _moves(self) -> bool:
        """Return whether records are moved: not in few, where kernels would be compiled for it."""
        problem = self._run.problem
        return problem.n > FEW and is_plain(problem) and problem.compiled.has_tables

    def _regions(self, centre: Centre) -> None:
        """Choose neighbouring sets of the best release again, and then sets of all of it."""
        run, before = self._run, self._run.loss
        # A larger table has more of them.
        most = int(self._settings.work.regions * max(1.0, run.rules.types / _REGIONS))
        if not run.rules.freeform:
            # Regions of large classes take long, and dealing them again gains as much.
            most = int(most * min(1.0, _K / run.problem.k) ** 4)
        if not most:
            return
        pool = columns_below(run, self._prices, self._master, centre, self._budget)
        budget = self._budget.share(_SHARE)
        if improve_by_regions(run, pool, centre, self._master.unit, most, budget):
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
        most = min(max(_LEAST, _WHOLE * run.rules.types), _MOST)
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
        found = whole_solution(
            run.rules,
            kept,
            settings.solver,
            options,
            self._budget.share(_SHARE),
            start=None if run.incumbent is None else start[chosen],
        )
        if found is not None and run.offer_columns(kept, found):
            self._keep(f"whole numbers of sets: {run.loss:.6g}", before)

    def _keep(self, remark: str, before: float) -> None:
        """Note what was gained, and let the master know the sets."""
        if self._run.loss < before:
            self._run.trace.append(remark)
            self._master.add(self._run.incumbent_columns())
