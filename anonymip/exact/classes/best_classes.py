"""The best classes of some twenty rows and more, compiled: monotone tables, no limits.

A first release is the best cut of the sorted rows. Duals bound what any release loses: those of the
nearest rows, and where losses are summed the better ones of the linear relaxation over the sets of
k rows. What a release below the known one may hold is listed under them, and the cheapest exact
cover by these sets is the best release.

The duals of the relaxation: those under which no set of k rows has a negative reduced cost leave
none to larger sets either. With a monotone record loss c a set T of t rows costs t c(T), on average
over its subsets S of k rows at least t/k times k c(S), and they hold each of its rows alike. So
numbers p of any sign with p(S) <= k c(S) for all S bound every release by their sum, and the best
ones are the duals of the cheapest fractional partition into sets of k rows. A simplex with an
explicit inverse finds them. Nothing relies on its accuracy: whatever duals it has are repaired by
what the worst set asks for.
"""

from __future__ import annotations

import numpy as np

from anonymip.exact.classes.set_search import (
    RowSets,
    Simplex,
    SmallRules,
    SmallWork,
    cheapest_cover,
    enter_row,
    list_sets,
    rank_types,
    sort_found,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    kernel_rows,
    open_class,
    pair_loss,
    record_loss,
)
from anonymip.objectives.kernels.growing_sets import losses_with
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.recodings.rules.diversity_counts import diversity_rule, rows_are_diverse
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel
from anonymip.tolerances import DUAL_ROUNDING, VISIBLE_SLACK

#: What a call ends with.
PROVEN, CAPPED, INFEASIBLE = 0, 1, 2

#: Releases that are better by less than this share of the loss are not looked for.
_ROUNDING = 1e-12
#: The first width of the search as a share of the gap, and by what it grows.
_FIRST_WIDTH, _WIDER = 1 / 32, 2.0
#: Pivots for each type at most; hardly ever are there more than five.
_PIVOTS = 30
#: Smaller elements are no pivots.
_TINY = 1e-9
#: The share by which right hand sides differ from the counts, against ties.
_SPREAD = 1e-7


def compiles(problem: Problem) -> bool:
    """Return whether the kernel solves the problem: classes, monotone tables, no limits."""
    compiled, recoding = problem.compiled, problem.recoding
    return (
        isinstance(recoding, EquivalenceClasses)
        and not recoding.suppression
        and compiled.has_tables
        and compiled.monotone
        and not problem.limits
    )


def small_rules(problem: Problem, records: Ints) -> SmallRules:
    """Return what classes of the records, in their order, lose and must keep."""
    return SmallRules(
        kernel_rows(problem.microdata, problem.compiled.tables, records),
        problem.k,
        problem.compiled.aggregate == "sum",
        diversity_rule(problem.diversity, problem.microdata).of_rows(records),
    )


@kernel
def solve_rows(rules: SmallRules, work: SmallWork, chosen: Ints, size: int, max_nodes: int) -> int:
    """Find the best classes of some rows and return PROVEN, CAPPED or INFEASIBLE.

    `rules`: of a problem that :func:`compiles`. `work`: for at least `size` rows.
    Holds the answer afterwards: `labels` the classes, numbered in the order in which they first
    appear; `result` the loss and a lower bound on it. `chosen`: the rows of the sub-problem, the
    first `size` of them. `size`: how many. `max_nodes`: partial sets and partial covers to look at
    before it ends with the best that it has.
    """
    work.nodes[0] = 0
    work.result[0], work.result[1] = np.inf, np.inf
    # A release by the best cut, and a bound by the nearest rows.
    types = merge_types(rules, work, chosen, size)
    if not cut_sorted_rows(rules, work, chosen, size):
        return INFEASIBLE
    _number_classes(work, size)
    state = work.first.state
    loss = labelled_loss(rules.rows, state, rules.summed, chosen, size, work.labels)
    bound = nearest_duals(rules, work, chosen, types)
    work.result[0], work.result[1] = loss, min(bound, loss)
    slack = _ROUNDING * (abs(loss) + abs(bound))
    if loss - bound <= slack:
        work.result[1] = loss
        return PROVEN
    # Better duals by the linear relaxation, unless its sets are too many or the largest counts.
    if not rank_types(rules, work, chosen, types):
        return CAPPED
    relaxed = solve_relaxation(rules, work, types, loss) if rules.summed else -np.inf
    if relaxed > -np.inf:
        bound = relaxed
    return _search(rules, work, chosen, size, types, bound, max_nodes)


@kernel
def _search(
    rules: SmallRules,
    work: SmallWork,
    chosen: Ints,
    size: int,
    count: int,
    dual_bound: float,
    max_nodes: int,
) -> int:
    """Search for a better release than the known one, or prove that there is none.

    The duals give `dual_bound`. A release that costs less than this and a width more is made of
    sets whose reduced costs are below the width, which grows until there is a release, or up to
    the gap.
    """
    loss, packing, found = work.result[0], work.packing, work.found
    # Sums of duals carry rounding errors: losses that differ by less than the slack count as equal,
    # and a slack that a user could see ends the search without a proof.
    total = 0.0
    for t in range(count):
        total += packing.counts[t] * abs(work.duals[work.types.rank[t]])
    slack = _ROUNDING * abs(loss) + DUAL_ROUNDING * total
    work.result[1] = max(work.result[1], min(dual_bound - slack, loss))
    if slack > VISIBLE_SLACK * abs(loss):
        return CAPPED
    if loss - work.result[1] <= 2.0 * slack:
        work.result[1] = loss
        return PROVEN
    # The duals have changed since the types were ranked.
    rank_types(rules, work, chosen, count)
    width = (loss - dual_bound) * _FIRST_WIDTH
    # Where the largest loss counts the cost of a set is its record loss itself.
    paid = dual_bound if rules.summed else 0.0
    if not rules.summed:
        work.types.duals[:count] = 0.0
    while True:
        width = min(width, loss - dual_bound)
        most = dual_bound + width - paid
        # All sets that a release within the width can hold; the slack is on the safe side.
        if not list_sets(rules, work, count, size, most - slack, max_nodes):
            return CAPPED
        sort_found(found, count)
        sets, complete = cheapest_cover(
            rules.summed, packing, found, work.cover, count, most, slack, work.nodes, max_nodes
        )
        # The cover is better than the known release.
        if sets > 0:
            following = work.scratch
            for t in range(count):
                following[t] = work.begin[work.types.rank[t]]
            for label in range(sets):
                for t in range(count):
                    copies = (work.cover.best[label] & packing.fields[t]) >> packing.shift[t]
                    for _ in range(copies):
                        work.labels[work.order[following[t]]] = label
                        following[t] += 1
            _number_classes(work, size)
            work.result[0] = labelled_loss(
                rules.rows, work.first.state, rules.summed, chosen, size, work.labels
            )
        if not complete:
            return CAPPED
        # The best release within the width is the best of all; and at the full gap none is better
        # than the known one.
        if sets > 0 or width == loss - dual_bound:
            work.result[1] = work.result[0]
            return PROVEN
        # No release lies within the width: its end is a bound.
        work.result[1] = max(work.result[1], dual_bound + width - slack)
        width *= _WIDER


@kernel
def _number_classes(work: SmallWork, size: int) -> None:
    """Give the classes numbers in the order in which they first appear."""
    new, count = work.scratch, 0
    for at in range(size):
        new[at] = -1
    for at in range(size):
        label = work.labels[at]
        if new[label] < 0:
            new[label] = count
            count += 1
        work.labels[at] = new[label]


@kernel
def labelled_loss(
    rows: KernelRows, state: ClassState, summed: bool, places: Ints, size: int, labels: Ints
) -> float:
    """Return the loss of the classes that rows are labelled with; below 0 they are in none."""
    total = 0.0 if summed else -np.inf
    for first in range(size):
        label = labels[first]
        if label < 0:
            continue
        # A class is counted at its first row: from another one the scan meets an earlier row.
        members = 0
        for at in range(size):
            if labels[at] != label:
                continue
            if at < first:
                break
            if members == 0:
                open_class(rows, state, places[at])
            else:
                join_class(rows, state, places[at])
            members += 1
        if members > 0:
            loss = record_loss(rows.tables, state)
            total = total + members * loss if summed else max(total, loss)
    return total


@kernel
def compare_rows(rules: SmallRules, one: int, other: int) -> int:
    """Return whether a row comes before (-1) or behind (1) another, or is alike (0)."""
    for r in range(rules.rows.range_values.shape[1]):
        difference = rules.rows.range_values[one, r] - rules.rows.range_values[other, r]
        if difference != 0.0:
            return -1 if difference < 0.0 else 1
    for s in range(rules.rows.set_codes.shape[1]):
        step = rules.rows.set_codes[one, s] - rules.rows.set_codes[other, s]
        if step != 0:
            return -1 if step < 0 else 1
    for p in range(rules.rows.pair_codes.shape[1]):
        step = rules.rows.pair_codes[one, p] - rules.rows.pair_codes[other, p]
        if step != 0:
            return -1 if step < 0 else 1
    sensitive = rules.diversity.values
    for c in range(sensitive.shape[1]):
        part = sensitive[one, c] - sensitive[other, c]
        if part != 0:
            return -1 if part < 0 else 1
    return 0


@kernel
def merge_types(rules: SmallRules, work: SmallWork, chosen: Ints, size: int) -> int:
    """Sort the rows, write the types and return how many there are."""
    order = work.order
    for place in range(size):
        at = place
        while at > 0:
            if compare_rows(rules, chosen[order[at - 1]], chosen[place]) <= 0:
                break
            order[at] = order[at - 1]
            at -= 1
        order[at] = place
    count = 0
    for at in range(size):
        if at == 0 or compare_rows(rules, chosen[order[at - 1]], chosen[order[at]]) != 0:
            work.begin[count] = at
            count += 1
    work.begin[count] = size
    return count


@kernel
def cut_sorted_rows(rules: SmallRules, work: SmallWork, chosen: Ints, size: int) -> bool:
    """Label the classes of the best cut of the sorted rows; false if no classes are allowed."""
    order, best, begin = work.order, work.first.loss, work.first.begin
    rows, counts = work.scratch, work.first.counts
    for at in range(size):
        rows[at] = chosen[order[at]]
    if size < rules.k or not rows_are_diverse(rules.diversity, counts, rows, 0, size):
        return False
    # Longer classes could be cut in two without loss; under a diversity the halves need not keep
    # it, and the length only limits the effort.
    ruled = rules.diversity.values.shape[1] > 0
    longest = 4 * rules.k - 1 if ruled else 2 * rules.k - 1
    best[0] = 0.0 if rules.summed else -np.inf
    for end in range(1, size + 1):
        best[end] = np.inf
    # When a start comes up, the best cut of all rows before it is known.
    for start in range(size - rules.k + 1):
        if best[start] == np.inf:
            continue
        # The class grows by one row at a time, so its loss is never computed afresh.
        open_class(rules.rows, work.first.state, rows[start])
        for end in range(start + 1, min(start + longest, size) + 1):
            if end > start + 1:
                join_class(rules.rows, work.first.state, rows[end - 1])
            if end - start < rules.k:
                continue
            loss = record_loss(rules.rows.tables, work.first.state)
            loss = best[start] + (end - start) * loss if rules.summed else max(best[start], loss)
            if loss >= best[end]:
                continue
            if not ruled or rows_are_diverse(rules.diversity, counts, rows, start, end):
                best[end] = loss
                begin[end] = start
    # Short classes alone may not keep the diversity, but all rows in one do.
    if best[size] == np.inf:
        begin[size] = 0
    # The classes are read off backwards.
    end, label = size, 0
    while end > 0:
        for at in range(begin[end], end):
            work.labels[order[at]] = label
        end = begin[end]
        label += 1
    return True


@kernel
def nearest_duals(rules: SmallRules, work: SmallWork, chosen: Ints, types: int) -> float:
    """Write what a record of each type loses at least; return the bound that this gives.

    A class of k rows holds one that is no nearer than the (k-1)-th nearest: by monotonicity every
    record of the class loses as much as a class of these two.
    """
    nearest, wanted = work.first.nearest, rules.k - 1
    bound = 0.0 if rules.summed else -np.inf
    for one in range(types):
        row = chosen[work.order[work.begin[one]]]
        own = work.begin[one + 1] - work.begin[one]
        alone = pair_loss(rules.rows, row, row)
        # Rows that are alike are the nearest; they take the first places.
        held = min(own - 1, wanted)
        for at in range(held):
            nearest[at] = alone
        # `nearest` holds the least losses so far, ascending; a row that is no nearer than the last
        # of a full list changes nothing, nor do its copies.
        if held < wanted:
            for other in range(types):
                if other == one:
                    continue
                loss = pair_loss(rules.rows, row, chosen[work.order[work.begin[other]]])
                for _ in range(work.begin[other + 1] - work.begin[other]):
                    if held == wanted and loss >= nearest[wanted - 1]:
                        break
                    at = min(held, wanted - 1)
                    while at > 0 and nearest[at - 1] > loss:
                        nearest[at] = nearest[at - 1]
                        at -= 1
                    nearest[at] = loss
                    held = min(held + 1, wanted)
        work.duals[one] = nearest[wanted - 1]
        bound = bound + own * work.duals[one] if rules.summed else max(bound, work.duals[one])
    return bound


@kernel
def list_row_sets(rules: SmallRules, work: SmallWork, count: int) -> bool:
    """List all sets of k rows by what they share up to the last row; false if they do not fit."""
    counts, types, search, sets = work.packing.counts, work.types, work.search, work.row_sets
    held, prefixes, depth = 0, 0, 0
    types.used[:count] = 0
    search.at[0], search.end[0] = 0, count
    while True:
        # All but the last row are chosen: the sets that share these rows are listed at once.
        if depth == rules.k - 1:
            first = search.members[depth - 1] if depth > 0 else 0
            followers, losses = search.followers[depth], search.losses[depth]
            free = 0
            for t in range(first, count):
                if counts[t] > types.used[t]:
                    followers[free] = t
                    free += 1
            if held + free > len(sets.costs) or prefixes + 1 == len(sets.begin):
                return False
            losses_with(types.rows.terms, search.sets, depth, followers, 0, free, losses)
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
            if counts[t] > types.used[t]:
                enter_row(types, work.packing, search, depth, t)
                depth += 1
                search.at[depth] = t
            continue
        # All sets with these first rows are listed: the last of them is replaced.
        depth -= 1
        if depth < 0:
            sets.held[0] = prefixes
            return True
        types.used[search.members[depth]] -= 1


@kernel
def solve_relaxation(rules: SmallRules, work: SmallWork, count: int, most: float) -> float:
    """Write the best duals of the types to `duals`; return their sum over all rows but rounding.

    Minus infinity if the sets of k rows are too many.

    `rules`: as in the sub-problem, where losses are summed. `work`: with the ranked types.
    `count`: types. `most`: bounds from here on are good enough. Complexity: for each pivot the
    types squared and the number of sets of k rows.
    """
    if not list_row_sets(rules, work, count):
        return -np.inf
    simplex, sets, counts = work.simplex, work.row_sets, work.packing.counts
    duals, best = simplex.duals, -np.inf
    # The basis begins with a column of its own for each type, costlier than any set.
    costliest = 0.0
    for at in range(sets.begin[sets.held[0]]):
        costliest = max(costliest, abs(sets.costs[at]))
    for t in range(count):
        duals[t] = 2.0 * costliest
        simplex.amounts[t] = counts[t] * (1.0 + _SPREAD * ((t * 7 + 3) % 11 + t / 64.0))
        for other in range(count):
            simplex.inverse[t, other] = 0.0
        simplex.inverse[t, t] = 1.0
    for _ in range(_PIVOTS * count + 1):
        # The set of least reduced cost: what it shares, and its place.
        reduced, prefix, at = np.inf, 0, 0
        for shared in range(sets.held[0]):
            dual_sum = 0.0
            for place in range(rules.k - 1):
                dual_sum += duals[sets.shared[shared, place]]
            limit = reduced + dual_sum
            for last in range(sets.begin[shared], sets.begin[shared + 1]):
                cost = sets.costs[last] - duals[sets.last[last]]
                if cost < limit:
                    limit, prefix, at = cost, shared, last
            reduced = limit - dual_sum
        # Each row shares in the worst reduced cost, so that the repaired duals are valid after any
        # pivot; the best of them are kept.
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
