"""The possible classes that a release better than a known one may hold, and a bound from them."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
from scipy.sparse import csc_array, hstack, identity, vstack

from anonymip.bounds.combinatorial import record_terms
from anonymip.enumeration import ClusterSets, enumerate_sets
from anonymip.models.parts.set_columns import edge
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, under_assumptions
from anonymip.solvers.linear_programs import solve_linear_program
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE


@dataclass(frozen=True, eq=False)
class PricedSets:
    """Columns of the set-partitioning master."""

    sets: ClusterSets  # those that are left; `sets.complete` says whether none is missing
    bound: Bound | None  # on the loss of any release, from the duals; None where there are none
    found: int  # how many sets there were before duals left some out
    duals: Floats | None = None  # (t,) of the row types, that no set undercuts; None without

    @property
    def ended(self) -> Stopped | None:
        """What ended the enumeration early, if it was the budget."""
        ends = (Stopped.TIME, Stopped.INTERRUPT)
        return next((end for end in ends if self.sets.reason == end.value), None)


def priced_sets(
    problem: Problem,
    upper_bound: float | None,
    *,
    max_sets: int,
    budget: Budget,
    degree: int | None = None,
) -> PricedSets:
    """Enumerate the possible classes and leave out those that cost more than they may.

    Let duals be given such that no set costs less than the duals of its rows. Every release
    then costs at least the sum of all duals, and one that holds a set of reduced cost r at least
    r more. Nearest-neighbour terms are such duals and guide the enumeration; the duals of the
    linear relaxation over what it finds are much better ones. The arithmetic is repeated here:
    duals that some set undercuts, by a solver's tolerance or by more, are lowered until none does.

    `upper_bound`: loss of a release that is known: sets that no better one can hold are left out.
    `max_sets`: sets at which the enumeration gives up. `budget`: stops the enumeration and the
    linear program. `degree`: None: the sets are classes. Else they are those of a freeform cover:
    of so many records each, of which every record lies in so many. A set is then one part in
    `degree` of what the duals of its records pay for: it may cost so many times as much beyond
    them.

    With an upper bound the duals are those over the sets of releases better than it, so the bound
    is the lesser of the two.
    """
    watch = Stopwatch()
    parts = 1 if degree is None else degree
    summed = problem.compiled.aggregate == "sum"
    terms = record_terms(problem, budget) if summed and upper_bound is not None else None
    threshold = np.inf
    if terms is not None and upper_bound is not None:
        threshold = upper_bound - fsum(terms) + _slack(problem, upper_bound, terms)
        threshold *= parts
    sets = enumerate_sets(
        problem,
        terms,
        threshold,
        max_size=degree,
        max_sets=max_sets,
        # Of rows of a cover that look alike some may be suppressed, and the others fill no set.
        merge=degree is None or not problem.most_suppressed,
        budget=budget,
    )
    if not sets.complete or not len(sets):
        return PricedSets(sets, None, len(sets))
    if not summed:
        kept = sets
        if upper_bound is not None:
            # No record loses more than the worst of a known release.
            most = upper_bound + LOSS_RELATIVE * abs(upper_bound) + edge(problem)
            kept = sets.only(sets.losses <= most)
        return PricedSets(kept, None, len(sets))
    found = _duals(problem, sets, budget)
    if found is None:
        return PricedSets(sets, None, len(sets))
    duals, rise = found
    counts = sets.rows.counts
    value = fsum([*(duals * counts), -rise * problem.most_suppressed])
    value -= LOSS_RELATIVE * (fsum(np.abs(duals) * counts) + rise * problem.most_suppressed)
    reduced = sets.losses - sets.incidence.T @ duals
    kept = sets
    if upper_bound is not None:
        most = upper_bound - value + _slack(problem, upper_bound, np.append(duals * counts, rise))
        kept = sets.only(reduced <= parts * most)
        value = min(value, upper_bound)
    kind = "set partitioning" if degree is None else "set covering"
    source = under_assumptions(problem, f"linear relaxation of {kind}")
    bound = Bound(value, source, "argument", watch.seconds)
    return PricedSets(kept, bound, len(sets), duals)


def _slack(problem: Problem, upper_bound: float, terms: Floats) -> float:
    """Return a tolerance that keeps sets on the edge: rounding must not lose an optimum."""
    return LOSS_RELATIVE * (abs(upper_bound) + float(np.abs(terms).sum())) + edge(problem)


def _duals(problem: Problem, sets: ClusterSets, budget: Budget) -> tuple[Floats, float] | None:
    """Return (t,) duals of the row types that no set undercuts; None if there is no time.

    With them by how much the limit of suppression raises the price of a suppressed record: what is
    charged more for those that may be is no part of a bound.
    """
    suppression = problem.most_suppressed > 0
    price = problem.compiled.suppression_price
    matrix, costs = sets.incidence, sets.losses
    if suppression:
        matrix = csc_array(hstack([matrix, identity(sets.rows.types)]))
        costs = np.concatenate([costs, np.full(sets.rows.types, price)])
    low = high = sets.rows.counts.astype(np.float64)
    capped = suppression and problem.is_capped
    if capped:
        limited = csc_array((np.arange(len(costs)) >= len(sets)).astype(np.float64)[None, :])
        matrix = csc_array(vstack([matrix, limited]))
        low, high = np.append(low, 0.0), np.append(high, problem.most_suppressed)
    found = solve_linear_program(costs, matrix, low, high, presolve=False, budget=budget)
    if found is None:
        return None
    duals, rise = found.duals[: sets.rows.types], 0.0
    if suppression:
        rise = max(0.0, -float(found.duals[-1])) if capped else 0.0
        duals = np.minimum(duals, price + rise)
    undercut = (sets.losses - sets.incidence.T @ duals) / sets.sizes
    lowered: Floats = duals - max(0.0, -float(undercut.min()))
    return lowered, rise
