"""How many sensitive values the rows of records lack, kept count of while assignments change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.recodings import Diversity
from anonymip.recodings.rows.visible import RowsOfRecords
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Places in the numbers of a tally: exchanges tried, pairs listed, the last stamp, pairs listed as
#: the round began, and exchanges tried while little was lacking.
TRIED, LISTED, STAMP, LISTED_BEFORE, TRIED_FOR_LITTLE = 0, 1, 2, 3, 4


class View(Packed):
    """What the kernels see of a cover and of the diversity.

    Parameters
    ----------
    set_start, sets
        Originals that each published record covers.
    row_start, rows
        Published records that each original can be.
    codes
        (n, columns) sensitive values of the originals.
    most
        (n,) rows of an original that may show one value.
    distinct
        Values that the rows of an original need to show.
    values
        Number of codes.
    """

    set_start: NDArray[np.int64]
    sets: NDArray[np.int64]
    row_start: NDArray[np.int64]
    rows: NDArray[np.int64]
    codes: NDArray[np.int64]
    most: NDArray[np.int64]
    distinct: int
    values: int


class Tally(Packed):
    """What the assignments lack, and what is at hand to count it.

    Parameters
    ----------
    lacks
        (assignments * n,) values too many or too few in the rows of each record.
    listed, place
        The pairs of assignment and record that lack something, and where each stands in the list.
    counts
        (values,) zeros.
    stamp
        (n,) the last change that looked at a record.
    touched
        Records that a change looks at.
    cycle
        Rows that a change is about.
    numbers
        (5,) at the places `TRIED`, `LISTED`, `STAMP`, `LISTED_BEFORE`, `TRIED_FOR_LITTLE`.
    """

    lacks: NDArray[np.int64]
    listed: NDArray[np.int64]
    place: NDArray[np.int64]
    counts: NDArray[np.int64]
    stamp: NDArray[np.int64]
    touched: NDArray[np.int64]
    cycle: NDArray[np.int64]
    numbers: NDArray[np.int64]


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

    Parameters
    ----------
    count, n, values
        Number of assignments, of records, and of codes of sensitive values.
    longest
        Rows of the longest cycle.
    """
    numbers = np.zeros(5, np.int64)
    numbers[LISTED_BEFORE] = 2 * count * n  # the first round has none to be compared with
    return Tally(
        lacks=np.zeros(count * n, np.int64),
        listed=np.zeros(count * n, np.int64),
        place=np.full(count * n, -1, np.int64),
        counts=np.zeros(values, np.int64),
        stamp=np.full(n, -1, np.int64),
        touched=np.zeros(n, np.int64),
        cycle=np.zeros(longest, np.int64),
        numbers=numbers,
    )


@kernel
def _lack(view: View, counts: NDArray[np.int64], given: NDArray[np.int64], record: int) -> int:
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
def count_all(view: View, tally: Tally, given: NDArray[np.int64]) -> None:
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
def recount(view: View, tally: Tally, given: NDArray[np.int64], number: int, touched: int) -> int:
    """Count again what the touched records lack in one assignment; return by how much it grew."""
    grown, n = 0, len(given)
    for at in range(touched):
        record = tally.touched[at]
        pair = number * n + record
        lack = _lack(view, tally.counts, given, record)
        grown += lack - tally.lacks[pair]
        _note(tally, pair, lack)
    return grown
