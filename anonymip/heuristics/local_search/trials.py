"""Trials of iterated search: classes taken apart, made anew, and kept or taken back.

What a trial makes of the rows depends on what is drawn: classes of k in the order of a line, or, of
rows that repeat, the classes along that line that lose least where each may borrow copies.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.heuristics.local_search.current_classes import (
    CLOCK,
    NOTED,
    UPDATED,
    CurrentClasses,
    CurrentRelease,
    add_copies,
    changed_loss,
    clear_view,
    find_surplus,
    open_label,
    part_of,
    put_in_view,
    remove_copies,
    show_class,
    take_back_changes,
    update_class,
)
from anonymip.heuristics.local_search.iterated import ITERATED
from anonymip.heuristics.local_search.moves import MoveWork, count_steps, improve_class
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

_FEWER, _FEWER_OF_LARGEST = ITERATED.fewer, ITERATED.fewer_of_largest
_BORROWING, _TRIAL, _STEEP = ITERATED.borrowing, ITERATED.trial, ITERATED.steep


class TrialsWork(Packed):
    """What trials are made of: `rows` are those of the `most` classes taken apart at once.

    There is `room` for the classes visited.
    """

    points: Floats  # (t, d) of the row types: their distance is about their loss
    neighbours: Ints  # (classes, q) of each class; -1 for none
    middles: Ints  # (c,) classes that can be in the middle; where the largest loss counts, by that
    largest: float  # loss that weighs 1, where the largest loss counts
    lenders: Ints  # (types, l) row types with copies to lend near each; -1 for none
    #: (trials, d + 3) random numbers: the line, the class in the middle, how many, and what may be
    #: lost.
    draws: Floats
    #: That are taken apart, and that are made.
    labels: Annotated[Ints, "most"]
    made: Annotated[Ints, "rows"]
    #: Where each of the latter ends, and the type whose copies fill it up; -1 for none.
    ends: Annotated[Ints, "rows"]
    fillers: Annotated[Ints, "rows + 1"]
    #: What the first so many rows lose at least, and where their last class begins.
    least: Annotated[Floats, "rows + 1"]
    starts: Annotated[Ints, "rows + 1"]
    #: Their rows, and where they lie on the line.
    types: Annotated[Ints, "rows"]
    keys: Annotated[Floats, "rows"]
    #: Types of the rows of the last classes visited, and how many; no places where none is wanted.
    visited: Annotated[Ints, "room, widest"]
    sizes: Annotated[Ints, "room"]
    counts: Annotated[Ints, "2"]  # trials made, classes visited


def hand_over(trials: TrialsWork, state: CurrentRelease, visited: dict[bytes, Ints]) -> None:
    """Write the records of the classes visited last by themselves, the oldest forgotten."""
    for at in range(min(int(trials.counts[1]), len(trials.visited))):
        row_types = np.sort(trials.visited[at, : trials.sizes[at]])
        visited[row_types.tobytes()] = state.records[state.first[row_types]]
    for key in list(visited)[: max(0, len(visited) - ITERATED.visited)]:
        del visited[key]


@kernel
def _choose_classes(work: MoveWork, trials: TrialsWork, trial: int, widest: int) -> int:
    """Write a class drawn and its nearest neighbours; return how many these are."""
    sizes, labels, d = work.current.sizes, trials.labels, trials.points.shape[1]
    drawn = trials.draws[trial, d]
    drawn = drawn if work.rules.summed else drawn**3
    middle = trials.middles[int(drawn * len(trials.middles))]
    wanted = 2 + int(trials.draws[trial, d + 1] * (len(labels) - 1))
    count = 0
    for at in range(-1, trials.neighbours.shape[1]):
        label = middle if at < 0 else trials.neighbours[middle, at]
        if label < 0 or sizes[label] == 0 or sizes[label] > widest:
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
def _home(current: CurrentClasses, trials: TrialsWork, count: int, row_type: int) -> int:
    """Return the class of copies of a type that is not taken apart; -1 if there is none."""
    surplus = find_surplus(current, row_type)
    for at in range(count):
        if trials.labels[at] == surplus:
            return -1
    return surplus


@kernel
def _lay_out(work: MoveWork, trials: TrialsWork, trial: int, count: int, borrows: bool) -> int:
    """Write the rows of the classes chosen in the order of the line; return how many.

    Those that `borrows` lets go back to a class of copies are left out.
    """
    current, points, size = work.current, trials.points, 0
    for at in range(count):
        show_class(work.rules, current, work.one, trials.labels[at])
        for place in range(work.one.totals[0]):
            row_type, key = work.one.types[place], 0.0
            if borrows and _home(current, trials, count, row_type) >= 0:
                continue
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
def _assign_diverse(work: MoveWork, trials: TrialsWork, size: int) -> bool:
    """Arrange the rows so that each k of them are diverse, near the order of the line.

    Each class takes the next row that leaves it room for what it lacks; false if none does, or if
    the rows that are left over spoil the last class.
    """
    rule, counts, k = work.rules.diversity, work.other.counts, work.rules.k
    clear_view(work.rules, work.other)
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
def _cut_to_borrow(work: MoveWork, trials: TrialsWork, count: int, size: int) -> int:
    """Write where classes end of the rows in their order that lose least; return how many.

    Those of fewer than k rows borrow the others. 0 if no classes can be made, or if lenders have
    less than is borrowed. Complexity: O(s k l m) for s rows and l lenders of each.
    """
    rules, k, least = work.rules, work.rules.k, trials.least
    least[: size + 1] = np.inf
    least[0] = 0.0 if rules.summed else -np.inf
    for start in range(size):
        clear_view(rules, work.other)
        for end in range(start + 1, min(size, start + 2 * k - 1) + 1):
            put_in_view(rules, work.other, trials.types[end - 1], 1)
            loss, filler = np.inf, -1
            if end - start >= k:
                count_steps(work, 1)
                loss = part_of(rules, end - start, changed_loss(rules, work.other, -1, -1))
            else:
                # The copies that lose least, of those to lend near the first and the last row.
                missing = k - (end - start)
                for place in (start, end - 1):
                    for lender in trials.lenders[trials.types[place]]:
                        home = -1 if lender < 0 else _home(work.current, trials, count, lender)
                        if home < 0 or work.current.sizes[home] - k < missing:
                            continue
                        count_steps(work, 1)
                        lent = part_of(rules, k, changed_loss(rules, work.other, -1, lender))
                        # What leaves a class of copies no longer loses what it lost there.
                        lent -= missing * work.current.losses[home] if rules.summed else 0.0
                        if lent < loss:
                            loss, filler = lent, lender
            after = least[start] + loss if rules.summed else max(least[start], loss)
            if after < least[end]:
                least[end], trials.starts[end], trials.fillers[end] = after, start, filler
    if not least[size] < np.inf:
        return 0
    # The classes from the last one back, then in their order.
    made, end = 0, size
    while end > 0:
        trials.ends[made] = end
        made, end = made + 1, trials.starts[end]
    for at in range(made // 2):
        trials.ends[at], trials.ends[made - 1 - at] = trials.ends[made - 1 - at], trials.ends[at]
    for at in range(made):
        filler = trials.fillers[trials.ends[at]]
        trials.fillers[at] = filler
        if filler >= 0:
            lent, start = 0, 0
            for before in range(at + 1):
                if trials.fillers[before] == filler:
                    lent += k - (trials.ends[before] - start)
                start = trials.ends[before]
            if work.current.sizes[find_surplus(work.current, filler)] - k < lent:
                return 0
    return made


@kernel
def _change_size(work: MoveWork, label: int, row_type: int, copies: int) -> None:
    """Put copies into a class of copies of a row, or take them out if they are less than none."""
    rules, current = work.rules, work.current
    work.gain[0] += part_of(rules, current.sizes[label], current.losses[label])
    if copies > 0:
        add_copies(current, label, row_type, copies)
    else:
        remove_copies(current, label, row_type, -copies)
    update_class(rules, current, work.other, label)
    work.gain[0] -= part_of(rules, current.sizes[label], current.losses[label])


@kernel
def _make_anew(work: MoveWork, trials: TrialsWork, count: int, made: int, borrows: bool) -> None:
    """Take the classes chosen apart, and make classes of their rows as they were cut."""
    rules, current = work.rules, work.current
    near = trials.neighbours[trials.labels[0]].copy()
    q, work.gain[0] = len(near), 0.0
    for at in range(count):
        label = trials.labels[at]
        work.gain[0] += part_of(rules, current.sizes[label], current.losses[label])
        while current.head[label] >= 0:
            entry = current.head[label]
            row_type, copies = current.types[entry], current.copies[entry]
            home = _home(current, trials, count, row_type) if borrows else -1
            remove_copies(current, label, row_type, copies)
            if home >= 0:
                _change_size(work, home, row_type, copies)
        update_class(rules, current, work.other, label)
    for at in range(made):
        trials.made[at] = open_label(current)
    first = 0
    for at in range(made):
        for place in range(first, trials.ends[at]):
            add_copies(current, trials.made[at], trials.types[place], 1)
        missing, filler = rules.k - (trials.ends[at] - first), trials.fillers[at]
        if filler >= 0:
            _change_size(work, find_surplus(current, filler), filler, -missing)
            add_copies(current, trials.made[at], filler, missing)
        first = trials.ends[at]
    first = 0
    for at in range(made):
        label = trials.made[at]
        size = rules.k if trials.fillers[at] >= 0 else trials.ends[at] - first
        # The neighbours of the one in the middle, the farthest of them replaced by the others made.
        for place in range(q):
            other = trials.made[q - 1 - place] if q - 1 - place < made else near[place]
            trials.neighbours[label, place] = other
        work.checked[label] = -1
        update_class(rules, current, work.other, label)
        # The view shows the surplus class where it joined that: rows there lose as much each.
        entry = current.head[trials.made[at]]
        joined = current.surplus[trials.types[first]] if entry < 0 else label
        work.gain[0] -= part_of(rules, size, current.losses[joined])
        first = trials.ends[at]


@kernel
def weight_of(loss: float, largest: float) -> float:
    """Return what a class weighs where the largest loss counts."""
    return float(np.exp((loss - largest) / (_STEEP * abs(largest))))


@kernel
def _weight_gained(current: CurrentClasses, largest: float, since: int) -> float:
    """Return by how much what the classes weigh fell since a moment of the clock, by the notes."""
    gain = 0.0
    for noted in range(current.cursor[NOTED]):
        label = current.notes[noted, 1]
        if current.notes[noted, 0] != UPDATED:
            continue
        if current.notes[noted, 2] <= since:  # the first note of each class
            gain += weight_of(current.old_losses[noted], largest)
        if current.notes[noted, 3] == current.changed[label] and current.sizes[label] > 0:
            gain -= weight_of(current.losses[label], largest)
    return gain


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
        place, size = trials.counts[1] % len(trials.visited), 0
        entry = current.head[label]
        while entry >= 0:
            for _ in range(current.copies[entry]):
                trials.visited[place, size] = current.types[entry]
                size += 1
            entry = current.following[entry]
        trials.sizes[place] = size
        trials.counts[1] += 1


@kernel
def trials_step(
    work: MoveWork, trials: TrialsWork, widest: int, heat: float, cursor: Ints, amount: int
) -> int:
    """Make the next `amount` trials; return how many have been made."""
    rules, current = work.rules, work.current
    last = min(cursor[0] + amount, len(trials.draws))
    full, most = len(current.notes) // 2, trials.points.shape[1] + 2
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        trial = cursor[0]
        cursor[0] += 1
        work.steps[0] += _TRIAL
        count = _choose_classes(work, trials, trial, widest)
        # What the draw of the number of classes leaves over is as random.
        chance = trials.draws[trial, most - 1] * (len(trials.labels) - 1)
        chance -= np.floor(chance)
        borrows = trials.lenders.shape[1] > 0 and chance > 1.0 - _BORROWING
        if count < (1 if borrows else 2):
            continue
        size = _lay_out(work, trials, trial, count, borrows)
        if rules.diversity.values.shape[1] > 0 and not _assign_diverse(work, trials, size):
            continue
        if borrows:
            made = _cut_to_borrow(work, trials, count, size)
        else:
            # Classes of k, or where it is drawn one less, and rows shared out evenly; those of a
            # diversity are arranged by k, and the last class gets what is left.
            made = size // rules.k
            fewer = made > 1 and chance < (_FEWER if rules.summed else _FEWER_OF_LARGEST)
            made -= fewer
            evenly = fewer and rules.diversity.values.shape[1] == 0
            for at in range(made):
                trials.ends[at] = (at + 1) * size // made if evenly else (at + 1) * rules.k
                trials.fillers[at] = -1
            trials.ends[made - 1] = size
        if made == 0 and (size > 0 or not borrows):
            continue
        gained, noted, since = work.gain[0], 0, current.cursor[CLOCK]
        current.cursor[NOTED] = 0
        _make_anew(work, trials, count, made, borrows)
        # What is noted of changes tells which classes to look at, until none has changed since it
        # was compared with its neighbours. Beyond a limit no class is known to be allowed.
        while noted < current.cursor[NOTED] < full and work.gain[0] > -np.inf:
            label = current.notes[noted, 1]
            if (
                current.notes[noted, 0] == UPDATED
                and current.sizes[label] > 0
                and current.changed[label] > work.checked[label]
            ):
                improve_class(work, trials.neighbours, label)
            noted += 1
        gain = work.gain[0]
        if not rules.summed and gain > -np.inf:
            gain = _weight_gained(current, trials.largest, since)
        trials.counts[0] += 1
        if len(trials.visited) > 0 and gain > -np.inf:
            _remember(current, trials)
        # A draw of the logarithm lies below 0. What was not all noted cannot be taken back: the
        # best release is kept elsewhere.
        if gain > heat * np.log(trials.draws[trial, most]) or current.cursor[NOTED] == len(
            current.notes
        ):
            work.gain[0] = gained + gain
        else:
            work.gain[0] = gained
            take_back_changes(current)
        current.cursor[NOTED] = 0
    return int(cursor[0])
