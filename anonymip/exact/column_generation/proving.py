"""The steps of a proof: columns to start from, the relaxation, cuts, whole numbers, targets.

With feasible duals that prove L a release that loses less than a target z holds no column of a
reduced cost of z - L or more. The columns below that are enumerated, and the cheapest release of
these is looked for. If one loses less than the target, it is an optimum; if none does, the target
is a bound. Targets begin near the bound, so that no good release has to be known, and rise to the
loss of the best one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
from scipy.sparse import csr_array

from anonymip.certificates.dual_proof import ColumnPool, DualProof
from anonymip.enumeration.cluster_sets import Columns
from anonymip.enumeration.squared_errors import are_priced
from anonymip.exact.column_generation.conditions import ColumnRules, columns_of
from anonymip.exact.column_generation.improving_releases import Improver
from anonymip.exact.column_generation.pricing import (
    Centre,
    ListedColumns,
    Master,
    Prices,
    Relaxed,
    SearchedColumns,
    solve_relaxation,
)
from anonymip.exact.column_generation.run import Run, dual_proof
from anonymip.exact.column_generation.settings import CUTTING, PRICING, TARGETS
from anonymip.exact.model_run import cheap_release
from anonymip.exact.set_partitioning.branch_and_bound import NUMBERS, PoolAnswer, solve_pool
from anonymip.exact.set_partitioning.column_pool import Pool
from anonymip.exact.set_partitioning.rank_one_cuts import separate
from anonymip.exact.set_partitioning.restricted_master import Multipliers
from anonymip.runtime.budget import Budget
from anonymip.runtime.memory import in_words, memory_at_hand
from anonymip.solution import Solution
from anonymip.status import Stopped


class Proof:
    """The steps of one run; `relaxed` once the linear program over all columns is solved."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.relaxed = False
        # Whether targets need no better release, since all sets that one may hold are few.
        self._left = np.inf
        self._prices: Prices
        self._master: Master
        self._improver: Improver
        # The last relaxation, and whether better releases were looked for at length.
        self._last: Relaxed
        self._searched = False

    def prove(self, releases: Sequence[Solution]) -> Stopped:
        """Go as far as settings and budget allow, and return what ended it.

        The master starts from the columns of the releases.
        """
        run, budget, settings = self._run, self._run.budget, self._run.settings
        prices = self._priced()
        if prices is None:
            return budget.stop_reason() or Stopped.TIME
        self._prices = prices
        self._master = Master(run.rules, self._unit())
        for release in releases:
            self._master.add(columns_of(run.rules, release.assignment))
        self._improver = Improver(run, prices, self._master)
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
            relaxed = self._cut(relaxed, budget.share(CUTTING.time))
            self._finish(relaxed)
        # The last message tells what all of it came to.
        budget.report(f"{len(self._master.known):,} sets of records")
        return budget.stop_reason() or Stopped.GAP

    def _finish(self, relaxed: Relaxed) -> None:
        """Look for better releases and try targets, of which few take less than a long search."""
        run, few = self._run, self._left <= CUTTING.at_once
        if not few and not run.is_closed():
            before = run.loss
            self._improver.after_cuts(relaxed)
            if run.rules.freeform and run.loss < before and self._goes_on():
                self._left = self._sets_left(relaxed)
        if relaxed.centre is None or run.incumbent is None or not self._goes_on():
            return
        self._last, self._searched = relaxed, few
        if run.rules.freeform and self._left > CUTTING.few:
            # A solver takes their pools as a whole, which takes long where they are large.
            self._improve()
        self._try_targets(relaxed, relaxed.centre)
        self._improve()

    def _improve(self) -> float:
        """Look once for a better release at length, and return the loss of the best one."""
        if not self._searched and self._goes_on():
            self._improver.at_length(self._last)
        self._searched = True
        return self._run.loss

    def _try_targets(self, relaxed: Relaxed, centre: Centre) -> None:
        """Raise the bound from target to target, until a pool is too large or all is proven.

        A long search for a better release waits for a pool of many columns, or one whose search has
        taken many nodes. Raises SolverError if the solver fails, or a release refutes it.
        """
        run, settings, budget = self._run, self._run.settings, self._run.budget
        rules, work = run.rules, settings.work
        largest = _columns_that_fit(rules, work.columns, settings.memory)
        first, shares, most = centre.bound, [*TARGETS.shares], min(TARGETS.soon_columns, largest)
        gap, refused = run.loss - first, False
        # Of all pools together, and of each column of the last one.
        nodes, a_column = work.branches / (rules.types * run.problem.k**2), 0.0
        iterations = work.iterations if budget.deadline is None else None
        singles = _singles(rules)

        @cache
        def compared() -> Solution | None:
            return cheap_release(run.problem, budget, settings.options.seed)

        while shares:
            if not run.goes_on:
                return
            share = shares[0]
            target = min(run.loss, first + share * gap)
            worth = TARGETS.worth if share in TARGETS.shares[:-1] else 0.0
            if target - run.lower <= worth * (run.loss - run.lower):
                del shares[0]
                continue
            budget.report(f"sets of records below {share:.0%} of the gap")
            found = self._prices.all_below(
                centre.multipliers, target - centre.value, max_columns=most, budget=budget
            )
            if not found.complete:
                if most < largest:
                    most, gap = largest, self._improve() - first
                    continue
                short = largest < work.columns
                told = f", which {in_words(settings.memory)} hold" if short else ""
                many = f"{share:.0%} of the gap has more than {largest:,} columns{told}"
                if len(found) < largest:
                    # The work or the time that is allowed has ended the search for them.
                    many = f"{share:.0%} of the gap: not all columns were found"
                run.trace.append(many)
                if not short or share not in TARGETS.shares or run.lower >= target or refused:
                    return
                # Cuts that are found for fewer columns leave fewer of all.
                refused = True
                below = run.lower + TARGETS.smaller * (target - run.lower)
                shares.insert(0, (below - first) / gap)
                continue
            if len(found) * a_column > nodes:
                # Searched in part it would prove less than the last one, which was searched whole.
                run.trace.append(f"{share:.0%} of the gap: {len(found):,} columns, left")
                return
            del shares[0]
            # No release that is cheaper suppresses a record for more, unless losses are below zero.
            is_dear = rules.price >= target and found.costs.min(initial=0.0) >= 0
            pool = found if is_dear else found.and_also(singles)
            held = csr_array(pool.incidence(rules.types).T).astype(np.int64)
            # Rows that are left out are columns of a pool, which that does not count.
            limit = rules.most if rules.counted and len(pool) == len(found) else None
            cheapest = np.argsort(found.reduced, kind="stable")[: TARGETS.first * rules.types]
            ask = partial(
                solve_pool,
                Pool(held, pool.costs, rules.coverage, limit),
                start=np.sort(cheapest),
                options=settings.options,
                memory=settings.memory,
                budget=budget,
            )
            answer = ask(
                upper_bound=target,
                cuts=[cut for cut, _ in centre.multipliers.paid_cuts],
                solver=settings.solver,
                max_nodes=max(1, int(nodes)),
                max_iterations=iterations,
                known_after=(TARGETS.soon_nodes, self._improve),
            )
            nodes, a_column = nodes - answer.work, answer.work / max(1, len(found))
            if iterations is not None:
                iterations = max(0, iterations - answer.iterations)
            run.trace.append(
                f"{share:.0%} of the gap: {len(found):,} columns, {answer.nodes:,} nodes"
                + (f", with all of {in_words(settings.memory)}" if answer.was_full else "")
            )
            proof = dual_proof(rules, centre.multipliers)
            if proof is not None:
                records = rules.rows.first[found.types]
                proof = replace(proof, pool=ColumnPool(target, found.starts, records))
            self._take(answer, found, target, proof, compared)
            is_last = share >= 1.0 or target >= run.loss
            by_solver = answer.complete and answer.by_solver is not None
            # Branches settle no pairs of covers: of these alone a few columns end.
            is_small = not rules.freeform or answer.columns_left <= NUMBERS.solver_columns
            if is_last and by_solver and is_small and not run.is_closed():
                # What the tolerances of a solver do not tell apart is branched on without one.
                limits = {"max_nodes": max(1, int(nodes)), "max_iterations": iterations}
                again = ask(upper_bound=run.loss, cuts=answer.cuts, solver=None, **limits)
                self._take(again, found, target, proof, compared)
            if not answer.complete or answer.chosen is not None:
                return
            refused = False
            known = set(self._master.cuts)
            new = [cut for cut in answer.cuts if cut not in known]
            if new and share < 1.0 and not run.is_closed():
                # What cuts the pool cuts all columns: fewer are left for the next target.
                self._master.add_cuts(new)
                self._last = self._relax(relaxed)
                centre = self._last.centre or centre

    def _take(
        self,
        answer: PoolAnswer,
        found: Columns,
        target: float,
        proof: DualProof | None,
        compared: Callable[[], Solution | None],
    ) -> None:
        """Take release and bound of a pool of the columns found, before others, for a target."""
        if answer.chosen is not None:
            times = np.bincount(answer.chosen, minlength=len(found))[: len(found)]
            self._run.offer_columns(found, times)
        self._run.raise_by_pool(min(answer.bound, target), answer.by_solver, proof, compared)

    def _goes_on(self) -> bool:
        return not self._prices.spent and self._run.goes_on

    def _priced(self) -> Prices | None:
        """Return the pricing; None if there was no time to list all columns."""
        rules = self._run.rules
        compiled = rules.problem.compiled
        if (compiled.has_tables and compiled.monotone) or are_priced(rules.problem):
            return SearchedColumns(rules, self._run.settings.work.searched)
        listed = ListedColumns(rules, self._run.budget)
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
        asked, most = Multipliers(np.minimum(duals, rules.price)), PRICING.heuristic_nodes
        priced = self._prices.best(asked, below=np.inf, max_nodes=most, budget=run.budget)
        self._master.add(priced)

    def _relax(self, before: Relaxed | None, budget: Budget | None = None) -> Relaxed:
        centre, budget = None if before is None else before.centre, budget or self._run.budget
        relaxed = solve_relaxation(self._master, self._prices, budget, centre=centre)
        if relaxed.centre is not None:
            self._run.raise_by_duals(relaxed.centre)
        return relaxed

    def _cut(self, relaxed: Relaxed, budget: Budget) -> Relaxed:
        """Add cuts and solve again until the gap is closed, or that helps little."""
        run, master, settings = self._run, self._master, self._run.settings
        stalled, rounds = 0, 0
        while stalled < CUTTING.patience and rounds < settings.work.rounds and self._goes_on():
            if budget.stop_reason() is not None:
                break
            point, before = relaxed.point, run.lower
            self._left = self._sets_left(relaxed)
            # A better release leaves fewer sets to every step from here on.
            while not rounds and self._left > CUTTING.few:
                if not self._improver.perturb(relaxed.centre, CUTTING.tried):
                    break
                self._left = self._sets_left(relaxed)
            if point is None or self._left <= CUTTING.few:
                break
            # Columns that were found since are not in the point.
            held = csr_array(master.known.all().incidence(run.rules.types).T)
            cuts = separate(
                held[: len(point.shares)],
                point.shares,
                run.rules.coverage,
                known=master.cuts,
                seed=settings.options.seed + rounds,
            )
            if not cuts:
                break
            master.add_cuts(cuts)
            relaxed, rounds = self._relax(relaxed, budget), rounds + 1
            gain = run.lower - before
            stalled = 0 if gain >= CUTTING.stalled * (run.loss - before) else stalled + 1
        if rounds:
            run.trace.append(f"{len(master.cuts):,} cuts in {rounds} rounds: bound {run.lower:.6g}")
        return relaxed

    def _sets_left(self, relaxed: Relaxed) -> float:
        """Return how many sets a better release may hold, infinite if they are not few."""
        if relaxed.centre is None:
            return np.inf
        found = self._prices.all_below(
            relaxed.centre.multipliers,
            self._run.loss - relaxed.centre.value,
            max_columns=CUTTING.few,
            max_nodes=CUTTING.looked_at,
            budget=self._run.budget,
        )
        return len(found) if found.complete else np.inf


def _columns_that_fit(rules: ColumnRules, most: int, memory: float) -> int:
    """Return how many columns a pool may have for the memory that is allowed and there is."""
    left = memory_at_hand()
    if left is not None:
        memory = min(memory, NUMBERS.share_of_memory * left.bytes)
    a_column = TARGETS.column_bytes + TARGETS.member_bytes * rules.largest
    return int(min(most, max(1, memory / a_column)))


def _singles(rules: ColumnRules) -> Columns:
    """Return the columns that leave a row out, if that is allowed."""
    if not np.isfinite(rules.price):
        return Columns.none()
    types = np.arange(rules.types, dtype=np.int32)
    return Columns(np.arange(rules.types + 1), types, np.full(rules.types, rules.price))
