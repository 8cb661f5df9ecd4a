"""Enumeration of the sets of records that may be classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from anonymip.enumeration.cluster_sets import ClusterSets, Found, gather_sets, lexicographic_order
from anonymip.enumeration.merging import (
    MergedRows,
    capped_tables,
    loss_scale,
    merge_rows,
    search_rows,
)
from anonymip.enumeration.pricing import (
    UNLIMITED,
    RootedRun,
    cuts_of_rows,
    members_of,
    roots_of,
)
from anonymip.enumeration.rooted_search import RootedRules
from anonymip.errors import InputError
from anonymip.objectives.language.record import cells_of_sets
from anonymip.problem import Problem
from anonymip.recodings.rules.limits import met_by_sets
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.tolerances import LOSS_RELATIVE

#: Sets made at a time, about.
_BATCH = 20_000
#: Sets that an enumeration keeps by default.
MAX_SETS_KEPT = 2_000_000


@dataclass(frozen=True)
class Request:
    """Which sets are looked for, and what ends the search early.

    Sets of up to `largest` records with reduced costs below `cutoff`. If `pruned`, partial sets are
    cut off by the loss, which must be monotone. At most `max_sets` are found.
    """

    largest: int
    cutoff: float
    pruned: bool
    max_sets: int


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
        self._members: list[Ints] = []
        self._losses: list[Floats] = []

    def grow(self, sets: Ints) -> Ints:
        """Return the sets with one row more that may grow on; keep those that are wanted."""
        grown = self._followers(sets)
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

    def _followers(self, sets: Ints) -> Ints:
        places = np.arange(self.problem.n)
        last = sets[:, -1:] if sets.shape[1] else np.full((len(sets), 1), -1)
        allowed = (places > last) & (self.first_of_type | (places - 1 == last))
        # Enough rows must be left for a set of k.
        missing = self.problem.k - sets.shape[1] - 1
        allowed &= places + max(missing, 0) < self.problem.n
        which, place = np.nonzero(allowed)
        return np.concatenate([sets[which], place[:, None]], axis=1)

    def _keep(self, sets: Ints, records: Ints, losses: Floats) -> None:
        wanted = losses - self.duals[sets].sum(axis=1) < self.request.cutoff
        diversity = self.problem.diversity
        if diversity is not None:
            wanted &= diversity.met_by(self.problem.microdata.counted_codes[records])
        chosen = np.flatnonzero(wanted)
        left = self.request.max_sets - self.count
        if len(chosen) > left:
            chosen, self.reason = chosen[:left], "max_sets"
        self._members.append(sets[chosen])
        self._losses.append(losses[chosen])
        self.count += len(chosen)

    def _promising(self, sets: Ints, losses: Floats) -> Flags:
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


def enumerate_sets(
    problem: Problem,
    duals: ArrayLike | None = None,
    threshold: float = math.inf,
    *,
    max_size: int | None = None,
    max_sets: int = MAX_SETS_KEPT,
    merge: bool = True,
    budget: Budget | None = None,
) -> ClusterSets:
    """Return all sets of k to `max_size` records whose reduced cost is below a threshold.

    The reduced cost of a set is its loss as a class less the duals of its records. Sets keep the
    limits and have the diversity of the problem. Suppressed records are not sets of one.

    `duals`: (n,) dual value of each record; None means 0. `max_size`: most records of a set; None
    takes what some optimal release needs at most, see
    :meth:`~anonymip.recodings.Recoding.max_size`, or else n. `max_sets`: sets that end the search
    when there are more. `merge`: whether records that are alike to duals, loss, limits and
    diversity are one row type. Under losses of the members tier they never are, but for squared
    errors. Returns: the sets, and whether they are all. Raises InputError if duals are not n finite
    numbers, the threshold is NaN, or a limit is out of range.

    Complexity: exponential in `max_size`. With a monotone record loss, partial sets that no rows
    can bring below the threshold are cut off.
    """
    given = np.zeros(problem.n) if duals is None else np.asarray(duals, np.float64)
    if given.shape != (problem.n,) or not np.isfinite(given).all():
        raise InputError(
            f"duals are no {problem.n} finite numbers", remedy="Give one number a record"
        )
    duals = given + 0.0  # -0.0 and 0.0 are one dual value
    if math.isnan(threshold):
        raise InputError("threshold is NaN", remedy="Give a number")
    largest = _largest(problem, max_size)
    if not _is_whole(max_sets, 1):
        raise InputError(f"max_sets is {max_sets!r}", remedy="Give a whole number of at least 1")
    budget = budget or Budget()
    rows = merge_rows(problem, duals, merge=merge)
    compiled = problem.compiled
    # How far the search's own sums may be off.
    scale = float(np.abs(duals).max()) + (abs(threshold) if math.isfinite(threshold) else 0.0)
    scale += loss_scale(problem) if compiled.has_tables else 0.0
    request = Request(
        largest,
        threshold + LOSS_RELATIVE * largest * scale,
        compiled.monotone and threshold < math.inf,
        int(max_sets),
    )
    search = _search_by_roots if compiled.has_tables else search_in_batches
    return gather_sets(problem, rows, search(problem, rows, request, budget), threshold)


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def _largest(problem: Problem, max_size: int | None) -> int:
    if max_size is None:
        max_size = problem.recoding.max_size(problem).size
        return problem.n if max_size is None else min(max_size, problem.n)
    if not _is_whole(max_size, problem.k):
        raise InputError(
            f"max_size is {max_size!r}, and k is {problem.k}",
            remedy="Give a whole number of at least k",
        )
    return min(int(max_size), problem.n)


def _search_by_roots(
    problem: Problem, merged: MergedRows, request: Request, budget: Budget
) -> Found:
    rows, types = search_rows(problem, merged, capped_tables(problem)), np.arange(merged.types)
    summed, run = problem.compiled.aggregate == "sum", RootedRun(rows, request.largest)
    rules = RootedRules(
        problem.k, request.largest, request.pruned, summed, UNLIMITED, UNLIMITED, False
    )
    run.search(
        cuts_of_rows(merged.types, None),
        rules,
        roots_of(types, types, types, request.cutoff),
        budget,
        phase="enumerating sets",
        max_columns=request.max_sets,
    )
    count = min(int(run.found.held[0]), request.max_sets)
    sizes = run.found.sizes[:count].copy()
    members = run.found.members[: sizes.sum()]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    # Models take the sets in an order that does not depend on how they were found.
    order = lexicographic_order(members, sizes)
    members, sizes = members[members_of(starts, sizes, order)], sizes[order]
    reason = "max_sets" if run.reason == "max_columns" else run.reason
    return Found(members, sizes, None, reason, run.nodes)
