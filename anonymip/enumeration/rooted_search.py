"""Depth-first search for the columns of least reduced cost: root by root, size by size.

A column is a multiset S of s row types that holds a root. With a monotone record loss c, duals d
and a partial set P that x joins, every column S of s rows that contains both has a reduced cost of
at least s c(P + x) - d(P + x) - (the s - |P| - 1 highest duals of the other rows that may join),
and more by the duals of the cuts that P + x alone pays.

What may join P is sorted by c(P + x). A branch fixes which type is the *furthest* one that joins:
only nearer ones stay, and copies of it, so that each multiset is met once and few rows are left
where the loss is still small. Of the cuts only what x itself adds is counted: what several rows add
is not the sum of what each adds alone. Limits are infinite losses and types in conflict.

A call can be gone on from, so that the caller may make room or give up. What it is given, where it
stands and what it found are plain arrays, kept from call to call: a kernel allocates nothing.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.objectives.kernels.growing_sets import (
    GrowingSets,
    TermRows,
    add_row,
    empty_set,
    losses_with,
    new_growing_sets,
)
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    may_be_diverse,
    new_counts,
    start_counts,
    take_back,
)
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Places of `RootedPath.place`: rows of the partial set, number of the root, size looked for, where
#: the columns of both begin among those found, and where their members begin.
DEPTH, ROOT, SIZE, FIRST, FIRST_MEMBER = 0, 1, 2, 3, 4


class SearchRows(Packed, read_only=True):
    """Row types."""

    #: (t,) dual of a row of each type, and how many rows it has.
    duals: Floats
    copies: Ints
    terms: TermRows  # the rows, as the loss reads them
    diversity: DiversityRule  # what a set must hold of the sensitive columns; of the types
    conflicts: Flags  # (t, t) types that never share a set; (0, 0) if all may


class RootedRules(Packed):
    """Which columns are looked for."""

    #: Fewest and most rows of a column, at least 2.
    smallest: int
    largest: int
    pruned: bool  # whether the record loss is monotone, so that partial sets can be cut off by it
    summed: bool  # whether a column of s rows costs s times its record loss, or once
    keep: int  # most columns kept of each root and size: the best ones
    nodes_a_size: int  # partial sets looked at for each root and size at which to give it up
    #: Whether a column is not wanted where one row less, not the root, is a column at least as
    #: good: under `summed`, and where no diversity is asked for, wherever a row's dual is not above
    #: the record loss.
    undominated: bool


class Roots(Packed):
    """Where to search: a row that each column holds, and what it may hold beside."""

    types: Ints  # (roots,) the roots
    #: (roots,) parts of `near`.
    begin: Ints
    end: Ints
    #: Types that columns of a root may hold: near[begin:end], in falling order of their duals.
    near: Ints
    below: Floats  # (roots,) reduced costs from here on are not wanted
    least: Floats  # (roots,) becomes a lower bound on the reduced costs of all columns of the root


class CutsOfRows(Packed):
    """Rank-1 cuts: columns pay the dual of a cut for every `divisor` of its members in the cut."""

    #: Cuts of the row type i: cuts[starts[i]:starts[i + 1]].
    starts: Ints
    cuts: Ints
    #: (cuts,) of each cut.
    divisors: Ints
    duals: Floats
    held: Ints  # (cuts,) workspace: members of the partial set in each cut


class RootedPath(Packed):
    """The partial set and what may follow; where there is one, the first index is its size."""

    place: Annotated[Ints, "5"]  # see `DEPTH` and those that follow it
    #: Partial sets looked at in all, and for the root and size at hand; how often a root and size
    #: was given up.
    nodes: Annotated[Ints, "3"]
    #: Reduced costs from here on are not wanted for the root and size at hand.
    cutoff: Annotated[Floats, "1"]
    members: Annotated[Ints, "deep"]  # types of its rows
    #: Its record loss, the duals of its rows and those of its cuts, summed, and the lowest dual of
    #: its rows beside the root.
    losses: Annotated[Floats, "deep"]
    duals: Annotated[Floats, "deep"]
    penalties: Annotated[Floats, "deep"]
    lowest: Annotated[Floats, "deep", np.inf]
    sets: GrowingSets  # what it covers
    used: Annotated[Ints, "types"]  # rows of each type
    #: What may follow, as part of `followers`: from the end of the one before to behind the last,
    #: and the next.
    end: Annotated[Ints, "deep"]
    at: Annotated[Ints, "deep"]
    top: Annotated[Floats, "deep"]  # workspace: the highest duals of what may follow, falling
    counts: ValueCounts  # of the sensitive values


class RootedFollowers(Packed):
    """What may follow each partial set of the path, one behind the other.

    Types with the record loss of the partial set with each, what each adds to the duals of cuts,
    and a lower bound on the reduced costs of all columns in which the type is the furthest of those
    that join the partial set.
    """

    rows: Annotated[Ints, "room"]
    losses: Annotated[Floats, "room"]
    penalties: Annotated[Floats, "room"]
    bounds: Annotated[Floats, "room"]


class ColumnsFound(Packed):
    """The columns found."""

    held: Annotated[Ints, "2"]  # how many they are, and how many members they have together
    sizes: Annotated[Ints, "columns"]  # rows of each
    reduced: Annotated[Floats, "columns"]  # reduced cost of each
    members: Annotated[Codes, "room"]  # their types, column by column, ascending


class RootedSearch(Packed):
    """A search: what it is given, where it stands, and what it has found."""

    rows: SearchRows
    cuts: CutsOfRows
    rules: RootedRules
    roots: Roots
    path: RootedPath
    followers: RootedFollowers
    found: ColumnsFound


def new_rooted_path(rows: SearchRows, largest: int) -> RootedPath:
    """Return the workspace of a search for columns of up to `largest` rows, not begun."""
    deep = largest + 1
    words = int(rows.terms.set_words.max(initial=-1)) + 1
    return RootedPath.of_sizes(
        deep=deep,
        types=len(rows.copies),
        sets=new_growing_sets(rows.terms.tables, deep, words),
        counts=new_counts(rows.diversity, deep),
    )


#: What a call ends with: all roots were searched; there may be no room for the columns found next,
#: or for what follows the next partial set; no more nodes are allowed. A call may follow all but
#: the first.
COMPLETE, FULL, CRAMPED, OUT_OF_NODES = 0, 1, 2, 3


@kernel
def highest_loss(rules: RootedRules, path: RootedPath, size: int, dual: float) -> float:
    """Return the record loss from which on no column of the size is wanted that a row joins."""
    if not rules.undominated or size == rules.smallest:
        return np.inf
    return min(dual, path.lowest[path.place[DEPTH]])


@kernel
def list_top(
    rows: SearchRows, path: RootedPath, types: Ints, begin: int, end: int, most: int
) -> int:
    """List the `most` highest duals of rows that may join, falling; return how many rows may.

    Where there are fewer, the others are minus infinity: such columns are not reached. Copies are
    counted up to `most` of a type.
    """
    top, duals, copies, used = path.top, rows.duals, rows.copies, path.used
    for place in range(most):
        top[place] = -np.inf
    count = 0
    # Places are no negative numbers: what has no sign is not asked for it.
    for at in range(np.uint64(begin), np.uint64(end)):
        row = np.uint64(types[at])
        left, dual = min(copies[row] - used[row], most), duals[row]
        count += left
        # Most are not among the highest.
        if left > 0 and dual > top[most - 1]:
            put_top(top, most, most, dual, left)
    return count


@kernel
def put_top(top: Floats, filled: int, most: int, dual: float, copies: int) -> int:
    """Insert a dual so many times into the `most` highest, falling; return how many there are."""
    for _ in range(copies):
        if filled == most:
            if most == 0 or dual <= top[most - 1]:
                break
            filled -= 1
        place = filled
        while place > 0 and top[place - 1] < dual:
            top[place] = top[place - 1]
            place -= 1
        top[place] = dual
        filled += 1
    return filled


@kernel
def keep_promising(search: RootedSearch, begin: int, end: int, missing: int, rounds: int) -> int:
    """Keep what may join the partial set in a column that is wanted, and return its end."""
    rows, rules, path, followers = search.rows, search.rules, search.path, search.followers
    types, losses, penalties = followers.rows, followers.losses, followers.penalties
    depth, cutoff, top = path.place[DEPTH], path.cutoff[0], path.top
    size = path.place[SIZE]
    multiple, base = size if rules.summed else 1, path.penalties[depth] - path.duals[depth]
    duals, unpruned = rows.duals, not rules.pruned
    anything = not rules.undominated or size == rules.smallest
    for _ in range(rounds):
        if list_top(rows, path, types, begin, end, missing) < missing:
            return begin
        # The dual of a row and the highest ones of the others: with its own among the highest it
        # is their sum.
        others, lowest = 0.0, top[missing - 1]
        for place in range(missing - 1):
            others += top[place]
        kept = begin
        for at in range(np.uint64(begin), np.uint64(end)):
            row, loss, penalty, to = types[at], losses[at], penalties[at], np.uint64(kept)
            dual = duals[np.uint64(row)]
            bound = multiple * loss + base + penalty - others - min(dual, lowest)
            # Written down in any case, since a branch would be guessed wrong often.
            types[to], losses[to], penalties[to] = row, loss, penalty
            wanted = anything or loss < highest_loss(rules, path, size, dual)
            kept += (unpruned or bound < cutoff) & wanted
        if kept == end:
            return end
        end = kept
    return end


@kernel
def sort_by_loss(followers: RootedFollowers, begin: int, end: int) -> None:
    """Sort what may join by the loss it makes (Shell's sort)."""
    types, losses, penalties = followers.rows, followers.losses, followers.penalties
    gap = 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(begin + gap, end):
            row, loss, penalty = types[at], losses[at], penalties[at]
            to = at
            while to >= begin + gap and losses[to - gap] > loss:
                types[to], losses[to] = types[to - gap], losses[to - gap]
                penalties[to] = penalties[to - gap]
                to -= gap
            types[to], losses[to], penalties[to] = row, loss, penalty
        gap //= 3


@kernel
def bound_branches(search: RootedSearch, begin: int, end: int, missing: int) -> None:
    """Bound what the columns cost in which each row is the furthest that joins; two are missing."""
    rows, rules, path, followers = search.rows, search.rules, search.path, search.followers
    types, depth, top = followers.rows, path.place[DEPTH], path.top
    multiple, most = path.place[SIZE] if rules.summed else 1, missing - 1
    base = path.penalties[depth] - path.duals[depth]
    for place in range(most):
        top[place] = -np.inf
    nearer = 0
    for at in range(begin, end):
        row = types[at]
        dual, left = rows.duals[row], rows.copies[row] - path.used[row]
        # Other copies of the row itself may join as well.
        if left > 1 and dual > top[most - 1]:
            put_top(top, most, most, dual, left - 1)
        summed = dual
        for place in range(most):
            summed += top[place]
        bound = multiple * followers.losses[at] + base + followers.penalties[at] - summed
        if nearer + left <= most:
            bound = np.inf
        elif not rules.pruned:
            bound = -np.inf
        followers.bounds[at] = bound
        nearer += left
        if left <= most and dual > top[most - 1]:
            put_top(top, most, most, dual, 1)


@kernel
def search_columns(search: RootedSearch, max_nodes: int) -> int:
    """Go on with a search and return what it ends with.

    `search`: of more values than a limit allows the loss is infinite. Of the duals of the rows the
    highest need not come first. It begins with place (0, -1, rules.largest) and no nodes. What is
    found comes into `found`; `followers` have room for twice as many as there are types.
    `max_nodes`: partial sets looked at, of all calls, at which to end. Complexity: O(m) time for
    each type that may join a partial set looked at.
    """
    rules, roots, path = search.rules, search.roots, search.path
    followers, found = search.followers, search.found
    place = path.place
    while True:
        depth = place[DEPTH]
        if depth == 0 and place[SIZE] == rules.largest:
            if place[ROOT] + 1 == len(roots.types):
                return COMPLETE
            place[ROOT] += 1
            place[SIZE] = rules.smallest - 1
            _enter_root(search)
        # Back to the last partial set that something may still join.
        if depth > 0 and path.at[depth] == path.end[depth]:
            place[DEPTH] -= 1
            # The last row leaves; the root stays for its next size.
            row = path.members[depth - 1]
            if depth > 1 or place[SIZE] == rules.largest:
                path.used[row] -= 1
                take_back(search.rows.diversity, path.counts, row)
                count_in_cuts(search.cuts, row, -1)
            continue
        # Of the root alone nothing is the furthest: all may follow that could join it.
        size = place[SIZE] + 1 if depth == 0 else place[SIZE]
        last = path.end[0] - 1 if depth == 0 else path.at[depth]
        begin = path.end[depth - 1] if depth > 0 else 0
        if depth > 0 and not followers.bounds[last] < path.cutoff[0]:
            path.at[depth] += 1
            continue
        # The next call meets this row again unless there is room for all that it brings about.
        listed = last + 1 - begin
        if depth + 2 == size:
            columns = found.held[0] + min(listed, rules.keep)
            members = found.held[1] + min(listed, rules.keep) * size
            if columns > len(found.sizes) or members > len(found.members):
                return FULL
        if path.end[depth] + listed > len(followers.rows):
            return CRAMPED
        if path.nodes[0] >= max_nodes:
            return OUT_OF_NODES
        if depth == 0:
            place[SIZE] = size
            place[FIRST], place[FIRST_MEMBER] = found.held[0], found.held[1]
            path.nodes[1], path.cutoff[0] = 0, roots.below[place[ROOT]]
        elif path.nodes[1] >= rules.nodes_a_size:
            # All partial sets are left; what was not looked at lowers the bound.
            path.nodes[2] += 1
            for level in range(1, depth + 1):
                for at in range(path.at[level], path.end[level]):
                    bound = min(roots.least[place[ROOT]], followers.bounds[at])
                    roots.least[place[ROOT]] = bound
                path.at[level] = path.end[level]
            continue
        else:
            path.at[depth] += 1
            path.losses[depth + 1] = followers.losses[last]
            path.penalties[depth + 1] = path.penalties[depth] + followers.penalties[last]
            _enter(search, followers.rows[last], depth)
        place[DEPTH] = depth + 1
        path.nodes[0] += 1
        path.nodes[1] += 1
        _expand(search, begin, last)


@kernel
def _enter_root(search: RootedSearch) -> None:
    """Let the set be the root alone, and list what may join it in a column of any size."""
    rows, rules, path = search.rows, search.rules, search.path
    roots, followers = search.roots, search.followers
    number = path.place[ROOT]
    root, below = roots.types[number], roots.below[number]
    roots.least[number] = below
    start_counts(path.counts)
    empty_set(path.sets, 0)
    types, losses, duals = followers.rows, followers.losses, rows.duals
    types[0] = root
    losses_with(rows.terms, path.sets, 0, types, 0, 1, losses)
    path.losses[1] = losses[0]
    path.duals[0] = path.penalties[0] = 0.0
    path.penalties[1] = penalty_of(search.cuts, root)
    _enter(search, root, 0)
    listed, conflicting = 0, len(rows.conflicts) > 0
    for at in range(roots.begin[number], roots.end[number]):
        row = roots.near[at]
        if rows.copies[row] > path.used[row] and not (conflicting and rows.conflicts[root, row]):
            types[listed] = row
            listed += 1
    if not rules.pruned:
        losses_with(rows.terms, path.sets, 1, types, 0, listed, losses)
        path.end[0] = listed
        return
    # The highest duals come first: behind a row that no size can afford, all are such.
    list_top(rows, path, types, 0, listed, rules.largest - 1)
    kept = 0
    while kept < listed and _is_affordable(rules, path, path.losses[1], duals[types[kept]], below):
        kept += 1
    losses_with(rows.terms, path.sets, 1, types, 0, kept, losses)
    path.end[0] = 0
    for at in range(kept):
        row, loss = types[at], losses[at]
        if _is_affordable(rules, path, loss, duals[row], below):
            types[path.end[0]], losses[path.end[0]] = row, loss
            path.end[0] += 1


@kernel
def _is_affordable(
    rules: RootedRules, path: RootedPath, loss: float, dual: float, below: float
) -> bool:
    """Return whether a row of this dual may join the root in a column of some size."""
    base = path.penalties[1] - path.duals[1] - dual
    summed = 0.0
    for size in range(2, rules.largest + 1):
        bound = (size if rules.summed else 1) * loss + base - summed
        if (
            size >= rules.smallest
            and bound < below
            and loss < highest_loss(rules, path, size, dual)
        ):
            return True
        summed += path.top[size - 2]
    return False


@kernel
def penalty_of(cuts: CutsOfRows, row: int) -> float:
    """Return what one more row adds to the duals of the cuts."""
    total = 0.0
    for at in range(cuts.starts[row], cuts.starts[row + 1]):
        cut = cuts.cuts[at]
        if (cuts.held[cut] + 1) % cuts.divisors[cut] == 0:
            total += cuts.duals[cut]
    return total


@kernel
def count_in_cuts(cuts: CutsOfRows, row: int, change: int) -> None:
    """Add to how many members of the partial set are in the cuts of a row."""
    for at in range(cuts.starts[row], cuts.starts[row + 1]):
        cuts.held[cuts.cuts[at]] += change


@kernel
def _enter(search: RootedSearch, row: int, depth: int) -> None:
    """Let a row join the partial set of `depth` rows."""
    rows, cuts, path = search.rows, search.cuts, search.path
    path.members[depth] = row
    path.used[row] += 1
    path.duals[depth + 1] = path.duals[depth] + rows.duals[row]
    path.lowest[depth + 1] = path.lowest[depth]
    if depth > 0:
        path.lowest[depth + 1] = min(path.lowest[depth], rows.duals[row])
    add_row(rows.terms, path.sets, depth, depth + 1, row)
    count_in(rows.diversity, path.counts, row, 1, depth, depth + 1)
    count_in_cuts(cuts, row, 1)


@kernel
def _expand(search: RootedSearch, first: int, last: int) -> None:
    """List what may join the partial set, out of what could join the one before: `first` to `last`.

    Where one row is missing, write the columns down instead.
    """
    rows, cuts, rules = search.rows, search.cuts, search.rules
    path, followers = search.path, search.followers
    depth, size = path.place[DEPTH], path.place[SIZE]
    missing, begin = size - depth, path.end[depth - 1]
    path.at[depth] = path.end[depth] = begin
    if not may_be_diverse(rows.diversity, path.counts, depth, depth, size):
        return
    types, losses, penalties = followers.rows, followers.losses, followers.penalties
    added = path.members[depth - 1]
    conflicting = depth > 1 and len(rows.conflicts) > 0
    end = begin
    for place in range(np.uint64(first), np.uint64(last + 1)):
        row, to = types[place], np.uint64(end)
        types[to], losses[to] = row, losses[place]
        fits = rows.copies[np.uint64(row)] > path.used[np.uint64(row)]
        end += fits and not (conflicting and rows.conflicts[added, row])
    if rules.pruned:
        # The loss is at least what it is now: some rows go before their losses are computed.
        for at in range(begin, end):
            penalties[at] = 0.0
            if depth > 1:
                losses[at] = path.losses[depth]
        end = keep_promising(search, begin, end, missing, 1)
    if depth > 1:
        losses_with(rows.terms, path.sets, depth, types, begin, end, losses)
    cutting = len(cuts.duals) > 0
    for at in range(begin, end):
        penalties[at] = penalty_of(cuts, types[at]) if cutting else 0.0
    if missing == 1:
        _write_down(search, begin, end)
        return
    end = keep_promising(search, begin, end, missing, 3)
    sort_by_loss(followers, begin, end)
    bound_branches(search, begin, end, missing)
    path.end[depth] = end


@kernel
def _write_down(search: RootedSearch, begin: int, end: int) -> None:
    """Write down the columns that the partial set is with one more row, if they are wanted."""
    rows, rules, roots, path = search.rows, search.rules, search.roots, search.path
    followers, found = search.followers, search.found
    depth, size, number = path.place[DEPTH], path.place[SIZE], path.place[ROOT]
    multiple = size if rules.summed else 1
    base = path.penalties[depth] - path.duals[depth]
    for at in range(begin, end):
        row = followers.rows[at]
        reduced = multiple * followers.losses[at] + base + followers.penalties[at] - rows.duals[row]
        if not reduced < path.cutoff[0]:
            continue
        if not followers.losses[at] < highest_loss(rules, path, size, rows.duals[row]):
            continue
        count_in(rows.diversity, path.counts, row, 1, depth, size)
        diverse = may_be_diverse(rows.diversity, path.counts, size, size, size)
        take_back(rows.diversity, path.counts, row)
        if not diverse:
            continue
        roots.least[number] = min(roots.least[number], reduced)
        # A place of its own, or that of the worst where enough are kept.
        column = found.held[0]
        if column - path.place[FIRST] == rules.keep:
            column = worst_of(found.reduced, path.place[FIRST], column)
        else:
            found.held[0] += 1
            found.held[1] += size
        # Its members ascend; then the worst of those kept is what others must beat.
        found.sizes[column], found.reduced[column] = size, reduced
        to = path.place[FIRST_MEMBER] + (column - path.place[FIRST]) * size
        members = found.members
        members[to] = row
        for place in range(depth):
            last, member = to + place + 1, path.members[place]
            while last > to and members[last - 1] > member:
                members[last] = members[last - 1]
                last -= 1
            members[last] = member
        if found.held[0] - path.place[FIRST] == rules.keep:
            worst = worst_of(found.reduced, path.place[FIRST], found.held[0])
            path.cutoff[0] = found.reduced[worst]


@kernel
def worst_of(reduced: Floats, begin: int, end: int) -> int:
    """Return which of some columns has the highest reduced cost, the first one among equals."""
    worst = begin
    for column in range(begin + 1, end):
        if reduced[column] > reduced[worst]:
            worst = column
    return worst
