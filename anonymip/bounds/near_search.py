"""Search for the set of k rows that leaves a row's dual least room to rise.

All members lie near the row: who may be among them is gathered first, by a k-d tree, and kept in
one list for each size of the growing set. The search then decides first which member is the
furthest from what the set holds already, so that only nearer ones stay. With duals d, a partial set
P and a candidate f, every set of k rows that holds both and otherwise only candidates no further
than f costs at least k c(P + f) - d(P + f) less the highest duals of as many of these as are
missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import RowTypes
from anonymip.objectives.kernels.box_tree import (
    DEEPEST,
    BoxTree,
    box_bound,
    build_tree,
    nearest_types,
    new_tree,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    kernel_rows,
    new_state,
    open_class,
)
from anonymip.objectives.kernels.growing_sets import (
    GrowingSets,
    TermRows,
    add_row,
    empty_set,
    losses_with,
    new_growing_sets,
    term_rows,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.problem import Problem
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

_BINS = 64
#: A short list is sorted by insertion.
_SHORT = 12


class NearLists(Packed):
    """Workspace of searches for sets of near types.

    Parameters
    ----------
    types, losses, bounds, within
        (room,) the lists, one behind the other: types, the record loss of the partial set with
        each, and what sets leave at least in which it is the furthest, or that it is beyond.
    begin, end, at
        (k + 1,) where the list lies of what a set of so many rows may take in, and the next.
    duals
        (k + 1,) duals of the rows of the partial set, summed.
    chosen
        (k + 1,) type that a set of so many rows has taken in.
    sets
        (k + 1, ...) what it covers.
    used
        (t,) rows of each type in the partial set.
    top
        (k,) highest duals.
    bin_tops, bin_filled, bin_bounds
        (bins, k), (bins,), (bins,) highest duals of each bin of losses, how many there are, and a
        bound.
    """

    types: NDArray[np.int64]
    losses: NDArray[np.float64]
    bounds: NDArray[np.float64]
    within: NDArray[np.float64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    at: NDArray[np.int64]
    duals: NDArray[np.float64]
    chosen: NDArray[np.int64]
    sets: GrowingSets
    used: NDArray[np.int64]
    top: NDArray[np.float64]
    bin_tops: NDArray[np.float64]
    bin_filled: NDArray[np.int64]
    bin_bounds: NDArray[np.float64]


class NearSearch(Packed):
    """All that the search for sets around a row reads and writes.

    Parameters
    ----------
    tables, rows, terms, counts, tree
        The row types: their losses, values, numbers of rows, and a k-d tree over them.
    state, lists
        Workspaces.
    near, near_losses, nodes, node_bounds
        Workspaces of the search in the tree.
    work
        (1,) losses computed, nodes of the tree among them.
    best
        (k,) types of the set that leaves least; -1 comes first if none is known.
    reached
        (1,) the highest dual so far.
    binding
        (t, k) types of a set that kept the dual of each type from its cap, or loses least.
    open
        (t,) whether more work may find more of what a row of each type loses at least.
    """

    tables: LossTables
    rows: KernelRows
    terms: TermRows
    counts: NDArray[np.int64]
    tree: BoxTree
    state: ClassState
    lists: NearLists
    near: NDArray[np.int32]
    near_losses: NDArray[np.float64]
    nodes: NDArray[np.int64]
    node_bounds: NDArray[np.float64]
    work: NDArray[np.int64]
    best: NDArray[np.int64]
    reached: NDArray[np.float64]
    binding: NDArray[np.int32]
    open: NDArray[np.bool_]


def new_near_search(problem: Problem, tables: LossTables) -> tuple[NearSearch, RowTypes, int]:
    """Return what searches for sets of k rows need, the row types, and how many columns they have.

    Types are rows that the tables do not tell apart; the tree over them is built.
    """
    columns = sorted({*tables.range_columns, *tables.set_columns, *tables.pair_columns})
    types, k = problem.microdata.row_types([int(a) for a in columns]), problem.k
    rows = kernel_rows(problem.microdata, tables, types.first)
    counts = types.counts.astype(np.int64)
    terms, t, room, whole = term_rows(rows), len(counts), 4 * len(counts) + 64 * k, np.int64
    lists = NearLists(
        types=np.zeros(room, whole),
        losses=np.zeros(room),
        bounds=np.zeros(room),
        within=np.zeros(room),
        begin=np.zeros(k + 1, whole),
        end=np.zeros(k + 1, whole),
        at=np.zeros(k + 1, whole),
        duals=np.zeros(k + 1),
        chosen=np.zeros(k + 1, whole),
        sets=new_growing_sets(tables, k + 1, int(terms.set_words.max(initial=-1)) + 1),
        used=np.zeros(t, whole),
        top=np.zeros(k),
        bin_tops=np.zeros((_BINS, k)),
        bin_filled=np.zeros(_BINS, whole),
        bin_bounds=np.zeros(_BINS),
    )
    search = NearSearch(
        tables=tables,
        rows=rows,
        terms=terms,
        counts=counts,
        tree=new_tree(tables, t),
        state=new_state(tables, 2),
        lists=lists,
        near=np.empty(k, np.int32),
        near_losses=np.empty(k + 1),
        nodes=np.empty(DEEPEST, whole),
        node_bounds=np.empty(DEEPEST),
        work=np.zeros(1, whole),
        best=np.full(k, -1, whole),
        reached=np.zeros(1),
        binding=np.empty((t, k), np.int32),
        open=counts < k,
    )
    build_tree(search.tree, tables, rows, counts)
    return search, types, len(columns)


@kernel
def find_nearest(search: NearSearch, k: int, row: int) -> int:
    """List in `search.near` the types of the k rows nearest to a row; return how many they are."""
    open_class(search.rows, search.state, row)
    return nearest_types(
        search.tables,
        search.rows,
        search.tree,
        search.state,
        search.counts,
        k,
        row,
        search.near,
        search.near_losses,
        search.nodes,
        search.node_bounds,
        search.work,
    )


@kernel
def gather_near(search: NearSearch, floors: NDArray[np.float64], own: int, radius: float) -> int:
    """List the types that may lie with the own one in a set that loses less than `radius`.

    Their losses are those of the pair, or the type's floor if that is higher. Returns how many they
    are. Complexity: O(m) time for each of these and for each node of the tree whose box is within
    the radius.
    """
    tables, terms, tree, state = search.tables, search.terms, search.tree, search.state
    lists, nodes, types = search.lists, search.nodes, search.lists.types
    open_class(search.rows, state, own)
    # Down the tree, into boxes within the radius; leaves list their types.
    held, depth = 0, 1
    nodes[0] = 0
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        search.work[0] += 1
        if box_bound(tree, tables, state, node) >= radius:
            continue
        if tree.left[node] >= 0:
            nodes[depth], nodes[depth + 1] = tree.left[node] + 1, tree.left[node]
            depth += 2
            continue
        for at in range(tree.begin[node], tree.end[node]):
            if tree.items[at] != own and floors[tree.items[at]] < radius:
                types[held] = tree.items[at]
                held += 1
    # Of these the pairs within the radius stay.
    empty_set(lists.sets, 0)
    add_row(terms, lists.sets, 0, 1, own)
    losses_with(tables, terms, lists.sets, 1, types, 0, held, lists.losses)
    search.work[0] += held
    kept = 0
    for at in range(held):
        loss = max(lists.losses[at], floors[types[at]])
        if loss < radius:
            types[kept], lists.losses[kept] = types[at], loss
            kept += 1
    return kept


@kernel
def put_top(top: NDArray[np.float64], filled: int, most: int, dual: float, copies: int) -> int:
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
def sort_by_loss(
    types: NDArray[np.int64], losses: NDArray[np.float64], begin: int, end: int
) -> None:
    """Sort a part of a list by rising losses; which of equal ones comes first, no matter."""
    count = end - begin
    if count > _SHORT:
        # A heap: the largest goes to the end, again and again.
        for root in range(count // 2 - 1, -1, -1):
            _sift_down(types, losses, begin, root, count)
        for last in range(count - 1, 0, -1):
            first, other = begin, begin + last
            types[first], types[other] = types[other], types[first]
            losses[first], losses[other] = losses[other], losses[first]
            _sift_down(types, losses, begin, 0, last)
        return
    for at in range(begin + 1, end):
        row, loss = types[at], losses[at]
        place = at
        while place > begin and losses[place - 1] > loss:
            types[place], losses[place] = types[place - 1], losses[place - 1]
            place -= 1
        types[place], losses[place] = row, loss


@kernel
def _sift_down(
    types: NDArray[np.int64], losses: NDArray[np.float64], begin: int, root: int, count: int
) -> None:
    """Let an element of a heap of `count` sink to its place."""
    row, loss = types[begin + root], losses[begin + root]
    while True:
        child = 2 * root + 1
        if child >= count:
            break
        if child + 1 < count and losses[begin + child + 1] > losses[begin + child]:
            child += 1
        if losses[begin + child] <= loss:
            break
        types[begin + root], losses[begin + root] = types[begin + child], losses[begin + child]
        root = child
    types[begin + root], losses[begin + root] = row, loss


@kernel
def least_slack(
    search: NearSearch,
    duals: NDArray[np.float64],
    floors: NDArray[np.float64],
    gathered: int,
    k: int,
    own: int,
    copies: int,
    limit: float,
    most: int,
) -> float:
    """Return what sets of k rows leave at least of their cost, k times their record loss.

    `search.best` becomes the set that leaves so little, if there is one within the limit. The loss
    is monotone; the first `gathered` places of the lists hold what :func:`gather_near` found.
    `duals` (t,) are those of a row of each type, `floors` (t,) what such a row loses at least in
    any set of k. The sets hold so many `copies`, fewer than k, of the type `own`. What leaves more
    than `limit` is not looked for; when `most` losses are computed, of this and earlier searches,
    what is proven until then is returned.
    """
    tables, terms, counts, lists = search.tables, search.terms, search.counts, search.lists
    need, base = k - copies, copies * duals[own]
    types, losses, bounds, used = lists.types, lists.losses, lists.bounds, lists.used
    empty_set(lists.sets, 0)
    add_row(terms, lists.sets, 0, copies, own)
    used[own] = counts[own]
    # The first list: what is gathered, filtered without sorting.
    lists.begin[copies], lists.duals[copies] = gathered, base
    held = _filter_roughly(counts, duals, lists, gathered, k, need, base, limit)
    lists.end[copies] = gathered + held
    if need > 1:
        sort_by_loss(types, losses, gathered, gathered + held)
        _bound_each(counts, duals, lists, copies, k, need, limit)
    search.best[0] = -1
    greedy = _greedy_slack(search, duals, k, copies)
    if greedy < limit:
        limit = greedy
        _keep_set(search, own, copies, k, lists.chosen[k - 1])
    size = copies
    lists.at[size] = lists.begin[size]
    while size >= copies:
        need = k - size
        end = lists.end[size]
        if need == 1:
            for at in range(lists.begin[size], end):
                slack = k * losses[at] - lists.duals[size] - duals[types[at]]
                if slack < limit:
                    limit = slack
                    _keep_set(search, own, copies, k, types[at])
            lists.at[size] = end
        at = lists.at[size]
        while at < end and bounds[at] >= limit:
            at += 1
        lists.at[size] = at
        if at == end:
            # All sets that continue this one are seen.
            size -= 1
            if size >= copies:
                used[lists.chosen[size]] -= 1
            continue
        room = end + (at + 1 - lists.begin[size])
        if search.work[0] >= most or room > len(types):
            limit = min(limit, _open_bound(lists, copies, size))
            break
        # The furthest member that is still missing.
        row = types[at]
        lists.at[size] = at + 1
        lists.chosen[size] = row
        used[row] += 1
        add_row(terms, lists.sets, size, size + 1, row)
        lists.duals[size + 1] = lists.duals[size] + duals[row]
        begin = lists.begin[size]
        size += 1
        held = end
        # With the furthest a set costs so much at least; what has a low dual does not pay for it.
        short = lists.within[at] - limit
        for near in range(begin, at + 1):
            if used[types[near]] < counts[types[near]] and duals[types[near]] > short:
                types[held] = types[near]
                held += 1
        lists.begin[size], lists.at[size] = end, end
        losses_with(tables, terms, lists.sets, size, types, end, held, losses)
        search.work[0] += held - end
        if k - size > 1:
            # What a type loses in any set is known: who loses much anyway is far from all.
            for near in range(end, held):
                losses[near] = max(losses[near], floors[types[near]])
        lists.end[size] = _keep_promising(counts, duals, lists, size, k, held, limit)
        if k - size > 1:
            sort_by_loss(types, losses, end, lists.end[size])
            _bound_each(counts, duals, lists, size, k, k - size, limit)
    # What was left unfinished gives its rows back.
    for level in range(copies, size):
        used[lists.chosen[level]] -= 1
    used[own] = 0
    return limit


@kernel
def _keep_set(search: NearSearch, own: int, copies: int, k: int, last: int) -> None:
    """Write down the set of the own rows, those chosen, and one more."""
    for place in range(k - 1):
        search.best[place] = own if place < copies else search.lists.chosen[place]
    search.best[k - 1] = last


@kernel
def _filter_roughly(
    counts: NDArray[np.int64],
    duals: NDArray[np.float64],
    lists: NearLists,
    gathered: int,
    k: int,
    need: int,
    base: float,
    limit: float,
) -> int:
    """Copy behind the gathered types those that a set within the limit may hold; return how many.

    Losses are sorted into bins: the members of a set whose furthest lies in a bin lie in bins up to
    it.
    """
    types, losses = lists.types, lists.losses
    bins, widest = len(lists.bin_bounds), 0.0
    low = np.inf
    for at in range(gathered):
        widest, low = max(widest, losses[at]), min(low, losses[at])
    scale = 0.0 if widest <= low else bins / (widest - low)
    filled, least = lists.bin_filled, lists.bin_bounds
    filled[:], least[:] = 0, np.inf
    for at in range(gathered):
        row, spot = types[at], min(bins - 1, int((losses[at] - low) * scale))
        least[spot] = min(least[spot], losses[at])
        filled[spot] = put_top(
            lists.bin_tops[spot], filled[spot], need, duals[row], min(counts[row], need)
        )
    # A set whose furthest member lies in a bin, and that holds a given row up to it.
    held, others = 0, need - 1
    for spot in range(bins):
        for place in range(filled[spot]):
            held = put_top(lists.top, held, need, lists.bin_tops[spot, place], 1)
        total = 0.0
        for place in range(min(others, held)):
            total += lists.top[place]
        least[spot] = k * least[spot] - total if held >= need else np.inf
    for spot in range(bins - 2, -1, -1):
        least[spot] = min(least[spot], least[spot + 1])
    held = gathered
    for at in range(gathered):
        row, spot = types[at], min(bins - 1, int((losses[at] - low) * scale))
        if least[spot] - base - duals[row] < limit:
            types[held], losses[held] = row, losses[at]
            held += 1
    return held - gathered


@kernel
def _keep_promising(
    counts: NDArray[np.int64],
    duals: NDArray[np.float64],
    lists: NearLists,
    size: int,
    k: int,
    end: int,
    limit: float,
) -> int:
    """Keep of a new list what may be in a set within the limit; return where the list ends."""
    types, losses = lists.types, lists.losses
    begin, others, filled = lists.begin[size], k - size - 1, 0
    for at in range(begin, end):
        left = min(counts[types[at]] - lists.used[types[at]], others)
        filled = put_top(lists.top, filled, others, duals[types[at]], left)
    total = lists.duals[size]
    for place in range(filled):
        total += lists.top[place]
    held = begin
    for at in range(begin, end):
        if k * losses[at] - total - duals[types[at]] < limit:
            types[held], losses[held] = types[at], losses[at]
            held += 1
    return held


@kernel
def _bound_each(
    counts: NDArray[np.int64],
    duals: NDArray[np.float64],
    lists: NearLists,
    size: int,
    k: int,
    need: int,
    limit: float,
) -> None:
    """Set for each of a sorted list what sets cost at least in which it is the furthest.

    What is in no set within the limit, neither as the furthest nor as another, leaves the list.
    """
    types, losses, bounds, within = lists.types, lists.losses, lists.bounds, lists.within
    begin, end, base = lists.begin[size], lists.end[size], lists.duals[size]
    others, filled, total, rows = need - 1, 0, 0.0, 0
    for at in range(begin, end):
        row = types[at]
        left = counts[row] - lists.used[row]
        # Beside itself the furthest may bring along its own further rows.
        filled = put_top(lists.top, filled, others, duals[row], min(left - 1, others))
        rows += left
        total = 0.0
        for place in range(min(others, filled)):
            total += lists.top[place]
        reached = k * losses[at] - base
        bounds[at] = reached - duals[row] - total if rows >= need else np.inf
        # The same with a place kept free for a given row that is nearer.
        if filled == others and others > 0:
            total -= lists.top[others - 1]
        within[at] = reached - duals[row] - total if rows >= need else np.inf
        filled = put_top(lists.top, filled, others, duals[row], min(left, 1))
    least, held = np.inf, end
    for at in range(end - 1, begin - 1, -1):
        if bounds[at] < limit or least - duals[types[at]] < limit:
            held -= 1
            least = min(least, within[at])
            types[held], losses[held] = types[at], losses[at]
            bounds[held], within[held] = bounds[at], within[at]
        else:
            least = min(least, within[at])
    kept = end - held
    for place in range(kept):
        types[begin + place], losses[begin + place] = types[held + place], losses[held + place]
        bounds[begin + place], within[begin + place] = bounds[held + place], within[held + place]
    lists.end[size] = begin + kept


@kernel
def _greedy_slack(search: NearSearch, duals: NDArray[np.float64], k: int, copies: int) -> float:
    """Return what the set leaves that grows by whoever leaves most; infinity if it cannot grow."""
    tables, terms, counts, lists = search.tables, search.terms, search.counts, search.lists
    types, losses, used = lists.types, lists.losses, lists.used
    begin, end = lists.end[copies], 2 * lists.end[copies] - lists.begin[copies]
    if end > len(types):
        return np.inf
    for at in range(begin, end):
        types[at] = types[at - end + begin]
        losses[at] = losses[at - end + begin]
    total, slack, size = lists.duals[copies], np.inf, copies
    while size < k:
        best, least = -1, np.inf
        for at in range(begin, end):
            left = k * losses[at] - duals[types[at]]
            if left < least and used[types[at]] < counts[types[at]]:
                best, least = types[at], left
        if best < 0:
            break
        lists.chosen[size] = best
        used[best] += 1
        slack = least - total
        total += duals[best]
        size += 1
        if size < k:
            add_row(terms, lists.sets, size - 1, size, best)
            losses_with(tables, terms, lists.sets, size, types, begin, end, losses)
            search.work[0] += end - begin
    for level in range(copies, size):
        used[lists.chosen[level]] -= 1
    return slack if size == k else np.inf


@kernel
def _open_bound(lists: NearLists, first: int, last: int) -> float:
    """Return what the sets leave at least that are not looked at yet."""
    least = np.inf
    for size in range(first, last + 1):
        for at in range(lists.at[size], lists.end[size]):
            least = min(least, lists.bounds[at])
    return least
