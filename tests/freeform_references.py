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
    """Return the sets of Algorithm 2, matches weighed and repaired as the paper's text has it."""
    sets = [[record] for record in range(n)]
    for _ in range(k - 1):
        costs = _costs(sets, weight)
        match = _cheapest_matches(sets, costs, [0.0] * n)
        for record in range(n):
            near = _neighbours(record, n)
            if record not in match and not _take_over(sets, match, costs, record, near):
                _augment(sets, match, record, range(n))
        _apply(sets, match)
    return sets


def sort_greedy_sets_by_loss(
    n: int, k: int, weight: Weight, loss: Callable[[list[int]], float], compared: int = 200
) -> list[list[int]]:
    """Return the sets of Algorithm 2, matches weighed by the loss that a record will have.

    A published record left without an original looks at so many neighbours whose original would
    do, and has it from the one where this and taking another costs least.
    """
    sets = [[record] for record in range(n)]
    for _ in range(k - 1):
        costs = _costs(sets, weight)
        match = _cheapest_matches(sets, costs, [loss(one) for one in sets])
        for i in range(n):
            if i in match.values():
                continue
            original = {owner: record for record, owner in match.items()}
            best: tuple[float, int, int] | None = None
            looked = 0
            for owner in _neighbours(i, n):
                if owner not in original or original[owner] in sets[i]:
                    continue
                if looked >= compared and best is not None:
                    break
                looked += 1
                other = _cheapest_original(sets, match, costs, owner)
                if other is None:
                    continue
                record = original[owner]
                cost = costs[owner][other] + (costs[i][record] - costs[owner][record])
                if best is None or cost < best[0]:
                    best = cost, owner, other
            if best is not None:
                _, owner, other = best
                match[original[owner]], match[other] = i, owner
            else:
                free = [record for record in range(n) if record not in match]
                assert any(_augment(sets, match, record, [i]) for record in free)
        _apply(sets, match)
    return sets


def _cheapest_matches(
    sets: list[list[int]], costs: Sequence[Sequence[float]], losses: Sequence[float]
) -> dict[int, int]:
    """Match the cheapest pair of all as long as there is one; the losses come on top."""
    match: dict[int, int] = {}
    while True:
        pairs = []
        for i in set(range(len(sets))) - set(match.values()):
            record = _cheapest_original(sets, match, costs, i)
            if record is not None:
                pairs.append((losses[i] + costs[i][record], record, i))
        if not pairs:
            return match
        _, record, i = min(pairs)
        match[record] = i


def _neighbours(record: int, n: int) -> list[int]:
    """Return the others, the nearest first, predecessors before successors."""
    near = [other for distance in range(1, n) for other in (record - distance, record + distance)]
    return [other for other in near if 0 <= other < n]


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
