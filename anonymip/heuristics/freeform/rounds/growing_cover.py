"""Covers that grow record by record, and the alternating paths that complete them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from anonymip.assignments import Cover
from anonymip.heuristics.freeform.set_growth import SetStates, increase, rebuild, set_loss, take
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class GrowingCover(Packed):
    """The sets of n published records so far."""

    #: (n, largest) int32, the set of record i in its first ``sizes[i]`` places, its own record
    #: first.
    members: Codes
    sizes: Ints  # (n,) records in each set
    degrees: Ints  # (n,) sets that each original lies in
    wanted: Ints  # (n,) sizes and degrees of the complete cover


class PairWeights(Packed):
    """Weights of all pairs of a published record and an original."""

    states: SetStates  # of a loss with tables
    #: (n, n) float64 weights themselves, [published, original], of a loss without; otherwise empty.
    matrix: Floats
    limited: bool  # whether limits forbid sets, so that weights can be infinite


class PathSearch(Packed):
    """Workspace of the search for alternating paths."""

    queue: Annotated[Ints, "n"]  # originals in the order in which they were reached
    source: Annotated[Ints, "n"]  # original that displaces each one reached; -1: not reached
    through: Annotated[Ints, "n"]  # published record in whose set it does
    targets: Annotated[Ints, "n"]  # published records that have room


def own_cover(wanted: Ints) -> GrowingCover:
    """Return the cover in which every record covers itself and no other."""
    n = len(wanted)
    members = np.full((n, int(wanted.max())), -1, np.int32)
    members[:, 0] = np.arange(n)
    return GrowingCover(members, np.ones(n, np.int64), np.ones(n, np.int64), wanted.copy())


def finished(cover: GrowingCover, order: Ints) -> Cover:
    """Return the cover of the table's records; number r of the kernels is record ``order[r]``."""
    n = len(order)
    sets: list[Ints] = [np.empty(0, np.int64)] * n
    for i in range(n):
        sets[order[i]] = order[cover.members[i, : cover.sizes[i]]]
    return Cover.of(sets)


@kernel
def covers(cover: GrowingCover, i: int, record: int) -> bool:
    """Return whether published record i covers a record."""
    for at in range(cover.sizes[i]):  # noqa: SIM110 (numba is slower with any)
        if cover.members[i, at] == record:
            return True
    return False


@kernel
def add(cover: GrowingCover, i: int, record: int) -> None:
    """Put a record into the set of published record i."""
    cover.members[i, cover.sizes[i]] = record
    cover.sizes[i] += 1
    cover.degrees[record] += 1


@kernel
def replace(cover: GrowingCover, i: int, old: int, new: int) -> None:
    """Put a record into the set of published record i in the place of another."""
    for at in range(cover.sizes[i]):
        if cover.members[i, at] == old:
            cover.members[i, at] = new
    cover.degrees[old] -= 1
    cover.degrees[new] += 1


@kernel
def join(cover: GrowingCover, one: int, other: int) -> None:
    """Let two records cover each other."""
    add(cover, one, other)
    add(cover, other, one)


@kernel
def separate(cover: GrowingCover, one: int, other: int) -> None:
    """Let two records cover each other no longer."""
    _drop(cover, one, other)
    _drop(cover, other, one)


@kernel
def _drop(cover: GrowingCover, i: int, record: int) -> None:
    last = cover.sizes[i] - 1
    for at in range(last):
        if cover.members[i, at] == record:
            cover.members[i, at] = cover.members[i, last]
    cover.sizes[i] = last
    cover.degrees[record] -= 1


@kernel
def pair_weight(weights: PairWeights, i: int, record: int) -> float:
    """Return by how much the loss of published record i rises if it takes in a record."""
    if weights.matrix.shape[0] > 0:
        return weights.matrix[i, record]
    return increase(weights.states, i, record)


@kernel
def _walk_back(
    cover: GrowingCover,
    states: SetStates,
    search: PathSearch,
    record: int,
    target: int,
    states_follow: bool,
) -> None:
    """Let the last original of a path move into a set, each before it into the place left."""
    add(cover, target, record)
    while True:
        if states_follow:
            rebuild(states, target, cover.members[target, : cover.sizes[target]])
        before = search.source[record]
        if before == record:
            return
        target = search.through[record]
        replace(cover, target, record, before)
        record = before


@kernel
def _may_hold(cover: GrowingCover, weights: PairWeights, i: int, old: int, new: int) -> bool:
    """Return whether the limits let published record i cover one record in the place of another."""
    if not weights.limited:
        return True
    held = cover.members[i, : cover.sizes[i]].copy()
    held[held == old] = new
    rebuild(weights.states, i, held)
    good = set_loss(weights.states, i) < np.inf
    rebuild(weights.states, i, cover.members[i, : cover.sizes[i]])
    return good


@kernel
def place_by_path(
    cover: GrowingCover,
    weights: PairWeights,
    search: PathSearch,
    floor: Ints,
    room: Ints,
    record: int,
    in_round: bool,
) -> bool:
    """Give an original a further set along an alternating path of matches.

    `floor`: (n,) members of each set that stay, the first ones: later ones may move. `room`: (n,)
    further records that each set can take in; in a round what is taken is counted. `in_round`:
    whether weights are those of the present round, and only its matches move. Else, under limits,
    `weights.states` tell what is forbidden and are kept up to date. Returns: whether there is such
    a path. In a round that adds one record to every set, without limits, there always is one: what
    is left of the complete graph is regular.

    Breadth first, hence a shortest path. Complexity: O(n^2 k) time at worst. Where all sets have
    one size, nothing is forbidden and all but own records may move, one exchange is enough: the set
    of record i, full and without the original l, has k - 1 members beside i; a set y with room that
    covers l shares at most k - 2 records with it; so one of the k - 1 can move to y and l take its
    place.
    """
    states, states_follow = weights.states, weights.limited and not in_round
    count, head, tail = 0, 0, 1
    for i in range(len(room)):
        search.source[i] = -1
        if room[i] > 0:
            search.targets[count] = i
            count += 1
    search.queue[0] = record
    search.source[record] = record
    while head < tail:
        # The end of a path: a set with room that may take in the original reached.
        moving = search.queue[head]
        head += 1
        for at in range(count):
            i = search.targets[at]
            if covers(cover, i, moving):
                continue
            # The weights of a loss without tables are those of the round's beginning.
            if states_follow and increase(states, i, moving) == np.inf:
                continue
            if in_round and weights.limited and pair_weight(weights, i, moving) == np.inf:
                continue
            _walk_back(cover, states, search, moving, i, states_follow)
            if in_round:
                room[i] -= 1
            return True
        # Else it may displace any original of a set that need not stay.
        for i in range(len(room)):
            if floor[i] == cover.sizes[i] or covers(cover, i, moving):
                continue
            if in_round and weights.limited and pair_weight(weights, i, moving) == np.inf:
                continue
            # It would leave this set to `moving`; the first way to an original is a shortest one.
            for at in range(floor[i], cover.sizes[i]):
                other = cover.members[i, at]
                if search.source[other] < 0 and (
                    in_round or _may_hold(cover, weights, i, other, moving)
                ):
                    search.source[other] = moving
                    search.through[other] = i
                    search.queue[tail] = other
                    tail += 1
    return False


@kernel
def fill_up(cover: GrowingCover, weights: PairWeights, search: PathSearch, reach: int) -> int:
    """Complete a cover cheaply; return how many matches are still missing.

    Originals join the sets of records that lie up to `reach` places before or behind them in the
    order, the nearest first; those left are placed along alternating paths. Where limits forbid
    sets, `weights.states` are kept up to date. Complexity: O(n k reach) time, and O(n^2 k) for each
    path.
    """
    n = len(cover.sizes)
    # Distances 1, -1, 2, -2, ... in the order of the records.
    for shift in range(1, 2 * reach + 1):
        distance = (shift + 1) // 2 if shift % 2 else -(shift // 2)
        for record in range(n):
            i = (record + distance) % n
            if cover.degrees[record] >= cover.wanted[record] or cover.sizes[i] >= cover.wanted[i]:
                continue
            if covers(cover, i, record):
                continue
            if weights.limited:
                if increase(weights.states, i, record) == np.inf:
                    continue
                take(weights.states, i, record)
            add(cover, i, record)
    # Alternating paths for those that are left.
    missing, own = 0, np.ones(n, np.int64)
    for record in range(n):
        while cover.degrees[record] < cover.wanted[record]:
            room = cover.wanted - cover.sizes
            if not place_by_path(cover, weights, search, own, room, record, False):
                missing += cover.wanted[record] - cover.degrees[record]
                break
    return missing


@kernel
def _keep_limits(cover: GrowingCover, weights: PairWeights, sets: tuple[Any, ...]) -> bool:
    """Bring the states of some sets up to date and return whether all keep the limits."""
    kept = True
    for i in sets:
        rebuild(weights.states, i, cover.members[i, : cover.sizes[i]])
        kept = set_loss(weights.states, i) < np.inf and kept
    return kept


@kernel
def _try_exchange(
    cover: GrowingCover, weights: PairWeights, one: int, other: int, near: int, far: int
) -> bool:
    """Separate two partners and give each to one of two records, unless a limit forbids it."""
    separate(cover, near, far)
    join(cover, one, near)
    join(cover, other, far)
    if not weights.limited:
        return True
    sets = (one, other, near, np.int64(far))  # of one type, as kernels go through them
    kept = _keep_limits(cover, weights, sets)
    if not kept:
        separate(cover, one, near)
        separate(cover, other, far)
        join(cover, near, far)
        _keep_limits(cover, weights, sets)
    return kept


@kernel
def _exchange(cover: GrowingCover, weights: PairWeights, one: int, other: int) -> bool:
    """Find partners for two records that lack one each, or for one that lacks two."""
    n = len(cover.sizes)
    if one != other and not covers(cover, one, other):
        join(cover, one, other)
        if not weights.limited:
            return True
        if _keep_limits(cover, weights, (one, other)):
            return True
        separate(cover, one, other)
        _keep_limits(cover, weights, (one, other))
    for distance in range(1, n):
        near = (one + distance) % n
        if near == other or covers(cover, one, near):
            continue
        for at in range(1, cover.sizes[near]):
            far = cover.members[near, at]
            if far == one or covers(cover, other, far):
                continue
            if _try_exchange(cover, weights, one, other, near, far):
                return True
    return False


@kernel
def fill_up_both_ways(cover: GrowingCover, weights: PairWeights, reach: int) -> int:
    """Complete a reciprocal cover cheaply; return how many matches are still missing.

    Records up to `reach` places behind one in the order are tried first, the nearest first. Where
    limits forbid sets, `weights.states` are kept up to date.

    What is missing then is found by exchanges: if x and y lack a partner and know each other
    (or are one record that lacks two), some a that x does not know has a partner b that y does
    not know, since a has as many partners as wanted and y fewer, and x is one of y's but not of
    a's; a and b separate, x takes a and y takes b. Where all sets have one size and nothing is
    forbidden this never fails.
    """
    n = len(cover.sizes)
    # Pairs of records near each other in the order, the nearest first.
    for distance in range(1, min(reach, n - 1) + 1):
        for one in range(n):
            other = (one + distance) % n
            if cover.sizes[one] >= cover.wanted[one] or cover.sizes[other] >= cover.wanted[other]:
                continue
            if covers(cover, one, other):
                continue
            # Either limit forbids the pair; the states follow what is joined.
            if weights.limited:
                states = weights.states
                if increase(states, one, other) == np.inf:
                    continue
                if increase(states, other, one) == np.inf:
                    continue
                take(states, one, other)
                take(states, other, one)
            join(cover, one, other)
    # What is left: one exchange for two records that lack a partner each, or one that lacks two.
    missing = 0
    for one in range(n):
        # Records before this one have all partners, or what they lack is counted as missing.
        while cover.sizes[one] < cover.wanted[one]:
            found = False
            for distance in range(1, n):
                other = (one + distance) % n
                if cover.sizes[other] < cover.wanted[other]:
                    found = _exchange(cover, weights, one, other)
                    if found:
                        break
            # No other record that lacks a partner helps: one exchange gives this one two.
            if not found and cover.wanted[one] - cover.sizes[one] >= 2:
                found = _exchange(cover, weights, one, one)
            if not found:
                missing += cover.wanted[one] - cover.sizes[one]
                break
    return missing
