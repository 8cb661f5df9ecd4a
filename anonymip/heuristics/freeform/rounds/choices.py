"""The choices of a round: published records choose originals, or originals published records.

Algorithm 1 of Doka et al. lets one record after the other choose its cheapest match; a record that
finds none takes over that of another, which chooses anew, or is given one along an augmenting path.
SortGreedy ends its rounds likewise. Which side chooses is a parameter of :class:`Choices`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from anonymip.heuristics.freeform.rounds.blocks import (
    Blocks,
    cheapest,
    make_blocks,
    new_blocks,
    take_place,
)
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    PathSearch,
    add,
    covers,
    pair_weight,
    place_by_path,
    replace,
)
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_over
from anonymip.status import Stopped

#: So many neighbours whose original would do are compared where a record is left without.
_COMPARED = 200


class Choices(Packed):
    """The choices of a round in the order in which they are made."""

    blocks: Blocks  # the other side: the records that may still be chosen
    #: (choices,) who makes each choice; a record follows itself if it has several in the round.
    choosers: Ints
    chosen: Ints  # (choices,) the other side; -1: none yet
    first: Ints  # (n,) first choice of each record
    before: Ints  # (n,) sizes of the sets before the round


def new_choices(blocks: Blocks, quota: Ints, before: Ints) -> Choices:
    """Return the choices of a round: `quota` of each record, from sets of `before` records."""
    choosers = np.repeat(np.arange(len(quota)), quota)
    chosen = np.full(len(choosers), -1, np.int64)
    return Choices(blocks, choosers, chosen, np.cumsum(quota) - quota, before)


def choose_in_order(
    rounds: Rounds, quota: Ints, phase: str, *, by_originals: bool
) -> Stopped | None:
    """Run a round of the greedy rule; return why it stopped early, if it did.

    `quota`: (n,) records that each set is to take in, and sets that each original is to join.
    `by_originals`: whether originals choose the sets that they join, else published records the
    originals that they take in. Complexity: O(n^2 m) time at worst; bounds on blocks of neighbours
    rule records out.
    """
    blocks = new_blocks(rounds.weights, quota, published=by_originals, bounded=rounds.bounds_hold)
    choices = new_choices(blocks, quota, rounds.cover.sizes.copy())
    step = partial(_choose, rounds.cover, rounds.weights, rounds.search, choices)
    return run_over(step, len(choices.choosers), rounds.budget, phase, first=100)


@kernel
def _choose(
    cover: GrowingCover,
    weights: PairWeights,
    search: PathSearch,
    choices: Choices,
    begin: int,
    end: int,
) -> None:
    """Make some of the choices."""
    for at in range(begin, end):
        chooser = choices.choosers[at]
        match = cheapest(choices.blocks, weights, cover, chooser, False)
        if match >= 0:
            # The original of the two goes into the set of the published record.
            if choices.blocks.published:
                add(cover, match, chooser)
            else:
                add(cover, chooser, match)
            take_place(choices.blocks, weights, match)
        else:
            # Predecessors hand over their match, the nearest first.
            for earlier in range(at - 1, -1, -1):
                match = _hand_over(cover, weights, choices, earlier, chooser)
                if match >= 0:
                    break
        choices.chosen[at] = match
        if match < 0:
            _match_by_path(cover, weights, search, choices, chooser)


@kernel
def _hand_over(
    cover: GrowingCover, weights: PairWeights, choices: Choices, at: int, chooser: int
) -> int:
    """Let the record of a choice hand over its match and take its cheapest other one.

    Returns: the match handed over; -1 if the other may not have it, or there is none left to take.
    """
    match, owner, blocks = choices.chosen[at], choices.choosers[at], choices.blocks
    if match < 0:
        return -1
    published, original = (match, chooser) if blocks.published else (chooser, match)
    if covers(cover, published, original):
        return -1
    if weights.limited and pair_weight(weights, published, original) == np.inf:
        return -1
    other = cheapest(blocks, weights, cover, owner, False)
    if other < 0:
        return -1
    if blocks.published:
        replace(cover, match, owner, chooser)
        add(cover, other, owner)
    else:
        replace(cover, owner, match, other)
        add(cover, chooser, match)
    take_place(blocks, weights, other)
    choices.chosen[at] = other
    return match


@kernel
def _match_by_path(
    cover: GrowingCover, weights: PairWeights, search: PathSearch, choices: Choices, chooser: int
) -> None:
    """Match a chooser along an augmenting path, if there is one.

    An original finds some set; for a published record it is the first original without a set from
    which a path leads to it.
    """
    blocks, before = choices.blocks, choices.before
    if blocks.published:
        if place_by_path(cover, weights, search, before, blocks.places, chooser, True):
            make_blocks(blocks, weights)
            read_choices(cover, choices)
        return
    room = np.zeros(len(before), np.int64)
    room[chooser] = 1
    for record in range(len(before)):
        if blocks.places[record] > 0 and place_by_path(
            cover, weights, search, before, room, record, True
        ):
            take_place(blocks, weights, record)
            read_choices(cover, choices)
            return


@kernel
def read_choices(cover: GrowingCover, choices: Choices) -> None:
    """Read off the cover what was chosen in the round: augmenting paths change it."""
    choices.chosen[:] = -1
    for i in range(len(choices.before)):
        for place in range(choices.before[i], cover.sizes[i]):
            record = cover.members[i, place]
            chooser, match = (record, i) if choices.blocks.published else (i, record)
            at = choices.first[chooser]
            while choices.chosen[at] >= 0:
                at += 1
            choices.chosen[at] = match


@kernel
def match_left(
    cover: GrowingCover, weights: PairWeights, search: PathSearch, choices: Choices
) -> None:
    """Find matches for the records that were left without, in lexicographic order.

    Originals take over the set of the nearest predecessor or successor that can hand it over, as
    in the text of the paper. Published records compare the nearest whose original would do: the
    one hands it over for whom this and taking another costs least.
    """
    if choices.blocks.places.sum() == 0:
        return
    read_choices(cover, choices)
    make_blocks(choices.blocks, weights)
    for at in range(len(choices.choosers)):
        if choices.chosen[at] >= 0:
            continue
        chooser, match = choices.choosers[at], -1
        if choices.blocks.published:
            match = _nearest_match(cover, weights, choices, at)
        else:
            giver = _cheapest_giver(cover, weights, choices, at)
            if giver >= 0:
                match = _hand_over(cover, weights, choices, giver, chooser)
        if match >= 0:
            choices.chosen[at] = match
        else:
            _match_by_path(cover, weights, search, choices, chooser)


@kernel
def _nearest_match(cover: GrowingCover, weights: PairWeights, choices: Choices, at: int) -> int:
    """Return the match that the nearest record that can has handed over; -1: none can."""
    count = len(choices.choosers)
    for distance in range(1, count):
        for side in (-1, 1):
            other = at + side * distance
            if 0 <= other < count:
                match = _hand_over(cover, weights, choices, other, choices.choosers[at])
                if match >= 0:
                    return match
    return -1


@kernel
def _cheapest_giver(cover: GrowingCover, weights: PairWeights, choices: Choices, at: int) -> int:
    """Return the choice whose original costs least to be had; -1: none can hand over its own."""
    count, i, blocks = len(choices.choosers), choices.choosers[at], choices.blocks
    rising = len(blocks.bounds) > 0  # no weight is negative
    best, least, compared = -1, np.inf, 0
    for distance in range(1, count):
        for side in (-1, 1):
            other = at + side * distance
            if not 0 <= other < count or choices.chosen[other] < 0:
                continue
            record, owner = choices.chosen[other], choices.choosers[other]
            if covers(cover, i, record):
                continue
            taken = pair_weight(weights, i, record)
            if weights.limited and taken == np.inf:
                continue
            # Handing over costs what the two pay more; the giver then takes its cheapest other.
            compared += 1
            saved = pair_weight(weights, owner, record)
            if best >= 0 and rising and taken - saved >= least:
                continue
            replaced = cheapest(blocks, weights, cover, owner, False)
            if replaced >= 0 and (best < 0 or blocks.cost[0] + (taken - saved) < least):
                best, least = other, blocks.cost[0] + (taken - saved)
        if compared >= _COMPARED and best >= 0:
            break
    return best
