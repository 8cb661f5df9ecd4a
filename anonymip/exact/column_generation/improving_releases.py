"""Better releases while a proof goes on: dives, neighbourhoods, iterated search, integer programs.

A dive keeps columns of the relaxation in steps. Those that the linear program uses nearly as whole
are kept together, at least one each time; then it is solved again with them, and new columns are
priced for the rows that are left, which the old ones suit less and less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csc_array, csr_array

from anonymip.assignments import SUPPRESSED, Assignment, Classes
from anonymip.enumeration.cluster_sets import Columns
from anonymip.enumeration.squared_errors import are_priced
from anonymip.errors import SolverError
from anonymip.exact.column_generation.conditions import (
    ColumnRules,
    columns_of,
    release_of,
    sets_as_columns,
)
from anonymip.exact.column_generation.pricing import Centre, Master, Prices, Relaxed
from anonymip.exact.column_generation.run import Run
from anonymip.exact.column_generation.settings import FEW, IMPROVING, NEAR, PRICING
from anonymip.exact.set_partitioning.branch_and_bound import solve_pool
from anonymip.exact.set_partitioning.column_pool import Pool
from anonymip.exact.set_partitioning.restricted_master import (
    KnownColumns,
    MasterPoint,
    Mip,
    solve_whole,
)
from anonymip.heuristics.growing.groups import place_leftovers
from anonymip.heuristics.local_search.local_search import improve
from anonymip.heuristics.local_search.rounds import iterate_classes
from anonymip.problem import is_plain
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution


def improve_by_neighbourhoods(
    run: Run, pool: Columns, centre: Centre, unit: float, most: int, budget: Budget
) -> bool:
    """Choose neighbouring sets of the best release again, and return whether that gains.

    Sets are neighbours that columns of low reduced cost, the pool, touch both of. Those of the
    highest reduced cost are the seeds of neighbourhoods first. Every neighbourhood, `most` of them,
    is searched shortly over the columns of low reduced cost within it.
    """
    own = run.incumbent_columns()
    complete = own.incidence(run.rules.types).sum() == run.rules.sides.sum()
    if not (complete or np.isfinite(run.rules.price)):
        return False
    records = NEAR.records
    if run.rules.freeform:
        # Each record lies in k sets of k: fewer sets hold none of them whole.
        records = min(NEAR.most_records, records * max(9, run.problem.k**2) // 9)
    parts = _Neighbourhoods(run.rules.types, pool.and_also(own), centre, unit, records)
    release = {place: own.of(place).astype(np.int64) for place in range(len(own))}
    costs = dict(enumerate(own.costs.tolist()))
    seeds = np.argsort(-own.reduced_costs(centre.multipliers.duals), kind="stable").tolist()
    solved = 0
    while seeds and solved < most and budget.stop_reason() is None:
        seed = seeds.pop(0)
        if seed not in release:
            continue
        solved += 1
        chosen = parts.around(seed, release)
        before = sum(costs[place] for place in chosen)
        new = parts.best([release[place] for place in chosen], before * (1.0 - NEAR.gain), budget)
        budget.report("neighbouring sets chosen again", done=solved)
        if new is None:
            continue
        for place in chosen:
            del release[place], costs[place]
        for column in new:
            place = len(own) + parts.count
            parts.count += 1
            release[place] = parts.pool.of(column).astype(np.int64)
            costs[place] = float(parts.pool.costs[column])
            # What is new may change with its own neighbours.
            seeds.append(place)
    places = sorted(release)
    better = Columns.of_sets(
        [release[place] for place in places], np.array([costs[place] for place in places])
    )
    return bool(parts.count) and run.offer_columns(better, np.ones(len(better), np.int64))


def columns_below(
    run: Run, prices: Prices, master: Master, centre: Centre, budget: Budget
) -> Columns:
    """Return all columns below some reduced cost, and those that the master knows."""
    threshold = run.loss - centre.value
    for _ in range(NEAR.times):
        found = prices.all_below(
            centre.multipliers, threshold, max_columns=NEAR.pool, budget=budget
        )
        if found.complete:
            return found.and_also(master.known.all())
        if prices.spent or budget.stop_reason() is not None:
            break
        threshold /= NEAR.less
    return master.known.all()


class _Neighbourhoods:
    """Parts of a release and the best columns for them; who shares cheap columns is near."""

    def __init__(
        self, types: int, pool: Columns, centre: Centre, unit: float, records: int
    ) -> None:
        self.pool, self.count = pool, 0
        self._types, self._records = types, records
        self._incidence = csr_array(pool.incidence(types).T)
        self._by_type = csc_array(self._incidence)
        reduced = np.maximum(pool.reduced_costs(centre.multipliers.duals), 0.0)
        self._weights = np.exp(-reduced / unit)

    def around(self, seed: int, release: dict[int, Ints]) -> list[int]:
        """Return a set of a release and those near it."""
        touching = np.unique(self._by_type[:, np.unique(release[seed])].indices)
        shared = self._incidence[touching].T @ self._weights[touching]
        places = [place for place in release if place != seed]
        if not places:
            return [seed]
        sizes = np.array([len(release[place]) for place in places])
        members = np.concatenate([release[place] for place in places])
        starts = np.cumsum(sizes) - sizes
        scores = np.add.reduceat(shared[members], starts) / sizes
        order = np.argsort(-scores, kind="stable")
        room = self._records - len(release[seed])
        most = max(NEAR.sets, int(np.searchsorted(np.cumsum(sizes[order]), room, side="right")))
        return [seed, *(places[at] for at in order[:most].tolist() if scores[at] > 0)]

    def best(self, sets: list[Ints], below: float, budget: Budget) -> list[int] | None:
        """Return cheaper columns that cover what some sets do; None if there are none."""
        covered = np.zeros(self._types, np.int64)
        np.add.at(covered, np.concatenate(sets), 1)
        types = np.flatnonzero(covered)
        touching = np.unique(self._by_type[:, types].indices)
        held = self._incidence[touching]
        excess = (held.data > covered[held.indices]).astype(np.float64)
        beyond = np.bincount(np.repeat(np.arange(len(touching)), np.diff(held.indptr)), excess)
        inside = touching[beyond == 0]
        answer = solve_pool(
            Pool(
                csr_array(self._incidence[inside][:, types]).astype(np.int64),
                self.pool.costs[inside],
                covered[types],
                None,
            ),
            upper_bound=below,
            solver=None,
            max_nodes=NEAR.nodes,
            budget=budget,
        )
        return None if answer.chosen is None else inside[answer.chosen].tolist()


class Improver:
    """Looks for releases that lose less than the best one of a run, which is offered them."""

    def __init__(self, run: Run, prices: Prices, master: Master) -> None:
        self._run, self._prices, self._master = run, prices, master
        # The release that taking classes apart left as it was, by this part of the steps.
        self._perturbed: tuple[Solution | None, float] = None, 0.0

    def after_relaxation(self, relaxed: Relaxed) -> None:
        """Look for a release when the relaxation has ended for the first time."""
        if not self._take_whole(relaxed) and self._run.goes_on:
            self._dive(IMPROVING.kept[0])
            if self._run.goes_on and self._run.problem.n <= FEW:
                self._whole_numbers(relaxed.centre, self._master.known.all())

    def after_cuts(self, relaxed: Relaxed) -> None:
        """Look for a better release when cuts have raised the bound."""
        if self._take_whole(relaxed) or relaxed.centre is None:
            return
        for share in IMPROVING.kept:
            if self._run.goes_on:
                self._dive(share)
        if self._run.goes_on:
            self._whole_numbers(relaxed.centre, self._master.known.all())

    def at_length(self, relaxed: Relaxed) -> None:
        """Look for better releases in ways that take as long as a proof of moderate size."""
        centre = relaxed.centre
        if centre is None:
            return
        for _ in range(IMPROVING.times):
            before = self._run.loss
            if self._run.goes_on:
                self._neighbourhoods(centre)
            if self._run.loss >= before:
                break
        self.perturb(centre)

    def perturb(self, centre: Centre | None, part: float = 1.0) -> bool:
        """Take classes of the best release apart, and choose among those visited.

        `part`: of the steps of the effort. Nothing is done where as much was done already. Returns
        whether that gained.
        """
        run, before = self._run, self._run.loss
        release, made = self._perturbed
        done = run.incumbent is release and part <= made
        if not run.goes_on or run.incumbent is None or done:
            return False
        visited = self._perturb(part)
        self._perturbed = run.incumbent, part
        if len(visited) and run.goes_on:
            self._whole_numbers(centre, self._master.known.all().and_also(visited))
        return run.loss < before

    def _take_whole(self, relaxed: Relaxed) -> bool:
        """Take the vertex of the master if it is whole, and return whether it is."""
        point = relaxed.point
        if point is None or not point.feasible:
            return False
        times = np.rint(point.shares)
        if np.abs(point.shares - times).max(initial=0.0) > IMPROVING.used:
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
        found = dive(self._master, self._prices, run.budget.share(IMPROVING.time), share)
        if found is None:
            return
        run.offer(found)
        if isinstance(found, Classes) and self._moves():
            labels = improve(
                run.problem,
                found.labels,
                effort="normal",
                budget=run.budget.share(IMPROVING.time),
                seed=run.settings.options.seed,
            )
            found = Classes(labels)  # type: ignore[arg-type]
            run.offer(found)
        # Parts of releases that are worse may be better.
        self._master.add(columns_of(run.rules, found))
        self._keep(f"sets of the linear program: {run.loss:.6g}", before)

    def _perturb(self, part: float) -> Columns:
        """Take a few classes apart and let moves improve what becomes of them, many times.

        Returns classes that were visited, as columns.
        """
        run, problem = self._run, self._run.problem
        visited: dict[bytes, Ints] = {}
        # Squared errors have a search that perturbs already.
        if run.incumbent is None or not self._moves() or are_priced(problem):
            return sets_as_columns(run.rules, [])
        release, before = run.incumbent.assignment, run.loss
        if not isinstance(release, Classes):
            return sets_as_columns(run.rules, [])
        labels, _, _ = iterate_classes(
            problem,
            release.labels,
            steps=int(part * min(run.settings.work.perturbed * problem.n, IMPROVING.perturbed)),
            budget=run.budget.share(IMPROVING.time),
            seed=run.settings.options.seed,
            visited=visited,
        )
        run.offer(Classes(labels))  # type: ignore[arg-type]
        self._keep(f"classes taken apart: {run.loss:.6g}", before)
        return sets_as_columns(run.rules, list(visited.values()))

    def _moves(self) -> bool:
        """Return whether records are moved: not in few, where kernels would be compiled for it."""
        problem = self._run.problem
        plain = is_plain(problem) and problem.compiled.has_tables
        return problem.n > FEW and (plain or are_priced(problem))

    def _neighbourhoods(self, centre: Centre) -> None:
        """Choose neighbouring sets of the best release again, and then sets of all of it."""
        run, before = self._run, self._run.loss
        # A larger table has more of them.
        most = int(run.settings.work.neighbourhoods * max(1.0, run.rules.types / IMPROVING.types))
        # One may be nearly the whole table, of which pools tell more.
        parted = run.rules.freeform or run.rules.types >= 2 * NEAR.records
        if not run.rules.freeform:
            # Neighbourhoods of large classes take long, and perturbing them gains as much.
            most = int(most * min(1.0, IMPROVING.k / run.problem.k) ** 4)
        if not most:
            return
        pool = columns_below(run, self._prices, self._master, centre, run.budget)
        budget, unit = run.budget.share(IMPROVING.time), self._master.unit
        if parted and improve_by_neighbourhoods(run, pool, centre, unit, most, budget):
            self._keep(f"neighbouring sets chosen again: {run.loss:.6g}", before)
        if run.goes_on:
            self._whole_numbers(centre, pool)

    def _whole_numbers(self, centre: Centre | None, columns: Columns) -> None:
        """Look for a better release of the columns of lowest reduced cost."""
        run, master, settings = self._run, self._master, self._run.settings
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
            max(IMPROVING.whole_least, IMPROVING.whole * run.rules.types), IMPROVING.whole_most
        )
        chosen = np.zeros(len(columns), np.bool_)
        chosen[np.argsort(reduced, kind="stable")[:most]] = True
        # What costs as much as the gap is in no better release.
        chosen &= reduced < run.loss - centre.value
        chosen |= start > 0
        if not chosen.any():
            return
        kept, before = columns.only(chosen), run.loss
        options = replace(settings.options, node_limit=settings.work.nodes)
        try:
            _, found = solve_whole(
                run.rules,
                kept,
                Mip(settings.solver, options, run.budget.share(IMPROVING.time)),
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
        point = master.solve(budget)
        # Without columns left to keep the dive is complete; without time it is not.
        while point is not None and budget.stop_reason() is None and kept.extend(point):
            point = master.solve(budget)
            for _ in range(IMPROVING.dive_rounds):
                if point is None or not kept.rows_left() or not kept.price(prices, point, budget):
                    break
                point = master.solve(budget)
    finally:
        master.require(np.zeros_like(kept.times))
    if not kept.is_complete:
        return None
    columns = master.known.all()
    times = np.zeros(len(columns), np.int64)
    times[: len(kept.times)] = kept.times
    return _completed(master.rules, columns, times)


class _Kept:
    """Columns that are kept, and what they leave."""

    def __init__(self, master: Master, share: float) -> None:
        self.master, self._share = master, share
        self.times = np.zeros(len(master.known), np.int64)
        self._left = master.rules.coverage.copy()
        self.is_complete = False  # whether there was nothing left to keep

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
            if more[column] < (self._share if found else IMPROVING.used):
                break
            types, counts = np.unique(columns.of(column), return_counts=True)
            fits = int((self._left[types] // counts).min())
            rest = self.rows_left() - int(counts.sum())
            # Fewer rows than a column holds would be left without one.
            if not fits or 0 < rest < rules.smallest:
                continue
            often = min(fits, max(1, int(more[column] + IMPROVING.used)))
            self._left[types] -= often * counts
            self.times[column] += often
            found = True
        self.master.require(self.times)
        self.is_complete = not found
        return found

    def price(self, prices: Prices, point: MasterPoint, budget: Budget) -> bool:
        """Add columns of the rows left, and return whether there are new ones."""
        rules, given = self.master.rules, point.multipliers
        # No column with a row that has been dealt with pays.
        least = -rules.largest * max(float(given.duals.max()), self.master.unit)
        duals = np.where(self._left > 0, given.duals, least)
        priced = prices.best(
            replace(given, duals=duals),
            below=-PRICING.negative * self.master.unit,
            max_nodes=PRICING.heuristic_nodes,
            budget=budget,
        )
        return bool(self.master.add(priced))


def _completed(rules: ColumnRules, columns: Columns, times: Ints) -> Assignment | None:
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
