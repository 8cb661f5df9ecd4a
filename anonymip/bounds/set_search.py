"""Search for the set of k rows that leaves a row's dual least room to rise, member by member.

The search decides first which member is the furthest from what the set holds already, so that only
nearer ones stay; there is one list for each size of the growing set. With duals d, a partial set P
and a candidate f, every set of k rows that holds both and otherwise only candidates no further than
f costs at least k c(P + f) - d(P + f) less the highest duals of as many of these as are missing.
"""

from __future__ import annotations

import numpy as np

from anonymip.bounds.near_search import (
    NearSearch,
    bound_each,
    filter_roughly,
    sort_by_loss,
)
from anonymip.enumeration.rooted_search import put_top
from anonymip.objectives.kernels.growing_sets import add_row, empty_set, losses_with
from anonymip.runtime.arrays import Floats
from anonymip.runtime.kernels import kernel


@kernel
def least_slack(
    search: NearSearch,
    duals: Floats,
    floors: Floats,
    gathered: int,
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
    terms, counts, lists = search.terms, search.counts, search.lists
    need, base = search.k - copies, copies * duals[own]
    types, losses, bounds, used = lists.types, lists.losses, lists.bounds, lists.used
    empty_set(lists.sets, 0)
    add_row(terms, lists.sets, 0, copies, own)
    used[own] = counts[own]
    # The first list: what is gathered, filtered without sorting.
    lists.begin[copies], lists.duals[copies] = gathered, base
    held = filter_roughly(search, duals, gathered, need, base, limit)
    lists.end[copies] = gathered + held
    if need > 1:
        sort_by_loss(lists, gathered, gathered + held)
        lists.end[copies] = bound_each(search, duals, gathered, gathered + held, need, base, limit)
    search.best[0] = -1
    greedy = _greedy_slack(search, duals, copies)
    if greedy < limit:
        limit = greedy
        _keep_set(search, own, copies, lists.chosen[search.k - 1])
    size = copies
    lists.at[size] = lists.begin[size]
    while size >= copies:
        need = search.k - size
        end = lists.end[size]
        if need == 1:
            for at in range(lists.begin[size], end):
                slack = search.k * losses[at] - lists.duals[size] - duals[types[at]]
                if slack < limit:
                    limit = slack
                    _keep_set(search, own, copies, types[at])
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
            # What is not looked at yet leaves at least its bounds.
            for level in range(copies, size + 1):
                for open_ in range(lists.at[level], lists.end[level]):
                    limit = min(limit, bounds[open_])
            break
        # The furthest member that is still missing.
        row = types[at]
        lists.at[size] = at + 1
        lists.chosen[size] = row
        used[row] += 1
        add_row(terms, lists.sets, size, size + 1, row)
        lists.duals[size + 1] = lists.duals[size] + duals[row]
        first, last = np.uint64(lists.begin[size]), np.uint64(at + 1)
        size += 1
        # With the furthest a set costs so much at least; what has a low dual does not pay for it.
        held, short = end, lists.within[at] - limit
        for near in range(first, last):
            place = np.uint64(types[near])
            # Written down in any case, since a branch would be guessed wrong often.
            types[np.uint64(held)] = types[near]
            held += (duals[place] > short) & (used[place] < counts[place])
        lists.begin[size], lists.at[size] = end, end
        losses_with(terms, lists.sets, size, types, end, held, losses)
        search.work[0] += held - end
        if search.k - size > 1:
            # What a type loses in any set is known: who loses much anyway is far from all.
            for near in range(end, held):
                losses[near] = max(losses[near], floors[types[near]])
        lists.end[size] = _keep_promising(search, duals, size, held, limit)
        if search.k - size > 1:
            sort_by_loss(lists, end, lists.end[size])
            lists.end[size] = bound_each(
                search, duals, end, lists.end[size], search.k - size, lists.duals[size], limit
            )
    # What was left unfinished gives its rows back.
    for level in range(copies, size):
        used[lists.chosen[level]] -= 1
    used[own] = 0
    return limit


@kernel
def _keep_set(search: NearSearch, own: int, copies: int, last: int) -> None:
    """Write down the set of the own rows, those chosen, and one more."""
    for place in range(search.k - 1):
        search.best[place] = own if place < copies else search.lists.chosen[place]
    search.best[search.k - 1] = last


@kernel
def _keep_promising(search: NearSearch, duals: Floats, size: int, end: int, limit: float) -> int:
    """Keep of a new list what may be in a set within the limit; return where the list ends."""
    lists, counts, k, top = search.lists, search.counts, search.k, search.lists.top
    types, losses = lists.types, lists.losses
    begin, others, filled = lists.begin[size], k - size - 1, 0
    for at in range(begin, end if others > 0 else begin):
        dual = duals[types[at]]
        if filled < others or dual > top[others - 1]:
            left = min(counts[types[at]] - lists.used[types[at]], others)
            filled = put_top(top, filled, others, dual, left)
    total = lists.duals[size]
    for highest in range(filled):
        total += top[highest]
    held = begin
    for place in range(np.uint64(begin), np.uint64(end)):
        row, loss, to = types[place], losses[place], np.uint64(held)
        types[to], losses[to] = row, loss
        held += k * loss - total - duals[np.uint64(row)] < limit
    return held


@kernel
def _greedy_slack(search: NearSearch, duals: Floats, copies: int) -> float:
    """Return what the set leaves that grows by whoever leaves most; infinity if it cannot grow."""
    terms, counts, lists = search.terms, search.counts, search.lists
    types, losses, used = lists.types, lists.losses, lists.used
    begin, end = lists.end[copies], 2 * lists.end[copies] - lists.begin[copies]
    if end > len(types):
        return np.inf
    for at in range(begin, end):
        types[at] = types[at - end + begin]
        losses[at] = losses[at - end + begin]
    total, slack, size = lists.duals[copies], np.inf, copies
    while size < search.k:
        best, least = -1, np.inf
        for at in range(begin, end):
            left = search.k * losses[at] - duals[types[at]]
            if left < least and used[types[at]] < counts[types[at]]:
                best, least = types[at], left
        if best < 0:
            break
        lists.chosen[size] = best
        used[best] += 1
        slack = least - total
        total += duals[best]
        size += 1
        if size < search.k:
            add_row(terms, lists.sets, size - 1, size, best)
            losses_with(terms, lists.sets, size, types, begin, end, losses)
            search.work[0] += end - begin
    for level in range(copies, size):
        used[lists.chosen[level]] -= 1
    return slack if size == search.k else np.inf
