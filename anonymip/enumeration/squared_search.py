r"""Depth-first search for classes of least reduced cost under squared errors, by pairs of records.

A class S of s records costs the sum of the squared distances of its pairs, divided by s. A partial
class P of p records that grows by q records Q to s = p + q of them costs at least

.. math::

    \frac{1}{s} \Big( W(P) + \sum_{j \in Q} \big( D_j(P) + \tfrac12 N_j(q - 1) \big) \Big),

with the sum W(P) over its pairs, the sum :math:`D_j(P)` from j to its members, and the sum
:math:`N_j(q - 1)` of the q - 1 least distances from j to other records that may join: each pair of
Q counts half for either end. Less the duals that is a sum of one term a record, of which the q
least bound what P may become, for each size s that is left.

Depth first from each root, the member of the highest dual. What may join is sorted by its term; a
branch fixes which record is the *furthest* one that joins, so that only nearer ones stay and each
class is met once. A search that is cut off knows what it left: the least of the bounds of the
branches that it did not take bounds the reduced costs of the root as well.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.enumeration.rooted_search import CutsOfRows, count_in_cuts, penalty_of, worst_of
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Places of `SquaredPath.state`: nodes, evaluations, columns found, whether there were more than
#: fit, records of the partial class, 0 when the search went through.
NODES, WORK, FOUND, OVERFLOW, DEPTH = 0, 1, 2, 3, 4
#: Evaluations of a record that count as a node.
EVALUATIONS = 200


class SquaredRows(Packed):
    """Row types as points."""

    #: (t, m) values, and (m,) what their differences are multiplied by.
    values: Floats
    scale: Floats
    copies: Ints  # (t,) rows of each type
    near: Floats  # (t, largest) sums of the 0, 1, 2, ... least squared distances to other records.


class SquaredPath(Packed):
    """The search of one root: what may join, where it stands, what it found."""

    #: What may join, and (c,) its duals.
    types: Annotated[Ints, "room"]
    own: Annotated[Floats, "room"]
    #: Squared distances, and (c, largest) sums of the least of each row.
    between: Annotated[Floats, "room, room"]
    close: Annotated[Floats, "room, largest"]
    #: What may join a partial class, the sums of its distances to it, and bounds of the columns in
    #: which it joins.
    lists: Annotated[Ints, "deep, room"]
    sums: Annotated[Floats, "deep, room"]
    needs: Annotated[Floats, "deep, room"]
    #: How many these are, and which is next.
    ends: Annotated[Ints, "deep"]
    at: Annotated[Ints, "deep"]
    #: Of each partial class: sum of its pairs, of its duals, of the duals of cuts.
    pairs: Annotated[Floats, "deep"]
    duals: Annotated[Floats, "deep"]
    paid: Annotated[Floats, "deep"]
    live: Annotated[Flags, "deep, deep"]  # sizes that columns of it may have
    members: Annotated[Ints, "deep"]  # the partial class
    #: Workspace.
    terms: Annotated[Floats, "room"]
    lowest: Annotated[Floats, "deep"]
    #: Columns found.
    columns: Annotated[Ints, "most, largest"]
    sizes: Annotated[Ints, "most"]
    reduced: Annotated[Floats, "most"]
    state: Annotated[Ints, "5"]  # counters


@kernel
def squared_distance(rows: SquaredRows, one: int, other: int) -> float:
    """Return the squared distance between two types."""
    distance = 0.0
    for a in range(len(rows.scale)):
        difference = (rows.values[one, a] - rows.values[other, a]) * rows.scale[a]
        distance += difference * difference
    return distance


@kernel
def _put_least(low: Floats, held: int, q: int, term: float) -> int:
    """Put a term among the q least, ascending, if it is one; return how many there are."""
    if held == q and term >= low[q - 1]:
        return held
    place = held if held < q else q - 1
    while place > 0 and low[place - 1] > term:
        low[place] = low[place - 1]
        place -= 1
    low[place] = term
    return min(held + 1, q)


@kernel
def least_terms(terms: Floats, count: int, q: int, low: Floats) -> float:
    """Write the q least of some terms, ascending; return their sum, infinite if there are fewer."""
    held = 0
    for a in range(count):
        held = _put_least(low, held, q, terms[a])
    total = 0.0 if held == q else np.inf
    for place in range(held):
        total += low[place]
    return total


@kernel
def root_terms(
    rows: SquaredRows,
    duals: Floats,
    rank: Ints,
    root: int,
    smallest: int,
    limit: float,
    bounds: Floats,
    work: Floats,
    low: Floats,
) -> None:
    """Write for each type the least bound of a column of the root that it joins; infinite if none.

    `work` (2, t) and `low` are workspaces.
    """
    t, largest = rows.near.shape
    bounds[:] = np.inf
    # Squared distances to the root; what comes before it has roots of its own.
    for j in range(t):
        work[0, j] = np.inf
        if rank[j] > rank[root] or (j == root and rows.copies[j] > 1):
            work[0, j] = squared_distance(rows, j, root)
    for size in range(smallest, largest + 1):
        q, held = size - 1, 0
        for j in range(t):
            term = work[0, j] / size + rows.near[j, q - 1] / (2.0 * size) - duals[j]
            work[1, j] = term
            # A type counts as often as it has rows that may join.
            if term < np.inf:
                for _ in range(min(rows.copies[j] - (j == root), q)):
                    held = _put_least(low, held, q, term)
        bound = 0.0 if held == q else np.inf
        for place in range(held):
            bound += low[place]
        bound -= duals[root]
        if bound >= limit or not bound < np.inf:
            continue
        for j in range(t):
            if work[0, j] < np.inf:
                more = max(work[1, j] - low[q - 1], 0.0)
                bounds[j] = min(bounds[j], bound + more)


@kernel
def begin_search(
    rows: SquaredRows,
    duals: Floats,
    cuts: CutsOfRows,
    path: SquaredPath,
    root: int,
    chosen: Ints,
    smallest: int,
) -> None:
    """Stand at a root with nothing found, and list the types that may join it by their copies."""
    largest, c = rows.near.shape[1], 0
    for place in range(len(chosen)):
        j = chosen[place]
        for _ in range(min(rows.copies[j] - (j == root), largest - 1)):
            if c < len(path.types):
                path.types[c], path.own[c] = j, duals[j]
                c += 1
    between = path.between
    for a in range(c):
        path.lists[1, a] = a
        for b in range(a):
            between[a, b] = between[b, a] = squared_distance(rows, path.types[a], path.types[b])
        path.sums[1, a] = squared_distance(rows, path.types[a], root)
    # The least distances of each to the others that may join.
    for a in range(c):
        between[a, a] = np.inf
        for q in range(1, largest):
            path.lowest[q - 1] = np.inf
        if c > 1:
            least_terms(between[a, :c], c, min(largest - 1, c), path.lowest)
        path.close[a, 0] = 0.0
        for q in range(1, largest):
            path.close[a, q] = path.close[a, q - 1] + path.lowest[q - 1]
        between[a, a] = 0.0
    path.ends[1], path.at[1] = c, -1
    path.pairs[1], path.duals[1] = 0.0, duals[root]
    path.members[0] = root
    path.live[1, :] = False
    path.live[1, smallest:] = True
    path.state[:] = 0
    path.state[DEPTH] = 1
    cuts.held[:] = 0
    path.paid[1] = penalty_of(cuts, root)
    count_in_cuts(cuts, root, 1)


@kernel
def bound_branches(path: SquaredPath, p: int, smallest: int, limit: float) -> None:
    """Keep of what may join a partial class of p records the promising, in the order of branches.

    Sizes without a promising column are no longer live.
    """
    lists, sums, needs, terms, low = path.lists, path.sums, path.needs, path.terms, path.lowest
    count, largest = path.ends[p], path.close.shape[1]
    for a in range(count):
        needs[p, a] = np.inf
    first = 0
    for size in range(max(smallest, p + 1), largest + 1):
        if not path.live[p, size]:
            continue
        q = size - p
        for a in range(count):
            j = lists[p, a]
            terms[a] = (sums[p, a] + 0.5 * path.close[j, q - 1]) / size - path.own[j]
        path.state[WORK] += count
        bound = path.pairs[p] / size - path.duals[p] + path.paid[p]
        bound += least_terms(terms, count, q, low)
        if not bound < limit:
            path.live[p, size] = False
            continue
        if first == 0:
            first = size
        for a in range(count):
            needs[p, a] = min(needs[p, a], bound + max(terms[a] - low[q - 1], 0.0))
    # What is left, sorted by its term for the least size; alike places stay together.
    kept = 0
    for a in range(count):
        if first == 0 or not needs[p, a] < limit:
            continue
        j, near, need = lists[p, a], sums[p, a], needs[p, a]
        key = (near + 0.5 * path.close[j, first - p - 1]) / first - path.own[j]
        place = kept
        while place > 0 and terms[place - 1] > key:
            terms[place], lists[p, place] = terms[place - 1], lists[p, place - 1]
            sums[p, place], needs[p, place] = sums[p, place - 1], needs[p, place - 1]
            place -= 1
        terms[place], lists[p, place], sums[p, place], needs[p, place] = key, j, near, need
        kept += 1
    path.ends[p], path.at[p] = kept, 0


@kernel
def search_squares(
    cuts: CutsOfRows,
    path: SquaredPath,
    smallest: int,
    below: float,
    least: float,
    keep: int,
    most_nodes: int,
) -> float:
    """Go on with a root's search for columns below a limit; return the least reduced cost.

    Of the columns below the limit the best are kept. The search ends when it went through or has
    looked at so many nodes, and can be gone on from with the `least` that it returned.
    """
    largest, p = path.close.shape[1], path.state[DEPTH]
    while p > 0:
        if path.at[p] < 0:
            if path.state[NODES] + path.state[WORK] // EVALUATIONS >= most_nodes:
                break
            path.state[NODES] += 1
            # With enough columns only better ones count.
            limit = below
            if path.state[FOUND] == keep:
                limit = min(limit, path.reduced[worst_of(path.reduced, 0, keep)])
            if p >= smallest:
                reduced = path.pairs[p] / p - path.duals[p] + path.paid[p]
                least = min(least, reduced)
                if reduced < limit:
                    # Of more than may be kept the worst one makes room.
                    slot = path.state[FOUND]
                    if slot == keep:
                        slot = worst_of(path.reduced, 0, keep)
                    elif slot < len(path.sizes):
                        path.state[FOUND] += 1
                    if slot == len(path.sizes):
                        path.state[OVERFLOW] = 1
                    else:
                        path.reduced[slot], path.sizes[slot] = reduced, p
                        for a in range(p):
                            path.columns[slot, a] = path.members[a]
            if p < largest:
                bound_branches(path, p, smallest, limit)
            else:
                path.ends[p], path.at[p] = 0, 0
        if path.at[p] >= path.ends[p]:
            count_in_cuts(cuts, path.members[p - 1], -1)
            p -= 1
            continue
        a = path.at[p]
        path.at[p] += 1
        j = path.lists[p, a]
        # Of alike records the last one stands for all.
        if a + 1 < path.ends[p] and path.types[path.lists[p, a + 1]] == path.types[j]:
            continue
        path.members[p] = path.types[j]
        path.pairs[p + 1] = path.pairs[p] + path.sums[p, a]
        path.duals[p + 1] = path.duals[p] + path.own[j]
        path.paid[p + 1] = path.paid[p] + penalty_of(cuts, path.types[j])
        count_in_cuts(cuts, path.types[j], 1)
        for b in range(a):
            other = path.lists[p, b]
            path.lists[p + 1, b] = other
            path.sums[p + 1, b] = path.sums[p, b] + path.between[j, other]
        for place in range(path.live.shape[1]):
            path.live[p + 1, place] = path.live[p, place]
        path.ends[p + 1], path.at[p + 1] = a, -1
        p += 1
    path.state[DEPTH] = p
    return least


def least_open(path: SquaredPath) -> float:
    """Return a lower bound of the columns that a search which was ended did not look at."""
    least, deepest = np.inf, int(path.state[DEPTH])
    for level in range(1, deepest + 1):
        if path.at[level] < 0:
            least = -np.inf if level == 1 else least
            continue
        # With the branch that it was about to look at.
        begin = path.at[level] - (1 if level == deepest - 1 and path.at[deepest] < 0 else 0)
        least = min(least, float(path.needs[level, begin : path.ends[level]].min(initial=np.inf)))
    return least
