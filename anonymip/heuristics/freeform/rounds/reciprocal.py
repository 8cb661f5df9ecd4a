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
    add,
    covers,
    join,
    pair_weight,
    separate,
)
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.runtime.arrays import Floats, Ints
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


def match_cheapest(
    rounds: Rounds,
    open_: OpenRecords,
    phase: str,
    *,
    losses: Floats | None = None,
    room: Ints | None = None,
) -> Stopped | None:
    """Make the cheapest pairs of all first; or matches, where `room` says who is to make some.

    Parameters as of :func:`_match_step`.
    """
    n, both_ways = rounds.problem.n, room is None
    losses = np.zeros(n) if losses is None else losses
    room = open_.blocks.places if room is None else room
    given = rounds.cover, rounds.weights, open_, MatchHeap.of_sizes(n=n), losses, room
    step = partial(_match_step, *given, np.zeros(2, np.int64), both_ways)
    return run_in_steps(step, n + int(room.sum()), rounds.budget, phase, first=100)


@kernel
def _match_step(
    cover: GrowingCover,
    weights: PairWeights,
    open_: OpenRecords,
    heap: MatchHeap,
    losses: Floats,
    room: Ints,
    cursor: Ints,
    both_ways: bool,
    amount: int,
) -> int:
    """Put so many records into the heap with their cheapest match, or take them out.

    Returns the work done: the cursor holds records put in at first, and places filled or given up
    since. `losses`: (n,) what counts beside the increases where records are compared. `room`: (n,)
    matches that each is still to make; with pairs, made where matches go `both_ways`, the places
    of the blocks.
    """
    blocks, n = open_.blocks, len(room)
    for _ in range(amount):
        if cursor[0] < n:
            i = cursor[0]
            cursor[0] += 1
        else:
            # The cheapest match that was known when its record was put in; its other side, and in
            # pairs the record itself, may have found all others meanwhile.
            i = pop(heap)
            if i < 0:
                return n + room.sum() + cursor[1]
            other = heap.match[i]
            if room[i] > 0 and blocks.places[other] > 0 and not covers(cover, i, other):
                cursor[1] += 1 + both_ways
                if both_ways:
                    make_pair(cover, weights, open_, i, other)
                else:
                    add(cover, i, other)
                    room[i] -= 1
                    take_place(blocks, weights, other)
        if room[i] > 0:
            other = cheapest(blocks, weights, cover, i, both_ways)
            if other >= 0:
                push(heap, i, losses[i] + blocks.cost[0], other)
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
