"""The least loss of all releases of a tiny table, by trying what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations, product

from tests.fuzzing.judge.losses import Loss
from tests.fuzzing.judge.rules import Rules
from tests.fuzzing.judge.table import Table, members


class Sets:
    """What every set of records loses, as whole numbers over one denominator.

    `table, loss, rules`: what is asked. `charge`: what a set loses; None where it is not allowed,
    whatever the rules say.
    """

    def __init__(
        self, table: Table, loss: Loss, rules: Rules, charge: Callable[[list[int]], Fraction | None]
    ) -> None:
        losses = {mask: charge(members(mask)) for mask in range(1, 1 << table.n)}
        exact = {mask: one for mask, one in losses.items() if one is not None}
        price = None if loss.of_members else loss.suppressed(table)
        denominators = [one.denominator for one in exact.values()]
        self.scale = reduce(math.lcm, denominators, 1 if price is None else price.denominator)
        self.n = table.n
        self.worst = loss.worst
        self.price = None if price is None else int(price * self.scale)
        self.cost = {
            mask: int(one * self.scale)
            for mask, one in exact.items()
            if rules.allow(table, members(mask))
        }

    def of_some(self, kept: Sequence[int]) -> Sets:
        """Return the sets of some records, numbered among them."""
        some = copy(self)
        some.n = len(kept)
        place = {record: at for at, record in enumerate(kept)}
        some.cost = {
            sum(1 << place[record] for record in members(mask)): cost
            for mask, cost in self.cost.items()
            if all(record in place for record in members(mask))
        }
        return some

    def fraction(self, found: int | None) -> Fraction | None:
        """Return a loss as a fraction; None where nothing is allowed."""
        return None if found is None else Fraction(found, self.scale)


def best_classes(sets: Sets, k: int, most: int) -> int | None:
    """Return the least loss of a partition; None if none is allowed.

    `most`: records that may be suppressed.
    """
    whole = (1 << sets.n) - 1
    blocks = [mask for mask in sets.cost if mask.bit_count() >= k]
    of_lowest: dict[int, list[int]] = {}
    for mask in blocks:
        of_lowest.setdefault(mask & -mask, []).append(mask)

    @cache
    def best(rest: int, left: int) -> int | None:
        if not rest:
            return 0
        low = rest & -rest
        found = [
            _joined(sets, sets.cost[mask], best(rest ^ mask, left))
            for mask in of_lowest.get(low, ())
            if mask & rest == mask
        ]
        if left and sets.price is not None:
            found.append(_joined(sets, sets.price, best(rest ^ low, left - 1)))
        return min((one for one in found if one is not None), default=None)

    return best(whole, most)


def _joined(sets: Sets, one: int, other: int | None) -> int | None:
    if other is None:
        return None
    return max(one, other) if sets.worst else one + other


def best_regular(sets: Sets, degrees: Sequence[int]) -> int | None:
    """Return the least loss of sets that hold their own records; None if none is allowed.

    Record i covers ``degrees[i]`` records and lies in as many sets.
    """

    def choices(record: int) -> list[int]:
        own = [mask for mask in sets.cost if mask >> record & 1]
        return [mask for mask in own if mask.bit_count() == degrees[record]]

    return _one_by_one(sets, degrees, choices, exactly=True)


def _one_by_one(
    sets: Sets, needed: Sequence[int], choices: Callable[[int], list[int]], *, exactly: bool
) -> int | None:
    """Return the least loss of one set for each record, so that all lie in as many as they need.

    Exactly in as many, or in more of them too.
    """
    n = sets.n
    states: dict[tuple[int, ...], int] = {tuple(needed): 0}
    for record in range(n):
        masks = [(members(mask), sets.cost[mask]) for mask in choices(record)]
        after: dict[tuple[int, ...], int] = {}
        for left, spent in states.items():
            for held, cost in masks:
                if exactly and not all(left[one] for one in held):
                    continue
                rest = list(left)
                for one in held:
                    rest[one] = max(0, rest[one] - 1)
                # Later records can take a record once each, and their own in any case.
                if max(rest) > n - 1 - record:
                    continue
                key = tuple(rest)
                total = max(spent, cost) if sets.worst else spent + cost
                if key not in after or total < after[key]:
                    after[key] = total
        states = after
    return states.get((0,) * n)


def best_freeform(sets: Sets, k: int, larger: bool) -> int | None:
    """Return the least loss of a regular cover.

    `larger`: whether sets of more than k records may be needed, as under a diversity.
    """
    sizes = range(k, sets.n + 1) if larger else [k]
    found = [best_regular(sets, [size] * sets.n) for size in sizes]
    return min((one for one in found if one is not None), default=None)


def best_of_some(sets: Sets, most: int, best: Callable[[Sets], int | None]) -> int | None:
    """Return the least loss of a release that leaves out some records, no more than may be."""
    assert sets.price is not None
    found: list[int] = []
    for count in range(min(most, sets.n) + 1):
        for gone in combinations(range(sets.n), count):
            kept = [record for record in range(sets.n) if record not in gone]
            lost = best(sets.of_some(kept)) if kept else 0
            if lost is None:
                continue
            if sets.worst:
                found.append(max([lost] * bool(kept) + [sets.price] * bool(gone)))
            else:
                found.append(lost + count * sets.price)
    return min(found, default=None)


@cache
def _symmetric(n: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Return all symmetric covers of n records by sets of one size, as bits."""
    found: list[tuple[int, ...]] = []

    def grow(record: int, sets: tuple[int, ...]) -> None:
        if record == n:
            found.append(sets)
            return
        need = size - sets[record].bit_count()
        if need < 0:
            return
        for others in combinations(range(record + 1, n), need):
            grown = list(sets)
            for other in others:
                grown[record] |= 1 << other
                grown[other] |= 1 << record
            if all(one.bit_count() <= size for one in grown):
                grow(record + 1, tuple(grown))

    grow(0, tuple(1 << record for record in range(n)))
    return tuple(found)


def best_reciprocal(sets: Sets, k: int) -> int | None:
    """Return the least loss of a regular cover in which whoever is covered covers."""
    losses = [
        max(costs) if sets.worst else sum(costs)
        for size in range(k, sets.n + 1)
        for cover in _symmetric(sets.n, size)
        if all(mask in sets.cost for mask in cover)
        for costs in [[sets.cost[mask] for mask in cover]]
    ]
    return min(losses, default=None)


def _useful(sets: Sets, record: int, least: int) -> list[int]:
    """Return the sets that hold a record and that no larger set of no more loss replaces."""
    own = [m for m in sets.cost if m >> record & 1 and m.bit_count() >= least]
    return [
        mask
        for mask in own
        if not any(
            mask != other and mask & other == mask and sets.cost[other] <= sets.cost[mask]
            for other in own
        )
    ]


def best_weaker(sets: Sets, k: int, notion: str) -> int | None:
    """Return the least loss of a (1,k)-, (k,1)- or (k,k)-anonymous cover."""
    least, needed = 1 if notion == "one-k" else k, 0 if notion == "k-one" else k

    def choices(record: int) -> list[int]:
        return _useful(sets, record, least)

    return _one_by_one(sets, [needed] * sets.n, choices, exactly=False)


#: Covers that are looked at one by one.
_MOST_COVERS = 100_000


def best_concealment(sets: Sets, k: int) -> tuple[bool, int | None]:
    """Return whether all covers could be tried, and the least loss of a k-concealed one."""
    choices = [_useful(sets, record, 1) for record in range(sets.n)]
    if math.prod(map(len, choices)) > _MOST_COVERS:
        return False, None
    best: int | None = None
    for cover in product(*choices):
        costs = [sets.cost[mask] for mask in cover]
        loss = max(costs) if sets.worst else sum(costs)
        if (best is None or loss < best) and min(effective(cover)) >= k:
            best = loss
    return True, best


def effective(cover: Sequence[int]) -> list[int]:
    """Return for each record how many sets that hold it can be its own.

    Sets hold their own records, so a match lies in an assignment exactly if it closes a cycle.
    """
    n = len(cover)
    reach = list(cover)
    for middle in range(n):
        for start in range(n):
            if reach[start] >> middle & 1:
                reach[start] |= reach[middle]
    return [
        sum(cover[i] >> record & 1 and reach[record] >> i & 1 for i in range(n))
        for record in range(n)
    ]
