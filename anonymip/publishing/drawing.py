"""Assignments of originals to the rows of a cover, drawn at random, with diversity if asked for.

Where a drawn one lacks diversity, cycles of it are exchanged until the rows of every record show
diverse values; what the rows of records lack is kept count of meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import NoSolution
from anonymip.graphs import (
    components,
    degree_of,
    draw_matching,
    effective_matches,
    random_matchings,
)
from anonymip.graphs.matchings import ring_successors
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity import RowsOfRecords, lacking_records
from anonymip.runtime.arrays import Flags, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps


@dataclass(frozen=True)
class DrawingEffort:
    """How long assignments that show diverse values are looked for."""

    #: Times that all assignments of a part are drawn again before they are changed.
    redrawn: int = 10
    single: int = 5  # times that single assignments are drawn and changed
    longest: int = 100  # rows in which a cycle may change an assignment
    #: Rounds of exchanges, each of at least so many and of one for every record of an assignment.
    #: The search gives up after a round that does not halve what is lacking.
    rounds: int = 30
    round_at_least: int = 2000
    #: Where no more than `little` is lacking, it gives up after so many exchanges instead.
    little: int = 10
    for_little: int = 20_000
    temperature: float = 0.3  # lacking values that a change may cost with probability 1/e


EFFORT = DrawingEffort()


def draw_diverse(problem: Problem, cover: Cover, rng: np.random.Generator) -> Ints:
    """Draw the assignment along which a cover is published, so that it keeps the diversity.

    The rows that an original record can be show no sensitive value in more than a share of 1/l, and
    as many values as asked for (Wong et al. [1]_, Definition 9). Sets that are diverse do not see
    to that: the rows of a record on a ring show values from 2k - 1 places. Each connected part of
    the cover is cut into k disjoint assignments all of which keep the diversity: drawn again until
    they do, else changed until they do, else the k shifts of a ring. One of them, drawn before, is
    published, so each of the k identities of a row is the true one with probability 1/k. Where no
    such cut is found, and where the cover is not regular, single assignments are drawn and changed
    until one keeps the diversity. `cover`: every record lies in its own set, and all sets are
    diverse. Returns: (n,) original record of each published one.

    Who knows one true match of a ring that is published along a shift, and that it is one, knows
    the others. ``docs/diversity.md`` states the criterion, its reasons and its limits.

    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 6.
    """
    drawing = _Drawing(problem, cover, rng)
    if drawing.degree is not None:
        drawing.permute_classes()
        drawing.attempt(drawing.disjoint, EFFORT.redrawn)
        drawing.attempt(drawing.changed, 1)
        drawing.shift()
    drawing.attempt(drawing.single, EFFORT.single)
    if drawing.open.any():
        raise NoSolution(
            f"no assignment is found in which the rows that record {int(drawing.open.argmax())} "
            f"can be show sensitive values with the {problem.diversity}",
            remedy="Use ring or nh, or equivalence classes, or ask for a larger k",
        )
    return drawing.matching


class _Drawing:
    """The assignment of the parts that are done, and the records whose part is open."""

    def __init__(self, problem: Problem, cover: Cover, rng: np.random.Generator) -> None:
        assert problem.diversity is not None
        self._diversity = problem.diversity
        self._sensitive = problem.microdata.sensitive_codes
        # Without the matches that lie in no assignment.
        kept = effective_matches(cover)
        sizes = np.bincount(cover.owners[kept], minlength=cover.n)
        self._cover = Cover(np.concatenate([[0], np.cumsum(sizes)]), cover.members[kept])
        self._rng = rng
        self._part = np.unique(components(cover), return_inverse=True)[1].ravel()
        self._parts = int(self._part.max()) + 1
        self.degree = degree_of(cover)
        # Which assignment of each part is published does not depend on what they are.
        self._published = rng.integers(self.degree or 1, size=self._parts)
        self.matching = np.full(cover.n, -1, np.int64)
        # Matchings of the open parts.
        self._last: NDArray[np.integer] = np.empty((0, cover.n), np.int64)

    @property
    def open(self) -> Flags:
        """(n,) whether the record lies in a part without an assignment."""
        return self.matching < 0

    def permute_classes(self) -> None:
        """Permute the parts in which all sets are equal, which are classes."""
        part = self._part
        records = np.flatnonzero(np.bincount(part)[part] == self.degree)
        if not len(records):
            return
        drawn = np.lexsort((self._rng.random(len(part)), part))
        listed = np.argsort(part, kind="stable")
        permutation = np.empty(len(part), np.int64)
        permutation[listed] = drawn
        number = np.searchsorted(records, permutation[records])
        self._take(records, _restricted(self._cover, records), number[None, :])

    def attempt(self, draw: Callable[[Ints, Cover], Ints], times: int) -> None:
        """Draw matchings of the open parts and take those that are diverse, a few times.

        `draw`: given the open records and their cover, returns (count, records) matchings.
        """
        for _ in range(times):
            records = np.flatnonzero(self.open)
            if not len(records):
                return
            cover = _restricted(self._cover, records)
            self._last = self._take(records, cover, draw(records, cover))

    def disjoint(self, records: Ints, cover: Cover) -> Ints:
        """Return disjoint matchings, as many as a record has matches."""
        assert self.degree is not None
        return random_matchings(cover, self.degree, self._rng).astype(np.int64)

    def changed(self, records: Ints, cover: Cover) -> Ints:
        """Return the last matchings, changed until all are diverse, or no hope is left.

        They are disjoint, and stay so: two matchings exchange the matches of an alternating cycle,
        a Kempe change of the edge colouring that disjoint matchings are. In a single one rows hand
        on their records in a circle, mostly of two rows. Changes that make it worse are taken now
        and then. Complexity: O(c k^2) for each exchange along a cycle of c rows, of which there are
        up to 30 n k.
        """
        sensitive = self._sensitive[records]
        given = self._last.astype(np.int64, order="C")
        count, n = given.shape
        rows, (numerator, denominator) = RowsOfRecords.of(cover), self._diversity.ratio
        view = View(
            cover.start,
            cover.members.astype(np.int64),
            rows.start,
            rows.rows,
            np.ascontiguousarray(sensitive, np.int64),
            rows.sizes * denominator // numerator,
            int(self._diversity.distinct),
            int(sensitive.max()) + 1,
        )
        taker = np.empty_like(given)
        np.put_along_axis(taker, given, np.broadcast_to(np.arange(n), given.shape), axis=1)
        numbers = np.zeros(5, np.int64)
        numbers[LISTED_BEFORE] = 2 * count * n  # the first round has none to be compared with
        sizes = {"count": count, "n": n, "values": view.values, "longest": EFFORT.longest}
        tally = Tally.of_sizes(**sizes, numbers=numbers)
        tally.touched[:] = np.arange(n)
        for number in range(count):
            recount(view, tally, given[number], number, n)
        a_round = max(given.size, EFFORT.round_at_least)
        total = EFFORT.rounds * a_round
        limits = (total, a_round, EFFORT.little, EFFORT.for_little, EFFORT.temperature)

        def step(amount: int) -> int:
            return int(_exchange_step(view, tally, given, taker, self._rng, amount, *limits))

        run_in_steps(step, total, Budget(), "drawing a diverse assignment", first=1000)
        return given

    def single(self, records: Ints, cover: Cover) -> Ints:
        """Return one matching, changed likewise."""
        self._last = draw_matching(cover, self._rng)[None, :]
        return self.changed(records, cover)

    def shift(self) -> None:
        """Take the shifts of the open parts that are rings."""
        records = np.flatnonzero(self.open)
        if not len(records):
            return
        rings = [records]
        if ring_successors(_restricted(self._cover, records)) is None:
            part = self._part[records]
            rings = [records[part == one] for one in np.unique(part)]
        for ring in rings:
            cover = _restricted(self._cover, ring)
            following = ring_successors(cover)
            if following is not None:
                assert self.degree is not None
                shifts = [np.arange(cover.n)]
                while len(shifts) < self.degree:
                    shifts.append(following[shifts[-1]])
                self._take(ring, cover, np.stack(shifts))

    def _take(self, records: Ints, cover: Cover, matchings: Ints) -> Ints:
        """Assign the parts in which all matchings are diverse; return those of the others.

        `records`: those of the open parts. `cover, matchings`: of these records, numbered from 0.
        """
        rows = RowsOfRecords.of(cover)
        lacking = np.zeros(len(records), np.bool_)
        for matching in matchings:
            lacking |= lacking_records(self._diversity, self._sensitive[records], rows, matching)
        part = self._part[records]
        poor = np.zeros(self._parts, np.bool_)
        poor[part[lacking]] = True
        done = ~poor[part]
        number = np.minimum(self._published[part], len(matchings) - 1)
        self.matching[records[done]] = records[matchings[number, np.arange(len(records))]][done]
        rank = np.cumsum(~done) - 1
        return rank[matchings[:, ~done]]


def _restricted(cover: Cover, records: Ints) -> Cover:
    """Return the cover of some records, ascending, whose sets hold no others."""
    if len(records) == cover.n:
        return cover
    number = np.full(cover.n, -1, np.int64)
    number[records] = np.arange(len(records))
    kept = number[cover.owners] >= 0
    start = np.concatenate([[0], np.cumsum(cover.sizes[records])])
    return Cover(start, number[cover.members[kept]])  # type: ignore[arg-type]


#: Places in the numbers of a tally: exchanges tried, pairs listed, the last stamp, pairs listed as
#: the round began, and exchanges tried while little was lacking.
TRIED, LISTED, STAMP, LISTED_BEFORE, TRIED_FOR_LITTLE = 0, 1, 2, 3, 4


class View(Packed):
    """What the kernels see of a cover and of the diversity."""

    #: Originals that each published record covers.
    set_start: Ints
    sets: Ints
    #: Published records that each original can be.
    row_start: Ints
    rows: Ints
    codes: Ints  # (n, columns) sensitive values of the originals
    most: Ints  # (n,) rows of an original that may show one value
    distinct: int  # values that the rows of an original need to show
    values: int  # number of codes


class Tally(Packed):
    """What the assignments lack, and what is at hand to count it."""

    lacks: Annotated[Ints, "count * n"]  # values too many or too few in the rows of each record
    #: The pairs of assignment and record that lack something, and where each stands in the list.
    listed: Annotated[Ints, "count * n"]
    place: Annotated[Ints, "count * n", -1]
    counts: Annotated[Ints, "values"]  # zeros
    stamp: Annotated[Ints, "n", -1]  # the last change that looked at a record
    touched: Annotated[Ints, "n"]  # records that a change looks at
    cycle: Annotated[Ints, "longest"]  # rows that a change is about
    #: (5,) at the places `TRIED`, `LISTED`, `STAMP`, `LISTED_BEFORE`, `TRIED_FOR_LITTLE`.
    numbers: Ints


@kernel
def recount(view: View, tally: Tally, given: Ints, number: int, touched: int) -> int:
    """Count again what the touched records lack in one assignment; return by how much it grew."""
    grown, n, counts = 0, len(given), tally.counts
    for at in range(touched):
        record = tally.touched[at]
        begin, end = view.row_start[record], view.row_start[record + 1]
        # Visible values that are too many or missing in the rows of the record.
        lack = 0
        for column in range(view.codes.shape[1]):
            distinct = 0
            # Counted one after the other: from the row too many on, each adds one to what lacks.
            for place in range(begin, end):
                value = view.codes[given[view.rows[place]], column]
                counts[value] += 1
                distinct += counts[value] == 1
                lack += counts[value] > view.most[record]
            # The counts are zeros again for whoever comes next.
            for place in range(begin, end):
                counts[view.codes[given[view.rows[place]], column]] = 0
            lack += max(0, view.distinct - distinct)
        # The pair is listed if it lacks anything.
        pair = number * n + record
        grown += lack - tally.lacks[pair]
        tally.lacks[pair] = lack
        listed = tally.place[pair]
        if lack > 0 and listed < 0:
            tally.place[pair] = tally.numbers[LISTED]
            tally.listed[tally.numbers[LISTED]] = pair
            tally.numbers[LISTED] += 1
        elif lack == 0 and listed >= 0:
            tally.numbers[LISTED] -= 1
            last = tally.listed[tally.numbers[LISTED]]
            tally.listed[listed], tally.place[last] = last, listed
            tally.place[pair] = -1
    return grown


@kernel
def _exchange_step(
    view: View,
    tally: Tally,
    given: Ints,
    taker: Ints,
    rng: np.random.Generator,
    amount: int,
    total: int,
    a_round: int,
    little: int,
    for_little: int,
    temperature: float,
) -> int:
    """Try up to `amount` exchanges; all are done once nothing is lacking or there is no hope."""
    count, n = given.shape
    for _ in range(amount):
        if tally.numbers[LISTED] == 0 or tally.numbers[TRIED] >= total:
            return total
        # A round that did not halve what lacks is the last one, unless little does.
        if tally.numbers[TRIED] % a_round == 0:
            if tally.numbers[LISTED] > max(little, tally.numbers[LISTED_BEFORE] // 2):
                return total
            tally.numbers[LISTED_BEFORE] = tally.numbers[LISTED]
        # What little is left may be out of reach: it gets so many tries and no more.
        if tally.numbers[LISTED] <= little:
            tally.numbers[TRIED_FOR_LITTLE] += 1
            if tally.numbers[TRIED_FOR_LITTLE] > for_little:
                return total
        tally.numbers[TRIED] += 1
        # One of the records that lack something, in one assignment, and one of its rows there.
        pair = tally.listed[int(rng.random() * tally.numbers[LISTED])]
        number, record = pair // n, pair % n
        begin, end = view.row_start[record], view.row_start[record + 1]
        row = view.rows[begin + int(rng.random() * (end - begin))]
        # The row changes hands along a cycle: between two assignments, or within the only one.
        # What costs more than before is kept with a probability that falls with the cost.
        other = -1
        if count > 1:
            other = (number + 1 + int(rng.random() * (count - 1))) % count
            # The rows of the alternating cycle, unless it is too long.
            length, at = 0, row
            while length == 0 or (at != row and length < len(tally.cycle)):
                tally.cycle[length] = at
                length += 1
                at = taker[number, given[other, at]]
            if at != row:
                continue
        else:
            length = _circle(view, tally.cycle, given[0], taker[0], row, rng)
            if length == 0:
                continue
        change = _hand_on(view, tally, given, taker, number, other, length, 1)
        if change > 0 and rng.random() >= np.exp(-change / temperature):
            _hand_on(view, tally, given, taker, number, other, length, -1)
    return min(int(tally.numbers[TRIED]), total - 1)


@kernel
def _circle(
    view: View, cycle: Ints, given: Ints, taker: Ints, row: int, rng: np.random.Generator
) -> int:
    """Write rows each of which can take the record of the next one, the last that of the first.

    A random walk that ends as soon as it can, and finds nothing if it comes upon a row again.
    """
    cycle[0] = row
    length, at = 1, row
    while length < min(len(cycle), 20):
        begin, end = view.set_start[at], view.set_start[at + 1]
        following = taker[view.sets[begin + int(rng.random() * (end - begin))]]
        for earlier in range(length):
            if cycle[earlier] == following:
                return 0
        cycle[length] = following
        length += 1
        at = following
        for place in range(view.set_start[at], view.set_start[at + 1]):
            if view.sets[place] == given[row]:
                return length
    return 0


@kernel
def _hand_on(
    view: View,
    tally: Tally,
    given: Ints,
    taker: Ints,
    number: int,
    other: int,
    length: int,
    direction: int,
) -> int:
    """Let the records of the rows of a cycle change hands; return by how much more is lacking.

    Two assignments exchange them, which taken twice changes nothing. Of the only one, with `other`
    below 0, each row takes the record of the next one, or in the direction -1 of the one before.
    """
    cycle = tally.cycle
    if other >= 0:
        for at in range(length):
            row = cycle[at]
            given[number, row], given[other, row] = given[other, row], given[number, row]
            taker[number, given[number, row]] = row
            taker[other, given[other, row]] = row
    else:
        at = 0 if direction > 0 else length - 1
        first = given[0, cycle[at]]
        for _ in range(length - 1):
            given[0, cycle[at]] = given[0, cycle[at + direction]]
            at += direction
        given[0, cycle[at]] = first
        for at in range(length):
            taker[0, given[0, cycle[at]]] = cycle[at]
    # What the records lack changes that can be one of the rows.
    tally.numbers[STAMP] += 1
    touched = 0
    for at in range(length):
        for place in range(view.set_start[cycle[at]], view.set_start[cycle[at] + 1]):
            record = view.sets[place]
            if tally.stamp[record] != tally.numbers[STAMP]:
                tally.stamp[record] = tally.numbers[STAMP]
                tally.touched[touched] = record
                touched += 1
    grown = recount(view, tally, given[number], number, touched)
    if other >= 0:
        grown += recount(view, tally, given[other], other, touched)
    return grown
