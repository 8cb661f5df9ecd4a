"""SortGreedy freeform generalization of Doka et al.: the cheapest matches of all first."""

from __future__ import annotations

from functools import partial

import numpy as np

from anonymip.errors import unknown_name
from anonymip.heuristics.freeform.partitioned import in_parts
from anonymip.heuristics.freeform.rounds.blocks import new_blocks
from anonymip.heuristics.freeform.rounds.choices import match_left, new_choices
from anonymip.heuristics.freeform.rounds.reciprocal import OpenRecords, grow_pairs, match_cheapest
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.problem import Problem
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.status import Stopped

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

    `problem`: with freeform covers; degrees of single records are kept.
    `weight`: what a match weighs: ``loss``, that of the published record with the match, as in the
    authors' program; ``increase``, by how much this loss grows, as in the text of the paper. In the
    first round both are the same. With the loss, records that are narrow yet choose first; with the
    increase the wide ones do, for which many matches are free, and the last to choose are left with
    what costs most: the larger k, the more is lost.
    `repair`: who looks for an exchange: ``published``, published records without an original, who
    get that of one of their 200 nearest neighbours in lexicographic order, the one for whom handing
    it over and taking another costs least; ``originals``, originals without a set, to whom the
    nearest one that can hands over its set, as in the text of the paper.
    `reciprocal`: whether l shall cover i if i covers l: a round then pairs the records whose
    increases both ways are least, whatever the weight. Forced if the recoding asks for it. Where n
    is odd and k even all sets have k + 1 records, since none of k exist.
    `budget`: when it ends, the matches still missing are added along the lexicographic order; a
    cheap start (rings, SortGreedy in parts) is returned where it loses less.
    Raises InputError if weight or repair is unknown, or the problem asks for another recoding, or
    for diversity; NoSolution if no cover is found that has the degrees and keeps the limits.

    No edges are sorted: a heap holds the best match left of each published record, and the next one
    is sought where that is taken. That is the rule of the sorted list. Complexity: O(k n^2 m) time
    for the first look alone at worst; bounds on blocks of 32 neighbours rule most originals out.
    Memory O(n (k + m)). A loss without tables needs the weights of all pairs, and is replaced by
    GCP beyond 1000 records.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 6, Algorithm 2.
    """
    if weight not in _WEIGHTS:
        raise unknown_name("weight", weight, _WEIGHTS)
    if repair not in _REPAIRS:
        raise unknown_name("repair", repair, _REPAIRS)
    rounds = Rounds(problem, "sort-greedy", budget, reciprocal=reciprocal)
    if rounds.reciprocal:
        stopped = grow_pairs(rounds, match_cheapest)
    else:
        stopped = rounds.run(partial(_match, rounds, weight == "loss", repair == "originals"))
    return rounds.finish(
        stopped, {"weight": weight, "repair": repair, "reciprocal": rounds.reciprocal}
    )


def _match(
    rounds: Rounds, by_loss: bool, originals_look: bool, quota: Ints, phase: str
) -> Stopped | None:
    """Take the cheapest matches until no published record with room finds an original.

    Records that are left without then find one by an exchange or along a path.
    """
    before, room = rounds.cover.sizes.copy(), quota.copy()
    blocks = new_blocks(rounds.weights, quota, published=False, bounded=rounds.bounds_hold)
    open_ = OpenRecords(blocks, np.empty((0, 2), np.int64), np.zeros(1, np.int64))
    losses = rounds.losses() if by_loss else None
    stopped = match_cheapest(rounds, open_, phase, losses=losses, room=room)
    if stopped is None and blocks.places.any():
        if originals_look:
            blocks = new_blocks(rounds.weights, room, published=True, bounded=False)
        choices = new_choices(blocks, quota, before)
        match_left(rounds.cover, rounds.weights, rounds.search, choices)
    return stopped
