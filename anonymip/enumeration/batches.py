"""Search for sets of row types in batches, for losses without tables.

The objective's own function gives the losses of many sets at a time. A set grows by one row at a
time, types never descending.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.enumeration.merging import MergedRows
from anonymip.objectives.language.class_cells import cells_of_sets
from anonymip.problem import Problem
from anonymip.recodings.rules.limits import met_by_sets
from anonymip.runtime.budget import Budget

#: Sets made at a time, about.
_BATCH = 20_000


@dataclass(frozen=True)
class Request:
    """Which sets are looked for, and what ends the search early.

    Parameters
    ----------
    largest
        Most records of a set.
    cutoff
        Reduced costs from here on are not wanted.
    pruned
        Whether partial sets are cut off by the loss, which must be monotone.
    max_sets, max_nodes
        Most sets found and partial sets looked at.
    """

    largest: int
    cutoff: float
    pruned: bool
    max_sets: int
    max_nodes: int


@dataclass(frozen=True, eq=False)
class Found:
    """Sets found, not compressed yet.

    Parameters
    ----------
    members
        Types of the members, set by set.
    sizes, losses
        (c,) of each set.
    reason
        What ended the search early; None if nothing did.
    nodes
        Partial sets looked at.
    """

    members: NDArray[np.int32]
    sizes: NDArray[np.int64]
    losses: NDArray[np.float64]
    reason: str | None
    nodes: int


def search_in_batches(
    problem: Problem, rows: MergedRows, request: Request, budget: Budget
) -> Found:
    """Return the sets of k or more rows below the cutoff."""
    search = _Search(problem, rows, request)
    # The last partial sets made are grown first, so that few wait.
    waiting = [np.empty((1, 0), np.int64)]
    while waiting and search.reason is None:
        stopped = budget.stop_reason()
        if stopped is not None:
            search.reason = stopped.value
            break
        sets = waiting.pop()
        share = max(1, _BATCH // problem.n)
        if len(sets) > share:
            waiting.append(sets[share:])
        grown = search.grow(sets[:share])
        if len(grown) and grown.shape[1] < request.largest:
            waiting.append(grown)
        budget.report("enumerating sets", done=search.count)
    return search.found()


class _Search:
    """Grows sets of places: the rows one by one, type by type."""

    def __init__(self, problem: Problem, rows: MergedRows, request: Request) -> None:
        self.problem, self.rows, self.request = problem, rows, request
        self.types = np.repeat(np.arange(rows.types), rows.counts)
        # A row of a type follows only the row of this type before it.
        self.first_of_type = np.zeros(problem.n, np.bool_)
        self.first_of_type[rows.starts[:-1]] = True
        self.duals = rows.duals[self.types]
        self.cumulated = np.concatenate([[0.0], np.cumsum(self.duals)])
        self.reason: str | None = None
        self.nodes = self.count = 0
        self._members: list[NDArray[np.int64]] = []
        self._losses: list[NDArray[np.float64]] = []

    def grow(self, sets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sets with one row more that may grow on; keep those that are wanted."""
        grown = self._followers(sets)
        left = self.request.max_nodes - self.nodes
        if len(grown) > left:
            grown, self.reason = grown[:left], "max_nodes"
        self.nodes += len(grown)
        size = sets.shape[1] + 1
        records = self.rows.records[grown]
        problem = self.problem
        if problem.limits:
            met = met_by_sets(
                problem.microdata,
                problem.limits,
                records,
                cells_of_sets(problem.microdata, records),
            )
            grown, records = grown[met], records[met]
        if not len(grown) or (size < problem.k and not self.request.pruned):
            return grown
        losses = problem.compiled.class_losses(records)
        if size >= problem.k:
            self._keep(grown, records, losses)
        if self.request.pruned:
            grown = grown[self._promising(grown, losses)]
        return grown

    def _followers(self, sets: NDArray[np.int64]) -> NDArray[np.int64]:
        places = np.arange(self.problem.n)
        last = sets[:, -1:] if sets.shape[1] else np.full((len(sets), 1), -1)
        allowed = (places > last) & (self.first_of_type | (places - 1 == last))
        # Enough rows must be left for a set of k.
        missing = self.problem.k - sets.shape[1] - 1
        allowed &= places + max(missing, 0) < self.problem.n
        which, place = np.nonzero(allowed)
        return np.concatenate([sets[which], place[:, None]], axis=1)

    def _keep(
        self, sets: NDArray[np.int64], records: NDArray[np.int64], losses: NDArray[np.float64]
    ) -> None:
        wanted = losses - self.duals[sets].sum(axis=1) < self.request.cutoff
        diversity = self.problem.diversity
        if diversity is not None:
            wanted &= diversity.met_by(self.problem.microdata.sensitive_codes[records])
        chosen = np.flatnonzero(wanted)
        left = self.request.max_sets - self.count
        if len(chosen) > left:
            chosen, self.reason = chosen[:left], "max_sets"
        self._members.append(sets[chosen])
        self._losses.append(losses[chosen])
        self.count += len(chosen)

    def _promising(self, sets: NDArray[np.int64], losses: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return whether sets may still become wanted ones; monotone losses only."""
        size, n = sets.shape[1], self.problem.n
        summed = self.problem.compiled.aggregate == "sum"
        loss = losses / size if summed else losses
        dual_sum = self.duals[sets].sum(axis=1)
        behind = sets[:, -1] + 1
        promising = np.zeros(len(sets), np.bool_)
        for grown in range(max(size + 1, self.problem.k), self.request.largest + 1):
            stop = behind + grown - size
            reached = stop <= n
            gain = self.cumulated[np.minimum(stop, n)] - self.cumulated[behind]
            cost = loss * grown if summed else loss
            promising |= reached & (cost - dual_sum - gain < self.request.cutoff)
        return promising

    def found(self) -> Found:
        """Return the sets kept."""
        members = [self.types[sets].ravel() for sets in self._members]
        sizes = [np.full(len(sets), sets.shape[1]) for sets in self._members]
        return Found(
            np.concatenate([np.empty(0, np.int32), *members]).astype(np.int32),
            np.concatenate([np.empty(0, np.int64), *sizes]).astype(np.int64),
            np.concatenate([np.empty(0), *self._losses]),
            self.reason,
            self.nodes,
        )
