"""One round of the greedy rule in which the originals choose the sets that they join."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.freeform.rounds.blocks.published_blocks import (
    PublishedBlocks,
    cheapest_published,
    fill_room,
    make_blocks,
    new_blocks,
)
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    PathSearch,
    add,
    place_in_round,
)
from anonymip.heuristics.freeform.rounds.round_turns import (
    Turns,
    hand_over_set,
    new_turns,
    read_sets,
)
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped


def let_originals_choose(
    rounds: Rounds, quota: NDArray[np.int64], budget: Budget, phase: str
) -> Stopped | None:
    """Run a round; return why it stopped early, if it did.

    Parameters
    ----------
    rounds
        The cover grows.
    quota
        (n,) sets that each original is to join, and records that each set is to take in.
    budget, phase
        Asked between steps; what is being done.

    Notes
    -----
    Complexity: O(n^2 m) time at worst; bounds on blocks of 64 neighbours rule sets out.
    """
    blocks = new_blocks(rounds.weights.terms, bounded=rounds.bounds_hold)
    turns, room, before = new_turns(quota), quota.copy(), rounds.cover.sizes.copy()
    make_blocks(blocks, rounds.weights, room)

    def step(amount: int) -> int:
        return int(
            _choose_step(
                rounds.cover,
                rounds.weights,
                rounds.search,
                blocks,
                turns,
                before,
                room,
                rounds.limited,
                amount,
            )
        )

    return run_in_steps(step, len(turns.choosers), budget, phase, first=100)


@kernel
def _choose_step(
    cover: GrowingCover,
    weights: PairWeights,
    search: PathSearch,
    blocks: PublishedBlocks,
    turns: Turns,
    before: NDArray[np.int64],
    room: NDArray[np.int64],
    limited: bool,
    amount: int,
) -> int:
    """Take up to `amount` further turns; return how many are done."""
    for _ in range(amount):
        turn = turns.cursor[0]
        if turn == len(turns.choosers):
            break
        record = turns.choosers[turn]
        i = cheapest_published(blocks, weights, cover, room, record)
        if i < 0:
            i = _take_over(cover, weights, blocks, turns, room, turn, limited)
        else:
            add(cover, i, record)
            fill_room(blocks, weights, room, i)
        turns.chosen[turn] = i
        if i < 0 and place_in_round(cover, weights, search, before, room, record, limited):
            make_blocks(blocks, weights, room)
            read_sets(cover, turns, before, turn + 1)
        turns.cursor[0] += 1
    return turns.cursor[0]


@kernel
def _take_over(
    cover: GrowingCover,
    weights: PairWeights,
    blocks: PublishedBlocks,
    turns: Turns,
    room: NDArray[np.int64],
    turn: int,
    limited: bool,
) -> int:
    """Find the nearest predecessor that can hand over its set; return the set, or -1."""
    for earlier in range(turn - 1, -1, -1):
        i = hand_over_set(
            cover, weights, blocks, turns, room, earlier, turns.choosers[turn], limited
        )
        if i >= 0:
            return i
    return -1
