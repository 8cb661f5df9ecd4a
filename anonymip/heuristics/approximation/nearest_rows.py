"""Distances of rows, and the nearest rows of every row without a matrix of all pairs.

The distance of two rows is what a record loses on average if they are published as one class. The
nearest rows are found by a k-d tree or by scans.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from anonymip.heuristics.approximation.guarantees import cell_costs
from anonymip.objectives.kernels.box_tree import (
    BoxTree,
    build_tree,
    list_type,
    nearest_types,
    new_tree,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    kernel_rows,
    new_state,
    open_class,
    pair_loss,
)
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_over
from anonymip.status import Stopped

#: Up to so many distinct rows each looks at all others, where cells have one cost each.
_SCANNED = 100_000


class NearestRows(Packed):
    """For every row type the nearest types, until they have k rows together."""

    rows: KernelRows  # the types as the kernels read them
    records: Ints  # (n,) records type by type
    counts: Ints  # (t,) how many there are of each
    start: Ints  # (t + 1,) where the records of a type begin
    #: (t, k) int32, each type itself and then others, the nearest first; -1 beyond `listed`.
    types: Codes
    listed: Ints  # (t,) how many types are listed
    #: (t,) what a record loses if it is published together with its (k-1)-th nearest neighbour
    #: instead of exactly.
    farthest: Floats


def nearest_rows(problem: Problem, budget: Budget) -> tuple[NearestRows, Stopped | None]:
    """Return the nearest rows of every row, and why it stopped early, if it did.

    The distance of two rows is the loss of a record published as the class of both. Where a cell
    costs the same whatever values it covers, boxes of rows prune little: then every row
    looks at all others, which is faster up to 100,000 distinct rows. Complexity: one search of
    the tree, or O(t m) time, for each of t distinct rows; O(t k) memory.
    """
    tables, k = problem.compiled.tables, problem.k
    types = problem.microdata.row_types(tables.columns)
    counts = types.counts.astype(np.int64)
    found = NearestRows(
        kernel_rows(problem.microdata, tables, types.first),
        np.argsort(types.inverse, kind="stable"),
        counts,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.full((len(counts), k), -1, np.int32),
        np.zeros(len(counts), np.int64),
        np.zeros(len(counts)),
    )
    costs = cell_costs(problem)
    if costs is not None and len(counts) <= _SCANNED:
        columns = np.ascontiguousarray(problem.microdata.codes[types.first][:, costs[0]].T)
        scan = partial(_scan, found, columns, costs[1])
        return found, run_over(scan, len(counts), budget, "nearest rows", first=100)
    tree = new_tree(tables, len(counts))
    build_tree(tree, found.rows, counts)
    search = partial(_search_tree, found, tree, new_state(tables, 2))
    return found, run_over(search, len(counts), budget, "nearest rows", first=100)


@kernel
def _search_tree(
    found: NearestRows, tree: BoxTree, state: ClassState, begin: int, end: int
) -> None:
    """Find the neighbours of some types."""
    counts, k = found.counts, found.types.shape[1]
    losses, looked = np.empty(k + 1), np.zeros(1, np.int64)
    for row in range(begin, end):
        open_class(found.rows, state, row)
        near = found.types[row]
        held = nearest_types(found.rows, tree, state, counts, k, row, near, losses, looked)
        found.listed[row] = held
        found.farthest[row] = losses[held - 1] - losses[0]


@kernel
def _scan(found: NearestRows, columns: Codes, costs: Floats, begin: int, end: int) -> None:
    """Find the neighbours of some types among all."""
    counts, k = found.counts, found.types.shape[1]
    distances, losses = np.empty(len(counts)), np.empty(k + 1)
    for row in range(begin, end):
        found.types[row, 0] = row
        losses[0] = 0.0
        held = 1
        if counts[row] < k:
            distances[:] = 0.0
            for c in range(len(costs)):
                column, code, cost = columns[c], columns[c, row], costs[c]
                for other in range(len(counts)):
                    distances[other] += cost if column[other] != code else 0.0
            total = counts[row]
            for other in range(len(counts)):
                if other != row and (total < k or distances[other] < losses[held - 1]):
                    held, total = list_type(
                        other, distances[other], counts, k, found.types[row], losses, held, total
                    )
        found.listed[row] = held
        found.farthest[row] = losses[held - 1]


def pair_distances(rows: KernelRows, ones: Ints, others: Ints) -> Floats:
    """Return (p,) the losses of classes of two rows, less those of publishing them exactly."""
    own = pair_losses(rows, ones, ones) + pair_losses(rows, others, others)
    return pair_losses(rows, ones, others) - own / 2


@kernel
def pair_losses(rows: KernelRows, ones: Ints, others: Ints) -> Floats:
    """Return (p,) losses of a record published as the class of two rows."""
    found = np.empty(len(ones))
    for at in range(len(ones)):
        found[at] = pair_loss(rows, ones[at], others[at])
    return found


def all_distances(rows: KernelRows, types: Ints, budget: Budget) -> tuple[Floats, Stopped | None]:
    """Return (n, n) distances of rows of the given types, infinite on the diagonal."""
    found = np.full((len(types), len(types)), np.inf)
    own = pair_losses(rows, types, types)

    def step(begin: int, end: int) -> None:
        for one in range(begin, end):
            losses = pair_losses(rows, np.full(one, types[one]), types[:one])
            found[one, :one] = found[:one, one] = losses - (own[one] + own[:one]) / 2

    return found, run_over(step, len(types), budget, "distances", first=100)


def close_pairs(
    near: NearestRows, least: Floats, budget: Budget
) -> tuple[Ints, Floats, Stopped | None]:
    """Return the pairs nearer than their nearest neighbours together, and by how much.

    Ends and savings are (e, 2) pairs of types and (e,) least[one] + least[other] - distance, above
    rounding; those found so far if the budget ends, with the reason. `least` are the (t,) distances
    of each type's row to the nearest other row: types of several rows have 0 and no such pair.
    Complexity: O(t^2 m) time, O(t + e) memory.
    """
    everyone = np.arange(len(near.listed))
    own = pair_losses(near.rows, everyone, everyone)
    alone = np.flatnonzero(near.counts == 1)
    scale = float(least.max()) if len(least) else 0.0
    pieces: list[tuple[Ints, Floats]] = []

    def step(begin: int, end: int) -> None:
        room = (end - begin) * len(alone)
        ends, savings = np.empty((room, 2), np.int64), np.empty(room)
        rows = near.rows, own, alone, least
        count = _list_pairs(*rows, 1e-12 * scale, ends, savings, begin, end)
        pieces.append((ends[:count].copy(), savings[:count].copy()))

    stopped = run_over(step, len(alone), budget, "pairs of rows", first=10)
    ends = np.concatenate([np.empty((0, 2), np.int64), *(piece[0] for piece in pieces)])
    savings = np.concatenate([np.empty(0), *(piece[1] for piece in pieces)])
    return ends, savings, stopped


@kernel
def _list_pairs(
    rows: KernelRows,
    own: Floats,
    alone: Ints,
    least: Floats,
    rounding: float,
    ends: Ints,
    savings: Floats,
    begin: int,
    end: int,
) -> int:
    """List the close pairs of some rows with those before them; return how many."""
    count = 0
    for at in range(begin, end):
        one = alone[at]
        for before in range(at):
            other = alone[before]
            distance = pair_loss(rows, one, other) - (own[one] + own[other]) / 2
            saving = least[one] + least[other] - distance
            if saving > rounding:
                ends[count, 0], ends[count, 1] = other, one
                savings[count] = saving
                count += 1
    return count
