"""Distances of rows: what a record loses on average if two are published as one class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.approximation.nearest_rows import NearestRows
from anonymip.objectives.kernels.class_loss import KernelRows, pair_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped


def pair_distances(
    tables: LossTables, rows: KernelRows, ones: NDArray[np.int64], others: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (p,) the losses of classes of two rows, less those of publishing them exactly."""
    own = pair_losses(tables, rows, ones, ones) + pair_losses(tables, rows, others, others)
    return pair_losses(tables, rows, ones, others) - own / 2


@kernel
def pair_losses(
    tables: LossTables, rows: KernelRows, ones: NDArray[np.int64], others: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (p,) losses of a record published as the class of two rows."""
    found = np.empty(len(ones))
    for at in range(len(ones)):
        found[at] = pair_loss(tables, rows, ones[at], others[at])
    return found


def all_distances(
    tables: LossTables, rows: KernelRows, types: NDArray[np.int64], budget: Budget
) -> tuple[NDArray[np.float64], Stopped | None]:
    """Return (n, n) distances of rows of the given types, infinite on the diagonal."""
    n = len(types)
    found = np.full((n, n), np.inf)
    own = pair_losses(tables, rows, types, types)
    cursor = np.zeros(1, np.int64)

    def step(amount: int) -> int:
        return int(_fill_step(tables, rows, types, own, found, cursor, amount))

    return found, run_in_steps(step, n, budget, "distances", first=100)


@kernel
def _fill_step(
    tables: LossTables,
    rows: KernelRows,
    types: NDArray[np.int64],
    own: NDArray[np.float64],
    found: NDArray[np.float64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    for one in range(cursor[0], min(cursor[0] + amount, len(types))):
        for other in range(one):
            distance = pair_loss(tables, rows, types[one], types[other])
            distance -= (own[one] + own[other]) / 2
            found[one, other] = distance
            found[other, one] = distance
        cursor[0] = one + 1
    return cursor[0]


def close_pairs(
    tables: LossTables, near: NearestRows, least: NDArray[np.float64], budget: Budget
) -> tuple[NDArray[np.int64], NDArray[np.float64], Stopped | None]:
    """Return the pairs nearer than their nearest neighbours together, and by how much.

    Parameters
    ----------
    tables, near
        The loss and the row types.
    least
        (t,) distance of each type's row to the nearest other row. Types of several rows have 0
        and no such pair.
    budget
        When it ends, the pairs found so far are returned.

    Returns
    -------
    ends, savings
        (e, 2), (e,) pairs of types and least[one] + least[other] - distance, above rounding.
    stopped
        Why it stopped early; None if it did not.

    Notes
    -----
    Complexity: O(t^2 m) time, O(t + e) memory.
    """
    everyone = np.arange(len(near.listed))
    own = pair_losses(tables, near.rows, everyone, everyone)
    alone = np.flatnonzero(np.diff(near.start) == 1)
    scale = float(least.max()) if len(least) else 0.0
    cursor, count = np.zeros(1, np.int64), np.zeros(1, np.int64)
    pieces: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []

    def step(amount: int) -> int:
        rows = min(amount, len(alone) - int(cursor[0]))
        room = rows * len(alone)
        ends, savings = np.empty((room, 2), np.int64), np.empty(room)
        done = _pair_step(
            tables, near.rows, own, alone, least, 1e-12 * scale, ends, savings, cursor, count, rows
        )
        pieces.append((ends[: count[0]].copy(), savings[: count[0]].copy()))
        return int(done)

    stopped = run_in_steps(step, len(alone), budget, "pairs of rows", first=10)
    ends = np.concatenate([np.empty((0, 2), np.int64), *(piece[0] for piece in pieces)])
    savings = np.concatenate([np.empty(0), *(piece[1] for piece in pieces)])
    return ends, savings, stopped


@kernel
def _pair_step(
    tables: LossTables,
    rows: KernelRows,
    own: NDArray[np.float64],
    alone: NDArray[np.int64],
    least: NDArray[np.float64],
    rounding: float,
    ends: NDArray[np.int64],
    savings: NDArray[np.float64],
    cursor: NDArray[np.int64],
    count: NDArray[np.int64],
    amount: int,
) -> int:
    """Look at the pairs of up to `amount` further rows with those before them."""
    count[0] = 0
    for at in range(cursor[0], min(cursor[0] + amount, len(alone))):
        one = alone[at]
        for before in range(at):
            other = alone[before]
            distance = pair_loss(tables, rows, one, other) - (own[one] + own[other]) / 2
            saving = least[one] + least[other] - distance
            if saving > rounding:
                ends[count[0], 0], ends[count[0], 1] = other, one
                savings[count[0]] = saving
                count[0] += 1
        cursor[0] = at + 1
    return cursor[0]
