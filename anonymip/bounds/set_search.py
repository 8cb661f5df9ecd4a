"""Search for the set of k rows that leaves a row's dual least room to rise.

All members lie near the row: who may be among them is gathered first, by a k-d tree. The search
then decides first which member is the furthest from what the set holds already, so that only nearer
ones stay. With duals d, a partial set P and a candidate f, every set of k rows that holds both and
otherwise only candidates no further than f costs at least k c(P + f) - d(P + f) less the highest
duals of as many of these as are missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.near_lists import NearLists, put_top, sort_by_loss
from anonymip.objectives.kernels.growing_sets import TermRows, add_row, empty_set, losses_with
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel


@kernel
def least_slack(
    tables: LossTables,
    terms: TermRows,
    counts: NDArray[np.int64],
    duals: NDArray[np.float64],
    floors: NDArray[np.float64],
    lists: NearLists,
    gathered: int,
    k: int,
    own: int,
    copies: int,
    limit: float,
    most: int,
) -> float:
    """Return what sets of k rows leave at least of their cost, k times their record loss.

    `lists.best` becomes the set that leaves so little, if there is one within the limit.

    Parameters
    ----------
    tables, terms
        Of a monotone loss, and the types as growing sets read them.
    counts, duals
        (t,) rows of each type, and the dual of each of them.
    floors
        (t,) what a record of each type loses in any set of k rows at least.
    lists
        Whose first `gathered` places hold the types near the row, with the loss of the pair.
    own, copies
        The row's type, and how many rows of it the sets hold; fewer than k.
    limit
        What is returned at most: sets that leave more are not looked for.
    most
        Losses computed, of this and earlier searches, at which to give up and return what is
        proven until then.
    """
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
    lists.best[0] = -1
    greedy = _greedy_slack(tables, terms, counts, duals, lists, k, copies)
    if greedy < limit:
        limit = greedy
        _keep_set(lists, own, copies, k, lists.chosen[k - 1])
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
                    _keep_set(lists, own, copies, k, types[at])
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
        if lists.work[0] >= most or room > len(types):
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
        lists.work[0] += held - end
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
def _keep_set(lists: NearLists, own: int, copies: int, k: int, last: int) -> None:
    """Write down the set of the own rows, those chosen, and one more."""
    for place in range(k - 1):
        lists.best[place] = own if place < copies else lists.chosen[place]
    lists.best[k - 1] = last


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
def _greedy_slack(
    tables: LossTables,
    terms: TermRows,
    counts: NDArray[np.int64],
    duals: NDArray[np.float64],
    lists: NearLists,
    k: int,
    copies: int,
) -> float:
    """Return what the set leaves that grows by whoever leaves most; infinity if it cannot grow."""
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
            lists.work[0] += end - begin
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
