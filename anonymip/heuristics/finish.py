"""From the labels of a heuristic to a checked solution."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.kernels import Stopwatch
from anonymip.objectives import cells_of
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.solution import Solution
from anonymip.status import Stopped


def finish(
    problem: Problem,
    labels: ArrayLike,
    method: str,
    watch: Stopwatch,
    *,
    stopped: Stopped | None = None,
    options: Mapping[str, object] | None = None,
    seed: int | None = None,
) -> Solution:
    """Return the solution of class labels; suppress classes where that is allowed and cheaper."""
    classes = Classes(np.asarray(labels))
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
    )


def _suppress_expensive(problem: Problem, classes: Classes) -> Classes:
    """Suppress the records whose published class costs more than a row of stars."""
    losses = problem.compiled.record_losses(cells_of(problem.recoding.describe(problem, classes)))
    labels = classes.labels.copy()
    labels[losses > problem.compiled.suppression_price] = SUPPRESSED
    return Classes(labels)


def cut_in_order(
    labels: NDArray[np.int64], order: NDArray[np.int64], k: int, next_label: int
) -> None:
    """Give the records without a label, in order, classes of k; the tail joins the last class.

    Fewer than k of them join the last class there is, or are a class if there is none.
    """
    rest = order[labels[order] < 0]
    sets = len(rest) // k
    if sets == 0:
        labels[rest] = max(next_label - 1, 0)
        return
    labels[rest] = next_label + np.minimum(np.arange(len(rest)) // k, sets - 1)
