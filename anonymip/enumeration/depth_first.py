"""Depth-first search for the sets of row types whose reduced cost is below a cutoff.

The one search of the package for sets under duals, for losses that have tables. A set grows by one
row at a time, types never descending, so that each multiset of types is met once. What may follow
is filtered on the way down: a type stays only if the set with it may still become a wanted one.

With a monotone record loss c, duals d in falling order and a set S to which x was added, a set T of
t rows that contains both has a reduced cost of at least t c(S + x) - d(S + x) - (the t - |S| - 1
highest duals of the rows that may follow). Limits are infinite losses and types in conflict.

A call can be gone on from, so that the caller may lower the cutoff, make room, take out what was
found, or give up. A search begins with the empty set, or with a row that every set holds: the
dual of one row may rise by the least reduced cost of the sets that hold it.
"""

from __future__ import annotations

import numpy as np

from anonymip.enumeration.search_state import (
    Followers,
    SearchPath,
    SearchRows,
    SearchRules,
    SetsFound,
)
from anonymip.objectives.kernels.growing_sets import add_row, empty_set, losses_with
from anonymip.objectives.language.tables import LossTables
from anonymip.recodings.rules.diversity_counts import (
    count_in,
    may_be_diverse,
    start_counts,
    take_back,
)
from anonymip.runtime.kernels import kernel

#: What a call ends with: all sets were met; the set at hand has no room among those found; there
#: may be no room for what follows it; no more nodes are allowed. A call may follow all but the
#: first.
COMPLETE, FULL, CRAMPED, OUT_OF_NODES = 0, 1, 2, 3
#: Places of `SearchPath.depth`: rows of the partial set, and how many of them every set holds.
DEPTH, GIVEN = 0, 1


@kernel
def begin_search(
    tables: LossTables,
    rows: SearchRows,
    rules: SearchRules,
    path: SearchPath,
    followers: Followers,
    count: int,
    given: int,
    cutoff: float,
) -> None:
    """Begin a search among the first `count` types.

    Parameters
    ----------
    followers
        With room for twice as many.
    given
        A type that every set holds, and that all types may follow; -1 for none.
    cutoff
        The highest that the search is to have.
    """
    empty_set(path.sets, 0)
    path.counts.held[:] = 0
    start_counts(path.counts)
    held = 0
    for row in range(count):
        path.used[row] = 0
        if len(rows.conflicts) == 0 or not rows.conflicts[row, row]:
            followers.rows[held] = row
            held += 1
    path.duals[0], path.at[0], path.end[0] = 0.0, 0, held
    path.depth[DEPTH] = path.depth[GIVEN] = 0
    if given < 0:
        losses_with(tables, rows.terms, path.sets, 0, followers.rows, 0, held, followers.losses)
        return
    path.depth[DEPTH] = path.depth[GIVEN] = 1
    path.members[0] = given
    count_in(rows.diversity, path.counts, given, 1, 0, 1)
    _enter(rows, path, 0)
    _list_followers(tables, rows, rules, path, followers, 0, 1, cutoff)


@kernel
def search_sets(
    tables: LossTables,
    rows: SearchRows,
    rules: SearchRules,
    path: SearchPath,
    followers: Followers,
    found: SetsFound,
    cutoff: float,
    max_nodes: int,
) -> int:
    """Go on with a search and return what it ends with.

    Parameters
    ----------
    tables, rows, rules, path, followers
        With which it was begun; of more values than a limit allows the loss is infinite.
    found
        Gets the sets. Where it is full, `path.members` is the set at hand.
    cutoff
        Reduced costs from here on are not wanted; it may fall from call to call.
    max_nodes
        Partial sets looked at, of all calls, at which to end.

    Notes
    -----
    Complexity: O(m) time for each type that may follow a partial set looked at.
    """
    depth = path.depth[DEPTH]
    while True:
        # Back to the last partial set that something may still follow.
        while path.at[depth] == path.end[depth]:
            if depth == path.depth[GIVEN]:
                path.depth[DEPTH] = depth
                return COMPLETE
            depth -= 1
            path.used[path.members[depth]] -= 1
            take_back(rows.diversity, path.counts, path.members[depth])
        at, size = path.at[depth], depth + 1
        # Neither the partial set with this row nor a larger one by later rows can be wanted.
        if not _promising(rows, rules, path, followers, depth, cutoff):
            path.at[depth] += 1
            continue
        # The next call meets this row again unless there is room for all that it brings about.
        row, loss = followers.rows[at], followers.losses[at]
        path.depth[DEPTH], path.members[depth] = depth, row
        part = _multiple(rules, size) * loss
        wanted = size >= rules.smallest and part - (path.duals[depth] + rows.duals[row]) < cutoff
        count_in(rows.diversity, path.counts, row, 1, depth, size)
        wanted = wanted and may_be_diverse(rows.diversity, path.counts, size, size, size)
        ends = COMPLETE
        if wanted and not _has_room(found, size):
            ends = FULL
        elif 2 * path.end[depth] - at > len(followers.rows):
            ends = CRAMPED
        elif path.nodes[0] >= max_nodes:
            ends = OUT_OF_NODES
        if ends != COMPLETE:
            take_back(rows.diversity, path.counts, row)
            return ends
        path.nodes[0] += 1
        path.at[depth] += 1
        if wanted:
            _append(path, found, size, part)
        # A largest set is left as it was met: what it covers is of no more use.
        if size < rules.largest:
            _enter(rows, path, depth)
            depth = size
            _list_followers(tables, rows, rules, path, followers, at, depth, cutoff)
        else:
            take_back(rows.diversity, path.counts, row)


@kernel
def _multiple(rules: SearchRules, size: int) -> float:
    """Return how often the record loss of a set of `size` rows counts."""
    return float(size) if rules.summed else 1.0


@kernel
def _promising(
    rows: SearchRows,
    rules: SearchRules,
    path: SearchPath,
    followers: Followers,
    depth: int,
    cutoff: float,
) -> bool:
    """Return whether the partial set with the next row may become wanted by rows not before it."""
    at, end = path.at[depth], path.end[depth]
    types, copies, duals, used = followers.rows, rows.copies, rows.duals, path.used
    row, loss = types[at], followers.losses[at]
    size, dual_sum = depth + 1, path.duals[depth] + duals[row]
    left = copies[row] - used[row] - 1
    step = loss if rules.summed else 0.0
    while True:
        if size >= rules.smallest:
            if not rules.pruned or _multiple(rules, size) * loss - dual_sum < cutoff:
                return True
            # Further rows cost more than their duals, and no later one has a higher dual.
            if step >= duals[row]:
                return False
        if size == rules.largest:
            return False
        while left == 0:
            at += 1
            if at == end:
                return False
            row = types[at]
            left = copies[row] - used[row]
        dual_sum += duals[row]
        left -= 1
        size += 1


@kernel
def _has_room(found: SetsFound, size: int) -> bool:
    """Return whether there is room for a set of `size` rows."""
    return found.held[0] < len(found.sizes) and found.held[1] + size <= len(found.members)


@kernel
def _append(path: SearchPath, found: SetsFound, size: int, loss: float) -> None:
    """Append the set at hand to those found."""
    at, begin = found.held[0], found.held[1]
    found.sizes[at], found.losses[at] = size, loss
    for member in range(size):
        found.members[begin + member] = path.members[member]
    found.held[0] += 1
    found.held[1] += size


@kernel
def _enter(rows: SearchRows, path: SearchPath, depth: int) -> None:
    """Let the partial set grow by the row at hand."""
    row = path.members[depth]
    path.used[row] += 1
    path.duals[depth + 1] = path.duals[depth] + rows.duals[row]
    add_row(rows.terms, path.sets, depth, depth + 1, row)


@kernel
def _list_followers(
    tables: LossTables,
    rows: SearchRows,
    rules: SearchRules,
    path: SearchPath,
    followers: Followers,
    first: int,
    size: int,
    cutoff: float,
) -> None:
    """List what may follow the row just added, out of what could follow before it."""
    # Arrays that the loops read are taken out of their tuples once: that is felt.
    types, losses, top = followers.rows, followers.losses, path.top
    copies, duals, used = rows.copies, rows.duals, path.used
    added, last = path.members[size - 1], path.end[size - 1]
    path.at[size] = path.end[size] = last
    # What has rows left and no conflict with the row just added, with the losses that it makes.
    listed, conflicting = last, len(rows.conflicts) > 0
    for at in range(first, last):
        row = types[at]
        if copies[row] > used[row] and not (conflicting and rows.conflicts[added, row]):
            types[listed] = row
            listed += 1
    losses_with(tables, rows.terms, path.sets, size, types, last, listed, losses)
    # Of these, what may still lead to a wanted set of some size.
    if rules.pruned:
        _sum_top_duals(rows, rules, path, followers, first, size)
    dual_sum, least = path.duals[size], max(size + 1, rules.smallest)
    held, left = last, 0
    for at in range(last, listed):
        row, loss = types[at], losses[at]
        kept, grown = not rules.pruned, least
        while not kept and grown <= rules.largest:
            part = grown * loss if rules.summed else loss
            kept = part - (dual_sum + duals[row]) - top[grown - size - 1] < cutoff
            grown += 1
        if kept and loss < np.inf:
            types[held], losses[held] = row, loss
            held += 1
            left += copies[row] - used[row]
    # All of it together must suffice for the smallest set and for the diversity.
    reach = min(rules.largest, size + left)
    if reach >= rules.smallest and may_be_diverse(rows.diversity, path.counts, size, size, reach):
        path.end[size] = held


@kernel
def _sum_top_duals(
    rows: SearchRows,
    rules: SearchRules,
    path: SearchPath,
    followers: Followers,
    first: int,
    size: int,
) -> None:
    """Set `top[q]` to the sum of the q highest duals of the rows that may follow.

    Where there are fewer rows, the further sums are minus infinity: they are not reached.
    """
    q, most = 0, rules.largest - size
    path.top[0] = 0.0
    for at in range(first, path.end[size - 1]):
        row = followers.rows[at]
        for _ in range(min(rows.copies[row] - path.used[row], most - q)):
            path.top[q + 1] = path.top[q] + rows.duals[row]
            q += 1
        if q == most:
            return
    for rest in range(q + 1, most + 1):
        path.top[rest] = -np.inf
