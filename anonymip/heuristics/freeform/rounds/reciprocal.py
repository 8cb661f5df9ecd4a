"""Reciprocal covers: two records take in each other, in rounds that try to pair all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from anonymip.heuristics.freeform.rounds.blocks import (
    Blocks,
    MatchHeap,
    cheapest,
    new_blocks,
    pop,
    push,
    take_place,
)
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    covers,
    join,
    pair_weight,
    separate,
)
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps, run_over
from anonymip.status import Stopped


class OpenRecords(Packed):
    """Records that are to find partners in the present round."""

    blocks: Blocks  # those that have places: partners that they are still to find
    pairs: Ints  # (pairs, 2) pairs made in this round, in order
    count: Ints  # (1,) pairs made


#: Makes pairs before the rest find partners in order; returns why it stopped early, if it did.
PairFirst = Callable[[Rounds, OpenRecords, str], Stopped | None]


def grow_pairs(rounds: Rounds, pair_first: PairFirst | None = None) -> Stopped | None:
    """Run the rounds of a reciprocal cover; return why they stopped early, if they did.

    A round offers each record as many partners as it lacks of those that this round and the ones
    before it should have given it; `pair_first` makes pairs, then record after record picks its
    cheapest. What the last round leaves open is for the end of the rounds.
    """

    def match(room: Ints, phase: str) -> Stopped | None:
        blocks = new_blocks(rounds.weights, room, published=False, bounded=rounds.bounds_hold)
        pairs = np.empty((int(room.sum()) // 2 + 1, 2), np.int64)
        open_ = OpenRecords(blocks, pairs, np.zeros(1, np.int64))
        stopped = pair_first(rounds, open_, phase) if pair_first else None
        if stopped is None:
            step = partial(_pair_in_order, rounds.cover, rounds.weights, open_)
            stopped = run_over(step, len(room), rounds.budget, phase, first=100)
        return stopped

    return rounds.run(match)


def pair_cheapest(rounds: Rounds, open_: OpenRecords, phase: str) -> Stopped | None:
    """Make the cheapest pairs of all first."""
    places = open_.blocks.places
    heap, cursor = MatchHeap.of_sizes(n=len(places)), np.zeros(2, np.int64)
    step = partial(_cheapest_step, rounds.cover, rounds.weights, open_, heap, cursor)
    return run_in_steps(step, len(places) + int(places.sum()), rounds.budget, phase, first=100)


@kernel
def _offer(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, heap: MatchHeap, record: int
) -> None:
    """Put a record into the heap with its cheapest partner, if it has one."""
    other = cheapest(open_.blocks, weights, cover, record, True)
    if other >= 0:
        push(heap, record, open_.blocks.cost[0], other)


@kernel
def _cheapest_step(
    cover: GrowingCover,
    weights: PairWeights,
    open_: OpenRecords,
    heap: MatchHeap,
    cursor: Ints,
    amount: int,
) -> int:
    """Put so many records into the heap, or take them out; return the work done.

    The cursor holds records put in at first, and places filled since.
    """
    places = open_.blocks.places
    n = len(places)
    for _ in range(amount):
        if cursor[0] < n:
            record = cursor[0]
            cursor[0] += 1
            if places[record] > 0:
                _offer(cover, weights, open_, heap, record)
            continue
        # The cheapest pair that was known when its record was put in; by now a partner may be full.
        record = pop(heap)
        if record < 0:
            return n + places.sum() + cursor[1]
        if places[record] == 0:
            continue
        other = heap.match[record]
        if places[other] > 0 and not covers(cover, record, other):
            make_pair(cover, weights, open_, record, other)
            cursor[1] += 2
        if places[record] > 0:
            _offer(cover, weights, open_, heap, record)
    return cursor[0] + cursor[1]


@kernel
def make_pair(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, one: int, other: int
) -> None:
    """Pair two records that both have places."""
    join(cover, one, other)
    open_.pairs[open_.count[0]] = (one, other)
    open_.count[0] += 1
    take_place(open_.blocks, weights, one)
    take_place(open_.blocks, weights, other)


@kernel
def _take_partner_over(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, record: int
) -> bool:
    """Let a record take over a partner of a pair made in this round, the latest pair first.

    The one it leaves takes its cheapest other partner.
    """
    for place in range(open_.count[0] - 1, -1, -1):
        for side in range(2):
            taken, left = open_.pairs[place, side], open_.pairs[place, 1 - side]
            if taken == record or left == record or covers(cover, taken, record):
                continue
            if weights.limited and (
                pair_weight(weights, taken, record) == np.inf
                or pair_weight(weights, record, taken) == np.inf
            ):
                continue
            # The partner left behind must find another, and not this record.
            open_.blocks.places[record] -= 1
            other = cheapest(open_.blocks, weights, cover, left, True)
            open_.blocks.places[record] += 1
            if other >= 0:
                separate(cover, taken, left)
                join(cover, taken, record)
                open_.pairs[place] = (taken, record)
                take_place(open_.blocks, weights, record)
                join(cover, left, other)
                open_.pairs[open_.count[0]] = (left, other)
                open_.count[0] += 1
                take_place(open_.blocks, weights, other)
                return True
    return False


@kernel
def _pair_in_order(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, begin: int, end: int
) -> None:
    """Serve some records in order."""
    for record in range(begin, end):
        while open_.blocks.places[record] > 0:
            other = cheapest(open_.blocks, weights, cover, record, True)
            if other >= 0:
                make_pair(cover, weights, open_, record, other)
            elif not _take_partner_over(cover, weights, open_, record):
                break
