"""Iterated local search: a few neighbouring classes made anew, and only what changed improved.

A trial takes some neighbouring classes apart, cuts their rows along a line of random direction into
classes of k, sometimes into one less than that makes, and lets moves improve the classes that
changed, with their neighbours, until nothing gains. If the release loses too much more then, all
changes are taken back; how much is too much falls to nothing in each cycle of trials, as in
simulated annealing (S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated
annealing, Science 220, 1983). Each cycle has four times as many trials as the one before, may lose
twice as much at first, and begins with the best release so far: what is cut short is the last
cycle. A trial looks at some dozens of classes, whatever the size of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np

from anonymip.effort import EFFORTS
from anonymip.heuristics.local_search.current_classes import (
    NOTED,
    UPDATED,
    ClassRules,
    CurrentClasses,
    CurrentRelease,
    add_copies,
    clear_view,
    open_label,
    part_of,
    remove_copies,
    show_class,
    take_back_changes,
    update_class,
)
from anonymip.heuristics.local_search.moves import MoveWork, improve_class
from anonymip.orders.orders import stable_order
from anonymip.recodings.rules.diversity_counts import (
    count_in,
    forget_row,
    rows_lacking,
    start_counts,
)
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


@dataclass(frozen=True)
class IteratedNumbers:
    """The numbers that steer iterated search, by runs on 100 to 2,000 rows of eight tables."""

    most: int = 6  # classes that are taken apart together: from two to so many, with equal chances
    widest: int = 4  # rows of a class that is taken apart, times k; larger ones hold copies to lend
    neighbours: int = 12  # of a class, for the choice of those taken apart and for the moves
    #: What a trial may lose at first, about, as a share of a class's mean loss, where a row has
    #: the steps that normal gives it in large tables; with the square root of the steps it rises,
    heat: float = 0.04
    #: so far: 500 houses with k = 10 come to 609 with 0.16, to 617 with 0.08, to 613 with 0.3.
    hottest: float = 0.16
    #: Share of the trials that make one class less. Where all have k rows, moves never do: 100
    #: census records with k = 5 ended at 127.60 for 126.48, which has 19 classes in place of 20.
    fewer: float = 0.05
    #: A cycle of so many trials for each class that finds no better release is the last one.
    idle: int = 1_000
    #: Steps that a trial takes beside the losses that it works out: rows that repeat take few.
    trial: int = 4_000
    trials: int = 50  # at least so many between two looks for neighbours
    #: Noted at most: a trial that makes half as many is not improved further.
    changes: int = 10_000
    changes_a_record: int = 8
    #: Classes that are remembered at most of each stretch between two looks: the last ones.
    visited: int = 20_000


ITERATED = IteratedNumbers()
_FEWER, _TRIAL = ITERATED.fewer, ITERATED.trial

#: Steps of each effort for each record, and at most.
_STEPS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "quick": (40_000, 400_000_000),
        "normal": (300_000, 1_500_000_000),
        "thorough": (5_000_000, 12_000_000_000),
    }
)
#: Steps a row by which `heat` is meant.
_USUAL = 200_000
#: Of a few records so many have this times as many steps more: trials of these are soon made.
_FIRST, _MORE = 200, 4
#: Fewer than this have less of that: an exact search ends sooner.
_FEW = 100

#: Most steps of the effort thorough, times records: of large tables moves and diving take most of
#: five minutes, and what trials gain is little.
_STEPS_BY_SIZE = 240_000_000_000_000


def iterated_steps(effort: str, n: int) -> int:
    """Return the steps that the iterated search of n records may take."""
    each, most = _STEPS[effort]
    if effort == EFFORTS[-1]:
        most = min(most, max(_STEPS[EFFORTS[-2]][1], _STEPS_BY_SIZE // max(n, 1)))
    weight = n + int(_MORE * min(n, _FIRST) * min(1.0, n / _FEW))
    return min(each * weight, most)


def cycles(steps: int, n: int) -> Iterator[tuple[int, float]]:
    """Yield the steps of each cycle, and what its trials may lose at first, as `heat` says it."""
    each, length = _USUAL * n, iterated_steps(EFFORTS[-2], n)
    while steps > 0:
        length = length if steps >= 2 * length else steps
        yield length, min(ITERATED.heat * (length / each) ** 0.5, ITERATED.hottest)
        steps -= length
        length *= 4


class TrialsWork(Packed):
    """What trials are made of."""

    points: Floats  # (t, d) of the row types: their distance is about their loss
    neighbours: Ints  # (classes, q) of each class; -1 for none
    middles: Ints  # (c,) classes that can be in the middle
    #: (trials, d + 3) random numbers: the line, the class in the middle, how many, and what may be
    #: lost.
    draws: Floats
    #: That are taken apart, and that are made.
    labels: Annotated[Ints, "most"]
    made: Annotated[Ints, "rows"]
    #: Their rows, and where they lie on the line.
    types: Annotated[Ints, "rows"]
    keys: Annotated[Floats, "rows"]
    #: (classes, rows) types of the rows of the last classes visited, and (classes,) how many.
    visited: Ints
    sizes: Ints
    counts: Annotated[Ints, "3"]  # trials made, trials kept, classes visited


class Visits(NamedTuple):
    """The classes visited last.

    `rows, sizes`: (classes, rows) types of their rows, and (classes,) how many.
    """

    rows: Ints
    sizes: Ints

    @classmethod
    def of(cls, k: int, wanted: bool) -> Visits:
        """Return room for the classes visited, or none."""
        room = ITERATED.visited if wanted else 0
        return cls(np.zeros((room, ITERATED.widest * k), np.int64), np.zeros(room, np.int64))

    @property
    def widest(self) -> int:
        """Rows of a class that is taken apart, at most."""
        return self.rows.shape[1]

    def hand_over(
        self, trials: TrialsWork, state: CurrentRelease, visited: dict[bytes, Ints]
    ) -> None:
        """Write the records of the classes of these trials by themselves, the oldest forgotten."""
        for at in range(min(int(trials.counts[2]), len(self.rows))):
            row_types = np.sort(self.rows[at, : self.sizes[at]])
            visited[row_types.tobytes()] = state.records[state.first[row_types]]
        for key in list(visited)[: max(0, len(visited) - ITERATED.visited)]:
            del visited[key]


def new_trials_work(
    points: Floats, neighbours: Ints, middles: Ints, random: np.random.Generator, visits: Visits
) -> TrialsWork:
    """Return the workspace of the next trials, which are drawn."""
    numbers, d = ITERATED, points.shape[1]
    trials, rows = max(numbers.trials, len(middles)), numbers.most * visits.widest
    return TrialsWork.of_sizes(
        rows=rows,
        points=points,
        neighbours=neighbours,
        middles=middles,
        draws=np.concatenate([random.normal(size=(trials, d)), random.random((trials, 3))], axis=1),
        most=numbers.most,
        visited=visits.rows,
        sizes=visits.sizes,
    )


@kernel
def _choose_classes(current: CurrentClasses, trials: TrialsWork, trial: int, widest: int) -> int:
    """Write a class drawn and its nearest neighbours; return how many these are."""
    labels, d = trials.labels, trials.points.shape[1]
    middle = trials.middles[int(trials.draws[trial, d] * len(trials.middles))]
    wanted = 2 + int(trials.draws[trial, d + 1] * (len(labels) - 1))
    count = 0
    for at in range(-1, trials.neighbours.shape[1]):
        label = middle if at < 0 else trials.neighbours[middle, at]
        if label < 0 or current.sizes[label] == 0 or current.sizes[label] > widest:
            continue
        known = False
        for before in range(count):
            known = known or labels[before] == label
        if not known:
            labels[count] = label
            count += 1
        if count == wanted:
            break
    return count if count and labels[0] == middle else 0


@kernel
def _lay_out(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    trials: TrialsWork,
    trial: int,
    count: int,
) -> int:
    """Write the rows of the classes chosen in the order of the line; return how many."""
    points, size = trials.points, 0
    for at in range(count):
        show_class(rules, current, work.one, trials.labels[at])
        for place in range(work.one.totals[0]):
            row_type, key = work.one.types[place], 0.0
            for d in range(points.shape[1]):
                key += trials.draws[trial, d] * points[row_type, d]
            for _ in range(work.one.copies[place]):
                trials.types[size], trials.keys[size] = row_type, key
                size += 1
    work.steps[0] += size * points.shape[1]
    ranked = stable_order(trials.keys[:size])
    row_types = trials.types[:size].copy()
    for at in range(size):
        trials.types[at] = row_types[ranked[at]]
    return size


@kernel
def _deal_diverse(rules: ClassRules, work: MoveWork, trials: TrialsWork, size: int) -> bool:
    """Arrange the rows so that each k of them are diverse, near the order of the line.

    Each class takes the next row that leaves it room for what it lacks; false if none does, or if
    the rows that are left over spoil the last class.
    """
    rule, counts, k = rules.diversity, work.other.counts, rules.k
    clear_view(rules, work.other)
    arranged = True
    for start in range(0, size - size % k, k):
        start_counts(counts)
        last = size if start + 2 * k > size else start + k
        for at in range(start, last):
            place, room = at, last - at - 1
            while place < size and (
                rows_lacking(rule, counts, at - start, trials.types[place]) > room
            ):
                place += 1
            arranged = arranged and place < size
            if not arranged:
                last = at
                break
            # Those that were passed over stay in their order.
            row_type = trials.types[place]
            for before in range(place, at, -1):
                trials.types[before] = trials.types[before - 1]
            trials.types[at] = row_type
            count_in(rule, counts, row_type, 1, 0, 0)
        for at in range(start, last):
            forget_row(rule, counts, trials.types[at])
        if not arranged:
            break
    start_counts(counts)
    return arranged


@kernel
def _make_anew(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    trials: TrialsWork,
    trial: int,
    count: int,
    size: int,
) -> None:
    """Take the classes chosen apart, and make classes of k of their rows in the order written.

    Where it is drawn, one class less is made, and rows are shared out evenly; those of a diversity
    are arranged by k, and the last class gets what is left.
    """
    near = trials.neighbours[trials.labels[0]].copy()
    work.gain[0] = 0.0
    for at in range(count):
        label = trials.labels[at]
        work.gain[0] += part_of(rules, current.sizes[label], current.losses[label])
        while current.head[label] >= 0:
            entry = current.head[label]
            remove_copies(current, label, current.types[entry], current.copies[entry])
        update_class(rules, current, work.other, label)
    made, q = size // rules.k, len(near)
    # What chose the number of classes tells this too: its fraction is as random.
    drawn = trials.draws[trial, trials.points.shape[1] + 1] * (len(trials.labels) - 1)
    fewer = made > 1 and drawn - np.floor(drawn) < _FEWER
    made -= fewer
    ends = np.empty(made, np.int64)
    for at in range(made):
        evenly = fewer and rules.diversity.values.shape[1] == 0
        ends[at] = (at + 1) * size // made if evenly else (at + 1) * rules.k
    ends[made - 1] = size
    for at in range(made):
        trials.made[at] = open_label(current)
    first = 0
    for at in range(made):
        for place in range(first, ends[at]):
            add_copies(current, trials.made[at], trials.types[place], 1)
        first = ends[at]
    first = 0
    for at in range(made):
        label = trials.made[at]
        # The neighbours of the one in the middle, the farthest of them replaced by the others made.
        for place in range(q):
            other = trials.made[q - 1 - place] if q - 1 - place < made else near[place]
            trials.neighbours[label, place] = other
        work.checked[label] = -1
        update_class(rules, current, work.other, label)
        # The view shows the surplus class where it joined that: rows there lose as much each.
        entry = current.head[trials.made[at]]
        joined = current.surplus[trials.types[first]] if entry < 0 else label
        work.gain[0] -= part_of(rules, ends[at] - first, current.losses[joined])
        first = ends[at]


@kernel
def _remember(current: CurrentClasses, trials: TrialsWork) -> None:
    """Write the classes that the trial leaves behind, the last ones in place of the first."""
    for noted in range(current.cursor[NOTED]):
        label = current.notes[noted, 1]
        # The last note of each class tells of it.
        if current.notes[noted, 0] != UPDATED or current.notes[noted, 3] != (
            current.changed[label] if current.sizes[label] > 0 else -1
        ):
            continue
        if current.sizes[label] > trials.visited.shape[1]:
            continue
        place, size = trials.counts[2] % len(trials.visited), 0
        entry = current.head[label]
        while entry >= 0:
            for _ in range(current.copies[entry]):
                trials.visited[place, size] = current.types[entry]
                size += 1
            entry = current.following[entry]
        trials.sizes[place] = size
        trials.counts[2] += 1


@kernel
def trials_step(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    trials: TrialsWork,
    widest: int,
    heat: float,
    cursor: Ints,
    amount: int,
) -> int:
    """Make the next `amount` trials; return how many have been made."""
    last = min(cursor[0] + amount, len(trials.draws))
    full, most = len(current.notes) // 2, trials.points.shape[1] + 2
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        trial = cursor[0]
        cursor[0] += 1
        work.steps[0] += _TRIAL
        count = _choose_classes(current, trials, trial, widest)
        if count < 2:
            continue
        size = _lay_out(rules, current, work, trials, trial, count)
        if rules.diversity.values.shape[1] > 0 and not _deal_diverse(rules, work, trials, size):
            continue
        gained, noted = work.gain[0], 0
        current.cursor[NOTED] = 0
        _make_anew(rules, current, work, trials, trial, count, size)
        # What is noted of changes tells which classes to look at, until none has changed since it
        # was compared with its neighbours. Beyond a limit no class is known to be allowed.
        while noted < current.cursor[NOTED] < full and work.gain[0] > -np.inf:
            label = current.notes[noted, 1]
            if (
                current.notes[noted, 0] == UPDATED
                and current.sizes[label] > 0
                and current.changed[label] > work.checked[label]
            ):
                improve_class(rules, current, work, trials.neighbours, label)
            noted += 1
        gain = work.gain[0]
        trials.counts[0] += 1
        if len(trials.visited) > 0 and gain > -np.inf:
            _remember(current, trials)
        # A draw of the logarithm lies below 0.
        if gain > heat * np.log(trials.draws[trial, most]):
            trials.counts[1] += 1
            work.gain[0] = gained + gain
        else:
            work.gain[0] = gained
            take_back_changes(current)
        current.cursor[NOTED] = 0
    return int(cursor[0])
