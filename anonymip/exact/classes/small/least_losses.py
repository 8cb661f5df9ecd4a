"""What a record of each type loses at least: the least loss of a class of k rows that holds it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.set_search import enter_row, grown_loss
from anonymip.exact.classes.small.workspace import SetSearch, SmallRules, SmallWork, TypeRows
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel


@kernel
def raise_duals(
    tables: LossTables, rules: SmallRules, work: SmallWork, count: int, max_nodes: int
) -> float:
    """Raise duals from those of the nearest rows to those of the best sets of k rows.

    Returns the bound that the duals give.

    Every class holds k rows with the record in question, and loses as much on each of its records
    as these would. The search for the best such set of a type begins with its nearest rows; sets
    found for one type serve the others.

    Parameters
    ----------
    tables, rules
        As in the sub-problem.
    work
        With the ranked types and their duals; `least` holds for each of them the loss of some
        class. Where the search ends early a dual stays what it was.
    count
        Types.
    max_nodes
        Partial sets at which to end.
    """
    types, search = work.types, work.search
    search.used[:count] = 0
    complete, dual_bound = True, 0.0 if rules.summed else -np.inf
    for seed in range(count):
        if complete and work.least[seed] > types.duals[seed]:
            complete = _improve_least(tables, rules, work, count, seed, max_nodes)
            if complete:
                types.duals[seed] = max(types.duals[seed], work.least[seed])
        dual = types.duals[seed]
        work.duals[types.rank[seed]] = dual
        dual_bound = (
            dual_bound + work.packing.counts[seed] * dual if rules.summed else max(dual_bound, dual)
        )
    return dual_bound


@kernel
def _improve_least(
    tables: LossTables, rules: SmallRules, work: SmallWork, count: int, seed: int, max_nodes: int
) -> bool:
    """Find the best set of k rows with a type; false if nodes ran out."""
    counts, types, search, least = work.packing.counts, work.types, work.search, work.least
    # Every set holds the seed; what joins it comes in the order of nearness.
    search.dual_sum[0], search.packed[0] = 0.0, 0
    search.held[0, :] = 0
    search.set_counts[0, :] = 0
    enter_row(types, work.packing, search, 0, seed)
    _list_all(tables, counts, types, search, count, least[seed])
    depth, complete = 1, True
    while True:
        # Back to the set before; behind the seed the search is over.
        if search.at[depth] == search.end[depth]:
            depth -= 1
            search.used[search.members[depth]] -= 1
            if depth == 0:
                return complete
            continue
        at = search.at[depth]
        search.at[depth] += 1
        t, loss = search.followers[depth, at], search.losses[depth, at]
        # By monotonicity no set with this row loses less. Out of nodes, the loop only unwinds.
        if loss >= least[seed] or not complete:
            continue
        # A set of k rows bounds the least loss of each of its types, not the seed's alone.
        if depth + 1 == rules.k:
            search.members[depth] = t
            for member in range(rules.k):
                least[search.members[member]] = min(least[search.members[member]], loss)
            continue
        if work.nodes[0] >= max_nodes:
            complete = False
            continue
        work.nodes[0] += 1
        enter_row(types, work.packing, search, depth, t)
        depth += 1
        _list_nearer(tables, rules, counts, types, search, depth, at, least[seed])


@kernel
def _list_all(
    tables: LossTables,
    counts: NDArray[np.int64],
    types: TypeRows,
    search: SetSearch,
    count: int,
    most: float,
) -> None:
    """List what may join the seed, the nearest first."""
    losses, followers, held = search.losses, search.followers, 0
    for t in range(count):
        if counts[t] == search.used[t]:
            continue
        loss = grown_loss(tables, types, search, 1, t)
        if loss >= most:
            continue
        at = held
        while at > 0 and losses[1, at - 1] > loss:
            losses[1, at], followers[1, at] = losses[1, at - 1], followers[1, at - 1]
            at -= 1
        losses[1, at], followers[1, at] = loss, t
        held += 1
    search.at[1], search.end[1] = 0, held


@kernel
def _list_nearer(
    tables: LossTables,
    rules: SmallRules,
    counts: NDArray[np.int64],
    types: TypeRows,
    search: SetSearch,
    size: int,
    first: int,
    most: float,
) -> None:
    """List what may follow the row just added and loses less than `most` with the set."""
    held, left = 0, 0
    for at in range(first, search.end[size - 1]):
        t = search.followers[size - 1, at]
        free = counts[t] - search.used[t]
        if free == 0 or search.losses[size - 1, at] >= most:
            continue
        loss = grown_loss(tables, types, search, size, t)
        if loss >= most:
            continue
        search.followers[size, held], search.losses[size, held] = t, loss
        held += 1
        left += free
    # Every set of k rows needs so many more.
    search.at[size], search.end[size] = 0, held if left >= rules.k - size else 0


@kernel
def class_losses_by_type(work: SmallWork, count: int, size: int) -> None:
    """Write to `least` the least loss of the known classes that hold a row of each type."""
    for t in range(count):
        merged = work.types.rank[t]
        work.least[t] = np.inf
        for at in range(work.begin[merged], work.begin[merged + 1]):
            label = work.labels[work.order[at]]
            work.least[t] = min(work.least[t], work.class_loss[label])
