"""The best classes of the rows of a window, some filled up with borrowed copies of one type.

First all sets of rows that can be a class of a release below the present loss are listed, depth
first, then the cheapest of them that hold each row once are found by dynamic programming.

Each row i loses at least some bound b(i) in any class, so that no class costs less than the bounds
of its rows; what it costs beyond is its excess. All excesses together must stay below what the
present classes lose beyond the bounds of all rows, and the excess of a set never falls while it
grows, since the loss is monotone.
"""

from __future__ import annotations

import numpy as np

from anonymip.heuristics.local_search.borrowing.listed_work import (
    MOST_PARTS,
    ListedWork,
    find_bounds,
    lay_out,
    loss_with_donor,
    members_of,
    put_row,
)
from anonymip.heuristics.local_search.pool import PoolRules, part_of
from anonymip.objectives.kernels.class_loss import KernelRows
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel


@kernel
def _fill_up(
    tables: LossTables,
    rules: PoolRules,
    work: ListedWork,
    depth: int,
    subset: np.int64,
    own: float,
    slack: float,
) -> tuple[float, int]:
    """Return the least excess of a set filled up to k rows, and by which donor.

    Infinite if it would not be below the slack. `own` are the bounds of its rows; 0 where the
    largest loss counts.
    """
    missing = rules.k - depth - 1
    best, filler = slack, -1
    for d in range(work.size[1]):
        if not work.near[d] & subset or work.spare[d] < missing:
            continue
        # Copies that leave a surplus class no longer lose what they lost there.
        gone = own + missing * work.surplus_losses[d] if rules.summed else 0.0
        least = max(work.losses[depth], work.far[depth, d])
        if part_of(rules, rules.k, least) - gone >= best:
            continue
        excess = part_of(rules, rules.k, loss_with_donor(tables, work, depth, d)) - gone
        if excess < best:
            best, filler = excess, d
    return (best, filler) if filler >= 0 else (np.inf, -1)


@kernel
def _list_parts(
    tables: LossTables, rules: PoolRules, work: ListedWork, slack: float, max_nodes: int
) -> None:
    """List the sets whose excess is below the slack, by their first rows."""
    count, k = work.size[0], rules.k
    most, listed, nodes = 2 * k - 1, 0, 0
    largest = -np.inf
    for d in range(work.size[1]):
        largest = max(largest, work.surplus_losses[d])
    for start in range(count):
        work.begin[start] = listed
        work.chosen[0] = start
        put_row(tables, work, 0, start)
        depth, subset, own = 0, np.int64(1) << start, work.bounds[start]
        # At each turn the set of this depth has just been made.
        while True:
            nodes += 1
            members, i = depth + 1, work.chosen[depth]
            loss = work.losses[depth]
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
                        tables, rules, work, depth, subset, own if rules.summed else 0.0, slack
                    )
                if excess < slack:
                    work.part[listed] = subset
                    work.excess[listed] = excess
                    work.filler[listed] = filler
                    listed += 1
            # On with the next row behind; if there is none, or no more may join, take rows back.
            following = i + 1
            if not open_end or members == most:
                following = count
            while following == count and depth > 0:
                own -= work.bounds[work.chosen[depth]]
                subset ^= np.int64(1) << work.chosen[depth]
                following = work.chosen[depth] + 1
                depth -= 1
            if following == count:
                break
            depth += 1
            work.chosen[depth] = following
            own += work.bounds[following]
            subset |= np.int64(1) << following
            put_row(tables, work, depth, following)
    work.begin[count] = listed
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
    part, excess = work.part, work.excess
    raised = 0.0
    # First each set shares its excess among its rows ...
    rises = np.full(count, np.inf)
    for at in range(work.begin[count]):
        share = excess[at] / members_of(part[at])
        for i in range(count):
            if part[at] >> i & 1:
                rises[i] = min(rises[i], share)
    for at in range(work.begin[count]):
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
        for at in range(work.begin[count]):
            if part[at] >> i & 1:
                rise = min(rise, excess[at])
        for at in range(work.begin[count]):
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
        end = work.begin[i + 1]
        for at in range(begin, end):
            if work.excess[at] < slack:
                work.part[kept] = work.part[at]
                work.excess[kept] = work.excess[at]
                work.filler[kept] = work.filler[at]
                kept += 1
        begin = end
        work.begin[i + 1] = kept


@kernel
def _cover(rules: PoolRules, work: ListedWork, slack: float) -> float:
    """Return the least excess of sets listed that hold each row once; infinite if not below."""
    count = work.size[0]
    full = (np.int64(1) << count) - 1
    least, choice = work.least, work.choice
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
        steps += work.begin[row + 1] - work.begin[row]
        for at in range(work.begin[row], work.begin[row + 1]):
            part = work.part[at]
            if part & covered:
                continue
            excess = work.excess[at]
            after = before + excess if rules.summed else max(before, excess)
            if after < least[covered | part]:
                least[covered | part] = after
                choice[covered | part] = at
        bar = min(bar, least[full])
    work.nodes[0] += steps // 16
    return float(least[full]) if least[full] < slack else np.inf


@kernel
def best_classes(
    tables: LossTables,
    rows: KernelRows,
    rules: PoolRules,
    work: ListedWork,
    old: float,
    max_nodes: int,
) -> float:
    """Return the loss of the best classes of the rows if it is below `old`; infinite otherwise.

    Parameters
    ----------
    tables, rows, rules
        Loss, row types, k and whether losses are summed; the loss is monotone.
    work
        With the rows and the donors.
    old
        What the rows lose now.
    max_nodes
        Sets looked at; if there are more, the classes found may not be the best.

    Notes
    -----
    Complexity: exponential in the rows in the worst case; the sets that the bounds leave are a few
    hundred of 16 rows that lie near each other.
    """
    lay_out(tables, rows, work)
    total = find_bounds(tables, rows, rules.k, work)
    slack = old - total if rules.summed else old
    if rules.summed and slack <= 0.0:
        return np.inf
    _list_parts(tables, rules, work, slack, max_nodes)
    if rules.summed:
        slack, raised = _raise_bounds(work, slack)
        total += raised
        # A row that no set listed holds raises its bound without end.
        if not slack > 0.0:
            return np.inf
    found = _cover(rules, work, slack)
    return found + total if rules.summed else found
