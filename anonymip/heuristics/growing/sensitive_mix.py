"""How far a growing class is from being diverse, and what joining it would change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.problem import Problem


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
        self._codes = problem.microdata.sensitive_codes if problem.diversity is not None else None
        self._numerator, self._denominator = 1, 1
        self._distinct = 1
        if problem.diversity is not None:
            self._numerator, self._denominator = problem.diversity.ratio
            self._distinct = problem.diversity.distinct
        self.size = len(members)
        self._counts: list[NDArray[np.int64]] = []
        for column in range(0 if self._codes is None else self._codes.shape[1]):
            codes = problem.microdata.sensitive_codes[:, column]
            values = int(codes.max()) + 1
            self._counts.append(np.bincount(codes[members], minlength=values))

    def add(self, record: int, amount: int = 1) -> None:
        """Count a record in, or with amount -1 out."""
        self.size += amount
        for column, counts in enumerate(self._counts):
            assert self._codes is not None
            counts[self._codes[record, column]] += amount

    def needed(self) -> int:
        """Return how many further records a class of these needs at least to be allowed."""
        needed = self._k - self.size
        for counts in self._counts:
            required = -(-int(counts.max()) * self._numerator // self._denominator)
            kinds = int(np.count_nonzero(counts))
            needed = max(needed, required - self.size, self._distinct - kinds)
        return max(needed, 0)

    def needed_with(self, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (B,) the same once one of the candidates has joined."""
        needed = np.full(len(candidates), self._k - self.size - 1)
        for column, counts in enumerate(self._counts):
            assert self._codes is not None
            own = counts[self._codes[candidates, column]]
            most = np.maximum(int(counts.max()), own + 1)
            kinds = np.count_nonzero(counts) + (own == 0)
            required = -(-most * self._numerator // self._denominator)
            needed = np.maximum(needed, required - self.size - 1)
            needed = np.maximum(needed, self._distinct - kinds)
        return np.maximum(needed, 0)

    def diverse_without(self, candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (B,) whether the set without one of the candidates would be diverse, or empty."""
        kept = np.ones(len(candidates), np.bool_)
        if self.size == 1:
            return kept
        for column, counts in enumerate(self._counts):
            assert self._codes is not None
            own = counts[self._codes[candidates, column]]
            top = int(counts.max())
            # Only a value that is most frequent alone leaves a smaller maximum.
            alone = np.count_nonzero(counts == top) == 1
            most = np.where((own == top) & alone, top - 1, top)
            kept &= most * self._numerator <= (self.size - 1) * self._denominator
            kept &= np.count_nonzero(counts) - (own == 1) >= self._distinct
        return kept
