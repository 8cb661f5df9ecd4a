"""One round of the greedy rule in which the published records choose the originals they take."""

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
    PathSearch,
    add,
)
from anonymip.heuristics.freeform.rounds.round_turns import (
    Turns,
    find_any_original,
    hand_over_original,
    new_turns,
    read_originals,
)
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped


def let_sets_choose(
    rounds: Rounds, quota: NDArray[np.int64], budget: Budget, phase: str
) -> Stopped | None:
    """Run a round; return why it stopped early, if it did.

    Parameters
    ----------
    rounds
        The cover grows.
    quota
        (n,) records that each set is to take in, and sets that each original is to join.
    budget, phase
        Asked between steps; what is being done.

    Notes
    -----
    Complexity: O(n^2 m) time at worst; bounds on blocks of 32 neighbours rule originals out.
    """
    blocks = new_original_blocks(rounds.weights.terms, bounded=rounds.bounds_hold)
    turns, left, before = new_turns(quota), quota.copy(), rounds.cover.sizes.copy()
    make_original_blocks(blocks, rounds.weights.terms, left)

    def step(amount: int) -> int:
        return int(
            _choose_step(
                rounds.cover,
                rounds.weights,
                rounds.search,
                blocks,
                turns,
                before,
                left,
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
    blocks: OriginalBlocks,
    turns: Turns,
    before: NDArray[np.int64],
    left: NDArray[np.int64],
    limited: bool,
    amount: int,
) -> int:
    """Take up to `amount` further turns; return how many are done."""
    for _ in range(amount):
        turn = turns.cursor[0]
        if turn == len(turns.choosers):
            break
        i = turns.choosers[turn]
        record, _ = cheapest_original(blocks, weights, cover, left, i, False)
        if record >= 0:
            add(cover, i, record)
            leave_blocks(blocks, weights.terms, left, record)
        else:
            for earlier in range(turn - 1, -1, -1):
                record = hand_over_original(
                    cover, weights, blocks, turns, left, earlier, i, limited
                )
                if record >= 0:
                    break
        turns.chosen[turn] = record
        if record < 0 and find_any_original(
            cover, weights, search, blocks, before, left, i, limited
        ):
            read_originals(cover, turns, before)
        turns.cursor[0] += 1
    return turns.cursor[0]
