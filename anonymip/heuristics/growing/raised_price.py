"""Limits of suppression by a price, for methods and bounds that know no such limit.

With a price p + z of a suppressed record, z >= 0, and no limit, a release that suppresses s records
loses s z more than with the price p. Within the limit L that is no more than L z, so that a lower
bound with the higher price, less L z, is a lower bound under the limit (Lagrangean relaxation
[1]_). A release with the higher price that suppresses no more than L records is one under the
limit, and optimal there if it is optimal and suppresses exactly L.

References
----------
.. [1] M. L. Fisher: The Lagrangian Relaxation Method for Solving Integer Programming Problems,
   Management Science 27(1), 1981.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from anonymip.assignments import Classes
from anonymip.errors import InputError, NoSolution
from anonymip.heuristics.growing.finish import without_outliers
from anonymip.problem import Problem
from anonymip.recodings.recoding import PricedSuppression
from anonymip.runtime.budget import Budget
from anonymip.solution import Bound, Solution, retold

#: Prices that are tried at most: each halves what is left between two.
PRICES = 12
#: Prices that differ by less than this share are not told apart.
_NEAR = 1e-6


def with_price(problem: Problem, raised: float) -> Problem:
    """Return the problem without a limit of suppression, and with a price raised by so much."""
    assert isinstance(problem.recoding, PricedSuppression)
    price = problem.recoding.suppression_price
    if raised:
        price = float(problem.compiled.suppression_price) + raised
    freed = replace(problem.recoding, most_suppressed=None, suppression_price=price)
    return problem.replace(recoding=freed)


def bound_within_limit(problem: Problem, raised: float, bound: Bound) -> Bound:
    """Return what a bound with a raised price proves under the limit of a problem."""
    price, most = float(problem.compiled.suppression_price), problem.most_suppressed
    # The price that was charged, and twice what the sums below may round off.
    more = most * ((price + raised) - price)
    unit = float(np.spacing(max(abs(bound.value), abs(more), most * (price + raised))))
    value = bound.value - more - (4 + most) * unit if raised else bound.value
    return replace(bound, value=value)


def solve_within_limit(
    problem: Problem, solve: Callable[..., Solution], budget: Budget, *, prices: int = PRICES
) -> Solution:
    """Return the best release under a limit of suppression that a method finds without one.

    `problem`: with classes or patterns, a limit of suppression and a loss that is summed. `solve`:
    solves problems without a limit. `budget`: ends the search. `prices`: most prices that are
    tried. Raises NoSolution if every release that was found suppresses more records.
    """
    best: Solution | None = None
    bounds: list[Bound] = []
    low, raised = 0.0, 0.0
    high: float | None = None
    trace: list[str] = []
    for _ in range(prices):
        found = solve(with_price(problem, raised), budget=budget)
        count = found.assignment.suppressed
        trace.append(f"price raised by {raised:.6g}: {count} suppressed")
        if found.bound is not None:
            bounds.append(bound_within_limit(problem, raised, found.bound))
        allowed = count <= problem.most_suppressed
        if allowed:
            candidate = released(problem, found, bounds)
            if best is None or candidate.objective < best.objective:
                best = candidate
            high = raised
        else:
            low = raised
        if best is not None:
            best = released(problem, best, bounds)
        near = high is not None and high - low <= _NEAR * high
        if near or (best is not None and best.is_optimal) or budget.stop_reason() is not None:
            break
        raised = 2 * raised + _unit(problem) if high is None else (low + high) / 2
    if best is None:
        raise NoSolution(
            f"every release that was found suppresses more than {problem.most_suppressed} records",
            remedy="Allow more suppressed records, loosen the rules, or give it more time",
        )
    best = replace(released(problem, best, bounds), trace=(*best.trace, *trace))
    if not isinstance(best.assignment, Classes):
        return best
    labels = np.asarray(best.assignment.labels, np.int64)
    exchanged = Classes(without_outliers(problem, labels, budget))  # type: ignore[arg-type]
    other = Solution.of(problem, exchanged, method=best.method)
    if other.objective < best.objective:
        best = replace(best, assignment=exchanged)
        best = released(problem, best, bounds)
    return best


def found_or_known(search: Callable[[], Solution], known: Solution | None) -> Solution:
    """Return what a search finds, or a known release if that loses less or nothing is found.

    A bound that the search proves stays. Raises NoSolution as the search does if none is known.
    """
    try:
        found = search()
    except NoSolution:
        if known is None:
            raise
        return known
    if known is None or found.objective <= known.objective:
        return found
    return retold(found, known.problem, known.assignment, bound=found.bound)


def _unit(problem: Problem) -> float:
    """Return a first step of the price: what a record loses at most."""
    try:
        return max(float(problem.whole) / problem.n, 1e-9)
    except InputError:
        return 1.0


def released(problem: Problem, found: Solution, bounds: list[Bound]) -> Solution:
    """Return a release as a solution under the limit, with the best of the bounds."""
    best = max(bounds, key=lambda bound: bound.value, default=None)
    solution = retold(found, problem)
    return solution if best is None else solution.with_bound(best)
