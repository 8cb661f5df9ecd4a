"""Pairs and triples of records that look alike through a pattern; duals rule most of them out.

Two loops list them, and not the depth-first search of `enumeration`: what a group costs is read
from a table by the columns in which its members differ, and no group of four is ever needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import InputError
from anonymip.graphs.weighted.assignment import assign
from anonymip.objectives.kernels.star_costs import pattern_costs
from anonymip.problem import Problem
from anonymip.recodings.rows.output_rows import recoding_of, suppression_cost
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE

#: All pairs of more records would take too much memory.
LARGEST_TABLE = 6_000
#: Sets of columns are numbers below two to this power.
MOST_COLUMNS = 20


@dataclass(frozen=True, eq=False)
class RecordPairs:
    """Row types with what pairs of them cost, and duals of their records.

    Parameters
    ----------
    counts, inverse
        (t,) records of each type, and (n,) type of each record.
    differing
        (t, t) int64, the columns in which two types differ, as a set of bits.
    cheapest
        (2^m,) cost of a record under the cheapest pattern with stars in such columns, infinite
        where there is none.
    pattern
        (2^m,) that pattern.
    common
        The cheapest pattern through which all records look alike; -1 if there is none, or
        suppression costs no more.
    unpaired
        Cost of a record under that pattern, or of a suppressed one; infinite if there is neither.
        Pairs and triples cost less for each record.
    duals
        (t,) dual value of each record: no pair or triple costs less than the duals of its records.
    bound
        Sum of the duals of all records: no release costs less.
    """

    counts: NDArray[np.int64]
    inverse: NDArray[np.int64]
    differing: NDArray[np.int64]
    cheapest: NDArray[np.float64]
    pattern: NDArray[np.int64]
    common: int
    unpaired: float
    duals: NDArray[np.float64]
    bound: float


@dataclass(frozen=True, eq=False)
class SmallGroups:
    """Groups of two or three records that become one output row, and single records.

    Single ones are suppressed, or become the row that all may become.

    Parameters
    ----------
    members
        (g, 3) int64, types of the members, ascending; -1 where there are fewer.
    costs
        (g,) loss of all members.
    """

    members: NDArray[np.int64]
    costs: NDArray[np.float64]


def pairs_with_duals(problem: Problem, budget: Budget) -> tuple[RecordPairs, Stopped | None]:
    """Return pairs with duals of records, and why the duals are not the best.

    A fractional choice of pairs that covers every record once is half of an assignment of the
    records to each other; its duals are returned. A record that becomes the row that all may
    become, or is suppressed, is assigned to itself. Triples need no duals of their own: a triple
    costs as much as half of each of its three pairs does through the same pattern.

    Parameters
    ----------
    problem
        With patterns as its recoding, and k = 2.
    budget
        Of the assignment; when it ends, the duals are worse, but still valid.

    Raises
    ------
    InputError
        If the table has too many records or columns.

    Notes
    -----
    Complexity: O(n^3) time at worst, O(n^2) memory.
    """
    microdata = problem.microdata
    if microdata.n > LARGEST_TABLE or microdata.m > MOST_COLUMNS:
        raise InputError(
            f"pattern-pairs looks at all pairs of {microdata.n:,} records and sets of "
            f"{microdata.m} columns, at most {LARGEST_TABLE:,} and {MOST_COLUMNS}",
            remedy="Use pattern-ilp",
        )
    stars = recoding_of(problem).stars(problem)
    costs = pattern_costs(problem.compiled, stars)
    cheapest, pattern = _cheapest(stars, costs)
    types = microdata.row_types()
    codes = np.ascontiguousarray(microdata.codes[types.first])
    differing = np.empty((len(codes), len(codes)), np.int64)
    _differences(codes, differing)
    matrix = cheapest[differing][np.ix_(types.inverse, types.inverse)]
    common, unpaired = _common(codes, stars, costs, suppression_cost(problem))
    matrix = np.minimum(matrix, unpaired)
    np.fill_diagonal(matrix, unpaired)
    # Where records have no partner at all, a cost above all others stands for one.
    large = 10.0 * (1.0 + float(costs.max())) * microdata.n
    matrix = np.ascontiguousarray(np.minimum(matrix, large))
    _, columns, stopped = assign(matrix, budget, phase="duals of records")
    records = (matrix - columns).min(axis=1) + columns
    # Two records of a type may change places, so their mean is a dual value for both.
    duals = np.bincount(types.inverse, weights=records) / types.counts
    duals -= LOSS_RELATIVE * np.abs(duals)
    bound = float(duals @ types.counts)
    found = RecordPairs(
        types.counts.copy(),
        types.inverse,
        differing,
        cheapest,
        pattern,
        common,
        unpaired,
        duals,
        bound,
    )
    return found, stopped


def small_groups_within(pairs: RecordPairs, cutoff: float, most: int) -> SmallGroups | None:
    """Return the groups whose cost exceeds the duals of their members by so much at most.

    Parameters
    ----------
    pairs
        With duals.
    cutoff
        A release that uses another group costs more than the bound and this.
    most
        None is returned if there are more.

    Notes
    -----
    The three pairs of a triple exceed their duals by twice what the triple does, together and at
    most: triples are looked for among pairs that exceed them by no more.
    """
    empty = np.empty((0, 3), np.int64)
    arguments = (pairs.counts, pairs.differing, pairs.cheapest, pairs.duals, pairs.unpaired)
    count = int(_list_groups(*arguments, float(cutoff), most, empty))
    if count > most:
        return None
    members = np.full((count, 3), -1, np.int64)
    _list_groups(*arguments, float(cutoff), most, members)
    first, second, third = members.T
    columns = pairs.differing[first, second]
    three = third >= 0
    columns[three] |= pairs.differing[first[three], third[three]]
    costs = pairs.cheapest[columns] * np.where(three, 3.0, 2.0)
    if np.isfinite(pairs.unpaired):
        alone = np.flatnonzero(pairs.unpaired - pairs.duals <= cutoff)
        single = np.full((len(alone), 3), -1, np.int64)
        single[:, 0] = alone
        members = np.concatenate([members, single])
        costs = np.concatenate([costs, np.full(len(alone), pairs.unpaired)])
    return SmallGroups(members, costs)


def _common(
    codes: NDArray[np.int32],
    stars: NDArray[np.bool_],
    costs: NDArray[np.float64],
    suppressed: float,
) -> tuple[int, float]:
    """Return the cheapest pattern that makes all records equal, -1 for none, and its cost.

    Where suppression costs no more, that is returned.
    """
    varied = (codes != codes[0]).any(axis=0)
    fitting = np.flatnonzero((stars | ~varied).all(axis=1))
    if not len(fitting):
        return -1, suppressed
    best = int(fitting[np.argmin(costs[fitting])])
    return (-1, suppressed) if suppressed <= costs[best] else (best, float(costs[best]))


def _cheapest(
    stars: NDArray[np.bool_], costs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return cost and number of the cheapest pattern with stars in each set of columns."""
    m = stars.shape[1]
    sets = stars @ (1 << np.arange(m, dtype=np.int64))
    cheapest = np.full(1 << m, np.inf)
    pattern = np.full(1 << m, -1, np.int64)
    cheapest[sets], pattern[sets] = costs, np.arange(len(costs))
    numbers = np.arange(1 << m)
    for a in range(m):
        without = numbers[(numbers >> a) & 1 == 0]
        better = without[cheapest[without | (1 << a)] < cheapest[without]]
        cheapest[better] = cheapest[better | (1 << a)]
        pattern[better] = pattern[better | (1 << a)]
    return cheapest, pattern


@kernel
def _differences(codes: NDArray[np.int32], differing: NDArray[np.int64]) -> None:
    for i in range(len(codes)):
        for j in range(i + 1):
            columns = 0
            for a in range(codes.shape[1]):
                if codes[i, a] != codes[j, a]:
                    columns |= 1 << a
            differing[i, j] = columns
            differing[j, i] = columns


@kernel
def _list_groups(
    counts: NDArray[np.int64],
    differing: NDArray[np.int64],
    cheapest: NDArray[np.float64],
    duals: NDArray[np.float64],
    unpaired: float,
    cutoff: float,
    most: int,
    members: NDArray[np.int64],
) -> int:
    """Count pairs and triples, and write them as far as there is room; end above `most`."""
    t, count = len(counts), 0
    near = np.empty(t, np.int64)
    over = np.empty(t)
    for a in range(t):
        # Pairs of this type and one no smaller; a type pairs with itself if it has two records.
        found = 0
        for b in range(a, t):
            if a == b and counts[a] < 2:
                continue
            if cheapest[differing[a, b]] >= unpaired:
                continue
            # A pair of up to twice the cutoff may still be part of a triple.
            above = 2.0 * cheapest[differing[a, b]] - duals[a] - duals[b]
            if above <= 2.0 * cutoff:
                near[found] = b
                over[found] = above
                found += 1
        for i in range(found):
            b = near[i]
            if over[i] <= cutoff:
                if count < len(members):
                    members[count, 0] = a
                    members[count, 1] = b
                count += 1
            # The three pairs of a triple exceed their duals by twice what it does: two of them
            # that exceed more rule it out.
            for j in range(i, found):
                c = near[j]
                if over[i] + over[j] > 2.0 * cutoff:
                    continue
                if (b == c and counts[b] < 2) or (a == c and counts[a] < 3):
                    continue
                columns = differing[a, b] | differing[a, c]
                worth = duals[a] + duals[b] + duals[c]
                if cheapest[columns] < unpaired and 3.0 * cheapest[columns] - worth <= cutoff:
                    if count < len(members):
                        members[count, 0] = a
                        members[count, 1] = b
                        members[count, 2] = c
                    count += 1
            if count > most:
                return count
    return count
