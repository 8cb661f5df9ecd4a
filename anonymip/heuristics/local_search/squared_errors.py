"""Iterated local search for squared errors: moves, swaps, and neighbouring classes made again.

Moving x from the class A of a records to B of b gains a / (a - 1) |x - mean(A)|^2 less
b / (b + 1) |x - mean(B)|^2; a swap is a move after another. Where neither gains, the records of a
few neighbouring classes are made classes anew, by a cut along a random line or around random
records, and moves and swaps go on from these: what is worse then is taken back [1]_. Only classes
that changed are looked at, so that a round takes well below a millisecond.

References
----------
.. [1] H. R. Lourenço, O. C. Martin, T. Stützle: Iterated Local Search, in: Handbook of
   Metaheuristics, 2003.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.objectives.losses.squared_error import SSE
from anonymip.orders.orders import stable_order
from anonymip.problem import Problem, has_rules
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped

# The numbers that steer the search were chosen by the benchmark of microaggregation.

#: Nearest records, whose classes a record may move to.
_NEAR = 16
#: Classes that are made again together, at least and at most.
_FEWEST, _MOST = 2, 6
#: Gains below this share of a class's loss are rounding.
_GAIN = 1e-9
#: Rounds, for each record, and in all at most: of a table of 1,000 records and ten attributes
#: 65,000 take 2 s with k = 3, and a third of that 7 s with k = 10, where they are a third.
_ROUNDS = MappingProxyType(
    {"quick": (2, 10_000), "normal": (60, 150_000), "thorough": (600, 1_500_000)}
)
#: Records looked at between two questions whether time is left, and in a round, times all.
_LOOKED_AT, _LOOKS = 2_000, 10
#: Random numbers that a round takes.
_DRAWS = 8
#: Numbers of classes that are tried for one that is free.
_PROBES = 100
#: Places of `SquaredRound.ends`.
FIRST, END, TOUCHED, UNASSIGNED = 0, 1, 2, 3


def are_squared(problem: Problem) -> bool:
    """Return whether this search knows the loss and the rules of a problem."""
    return type(problem.objective) is SSE and not has_rules(problem)


class SquaredClasses(Packed):
    """Classes of points."""

    #: (n, m) records, and (n, q) the nearest others of each.
    points: Floats
    near: Ints
    #: Class of each, and where it stands among the members.
    label: Annotated[Ints, "n"]
    place: Annotated[Ints, "n"]
    #: Records of each class, and (c,) how many.
    members: Annotated[Ints, "count, 2 * k"]
    sizes: Annotated[Ints, "count"]
    #: Of the classes.
    means: Annotated[Floats, "count, m"]
    costs: Annotated[Floats, "count"]


class SquaredRound(Packed):
    """Workspace of a round."""

    #: Records to look at in turn, and whether each is among them.
    queue: Annotated[Ints, "n"]
    waits: Annotated[Flags, "n"]
    ends: Annotated[Ints, "4"]  # first and end of the queue, classes touched, unassigned records
    #: Classes that changed, what they cost, whether each did, and (n,) where records were.
    touched: Annotated[Ints, "count"]
    costs: Annotated[Floats, "count"]
    is_touched: Annotated[Flags, "count"]
    before: Annotated[Ints, "n"]
    #: Records that are made classes anew, and their order.
    unassigned: Annotated[Ints, "n"]
    keys: Annotated[Floats, "n"]
    seen: Annotated[Ints, "count", -1]  # for which record a class was looked at last


@kernel
def squared_distance(one: Floats, other: Floats) -> float:
    """Return the squared distance of two points."""
    total = 0.0
    for a in range(len(one)):
        total += (one[a] - other[a]) * (one[a] - other[a])
    return total


@kernel
def work_out(classes: SquaredClasses, c: int) -> None:
    """Work out mean and cost of a class."""
    size = classes.sizes[c]
    classes.costs[c] = 0.0
    if size == 0:
        return
    for a in range(classes.points.shape[1]):
        mean = 0.0
        for place in range(size):
            mean += classes.points[classes.members[c, place], a]
        classes.means[c, a] = mean / size
    for place in range(size):
        classes.costs[c] += squared_distance(
            classes.points[classes.members[c, place]], classes.means[c]
        )


@kernel
def put(classes: SquaredClasses, x: int, c: int) -> None:
    """Put a record into a class."""
    classes.label[x], classes.place[x] = c, classes.sizes[c]
    classes.members[c, classes.sizes[c]] = x
    classes.sizes[c] += 1


@kernel
def take_out(classes: SquaredClasses, x: int) -> None:
    """Take a record out of its class."""
    c, place = classes.label[x], classes.place[x]
    classes.sizes[c] -= 1
    last = classes.members[c, classes.sizes[c]]
    classes.members[c, place], classes.place[last] = last, place


@kernel
def touch(classes: SquaredClasses, work: SquaredRound, c: int) -> None:
    """Remember a class as it is before it changes, once a round."""
    if work.is_touched[c]:
        return
    work.is_touched[c] = True
    work.touched[work.ends[TOUCHED]] = c
    work.costs[work.ends[TOUCHED]] = classes.costs[c]
    work.ends[TOUCHED] += 1
    for place in range(classes.sizes[c]):
        work.before[classes.members[c, place]] = c


@kernel
def line_up(classes: SquaredClasses, work: SquaredRound, c: int) -> None:
    """Have the records of a class looked at."""
    n = len(work.queue)
    for place in range(classes.sizes[c]):
        x = classes.members[c, place]
        if not work.waits[x]:
            work.waits[x] = True
            work.queue[work.ends[END] % n] = x
            work.ends[END] += 1


@kernel
def best_exchange(classes: SquaredClasses, work: SquaredRound, x: int, k: int) -> tuple[int, int]:
    """Return where a record moves best, and with which one it swaps, -1 for none of either."""
    points, m, most = classes.points, classes.points.shape[1], 2 * k - 1
    own, target, partner, best = classes.label[x], -1, -1, _GAIN
    a, mean = classes.sizes[classes.label[x]], classes.means[classes.label[x]]
    if a < 2:
        return target, partner
    freed = squared_distance(points[x], mean) * a / (a - 1.0)
    best *= classes.costs[own]
    for at in range(classes.near.shape[1]):
        c = classes.label[classes.near[x, at]]
        if c == own or work.seen[c] == x:
            continue
        work.seen[c] = x
        b, other = classes.sizes[c], classes.means[c]
        joined = squared_distance(points[x], other) * b / (b + 1.0)
        if a > k and b < most and freed - joined > best:
            best, target, partner = freed - joined, c, -1
        # The mean of its own class without x, and of the other one with it.
        for place in range(b):
            y = classes.members[c, place]
            left, lost = 0.0, 0.0
            for column in range(m):
                without = (a * mean[column] - points[x, column]) / (a - 1.0)
                within = (b * other[column] + points[x, column]) / (b + 1.0)
                left += (points[y, column] - without) * (points[y, column] - without)
                lost += (points[y, column] - within) * (points[y, column] - within)
            gain = freed - joined - left * (a - 1.0) / a + lost * (b + 1.0) / b
            if gain > best:
                best, target, partner = gain, c, y
    return target, partner


@kernel
def exchange(classes: SquaredClasses, x: int, target: int, partner: int) -> None:
    """Move a record to a class, and its partner, if there is one, to where it was."""
    own = classes.label[x]
    take_out(classes, x)
    put(classes, x, target)
    if partner >= 0:
        take_out(classes, partner)
        put(classes, partner, own)
    work_out(classes, own)
    work_out(classes, target)


@kernel
def settle(classes: SquaredClasses, work: SquaredRound, k: int, most: int) -> int:
    """Move and swap records of the queue, and of classes that change, until none gains.

    At most so many are looked at; return how many were.
    """
    n, looked_at = len(work.queue), 0
    while work.ends[FIRST] < work.ends[END] and looked_at < most:
        looked_at += 1
        x = work.queue[work.ends[FIRST] % n]
        work.ends[FIRST] += 1
        work.waits[x] = False
        own = classes.label[x]
        target, partner = best_exchange(classes, work, x, k)
        for at in range(classes.near.shape[1]):
            work.seen[classes.label[classes.near[x, at]]] = -1
        if target < 0:
            continue
        touch(classes, work, own)
        touch(classes, work, target)
        before = classes.costs[own] + classes.costs[target]
        exchange(classes, x, target, partner)
        after = classes.costs[own] + classes.costs[target]
        # Beside records far off what was told to gain may be rounding, and go round in circles.
        if not after < before - _GAIN * before:
            exchange(classes, x, own, partner)
            continue
        line_up(classes, work, own)
        line_up(classes, work, target)
    return looked_at


@kernel
def assign(classes: SquaredClasses, work: SquaredRound, k: int, draws: Floats) -> bool:
    """Make classes of the unassigned records; return whether they held all."""
    points, m, count = classes.points, classes.points.shape[1], work.ends[UNASSIGNED]
    made = count // k
    if made > 1 and draws[3] < 0.2 and count <= (made - 1) * (2 * k - 1):
        made -= 1
    # One class more than there were takes a number that none has.
    c = int(draws[7] * len(classes.sizes))
    for _ in range(_PROBES):
        if work.ends[TOUCHED] >= made:
            break
        if classes.sizes[c] == 0 and not work.is_touched[c]:
            touch(classes, work, c)
        c = (c + 1) % len(classes.sizes)
    made = min(made, work.ends[TOUCHED])
    if made < 1 or count > made * (2 * k - 1):
        return False
    along = draws[4] < 0.5
    one, other = work.unassigned[int(draws[5] * count)], work.unassigned[int(draws[6] * count)]
    begin = 0
    for part in range(made):
        # Along a line all are sorted once, else around the record farthest from the first one.
        if part == 0 or not along:
            centre, farthest = one, -1.0
            for at in range(begin, count if part > 0 else begin):
                far = squared_distance(points[work.unassigned[at]], points[one])
                if far > farthest:
                    centre, farthest = work.unassigned[at], far
            for at in range(begin, count):
                x = work.unassigned[at]
                if along:
                    key = 0.0
                    for a in range(m):
                        key += points[x, a] * (points[other, a] - points[one, a])
                    work.keys[at] = key
                else:
                    work.keys[at] = squared_distance(points[x], points[centre])
            held = work.unassigned[begin:count].copy()
            for at, place in enumerate(stable_order(work.keys[begin:count])):
                work.unassigned[begin + at] = held[place]
        end = begin + (count - begin) // (made - part)
        for at in range(begin, end):
            put(classes, work.unassigned[at], work.touched[part])
        begin = end
    return True


@kernel
def iterate(classes: SquaredClasses, work: SquaredRound, k: int, draws: Floats) -> None:
    """Make neighbouring classes again, once for each row of draws; keep what is no worse."""
    for row in range(len(draws)):
        draw = draws[row]
        work.ends[:] = 0
        wanted = _FEWEST + int(draw[1] * (_MOST - _FEWEST + 1))
        # The class of a record and some of its nearest ones are emptied.
        x = int(draw[0] * len(classes.label))
        for at in range(-1, classes.near.shape[1]):
            c = classes.label[x] if at < 0 else classes.label[classes.near[x, at]]
            if classes.sizes[c] == 0 or work.is_touched[c]:
                continue
            touch(classes, work, c)
            for place in range(classes.sizes[c]):
                work.unassigned[work.ends[UNASSIGNED]] = classes.members[c, place]
                work.ends[UNASSIGNED] += 1
            if work.ends[TOUCHED] == wanted:
                break
        for at in range(work.ends[TOUCHED]):
            classes.sizes[work.touched[at]] = 0
        kept = assign(classes, work, k, draw)
        if kept:
            work.ends[UNASSIGNED] = 0
            for at in range(work.ends[TOUCHED]):
                work_out(classes, work.touched[at])
                line_up(classes, work, work.touched[at])
            settle(classes, work, k, len(work.queue) * _LOOKS)
            gained = 0.0
            for at in range(work.ends[TOUCHED]):
                gained += work.costs[at] - classes.costs[work.touched[at]]
            kept = gained >= 0.0
        # A round that was ended early leaves records in the queue.
        while work.ends[FIRST] < work.ends[END]:
            work.waits[work.queue[work.ends[FIRST] % len(work.queue)]] = False
            work.ends[FIRST] += 1
        if not kept:
            # The records of all classes that changed go back to where they were.
            for at in range(work.ends[TOUCHED]):
                c = work.touched[at]
                for place in range(classes.sizes[c]):
                    work.unassigned[work.ends[UNASSIGNED]] = classes.members[c, place]
                    work.ends[UNASSIGNED] += 1
                classes.sizes[c] = 0
            for at in range(work.ends[UNASSIGNED]):
                put(classes, work.unassigned[at], work.before[work.unassigned[at]])
            for at in range(work.ends[TOUCHED]):
                work_out(classes, work.touched[at])
        for at in range(work.ends[TOUCHED]):
            work.is_touched[work.touched[at]] = False


def improve_squared_errors(
    problem: Problem, labels: NDArray[np.integer], effort: str, budget: Budget, seed: int
) -> tuple[Ints, Stopped | None, str]:
    """Return labels that are no worse, why the work stopped early, and a remark.

    Suppressed records stay what they are. Complexity of a round: O(c k^2 m) for each record of the
    classes that change, with the c classes of its nearest records.
    """
    given = np.asarray(labels, np.int64)
    kept = np.flatnonzero(given != SUPPRESSED)
    assert isinstance(problem.objective, SSE)
    if len(kept) < 2 * problem.k:
        return given, None, "one class: nothing to gain"
    points = np.ascontiguousarray(problem.objective.points(problem.microdata)[kept])
    classes, work = _start(points, given[kept], problem.k)
    first = classes.costs.sum()
    stopped = None
    while stopped is None and settle(classes, work, problem.k, _LOOKED_AT):
        stopped = budget.stop_reason()
    work.is_touched[:] = False
    each, most = _ROUNDS[effort]
    random, rounds = np.random.default_rng(seed), min(each * len(kept), most)
    # What a round takes grows with the classes.
    rounds, done = rounds * 3 // max(3, problem.k), 0

    def step(amount: int) -> int:
        nonlocal done
        iterate(classes, work, problem.k, random.random((amount, _DRAWS)))
        done += amount
        return done

    if stopped is None:
        stopped = run_in_steps(step, rounds, budget, "improving classes", first=100)
    remark = f"{done:,} rounds of squared errors" + (
        f", then {stopped.value}" if stopped else f", stopped by effort {effort}"
    )
    if classes.costs.sum() > first:
        return given, stopped, remark
    found = given.copy()
    found[kept] = np.unique(classes.label, return_inverse=True)[1]
    return found, stopped, remark


def _start(points: Floats, labels: Ints, k: int) -> tuple[SquaredClasses, SquaredRound]:
    """Return classes of fewer than 2k records, and a queue of all records."""
    n, m = points.shape
    to_halve = Classes(labels).groups()  # type: ignore[arg-type]
    groups: list[Ints] = []
    while to_halve:
        group = to_halve.pop()
        if len(group) < 2 * k:
            groups.append(group)
            continue
        # Superadditive: halves cost no more together.
        widest = int(points[group].var(axis=0).argmax())
        ordered = group[np.argsort(points[group, widest], kind="stable")]
        to_halve += [ordered[: len(group) // 2], ordered[len(group) // 2 :]]
    near = np.asarray(cKDTree(points).query(points, k=min(n, _NEAR + 1))[1])
    count = max(len(groups), n // k)
    classes = SquaredClasses.of_sizes(
        n=n, count=count, k=k, m=m, points=points, near=np.ascontiguousarray(near[:, 1:], np.int64)
    )
    work = SquaredRound.of_sizes(n=n, count=count)
    for c, group in enumerate(groups):
        for x in group.tolist():
            put(classes, x, c)
        work_out(classes, c)
        line_up(classes, work, c)
    return classes, work
