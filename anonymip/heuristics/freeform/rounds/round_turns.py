"""The choices of the present round, and how one record hands its choice over to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.blocks.original_blocks import (
    OriginalBlocks,
    cheapest_original,
    leave_blocks,
)
from anonymip.heuristics.freeform.rounds.blocks.published_blocks import (
    PublishedBlocks,
    cheapest_published,
    fill_room,
)
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    PathSearch,
    add,
    covers,
    pair_weight,
    place_in_round,
    replace,
)
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class Turns(Packed):
    """Choosers in the order in which they choose, and what they chose in the present round.

    Parameters
    ----------
    choosers
        (turns,) one entry for each choice that a record has in this round: originals that choose
        the published record to join, or published records that choose the original to take in.
    chosen
        (turns,) the other side; -1: none yet.
    first
        (n,) first turn of each chooser.
    cursor
        (1,) turns done.
    """

    choosers: NDArray[np.int64]
    chosen: NDArray[np.int64]
    first: NDArray[np.int64]
    cursor: NDArray[np.int64]


def new_turns(quota: NDArray[np.int64]) -> Turns:
    """Return the turns of a round, record by record.

    Parameters
    ----------
    quota
        (n,) choices of each record.
    """
    choosers = np.repeat(np.arange(len(quota)), quota)
    return Turns(
        choosers,
        np.full(len(choosers), -1, np.int64),
        np.cumsum(quota) - quota,
        np.zeros(1, np.int64),
    )


@kernel
def hand_over_set(
    cover: GrowingCover,
    weights: PairWeights,
    blocks: PublishedBlocks,
    turns: Turns,
    room: NDArray[np.int64],
    turn: int,
    record: int,
    limited: bool,
) -> int:
    """Let the original of a turn hand over its set to another and join its cheapest other one.

    Returns
    -------
    int
        The set handed over; -1 if the other may not join it, or there is none left to join.
    """
    i, owner = turns.chosen[turn], turns.choosers[turn]
    if i < 0 or covers(cover, i, record):
        return -1
    if limited and pair_weight(weights, i, record) == np.inf:
        return -1
    other = cheapest_published(blocks, weights, cover, room, owner)
    if other < 0:
        return -1
    replace(cover, i, owner, record)
    add(cover, other, owner)
    fill_room(blocks, weights, room, other)
    turns.chosen[turn] = other
    return i


@kernel
def hand_over_original(
    cover: GrowingCover,
    weights: PairWeights,
    blocks: OriginalBlocks,
    turns: Turns,
    left: NDArray[np.int64],
    turn: int,
    i: int,
    limited: bool,
) -> int:
    """Let the published record of a turn hand over its original and take in its cheapest other.

    Returns
    -------
    int
        The original handed over, now in the set of published record i; -1 if that may not take it
        in, or there is none left to take in.
    """
    record, owner = turns.chosen[turn], turns.choosers[turn]
    if record < 0 or covers(cover, i, record):
        return -1
    if limited and pair_weight(weights, i, record) == np.inf:
        return -1
    other, _ = cheapest_original(blocks, weights, cover, left, owner, False)
    if other < 0:
        return -1
    replace(cover, owner, record, other)
    add(cover, i, record)
    leave_blocks(blocks, weights.terms, left, other)
    turns.chosen[turn] = other
    return record


@kernel
def find_any_original(
    cover: GrowingCover,
    weights: PairWeights,
    search: PathSearch,
    blocks: OriginalBlocks,
    before: NDArray[np.int64],
    left: NDArray[np.int64],
    i: int,
    limited: bool,
) -> bool:
    """Give published record i the first original without a set from which a path leads to it."""
    room = np.zeros(len(left), np.int64)
    room[i] = 1
    for record in range(len(left)):
        if left[record] > 0 and place_in_round(
            cover, weights, search, before, room, record, limited
        ):
            leave_blocks(blocks, weights.terms, left, record)
            return True
    return False


@kernel
def read_sets(cover: GrowingCover, turns: Turns, before: NDArray[np.int64], count: int) -> None:
    """Read off the cover which sets the originals of the first turns joined.

    Augmenting paths change it.

    Parameters
    ----------
    before
        (n,) sizes of the sets before the round.
    """
    turns.chosen[:count] = -1
    for i in range(len(before)):
        for at in range(before[i], cover.sizes[i]):
            turn = turns.first[cover.members[i, at]]
            while turns.chosen[turn] >= 0:
                turn += 1
            turns.chosen[turn] = i


@kernel
def read_originals(cover: GrowingCover, turns: Turns, before: NDArray[np.int64]) -> None:
    """Read off the cover which originals the published records took in."""
    for i in range(len(before)):
        for at in range(before[i], cover.sizes[i]):
            turns.chosen[turns.first[i] + at - before[i]] = cover.members[i, at]
