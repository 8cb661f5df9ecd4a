"""What may join a partial set: filtered by what its columns cost at least, sorted, bounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.enumeration.rooted_state import (
    DEPTH,
    SIZE,
    RootedFollowers,
    RootedPath,
    RootedRules,
    SearchRows,
)
from anonymip.runtime.kernels import kernel


@kernel
def multiple_of(rules: RootedRules, size: int) -> float:
    """Return how often the record loss of a column of `size` rows counts."""
    return float(size) if rules.summed else 1.0


@kernel
def highest_loss(rules: RootedRules, path: RootedPath, size: int, dual: float) -> float:
    """Return the record loss from which on no column of the size is wanted that a row joins."""
    if not rules.undominated or size == rules.smallest:
        return np.inf
    return min(dual, path.lowest[path.place[DEPTH]])


@kernel
def list_top(
    rows: SearchRows, path: RootedPath, types: NDArray[np.int64], begin: int, end: int, most: int
) -> int:
    """List the `most` highest duals of rows that may join, falling; return how many rows may.

    Where there are fewer, the others are minus infinity: such columns are not reached. Copies are
    counted up to `most` of a type.
    """
    top, duals, copies, used = path.top, rows.duals, rows.copies, path.used
    for place in range(most):
        top[place] = -np.inf
    count = 0
    for at in range(begin, end):
        row = types[at]
        left = min(copies[row] - used[row], most)
        count += left
        for _ in range(left):
            if duals[row] <= top[most - 1]:
                break
            _insert(top, most, duals[row])
    return count


@kernel
def _insert(top: NDArray[np.float64], most: int, dual: float) -> None:
    """Insert a dual that is above the last of the highest ones."""
    place = most - 1
    while place > 0 and top[place - 1] < dual:
        top[place] = top[place - 1]
        place -= 1
    top[place] = dual


@kernel
def keep_promising(
    rows: SearchRows,
    rules: RootedRules,
    path: RootedPath,
    followers: RootedFollowers,
    begin: int,
    end: int,
    missing: int,
    rounds: int,
) -> int:
    """Keep what may join the partial set in a column that is wanted, and return its end."""
    types, losses, penalties = followers.rows, followers.losses, followers.penalties
    depth, cutoff, top = path.place[DEPTH], path.cutoff[0], path.top
    size = path.place[SIZE]
    multiple, base = multiple_of(rules, size), path.penalties[depth] - path.duals[depth]
    for _ in range(rounds):
        if list_top(rows, path, types, begin, end, missing) < missing:
            return begin
        # The dual of a row and the highest ones of the others: with its own among the highest it
        # is their sum.
        others, lowest = 0.0, top[missing - 1]
        for place in range(missing - 1):
            others += top[place]
        kept = begin
        for at in range(begin, end):
            dual = rows.duals[types[at]]
            bound = multiple * losses[at] + base + penalties[at] - others - min(dual, lowest)
            promising = bound < cutoff or not rules.pruned
            if promising and losses[at] < highest_loss(rules, path, size, dual):
                types[kept], losses[kept], penalties[kept] = types[at], losses[at], penalties[at]
                kept += 1
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
def bound_branches(
    rows: SearchRows,
    rules: RootedRules,
    path: RootedPath,
    followers: RootedFollowers,
    begin: int,
    end: int,
    missing: int,
) -> None:
    """Bound what the columns cost in which each row is the furthest that joins; two are missing."""
    types, depth, top = followers.rows, path.place[DEPTH], path.top
    multiple, most = multiple_of(rules, path.place[SIZE]), missing - 1
    base = path.penalties[depth] - path.duals[depth]
    for place in range(most):
        top[place] = -np.inf
    nearer = 0
    for at in range(begin, end):
        row = types[at]
        dual, left = rows.duals[row], rows.copies[row] - path.used[row]
        # Other copies of the row itself may join as well.
        for _ in range(min(left - 1, most)):
            if dual > top[most - 1]:
                _insert(top, most, dual)
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
            _insert(top, most, dual)
