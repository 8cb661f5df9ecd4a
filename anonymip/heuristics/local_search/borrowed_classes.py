"""The best classes of the rows of a window, some filled up with borrowed copies of one type.

First all sets of rows that can be a class of a release below the present loss are listed, depth
first, then the cheapest of them that hold each row once are found by dynamic programming.

Each row i loses at least some bound b(i) in any class, so that no class costs less than the bounds
of its rows; what it costs beyond is its excess. All excesses together must stay below what the
present classes lose beyond the bounds of all rows, and the excess of a set never falls while it
grows, since the loss is monotone.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.heuristics.local_search.current_classes import ClassRules, part_of
from anonymip.objectives.kernels.class_loss import KernelRows, ends_loss, pair_loss, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Most rows of a window, most types that can fill up its classes, and most sets listed.
MOST_LISTED, MOST_DONORS, MOST_PARTS = 16, 64, 16_384
#: The bit of the values that no row of the window has: one donor brings at most one of them.
_STRANGE = np.int64(1) << 62


class Donors(Packed):
    """Types that may fill up the classes of a window with copies."""

    #: The types, what a copy loses in its own class, how many copies can leave that, and the rows
    #: that each may be put with, a bit each.
    types: Annotated[Ints, "MOST_DONORS"]
    surplus_losses: Annotated[Floats, "MOST_DONORS"]
    spare: Annotated[Ints, "MOST_DONORS"]
    near: Annotated[Ints, "MOST_DONORS"]
    pairs: Annotated[Floats, "MOST_LISTED, MOST_DONORS"]  # loss of a row and a donor


class GrowingSet(Packed):
    """The set that grows, as it was at each depth."""

    #: Ends, values, ranks, loss, and for each donor the largest loss of it with a row of the set.
    low: Annotated[Floats, "MOST_LISTED, r"]
    high: Annotated[Floats, "MOST_LISTED, r"]
    held: Annotated[Ints, "MOST_LISTED, s"]
    counts: Annotated[Ints, "MOST_LISTED, s"]
    first: Annotated[Ints, "MOST_LISTED, p"]
    last: Annotated[Ints, "MOST_LISTED, p"]
    losses: Annotated[Floats, "MOST_LISTED"]
    far: Annotated[Floats, "MOST_LISTED, MOST_DONORS"]
    chosen: Annotated[Ints, "MOST_LISTED"]  # row that each step put into the set


class ListedSets(Packed):
    """The sets that can be classes, and the best choice among them."""

    #: Sets listed by first row: the rows, the excess, and the donor.
    begin: Annotated[Ints, "MOST_LISTED + 1"]
    part: Annotated[Ints, "MOST_PARTS"]
    excess: Annotated[Floats, "MOST_PARTS"]
    filler: Annotated[Ints, "MOST_PARTS"]
    #: Least excess of classes of these rows, and the last one of them.
    least: Annotated[Floats, "1 << MOST_LISTED"]
    choice: Annotated[Ints, "1 << MOST_LISTED"]


class ListedWork(Packed):
    """Workspace of one window."""

    #: Types of the rows: what is asked, with `donors` and `size`.
    row_types: Annotated[Ints, "MOST_LISTED"]
    donors: Donors  # types that may fill up classes
    #: What classes are made of; a value of a set is a bit.
    values: Annotated[Floats, "MOST_LISTED + MOST_DONORS, r"]
    bits: Annotated[Ints, "MOST_LISTED + MOST_DONORS, s"]
    ranks: Annotated[Ints, "MOST_LISTED + MOST_DONORS, p"]
    bounds: Annotated[Floats, "MOST_LISTED"]  # what each row loses at least
    highest: Annotated[Floats, "MOST_LISTED + 1, k"]  # highest bounds of the rows from each on
    growing: GrowingSet  # the set that grows
    sets: ListedSets  # those listed
    size: Annotated[Ints, "2"]  # numbers of rows and donors
    #: Class of each row, and the type that fills up each class, -1 for none: the answer.
    group: Annotated[Ints, "MOST_LISTED"]
    lender: Annotated[Ints, "MOST_LISTED"]
    nodes: Annotated[Ints, "1"]  # sets looked at


def new_listed_work(tables: LossTables, k: int) -> ListedWork:
    """Return the workspace of windows for classes of k rows."""
    r, s, p = tables.term_counts
    growing = GrowingSet.of_sizes(r=r, s=s, p=p)
    listed, donors = ListedSets.of_sizes(), Donors.of_sizes()
    return ListedWork.of_sizes(r=r, s=s, p=p, k=k, growing=growing, sets=listed, donors=donors)


@kernel
def _lay_out(rows: KernelRows, work: ListedWork) -> None:
    """Copy rows and donors side by side; the values that rows have in a set become bits."""
    count, donors = work.size[0], work.size[1]
    for at in range(count + donors):
        row_type = work.row_types[at] if at < count else work.donors.types[at - count]
        for r in range(work.values.shape[1]):
            work.values[at, r] = rows.range_values[row_type, r]
        for p in range(work.ranks.shape[1]):
            work.ranks[at, p] = rows.pair_codes[row_type, p]
        for s in range(work.bits.shape[1]):
            code = rows.set_codes[row_type, s]
            bit = _STRANGE if at >= count else np.int64(1) << at
            for before in range(min(at, count)):
                if rows.set_codes[work.row_types[before], s] == code:
                    bit = work.bits[before, s]
                    break
            work.bits[at, s] = bit
    for i in range(count):
        for d in range(donors):
            work.donors.pairs[i, d] = pair_loss(rows, work.row_types[i], work.donors.types[d])


@kernel
def _find_bounds(rows: KernelRows, k: int, work: ListedWork) -> float:
    """Bound what each row loses: no less than with its k-th nearest row, or a donor."""
    count, donors = work.size[0], work.size[1]
    nearest = np.empty(k)
    total = 0.0
    work.highest[count, :] = -np.inf
    for i in range(count - 1, -1, -1):
        nearest[:] = np.inf
        for other in range(count):
            loss = pair_loss(rows, work.row_types[i], work.row_types[other])
            at = k
            while at > 0 and nearest[at - 1] > loss:
                if at < k:
                    nearest[at] = nearest[at - 1]
                at -= 1
            if at < k:
                nearest[at] = loss
        bound = nearest[k - 1]
        for d in range(donors):
            bound = min(bound, work.donors.pairs[i, d])
        work.bounds[i] = bound
        total += bound
        # The highest bounds from this row on: those of the next, this one among them.
        at = 0
        while at < k and work.highest[i + 1, at] >= bound:
            work.highest[i, at] = work.highest[i + 1, at]
            at += 1
        if at < k:
            work.highest[i, at] = bound
            for place in range(at + 1, k):
                work.highest[i, place] = work.highest[i + 1, place - 1]
    return total


@kernel
def _put_row(tables: LossTables, work: ListedWork, depth: int, i: int) -> None:
    """Make the set of a depth: the one before and a row more; at depth 0 the row alone."""
    before, loss = depth - 1, tables.constant
    low, high, held, counts = (
        work.growing.low,
        work.growing.high,
        work.growing.held,
        work.growing.counts,
    )
    first, last, far = work.growing.first, work.growing.last, work.growing.far
    for r in range(low.shape[1]):
        value = work.values[i, r]
        low[depth, r] = value if depth == 0 else min(low[before, r], value)
        high[depth, r] = value if depth == 0 else max(high[before, r], value)
        loss += range_loss(tables, r, low[depth, r], high[depth, r])
    for s in range(held.shape[1]):
        bit = work.bits[i, s]
        known = held[before, s] if depth else np.int64(0)
        count = counts[before, s] if depth else np.int64(0)
        count += 0 if known & bit else 1
        held[depth, s] = known | bit
        counts[depth, s] = count
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(first.shape[1]):
        rank = work.ranks[i, p]
        first[depth, p] = rank if depth == 0 else min(first[before, p], rank)
        last[depth, p] = rank if depth == 0 else max(last[before, p], rank)
        loss += ends_loss(tables, p, first[depth, p], last[depth, p])
    work.growing.losses[depth] = loss
    pairs = work.donors.pairs
    for d in range(work.size[1]):
        far[depth, d] = pairs[i, d] if depth == 0 else max(far[before, d], pairs[i, d])


@kernel
def _loss_with_donor(tables: LossTables, work: ListedWork, depth: int, donor: int) -> float:
    """Return the record loss of the set of a depth with copies of a donor."""
    at = work.size[0] + donor
    loss = tables.constant
    for r in range(work.values.shape[1]):
        value = work.values[at, r]
        low, high = min(work.growing.low[depth, r], value), max(work.growing.high[depth, r], value)
        loss += range_loss(tables, r, low, high)
    for s in range(work.bits.shape[1]):
        count = work.growing.counts[depth, s]
        if not work.growing.held[depth, s] & work.bits[at, s]:
            count += 1
        loss += tables.set_losses[tables.set_start[s] + count]
    for p in range(work.ranks.shape[1]):
        rank = work.ranks[at, p]
        first, last = (
            min(work.growing.first[depth, p], rank),
            max(work.growing.last[depth, p], rank),
        )
        loss += ends_loss(tables, p, first, last)
    return loss


@kernel
def members_of(subset: int) -> int:
    """Return how many rows a set has."""
    count = 0
    while subset:
        subset &= subset - 1
        count += 1
    return count


@kernel
def _fill_up(
    rules: ClassRules, work: ListedWork, depth: int, subset: np.int64, own: float, slack: float
) -> tuple[float, int]:
    """Return the least excess of a set filled up to k rows, and by which donor.

    Infinite if it would not be below the slack. `own` are the bounds of its rows; 0 where the
    largest loss counts.
    """
    missing = rules.k - depth - 1
    best, filler = slack, -1
    for d in range(work.size[1]):
        if not work.donors.near[d] & subset or work.donors.spare[d] < missing:
            continue
        # Copies that leave a surplus class no longer lose what they lost there.
        gone = own + missing * work.donors.surplus_losses[d] if rules.summed else 0.0
        least = max(work.growing.losses[depth], work.growing.far[depth, d])
        if part_of(rules, rules.k, least) - gone >= best:
            continue
        excess = part_of(rules, rules.k, _loss_with_donor(rules.rows.tables, work, depth, d)) - gone
        if excess < best:
            best, filler = excess, d
    return (best, filler) if filler >= 0 else (np.inf, -1)


@kernel
def _list_parts(rules: ClassRules, work: ListedWork, slack: float, max_nodes: int) -> None:
    """List the sets whose excess is below the slack, by their first rows."""
    count, k = work.size[0], rules.k
    most, listed, nodes = 2 * k - 1, 0, 0
    largest = -np.inf
    for d in range(work.size[1]):
        largest = max(largest, work.donors.surplus_losses[d])
    for start in range(count):
        work.sets.begin[start] = listed
        work.growing.chosen[0] = start
        _put_row(rules.rows.tables, work, 0, start)
        depth, subset, own = 0, np.int64(1) << start, work.bounds[start]
        # At each turn the set of this depth has just been made.
        while True:
            nodes += 1
            members, i = depth + 1, work.growing.chosen[depth]
            loss = work.growing.losses[depth]
            # What the set loses beyond its bounds already, and with k rows: each one lacking loses
            # no less here, whether it comes from the window or is borrowed.
            if rules.summed:
                excess = members * loss - own
                for at in range(k - members):
                    excess += max(0.0, loss - max(work.highest[i + 1, at], largest))
            else:
                excess = loss
            open_end = excess < slack and nodes < max_nodes
            if open_end and listed < MOST_PARTS:
                filler = -1
                if members < k:
                    excess, filler = _fill_up(
                        rules, work, depth, subset, own if rules.summed else 0.0, slack
                    )
                if excess < slack:
                    work.sets.part[listed] = subset
                    work.sets.excess[listed] = excess
                    work.sets.filler[listed] = filler
                    listed += 1
            # On with the next row behind; if there is none, or no more may join, take rows back.
            following = i + 1
            if not open_end or members == most:
                following = count
            while following == count and depth > 0:
                own -= work.bounds[work.growing.chosen[depth]]
                subset ^= np.int64(1) << work.growing.chosen[depth]
                following = work.growing.chosen[depth] + 1
                depth -= 1
            if following == count:
                break
            depth += 1
            work.growing.chosen[depth] = following
            own += work.bounds[following]
            subset |= np.int64(1) << following
            _put_row(rules.rows.tables, work, depth, following)
    work.sets.begin[count] = listed
    work.nodes[0] = nodes


@kernel
def _raise_bounds(work: ListedWork, slack: float) -> tuple[float, float]:
    """Raise the bounds as far as the sets listed allow; losses are summed.

    Return the slack that is left and by how much all bounds were raised together; sets beyond the
    slack are listed no more. A bound can be raised by the least excess of all sets with its row:
    the excess of each of them falls by that, and so does the slack, so that sets that were not
    listed stay beyond it.
    """
    count = work.size[0]
    part, excess = work.sets.part, work.sets.excess
    raised = 0.0
    # First each set shares its excess among its rows ...
    rises = np.full(count, np.inf)
    for at in range(work.sets.begin[count]):
        share = excess[at] / members_of(part[at])
        for i in range(count):
            if part[at] >> i & 1:
                rises[i] = min(rises[i], share)
    for at in range(work.sets.begin[count]):
        for i in range(count):
            if part[at] >> i & 1:
                excess[at] -= rises[i]
    for i in range(count):
        raised += rises[i]
        slack -= rises[i]
    _keep_below(work, slack)
    # ... then one row after the other takes what is left.
    for i in range(count):
        rise = np.inf
        for at in range(work.sets.begin[count]):
            if part[at] >> i & 1:
                rise = min(rise, excess[at])
        for at in range(work.sets.begin[count]):
            if part[at] >> i & 1:
                excess[at] -= rise
        raised += rise
        slack -= rise
    _keep_below(work, slack)
    return slack, raised


@kernel
def _keep_below(work: ListedWork, slack: float) -> None:
    """Forget the sets whose excess is not below the slack."""
    kept, begin = 0, 0
    for i in range(work.size[0]):
        end = work.sets.begin[i + 1]
        for at in range(begin, end):
            if work.sets.excess[at] < slack:
                work.sets.part[kept] = work.sets.part[at]
                work.sets.excess[kept] = work.sets.excess[at]
                work.sets.filler[kept] = work.sets.filler[at]
                kept += 1
        begin = end
        work.sets.begin[i + 1] = kept


@kernel
def _cover(rules: ClassRules, work: ListedWork, slack: float) -> float:
    """Return the least excess of sets listed that hold each row once; infinite if not below."""
    count = work.size[0]
    full = (np.int64(1) << count) - 1
    least, choice = work.sets.least, work.sets.choice
    least[: full + 1] = np.inf
    least[0] = 0.0 if rules.summed else -np.inf
    steps, bar = 0, slack
    # Sets come in ascending order; each that is reached takes a class with its first row lacking.
    for covered in range(full):
        before = least[covered]
        if before >= bar:
            continue
        row = 0
        while covered >> row & 1:
            row += 1
        steps += work.sets.begin[row + 1] - work.sets.begin[row]
        for at in range(work.sets.begin[row], work.sets.begin[row + 1]):
            part = work.sets.part[at]
            if part & covered:
                continue
            excess = work.sets.excess[at]
            after = before + excess if rules.summed else max(before, excess)
            if after < least[covered | part]:
                least[covered | part] = after
                choice[covered | part] = at
        bar = min(bar, least[full])
    work.nodes[0] += steps // 16
    return float(least[full]) if least[full] < slack else np.inf


@kernel
def best_classes(rules: ClassRules, work: ListedWork, old: float, max_nodes: int) -> float:
    """Return the loss of the best classes of the rows if it is below `old`; infinite otherwise.

    `rules`: loss, row types, k and whether losses are summed; the loss is monotone.
    `work`: with the rows and the donors. `old`: what the rows lose now. `max_nodes`: sets looked
    at; if there are more, the classes found may not be the best. Complexity: exponential in the
    rows in the worst case; the sets that the bounds leave are a few hundred of 16 rows that lie
    near each other.
    """
    _lay_out(rules.rows, work)
    total = _find_bounds(rules.rows, rules.k, work)
    slack = old - total if rules.summed else old
    if rules.summed and slack <= 0.0:
        return np.inf
    _list_parts(rules, work, slack, max_nodes)
    if rules.summed:
        slack, raised = _raise_bounds(work, slack)
        total += raised
        # A row that no set listed holds raises its bound without end.
        if not slack > 0.0:
            return np.inf
    found = _cover(rules, work, slack)
    return found + total if rules.summed else found


@kernel
def read_classes(rules: ClassRules, work: ListedWork) -> bool:
    """Write the classes found; false if the donors do not hold what these borrow together."""
    covered = (np.int64(1) << work.size[0]) - 1
    number, enough = 0, True
    while covered:
        at = work.sets.choice[covered]
        part, filler = work.sets.part[at], work.sets.filler[at]
        for i in range(work.size[0]):
            if part >> i & 1:
                work.group[i] = number
        work.lender[number] = -1
        if filler >= 0:
            work.lender[number] = work.donors.types[filler]
            work.donors.spare[filler] -= rules.k - members_of(part)
            enough = enough and work.donors.spare[filler] >= 0
        covered ^= part
        number += 1
    return enough
