"""A pool of columns, and what a selection from it has to cover."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from anonymip.tolerances import INTEGRALITY


@dataclass(frozen=True, eq=False)
class Pool:
    """Columns, of which a selection covers every row type as often as it must.

    Parameters
    ----------
    incidence
        (c, t) int64 members of each row type in each column.
    costs
        (c,) finite.
    coverage
        (t,) int64 how often each type is covered, at least once.
    count_limit
        Most columns in a selection; None where coverage alone decides.
    """

    incidence: csr_array
    costs: NDArray[np.float64]
    coverage: NDArray[np.int64]
    count_limit: int | None

    @cached_property
    def by_type(self) -> csc_array:
        """The incidence, compressed by types."""
        return csc_array(self.incidence)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """(c,) members of each column."""
        return np.asarray(self.incidence.sum(axis=1), np.int64).ravel()

    @cached_property
    def most(self) -> int:
        """The most columns that a selection can hold."""
        most = int(self.coverage.sum()) // int(self.sizes.min(initial=2**31))
        return most if self.count_limit is None else min(most, self.count_limit)

    @cached_property
    def limits(self) -> NDArray[np.float64]:
        """(c,) how often a selection can hold each column."""
        fits = self.coverage[self.incidence.indices] // self.incidence.data
        return np.minimum.reduceat(fits, self.incidence.indptr[:-1]).astype(np.float64)

    @cached_property
    def largest(self) -> float:
        """The most members of a column."""
        return float(self.sizes.max(initial=0))

    @cached_property
    def costliest(self) -> float:
        """The largest cost of a column, without its sign."""
        return float(np.abs(self.costs).max(initial=0.0))

    def only(self, columns: NDArray[np.int64]) -> Pool:
        """Return the pool of some columns, by number."""
        return replace(
            self, incidence=csr_array(self.incidence[columns]), costs=self.costs[columns]
        )

    def holds(self, type_: int, columns: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether columns, by number, hold a type."""
        start, stop = self.by_type.indptr[type_ : type_ + 2]
        held = np.zeros(len(self.costs), np.bool_)
        held[self.by_type.indices[start:stop]] = True
        return np.asarray(held[columns])

    def selection(
        self, columns: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.int64] | None:
        """Return the columns, repeated, that whole weights take; None if they are no selection."""
        amounts = np.rint(weights).astype(np.int64)
        if np.abs(weights - amounts).max(initial=0.0) > INTEGRALITY:
            return None
        chosen = np.sort(np.repeat(columns, np.maximum(amounts, 0)))
        return chosen if self.keeps(chosen) else None

    def keeps(self, chosen: NDArray[np.int64]) -> bool:
        """Return whether columns, repeated, cover every type exactly, and are not too many."""
        if self.count_limit is not None and len(chosen) > self.count_limit:
            return False
        covered = np.asarray(self.incidence[chosen].sum(axis=0)).ravel()
        return bool((covered == self.coverage).all())

    def cost(self, chosen: NDArray[np.int64]) -> float:
        """Return the sum of the costs of columns."""
        return math.fsum(self.costs[chosen].tolist())
