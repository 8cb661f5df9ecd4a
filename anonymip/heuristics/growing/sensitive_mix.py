"""How far a growing class is from being diverse, and what joining it would change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.problem import Problem
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    count_out,
    diversity_rule,
    new_counts,
    rows_lacking,
    stays_diverse,
)
from anonymip.runtime.kernels import kernel


class SensitiveMix:
    """Counts of the sensitive values of a set of records that grows or shrinks.

    Parameters
    ----------
    problem
        With or without a diversity.
    members
        The records at first.
    """

    def __init__(self, problem: Problem, members: NDArray[np.int64]) -> None:
        self._k = problem.k
        self._rule = diversity_rule(problem.diversity, problem.microdata)
        self._counts = new_counts(self._rule)
        self.size = len(members)
        _count_all(self._rule, self._counts, members)

    def add(self, record: int) -> None:
        """Count a record in."""
        self.size += 1
        count_in(self._rule, self._counts, record, 1, 0, 0)

    def remove(self, record: int) -> None:
        """Count a record out."""
        self.size -= 1
        count_out(self._rule, self._counts, record)

    def needed(self) -> int:
        """Return how many further records a class of these needs at least to be allowed."""
        lacking = int(rows_lacking(self._rule, self._counts, self.size, -1))
        return max(self._k - self.size, lacking)

    def needed_with(self, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (B,) the same once one of the candidates has joined."""
        lacking = _lacking_with(self._rule, self._counts, self.size, candidates)
        return np.maximum(self._k - self.size - 1, lacking)

    def diverse_without(self, candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (B,) whether the set without one of the candidates would be diverse, or empty."""
        if self.size == 1:
            return np.ones(len(candidates), np.bool_)
        return _diverse_without(self._rule, self._counts, self.size, candidates)


@kernel
def _count_all(rule: DiversityRule, counts: ValueCounts, members: NDArray[np.int64]) -> None:
    for record in members:
        count_in(rule, counts, record, 1, 0, 0)


@kernel
def _lacking_with(
    rule: DiversityRule, counts: ValueCounts, size: int, candidates: NDArray[np.int64]
) -> NDArray[np.int64]:
    lacking = np.empty(len(candidates), np.int64)
    for at in range(len(candidates)):
        lacking[at] = rows_lacking(rule, counts, size, candidates[at])
    return lacking


@kernel
def _diverse_without(
    rule: DiversityRule, counts: ValueCounts, size: int, candidates: NDArray[np.int64]
) -> NDArray[np.bool_]:
    diverse = np.empty(len(candidates), np.bool_)
    for at in range(len(candidates)):
        diverse[at] = stays_diverse(rule, counts, size, candidates[at], -1)
    return diverse
