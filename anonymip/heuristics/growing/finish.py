"""From the labels of a heuristic to a checked solution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.heuristics.growing.repair import repaired
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped


def finish(
    problem: Problem,
    labels: ArrayLike,
    method: str,
    watch: Stopwatch,
    *,
    budget: Budget | None = None,
    stopped: Stopped | None = None,
    options: Mapping[str, object] | None = None,
    seed: int | None = None,
    trace: tuple[str, ...] = (),
) -> Solution:
    """Return the solution of class labels, repaired; suppress classes where that is cheaper.

    Parameters
    ----------
    problem
        What is asked.
    labels
        (n,) classes of at least k records, which may break other rules; -1 for records without.
    method, watch, stopped, options, seed, trace
        As the solution tells them.
    budget
        Of the repair.

    Raises
    ------
    NoSolution
        If no classes are found that keep the limits and the diversity.
    """
    given = np.asarray(labels, np.int64)
    classes = Classes(repaired(problem, given, method, budget or Budget()))  # type: ignore[arg-type]
    recoding = problem.recoding
    if isinstance(recoding, EquivalenceClasses) and recoding.suppression:
        classes = _suppress_expensive(problem, classes)
    return Solution.of(
        problem,
        classes,
        method=method,
        stopped=stopped or Stopped.HEURISTIC,
        options=options,
        seconds=watch.seconds,
        seed=seed,
        trace=trace,
    )


def _suppress_expensive(problem: Problem, classes: Classes) -> Classes:
    """Suppress the records whose published class costs more than a row of stars."""
    losses = problem.compiled.losses_of(problem.recoding.describe(problem, classes), classes)
    labels = classes.labels.copy()
    labels[losses > problem.compiled.suppression_price] = SUPPRESSED
    return Classes(labels)
