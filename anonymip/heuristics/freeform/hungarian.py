"""Hungarian freeform generalization of Doka et al.: each round the best of all matchings."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.graphs.weighted.assignment import assign
from anonymip.graphs.weighted.light_factors import cycles_of
from anonymip.heuristics.freeform.partitioned import in_parts
from anonymip.heuristics.freeform.rounds.growing_cover import add
from anonymip.heuristics.freeform.rounds.reciprocal import OpenRecords, grow_pairs, make_pair
from anonymip.heuristics.freeform.rounds.rounds import Costs, Rounds, new_costs, weigh_pairs
from anonymip.problem import Problem
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.status import Stopped


@in_parts
def hungarian(
    problem: Problem, *, reciprocal: bool = False, budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Give every set one more record by an assignment of least total weight, k - 1 times [1]_.

    The weight of a match is the increase of the loss of the published record, set again for each
    round. For k = 2 there is one round, and its assignment is the optimum.

    `problem`: with freeform covers, one degree for all records.
    `reciprocal`: whether l shall cover i if i covers l: the assignment is then solved on the
    weights both ways and its cycles are cut into pairs. Forced if the recoding asks for it. Where n
    is odd and k even all sets have k + 1 records, since none of k exist.
    `budget`: when it ends, the matches still missing are added along the lexicographic order; a
    cheap start (rings, SortGreedy in parts) is returned where it loses less.
    Raises InputError if the problem asks for another recoding, for degrees that differ or for
    diversity, or has more than 20 000 records; NoSolution if no cover is found that keeps the
    limits.

    The assignments are solved by shortest augmenting paths that start from the duals of the round
    before. Complexity: O(k n^3) time at worst, and the memory of n^2 weights: in double precision
    up to 2000 records, beyond in single, in whose rounding the assignments are then the best. A
    loss without tables is replaced by GCP beyond 1000 records.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 7.
    """
    rounds = Rounds(problem, "hungarian", budget, reciprocal=reciprocal)
    if len(np.unique(rounds.cover.wanted)) > 1:
        raise InputError(
            "hungarian gives all records one degree, and the problem asks for several",
            remedy="Use greedy, sort-greedy or min-cost-flow",
        )
    costs, duals = new_costs(rounds), None

    def match(_: Ints, phase: str) -> Stopped | None:
        nonlocal duals
        stopped = weigh_pairs(rounds, costs, phase)
        if stopped is None:
            columns, duals, stopped = assign(costs, rounds.budget, duals=duals, phase=phase)
            for i in np.flatnonzero(columns >= 0).tolist():
                add(rounds.cover, i, int(columns[i]))
        return stopped

    if rounds.reciprocal:
        stopped = grow_pairs(rounds, partial(_pair_by_assignment, costs))
    else:
        stopped = rounds.run(match)
    return rounds.finish(stopped, {"reciprocal": rounds.reciprocal})


def _pair_by_assignment(
    costs: Costs, rounds: Rounds, open_: OpenRecords, phase: str
) -> Stopped | None:
    """Make the pairs of an assignment on the weights both ways of the records that lack partners.

    A cycle of even length falls into pairs in two ways, the cheaper is taken; one of odd length
    leaves out the record that makes the rest cheapest.
    """
    stopped = weigh_pairs(rounds, costs, phase)
    if stopped is not None:
        return stopped
    # Each weight becomes the sum of both ways, row by row: a copy of all would not fit.
    for i in range(1, len(costs)):
        costs[i, :i] += costs[:i, i]
        costs[:i, i] = costs[i, :i]
    lacking = np.flatnonzero(open_.blocks.places > 0)
    among = costs if len(lacking) == len(costs) else costs[np.ix_(lacking, lacking)]
    columns, _, stopped = assign(among, rounds.budget, phase=phase)
    # Where time ended rows lack a column: closed all the same, their cycles are left out.
    closed, everyone = columns.copy(), np.arange(len(columns))
    closed[columns < 0] = np.setdiff1d(everyone, columns)
    for cycle in cycles_of(len(columns), np.stack([everyone, closed], axis=1)):
        for one, other in _pairs(cycle, among) if (columns[cycle] >= 0).all() else ():
            make_pair(rounds.cover, rounds.weights, open_, int(lacking[one]), int(lacking[other]))
    return stopped


def _pairs(cycle: Ints, costs: NDArray[np.floating[Any]]) -> list[tuple[int, int]]:
    """Return the cheapest pairs of neighbours in a cycle that leave out at most one record.

    With an odd number of records every second edge, twice around, is a list in which the pairs
    that leave out one record are consecutive.
    """
    m = len(cycle)
    if m < 2:
        return []
    following = [*cycle[1:], cycle[0]]
    edges = [float(costs[one, other]) for one, other in zip(cycle, following, strict=True)]
    half = m // 2
    if m % 2 == 0:
        first = 0 if m == 2 or sum(edges[::2]) <= sum(edges[1::2]) else 1
        chosen = [(first + 2 * at) % m for at in range(half)]
    else:
        places = [(2 * at) % m for at in range(2 * m)]
        sums = np.cumsum([0.0, *(edges[place] for place in places)])
        start = int(np.argmin(sums[half : half + m] - sums[:m]))
        chosen = places[start : start + half]
    return [(cycle[place], following[place]) for place in chosen]
