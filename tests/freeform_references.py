"""Algorithms 1 and 2 of Doka et al. and the rounds of assignments, in plain Python.

Written after the paper's text; nothing of the package is used. Records are numbered in the order
in which originals take their turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations

#: Weight of giving an original to the published record whose set is given, own record first.
Weight = Callable[[list[int], int], float]


def greedy_by_originals(n: int, k: int, weight: Weight) -> list[list[int]]:
    """Return the sets of Algorithm 1, the originals choosing the sets that they join."""
    sets = [[record] for record in range(n)]
    for _ in range(k - 1):
        costs = _costs(sets, weight)
        match: dict[int, int] = {}  # original: published record
        for record in range(n):
            best = _cheapest(sets, match, costs, record)
            if best is None:
                before = range(record - 1, -1, -1)
                if not _take_over(sets, match, costs, record, before):
                    _augment(sets, match, record, range(n))
            else:
                match[record] = best
        _apply(sets, match)
    return sets


def greedy_by_sets(n: int, k: int, weight: Weight) -> list[list[int]]:
    """Return the sets of Algorithm 1, the published records choosing whom they take in."""
    sets = [[record] for record in range(n)]
    for _ in range(k - 1):
        costs = _costs(sets, weight)
        match: dict[int, int] = {}  # original: published record
        for i in range(n):
            best = _cheapest_original(sets, match, costs, i)
            if best is not None:
                match[best] = i
            elif not _take_original(sets, match, costs, i):
                free = [record for record in range(n) if record not in match]
                assert any(_augment(sets, match, record, [i]) for record in free)
        _apply(sets, match)
    return sets


def sort_greedy_sets(n: int, k: int, weight: Weight) -> list[list[int]]:
    """Return the sets of Algorithm 2."""
    sets = [[record] for record in range(n)]
    for _ in range(k - 1):
        costs = _costs(sets, weight)
        edges = sorted(
            (costs[i][record], record, i)
            for i in range(n)
            for record in range(n)
            if record not in sets[i]
        )
        match: dict[int, int] = {}
        for _, record, i in edges:
            if record not in match and i not in match.values():
                match[record] = i
        for record in range(n):
            if record not in match:
                near = [
                    other
                    for distance in range(1, n)
                    for other in (record - distance, record + distance)
                    if 0 <= other < n
                ]
                if not _take_over(sets, match, costs, record, near):
                    _augment(sets, match, record, range(n))
        _apply(sets, match)
    return sets


def cheapest_round(sets: list[list[int]], weight: Weight) -> float:
    """Return the least total weight of a round, by trying all permutations."""
    n, costs = len(sets), _costs(sets, weight)
    totals = [
        math.fsum(costs[i][record] for record, i in enumerate(chosen))
        for chosen in permutations(range(n))
        if all(record not in sets[i] for record, i in enumerate(chosen))
    ]
    return min(totals)


def _costs(sets: list[list[int]], weight: Weight) -> list[list[float]]:
    return [
        [math.inf if record in one else weight(one, record) for record in range(len(sets))]
        for one in sets
    ]


def _cheapest(
    sets: list[list[int]], match: dict[int, int], costs: Sequence[Sequence[float]], record: int
) -> int | None:
    taken = set(match.values())
    free = [i for i in range(len(sets)) if i not in taken and record not in sets[i]]
    return min(free, key=lambda i: (costs[i][record], i)) if free else None


def _take_over(
    sets: list[list[int]],
    match: dict[int, int],
    costs: Sequence[Sequence[float]],
    record: int,
    others: Iterable[int],
) -> bool:
    for other in others:
        if other not in match or record in sets[match[other]]:
            continue
        best = _cheapest(sets, match, costs, other)
        if best is not None:
            match[record], match[other] = match[other], best
            return True
    return False


def _cheapest_original(
    sets: list[list[int]], match: dict[int, int], costs: Sequence[Sequence[float]], i: int
) -> int | None:
    free = [record for record in range(len(sets)) if record not in match and record not in sets[i]]
    return min(free, key=lambda record: (costs[i][record], record)) if free else None


def _take_original(
    sets: list[list[int]], match: dict[int, int], costs: Sequence[Sequence[float]], i: int
) -> bool:
    for owner in range(i - 1, -1, -1):
        record = next(record for record, other in match.items() if other == owner)
        other = _cheapest_original(sets, match, costs, owner)
        if record not in sets[i] and other is not None:
            match[record], match[other] = i, owner
            return True
    return False


def _augment(
    sets: list[list[int]], match: dict[int, int], record: int, homes: Iterable[int]
) -> bool:
    """Match a record along a shortest path to one of the homes, breadth first in order."""
    owner = {i: other for other, i in match.items()}
    free = [i for i in homes if i not in owner]
    source: dict[int, tuple[int, int] | None] = {record: None}
    queue = [record]
    while queue:
        moving = queue.pop(0)
        for i in free:
            if moving not in sets[i]:
                home = i
                while True:
                    match[moving] = home
                    before = source[moving]
                    if before is None:
                        return True
                    moving, home = before
        for i in range(len(sets)):
            if i in owner and moving not in sets[i] and owner[i] not in source:
                source[owner[i]] = (moving, i)
                queue.append(owner[i])
    return False


def _apply(sets: list[list[int]], match: dict[int, int]) -> None:
    for record, i in match.items():
        sets[i].append(record)
