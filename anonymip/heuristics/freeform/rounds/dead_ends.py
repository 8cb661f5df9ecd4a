"""Matches for the records that the cheapest matches of all leave without any."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.blocks.original_blocks import (
    OriginalBlocks,
    cheapest_original,
    make_original_blocks,
)
from anonymip.heuristics.freeform.rounds.blocks.published_blocks import PublishedBlocks, make_blocks
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    PathSearch,
    covers,
    pair_weight,
    place_in_round,
)
from anonymip.heuristics.freeform.rounds.round_turns import (
    Turns,
    find_any_original,
    hand_over_original,
    hand_over_set,
    read_originals,
    read_sets,
)
from anonymip.runtime.kernels import kernel

#: So many neighbours whose original would do are compared.
_COMPARED = 200


@kernel
def match_sets_left(
    cover: GrowingCover,
    weights: PairWeights,
    search: PathSearch,
    blocks: OriginalBlocks,
    turns: Turns,
    before: NDArray[np.int64],
    left: NDArray[np.int64],
    limited: bool,
) -> None:
    """Find originals for the published records that found none, in lexicographic order.

    Of the nearest predecessors and successors whose original would do, the one hands it over for
    whom this and taking another costs least.

    Parameters
    ----------
    turns
        Of the published records.
    before
        (n,) sizes of the sets before the round.
    left
        (n,) sets that each original is still to join.
    """
    if left.sum() == 0:
        return
    read_originals(cover, turns, before)
    make_original_blocks(blocks, weights.terms, left)
    for turn in range(len(turns.choosers)):
        if turns.chosen[turn] >= 0:
            continue
        i = turns.choosers[turn]
        giver = _cheapest_exchange(cover, weights, blocks, turns, left, turn, limited)
        if giver >= 0:
            turns.chosen[turn] = hand_over_original(
                cover, weights, blocks, turns, left, giver, i, limited
            )
        elif find_any_original(cover, weights, search, blocks, before, left, i, limited):
            read_originals(cover, turns, before)


@kernel
def _cheapest_exchange(
    cover: GrowingCover,
    weights: PairWeights,
    blocks: OriginalBlocks,
    turns: Turns,
    left: NDArray[np.int64],
    turn: int,
    limited: bool,
) -> int:
    """Return the turn whose original costs least to be had; -1: none can hand over its own."""
    count, i = len(turns.choosers), turns.choosers[turn]
    rising = len(blocks.bounds) > 0  # no weight is negative
    best, least, compared = -1, np.inf, 0
    for distance in range(1, count):
        for side in (-1, 1):
            other = turn + side * distance
            if not 0 <= other < count or turns.chosen[other] < 0:
                continue
            record, owner = turns.chosen[other], turns.choosers[other]
            if covers(cover, i, record):
                continue
            taken = pair_weight(weights, i, record)
            if limited and taken == np.inf:
                continue
            # Handing over costs what the two pay more; the giver then takes its cheapest other.
            compared += 1
            saved = pair_weight(weights, owner, record)
            if best >= 0 and rising and taken - saved >= least:
                continue
            replaced, weight = cheapest_original(blocks, weights, cover, left, owner, False)
            if replaced >= 0 and (best < 0 or weight + (taken - saved) < least):
                best, least = other, weight + (taken - saved)
        if compared >= _COMPARED and best >= 0:
            break
    return best


@kernel
def match_originals_left(
    cover: GrowingCover,
    weights: PairWeights,
    search: PathSearch,
    blocks: PublishedBlocks,
    turns: Turns,
    before: NDArray[np.int64],
    room: NDArray[np.int64],
    limited: bool,
) -> None:
    """Find sets for the originals that found none, in lexicographic order.

    The nearest predecessor or successor that can hands over its set, as in the text of the paper.

    Parameters
    ----------
    turns
        Of the originals.
    before
        (n,) sizes of the sets before the round.
    room
        (n,) further records that each set can take in.
    """
    if room.sum() == 0:
        return
    read_sets(cover, turns, before, len(turns.choosers))
    make_blocks(blocks, weights, room)
    count = len(turns.choosers)
    for turn in range(count):
        if turns.chosen[turn] >= 0:
            continue
        record = turns.choosers[turn]
        i = -1
        for distance in range(1, count):
            for side in (-1, 1):
                other = turn + side * distance
                if i < 0 and 0 <= other < count:
                    i = hand_over_set(cover, weights, blocks, turns, room, other, record, limited)
            if i >= 0:
                break
        if i >= 0:
            turns.chosen[turn] = i
        elif place_in_round(cover, weights, search, before, room, record, limited):
            make_blocks(blocks, weights, room)
            read_sets(cover, turns, before, count)
