"""Searches for the set of k rows that leaves a row's dual least room to rise.

**Member by member**, depth first, :func:`least_slack` decides first which member is the furthest
from what the set holds already, so that only nearer ones stay; there is one list for each size of
the growing set. With duals d, a partial set P and a candidate f, every set of k rows that holds
both and otherwise only candidates no further than f costs at least k c(P + f) - d(P + f) less the
highest duals of as many of these as are missing.

**By boxes**, best first: a *box* stands for all sets that cover at least its inner values and hold,
beside the row itself, only members of its list. For a box whose inner values are I, every set S in
which f is the furthest member costs at least k c(I + f), so that it leaves at least
k c(I + f) - d(f) less the duals of the row's own copies and the highest duals of as many as are
missing, of members no further than f. The least of this over all f bounds the box. The members
that it takes make a set; where that covers more than I + f, the box is divided at a value that it
covers: into the sets that stay on this side of it, whose list is shorter, and those that reach
beyond it, whose inner values are more.

The box with the least bound is divided first, until none is left below the best set known: then
that set leaves least. A search that is ended before knows as much: no set leaves less than the
least bound of the boxes that are open.
"""

from __future__ import annotations

import numpy as np

from anonymip.bounds.near_search import (
    Boxes,
    NearSearch,
    bound_each,
    sort_by_loss,
    take_least,
)
from anonymip.enumeration.rooted_search import put_top
from anonymip.objectives.kernels.class_loss import ends_loss
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
    # The first list: a copy of what is gathered, since another search may follow.
    end = 2 * gathered
    types[gathered:end], losses[gathered:end] = types[:gathered], losses[:gathered]
    lists.begin[copies], lists.end[copies], lists.duals[copies] = gathered, end, base
    if need > 1:
        sort_by_loss(lists, gathered, end)
        lists.end[copies] = bound_each(search, duals, gathered, end, need, base, limit)
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


#: Places of `Boxes.held`.
_OPEN, _FREE, _EVER = 0, 1, 2
#: Where a box is divided, as a share of the way from its inner values to the furthest that the set
#: covers: of 3,000 houses with k = 10, four fifths lost 3 percent less than half the way, and a
#: fifth 15 percent more.
_CUT = 0.8
#: Looking at a row of a new box, and at one of a list that is only shortened, in losses computed;
#: what a box costs beside its rows.
_NEW, _KEPT, _EACH_BOX = 2, 1, 10


@kernel
def least_slack_by_boxes(
    search: NearSearch,
    duals: Floats,
    floors: Floats,
    gathered: int,
    own: int,
    copies: int,
    limit: float,
    most: int,
) -> float:
    """Return what :func:`least_slack` does, by boxes.

    When the search is ended, `search.best` is the best set that is known within the limit.
    """
    lists, boxes, types = search.lists, search.boxes, search.lists.types
    base, held = copies * duals[own], boxes.held
    search.best[0] = -1
    lists.used[own] = search.counts[own]
    # The box of all sets.
    empty_set(boxes.sets, 0)
    add_row(search.terms, boxes.sets, 0, 0, own)
    end = 2 * gathered
    types[gathered:end] = types[:gathered]
    boxes.begin[0], boxes.end[0] = gathered, end
    held[_OPEN], held[_FREE], held[_EVER] = 0, 0, 1
    _look(search, duals, floors, own, copies, 0, limit)
    limit = _bound(search, duals, own, copies, 0, limit)
    _keep_open(boxes, 0, limit)
    while held[_OPEN] > 0 and boxes.bounds[boxes.open[0]] < limit:
        first = boxes.open[0]
        full = held[_FREE] == 0 and held[_EVER] == len(boxes.bounds)
        length = boxes.end[first] - boxes.begin[first]
        if search.work[0] >= most or full or end + length > len(types):
            limit = boxes.bounds[first]
            break
        box = _take_first(boxes)
        # Those that stay on this side: a part of the list, which is sorted.
        if held[_FREE] > 0:
            held[_FREE] -= 1
            near = boxes.free[held[_FREE]]
        else:
            near = held[_EVER]
            held[_EVER] += 1
        side, cut, begin = boxes.sides[box], boxes.cuts[box], end
        for at in range(boxes.begin[box], boxes.end[box]):
            if _is_within(search, side, cut, types[at]):
                types[end], lists.losses[end] = types[at], lists.losses[at]
                end += 1
        boxes.begin[near] = begin
        search.work[0] += _KEPT * length + _EACH_BOX
        # A copy: the own row lies within the inner values of every box.
        add_row(search.terms, boxes.sets, box, near, own)
        boxes.end[near] = bound_each(search, duals, begin, end, search.k - copies, base, limit)
        limit = _bound(search, duals, own, copies, near, limit)
        _keep_open(boxes, near, limit)
        end = boxes.end[near] if boxes.bounds[near] < limit else begin
        # Those that reach beyond it, in the place of all.
        _reach_beyond(search, side, cut, box)
        _look(search, duals, floors, own, copies, box, limit)
        limit = _bound(search, duals, own, copies, box, limit)
        _keep_open(boxes, box, limit)
    lists.used[own] = 0
    return limit


@kernel
def _keep_open(boxes: Boxes, box: int, limit: float) -> None:
    """Put a box on the heap if it may hold a set within the limit, else free it."""
    held, heap, bounds = boxes.held, boxes.open, boxes.bounds
    if bounds[box] >= limit:
        boxes.free[held[_FREE]] = box
        held[_FREE] += 1
        return
    at = held[_OPEN]
    held[_OPEN] += 1
    while at > 0 and bounds[heap[(at - 1) // 2]] > bounds[box]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = box


@kernel
def _take_first(boxes: Boxes) -> int:
    """Take the box of the least bound off the heap."""
    held, heap, bounds = boxes.held, boxes.open, boxes.bounds
    first = heap[0]
    held[_OPEN] -= 1
    count, box, at = held[_OPEN], heap[held[_OPEN]], 0
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and bounds[heap[child + 1]] < bounds[heap[child]]:
            child += 1
        if bounds[heap[child]] >= bounds[box]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = box
    return first


@kernel
def _look(
    search: NearSearch, duals: Floats, floors: Floats, own: int, copies: int, box: int, limit: float
) -> None:
    """Compute the losses of a box with each of its list; bound and sort what is promising."""
    counts, lists, boxes = search.counts, search.lists, search.boxes
    types, losses, floor = lists.types, lists.losses, floors[own]
    begin, end = boxes.begin[box], boxes.end[box]
    base, others, filled = copies * duals[own], search.k - copies - 1, 0
    losses_with(search.terms, boxes.sets, box, types, begin, end, losses)
    search.work[0] += _NEW * (end - begin) + _EACH_BOX
    total = base
    for at in range(begin, end):
        # What a type loses in any set is known: who loses much anyway is far from all.
        losses[at] = max(losses[at], floor, floors[types[at]])
        filled = put_top(
            lists.top, filled, others, duals[types[at]], min(counts[types[at]], others)
        )
    for place in range(filled):
        total += lists.top[place]
    held = begin
    for at in range(begin, end):
        if search.k * losses[at] - total - duals[types[at]] < limit:
            types[held], losses[held] = types[at], losses[at]
            held += 1
    sort_by_loss(lists, begin, held)
    boxes.end[box] = bound_each(search, duals, begin, held, search.k - copies, base, limit)


@kernel
def _bound(
    search: NearSearch, duals: Floats, own: int, copies: int, box: int, limit: float
) -> float:
    """Bound a box by its list, look at the set that the bound takes, and choose where to divide.

    Returns the limit, lowered to what that set leaves. A box that is done has no bound below it.
    """
    terms, lists, boxes, best = search.terms, search.lists, search.boxes, search.best
    begin, end, others = boxes.begin[box], boxes.end[box], search.k - copies - 1
    boxes.bounds[box] = np.inf
    furthest = -1
    while furthest < 0:
        bound = limit
        for at in range(begin, end):
            if lists.bounds[at] < bound:
                furthest, bound = at, lists.bounds[at]
        if furthest < 0:
            return limit
        if not _pick(search, duals, begin, furthest, others):
            # Only with what left the list it would make sets, none of them within the limit.
            lists.bounds[furthest] = np.inf
            furthest = -1
    last, line = lists.types[furthest], len(boxes.bounds)
    empty_set(boxes.sets, line)
    add_row(terms, boxes.sets, line, line, own)
    paid = copies * duals[own] + duals[last]
    for place in range(others):
        add_row(terms, boxes.sets, line, line, boxes.picked[place])
        paid += duals[boxes.picked[place]]
    boxes.last[0] = last
    losses_with(terms, boxes.sets, line, boxes.last, 0, 1, boxes.loss)
    slack = search.k * boxes.loss[0] - paid
    if slack < limit:
        limit = slack
        best[:copies] = own
        for place in range(others):
            best[copies + place] = boxes.picked[place]
        best[search.k - 1] = last
    if bound >= limit:
        return limit
    # What its sets cover at least, and these members.
    add_row(terms, boxes.sets, box, line, last)
    for place in range(others):
        add_row(terms, boxes.sets, line, line, boxes.picked[place])
    if not _choose_side(search, box, last, others):
        return bound
    boxes.bounds[box] = bound
    return limit


@kernel
def _pick(search: NearSearch, duals: Floats, begin: int, furthest: int, others: int) -> bool:
    """Pick the rows of the highest duals up to the furthest; return whether there are so many."""
    picked, lowest, filled = search.boxes.picked, search.boxes.picked_duals[:others], 0
    for at in range(begin, furthest + 1):
        row = search.lists.types[at]
        left = search.counts[row] - (at == furthest)
        filled = take_least(picked, lowest, filled, row, -duals[row], left)
    return filled == others


@kernel
def _choose_side(search: NearSearch, box: int, last: int, others: int) -> bool:
    """Choose the side of a term where the set covers most beyond the inner values and the furthest.

    Returns whether there is one. Sides are numbered: below and above each range, the values of each
    set, below and above each pair of ends. A cut of a set is a type that has the value; one below
    is the negated value.
    """
    tables, terms, boxes, sets = search.rows.tables, search.terms, search.boxes, search.boxes.sets
    ranges, kinds, pairs = sets.low.shape[1], sets.counts.shape[1], sets.pair_low.shape[1]
    line, most, side, cut = len(boxes.bounds), 0.0, -1, 0.0
    # Ranges: what the set covers outside the inner values, below and above.
    for r in range(ranges):
        value, low, high = terms.values[last, r], sets.low[box, r], sets.high[box, r]
        more = tables.range_low[r] * (sets.low[line, r] - min(low, value))
        if more > most:
            most, side, cut = more, r, low + _CUT * (sets.low[line, r] - low)
            cut = -cut if cut > sets.low[line, r] else -low
        more = tables.range_high[r] * (sets.high[line, r] - max(high, value))
        if more > most:
            most, side, cut = more, ranges + r, high + _CUT * (sets.high[line, r] - high)
            cut = cut if cut < sets.high[line, r] else high
    # Sets: the values that are new, cut by a picked type that has one.
    for s in range(kinds):
        start, word = tables.set_start[s], terms.set_words[last, s]
        own, bit = sets.counts[box, s], terms.set_bits[last, s]
        own += sets.held[box, word] & bit == 0
        count = sets.counts[line, s] - own
        if count > 0:
            more = (tables.set_losses[start + own + count] - tables.set_losses[start + own]) / count
            if more > most:
                for place in range(others - 1, -1, -1):
                    row = boxes.picked[place]
                    other, same = terms.set_words[row, s], terms.set_bits[row, s] == bit
                    if not (other == word and same) and _is_new(search, box, s, row):
                        most, side, cut = more, 2 * ranges + s, float(row)
    # Pairs of ends: as ranges, with their own table of losses.
    for p in range(pairs):
        low, high, code = sets.pair_low[box, p], sets.pair_high[box, p], terms.pair_codes[last, p]
        down, up = min(low, code), max(high, code)
        known, furthest = ends_loss(tables, p, down, up), sets.pair_low[line, p]
        more = ends_loss(tables, p, furthest, up) - known
        if furthest < down and more > most:
            most, side = more, 2 * ranges + kinds + p
            cut = -(low + _CUT * (furthest - low))
        furthest = sets.pair_high[line, p]
        more = ends_loss(tables, p, down, furthest) - known
        if furthest > up and more > most:
            most, side = more, 2 * ranges + kinds + pairs + p
            cut = high + _CUT * (furthest - high)
    boxes.sides[box], boxes.cuts[box] = side, cut
    return side >= 0


@kernel
def _is_new(search: NearSearch, box: int, s: int, row: int) -> bool:
    """Return whether the inner values of a box lack the value of a row."""
    terms = search.terms
    return search.boxes.sets.held[box, terms.set_words[row, s]] & terms.set_bits[row, s] == 0


@kernel
def _is_within(search: NearSearch, side: int, cut: float, row: int) -> bool:
    """Return whether a row lies on this side of a cut."""
    sets, words, bits = search.boxes.sets, search.terms.set_words, search.terms.set_bits
    s, value = side - 2 * sets.low.shape[1], int(cut)
    if 0 <= s < sets.counts.shape[1]:
        return words[row, s] != words[value, s] or bits[row, s] != bits[value, s]
    return _beyond(search, side, row) <= cut


@kernel
def _beyond(search: NearSearch, side: int, row: int) -> float:
    """Return how far out a row lies on a side, no set's: its value, negated below."""
    terms, sets = search.terms, search.boxes.sets
    ranges, pairs = sets.low.shape[1], sets.pair_low.shape[1]
    if side < ranges:
        return -terms.values[row, side]
    if side < 2 * ranges:
        return terms.values[row, side - ranges]
    p = side - 2 * ranges - sets.counts.shape[1]
    if p < pairs:
        return -float(terms.pair_codes[row, p])
    return float(terms.pair_codes[row, p - pairs])


@kernel
def _reach_beyond(search: NearSearch, side: int, cut: float, box: int) -> None:
    """Let the inner values of a box reach the nearest value of its list beyond a cut."""
    terms, boxes, sets = search.terms, search.boxes, search.boxes.sets
    ranges, kinds, pairs = sets.low.shape[1], sets.counts.shape[1], sets.pair_low.shape[1]
    p = side - 2 * ranges - kinds
    if 2 * ranges <= side < 2 * ranges + kinds:
        s, value = side - 2 * ranges, int(cut)
        if _is_new(search, box, s, value):
            sets.counts[box, s] += 1
            sets.held[box, terms.set_words[value, s]] |= terms.set_bits[value, s]
        return
    nearest = np.inf
    for at in range(boxes.begin[box], boxes.end[box]):
        out = _beyond(search, side, search.lists.types[at])
        if cut < out < nearest:
            nearest = out
    if side < ranges:
        sets.low[box, side] = -nearest
    elif side < 2 * ranges:
        sets.high[box, side - ranges] = nearest
    elif p < pairs:
        sets.pair_low[box, p] = -int(nearest)
    else:
        sets.pair_high[box, p - pairs] = int(nearest)
