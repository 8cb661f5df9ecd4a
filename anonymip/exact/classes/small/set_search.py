"""The sets of rows that a better release than the known one may hold, found depth first.

A set grows by one row at a time, types never descending, and what may follow is filtered on the
way down. The types come in the order of falling duals. With a
monotone record loss c a set of t rows that contains S loses at least t c(S); its reduced cost is at
least that less the duals of S and the t - |S| highest ones that may follow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.exact_cover import Packing, pack_counts
from anonymip.exact.classes.small.workspace import SetSearch, SmallRules, SmallWork, TypeRows
from anonymip.objectives.kernels.class_loss import KernelRows, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import count_in, may_be_diverse, take_back
from anonymip.runtime.kernels import kernel

#: What a search for sets ends with.
COMPLETE, OVERFLOWED, OUT_OF_NODES = 0, 1, 2


@kernel
def rank_types(
    rows: KernelRows, rules: SmallRules, work: SmallWork, chosen: NDArray[np.int64], count: int
) -> bool:
    """Gather the types, highest duals first; false if their counts do not fit in one word."""
    types, rank = work.types, work.types.rank
    for one in range(count):
        at = one
        while at > 0 and work.duals[rank[at - 1]] < work.duals[one]:
            rank[at] = rank[at - 1]
            at -= 1
        rank[at] = one
    for t in range(count):
        first = work.begin[rank[t]]
        work.packing.counts[t] = work.begin[rank[t] + 1] - first
        types.duals[t] = work.duals[rank[t]]
        row = chosen[work.order[first]]
        for r in range(types.values.shape[1]):
            types.values[t, r] = rows.range_values[row, r]
        for p in range(types.pair_codes.shape[1]):
            types.pair_codes[t, p] = rows.pair_codes[row, p]
        # Value by value: to assign rows of arrays takes numba two seconds to compile.
        for column in range(types.diversity.values.shape[1]):
            types.diversity.values[t, column] = rules.diversity.values[row, column]
        for s in range(types.set_bits.shape[1]):
            _number_value(rows, work, chosen, t, row, s)
    return pack_counts(work.packing, count)


@kernel
def _number_value(
    rows: KernelRows, work: SmallWork, chosen: NDArray[np.int64], t: int, row: int, s: int
) -> None:
    """Give the value of a type the bit that an earlier type has for it, or the next one."""
    types, distinct = work.types, 0
    for before in range(t):
        earlier = chosen[work.order[work.begin[types.rank[before]]]]
        if rows.set_codes[earlier, s] == rows.set_codes[row, s]:
            types.set_bits[t, s] = types.set_bits[before, s]
            return
        bit = types.set_bits[before, s]
        if bit == np.int64(1) << distinct:
            distinct += 1
    types.set_bits[t, s] = np.int64(1) << distinct


@kernel
def list_sets(
    tables: LossTables,
    rules: SmallRules,
    work: SmallWork,
    count: int,
    size: int,
    cutoff: float,
    max_nodes: int,
) -> int:
    """List the sets of k or more rows whose reduced cost is below the cutoff, by first type.

    Without duals where the largest loss counts: there a cost is a record loss.
    """
    types, search, found = work.types, work.search, work.found
    counts = work.packing.counts
    largest = size if rules.diversity.values.shape[1] else min(size, 2 * rules.k - 1)
    # No rows are in the partial set; all types may be its first, in the order of falling duals.
    for t in range(count):
        search.used[t] = 0
    search.counts.held[:] = 0
    found.held[0] = 0
    _list_first(tables, rules, types, search, count, largest, cutoff)
    depth = 0
    while True:
        # Back to the last partial set that something may still follow; what was counted for the
        # rows after it is taken back.
        while search.at[depth] == search.end[depth]:
            if depth == 0:
                found.begin[count] = found.held[0]
                return COMPLETE
            depth -= 1
            search.used[search.members[depth]] -= 1
            take_back(types.diversity, search.counts, search.members[depth])
        at = search.at[depth]
        search.at[depth] += 1
        t, loss = search.followers[depth, at], search.losses[depth, at]
        # The sets of a first type lie side by side: those of the types before are complete.
        if depth == 0:
            found.begin[t] = found.held[0]
        # Neither the partial set with this row nor a larger one by later types can be wanted.
        if not _promising(rules, counts, types, search, depth, at, largest, cutoff):
            continue
        if work.nodes[0] >= max_nodes:
            return OUT_OF_NODES
        work.nodes[0] += 1
        enter_row(types, work.packing, search, depth, t)
        count_in(types.diversity, search.counts, t, 1, depth, depth + 1)
        depth += 1
        # The partial set may itself be a class.
        if depth >= rules.k:
            cost = depth * loss - search.dual_sum[depth] if rules.summed else loss
            if cost < cutoff and _may_be_diverse(types, search, depth, depth):
                held = found.held[0]
                if held == len(found.costs):
                    return OVERFLOWED
                found.packed[held] = search.packed[depth]
                found.costs[held] = cost
                found.held[0] += 1
        # It may grow further by types from its last one on.
        _list_followers(tables, rules, work, depth, at, largest, cutoff)


@kernel
def _list_first(
    tables: LossTables,
    rules: SmallRules,
    types: TypeRows,
    search: SetSearch,
    count: int,
    largest: int,
    cutoff: float,
) -> None:
    """List all types as what the empty set may grow by."""
    search.dual_sum[0], search.packed[0] = 0.0, 0
    for s in range(types.set_bits.shape[1]):
        search.held[0, s] = search.set_counts[0, s] = 0
    for t in range(count):
        search.followers[0, t] = t
        search.losses[0, t] = grown_loss(tables, types, search, 0, t)
    search.at[0], search.end[0] = 0, count


@kernel
def enter_row(types: TypeRows, packing: Packing, search: SetSearch, depth: int, t: int) -> None:
    """Add a row to the partial set."""
    size = depth + 1
    search.members[depth] = t
    search.used[t] += 1
    search.dual_sum[size] = search.dual_sum[depth] + types.duals[t]
    search.packed[size] = search.packed[depth] + packing.ones[t]
    for r in range(types.values.shape[1]):
        value = types.values[t, r]
        search.low[size, r] = value if depth == 0 else min(search.low[depth, r], value)
        search.high[size, r] = value if depth == 0 else max(search.high[depth, r], value)
    for p in range(types.pair_codes.shape[1]):
        code = types.pair_codes[t, p]
        search.pair_low[size, p] = code if depth == 0 else min(search.pair_low[depth, p], code)
        search.pair_high[size, p] = code if depth == 0 else max(search.pair_high[depth, p], code)
    for s in range(types.set_bits.shape[1]):
        bit = types.set_bits[t, s]
        search.set_counts[size, s] = search.set_counts[depth, s] + (
            search.held[depth, s] & bit == 0
        )
        search.held[size, s] = search.held[depth, s] | bit


@kernel
def grown_loss(tables: LossTables, types: TypeRows, search: SetSearch, size: int, t: int) -> float:
    """Return the record loss of the partial set with one row more."""
    loss = tables.constant
    for r in range(types.values.shape[1]):
        value = types.values[t, r]
        low = value if size == 0 else min(search.low[size, r], value)
        high = value if size == 0 else max(search.high[size, r], value)
        loss += range_loss(tables, r, low, high)
    for s in range(types.set_bits.shape[1]):
        distinct = search.set_counts[size, s] + (search.held[size, s] & types.set_bits[t, s] == 0)
        loss += tables.set_losses[tables.set_start[s] + distinct]
    for p in range(types.pair_codes.shape[1]):
        code = types.pair_codes[t, p]
        low_code = code if size == 0 else min(search.pair_low[size, p], code)
        high_code = code if size == 0 else max(search.pair_high[size, p], code)
        loss += tables.pair_losses[
            tables.pair_start[p] + low_code * tables.pair_sizes[p] + high_code
        ]
    return loss


@kernel
def _promising(
    rules: SmallRules,
    counts: NDArray[np.int64],
    types: TypeRows,
    search: SetSearch,
    depth: int,
    at: int,
    largest: int,
    cutoff: float,
) -> bool:
    """Return whether the partial set with a row may become a wanted one by rows not before it."""
    t, loss = search.followers[depth, at], search.losses[depth, at]
    grown, dual_sum = depth + 1, search.dual_sum[depth] + types.duals[t]
    left = counts[t] - search.used[t] - 1
    while True:
        if grown >= rules.k:
            if (grown * loss - dual_sum if rules.summed else loss) < cutoff:
                return True
            # Further rows cost more than their duals, and no later one has a higher dual.
            if not rules.summed or loss >= types.duals[t]:
                return False
        if grown == largest:
            return False
        while left == 0:
            at += 1
            if at == search.end[depth]:
                return False
            t = search.followers[depth, at]
            left = counts[t] - search.used[t]
        dual_sum += types.duals[t]
        left -= 1
        grown += 1


@kernel
def _list_followers(
    tables: LossTables,
    rules: SmallRules,
    work: SmallWork,
    size: int,
    first: int,
    largest: int,
    cutoff: float,
) -> None:
    """List what may follow the row just added, out of what could follow before it."""
    counts, types, search = work.packing.counts, work.types, work.search
    search.at[size] = search.end[size] = 0
    if size == largest:
        return
    # `top[q]` is the most that q further rows can take off the cost.
    _sum_top_duals(counts, types, search, size, first, largest)
    followers, losses = search.followers[size], search.losses[size]
    # Types with rows left; none of those before can come back further down.
    count = 0
    for at in range(first, search.end[size - 1]):
        t = search.followers[size - 1, at]
        if counts[t] > search.used[t]:
            followers[count] = t
            count += 1
    losses_with_followers(tables, types, search, size, count, followers, losses)
    # A type stays if a set of some allowed size that holds it could be below the cutoff: it loses
    # at least what the partial set with that type alone loses on each row.
    held, left, dual_sum = 0, 0, search.dual_sum[size]
    for at in range(count):
        t, loss = followers[at], losses[at]
        if not rules.summed:
            kept = loss < cutoff
        else:
            kept = False
            for grown in range(max(size + 1, rules.k), largest + 1):
                top = search.top[grown - size - 1]
                if grown * loss - (dual_sum + types.duals[t]) - top < cutoff:
                    kept = True
                    break
        if kept:
            followers[held], losses[held] = t, loss
            held += 1
            left += counts[t] - search.used[t]
    reach = min(largest, size + left)
    # What is left must suffice for k rows and for the diversity.
    if reach >= rules.k and _may_be_diverse(types, search, size, reach):
        search.end[size] = held


@kernel
def _sum_top_duals(
    counts: NDArray[np.int64],
    types: TypeRows,
    search: SetSearch,
    size: int,
    first: int,
    largest: int,
) -> None:
    """Set `top[q]` to the sum of the q highest duals of the rows that may follow.

    Where there are fewer rows, the further sums are minus infinity: they are not reached.
    """
    q, most, top = 0, largest - size, search.top
    top[0] = 0.0
    for at in range(first, search.end[size - 1]):
        t = search.followers[size - 1, at]
        for _ in range(min(counts[t] - search.used[t], most - q)):
            top[q + 1] = top[q] + types.duals[t]
            q += 1
        if q == most:
            return
    for rest in range(q + 1, most + 1):
        top[rest] = -np.inf


@kernel
def losses_with_followers(
    tables: LossTables,
    types: TypeRows,
    search: SetSearch,
    size: int,
    count: int,
    followers: NDArray[np.int64],
    losses: NDArray[np.float64],
) -> None:
    """Write the record losses of the partial set with each of the followers, term by term.

    Nearly all time of the search is spent here: each attribute's ends are read once for all.
    """
    for at in range(count):
        losses[at] = tables.constant
    for r in range(types.values.shape[1]):
        low, high = search.low[size, r], search.high[size, r]
        high_loss = tables.range_high[r]
        slope = tables.range_low[r] + high_loss
        for at in range(count):
            value = types.values[followers[at], r]
            lower = value if value < low else low
            upper = value if value > high else high
            losses[at] += high_loss * (upper - lower) + slope * lower
    for s in range(types.set_bits.shape[1]):
        held, distinct = search.held[size, s], search.set_counts[size, s]
        start = tables.set_start[s]
        known = tables.set_losses[start + distinct]
        # There is no further value where all levels are held.
        new = tables.set_losses[start + min(distinct + 1, tables.set_sizes[s])]
        for at in range(count):
            losses[at] += known if held & types.set_bits[followers[at], s] else new
    for p in range(types.pair_codes.shape[1]):
        low_code, high_code = search.pair_low[size, p], search.pair_high[size, p]
        start, width = tables.pair_start[p], tables.pair_sizes[p]
        for at in range(count):
            code = types.pair_codes[followers[at], p]
            losses[at] += tables.pair_losses[
                start + min(low_code, code) * width + max(high_code, code)
            ]


@kernel
def _may_be_diverse(types: TypeRows, search: SetSearch, size: int, reach: int) -> bool:
    """Return whether the partial set may have the diversity when it has grown to `reach` rows."""
    return may_be_diverse(types.diversity, search.counts, size, size, reach)
