"""The regular graph of least total weight on the weights of the first round."""

from __future__ import annotations

import numpy as np

from anonymip.errors import InputError
from anonymip.graphs.weighted.degree_flow import cheapest_degrees
from anonymip.heuristics.freeform.left_out import leaves_out
from anonymip.heuristics.freeform.rounds.growing_cover import add
from anonymip.heuristics.freeform.rounds.rounds import Rounds, new_costs, weigh_pairs
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution


@leaves_out
def min_cost_flow(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Take the regular graph whose edges have the least total weight, each weighed alone [1]_.

    The weight of a match is the increase of the loss of a published record that covered only
    itself. A minimum cost flow finds all matches at once. It is the optimum for k = 2; the larger
    k, the less do weights of single matches say about sets.

    `problem`: with freeform covers; degrees of single records are kept.
    `budget`: when it ends, the matches still missing are added along the lexicographic order; a
    cheap start (rings, SortGreedy in parts) is returned where it loses less.
    Raises InputError if the problem asks for another recoding, for reciprocal covers or for
    diversity, or has more than 20 000 records; NoSolution if no cover has the degrees, or none is
    found that keeps the limits.

    Complexity: O(k n^3) time at worst, and the memory of n^2 weights. A loss without tables is
    replaced by GCP beyond 1000 records. A limit may forbid a set although it allows each of its
    matches with the record itself; such a result is refused.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 8 (minCostFlow).
    """
    rounds = Rounds(problem, "min-cost-flow", budget)
    if rounds.reciprocal:
        raise InputError(
            "min-cost-flow makes no reciprocal covers",
            remedy="Use greedy, sort-greedy or hungarian",
        )
    costs = new_costs(rounds)
    stopped = weigh_pairs(rounds, costs, "weights")
    if stopped is None:
        degrees = rounds.cover.wanted - 1
        flow, stopped = cheapest_degrees(costs, degrees, rounds.budget)
        for i, record in np.argwhere(flow.used):
            add(rounds.cover, i, record)
    return rounds.finish(stopped, {})
