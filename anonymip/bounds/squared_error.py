"""A bound on the sum of squared errors: what every record pays for its nearest companions."""

from __future__ import annotations

from math import fsum

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from anonymip.errors import UnsupportedObjective
from anonymip.objectives import SSE
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.recodings.registry import published_form
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound
from anonymip.tolerances import LOSS_RELATIVE

#: Records whose neighbours are looked up at a time.
_BATCH = 5_000


def squared_error_bound(problem: Problem, *, budget: Budget | None = None) -> Bound | None:
    """Return a lower bound on the squared errors of any release, None for other objectives.

    The squared errors of a class S of s records are the sum over its members i of
    (1 / 2s) sum of d2(i, j) over the j in S. Let d(1) <= d(2) <= ... be the squared distances of
    i to all other records, so that i pays f(s) = (1 / 2s) (d(1) + ... + d(s-1)) at least. f does
    not fall: f(s) <= f(s+1) says that (s+1) (d(1) + ... + d(s-1)) <= s (d(1) + ... + d(s)), that
    is d(1) + ... + d(s-1) <= s d(s), which holds since none of the s - 1 summands exceeds d(s).
    With s >= k, i pays f(k) at least; where records may be suppressed, at least the lesser of
    this and the price of a suppressed record. The bound is the sum over the records.

    Parameters
    ----------
    problem
        Equivalence classes with the objective SSE.
    budget
        When it ends, records not looked at count as 0.

    Notes
    -----
    Distances are lowered by their rounding errors. Complexity: k neighbours of every record in a
    k-d tree.
    """
    if not _fits(problem):
        return None
    watch = Stopwatch()
    terms, complete = _terms(problem, budget or Budget())
    method = "nearest squared errors" if complete else "nearest squared errors (cut short)"
    return Bound(fsum(terms), method, "argument", watch.seconds)


def squared_error_terms(problem: Problem, budget: Budget | None = None) -> NDArray[np.float64]:
    """Return (n,) what each record adds at least to the squared errors of its class.

    Raises
    ------
    UnsupportedObjective
        If the objective is not SSE.
    """
    if not _fits(problem):
        raise UnsupportedObjective(
            f"the bound on squared errors does not hold for {problem.compiled.name!r}",
            remedy="Use the objective sse with equivalence classes",
        )
    return _terms(problem, budget or Budget())[0]


def _fits(problem: Problem) -> bool:
    # A subclass may charge something else.
    return type(problem.objective) is SSE and published_form(problem.recoding) == "classes"


def _terms(problem: Problem, budget: Budget) -> tuple[NDArray[np.float64], bool]:
    """Return (n,) terms, lowered by their rounding errors, and whether all were computed."""
    n, k = problem.n, problem.k
    assert isinstance(problem.objective, SSE)
    points = problem.objective.points(problem.microdata)
    tree = cKDTree(points)
    # Differences of coordinates are off by this much at most, and distances by its root of m.
    error = 4 * np.finfo(np.float64).eps * float(np.abs(points).max()) * problem.m**0.5
    terms = np.zeros(n)
    done = 0
    while done < n and budget.stop_reason() is None:
        distances, _ = tree.query(points[done : done + _BATCH], k=k)
        lowered = np.maximum(0.0, distances * (1 - LOSS_RELATIVE) - error)
        # The record itself is among the k, at distance 0.
        terms[done : done + _BATCH] = (lowered**2).sum(axis=1) / (2 * k)
        done = min(done + _BATCH, n)
        budget.report("bound on squared errors", done=done, total=n)
    recoding = problem.recoding
    if not isinstance(recoding, EquivalenceClasses) or recoding.suppression:
        terms = np.fmin(terms, problem.compiled.suppression_price)
    return terms, done == n
