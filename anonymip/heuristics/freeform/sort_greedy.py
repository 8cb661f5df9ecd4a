"""SortGreedy freeform generalization of Doka et al.: the cheapest matches of all first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import unknown_name
from anonymip.heuristics.freeform.partitioned import in_parts
from anonymip.heuristics.freeform.rounds.blocks.original_blocks import (
    OriginalBlocks,
    cheapest_original,
    leave_blocks,
    make_original_blocks,
    new_original_blocks,
)
from anonymip.heuristics.freeform.rounds.blocks.published_blocks import (
    PublishedBlocks,
    make_blocks,
    new_blocks,
)
from anonymip.heuristics.freeform.rounds.blocks.shortlists import (
    Shortlists,
    new_shortlists,
    next_original,
)
from anonymip.heuristics.freeform.rounds.growing_cover import (
    GrowingCover,
    PairWeights,
    PathSearch,
    add,
    covers,
    pair_weight,
    place_in_round,
)
from anonymip.heuristics.freeform.rounds.reciprocal.pair_rounds import grow_pairs
from anonymip.heuristics.freeform.rounds.round_turns import (
    Turns,
    find_any_original,
    hand_over_original,
    hand_over_set,
    new_turns,
    read_originals,
    read_sets,
)
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.heuristics.freeform.rounds.waiting_line import (
    WaitingLine,
    join_line,
    leave_line,
    new_line,
)
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.solution import Solution
from anonymip.status import Stopped

#: So many neighbours whose original would do are compared.
_COMPARED = 200
_WEIGHTS = ("loss", "increase")
_REPAIRS = ("published", "originals")


@in_parts
def sort_greedy(
    problem: Problem,
    *,
    weight: str = "loss",
    repair: str = "published",
    reciprocal: bool = False,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Take the cheapest match of all first, in rounds that give every set one more record [1]_.

    Weights are frozen within a round. Ties go to the original, then to the published record, that
    comes first in lexicographic order. Records that are left without a match find one by an
    exchange, and where none is possible along an augmenting path.

    Parameters
    ----------
    problem
        With freeform covers; degrees of single records are kept.
    weight
        What a match weighs: ``loss``, that of the published record with the match, as in the
        authors' program; ``increase``, by how much this loss grows, as in the text of the paper.
        In the first round both are the same. With the loss, records that are narrow yet choose
        first; with the increase the wide ones do, for which many matches are free, and the last to
        choose are left with what costs most: the larger k, the more is lost.
    repair
        Who looks for an exchange: ``published``, published records without an original, who get
        that of one of their 200 nearest neighbours in lexicographic order, the one for whom handing
        it over and taking another costs least; ``originals``, originals without a set, to whom the
        nearest one that can hands over its set, as in the text of the paper.
    reciprocal
        Whether l shall cover i if i covers l: a round then pairs the records whose increases both
        ways are least, whatever the weight. Forced if the recoding asks for it. Where n is odd and
        k even all sets have k + 1 records, since none of k exist.
    budget
        When it ends, the matches still missing are added along the lexicographic order; a cheap
        start (rings, SortGreedy in parts) is returned where it loses less.
    seed
        Not used: nothing is random.

    Notes
    -----
    No edges are sorted: a heap holds the best match left of each published record, and the next
    ones come from a shortlist that is made again when it is used up. That is the rule of the sorted
    list. Complexity: O(k n^2 m) time for the first look alone at worst; bounds on blocks of 32
    neighbours rule most originals out. Memory O(n (k + m)). A loss without tables needs the
    weights of all pairs, and is replaced by GCP beyond 1000 records.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 6, Algorithm 2.

    Raises
    ------
    InputError
        If weight or repair is unknown, or the problem asks for another recoding, or for diversity.
    NoSolution
        If no cover is found that has the degrees and keeps the limits.
    """
    if weight not in _WEIGHTS:
        raise unknown_name("weight", weight, _WEIGHTS)
    if repair not in _REPAIRS:
        raise unknown_name("repair", repair, _REPAIRS)
    rounds = Rounds.of(
        problem, "sort-greedy", budget or Budget(), reciprocal=reciprocal, sort_greedy=sort_greedy
    )
    budget = rounds.budget
    options = {"weight": weight, "repair": repair, "reciprocal": rounds.reciprocal}
    if rounds.reciprocal:
        return rounds.finish(grow_pairs(rounds, budget, cheapest_first=True), options)
    blocks = new_original_blocks(rounds.weights.terms, bounded=rounds.bounds_hold)
    stopped = None
    for number in range(1, rounds.count + 1):
        before = rounds.cover.sizes.copy()
        quota = rounds.sizes_after(number) - before
        left = quota.copy()
        losses = rounds.losses() if weight == "loss" else np.zeros(problem.n)
        stopped = _match(rounds, blocks, losses, quota.copy(), left, budget, number)
        if stopped is None and left.any():
            _match_rest(rounds, blocks, before, quota, left, repair)
        rounds.refresh(before)
        if stopped is not None:
            break
    return rounds.finish(stopped, options)


def _match(
    rounds: Rounds,
    blocks: OriginalBlocks,
    losses: NDArray[np.float64],
    room: NDArray[np.int64],
    left: NDArray[np.int64],
    budget: Budget,
    number: int,
) -> Stopped | None:
    """Take the cheapest matches until no published record with room finds an original."""
    line, cursor = new_line(len(room)), np.zeros(2, np.int64)
    lists = new_shortlists(len(room))
    make_original_blocks(blocks, rounds.weights.terms, left)

    def step(amount: int) -> int:
        return int(
            _match_step(
                rounds.cover,
                rounds.weights,
                blocks,
                lists,
                line,
                losses,
                room,
                left,
                cursor,
                amount,
            )
        )

    total = len(room) + int(room.sum())
    return run_in_steps(step, total, budget, f"round {number} of {rounds.count}", first=100)


@kernel
def _match_step(
    cover: GrowingCover,
    weights: PairWeights,
    blocks: OriginalBlocks,
    lists: Shortlists,
    line: WaitingLine,
    losses: NDArray[np.float64],
    room: NDArray[np.int64],
    left: NDArray[np.int64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Let so many records join the line, or leave it; return the work done.

    The cursor holds records that joined at first, and matches found or given up since. The losses
    are what counts beside the increases where records are compared.
    """
    n = len(room)
    for _ in range(amount):
        if cursor[0] < n:
            i = cursor[0]
            cursor[0] += 1
        else:
            # The cheapest match known; its original may have found all its sets meanwhile.
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
            record, increase = next_original(lists, blocks, weights, cover, left, i)
            if record >= 0:
                join_line(line, i, losses[i] + increase, record)
    return cursor[0] + cursor[1]


def _match_rest(
    rounds: Rounds,
    blocks: OriginalBlocks,
    before: NDArray[np.int64],
    quota: NDArray[np.int64],
    left: NDArray[np.int64],
    repair: str,
) -> None:
    """Find matches for the records that are left without."""
    cover, weights, turns = rounds.cover, rounds.weights, new_turns(quota)
    if repair == "published":
        match_sets_left(cover, weights, rounds.search, blocks, turns, before, left, rounds.limited)
    else:
        rest = new_blocks(weights.terms, bounded=False)
        room = quota - (cover.sizes - before)
        match_originals_left(
            cover, weights, rounds.search, rest, turns, before, room, rounds.limited
        )


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
