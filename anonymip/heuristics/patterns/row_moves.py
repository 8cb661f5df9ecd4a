"""Moves of records between output rows, and rows for records that the greedy leaves without.

The move of the pattern search opens an output row, or adds to one, by records of other rows: what
is tried, weighed and taken back.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.heuristics.patterns.open_rows import (
    HEAD,
    PATTERN,
    SIZE,
    OpenRows,
    close_row,
    fits,
    is_diverse,
    move,
    open_row,
)
from anonymip.recodings.output_rows import group_rows
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

#: Places in ``numbers``: k, whether a pattern serves one row, next place of the order, marks given
#: out, moves made, whether only rows for records without one are looked at.
K, SINGLE, _NEXT, _MARKS, MADE, ONLY_UNASSIGNED = range(6)
#: What is gained must be more than rounding.
LEAST_GAIN = 1e-9


class Gathering(Packed):
    """What the search for moves needs besides the rows."""

    order: Ints  # patterns in the order in which they are tried
    costs: Floats  # (p,) cost of a record under each
    unassigned_costs: Floats  # what a record in no row costs
    alone: float  # what a record costs that leaves its row for none; infinite where none may
    #: Another row in use that each record may become, if its own is given up; -1 for none.
    other: Annotated[Ints, "n", -1]
    numbers: Ints  # settings and state
    #: Marks of records and of rows: those of the group, those given up.
    marks: Annotated[Ints, "n + rows"]
    kept: Annotated[Ints, "rows"]  # marks of rows that records of rows given up go to
    #: Records of each row in the group, and of them those that will move.
    found: Annotated[Ints, "rows"]
    taken: Annotated[Ints, "rows"]
    touched: Annotated[Ints, "rows"]  # rows with records in the group
    log: Annotated[Ints, "n, 2"]  # records moved, and where they were
    space: Ints  # (5, 2 (n + rows) or more) workspace of grouping


@kernel
def find_others(state: OpenRows, work: Gathering) -> None:
    """Find for each record the cheapest row in use that it fits, besides its own."""
    n, other = len(state.row_of), work.other
    heads = np.empty(len(state.rows) + n, np.int64)
    group, table, first = work.space[0], work.space[1], work.space[2]
    place = np.empty(len(heads), np.int64)
    other[:] = -1
    for pattern in work.order:
        if state.used[pattern] == 0:
            continue
        count = 0
        for row in range(len(state.rows)):
            if state.rows[row, PATTERN] == pattern:
                heads[count] = state.rows[row, HEAD]
                place[count] = row
                count += 1
        total = count
        for record in range(n):
            if other[record] < 0:
                heads[total] = record
                total += 1
        # Rows in use differ: each is a group, in their order.
        shown = state.masks[pattern]
        group_rows(state.words, shown, heads[:total], count, group, table, first)
        for at in range(count, total):
            record = heads[at]
            if group[at] >= 0 and place[group[at]] != state.row_of[record]:
                other[record] = place[group[at]]


@kernel
def try_patterns(state: OpenRows, work: Gathering, until: int) -> None:
    """Open, or add to, each row that gains by it, of the patterns up to a place in the order."""
    n, numbers = len(state.row_of), work.numbers
    group, table, first = work.space[0], work.space[1], work.space[2]
    sums, members = work.space[3], work.space[4]
    records = np.arange(n)
    while numbers[_NEXT] < until:
        pattern = work.order[numbers[_NEXT]]
        numbers[_NEXT] += 1
        cost = work.costs[pattern]
        # Only rows that some record would gain by are looked at: these records come first.
        count = 0
        rest = n
        for record in range(n):
            row, now = state.row_of[record], cost
            if row < 0:
                now = work.unassigned_costs[record]
            elif numbers[ONLY_UNASSIGNED] == 0:
                now = work.costs[state.rows[row, PATTERN]]
            if now > cost:
                records[count] = record
                count += 1
            else:
                rest -= 1
                records[rest] = record
        if count == 0:
            continue
        shown = state.masks[pattern]
        groups = group_rows(state.words, shown, records, count, group, table, first)
        # Sort the records by group: those of a group are members[sums[g] : sums[g + 1]].
        sums[: groups + 1] = 0
        for at in range(n):
            if group[at] >= 0:
                sums[group[at] + 1] += 1
        for number in range(groups):
            sums[number + 1] += sums[number]
        ends = first
        for number in range(groups):
            ends[number] = sums[number]
        for at in range(n):
            if group[at] >= 0:
                members[ends[group[at]]] = records[at]
                ends[group[at]] += 1
        # A new row needs k records; a row in use takes any.
        for number in range(groups):
            begin, end = sums[number], sums[number + 1]
            if end - begin >= numbers[K] or state.used[pattern] > 0:
                gather(state, work, pattern, members[begin:end])


@kernel
def gather(state: OpenRows, work: Gathering, pattern: int, members: Ints) -> None:
    """Open the row of a pattern for records that look alike through it, if that gains enough.

    Records that gain come, as far as their rows can spare them, or with all others of their row
    where these find another one. If they are fewer than k, those join that lose least.
    """
    rows, numbers, costs = state.rows, work.numbers, work.costs
    found, taken, touched = work.found, work.taken, work.touched
    k, cost = numbers[K], costs[pattern]
    numbers[_MARKS] += 1
    mark = numbers[_MARKS]
    target, count, came, gain = -1, 0, 0, 0.0
    # Mark the group and count its members by row; the pattern's own row, if in use, is the target.
    for record in members:
        work.marks[record] = mark
        row = state.row_of[record]
        if row < 0:
            if work.unassigned_costs[record] > cost:
                gain += work.unassigned_costs[record] - cost
                came += 1
        elif rows[row, PATTERN] == pattern:
            target = row
        else:
            if found[row] == 0:
                taken[row] = 0
                touched[count] = row
                count += 1
            found[row] += 1
    possible = target >= 0 or numbers[SINGLE] == 0 or state.used[pattern] == 0
    if possible and target < 0 and state.free[0] == 0:
        possible = False
    if possible:
        # A costlier row gives what it can spare beyond its k, or all of it if that gains more.
        for at in range(count):
            row = touched[at]
            saved = costs[rows[row, PATTERN]] - cost
            if saved <= 0:
                continue
            spare = min(found[row], rows[row, SIZE] - k)
            if found[row] > spare:
                leaving = _leaving(state, work, row, (found[row] - spare) * saved)
                if found[row] * saved - leaving > spare * saved:
                    _give_up(state, work, row)
                    gain += found[row] * saved - leaving
                    came += found[row]
                    taken[row] = found[row]
                    continue
            gain += spare * saved
            came += spare
            taken[row] = spare
        # A new row that these leave below k fills up with the members who lose least.
        if target < 0 and came < k:
            short, lost = _fill_up(state, work, cost, count, k - came, gain)
            gain -= lost
            possible = not short
    if possible and gain > LEAST_GAIN:
        _carry_out(state, work, pattern, target, members, count)
    # Clear the counters for the next group.
    for at in range(count):
        found[touched[at]] = 0
        taken[touched[at]] = 0


@kernel
def _leaving(state: OpenRows, work: Gathering, row: int, most: float) -> float:
    """Return what the records of a row lose that are not in the group, if it is given up.

    Infinite once it exceeds `most` on the way, so that large rows are not walked through in vain.
    """
    mark = work.numbers[_MARKS]
    if work.kept[row] == mark:
        return np.inf
    now = work.costs[state.rows[row, PATTERN]]
    lost = 0.0
    record = state.rows[row, HEAD]
    while record >= 0:
        if work.marks[record] != mark:
            other = _goes_to(state, work, record, row)
            lost -= now
            lost += work.alone if other < 0 else work.costs[state.rows[other, PATTERN]]
            if lost > most:
                return np.inf
        record = state.links[record, 1]
    return lost


@kernel
def _goes_to(state: OpenRows, work: Gathering, record: int, row: int) -> int:
    """Return where a record goes whose row is given up: its other row, or -1 for none."""
    other = work.other[record]
    if (
        other >= 0
        and other != row
        and state.rows[other, PATTERN] >= 0
        and work.marks[len(state.row_of) + other] != work.numbers[_MARKS]
        and fits(state, record, other)
        and work.costs[state.rows[other, PATTERN]] <= work.alone
    ):
        return other
    return -1


@kernel
def _give_up(state: OpenRows, work: Gathering, row: int) -> None:
    """Mark a row as given up, and as kept those that its other records go to."""
    mark = work.numbers[_MARKS]
    work.marks[len(state.row_of) + row] = mark
    record = state.rows[row, HEAD]
    while record >= 0:
        if work.marks[record] != mark:
            other = _goes_to(state, work, record, row)
            if other >= 0:
                work.kept[other] = mark
        record = state.links[record, 1]


@kernel
def _fill_up(
    state: OpenRows, work: Gathering, cost: float, count: int, needed: int, most: float
) -> tuple[bool, float]:
    """Take records that lose least until enough come; return whether too few do, and the loss.

    A loss above `most` is not worth it.
    """
    rows, k = state.rows, work.numbers[K]
    found, taken, touched = work.found, work.taken, work.touched
    lost = 0.0
    # First what other rows can spare, from the row that loses least for each record.
    while needed > 0:
        best, least = -1, np.inf
        for at in range(count):
            row = touched[at]
            if taken[row] < min(found[row], rows[row, SIZE] - k):
                loss = cost - work.costs[rows[row, PATTERN]]
                if loss < least:
                    best, least = row, loss
        if best < 0:
            break
        more = min(needed, min(found[best], rows[best, SIZE] - k) - taken[best])
        taken[best] += more
        needed -= more
        lost += more * least
    # Then whole rows, by what giving one up loses for each record that is needed.
    while needed > 0:
        best, least, total = -1, np.inf, 0.0
        for at in range(count):
            row = touched[at]
            more = found[row] - taken[row]
            if more > 0 and work.marks[len(state.row_of) + row] != work.numbers[_MARKS]:
                loss = more * (cost - work.costs[rows[row, PATTERN]])
                loss += _leaving(state, work, row, most - lost - loss)
                if loss < least * min(more, needed):
                    best, least, total = row, loss / min(more, needed), loss
        if best < 0:
            return True, lost
        _give_up(state, work, best)
        needed -= found[best] - taken[best]
        taken[best] = found[best]
        lost += total
        if lost > most:
            return True, lost
    return False, lost


@kernel
def _carry_out(
    state: OpenRows, work: Gathering, pattern: int, target: int, members: Ints, count: int
) -> None:
    """Make a move; undo it if a row then lacks the diversity."""
    rows, log, n = state.rows, work.log, len(state.row_of)
    opened = target < 0
    if opened:
        target = open_row(state, pattern)
    moved = 0
    # Members come first: unassigned ones that gain, and as many of each row as were counted on.
    for record in members:
        row = state.row_of[record]
        if row == target:
            continue
        comes = (
            work.unassigned_costs[record] > work.costs[pattern] if row < 0 else work.taken[row] > 0
        )
        if comes:
            if row >= 0:
                work.taken[row] -= 1
            log[moved, 0], log[moved, 1] = record, row
            moved += 1
            move(state, record, target)
    # The other records of rows given up go where it was found that they fit.
    for at in range(count):
        row = work.touched[at]
        if work.marks[n + row] == work.numbers[_MARKS]:
            while rows[row, HEAD] >= 0:
                record = rows[row, HEAD]
                other = _goes_to(state, work, record, row)
                log[moved, 0], log[moved, 1] = record, row
                moved += 1
                move(state, record, other)
    # Every row that changed must keep the diversity; if one does not, all is undone in reverse.
    if len(state.kinds) > 0:
        good = is_diverse(state, target)
        for at in range(moved):
            if not good:
                break
            if log[at, 1] >= 0:
                good = is_diverse(state, log[at, 1])
            if good and state.row_of[log[at, 0]] >= 0:
                good = is_diverse(state, state.row_of[log[at, 0]])
        if not good:
            for at in range(moved - 1, -1, -1):
                move(state, log[at, 0], log[at, 1])
            if opened:
                close_row(state, target)
            return
    # Rows that have lost all records close; only after the check, as an undone move needs them.
    for at in range(count):
        if rows[work.touched[at], SIZE] == 0:
            close_row(state, work.touched[at])
    work.numbers[MADE] += 1


_PHASE = "finding rows for records"


def place_unassigned(state: OpenRows, work: Gathering, budget: Budget) -> None:
    """Find rows for records in none, the cheapest first; some may be left.

    A record joins the cheapest row in use that it fits, unless a row of its own, filled by records
    that other rows can spare, costs less. Who fits no row in use takes the cheapest row that can
    be filled. Where suppressing a record is allowed, that competes. When the budget ends, records
    only join rows in use; ``work.unassigned_costs`` is overwritten. Complexity: a pass over all
    patterns, O(p n), while anything is gained.
    """
    large = (len(state.row_of) + 1.0) * (1.0 + float(work.costs.max()))
    work.numbers[ONLY_UNASSIGNED] = 1
    # Others than these pay what joining costs, so that only better rows are opened.
    work.unassigned_costs[:] = min(large, work.alone)
    _join(state, work, False)
    try_all(state, work, budget, _PHASE)
    _join(state, work, True)
    while (state.row_of < 0).any() and np.isinf(work.alone):
        before = int((state.row_of < 0).sum())
        work.unassigned_costs[:] = large
        if try_all(state, work, budget, _PHASE):
            break
        _join(state, work, True)
        if int((state.row_of < 0).sum()) == before:
            break
    work.numbers[ONLY_UNASSIGNED] = 0
    work.unassigned_costs[:] = work.alone


def gather_under_stars(state: OpenRows, work: Gathering, stars: int, k: int) -> bool:
    """Put records in no row under the pattern of stars only, with whole rows until k are there.

    Rows of the costliest patterns come first. Returns whether the row keeps the diversity; all
    records together do if the table does.
    """
    rows = state.rows
    existing = np.flatnonzero(rows[:, PATTERN] == stars)
    target = int(existing[0]) if len(existing) else int(open_row(state, stars))
    for record in np.flatnonzero(state.row_of < 0).tolist():
        move(state, record, target)
    by_cost = np.where(rows[:, PATTERN] >= 0, work.costs[rows[:, PATTERN]], -np.inf)
    for row in np.argsort(-by_cost, kind="stable"):
        if rows[target, SIZE] >= k and is_diverse(state, target):
            return True
        if row == target or rows[row, PATTERN] < 0:
            continue
        while rows[row, HEAD] >= 0:
            move(state, rows[row, HEAD], target)
        close_row(state, row)
    return bool(rows[target, SIZE] >= k and is_diverse(state, target))


def try_all(state: OpenRows, work: Gathering, budget: Budget, phase: str) -> Stopped | None:
    """Try all patterns once; return why the budget ended, None if it did not."""
    work.numbers[_NEXT] = 0

    def step(amount: int) -> int:
        done = int(work.numbers[_NEXT])
        try_patterns(state, work, min(len(work.order), done + amount))
        return int(work.numbers[_NEXT])

    return run_in_steps(step, len(work.order), budget, phase)


def _join(state: OpenRows, work: Gathering, moved: bool) -> None:
    """Let records in no row join the cheapest that they fit and that stays diverse.

    Or, if they are not `moved`, write down what they would pay for the cheapest that they fit.
    """
    rows = np.flatnonzero(state.rows[:, PATTERN] >= 0)
    order = np.argsort(work.costs[state.rows[rows, PATTERN]], kind="stable")
    _join_rows(state, work, np.flatnonzero(state.row_of < 0), rows[order].astype(np.int64), moved)


@kernel
def _join_rows(state: OpenRows, work: Gathering, unassigned: Ints, rows: Ints, moved: bool) -> None:
    """Let records join the first row that they fit, or only write down what that costs."""
    for record in unassigned:
        for row in rows:
            cost = work.costs[state.rows[row, PATTERN]]
            if moved and cost > work.alone:
                break
            if not fits(state, record, row):
                continue
            if not moved:
                work.unassigned_costs[record] = min(work.unassigned_costs[record], cost)
                break
            move(state, record, row)
            if is_diverse(state, row):
                break
            move(state, record, -1)
