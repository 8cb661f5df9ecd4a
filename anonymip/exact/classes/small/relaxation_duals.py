"""Duals of the rows of a small sub-problem from the linear relaxation over its sets of k rows.

Duals under which no set of k rows has a negative reduced cost leave none to larger sets either:
with a monotone record loss c a set T of t rows costs t c(T), on average over its subsets S of k
rows at least t/k times k c(S), and they hold each of its rows alike. So numbers p of any sign with
p(S) <= k c(S) for all S bound every release by their sum, and the best ones are the duals of the
cheapest fractional partition into sets of k rows. A simplex with an explicit inverse finds them.
Nothing relies on its accuracy: whatever duals it has are repaired by what the worst set asks for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.set_search import enter_row, losses_with_followers
from anonymip.exact.classes.small.workspace import RowSets, Simplex, SmallRules, SmallWork
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.tolerances import DUAL_ROUNDING

#: Pivots for each type at most; hardly ever are there more than five.
_PIVOTS = 30
#: Smaller elements are no pivots.
_TINY = 1e-9
#: The share by which right hand sides differ from the counts, against ties.
_SPREAD = 1e-7


@kernel
def list_row_sets(tables: LossTables, rules: SmallRules, work: SmallWork, count: int) -> bool:
    """List all sets of k rows by what they share up to the last row; false if they do not fit."""
    counts, types, search, sets = work.packing.counts, work.types, work.search, work.row_sets
    held, prefixes, depth = 0, 0, 0
    search.used[:count] = 0
    search.dual_sum[0], search.packed[0] = 0.0, 0
    search.held[0, :] = 0
    search.set_counts[0, :] = 0
    search.at[0], search.end[0] = 0, count
    while True:
        # All but the last row are chosen: the sets that share these rows are listed at once.
        if depth == rules.k - 1:
            first = search.members[depth - 1] if depth > 0 else 0
            followers, losses = search.followers[depth], search.losses[depth]
            free = 0
            for t in range(first, count):
                if counts[t] > search.used[t]:
                    followers[free] = t
                    free += 1
            if held + free > len(sets.costs) or prefixes + 1 == len(sets.begin):
                return False
            losses_with_followers(tables, types, search, depth, free, followers, losses)
            for at in range(free):
                sets.last[held], sets.costs[held] = followers[at], rules.k * losses[at]
                held += 1
            for at in range(depth):
                sets.shared[prefixes, at] = search.members[at]
            prefixes += 1
            sets.begin[prefixes] = held
        # The next row is of the same type as the one before or a later one, so that no set comes
        # twice.
        elif search.at[depth] < count:
            t = search.at[depth]
            search.at[depth] += 1
            if counts[t] > search.used[t]:
                enter_row(types, work.packing, search, depth, t)
                depth += 1
                search.at[depth] = t
            continue
        # All sets with these first rows are listed: the last of them is replaced.
        depth -= 1
        if depth < 0:
            sets.held[0] = prefixes
            return True
        search.used[search.members[depth]] -= 1


@kernel
def solve_relaxation(
    tables: LossTables,
    rules: SmallRules,
    work: SmallWork,
    count: int,
    most: float,
) -> float:
    """Write the best duals of the types to `duals`; return their sum over all rows but rounding.

    Minus infinity if the sets of k rows are too many.

    Parameters
    ----------
    tables, rules
        As in the sub-problem, where losses are summed.
    work
        With the ranked types.
    count
        Types.
    most
        Bounds from here on are good enough.

    Notes
    -----
    Complexity: for each pivot the types squared and the number of sets of k rows.
    """
    if not list_row_sets(tables, rules, work, count):
        return -np.inf
    simplex, sets, counts = work.simplex, work.row_sets, work.packing.counts
    duals, best = simplex.duals, -np.inf
    _start(simplex, counts, sets, rules.k, count)
    for _ in range(_PIVOTS * count + 1):
        # Each row shares in the worst reduced cost, so that the repaired duals are valid after any
        # pivot; the best of them are kept.
        prefix, at, reduced = _cheapest_set(sets, duals, rules.k)
        repair, bound, scale = min(reduced, 0.0) / rules.k, 0.0, 0.0
        # Duals that nearly cancel with their repair leave little but rounding, which the bound is
        # lowered by: what is searched for above it then holds all that it may have hidden.
        for t in range(count):
            exact = abs(duals[t]) + abs(repair)
            bound += counts[t] * (duals[t] + repair - DUAL_ROUNDING * exact)
            scale = max(scale, abs(duals[t]))
        if bound > best:
            best = bound
            for t in range(count):
                work.duals[work.types.rank[t]] = duals[t] + repair
        # Optimal but for rounding, or the bound meets the known release.
        if reduced >= -1e-13 * scale or best >= most:
            break
        if not _pivot(simplex, sets, rules.k, count, prefix, at, reduced):
            break
    return best


@kernel
def _start(simplex: Simplex, counts: NDArray[np.int64], sets: RowSets, k: int, count: int) -> None:
    """Begin with a column of its own for each type, costlier than any set."""
    costliest = 0.0
    for at in range(sets.begin[sets.held[0]]):
        costliest = max(costliest, abs(sets.costs[at]))
    for t in range(count):
        simplex.duals[t] = 2.0 * costliest
        simplex.amounts[t] = counts[t] * (1.0 + _SPREAD * ((t * 7 + 3) % 11 + t / 64.0))
        for other in range(count):
            simplex.inverse[t, other] = 0.0
        simplex.inverse[t, t] = 1.0


@kernel
def _cheapest_set(sets: RowSets, duals: NDArray[np.float64], k: int) -> tuple[int, int, float]:
    """Return the set of least reduced cost: what it shares, its place, and the cost."""
    best, best_prefix, best_at = np.inf, 0, 0
    for prefix in range(sets.held[0]):
        dual_sum = 0.0
        for at in range(k - 1):
            dual_sum += duals[sets.shared[prefix, at]]
        limit = best + dual_sum
        for at in range(sets.begin[prefix], sets.begin[prefix + 1]):
            cost = sets.costs[at] - duals[sets.last[at]]
            if cost < limit:
                limit, best_prefix, best_at = cost, prefix, at
        best = limit - dual_sum
    return best_prefix, best_at, best


@kernel
def _pivot(
    simplex: Simplex, sets: RowSets, k: int, count: int, prefix: int, at: int, reduced: float
) -> bool:
    """Bring a set into the basis; false if the numbers do not allow it."""
    inverse, amounts, column = simplex.inverse, simplex.amounts, simplex.column
    last = sets.last[at]
    leaving, least = -1, np.inf
    for row in range(count):
        value = inverse[row, last]
        for one in range(k - 1):
            value += inverse[row, sets.shared[prefix, one]]
        column[row] = value
        if value > _TINY:
            ratio = amounts[row] / value
            if ratio < least:
                least, leaving = ratio, row
    if leaving < 0:
        return False
    scale = 1.0 / column[leaving]
    for t in range(count):
        inverse[leaving, t] *= scale
        simplex.duals[t] += reduced * inverse[leaving, t]
    amounts[leaving] = least
    for row in range(count):
        share = column[row]
        if row == leaving or share == 0.0:
            continue
        amounts[row] = max(0.0, amounts[row] - share * least)
        for t in range(count):
            inverse[row, t] -= share * inverse[leaving, t]
    return True
