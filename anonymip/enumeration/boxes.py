"""The box that gains most around a record: prices of the records it covers less what it loses.

A box is what a published record covers: it opens *levels* of attributes around its own record, the
next value upwards or downwards of a range, a further value of a set, the next node towards the
root. Which box gains most, if every record has a price, is a problem of closures of a graph: a
record is covered once the levels it needs are open, a level needs those nearer. Its dual is a
maximum flow from the records to the levels (Picard 1976), each of which takes as much as opening it
costs. Boxes with too few records are ruled out by branching on what the box covers beside: what
capacity the flow leaves on the levels of a record is what taking it in costs at least. Where the
best box of a node has too few, a further price of each record tells what those with enough cost.

References
----------
.. [1] J. C. Picard: Maximal closure of a graph and applications to combinatorial problems,
   Management Science 22, 1976.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.objectives.kernels.class_loss import ends_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.orders.orders import stable_order
from anonymip.problem import Problem
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Flows below this are rounding, and are left out: values of nodes count what was pushed.
_LEAST_FLOW = 1e-12
#: Most flows for the price of a record.
_STEPS = 20
#: A part of the nodes tells enough with such a price: further rounds tell more.
_FEWER = 10


class BoxRows(Packed):
    """Row types by the levels of their attributes, and what opening levels costs."""

    codes: Ints  # (t, m) int64, the level of each attribute: ranges, sets, then nodes
    offset: Ints  # (m + 1,) where the levels of each attribute begin among all
    #: (levels,) cost of opening a level that lies above or below the record's own; of a set the
    #: cost of a further value, and in the last place what any costs beside.
    above: Floats
    below: Floats
    counts: Ints  # (t,) records of each type
    tables: LossTables  # the loss


def box_rows(problem: Problem) -> BoxRows:
    """Return the row types of a problem whose objective is monotone and has tables.

    No box costs less than its levels: the losses by number of values of a set are replaced by the
    highest line with a step at its start that is not above them.
    """
    microdata, tables = problem.microdata, problem.compiled.tables
    types = microdata.row_types()
    codes = []
    above: list[Floats] = []
    below: list[Floats] = []
    for r, column in enumerate(tables.range_columns):
        values, code = np.unique(microdata.values[types.first, column], return_inverse=True)
        steps = np.diff(values)
        codes.append(code)
        above.append(np.concatenate([[0.0], tables.range_high[r] * steps]))
        below.append(np.concatenate([-tables.range_low[r] * steps, [0.0]]))
    for s, column in enumerate(tables.set_columns):
        start, size = tables.set_start[s], int(tables.set_sizes[s])
        step, slope = _line_below(tables.set_losses[start + 1 : start + size + 1])
        codes.append(microdata.codes[types.first, column])
        above.append(np.concatenate([np.full(size, slope), [step]]))
        below.append(above[-1])
    for p, column in enumerate(tables.pair_columns):
        codes.append(microdata.codes[types.first, column])
        above.append(np.zeros(int(tables.pair_sizes[p])))
        below.append(above[-1])
    return BoxRows(
        np.stack(codes, axis=1).astype(np.int64)
        if codes
        else np.zeros((len(types.first), 0), np.int64),
        np.cumsum([0, *map(len, above)]).astype(np.int64),
        np.concatenate([np.empty(0), *above]),
        np.concatenate([np.empty(0), *below]),
        types.counts.astype(np.int64),
        tables,
    )


def _line_below(losses: Floats) -> tuple[float, float]:
    """Return step and slope of a line not above the losses of 1, 2, ... values, 0 for one."""
    rise = losses - losses[:1]
    if len(rise) < 2:
        return 0.0, 0.0
    slope = float(((rise[2:] - rise[1]) / np.arange(1, len(rise) - 1)).min(initial=rise[1]))
    if slope < rise[1]:
        return float(rise[1]) - slope, slope
    return 0.0, float((rise[1:] / np.arange(1, len(rise))).min())


class BoxSearch(Packed):
    """Workspace of the search, d being the least number of records, plus one."""

    #: What opening a level costs, and which has to be open before; -1 for none.
    cost: Annotated[Floats, "levels"]
    nearer: Annotated[Ints, "levels"]
    #: By depth: levels open, types that the box does not cover.
    opened: Annotated[Flags, "depth, levels"]
    ruled_out: Annotated[Flags, "depth, t"]
    #: By depth: types to take in, how many, and how many were.
    candidates: Annotated[Ints, "depth, t"]
    held: Annotated[Ints, "depth"]
    place: Annotated[Ints, "depth"]
    room: Annotated[Floats, "levels"]  # capacity left
    flow: Annotated[Floats, "t, levels"]  # from types to levels
    left: Annotated[Floats, "t"]  # prices without a way to a level; of covered types -1
    #: Types with flow; types that a search for a way reached.
    active: Annotated[Ints, "t"]
    queue: Annotated[Ints, "t"]
    #: Where the way came from.
    level_from: Annotated[Ints, "levels"]
    type_from: Annotated[Ints, "t"]
    #: 1: reached from what cannot flow; 2: by the present search.
    level_seen: Annotated[Ints, "levels"]
    type_seen: Annotated[Ints, "t"]
    #: What taking a type in costs; the types by what it costs at first.
    distance: Annotated[Floats, "t"]
    order: Annotated[Ints, "t"]
    box: Annotated[Flags, "levels"]  # the levels of the best box so far
    least_cost: Annotated[Floats, "depth, t"]  # what boxes cost that take in a candidate, by flows
    work: Annotated[Floats, "1"]  # types and levels looked at


def new_box_search(rows: BoxRows, least: int) -> BoxSearch:
    """Return the workspace of a search for boxes of at least so many records."""
    return BoxSearch.of_sizes(levels=int(rows.offset[-1]), depth=least + 1, t=len(rows.counts))


@kernel
def _open_levels(rows: BoxRows, search: BoxSearch, own: int) -> None:
    """Write what the levels around a type cost, and which are nearer to it."""
    cost, nearer = search.cost, search.nearer
    ranges, sets = len(rows.tables.range_columns), len(rows.tables.set_columns)
    for a in range(rows.codes.shape[1]):
        start, end, code = rows.offset[a], rows.offset[a + 1], rows.codes[own, a]
        if a < ranges:
            for x in range(end - start):
                level = start + x
                step = 1 if x > code else -1
                cost[level] = rows.above[level] if x > code else rows.below[level]
                nearer[level] = -1 if x - step == code else level - step
        elif a < ranges + sets:
            for level in range(start, end):
                cost[level], nearer[level] = rows.above[level], end - 1
            nearer[end - 1] = -1
        else:
            # Nodes over the record and another value, ever higher; equal ones cost nothing more.
            p = a - ranges - sets
            own_loss = ends_loss(rows.tables, p, code, code)
            heights = np.empty(end - start)
            for x in range(end - start):
                heights[x] = ends_loss(rows.tables, p, min(code, x), max(code, x)) - own_loss
            heights[code] = -1.0
            order = stable_order(heights)
            nearer[start + order[0]] = -1
            for at in range(1, len(order)):
                level = start + order[at]
                last = start + order[at - 1]
                below = heights[order[at - 1]] if at > 1 else 0.0
                cost[level] = max(0.0, heights[order[at]] - below)
                nearer[level] = -1 if at == 1 else last
    # The nearest records have the fewest levels to flow to, so they come first.
    search.opened[0, :] = False
    for kind in range(len(rows.counts)):
        search.distance[kind] = _far(rows, search, search.opened[0], own, kind, cost)
    order = stable_order(search.distance)
    for at in range(len(order)):
        search.order[at] = order[at]


@kernel
def _far(
    rows: BoxRows, search: BoxSearch, opened: Flags, own: int, kind: int, amounts: Floats
) -> float:
    """Return the sum of (levels,) amounts over the levels that a type needs and are not open."""
    total = 0.0
    for a in range(rows.codes.shape[1]):
        if rows.codes[kind, a] == rows.codes[own, a]:
            continue
        level = rows.offset[a] + rows.codes[kind, a]
        while level >= 0 and not opened[level]:
            total += amounts[level]
            level = search.nearer[level]
    return total


@kernel
def _needs(rows: BoxRows, opened: Flags, own: int, kind: int) -> bool:
    """Return whether a type needs a level that is not open."""
    for a in range(rows.codes.shape[1]):
        code = rows.codes[kind, a]
        if code != rows.codes[own, a] and not opened[rows.offset[a] + code]:
            return True
    return False


@kernel
def _push(rows: BoxRows, search: BoxSearch, depth: int, own: int, kind: int, price: float) -> float:
    """Let the price of a type flow to levels with room, the farthest first; return what is left."""
    opened, room, nearer = search.opened[depth], search.room, search.nearer
    search.flow[kind, :] = 0.0
    for a in range(rows.codes.shape[1]):
        if rows.codes[kind, a] == rows.codes[own, a]:
            continue
        level = rows.offset[a] + rows.codes[kind, a]
        while level >= 0 and not opened[level] and price > 0.0:
            if room[level] > 0.0:
                pushed = min(room[level], price)
                room[level] -= pushed
                search.flow[kind, level] += pushed
                price -= pushed
            level = nearer[level]
        if price <= 0.0:
            break
    return price


@kernel
def _find_way(
    rows: BoxRows, search: BoxSearch, depth: int, own: int, source: int, actives: int
) -> int:
    """Return a level with room that a type reaches over flows that can be turned; -1 if none."""
    opened, seen, queue = search.opened[depth], search.level_seen, search.queue
    head, tail = 0, 1
    queue[0] = source
    search.type_seen[source] = 2
    while head < tail:
        kind = queue[head]
        head += 1
        for a in range(rows.codes.shape[1]):
            if rows.codes[kind, a] == rows.codes[own, a]:
                continue
            level = rows.offset[a] + rows.codes[kind, a]
            # Levels beyond one that was seen were seen with it.
            while level >= 0 and not opened[level] and seen[level] == 0:
                seen[level] = 2
                search.level_from[level] = kind
                if search.room[level] > _LEAST_FLOW:
                    return level
                search.work[0] += actives
                for at in range(actives):
                    other = search.active[at]
                    if search.type_seen[other] == 0 and search.flow[other, level] > _LEAST_FLOW:
                        search.type_seen[other] = 2
                        search.type_from[other] = level
                        queue[tail] = other
                        tail += 1
                level = search.nearer[level]
    return -1


@kernel
def _send(search: BoxSearch, source: int, target: int) -> float:
    """Send along the way that was found what fits; return how much."""
    amount, level = min(search.left[source], search.room[target]), target
    while search.level_from[level] != source:
        kind = search.level_from[level]
        level = search.type_from[kind]
        amount = min(amount, search.flow[kind, level])
    search.room[target] -= amount
    level = target
    while True:
        kind = search.level_from[level]
        search.flow[kind, level] += amount
        if kind == source:
            break
        level = search.type_from[kind]
        search.flow[kind, level] -= amount
    search.left[source] -= amount
    return amount


@kernel
def _mark(seen: Ints, mark: int) -> None:
    """Turn what the present search saw into a mark."""
    for at in range(len(seen)):
        if seen[at] == 2:
            seen[at] = mark


@kernel
def _bound_box(
    rows: BoxRows, search: BoxSearch, prices: Floats, depth: int, own: int, limit: float
) -> float:
    """Return what boxes around the open levels cost less prices at least, or `limit` if no less.

    What cannot flow marks the levels of the best box without a least size.
    """
    value, actives = 0.0, 0
    opened, left = search.opened[depth], search.left
    for level in range(len(search.cost)):
        search.room[level] = 0.0 if opened[level] else search.cost[level]
        value += search.cost[level] - search.room[level]
    search.work[0] += len(prices) + len(search.cost)
    for kind in search.order:
        left[kind] = 0.0
        if not _needs(rows, opened, own, kind):
            left[kind] = -1.0
            value -= prices[kind]
        elif not search.ruled_out[depth, kind] and prices[kind] > 0.0:
            search.active[actives] = kind
            actives += 1
            value -= prices[kind]
    if value >= limit:
        return limit
    for at in range(actives):
        kind = search.active[at]
        left[kind] = _push(rows, search, depth, own, kind, prices[kind])
        value += prices[kind] - left[kind]
    search.level_seen[:] = 0
    search.type_seen[:] = 0
    for at in range(actives):
        kind = search.active[at]
        # What a search without success saw stays seen: no way leads out of it.
        while left[kind] > _LEAST_FLOW and search.type_seen[kind] == 0:
            if value >= limit:
                return limit
            level = _find_way(rows, search, depth, own, kind, actives)
            if level >= 0:
                value += _send(search, kind, level)
            mark = 1 if level < 0 else 0
            _mark(search.level_seen, mark)
            _mark(search.type_seen, mark)
    return min(value, limit)


@kernel
def _list_candidates(
    rows: BoxRows,
    search: BoxSearch,
    rewards: Floats,
    depth: int,
    own: int,
    value: float,
    limit: float,
) -> None:
    """List the types that a box may take in, and rule out all others.

    Those of the highest reward come first, of these the farthest. `rewards`: (t,) of each type.
    `value`: what boxes cost at least. `limit`: what they may cost.
    """
    opened, count = search.opened[depth], 0
    for kind in range(len(rows.counts)):
        if search.left[kind] < 0.0 or search.ruled_out[depth, kind]:
            continue
        far = _far(rows, search, opened, own, kind, search.cost)
        room = _far(rows, search, opened, own, kind, search.room)
        if value + room >= limit:
            search.ruled_out[depth, kind] = True
            continue
        search.distance[kind] = -far
        search.left[kind] = value + room
        search.candidates[depth, count] = kind
        count += 1
    # Both orders are stable: what is sorted by last comes first, and the other breaks its ties.
    listed, key = search.candidates[depth, :count].copy(), np.empty(count)
    for at in range(count):
        key[at] = search.distance[listed[at]]
    listed = listed[stable_order(key)]
    for at in range(count):
        key[at] = -rewards[listed[at]]
    listed = listed[stable_order(key)]
    for at in range(count):
        search.candidates[depth, at] = listed[at]
        search.least_cost[depth, at] = search.left[listed[at]]
    search.held[depth], search.place[depth] = count, 0


@kernel
def _highest_reward(
    rows: BoxRows, search: BoxSearch, rewards: Floats, depth: int, own: int
) -> float:
    """Return the highest reward (t,) of types that are covered or that a box may take in."""
    highest = 0.0
    for kind in range(len(rewards)):
        if rewards[kind] > highest and (
            not search.ruled_out[depth, kind] or not _needs(rows, search.opened[depth], own, kind)
        ):
            highest = rewards[kind]
    return highest


@kernel
def _weigh_box(
    rows: BoxRows, search: BoxSearch, prices: Floats, rewards: Floats, own: int
) -> tuple[float, float, int]:
    """Return what the levels of a box cost less prices (t,), its reward, and how many it covers."""
    loss, reward, size = 0.0, 0.0, 0
    for level in range(len(search.box)):
        loss += search.cost[level] if search.box[level] else 0.0
    for kind in range(len(prices)):
        if not _needs(rows, search.box, own, kind):
            size += rows.counts[kind]
            loss -= prices[kind]
            reward = max(reward, rewards[kind])
    return loss, reward, size


@kernel
def _mark_box(search: BoxSearch, depth: int, further: bool) -> None:
    """Mark the open levels, and those further that the last bound tells of the best box."""
    for level in range(len(search.box)):
        search.box[level] = search.opened[depth, level] or (
            further and search.level_seen[level] == 1
        )


@kernel
def _price_of_a_record(
    rows: BoxRows, search: BoxSearch, prices: Floats, own: int, least: int, paid: Floats
) -> float:
    """Return the further price of a record that tells most of boxes of at least so many records.

    With it boxes cost as much less, and `least` times the price more, which no box of enough
    records costs less than without. The bound is a concave function of the price: each box is a
    line, and the highest point lies where one with too few records meets one with enough.
    `paid`: (t,) workspace. Returns 0 where the best box without a price has enough. Complexity: at
    most `_STEPS` flows.
    """
    # Without a price a box has too few records, with a high one it has all.
    few, few_cost, many, many_cost = 0, 0.0, 0, 0.0
    price = 0.0
    for step in range(_STEPS):
        if step == 1:
            price = search.cost.sum() + prices.sum() + 1.0
        elif step > 1:
            price = max(0.0, (many_cost - few_cost) / (many - few))
        for kind in range(len(prices)):
            paid[kind] = prices[kind] + price * rows.counts[kind]
        _bound_box(rows, search, paid, 0, own, np.inf)
        _mark_box(search, 0, True)
        cost, _, size = _weigh_box(rows, search, prices, prices, own)
        if step == 0 and size >= least:
            break
        # No box lies below the line through both: the price is the best.
        line = few_cost + price * (size - few)
        if step > 1 and (size in (few, many) or cost >= line - _LEAST_FLOW):
            break
        if size >= least:
            many, many_cost = size, cost
        else:
            few, few_cost = size, cost
    return price


@kernel
def _take_in(rows: BoxRows, search: BoxSearch, depth: int, own: int, kind: int) -> None:
    """Open the levels that a type needs one depth below, and rule the type out for what follows."""
    for level in range(search.opened.shape[1]):
        search.opened[depth + 1, level] = search.opened[depth, level]
    for other in range(search.ruled_out.shape[1]):
        search.ruled_out[depth + 1, other] = search.ruled_out[depth, other]
    for a in range(rows.codes.shape[1]):
        if rows.codes[kind, a] == rows.codes[own, a]:
            continue
        level = rows.offset[a] + rows.codes[kind, a]
        while level >= 0 and not search.opened[depth + 1, level]:
            search.opened[depth + 1, level] = True
            level = search.nearer[level]
    search.ruled_out[depth, kind] = True


@kernel
def price_boxes(
    rows: BoxRows,
    search: BoxSearch,
    prices: Floats,
    rewards: Floats,
    least: int,
    targets: Floats,
    slack: float,
    nodes: int,
    most_work: float,
    lowest: Floats,
    found: Flags,
    cursor: Ints,
    amount: int,
) -> int:
    """Find boxes around up to `amount` further types; return how many types are done.

    `prices`: (t, t) what a box around each type has for covering each, at least 0. `rewards`:
    (t, t) at least 0, of which a box has the highest of those that it covers, and none for its own
    type. `least`: records of a box. `targets`: (t,) cost less prices and reward of a known box.
    `slack`: a box is looked for that is cheaper by as much. `nodes, most_work`: most nodes, types
    and levels that are looked at around a type; the work ends the first node later. `lowest`: (t,)
    gets what no box is below. `found`: (t, t) gets the types that a cheaper box covers.

    Complexity: a maximum flow a node; nodes exponential in `least` at worst, one for `least` 1
    without rewards.
    """
    paid = np.empty(len(prices))
    for own in range(cursor[0], min(cursor[0] + amount, len(prices))):
        _open_levels(rows, search, own)
        search.ruled_out[0, :] = False
        # Of large tables the flows for it take more than they tell; pairs are soon branched on.
        further_price, most_nodes = 0.0, nodes
        is_small = len(prices) ** 2.0 * len(search.cost) <= most_work
        if is_small and least > max(2, rows.counts[own]):
            further_price = _price_of_a_record(rows, search, prices[own], own, least, paid)
        if further_price > 0.0:
            most_nodes = nodes // _FEWER
        best, given_up, seen = targets[own], np.inf, 0
        enough = search.work[0] + most_work
        depth, fresh = 0, True
        while depth >= 0:
            limit = best - slack
            if fresh:
                # A new node: its bound, and the best box that the flow tells.
                fresh, seen = False, seen + 1
                search.held[depth] = search.place[depth] = 0
                most = _highest_reward(rows, search, rewards[own], depth, own)
                value, above = _bound_box(rows, search, prices[own], depth, own, limit + most), 0.0
                _mark_box(search, depth, True)
                loss, reward, size = _weigh_box(rows, search, prices[own], rewards[own], own)
                if further_price > 0.0 and size < least and value - most < limit:
                    search.work[0] += 4 * rows.codes.size  # levels looked up for both bounds
                    for kind in range(len(prices)):
                        paid[kind] = prices[own, kind] + further_price * rows.counts[kind]
                    beside = further_price * least
                    higher = _bound_box(rows, search, paid, depth, own, limit + most - beside)
                    if higher + beside > value:
                        value, above = higher + beside, further_price
                    else:
                        _bound_box(rows, search, prices[own], depth, own, limit + most)
                if value - most >= limit:
                    depth -= 1
                    continue
                if seen > most_nodes or search.work[0] > enough:
                    given_up = min(given_up, value - most)
                    depth -= 1
                    continue
                # Where the box may have no higher reward, and no further price is in the bound, it
                # is the best around these levels. Else it is one box, as is that of these levels
                # alone, and others take in more.
                ended = False
                for further in (True, False):
                    _mark_box(search, depth, further)
                    loss, reward, size = _weigh_box(rows, search, prices[own], rewards[own], own)
                    if size >= least and loss - reward < best - slack:
                        best = loss - reward
                        for kind in range(len(prices)):
                            found[own, kind] = not _needs(rows, search.box, own, kind)
                    if size >= least and reward >= most and above == 0.0:
                        ended = True
                        break
                if ended:
                    given_up = min(given_up, max(value - most, best - slack))
                    depth -= 1
                    continue
                limit = best - slack
                _list_candidates(rows, search, rewards[own], depth, own, value, limit + most)
            # The next type that the box takes in; those before it are ruled out by then.
            if search.place[depth] == search.held[depth]:
                depth -= 1
                continue
            at = search.place[depth]
            kind = search.candidates[depth, at]
            search.place[depth] += 1
            # Those of a higher reward that the box does not cover are ruled out.
            reward = _highest_reward(rows, search, rewards[own], depth, own)
            if search.least_cost[depth, at] - reward >= limit:
                search.ruled_out[depth, kind] = True
                continue
            _take_in(rows, search, depth, own, kind)
            depth, fresh = depth + 1, True
        lowest[own] = min(best - slack, given_up)
        cursor[0] = own + 1
    return cursor[0]
