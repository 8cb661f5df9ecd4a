"""Optima of covers by dynamic programming over all sets, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

Sets = tuple[tuple[int, ...], ...]
SetLoss = Callable[[tuple[int, ...]], float]


def sets_with(record: int, n: int, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all sets of the given sizes that hold a record."""
    others = [other for other in range(n) if other != record]
    return [
        tuple(sorted((record, *chosen)))
        for size in sizes
        for chosen in combinations(others, size - 1)
    ]


def regular_optimum(
    n: int, degrees: Sequence[int], loss: SetLoss, worst: bool = False
) -> tuple[float, Sets]:
    """Return the least loss of a cover with these sizes of sets and numbers of sets of a record.

    The state after each record is how many sets every record still has to lie in.
    """
    states: dict[tuple[int, ...], tuple[float, Sets]] = {tuple(degrees): (_NOTHING[worst], ())}
    for record in range(n):
        sets = [(one, loss(one)) for one in sets_with(record, n, [degrees[record]])]
        states = _next_states(states, sets, worst, exact=True)
    return states[(0,) * n]


def one_sided_optimum(
    n: int, k: int, loss: SetLoss, *, rows: bool, columns: bool, worst: bool = False
) -> float:
    """Return the least loss where sets have k records (rows), records k sets (columns), or both."""
    sizes = range(k if rows else 1, n + 1)
    states: dict[tuple[int, ...], tuple[float, Sets]] = {
        ((k if columns else 0),) * n: (_NOTHING[worst], ())
    }
    for record in range(n):
        sets = [(one, loss(one)) for one in sets_with(record, n, sizes)]
        states = _next_states(states, sets, worst, exact=False)
    return states[(0,) * n][0]


_NOTHING = {False: 0.0, True: -math.inf}


def _next_states(
    states: dict[tuple[int, ...], tuple[float, Sets]],
    sets: list[tuple[tuple[int, ...], float]],
    worst: bool,
    *,
    exact: bool,
) -> dict[tuple[int, ...], tuple[float, Sets]]:
    found: dict[tuple[int, ...], tuple[float, Sets]] = {}
    for left, (before, chosen) in states.items():
        for one, cost in sets:
            if math.isinf(cost) or (exact and any(left[record] == 0 for record in one)):
                continue
            after = list(left)
            for record in one:
                after[record] = max(after[record] - 1, 0)
            total = max(before, cost) if worst else before + cost
            state = tuple(after)
            if state not in found or total < found[state][0]:
                found[state] = (total, (*chosen, one))
    return found


def reciprocal_covers(n: int, k: int) -> Iterator[Sets]:
    """Yield all covers by sets of k in which l lies in the set of i if i lies in that of l."""

    def extend(record: int, chosen: list[set[int]]) -> Iterator[Sets]:
        if record == n:
            yield tuple(tuple(sorted(one)) for one in chosen)
            return
        missing = k - len(chosen[record])
        later = [other for other in range(record + 1, n) if len(chosen[other]) < k]
        if missing < 0:
            return
        for partners in combinations(later, missing):
            following = [set(one) for one in chosen]
            for other in partners:
                following[record].add(other)
                following[other].add(record)
            yield from extend(record + 1, following)

    yield from extend(0, [{record} for record in range(n)])


def assignments(sets: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to give every published record an original of its set, each original once."""

    def extend(record: int, used: frozenset[int]) -> Iterator[tuple[int, ...]]:
        if record == len(sets):
            yield ()
            return
        for original in sets[record]:
            if original not in used:
                for rest in extend(record + 1, used | {original}):
                    yield (original, *rest)

    yield from extend(0, frozenset())


def effective_pairs(sets: Sequence[Sequence[int]]) -> set[tuple[int, int]]:
    """Return (published record, original) of all matches that lie in some assignment."""
    return {
        (record, original)
        for assignment in assignments(sets)
        for record, original in enumerate(assignment)
    }


def concealment_optimum(n: int, k: int, loss: SetLoss) -> float:
    """Return the least loss of a cover in which all originals have k effective matches."""
    best = math.inf
    choices = [sets_with(record, n, range(1, n + 1)) for record in range(n)]
    losses = [{one: loss(one) for one in sets} for sets in choices]
    for sets in product(*choices):
        total = sum(losses[record][one] for record, one in enumerate(sets))
        if total >= best:
            continue
        pairs = effective_pairs(sets)
        if all(sum(original == one for _, one in pairs) >= k for original in range(n)):
            best = total
    return best
