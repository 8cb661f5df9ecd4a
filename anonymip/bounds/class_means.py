r"""Duals of records under squared errors, proven by a branch and bound over the means of classes.

Duals u, none below 0, are *feasible* if no set S of k records has :math:`u(S) > SSE(S)`. Then no
larger set has either: the squared errors of s records are (s - 1) / (k - 1) times the mean of those
of their sets of k, whose duals are in the mean k / s of theirs; and (s - 1) k >= s (k - 1). So the
sum of the duals of all records bounds every release, whatever else is asked of its classes.

**The proof.** The mean c of a set lies in some box. There each attribute a of a record adds a term
to the squared errors that depends on the box alone, y being how far the record lies from the middle
of the box, and h half its width: since the differences from the mean add up to 0, what is added to
each record in proportion to its difference changes nothing in the sum, and

.. math::

    \sum_S (x - c)^2 = \sum_S (x - c)^2 + \lambda(c) \sum_S (x - c) \ge
    \sum_S y^2 - h^2, \quad \sum_S y (y - h), \quad \sum_S \max(0, y - h)^2

with :math:`\lambda = 2 (c - z), c - z, 0` and z the middle. The first is the line through the ends
of a concave term [1]_, best in narrow boxes, the last best in wide ones. Less the duals these are
sums of one term a record: the k least bound all sets with a mean in the box. If they are negative
the box is halved where that loses most; records that no set of a negative bound holds are left out.
A set whose duals do exceed its squared errors is met at once, and its duals are lowered there and
then: what was proven before stays proven.

**Anytime.** Where the work ends, sets with a mean in a box that is left hold only records that are
left in it: their duals are lowered to what was proven before.

**The duals to prove.** A linear program over sets of k, to which the least sets around each record
are added: from the record as the first mean on, the k records of the least terms give the next
mean. It tells how high duals may be, and proves nothing. They are proven at rising shares.

References
----------
.. [1] J. E. Falk, R. M. Soland: An algorithm for separable nonconvex programming problems,
   Management Science 15(9), 1969.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from scipy.spatial import cKDTree

from anonymip.bounds.near_program import SetProgram
from anonymip.bounds.near_search import take_least
from anonymip.effort import EFFORTS
from anonymip.enumeration.merging import row_types
from anonymip.objectives.losses.squared_error import SSE
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.tolerances import LOSS_RELATIVE


@dataclass(frozen=True)
class Numbers:
    """The numbers that steer the duals, chosen on tables of the benchmark of microaggregation."""

    #: Effort -> terms of an attribute that may be computed, 2e8 to 3e8 a second.
    work: Mapping[str, float] = field(
        default_factory=lambda: {"quick": 0.0, "normal": 3.5e9, "thorough": 3e10}
    )
    #: Less than so much for each row type proves nothing that is worth it.
    each: float = 2e5
    #: Records listed as near to each, that sets are made of,
    near: int = 200
    #: no more than so many of all together, and for each at least so many times k.
    listed: int = 20_000_000
    least_near: int = 3
    #: Means tried for the least set around a record at most.
    means: int = 20
    #: Times the nearest squared errors that duals begin at.
    first: float = 1.4
    #: Rounds of new sets, steps of the program in each, what a step takes for each member of a set,
    #: and the share of the work after which no further round begins.
    rounds: int = 14
    steps: int = 200
    step: float = 1.0
    share: float = 0.3
    #: New sets, as a share of the records, that are too few for a further round.
    few: float = 0.01
    #: Shares of these duals that are proven one after the other, each with the share of what k
    #: records gain by it on average that a box is not looked into for: in tables with records far
    #: off all others most boxes are narrow ones among the crowd, which add next to nothing.
    shares: tuple[tuple[float, float], ...] = ((0.8, 0.6), (0.92, 0.2), (0.96, 0.08), (1.0, 0.04))
    #: By which share a set's duals stay below its squared errors where they have to be lowered:
    #: around a set that they meet the boxes would have to be narrow.
    margin: float = 0.01
    #: Boxes within each other at most, records listed in all of them,
    levels: int = 200
    places: int = 20_000_000
    #: and how much the width of a box counts beside what it loses where it is halved.
    width: float = 0.03
    #: Sets remembered whose duals had to be lowered.
    lowered: int = 100_000
    #: Work between two questions whether time is left.
    at_a_time: float = 3e7


NUMBERS = Numbers()
_WIDTH = NUMBERS.width
#: Places of `MeanSearch.state`: boxes that are open, and sets whose duals were lowered.
OPEN, LOWERED = 0, 1


class MeanSearch(Packed):
    """The branch and bound: boxes within boxes, each with the records that its sets may hold."""

    #: (t, m) row types as points, and (t,) the rows of each.
    points: Floats
    counts: Ints
    #: (t,) what is proven, lowered where it does not hold, and feasible duals known before.
    duals: Floats
    floors: Floats
    #: Boxes, one to spare, and which term each attribute has in them: 0, 1, 2 for the widest, the
    #: narrowest and those between.
    low: Annotated[Floats, "levels + 1, m"]
    high: Annotated[Floats, "levels + 1, m"]
    terms_of: Annotated[Ints, "levels + 1, m"]
    #: The attribute that is halved, and how many halves have been taken up.
    split: Annotated[Ints, "levels"]
    side: Annotated[Ints, "levels"]
    #: Where the types of a box begin, these, and the sums of their terms but for the attribute that
    #: is halved.
    begin: Annotated[Ints, "levels + 1"]
    types: Annotated[Codes, "places"]
    terms: Annotated[Floats, "places"]
    #: The set of the least terms, and these.
    chosen: Annotated[Ints, "k"]
    least: Annotated[Floats, "k"]
    lowered: Annotated[Codes, "NUMBERS.lowered, k"]  # sets whose duals were lowered
    work: Annotated[Floats, "1"]  # terms computed
    state: Annotated[Ints, "2"]  # counters


@kernel
def squares_of(points: Floats, chosen: Ints, mean: Floats) -> float:
    """Return the squared errors of a set, and write its mean."""
    total = 0.0
    for a in range(points.shape[1]):
        mean[a] = 0.0
        for j in chosen:
            mean[a] += points[j, a]
        mean[a] /= len(chosen)
        for j in chosen:
            total += (points[j, a] - mean[a]) ** 2
    return total


@kernel
def sets_around(
    points: Floats,
    counts: Ints,
    duals: Floats,
    near: Codes,
    means: int,
    sets: Codes,
    costs: Floats,
    roots: Ints,
) -> float:
    """Write a set of few squared errors less duals around each of some types; return the work."""
    m, k, work = points.shape[1], sets.shape[1], 0.0
    mean, least, chosen = np.empty(m), np.empty(k), np.empty(k, np.int64)
    for at in range(len(roots)):
        root, best = roots[at], np.inf
        for a in range(m):
            mean[a] = points[root, a]
        # The least k terms around a mean are a set, whose own mean the next round begins from.
        for _ in range(means):
            held = 0
            for place in range(near.shape[1]):
                j, term = near[root, place], -duals[near[root, place]]
                for a in range(m):
                    term += (points[j, a] - mean[a]) ** 2
                held = take_least(chosen, least, held, j, term, counts[j])
            work += near.shape[1] * m
            reduced = np.inf
            if held == k:
                cost = squares_of(points, chosen, mean)
                reduced = cost - duals[chosen].sum()
            if not reduced < best:
                break
            best, costs[at] = reduced, cost
            for place in range(k):
                sets[at, place] = chosen[place]
    return work


@kernel
def term_of(value: float, low: float, high: float, kind: int) -> float:
    """Return the term of an attribute in a box."""
    half = 0.5 * (high - low)
    apart = abs(value - 0.5 * (low + high))
    if kind == 1:
        return apart * apart - half * half
    if kind == 2:
        return apart * (apart - half)
    outside = max(apart - half, 0.0)
    return outside * outside


@kernel
def fall_back(search: MeanSearch, begin: int, end: int) -> None:
    """Lower the duals of types whose sets are left unproven to those that were known before."""
    for place in range(begin, end):
        j = search.types[place]
        search.duals[j] = min(search.duals[j], search.floors[j])


@kernel
def lower_least(search: MeanSearch, margin: float, mean: Floats) -> bool:
    """Lower the duals of the set of the least terms if they are no less than it costs."""
    chosen, cost, charged = search.chosen, squares_of(search.points, search.chosen, mean), 0.0
    for j in chosen:
        charged += search.duals[j]
    if not charged > (1.0 - 0.5 * margin) * cost:
        return False
    for place in range(len(chosen)):
        if place == 0 or chosen[place] != chosen[place - 1]:
            search.duals[chosen[place]] *= (1.0 - margin) * cost / charged
    known = search.state[LOWERED]
    if known < len(search.lowered):
        for place in range(len(chosen)):
            search.lowered[known, place] = chosen[place]
        search.state[LOWERED] += 1
    return True


@kernel
def halve(search: MeanSearch, level: int, mean: Floats) -> bool:
    """Pick the terms of a box, and where it is halved, by the set of the least terms.

    Returns whether it has any width.
    """
    points, chosen, low, high = search.points, search.chosen, search.low[level], search.high[level]
    begin, end, widest, loses = search.begin[level], search.begin[level + 1], 0, 0.0
    types, terms = search.types, search.terms
    for a in range(points.shape[1]):
        half, middle = 0.5 * (high[a] - low[a]), 0.5 * (low[a] + high[a])
        # What the chosen points lose by each of the three terms, and by their own mean.
        squares, apart, wide = 0.0, 0.0, 0.0
        for j in chosen:
            one = abs(points[j, a] - middle)
            squares += one * one
            apart += one
            wide += max(one - half, 0.0) ** 2
        narrow, between = squares - len(chosen) * half * half, squares - half * apart
        true = squares - len(chosen) * (mean[a] - middle) ** 2
        kind = 1
        if wide > max(narrow, between):
            kind = 0
        elif between > narrow:
            kind = 2
        # Another term than the box had: its part of every sum is exchanged.
        before = search.terms_of[level, a]
        if kind != before:
            search.terms_of[level, a] = kind
            for place in range(begin, end):
                value = points[types[place], a]
                terms[place] += term_of(value, low[a], high[a], kind)
                terms[place] -= term_of(value, low[a], high[a], before)
            search.work[0] += end - begin
        lost = max(true - max(wide, narrow, between), 0.0)
        lost += 4.0 * _WIDTH * len(chosen) * half * half
        if lost > loses:
            widest, loses = a, lost
    # The halved term leaves the sums: each half adds its own.
    search.split[level], search.side[level] = widest, 0
    kind = search.terms_of[level, widest]
    for place in range(begin, end):
        value = points[types[place], widest]
        terms[place] -= term_of(value, low[widest], high[widest], kind)
    search.work[0] += len(chosen) * points.shape[1] + end - begin
    return loses > 0.0


@kernel
def take_half(search: MeanSearch, level: int, side: int, child: int, begin: int) -> float:
    """Write a half of a box as another one, with its terms from a place on; return its bound."""
    points, counts, duals, k = search.points, search.counts, search.duals, len(search.chosen)
    types, terms, chosen, least = search.types, search.terms, search.chosen, search.least
    a, held = search.split[level], 0
    for x in range(search.low.shape[1]):
        search.low[child, x], search.high[child, x] = search.low[level, x], search.high[level, x]
    for x in range(search.terms_of.shape[1]):
        search.terms_of[child, x] = search.terms_of[level, x]
    middle = 0.5 * (search.low[level, a] + search.high[level, a])
    if side == 0:
        search.high[child, a] = middle
    else:
        search.low[child, a] = middle
    low, high, kind = search.low[child, a], search.high[child, a], search.terms_of[child, a]
    first, end = search.begin[level], search.begin[level + 1]
    for place in range(first, end):
        j = types[place]
        term = terms[place] + term_of(points[j, a], low, high, kind)
        terms[begin + place - first] = term
        if held < k or term - duals[j] < least[k - 1]:
            held = take_least(chosen, least, held, j, term - duals[j], counts[j])
    search.work[0] += 2 * (end - first)
    return least.sum() if held == k else np.inf


@kernel
def search_means(
    search: MeanSearch, rounding: float, worth: float, margin: float, most: float
) -> None:
    """Go on with the branch and bound until all boxes are proven, or so much work is done.

    A box is proven where its bound is no less than what `rounding` may hide. One whose records gain
    no more than `worth` in all is not looked into.
    """
    begin, types, terms, k = search.begin, search.types, search.terms, len(search.chosen)
    least, mean = search.least, np.empty(search.points.shape[1])
    counts, duals = search.counts, search.duals
    while search.state[OPEN] > 0 and search.work[0] < most:
        child = search.state[OPEN]
        level = child - 1
        first, end = begin[level], begin[child]
        if search.side[level] == 2:
            search.state[OPEN] = level
            continue
        if child == len(search.side) or 2 * end - first > len(types):
            fall_back(search, first, end)
            search.state[OPEN] = level
            continue
        bound = take_half(search, level, search.side[level], child, end)
        if bound >= rounding:
            search.side[level] += 1
            continue
        # With lower duals the same half is looked at again.
        if lower_least(search, margin, mean):
            continue
        # What no set of a negative bound holds is left out.
        kept, most_term, gain = end, rounding - bound + least[k - 1], 0.0
        for place in range(first, end):
            j, term = types[place], terms[end + place - first]
            if term - duals[j] < most_term:
                types[kept], terms[kept] = j, term
                gain += counts[j] * max(duals[j] - search.floors[j], 0.0)
                kept += 1
        begin[child + 1] = kept
        search.side[level] += 1
        if gain > worth and halve(search, child, mean):
            search.state[OPEN] = child + 1
        else:
            fall_back(search, end, kept)


def new_search(points: Floats, counts: Ints, duals: Floats, floors: Floats, k: int) -> MeanSearch:
    """Return the search for a proof of duals, which stands before the box of all records."""
    (t, m), few = points.shape, min(NUMBERS.places, 2 * NUMBERS.levels * len(points))
    search = MeanSearch.of_sizes(
        levels=NUMBERS.levels,
        places=max(few, t),
        m=m,
        k=k,
        points=points,
        counts=counts,
        duals=duals.copy(),
        floors=floors,
    )
    search.low[0], search.high[0] = points.min(axis=0), points.max(axis=0)
    search.split[0] = (search.high[0] - search.low[0]).argmax()
    search.begin[1], search.types[:t], search.state[0] = t, np.arange(t), 1
    return search


@kernel
def proven_duals(search: MeanSearch, rounding: float) -> Floats:
    """Return (t,) feasible duals, whatever halves of boxes are still open."""
    proven, spare, begin = search.duals.copy(), len(search.side), search.begin[search.state[OPEN]]
    types, terms, k = search.types, search.terms, len(search.least)
    for level in range(search.state[OPEN]):
        first, end = search.begin[level], search.begin[level + 1]
        for side in range(search.side[level], 2):
            most, fits = np.inf, begin + end - first <= len(types)
            if fits:
                bound = take_half(search, level, side, spare, begin)
                if bound >= rounding:
                    continue
                most = rounding - bound + search.least[k - 1]
            for place in range(first, end):
                j = types[place]
                if not fits or terms[begin + place - first] - search.duals[j] < most:
                    proven[j] = min(proven[j], search.floors[j])
    return proven


class MeanDuals:
    """Feasible duals of the row types of a problem with squared errors, raised share by share.

    `problem`: classes with the objective SSE. `terms`: (n,) what each record adds at least to the
    squared errors of its class.

    `proven`: (t,) the best feasible duals so far. `done`: work so far.
    """

    def __init__(self, problem: Problem, terms: Floats, budget: Budget) -> None:
        objective = problem.objective
        assert isinstance(objective, SSE)
        self._types = row_types(problem)
        self._k, self._budget = problem.k, budget
        given = objective.points(problem.microdata)[self._types.first]
        centred = given - given.mean(axis=0)
        # Along the main axes of the records few of them matter.
        axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
        self._points = np.ascontiguousarray(centred @ axes)
        self.proven, self.done = terms[self._types.first], 0.0
        # Where records may be suppressed no dual exceeds the price; else it is not a number.
        self._price = float(np.fmin(np.inf, problem.compiled.suppression_price))
        eps, m = np.finfo(np.float64).eps, problem.m
        # Coordinates of points are off by so much, and sums of terms on the way to a box, each of
        # them no more than the squared width of the table.
        self._blur = 16 * eps * m**1.5 * float(np.abs(given).max(initial=0.0))
        widths = float(np.square(np.ptp(self._points, axis=0)).sum())
        self._rounding = 8 * NUMBERS.levels * (m + 1) * eps * widths * problem.k

    def climb(self, effort: str) -> bool:
        """Prove higher and higher duals; return whether the budget let it end."""
        needed = NUMBERS.each * len(self._points)
        works = [NUMBERS.work[one] for one in EFFORTS[: EFFORTS.index(effort) + 1]]
        most = [work for work in works if work >= needed]
        if not most or not self.proven.any():
            return True
        aims = self._aims(most)
        if aims is None:
            return self._budget.stop_reason() is None
        program, duals = aims
        counts, k = self._types.counts, self._k
        for share, worth in NUMBERS.shares:
            search = new_search(self._points, counts, share * duals, self.proven, k)
            gains = np.maximum(0.0, search.duals - search.floors)
            little = worth * k * float(gains @ counts) / float(counts.sum())
            for allowed in most:
                if not self._go_on(search, allowed, little):
                    return False
            if search.state[OPEN]:
                break
            duals = self._improved(program, duals, search.lowered[: search.state[LOWERED]])
        return True

    def terms(self) -> Floats:
        """Return (n,) the duals, lowered by what rounding may have added to them.

        With coordinates that are off by e the root of a set's squared errors is off by the root of
        k times e, and so they are by 2 (k u)^1/2 e for duals of u together.
        """
        blur = 2.0 * np.sqrt(self._k * self.proven.max(initial=0.0)) * self._blur
        lowered = np.maximum(0.0, self.proven * (1.0 - LOSS_RELATIVE) - blur)
        return np.asarray(lowered[self._types.inverse], np.float64)

    def _go_on(self, search: MeanSearch, most: float, worth: float) -> bool:
        """Go on with a proof until so much work is done in all; return whether time did not end."""
        while search.state[OPEN] and self.done < most and self._budget.stop_reason() is None:
            before = float(search.work[0])
            step = before + min(NUMBERS.at_a_time, most - self.done)
            search_means(search, self._rounding, worth, NUMBERS.margin, step)
            self.done += float(search.work[0]) - before
            self._budget.report("bound on squared errors")
        found = proven_duals(search, self._rounding)
        if found @ self._types.counts > self.proven @ self._types.counts:
            self.proven = found
        return self._budget.stop_reason() is None

    def _aims(self, most: list[float]) -> tuple[SetProgram, Floats] | None:
        """Return a program of sets and the best duals by it; None where they would take too long.

        The sets around each row type are taken in as long as that takes a share of the work.
        """
        points, counts, k, t = self._points, self._types.counts, self._k, len(self._points)
        near = min(t, NUMBERS.near + k, NUMBERS.listed // t)
        if near < min(t, NUMBERS.least_near * k):
            return None
        listed = np.asarray(cKDTree(points).query(points, k=near)[1]).reshape(t, near)
        program = SetProgram(counts, k, float(self.proven.mean()) * NUMBERS.first)
        duals = np.minimum(NUMBERS.first * self.proven, self._price)
        roots = np.flatnonzero(counts < k)
        allowed = NUMBERS.share * most[0]
        for _ in range(NUMBERS.rounds):
            sets, costs = np.empty((len(roots), k), np.int32), np.full(len(roots), np.inf)
            self.done += sets_around(
                points, counts, duals, listed.astype(np.int32), NUMBERS.means, sets, costs, roots
            )
            found = np.isfinite(costs)
            added = program.add(np.sort(sets[found], axis=1), costs[found])
            duals = self._improved(program, duals)
            if self._budget.stop_reason() is not None:
                return None
            if added < NUMBERS.few * t or self.done > allowed:
                break
        return program, duals

    def _improved(self, program: SetProgram, duals: Floats, sets: Codes | None = None) -> Floats:
        """Return better duals by the program, to which further sets may come."""
        if sets is not None and len(sets):
            held = self._points[sets]
            costs = np.square(held - held.mean(axis=1, keepdims=True)).sum(axis=(1, 2))
            program.add(np.sort(sets, axis=1), costs)
        self.done += NUMBERS.steps * NUMBERS.step * program.members.size
        lowest, highest = np.zeros(len(duals)), np.full(len(duals), self._price)
        return program.improved(duals, lowest, highest, NUMBERS.steps, self._budget)
