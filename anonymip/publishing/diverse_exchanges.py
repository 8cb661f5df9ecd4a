"""Exchanges along cycles of assignments, until the rows of every record show diverse values.

What the rows of records lack is kept count of while assignments change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.recodings import Diversity
from anonymip.recodings.rules.diversity import RowsOfRecords
from anonymip.runtime.arrays import Ints
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


def view_of(diversity: Diversity, sensitive: NDArray[np.integer], cover: Cover) -> View:
    """Return what kernels see of a cover, of codes (n, columns) and of the diversity asked."""
    numerator, denominator = diversity.ratio
    rows = RowsOfRecords.of(cover)
    return View(
        cover.start,
        cover.members.astype(np.int64),
        rows.start,
        rows.rows,
        np.ascontiguousarray(sensitive, np.int64),
        rows.sizes * denominator // numerator,
        int(diversity.distinct),
        int(sensitive.max()) + 1,
    )


def tally_of(count: int, n: int, values: int, longest: int) -> Tally:
    """Return the tally of assignments of n records, before anything is counted.

    `count, n, values`: number of assignments, of records, and of codes of sensitive values.
    `longest`: rows of the longest cycle.
    """
    numbers = np.zeros(5, np.int64)
    numbers[LISTED_BEFORE] = 2 * count * n  # the first round has none to be compared with
    return Tally.of_sizes(count=count, n=n, values=values, longest=longest, numbers=numbers)


@kernel
def _lack(view: View, counts: Ints, given: Ints, record: int) -> int:
    """Return how many visible values are too many or missing in the rows of a record."""
    begin, end = view.row_start[record], view.row_start[record + 1]
    lack = 0
    for column in range(view.codes.shape[1]):
        distinct = 0
        # Counted one after the other: from the row too many on, each adds one to what lacks.
        for at in range(begin, end):
            value = view.codes[given[view.rows[at]], column]
            counts[value] += 1
            if counts[value] == 1:
                distinct += 1
            if counts[value] > view.most[record]:
                lack += 1
        # The counts are zeros again for whoever comes next.
        for at in range(begin, end):
            counts[view.codes[given[view.rows[at]], column]] = 0
        lack += max(0, view.distinct - distinct)
    return lack


@kernel
def _note(tally: Tally, pair: int, lack: int) -> None:
    """Write down what a pair lacks now, and list it if that is anything."""
    tally.lacks[pair] = lack
    place = tally.place[pair]
    if lack > 0 and place < 0:
        tally.place[pair] = tally.numbers[LISTED]
        tally.listed[tally.numbers[LISTED]] = pair
        tally.numbers[LISTED] += 1
    elif lack == 0 and place >= 0:
        tally.numbers[LISTED] -= 1
        last = tally.listed[tally.numbers[LISTED]]
        tally.listed[place] = last
        tally.place[last] = place
        tally.place[pair] = -1


@kernel
def count_all(view: View, tally: Tally, given: Ints) -> None:
    """Count what every record lacks in every assignment (count, n)."""
    count, n = given.shape
    for number in range(count):
        for record in range(n):
            lack = _lack(view, tally.counts, given[number], record)
            _note(tally, number * n + record, lack)


@kernel
def touch(view: View, tally: Tally, length: int) -> int:
    """Collect the records that can be one of the rows of the cycle; return how many."""
    tally.numbers[STAMP] += 1
    touched = 0
    for at in range(length):
        row = tally.cycle[at]
        for place in range(view.set_start[row], view.set_start[row + 1]):
            record = view.sets[place]
            if tally.stamp[record] != tally.numbers[STAMP]:
                tally.stamp[record] = tally.numbers[STAMP]
                tally.touched[touched] = record
                touched += 1
    return touched


@kernel
def recount(view: View, tally: Tally, given: Ints, number: int, touched: int) -> int:
    """Count again what the touched records lack in one assignment; return by how much it grew."""
    grown, n = 0, len(given)
    for at in range(touched):
        record = tally.touched[at]
        pair = number * n + record
        lack = _lack(view, tally.counts, given, record)
        grown += lack - tally.lacks[pair]
        _note(tally, pair, lack)
    return grown


def exchanged(
    diversity: Diversity,
    sensitive: NDArray[np.integer],
    cover: Cover,
    matchings: NDArray[np.integer],
    rng: np.random.Generator,
    budget: Budget,
) -> Ints:
    """Return disjoint matchings of the same edges in which fewer records lack diversity, or none.

    Two matchings exchange the matches of an alternating cycle: a Kempe change of the edge colouring
    that disjoint matchings are. In a single one rows hand on their records in a circle, mostly of
    two rows. Changes that make it worse are taken now and then. `diversity, sensitive`: what is
    asked for, and (n, columns) codes of the originals. `cover`: its edges. `matchings`: (count, n)
    originals of the published records in disjoint perfect matchings. `rng`: source of randomness.
    `budget`: ends the search early. Complexity: O(c k^2) for each exchange along a cycle of c rows,
    of which there are up to 30 n k.
    """
    given = matchings.astype(np.int64, order="C")
    view = view_of(diversity, sensitive, cover)
    count, n = given.shape
    taker = np.empty_like(given)
    np.put_along_axis(taker, given, np.broadcast_to(np.arange(n), given.shape), axis=1)
    tally = tally_of(count, n, view.values, EFFORT.longest)
    count_all(view, tally, given)
    a_round = max(given.size, EFFORT.round_at_least)
    total = EFFORT.rounds * a_round
    limits = (EFFORT.little, EFFORT.for_little, EFFORT.temperature)

    def step(amount: int) -> int:
        return int(_exchange_step(view, tally, given, taker, rng, amount, total, a_round, *limits))

    run_in_steps(step, total, budget, "drawing a diverse assignment", first=1000)
    return given


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
        if count > 1:
            other = (number + 1 + int(rng.random() * (count - 1))) % count
            length = _alternating(tally.cycle, given, taker, number, other, row)
            if length == 0:
                continue
            change = _swap(view, tally, given, taker, number, other, length)
            if change > 0 and rng.random() >= np.exp(-change / temperature):
                _swap(view, tally, given, taker, number, other, length)
        else:
            length = _circle(view, tally.cycle, given[0], taker[0], row, rng)
            if length == 0:
                continue
            change = _rotate(view, tally, given[0], taker[0], length, 1)
            if change > 0 and rng.random() >= np.exp(-change / temperature):
                _rotate(view, tally, given[0], taker[0], length, -1)
    return min(int(tally.numbers[TRIED]), total - 1)


@kernel
def _alternating(cycle: Ints, given: Ints, taker: Ints, number: int, other: int, row: int) -> int:
    """Write the rows of the alternating cycle through a row; 0 if it is too long."""
    length, at = 0, row
    while True:
        if length == len(cycle):
            return 0
        cycle[length] = at
        length += 1
        at = taker[number, given[other, at]]
        if at == row:
            return length


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
def _swap(
    view: View, tally: Tally, given: Ints, taker: Ints, number: int, other: int, length: int
) -> int:
    """Let two assignments exchange the records of the rows of a cycle; return what it costs."""
    for at in range(length):
        row = tally.cycle[at]
        given[number, row], given[other, row] = given[other, row], given[number, row]
        taker[number, given[number, row]] = row
        taker[other, given[other, row]] = row
    touched = touch(view, tally, length)
    return recount(view, tally, given[number], number, touched) + recount(
        view, tally, given[other], other, touched
    )


@kernel
def _rotate(view: View, tally: Tally, given: Ints, taker: Ints, length: int, direction: int) -> int:
    """Let each row of a cycle take the record of the next one, or of the one before."""
    cycle = tally.cycle
    at = 0 if direction > 0 else length - 1
    first = given[cycle[at]]
    for _ in range(length - 1):
        given[cycle[at]] = given[cycle[at + direction]]
        at += direction
    given[cycle[at]] = first
    for at in range(length):
        taker[given[cycle[at]]] = cycle[at]
    return recount(view, tally, given, 0, touch(view, tally, length))
