"""Proof by targets: all columns that a release below a target may hold, and the best of these.

With feasible duals that prove L a release that loses less than a target z holds no column of a
reduced cost of z - L or more. The columns below that are enumerated, and the cheapest release of
these is looked for. If one loses less than the target, it is an optimum; if none does, the target
is a bound. Targets begin near the bound, so that no good release has to be known, and rise to the
loss of the best one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.sparse import csr_array

from anonymip.certificates.dual_proof import ColumnPool
from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.exact.column_generation.cuts import RankOneCut
from anonymip.exact.column_generation.pool.solving import solve_pool
from anonymip.exact.column_generation.relaxation.columns import Columns
from anonymip.exact.column_generation.relaxation.multipliers import Centre
from anonymip.exact.column_generation.relaxation.prices import Prices
from anonymip.exact.column_generation.state import Run, dual_proof
from anonymip.exact.failed_solver import cheap_release
from anonymip.runtime.budget import Budget
from anonymip.runtime.memory import memory_at_hand
from anonymip.solution import Solution
from anonymip.solvers import SolverOptions

#: Targets, as shares of the gap; one that closes less than this of what is left of it is passed
#: over.
_SHARES, _WORTH = (0.25, 0.45, 0.7, 1.0), 0.2
#: Pools of more columns, and searches of more nodes, are worth a long search for a better release.
_SOON_COLUMNS, _SOON_NODES = 25_000, 400
#: Bytes that a pool holds of a column and of each of its members: the columns, their incidence by
#: columns and by types, and copies while they are made.
_COLUMN, _MEMBER = 250, 60
#: Columns that the relaxation of a pool begins with, for each row type.
_FIRST = 4


@dataclass(frozen=True)
class PoolSettings:
    """How pools are searched.

    Parameters
    ----------
    solver, options
        Of what is small.
    most
        Columns of a pool at most.
    branches
        Nodes of the search of a pool at most.
    seed
        Of cuts and solver.
    gap
        Relative gap to stop at.
    """

    solver: str
    options: SolverOptions
    most: int
    branches: int
    seed: int
    gap: float


def deepen(
    run: Run,
    prices: Prices,
    centre: Centre,
    cuts: list[RankOneCut],
    settings: PoolSettings,
    tighten: Callable[[list[RankOneCut]], Centre | None],
    improve: Callable[[], None],
    budget: Budget,
) -> None:
    """Raise the bound of a run from target to target, until a pool is too large or all is proven.

    Parameters
    ----------
    run
        With a release.
    prices
        Of its columns.
    centre, cuts
        Feasible duals, and the cuts of their dual values.
    settings
        Of the pools.
    tighten
        Adds the cuts that bind in a pool to the given ones, and returns the feasible duals then.
    improve
        Looks for a better release, the first time that it is called. That takes long: it waits for
        a pool of many columns, or one whose search has taken many nodes.
    budget
        Ends it.

    Raises
    ------
    SolverError
        If the solver fails, or a release refutes it.
    """
    largest = _columns_that_fit(run.rules, settings.most)
    first, shares, most = centre.bound, list(_SHARES), min(_SOON_COLUMNS, largest)
    gap = run.loss - first
    singles = _singles(run.rules)

    @cache
    def compared() -> Solution | None:
        return cheap_release(run.problem, budget, settings.seed)

    def improved() -> float:
        improve()
        return run.loss

    while shares:
        if budget.stop_reason() is not None or run.is_closed(settings.gap):
            return
        share = shares[0]
        target = min(run.loss, first + share * gap)
        if target - run.lower <= (_WORTH if share < 1.0 else 0.0) * (run.loss - run.lower):
            del shares[0]
            continue
        budget.report(f"sets of records below {share:.0%} of the gap")
        found = prices.all_below(
            centre.multipliers, cuts, target - centre.value, max_columns=most, budget=budget
        )
        if not found.complete:
            if most < largest:
                most, gap = largest, improved() - first
                continue
            held = "" if largest == settings.most else ", which is what memory holds"
            run.trace.append(f"{share:.0%} of the gap has more than {largest:,} columns{held}")
            return
        del shares[0]
        pool = found.columns.and_also(singles)
        answer = solve_pool(
            csr_array(pool.incidence(run.rules.types).T).astype(np.int64),
            pool.costs,
            run.rules.coverage,
            upper_bound=target,
            # Rows that are left out are columns of a pool, which that does not count.
            count_limit=run.rules.most if run.rules.counted and not len(singles) else None,
            cuts=_binding(centre, cuts),
            start=np.sort(np.argsort(found.reduced, kind="stable")[: _FIRST * run.rules.types]),
            solver=settings.solver,
            options=settings.options,
            max_nodes=settings.branches,
            known_after=(_SOON_NODES, improved),
            budget=budget,
            seed=settings.seed,
        )
        run.trace.append(
            f"{share:.0%} of the gap: {len(found.columns):,} columns, {answer.nodes:,} nodes"
            + (", as many as memory holds" if answer.was_full else "")
        )
        if answer.chosen is not None:
            times = np.bincount(answer.chosen, minlength=len(pool))[: len(found.columns)]
            run.offer_columns(found.columns, times)
        proof = dual_proof(run.rules, centre, cuts)
        if proof is not None:
            proof = replace(proof, pool=_named(run.rules, found.columns, target))
        run.raise_by_pool(min(answer.bound, target), answer.by_solver, proof, compared)
        if not answer.complete or answer.chosen is not None:
            return
        new = [cut for cut in answer.cuts if cut not in cuts]
        if new and share < 1.0 and not run.is_closed(settings.gap):
            # What cuts the pool cuts all columns, and fewer of them are left for the next target.
            centre = tighten(new) or centre


def _columns_that_fit(rules: ColumnRules, most: int) -> int:
    """Return how many columns a pool may have for half of the memory that there is."""
    left = memory_at_hand()
    if left is None:
        return most
    return int(min(most, max(1, left.bytes / 2 / (_COLUMN + _MEMBER * rules.largest))))


def _binding(centre: Centre, cuts: list[RankOneCut]) -> list[RankOneCut]:
    """Return the cuts that have a dual."""
    return [cut for cut, dual in zip(cuts, centre.multipliers.cuts, strict=False) if dual > 0]


def _singles(rules: ColumnRules) -> Columns:
    """Return the columns that leave a row out, if that is allowed."""
    if not np.isfinite(rules.price):
        return Columns.none()
    types = np.arange(rules.types, dtype=np.int32)
    return Columns(np.arange(rules.types + 1), types, np.full(rules.types, rules.price))


def _named(rules: ColumnRules, columns: Columns, target: float) -> ColumnPool:
    """Return a pool by records."""
    return ColumnPool(target, columns.starts, rules.rows.first[columns.types])
