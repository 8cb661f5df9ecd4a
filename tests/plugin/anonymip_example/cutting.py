"""Two heuristics that cut the lexicographic order of the records."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonymip import Classes, MethodOption, Problem, Solution, register_method


def _cut(problem: Problem, size: int, reverse: bool = False) -> Classes:
    """Cut the sorted records into classes of a size; the last takes the remainder."""
    order = np.lexsort(problem.microdata.codes.T[::-1])
    if reverse:
        order = order[::-1]
    labels = np.empty(problem.n, dtype=np.int64)
    labels[order] = np.minimum(np.arange(problem.n) // size, problem.n // size - 1)
    return Classes(labels)


@register_method(
    "lexicographic",
    source="an example from outside",
    options=(MethodOption("reverse", False, "cut from the last record"),),
)
def lexicographic(
    problem: Problem, *, reverse: bool = False, budget: Any = None, seed: int = 0
) -> Solution:
    """Cut the sorted records into classes of k."""
    return Solution.of(problem, _cut(problem, problem.k, reverse), method="lexicographic")


def fixed_size_cut(problem: Problem, *, budget: Any = None, seed: int = 0) -> Solution:
    """Do the same for the recoding of fixed sizes, whose rule it keeps."""
    return Solution.of(problem, _cut(problem, problem.k), method="fixed-size-cut")
