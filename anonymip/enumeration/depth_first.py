"""Depth-first search for sets of row types, for losses that have tables.

A set grows by one row at a time, types never descending, so that each multiset of types is met
once. What may follow is filtered on the way down: a type stays only if the set with it keeps the
limits and may still become a set below the cutoff.

With a monotone record loss c, prices p and a set S to which x was added, a set T of t rows that
contains both has a reduced cost of at least t c(S + x) - p(S + x) - (the t - |S| - 1 highest
prices of the rows that may follow).

One file, since the steps of one search write over the same arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.kernels.class_loss import KernelRows, pair_loss, range_loss
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel

#: What a step ends with.
DONE, MORE, FULL, MAX_SETS, MAX_NODES = 0, 1, 2, 3, 4


class Rules(NamedTuple):
    """Which sets are looked for; rows in the order of falling prices.

    Parameters
    ----------
    prices, copies
        (t,) price and rows of each type.
    conflicts
        (t, t) bool, types that never share a class; (0, 0) if all may.
    set_caps
        (s,) most values of each set term of the tables.
    sensitive
        (t, columns) int64, sensitive values, numbered through all columns.
    k, largest
        Fewest and most rows of a set.
    cutoff
        Reduced costs from here on are not wanted.
    pruned
        Whether the loss is monotone, so that partial sets can be cut off.
    summed
        Whether a set of t rows costs t times its record loss, or once.
    numerator, denominator, distinct
        The diversity: no value makes up more than denominator/numerator of a set, and there are
        so many distinct ones.
    """

    prices: NDArray[np.float64]
    copies: NDArray[np.int64]
    conflicts: NDArray[np.bool_]
    set_caps: NDArray[np.int64]
    sensitive: NDArray[np.int64]
    k: int
    largest: int
    cutoff: float
    pruned: bool
    summed: bool
    numerator: int
    denominator: int
    distinct: int


class Path(NamedTuple):
    """The partial set and what may follow; the first index is the number of its rows.

    Parameters
    ----------
    cursor
        (4,) rows of the partial set; nodes; sets found; their members.
    members
        (largest,) types of its rows.
    paid
        (largest + 1,) prices summed.
    low, high, pair_low, pair_high
        (largest + 1, r) and (largest + 1, p) ends of the description.
    set_counts
        (largest + 1, s) values in each set.
    held, set_start
        Rows that hold each level of the set attributes, all in a row, and where each begins.
    used
        (t,) rows of each type.
    sensitive_held, sensitive_counts
        Rows that hold each sensitive value; (largest + 1, columns) distinct ones.
    begin, end, at
        (largest + 1,) what may follow, as part of `listed`: first, behind the last, next.
    top
        (largest + 1,) workspace.
    """

    cursor: NDArray[np.int64]
    members: NDArray[np.int64]
    paid: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    pair_low: NDArray[np.int64]
    pair_high: NDArray[np.int64]
    set_counts: NDArray[np.int64]
    held: NDArray[np.int64]
    set_start: NDArray[np.int64]
    used: NDArray[np.int64]
    sensitive_held: NDArray[np.int64]
    sensitive_counts: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    at: NDArray[np.int64]
    top: NDArray[np.float64]


class Buffers(NamedTuple):
    """Arrays that are replaced by larger ones when they are full.

    Parameters
    ----------
    listed, listed_losses
        Types that may follow, and the record loss of the partial set with each.
    sizes, losses
        Of the sets found.
    members
        Their types, set by set.
    """

    listed: NDArray[np.int32]
    listed_losses: NDArray[np.float64]
    sizes: NDArray[np.int64]
    losses: NDArray[np.float64]
    members: NDArray[np.int32]


def new_path(tables: LossTables, rules: Rules) -> Path:
    """Return the workspace of a search that has not begun."""
    types, deep = len(rules.prices), rules.largest + 1
    starts = np.concatenate([[0], np.cumsum(tables.set_sizes)]).astype(np.int64)
    ranges, pairs, sets = (
        len(tables.range_columns),
        len(tables.pair_columns),
        len(tables.set_columns),
    )
    values = int(rules.sensitive.max(initial=-1)) + 1
    return Path(
        np.zeros(4, np.int64),
        np.zeros(rules.largest, np.int64),
        np.zeros(deep),
        np.zeros((deep, ranges)),
        np.zeros((deep, ranges)),
        np.zeros((deep, pairs), np.int64),
        np.zeros((deep, pairs), np.int64),
        np.zeros((deep, sets), np.int64),
        np.zeros(int(starts[-1]), np.int64),
        starts,
        np.zeros(types, np.int64),
        np.zeros(values, np.int64),
        np.zeros((deep, rules.sensitive.shape[1]), np.int64),
        np.zeros(deep, np.int64),
        np.zeros(deep, np.int64),
        np.zeros(deep, np.int64),
        np.zeros(deep),
    )


@kernel
def begin_search(
    tables: LossTables, rows: KernelRows, rules: Rules, path: Path, buffers: Buffers
) -> None:
    """List all types as what the empty set may grow by."""
    held = 0
    for row in range(len(rules.prices)):
        if len(rules.conflicts) > 0 and rules.conflicts[row, row]:
            continue
        buffers.listed[held] = row
        buffers.listed_losses[held] = pair_loss(tables, rows, row, row)
        held += 1
    path.end[0] = held


@kernel
def search_step(
    tables: LossTables,
    rows: KernelRows,
    rules: Rules,
    path: Path,
    buffers: Buffers,
    amount: int,
    max_sets: int,
    max_nodes: int,
) -> int:
    """Look at up to `amount` further partial sets and return why it ends."""
    for _ in range(amount):
        depth = path.cursor[0]
        while path.at[depth] == path.end[depth]:
            if depth == 0:
                return DONE
            _leave(rows, rules, path)
            depth -= 1
        at = path.at[depth]
        row = buffers.listed[at]
        loss = buffers.listed_losses[at]
        if not _promising(rules, path, buffers, row, loss):
            path.at[depth] += 1
            continue
        if path.cursor[1] == max_nodes:
            return MAX_NODES
        room = path.end[depth] + path.end[depth] - at
        if (
            room > len(buffers.listed)
            or path.cursor[2] == len(buffers.sizes)
            or path.cursor[3] + depth + 1 > len(buffers.members)
        ):
            return FULL
        wanted = _wanted(rules, path, row, loss)
        _enter(rows, rules, path, row)
        if wanted and _diverse(rules, path):
            if path.cursor[2] == max_sets:
                _leave(rows, rules, path)
                return MAX_SETS
            _record(rules, path, buffers, loss)
        path.at[depth] += 1
        path.cursor[1] += 1
        _list_followers(tables, rows, rules, path, buffers, at)
    return MORE


@kernel
def _multiple(rules: Rules, size: int) -> float:
    """Return how often a set of `size` rows pays its record loss."""
    return float(size) if rules.summed else 1.0


@kernel
def _wanted(rules: Rules, path: Path, row: int, loss: float) -> bool:
    """Return whether the partial set with `row` is large and cheap enough."""
    size = path.cursor[0] + 1
    paid = path.paid[size - 1] + rules.prices[row]
    return size >= rules.k and _multiple(rules, size) * loss - paid < rules.cutoff


@kernel
def _promising(rules: Rules, path: Path, buffers: Buffers, row: int, loss: float) -> bool:
    """Return whether the partial set with `row` may become a wanted set by rows not before it."""
    depth = path.cursor[0]
    size = depth + 1
    paid = path.paid[depth] + rules.prices[row]
    at = path.at[depth]
    left = rules.copies[row] - path.used[row] - 1
    while True:
        cheap = not rules.pruned or _multiple(rules, size) * loss - paid < rules.cutoff
        if size >= rules.k and cheap:
            return True
        if size == rules.largest:
            return False
        while left == 0:
            at += 1
            if at == path.end[depth]:
                return False
            left = rules.copies[buffers.listed[at]]
        paid += rules.prices[buffers.listed[at]]
        left -= 1
        size += 1


@kernel
def _enter(rows: KernelRows, rules: Rules, path: Path, row: int) -> None:
    """Add a row to the partial set."""
    depth = path.cursor[0]
    size = depth + 1
    path.members[depth] = row
    path.used[row] += 1
    path.paid[size] = path.paid[depth] + rules.prices[row]
    for r in range(path.low.shape[1]):
        value = rows.range_values[row, r]
        path.low[size, r] = value if depth == 0 else min(path.low[depth, r], value)
        path.high[size, r] = value if depth == 0 else max(path.high[depth, r], value)
    for p in range(path.pair_low.shape[1]):
        code = np.int64(rows.pair_codes[row, p])
        path.pair_low[size, p] = code if depth == 0 else min(path.pair_low[depth, p], code)
        path.pair_high[size, p] = code if depth == 0 else max(path.pair_high[depth, p], code)
    for s in range(path.set_counts.shape[1]):
        place = path.set_start[s] + rows.set_codes[row, s]
        path.set_counts[size, s] = path.set_counts[depth, s] + (path.held[place] == 0)
        path.held[place] += 1
    for c in range(rules.sensitive.shape[1]):
        value = rules.sensitive[row, c]
        new = path.sensitive_held[value] == 0
        path.sensitive_counts[size, c] = path.sensitive_counts[depth, c] + new
        path.sensitive_held[value] += 1
    path.cursor[0] = size


@kernel
def _leave(rows: KernelRows, rules: Rules, path: Path) -> None:
    """Take the last row out of the partial set."""
    path.cursor[0] -= 1
    row = path.members[path.cursor[0]]
    path.used[row] -= 1
    for s in range(path.set_counts.shape[1]):
        path.held[path.set_start[s] + rows.set_codes[row, s]] -= 1
    for c in range(rules.sensitive.shape[1]):
        path.sensitive_held[rules.sensitive[row, c]] -= 1


@kernel
def _most_frequent(rules: Rules, path: Path, column: int) -> int:
    """Return the rows of the partial set that share its most frequent sensitive value."""
    most = 0
    for member in range(path.cursor[0]):
        value = rules.sensitive[path.members[member], column]
        most = max(most, path.sensitive_held[value])
    return most


@kernel
def _diverse(rules: Rules, path: Path) -> bool:
    """Return whether the partial set has the diversity."""
    return _reparable(rules, path, path.cursor[0])


@kernel
def _reparable(rules: Rules, path: Path, reach: int) -> bool:
    """Return whether the partial set may have the diversity when it has grown to `reach` rows."""
    size = path.cursor[0]
    for c in range(rules.sensitive.shape[1]):
        if path.sensitive_counts[size, c] + reach - size < rules.distinct:
            return False
        if _most_frequent(rules, path, c) * rules.numerator > reach * rules.denominator:
            return False
    return True


@kernel
def _record(rules: Rules, path: Path, buffers: Buffers, loss: float) -> None:
    """Append the partial set to the sets found."""
    size, found, filled = path.cursor[0], path.cursor[2], path.cursor[3]
    buffers.sizes[found] = size
    buffers.losses[found] = _multiple(rules, size) * loss
    for member in range(size):
        buffers.members[filled + member] = path.members[member]
    path.cursor[2] += 1
    path.cursor[3] += size


@kernel
def _grown_loss(tables: LossTables, rows: KernelRows, rules: Rules, path: Path, row: int) -> float:
    """Return the record loss of the partial set with `row`; infinite if that breaks a cap."""
    size = path.cursor[0]
    loss = tables.constant
    for s in range(path.set_counts.shape[1]):
        new = path.held[path.set_start[s] + rows.set_codes[row, s]] == 0
        count = path.set_counts[size, s] + new
        if count > rules.set_caps[s]:
            return np.inf
        loss += tables.set_losses[tables.set_start[s] + count]
    for r in range(path.low.shape[1]):
        value = rows.range_values[row, r]
        low, high = min(path.low[size, r], value), max(path.high[size, r], value)
        loss += range_loss(tables, r, low, high)
    for p in range(path.pair_low.shape[1]):
        code = np.int64(rows.pair_codes[row, p])
        low_code = min(path.pair_low[size, p], code)
        high_code = max(path.pair_high[size, p], code)
        loss += tables.pair_losses[
            tables.pair_start[p] + low_code * tables.pair_sizes[p] + high_code
        ]
    return loss


@kernel
def _list_followers(
    tables: LossTables, rows: KernelRows, rules: Rules, path: Path, buffers: Buffers, first: int
) -> None:
    """List what may follow the row just added, out of what could follow before it."""
    size = path.cursor[0]
    added = path.members[size - 1]
    last = path.end[size - 1]
    begin = last
    path.begin[size] = path.at[size] = path.end[size] = begin
    if size == rules.largest:
        return
    held, rows_left = begin, 0
    if rules.pruned:
        _sum_top_prices(rules, path, buffers, first)
    for at in range(first, last):
        row = buffers.listed[at]
        if rules.copies[row] == path.used[row]:
            continue
        if len(rules.conflicts) > 0 and rules.conflicts[added, row]:
            continue
        loss = _grown_loss(tables, rows, rules, path, row)
        if loss == np.inf or (rules.pruned and not _may_pay(rules, path, row, loss)):
            continue
        buffers.listed[held] = row
        buffers.listed_losses[held] = loss
        held += 1
        rows_left += rules.copies[row] - path.used[row]
    # What is left must suffice for k rows and for the diversity.
    reach = min(rules.largest, size + rows_left)
    if reach >= rules.k and _reparable(rules, path, reach):
        path.end[size] = held


@kernel
def _sum_top_prices(rules: Rules, path: Path, buffers: Buffers, first: int) -> None:
    """Set `top[q]` to the sum of the q highest prices of the rows that may follow.

    Where there are fewer rows, sums beyond them are minus infinity: they are not reached.
    """
    size = path.cursor[0]
    q, at, last = 0, first, path.end[size - 1]
    path.top[0] = 0.0
    while q < rules.largest - size and at < last:
        row = buffers.listed[at]
        for _ in range(rules.copies[row] - path.used[row]):
            if q == rules.largest - size:
                break
            path.top[q + 1] = path.top[q] + rules.prices[row]
            q += 1
        at += 1
    for rest in range(q + 1, rules.largest - size + 1):
        path.top[rest] = -np.inf


@kernel
def _may_pay(rules: Rules, path: Path, row: int, loss: float) -> bool:
    """Return whether the partial set with `row` may become a wanted set."""
    size = path.cursor[0] + 1
    paid = path.paid[size - 1] + rules.prices[row]
    for grown in range(max(size, rules.k), rules.largest + 1):
        gain = paid + path.top[grown - size]
        if _multiple(rules, grown) * loss - gain < rules.cutoff:
            return True
    return False
