"""The row bound: every record pays its cheapest pattern that k records can share."""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.star_costs import pattern_costs
from anonymip.problem import Problem
from anonymip.recodings.rows.output_rows import (
    recoding_of,
    refuse_unshared,
    rows_alike,
    suppression_cost,
)
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound
from anonymip.tolerances import LOSS_RELATIVE


def pattern_row_bound(problem: Problem) -> Bound:
    """Return a lower bound on the loss of any release by patterns.

    A record is published under a pattern through which k records at least look alike, itself
    included; it pays no less than the cheapest of these, or than what a suppressed record costs
    where that is allowed. Single use and diversity only raise the optimum.

    Parameters
    ----------
    problem
        With patterns as its recoding.

    Notes
    -----
    Complexity: O(t p m) for t row types and p patterns; patterns that cost more than all that
    is needed are not looked at. Tight where all records need as many stars, as in tables that hold
    every combination of values.

    Raises
    ------
    NoSolution
        If a record shares no output row with k - 1 others.
    """
    watch = Stopwatch()
    terms = pattern_row_terms(problem)
    value = fsum(terms)
    if not np.array_equal(terms, np.rint(terms)):
        value -= LOSS_RELATIVE * fsum(np.abs(terms))
    return Bound(value, "pattern rows", "argument", watch.seconds)


def pattern_row_terms(problem: Problem) -> NDArray[np.float64]:
    """Return (n,) what each record pays at least.

    Raises
    ------
    NoSolution
        If a record shares no output row with k - 1 others.
    """
    microdata = problem.microdata
    stars = recoding_of(problem).stars(problem)
    costs = pattern_costs(problem.compiled, stars)
    types = microdata.row_types()
    codes = np.ascontiguousarray(microdata.codes[types.first])
    terms = np.full(len(types.first), suppression_cost(problem))
    for pattern in np.argsort(costs, kind="stable"):
        if (terms <= costs[pattern]).all():
            break
        labels, count = rows_alike(codes, stars[pattern])
        held = np.bincount(labels, weights=types.counts, minlength=count)
        better = (held[labels] >= problem.k) & (terms > costs[pattern])
        terms[better] = costs[pattern]
    unshared = np.isinf(terms)
    if unshared.any():
        refuse_unshared(problem, int(types.first[unshared].min()))
    return terms[types.inverse]
