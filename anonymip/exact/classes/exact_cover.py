"""The cheapest exact cover of the rows by listed sets: branch and bound with a memory.

What is left to cover is one word that packs the counts of all types. Branches are the sets that
hold the first type left; two partial covers that leave the same rows differ only in their cost.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Covered rows that are remembered at most; a power of two.
_MOST_MEMORIES = 1 << 15
#: Bits of the word that packs the counts.
_BITS = 62
#: Spreads the words over the memory, and the places that are tried for one.
_SPREAD = 0x1E3779B97F4A7C15
_TRIES = 8


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
