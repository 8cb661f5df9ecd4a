"""The sets of rows that a better release may hold, and the cheapest exact cover by them.

Sets are found depth first. One grows by one row at a time, types never descending, and what may
follow is filtered on the way down. The types come in the order of falling duals. With a monotone
record loss c a set of t rows that contains S loses at least t c(S); its reduced cost is at least
that less the duals of S and the t - |S| highest ones that may follow.

The cover is found by branch and bound with a memory. What is left to cover is one word that packs
the counts of all types. Branches are the sets that hold the first type left; two partial covers
that leave the same rows differ only in their cost.

Every array of the workspace is made once, for the largest sub-problem; a call allocates nothing.
"""

from __future__ import annotations

from math import comb
from typing import Annotated

import numpy as np

from anonymip.objectives.kernels.class_loss import ClassState, KernelRows, new_state
from anonymip.objectives.kernels.growing_sets import (
    ChosenRows,
    GrowingSets,
    add_row,
    choose_row,
    empty_set,
    losses_with,
    new_chosen_rows,
    new_growing_sets,
)
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    may_be_diverse,
    new_counts,
    take_back,
)
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Sets that are listed at most.
_MOST_SETS = 1 << 17
#: Sets of k rows in the linear relaxation at most.
_MOST_ROW_SETS = 1 << 18
#: Covered rows that are remembered at most; a power of two.
_MOST_MEMORIES = 1 << 15
#: Bits of the word that packs the counts.
_BITS = 62
#: Spreads the words over the memory, and the places that are tried for one.
_SPREAD = 0x1E3779B97F4A7C15
_TRIES = 8


class SmallRules(Packed):
    """What classes lose, and what they must keep."""

    rows: KernelRows  # all rows, and the loss
    k: int  # fewest rows of a class
    summed: bool  # whether the losses of the records are summed; else the largest counts
    diversity: DiversityRule  # what a class must hold of the sensitive columns; of all rows


class Packing(Packed):
    """How the counts of all row types are packed into one word."""

    counts: Annotated[Ints, "most"]  # rows of each type
    #: Where the count of a type lies; its lowest bit there, and all of its bits.
    shift: Annotated[Ints, "most"]
    ones: Annotated[Ints, "most"]
    fields: Annotated[Ints, "most"]
    tops: Annotated[Ints, "1"]  # the highest bit of every count


class FoundSets(Packed):
    """The sets that a better release may hold."""

    packed: Annotated[Ints, "capacity"]  # counts of their types in one word
    #: Reduced costs; where the largest loss counts, record losses.
    costs: Annotated[Floats, "capacity"]
    begin: Annotated[Ints, "most + 1"]  # where the sets begin whose first type is this one
    held: Annotated[Ints, "1"]  # how many there are


class CoverSearch(Packed):
    """The partial cover of the search; the first index is the number of its sets."""

    left: Annotated[Ints, "deep"]  # counts of the types that are not covered yet, in one word
    cost: Annotated[Floats, "deep"]  # cost of the sets so far
    #: The first type left, and the next set that holds it.
    first: Annotated[Ints, "deep"]
    at: Annotated[Ints, "deep"]
    #: Sets of the partial cover and of the best release, in words.
    sets: Annotated[Ints, "deep"]
    best: Annotated[Ints, "deep"]
    #: What was left, the least cost at which it was, and in which call.
    known: Annotated[Ints, "_MOST_MEMORIES"]
    known_cost: Annotated[Floats, "_MOST_MEMORIES"]
    known_stamp: Annotated[Ints, "_MOST_MEMORIES"]
    stamp: Annotated[Ints, "1"]  # number of the call


class TypeRows(Packed):
    """The row types of a sub-problem, highest duals first, as the search reads them."""

    #: Types in the order in which they were merged, highest duals first.
    rank: Annotated[Ints, "most"]
    duals: Annotated[Floats, "most"]  # dual of a row of each type
    rows: ChosenRows  # a row of each
    used: Annotated[Ints, "most"]  # rows of each type in the partial set
    diversity: DiversityRule  # what a class must hold of the sensitive columns; of the types


class SetSearch(Packed):
    """The partial set of the search and what may follow; the first index counts its rows."""

    members: Annotated[Ints, "deep"]  # types of its rows
    #: Duals summed; counts of its types in one word.
    dual_sum: Annotated[Floats, "deep"]
    packed: Annotated[Ints, "deep"]
    sets: GrowingSets  # what it covers
    #: Types that may follow, and the record loss of the partial set with each.
    followers: Annotated[Ints, "deep, most"]
    losses: Annotated[Floats, "deep, most"]
    #: How many may follow, and which is next.
    end: Annotated[Ints, "deep"]
    at: Annotated[Ints, "deep"]
    top: Annotated[Floats, "deep"]  # highest duals of what may follow, summed
    counts: ValueCounts  # of the sensitive values, a level for each number of rows


class RowSets(Packed):
    """All sets of k rows, those together that differ in the last row only."""

    shared: Annotated[Ints, "lines, k - 1"]  # types of the rows before the last one, ascending
    begin: Annotated[Ints, "lines + 1"]  # where the sets begin that share them
    #: Type of the last row, and loss of the set.
    last: Annotated[Ints, "capacity"]
    costs: Annotated[Floats, "capacity"]
    held: Annotated[Ints, "1"]  # how many are shared


class Simplex(Packed):
    """A basis of the linear relaxation over the sets of k rows."""

    inverse: Annotated[Floats, "most, most"]  # of the basis matrix
    amounts: Annotated[Floats, "most"]  # values of the basic columns
    duals: Annotated[Floats, "most"]  # duals of the types
    column: Annotated[Floats, "most"]  # the entering column in terms of the basis


class FirstRelease(Packed):
    """Workspace of the first release and the first bound."""

    #: Least loss of a cut of the rows up to a place, and where its last class begins.
    loss: Annotated[Floats, "deep"]
    begin: Annotated[Ints, "deep"]
    nearest: Annotated[Floats, "k"]  # losses with the nearest rows
    #: Of the sensitive values of a class; a class.
    counts: ValueCounts
    state: ClassState


class SmallWork(Packed):
    """Workspace for sub-problems of up to a number of rows, written over by every call."""

    #: Class of each row of the sub-problem, in the order in which they were given.
    labels: Annotated[Ints, "most"]
    result: Annotated[Floats, "2"]  # loss and lower bound
    nodes: Annotated[Ints, "1"]  # partial sets and partial covers looked at
    #: Places in the sub-problem, rows that are alike behind each other.
    order: Annotated[Ints, "most"]
    begin: Annotated[Ints, "deep"]  # where each type begins in it
    #: For each type, the dual of a row of it: summed over the rows of any class no more than its
    #: loss, or where the largest loss counts, what a record loses at least.
    duals: Annotated[Floats, "most"]
    scratch: Annotated[Ints, "deep"]  # for a moment
    first: FirstRelease  # of the first release
    #: Of the search.
    packing: Packing
    types: TypeRows
    search: SetSearch
    found: FoundSets
    cover: CoverSearch
    #: Of the linear relaxation.
    row_sets: RowSets
    simplex: Simplex


def new_small_work(rules: SmallRules, most: int) -> SmallWork:
    """Return the workspace of sub-problems of up to `most` rows."""
    deep, tables = most + 1, rules.rows.tables
    largest = most if rules.diversity.values.shape[1] else min(most, 2 * rules.k - 1)
    possible = sum(comb(most, size) for size in range(rules.k, largest + 1))
    counts, state = new_counts(rules.diversity), new_state(tables, 1)
    growing = new_growing_sets(tables, deep, len(tables.set_columns))
    return SmallWork.of_sizes(
        most=most,
        deep=deep,
        first=FirstRelease.of_sizes(deep=deep, k=rules.k, counts=counts, state=state),
        packing=Packing.of_sizes(most=most),
        types=TypeRows.of_sizes(
            most=most,
            rows=new_chosen_rows(tables, most),
            diversity=rules.diversity.of_rows(np.zeros(most, np.int64)),
        ),
        search=SetSearch.of_sizes(
            most=most, deep=deep, sets=growing, counts=new_counts(rules.diversity, deep)
        ),
        found=FoundSets.of_sizes(most=most, capacity=min(_MOST_SETS, max(possible, 1))),
        cover=CoverSearch.of_sizes(deep=deep),
        row_sets=RowSets.of_sizes(
            k=rules.k,
            lines=min(comb(most, rules.k - 1), _MOST_ROW_SETS),
            capacity=min(comb(most, rules.k), _MOST_ROW_SETS),
        ),
        simplex=Simplex.of_sizes(most=most),
    )


@kernel
def rank_types(rules: SmallRules, work: SmallWork, chosen: Ints, count: int) -> bool:
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
        choose_row(rules.rows, types.rows, t, row)
        # Value by value: to assign rows of arrays takes numba two seconds to compile.
        for column in range(types.diversity.values.shape[1]):
            types.diversity.values[t, column] = rules.diversity.values[row, column]
    empty_set(work.search.sets, 0)
    return pack_counts(work.packing, count)


@kernel
def list_sets(
    rules: SmallRules, work: SmallWork, count: int, size: int, cutoff: float, max_nodes: int
) -> bool:
    """List the sets of k or more rows whose reduced cost is below the cutoff, by first type.

    False if they are too many, or the partial sets to look at. Without duals where the largest loss
    counts: there a cost is a record loss.
    """
    types, search, found = work.types, work.search, work.found
    largest = size if rules.diversity.values.shape[1] else min(size, 2 * rules.k - 1)
    # No rows are in the partial set; all types may be its first, in the order of falling duals.
    for t in range(count):
        types.used[t] = 0
    search.counts.held[:] = 0
    found.held[0] = 0
    for t in range(count):
        search.followers[0, t] = t
    followers, losses = search.followers[0], search.losses[0]
    losses_with(types.rows.terms, search.sets, 0, followers, 0, count, losses)
    search.at[0], search.end[0] = 0, count
    depth = 0
    while True:
        # Back to the last partial set that something may still follow; what was counted for the
        # rows after it is taken back.
        while search.at[depth] == search.end[depth]:
            if depth == 0:
                found.begin[count] = found.held[0]
                return True
            depth -= 1
            types.used[search.members[depth]] -= 1
            take_back(types.diversity, search.counts, search.members[depth])
        at = search.at[depth]
        search.at[depth] += 1
        t, loss = search.followers[depth, at], search.losses[depth, at]
        # The sets of a first type lie side by side: those of the types before are complete.
        if depth == 0:
            found.begin[t] = found.held[0]
        # Neither the partial set with this row nor a larger one by later types can be wanted.
        if not _promising(rules, work, depth, at, largest, cutoff):
            continue
        if work.nodes[0] >= max_nodes:
            return False
        work.nodes[0] += 1
        enter_row(types, work.packing, search, depth, t)
        count_in(types.diversity, search.counts, t, 1, depth, depth + 1)
        depth += 1
        # The partial set may itself be a class.
        if depth >= rules.k:
            cost = depth * loss - search.dual_sum[depth] if rules.summed else loss
            if cost < cutoff and may_be_diverse(
                types.diversity, search.counts, depth, depth, depth
            ):
                held = found.held[0]
                if held == len(found.costs):
                    return False
                found.packed[held] = search.packed[depth]
                found.costs[held] = cost
                found.held[0] += 1
        # It may grow further by types from its last one on.
        _list_followers(rules, work, depth, at, largest, cutoff)


@kernel
def enter_row(types: TypeRows, packing: Packing, search: SetSearch, depth: int, t: int) -> None:
    """Add a row to the partial set."""
    size = depth + 1
    search.members[depth] = t
    types.used[t] += 1
    search.dual_sum[size] = search.dual_sum[depth] + types.duals[t]
    search.packed[size] = search.packed[depth] + packing.ones[t]
    add_row(types.rows.terms, search.sets, depth, size, t)


@kernel
def _promising(
    rules: SmallRules, work: SmallWork, depth: int, at: int, largest: int, cutoff: float
) -> bool:
    """Return whether the partial set with a row may become a wanted one by rows not before it."""
    counts, types, search = work.packing.counts, work.types, work.search
    t, loss = search.followers[depth, at], search.losses[depth, at]
    grown, dual_sum = depth + 1, search.dual_sum[depth] + types.duals[t]
    left = counts[t] - types.used[t] - 1
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
            left = counts[t] - types.used[t]
        dual_sum += types.duals[t]
        left -= 1
        grown += 1


@kernel
def _list_followers(
    rules: SmallRules, work: SmallWork, size: int, first: int, largest: int, cutoff: float
) -> None:
    """List what may follow the row just added, out of what could follow before it."""
    counts, types, search = work.packing.counts, work.types, work.search
    search.at[size] = search.end[size] = 0
    if size == largest:
        return
    # `highest[q]` is the most that q further rows can take off the cost: the sum of the q highest
    # duals of the rows that may follow, minus infinity where there are fewer rows.
    q, most, highest = 0, largest - size, search.top
    highest[0] = 0.0
    for at in range(first, search.end[size - 1]):
        t = search.followers[size - 1, at]
        for _ in range(min(counts[t] - types.used[t], most - q)):
            highest[q + 1] = highest[q] + types.duals[t]
            q += 1
        if q == most:
            break
    for rest in range(q + 1, most + 1):
        highest[rest] = -np.inf
    followers, losses = search.followers[size], search.losses[size]
    # Types with rows left; none of those before can come back further down.
    count = 0
    for at in range(first, search.end[size - 1]):
        t = search.followers[size - 1, at]
        if counts[t] > types.used[t]:
            followers[count] = t
            count += 1
    losses_with(types.rows.terms, search.sets, size, followers, 0, count, losses)
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
                top = highest[grown - size - 1]
                if grown * loss - (dual_sum + types.duals[t]) - top < cutoff:
                    kept = True
                    break
        if kept:
            followers[held], losses[held] = t, loss
            held += 1
            left += counts[t] - types.used[t]
    reach = min(largest, size + left)
    # What is left must suffice for k rows and for the diversity.
    if reach >= rules.k and may_be_diverse(types.diversity, search.counts, size, size, reach):
        search.end[size] = held


@kernel
def pack_counts(packing: Packing, count: int) -> bool:
    """Give every type's count its bits; false if they do not fit in one word."""
    shift = 0
    packing.tops[0] = 0
    for t in range(count):
        bits = 0
        while packing.counts[t] >> bits:
            bits += 1
        if shift + bits > _BITS:
            return False
        packing.shift[t] = shift
        packing.ones[t] = 1 << shift
        packing.fields[t] = ((1 << bits) - 1) << shift
        shift += bits
        packing.tops[0] |= 1 << (shift - 1)
    return True


@kernel
def sort_found(found: FoundSets, count: int) -> None:
    """Sort the sets of each first type by their cost, the cheapest first."""
    packed, costs = found.packed, found.costs
    for t in range(count):
        begin, end = found.begin[t], found.begin[t + 1]
        gap = 1
        while gap < (end - begin) // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for at in range(begin + gap, end):
                cost, word, to = costs[at], packed[at], at
                while to - gap >= begin and costs[to - gap] > cost:
                    costs[to], packed[to] = costs[to - gap], packed[to - gap]
                    to -= gap
                costs[to], packed[to] = cost, word
            gap //= 3


@kernel
def cheapest_cover(
    summed: bool,
    packing: Packing,
    found: FoundSets,
    cover: CoverSearch,
    count: int,
    gap: float,
    slack: float,
    nodes: Ints,
    max_nodes: int,
) -> tuple[int, bool]:
    """Find the cheapest cover below `gap`.

    `summed`: whether costs of sets add up; else the largest counts. `packing, found, cover`: counts
    of the types; the sets, those of each first type by cost; workspace. `count`: types. `gap,
    slack`: covers that cost this much, or less by no more than the slack, are not looked for.
    `nodes, max_nodes`: (1,) partial covers looked at, and at how many to end. Returns: how many
    sets the best cover has, written to `best`, 0 if there is none; and whether the search came to
    its end.
    """
    cover.stamp[0] += 1
    # Nothing is covered yet, and the first set must hold the first type.
    whole = 0
    for t in range(count):
        whole += packing.counts[t] * packing.ones[t]
    cover.left[0] = whole
    cover.cost[0] = 0.0 if summed else -np.inf
    cover.first[0], cover.at[0] = 0, found.begin[0]
    depth, best = 0, 0
    while depth >= 0:
        # Each round looks at one set that holds the first type left of the partial cover on top.
        at, t = cover.at[depth], cover.first[depth]
        if at == found.begin[t + 1]:
            depth -= 1
            continue
        cover.at[depth] += 1
        own = found.costs[at]
        cost = cover.cost[depth] + own if summed else max(cover.cost[depth], own)
        if cost >= gap - slack:
            # The sets come by cost: no later one is cheaper.
            depth -= 1
            continue
        # The counts are subtracted all at once: a borrow in any of them shows in its highest bit,
        # and means that the set holds more rows of a type than are left.
        word, left = found.packed[at], cover.left[depth]
        rest = left - word
        if (~left & word | ~(left ^ word) & rest) & packing.tops[0]:
            continue
        if nodes[0] >= max_nodes:
            return best, False
        nodes[0] += 1
        cover.sets[depth] = word
        # A cheaper cover than all before: from now on only cheaper ones than this are looked for.
        if rest == 0:
            gap, best = cost, depth + 1
            for one in range(best):
                cover.best[one] = cover.sets[one]
            continue
        # What follows from the same rows left was searched before, at no higher cost.
        if _is_known(cover, rest, cost):
            continue
        # One set more; the next branches are the sets that hold the first type left now.
        depth += 1
        cover.left[depth], cover.cost[depth] = rest, cost
        while rest & packing.fields[t] == 0:
            t += 1
        cover.first[depth], cover.at[depth] = t, found.begin[t]
    return best, True


@kernel
def _is_known(cover: CoverSearch, left: int, cost: float) -> bool:
    """Return whether the same rows were left at no higher cost before; remember it if not."""
    places = len(cover.known)
    place = ((left * _SPREAD) >> 32) & (places - 1)
    free = place
    for _ in range(_TRIES):
        if cover.known_stamp[place] != cover.stamp[0]:
            free = place
            break
        if cover.known[place] == left:
            if cover.known_cost[place] <= cost:
                return True
            free = place
            break
        place = (place + 1) & (places - 1)
    cover.known[free], cover.known_cost[free] = left, cost
    cover.known_stamp[free] = cover.stamp[0]
    return False
