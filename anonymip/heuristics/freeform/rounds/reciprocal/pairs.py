"""Reciprocal covers: two records take in each other, in rounds that try to pair all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.blocks.original_blocks import (
    OriginalBlocks,
    cheapest_original,
    leave_blocks,
    make_original_blocks,
    new_original_blocks,
)
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    add,
    covers,
    pair_weight,
)
from anonymip.heuristics.freeform.set_growth import increase, rebuild, set_loss, take
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class OpenRecords(Packed):
    """Records that are to find partners in the present round.

    Parameters
    ----------
    room
        (n,) partners that each is still to find.
    blocks
        Those that have room.
    pairs
        (pairs, 2) pairs made in this round, in order.
    cursor
        (2,) pairs made; records served so far.
    """

    room: NDArray[np.int64]
    blocks: OriginalBlocks
    pairs: NDArray[np.int64]
    cursor: NDArray[np.int64]


def open_records(weights: PairWeights, room: NDArray[np.int64], *, bounded: bool) -> OpenRecords:
    """Return the records that are to find partners.

    Parameters
    ----------
    weights
        Of the round.
    room
        (n,) partners that each is to find.
    bounded
        Whether bounds are wanted, which hold if the loss is monotone.
    """
    blocks = new_original_blocks(weights.terms, bounded=bounded)
    make_original_blocks(blocks, weights.terms, room)
    pairs = np.empty((int(room.sum()) // 2 + 1, 2), np.int64)
    return OpenRecords(room.copy(), blocks, pairs, np.zeros(2, np.int64))


@kernel
def join_both(cover: GrowingCover, one: int, other: int) -> None:
    """Let two records cover each other."""
    add(cover, one, other)
    add(cover, other, one)


@kernel
def separate(cover: GrowingCover, one: int, other: int) -> None:
    """Let two records cover each other no longer."""
    _drop(cover, one, other)
    _drop(cover, other, one)


@kernel
def _drop(cover: GrowingCover, i: int, record: int) -> None:
    last = cover.sizes[i] - 1
    for at in range(last):
        if cover.members[i, at] == record:
            cover.members[i, at] = cover.members[i, last]
    cover.sizes[i] = last
    cover.degrees[record] -= 1


@kernel
def cheapest_partner(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, record: int
) -> tuple[int, float]:
    """Return the record with room that pairs with a record at the least weight both ways, or -1.

    The weight comes with it. No record pairs with itself: every set holds its own record already.
    """
    return cheapest_original(open_.blocks, weights, cover, open_.room, record, True)


@kernel
def make_pair(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, one: int, other: int
) -> None:
    """Pair two records that both have room."""
    join_both(cover, one, other)
    open_.pairs[open_.cursor[0]] = (one, other)
    open_.cursor[0] += 1
    leave_blocks(open_.blocks, weights.terms, open_.room, one)
    leave_blocks(open_.blocks, weights.terms, open_.room, other)


@kernel
def take_partner_over(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, record: int, limited: bool
) -> bool:
    """Let a record take over a partner of a pair made in this round, the latest pair first.

    The one it leaves takes its cheapest other partner.
    """
    for place in range(open_.cursor[0] - 1, -1, -1):
        for side in range(2):
            taken, left = open_.pairs[place, side], open_.pairs[place, 1 - side]
            if taken == record or left == record or covers(cover, taken, record):
                continue
            if limited and (
                pair_weight(weights, taken, record) == np.inf
                or pair_weight(weights, record, taken) == np.inf
            ):
                continue
            # The partner left behind must find another, and not this record.
            open_.room[record] -= 1
            other, _ = cheapest_partner(cover, weights, open_, left)
            open_.room[record] += 1
            if other >= 0:
                separate(cover, taken, left)
                join_both(cover, taken, record)
                open_.pairs[place] = (taken, record)
                leave_blocks(open_.blocks, weights.terms, open_.room, record)
                join_both(cover, left, other)
                open_.pairs[open_.cursor[0]] = (left, other)
                open_.cursor[0] += 1
                leave_blocks(open_.blocks, weights.terms, open_.room, other)
                return True
    return False


@kernel
def pair_in_order(
    cover: GrowingCover, weights: PairWeights, open_: OpenRecords, limited: bool, amount: int
) -> int:
    """Serve up to `amount` further records in order; return how many are done."""
    n = len(open_.room)
    for _ in range(amount):
        record = open_.cursor[1]
        if record == n:
            break
        while open_.room[record] > 0:
            other, _ = cheapest_partner(cover, weights, open_, record)
            if other >= 0:
                make_pair(cover, weights, open_, record, other)
            elif not take_partner_over(cover, weights, open_, record, limited):
                break
        open_.cursor[1] += 1
    return open_.cursor[1]


@kernel
def _keep_limits(cover: GrowingCover, weights: PairWeights, i: int) -> bool:
    """Bring the state of a set up to date and return whether it keeps the limits."""
    rebuild(weights.terms, weights.states, i, cover.members[i, : cover.sizes[i]])
    return set_loss(weights.terms, weights.states, i) < np.inf


@kernel
def _all_keep_limits(
    cover: GrowingCover, weights: PairWeights, one: int, other: int, near: int, far: int
) -> bool:
    """Bring the states of four sets up to date and return whether all keep the limits."""
    kept = _keep_limits(cover, weights, one)
    kept = _keep_limits(cover, weights, other) and kept
    kept = _keep_limits(cover, weights, near) and kept
    return _keep_limits(cover, weights, far) and kept


@kernel
def _try_exchange(
    cover: GrowingCover,
    weights: PairWeights,
    one: int,
    other: int,
    near: int,
    far: int,
    limited: bool,
) -> bool:
    """Separate two partners and give each to one of two records, unless a limit forbids it."""
    separate(cover, near, far)
    join_both(cover, one, near)
    join_both(cover, other, far)
    if not limited:
        return True
    kept = _all_keep_limits(cover, weights, one, other, near, far)
    if not kept:
        separate(cover, one, near)
        separate(cover, other, far)
        join_both(cover, near, far)
        _all_keep_limits(cover, weights, one, other, near, far)
    return kept


@kernel
def _exchange(
    cover: GrowingCover, weights: PairWeights, one: int, other: int, limited: bool
) -> bool:
    """Find partners for two records that lack one each, or for one that lacks two."""
    n = len(cover.sizes)
    if one != other and not covers(cover, one, other):
        join_both(cover, one, other)
        if not limited:
            return True
        kept = _keep_limits(cover, weights, one)
        if _keep_limits(cover, weights, other) and kept:
            return True
        separate(cover, one, other)
        _keep_limits(cover, weights, one)
        _keep_limits(cover, weights, other)
    for distance in range(1, n):
        near = (one + distance) % n
        if near == other or covers(cover, one, near):
            continue
        for at in range(1, cover.sizes[near]):
            far = cover.members[near, at]
            if far == one or covers(cover, other, far):
                continue
            if _try_exchange(cover, weights, one, other, near, far, limited):
                return True
    return False


@kernel
def fill_up_both_ways(cover: GrowingCover, weights: PairWeights, reach: int, limited: bool) -> int:
    """Complete a reciprocal cover cheaply; return how many matches are still missing.

    Parameters
    ----------
    reach
        So many places behind a record in the order are tried first, the nearest first.
    limited
        Whether limits forbid sets; then `weights.states` are kept up to date.

    Notes
    -----
    What is missing then is found by exchanges: if x and y lack a partner and know each other
    (or are one record that lacks two), some a that x does not know has a partner b that y does
    not know, since a has as many partners as wanted and y fewer, and x is one of y's but not of
    a's; a and b separate, x takes a and y takes b. Where all sets have one size and nothing is
    forbidden this never fails.
    """
    n = len(cover.sizes)
    # Pairs of records near each other in the order, the nearest first.
    for distance in range(1, min(reach, n - 1) + 1):
        for one in range(n):
            other = (one + distance) % n
            if cover.sizes[one] >= cover.wanted[one] or cover.sizes[other] >= cover.wanted[other]:
                continue
            if covers(cover, one, other):
                continue
            # Either limit forbids the pair; the states follow what is joined.
            if limited:
                terms, states = weights.terms, weights.states
                if increase(terms, states, one, other) == np.inf:
                    continue
                if increase(terms, states, other, one) == np.inf:
                    continue
                take(terms, states, one, other)
                take(terms, states, other, one)
            join_both(cover, one, other)
    # What is left: one exchange for two records that lack a partner each, or one that lacks two.
    missing = 0
    for one in range(n):
        # Records before this one have all partners, or what they lack is counted as missing.
        while cover.sizes[one] < cover.wanted[one]:
            found = False
            for distance in range(1, n):
                other = (one + distance) % n
                if cover.sizes[other] < cover.wanted[other]:
                    found = _exchange(cover, weights, one, other, limited)
                    if found:
                        break
            # No other record that lacks a partner helps: one exchange gives this one two.
            if not found and cover.wanted[one] - cover.sizes[one] >= 2:
                found = _exchange(cover, weights, one, one, limited)
            if not found:
                missing += cover.wanted[one] - cover.sizes[one]
                break
    return missing
