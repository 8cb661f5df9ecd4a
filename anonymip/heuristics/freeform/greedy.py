"""Greedy freeform generalization of Doka et al.: record by record the cheapest match."""

from __future__ import annotations

from functools import partial

from anonymip.errors import unknown_name
from anonymip.heuristics.freeform.partitioned import in_parts
from anonymip.heuristics.freeform.rounds.choices import choose_in_order
from anonymip.heuristics.freeform.rounds.reciprocal import grow_pairs
from anonymip.heuristics.freeform.rounds.rounds import Rounds
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution

_CHOOSERS = ("published", "originals")


@in_parts
def greedy(
    problem: Problem,
    *,
    chooser: str = "published",
    reciprocal: bool = False,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Match record after record at the least weight, one match a round [1]_.

    The weight of a match is the increase of the loss of the published record; it is frozen within
    a round. Records choose in lexicographic order, attributes with few values first; ties go to
    the first in it. One that finds no match goes back over its predecessors, the nearest first,
    until one can hand over its match and take another, its cheapest. Where no predecessor can,
    which happens for k >= (n + 3) / 2, an augmenting path finds a match.

    `problem`: with freeform covers; degrees of single records are kept.
    `chooser`: ``published``: the published records choose the originals that they take in, as in
    the authors' program; ``originals``: the originals choose the sets that they join, as in the
    text of the paper. Those that choose last must take what is left. Published records are the same
    ones every round, and lose little more by another far record; originals spoil other sets each
    round, and the loss can be twice as large.
    `reciprocal`: whether l shall cover i if i covers l: a round then pairs records, each in turn
    with the one at the least weight both ways, whoever chooses. Forced if the recoding asks for it.
    Where n is odd and k even all sets have k + 1 records, since none of k exist.
    `budget`: when it ends, the matches still missing are added along the lexicographic order; a
    cheap start (rings, SortGreedy in parts) is returned where it loses less.
    Raises InputError if the chooser is unknown, or the problem asks for another recoding or for
    diversity; NoSolution if no cover is found that has the degrees and keeps the limits.

    Complexity: O(k n^2 m) time at worst; bounds on blocks of neighbours rule most matches out
    without changing the result. Memory O(n (k + m)), with ``originals`` O(n v / 64) more for v
    values of all attributes. A loss without tables needs the weights of all pairs, and is replaced
    by GCP beyond 1000 records. With degrees a record finds its matches evenly over the rounds,
    several in one round if need be.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 5, Algorithm 1.
    """
    if chooser not in _CHOOSERS:
        raise unknown_name("chooser", chooser, _CHOOSERS)
    rounds = Rounds(problem, "greedy", budget, reciprocal=reciprocal)
    if rounds.reciprocal:
        stopped = grow_pairs(rounds)
    else:
        by_originals = chooser == "originals"
        stopped = rounds.run(partial(choose_in_order, rounds, by_originals=by_originals))
    return rounds.finish(stopped, {"chooser": chooser, "reciprocal": rounds.reciprocal})
