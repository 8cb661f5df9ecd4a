"""SortGreedy freeform generalization of Doka et al.: the cheapest matches of all first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.budget import Budget
from anonymip.heuristics.freeform_rounds import Rounds
from anonymip.heuristics.growing_cover import (
    GrowingCover,
    PairWeights,
    PathSearch,
    add,
    place_in_round,
)
from anonymip.heuristics.original_blocks import (
    OriginalBlocks,
    cheapest_original,
    leave_blocks,
    make_original_blocks,
    new_original_blocks,
)
from anonymip.heuristics.partitioned import in_parts
from anonymip.heuristics.published_blocks import PublishedBlocks, make_blocks, new_blocks
from anonymip.heuristics.reciprocal_rounds import grow_pairs
from anonymip.heuristics.round_turns import Turns, hand_over_set, new_turns, read_sets
from anonymip.heuristics.waiting_line import WaitingLine, join_line, leave_line, new_line
from anonymip.kernels import kernel
from anonymip.problem import Problem
from anonymip.solution import Solution
from anonymip.status import Stopped
from anonymip.stepping import run_in_steps


@in_parts
def sort_greedy(
    problem: Problem,
    *,
    reciprocal: bool = False,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Take the cheapest match of all first, in rounds that give every set one more record [1]_.

    The weight of a match is the increase of the loss of the published record; it is frozen within
    a round. Ties go to the original, then to the published record, that comes first in
    lexicographic order. An original that finds no set takes over that of another, the nearest in
    this order first, a predecessor before a successor, which then takes its cheapest other one;
    where there is none such, it finds a set along an augmenting path.

    Parameters
    ----------
    problem
        With freeform covers; degrees of single records are kept.
    reciprocal
        Whether l shall cover i if i covers l: a round then pairs the records whose weight both
        ways is least. Forced if the recoding asks for it. Where n is odd and k even all sets have
        k + 1 records, since none of k exist.
    budget
        When it ends, the matches still missing are added along the lexicographic order.
    seed
        Not used: nothing is random.

    Notes
    -----
    No edges are sorted: a heap holds the best match left of each published record, which is
    looked for anew when its original is taken. That is the rule of the sorted list.
    Complexity: O(k n^2 m) time for the first look alone at worst; bounds on blocks of 32
    neighbours rule most originals out. Memory O(n (k + m)). A loss without tables needs the
    weights of all pairs, and is replaced by GCP beyond 1000 records.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 6, Algorithm 2.

    Raises
    ------
    InputError
        If the problem asks for another recoding, or for diversity.
    NoSolution
        If no cover is found that has the degrees and keeps the limits.
    """
    budget = budget or Budget()
    rounds = Rounds.of(problem, "sort-greedy", budget, reciprocal=reciprocal)
    options = {"reciprocal": rounds.reciprocal}
    if rounds.reciprocal:
        return rounds.finish(grow_pairs(rounds, budget, cheapest_first=True), options)
    blocks = new_original_blocks(rounds.weights.terms, bounded=rounds.bounds_hold)
    rest = new_blocks(rounds.weights.terms, bounded=False)
    stopped = None
    for number in range(1, rounds.count + 1):
        before = rounds.cover.sizes.copy()
        quota = rounds.sizes_after(number) - before
        stopped = _match(rounds, blocks, quota.copy(), quota.copy(), budget, number)
        if stopped is None:
            _place_rest(
                rounds.cover,
                rounds.weights,
                rounds.search,
                rest,
                new_turns(quota),
                before,
                quota - (rounds.cover.sizes - before),
                rounds.limited,
            )
        rounds.refresh(before)
        if stopped is not None:
            break
    return rounds.finish(stopped, options)


def _match(
    rounds: Rounds,
    blocks: OriginalBlocks,
    room: NDArray[np.int64],
    left: NDArray[np.int64],
    budget: Budget,
    number: int,
) -> Stopped | None:
    """Take the cheapest matches until no published record with room finds an original."""
    line, cursor = new_line(len(room)), np.zeros(2, np.int64)
    make_original_blocks(blocks, rounds.weights.terms, left)

    def step(amount: int) -> int:
        return int(
            _match_step(rounds.cover, rounds.weights, blocks, line, room, left, cursor, amount)
        )

    total = len(room) + int(room.sum())
    return run_in_steps(step, total, budget, f"round {number} of {rounds.count}", first=100)


@kernel
def _match_step(
    cover: GrowingCover,
    weights: PairWeights,
    blocks: OriginalBlocks,
    line: WaitingLine,
    room: NDArray[np.int64],
    left: NDArray[np.int64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Let so many records join the line, or leave it; return the work done.

    The cursor holds records that joined at first, and matches found or given up since.
    """
    n = len(room)
    for _ in range(amount):
        if cursor[0] < n:
            i = cursor[0]
            cursor[0] += 1
            if room[i] > 0:
                _look(cover, weights, blocks, line, left, i)
            continue
        i = leave_line(line)
        if i < 0:
            return n + room.sum() + cursor[1]
        record = line.match[i]
        if left[record] > 0:
            add(cover, i, record)
            room[i] -= 1
            cursor[1] += 1
            leave_blocks(blocks, weights.terms, left, record)
        if room[i] > 0:
            _look(cover, weights, blocks, line, left, i)
    return cursor[0] + cursor[1]


@kernel
def _look(
    cover: GrowingCover,
    weights: PairWeights,
    blocks: OriginalBlocks,
    line: WaitingLine,
    left: NDArray[np.int64],
    i: int,
) -> None:
    """Let a published record look for its best match and join the line, if it finds one."""
    record, weight = cheapest_original(blocks, weights, cover, left, i, False)
    if record >= 0:
        join_line(line, i, weight, record)


@kernel
def _place_rest(
    cover: GrowingCover,
    weights: PairWeights,
    search: PathSearch,
    rest: PublishedBlocks,
    turns: Turns,
    before: NDArray[np.int64],
    room: NDArray[np.int64],
    limited: bool,
) -> None:
    """Find sets for the originals that found none, in lexicographic order."""
    if room.sum() == 0:
        return
    read_sets(cover, turns, before, len(turns.choosers))
    make_blocks(rest, weights, room)
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
                    i = hand_over_set(cover, weights, rest, turns, room, other, record, limited)
            if i >= 0:
                break
        if i >= 0:
            turns.chosen[turn] = i
        elif place_in_round(cover, weights, search, before, room, record, limited):
            make_blocks(rest, weights, room)
            read_sets(cover, turns, before, count)
