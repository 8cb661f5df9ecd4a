"""Rounds that pair records which take in each other: in order, or the cheapest pairs first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.growing_cover import GrowingCover, PairWeights, covers
from anonymip.heuristics.freeform.rounds.reciprocal.pairs import (
    OpenRecords,
    cheapest_partner,
    make_pair,
    open_records,
    pair_in_order,
)
from anonymip.heuristics.freeform.rounds.waiting_line import (
    WaitingLine,
    join_line,
    leave_line,
    new_line,
)
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

if TYPE_CHECKING:
    from anonymip.heuristics.freeform.rounds.rounds import Rounds


def grow_pairs(rounds: Rounds, budget: Budget, *, cheapest_first: bool) -> Stopped | None:
    """Run the rounds of a reciprocal cover; return why they stopped early, if they did.

    A round offers each record as many partners as it lacks of those that this round and the ones
    before it should have given it. What the last round leaves open is for the end of the rounds.

    Parameters
    ----------
    rounds
        The cover grows.
    budget
        Asked between steps.
    cheapest_first
        Whether the cheapest pairs of all come first; else record after record picks its cheapest.
    """
    for number in range(1, rounds.count + 1):
        before = rounds.cover.sizes.copy()
        open_ = open_records(
            rounds.weights, rounds.sizes_after(number) - before, bounded=rounds.bounds_hold
        )
        phase = f"round {number} of {rounds.count}"
        stopped = None
        if cheapest_first:
            stopped = _pair_cheapest(rounds, open_, budget, phase)
        if stopped is None:
            stopped = _pair_in_order(rounds, open_, budget, phase)
        rounds.refresh(before)
        if stopped is not None:
            return stopped
    return None


def _pair_in_order(
    rounds: Rounds, open_: OpenRecords, budget: Budget, phase: str
) -> Stopped | None:
    def step(amount: int) -> int:
        return int(pair_in_order(rounds.cover, rounds.weights, open_, rounds.limited, amount))

    return run_in_steps(step, len(open_.room), budget, phase, first=100)


def _pair_cheapest(
    rounds: Rounds, open_: OpenRecords, budget: Budget, phase: str
) -> Stopped | None:
    line, cursor = new_line(len(open_.room)), np.zeros(2, np.int64)

    def step(amount: int) -> int:
        return int(_cheapest_step(rounds.cover, rounds.weights, open_, line, cursor, amount))

    total = len(open_.room) + int(open_.room.sum())
    return run_in_steps(step, total, budget, phase, first=100)


@kernel
def _join(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, line: WaitingLine, record: int
) -> None:
    other, weight = cheapest_partner(cover, weights, open_, record)
    if other >= 0:
        join_line(line, record, weight, other)


@kernel
def _cheapest_step(
    cover: GrowingCover,
    weights: PairWeights,
    open_: OpenRecords,
    line: WaitingLine,
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Let so many records join the line, or leave it; return the work done.

    The cursor holds records that joined at first, and places filled since.
    """
    n = len(open_.room)
    for _ in range(amount):
        if cursor[0] < n:
            record = cursor[0]
            cursor[0] += 1
            if open_.room[record] > 0:
                _join(cover, weights, open_, line, record)
            continue
        # The cheapest pair that was known when its record joined; by now a partner may be full.
        record = leave_line(line)
        if record < 0:
            return n + open_.room.sum() + cursor[1]
        if open_.room[record] == 0:
            continue
        other = line.match[record]
        if open_.room[other] > 0 and not covers(cover, record, other):
            make_pair(cover, weights, open_, record, other)
            cursor[1] += 2
        if open_.room[record] > 0:
            _join(cover, weights, open_, line, record)
    return cursor[0] + cursor[1]
