"""The linear program of many known sets, solved roughly: duals to aim at.

The duals of a linear program over sets of k rows are sought: the largest sum over all rows, where
no known set costs less than its duals. A first-order method (primal-dual hybrid gradient, Chambolle
and Pock 2011, with restarts from averages as in Applegate et al. 2021) goes on from where it stood
when sets are added, and needs a few milliseconds where a simplex method needs minutes. What it
returns obeys the sets only roughly, and sets that are not known not at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.runtime.budget import Budget

#: Steps before the first restart; later ones come when a third of all steps have been made.
_RESTART = 50


class SetProgram:
    """The program: sets are added, and duals asked for.

    Parameters
    ----------
    counts
        (t,) rows of each type.
    k
        Rows of each set.
    unit
        Typical size of a dual, above 0.
    """

    def __init__(self, counts: NDArray[np.int64], k: int, unit: float) -> None:
        self._counts = counts.astype(np.float64)
        self._k, self._unit = k, unit
        self._known: set[bytes] = set()
        self._members, self._costs = np.empty((0, k), np.int32), np.empty(0)
        self._shares = np.empty(0)

    def __len__(self) -> int:
        """Return how many sets are known."""
        return len(self._costs)

    def add(self, members: NDArray[np.int32], costs: NDArray[np.float64]) -> int:
        """Add the sets that are new, and return how many these are.

        Parameters
        ----------
        members
            (c, k) types, ascending in each set.
        costs
            (c,) of the sets.
        """
        new = np.zeros(len(costs), np.bool_)
        for place in range(len(costs)):
            key = members[place].tobytes()
            new[place] = key not in self._known
            self._known.add(key)
        self._members = np.concatenate([self._members, members[new]])
        self._costs = np.concatenate([self._costs, costs[new]])
        self._shares = np.concatenate([self._shares, np.zeros(int(new.sum()))])
        return int(new.sum())

    @property
    def members(self) -> NDArray[np.int32]:
        """(c, k) types of the sets that are known, ascending in each."""
        return self._members

    @property
    def shares(self) -> NDArray[np.float64]:
        """(c,) how much of each set the program takes, roughly."""
        return self._shares

    def cover(self, counts: NDArray[np.int64]) -> None:
        """Ask for fewer rows from now on, and forget the sets that hold more of a type.

        Parameters
        ----------
        counts
            (t,) rows of each type, no more than before.
        """
        self._counts = counts.astype(np.float64)
        members = self._members
        fits, copies = np.ones(len(members), np.bool_), np.zeros(len(members), np.int64)
        for place in range(self._k):
            same = members[:, place] == members[:, place - 1] if place else np.False_
            copies = np.where(same, copies + 1, 1)
            fits &= counts[members[:, place]] >= copies
        self._members, self._costs = members[fits], self._costs[fits]
        self._shares = self._shares[fits]

    def improved(
        self,
        duals: NDArray[np.float64],
        lowest: NDArray[np.float64],
        highest: NDArray[np.float64],
        steps: int,
        budget: Budget,
    ) -> NDArray[np.float64]:
        """Return duals nearer to the best ones.

        Parameters
        ----------
        duals
            (t,) where to start.
        lowest, highest
            (t,) between which they lie.
        steps
            How many, each O(c k).
        budget
            Ends them.
        """
        t, sets, k = len(duals), len(self), self._k
        starts = np.arange(0, k * sets + 1, k)
        held = csr_array((np.ones(k * sets), self._members.ravel(), starts), shape=(sets, t))
        holding = held.T.tocsr()
        often = np.maximum(np.bincount(self._members.ravel(), minlength=t), 1)
        primal_step, dual_step = 1.0 / (k * self._unit), self._unit / often
        shares, covered = self._shares, holding @ self._shares
        sums, since = (np.zeros(sets), np.zeros(t)), 0
        for step in range(steps):
            new = np.maximum(0.0, shares - primal_step * (self._costs - held @ duals))
            now = holding @ new
            missing = self._counts - (2.0 * now - covered)
            duals = np.clip(duals + dual_step * missing, lowest, highest)
            shares, covered, since = new, now, since + 1
            sums = sums[0] + shares, sums[1] + duals
            ended = step + 1 == steps or budget.stop_reason() is not None
            if since >= max(_RESTART, step // 3) or ended:
                shares, duals = sums[0] / since, sums[1] / since
                covered = holding @ shares
                sums, since = (np.zeros(sets), np.zeros(t)), 0
            if ended:
                break
        self._shares = shares
        return duals
