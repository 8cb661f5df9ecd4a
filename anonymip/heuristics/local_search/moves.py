"""Moves between classes: a row that moves, two that are swapped, merges, splits, suppression."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.heuristics.local_search.current_classes import (
    CLASSES,
    CLOCK,
    SUPPRESSED_COPIES,
    ClassRules,
    ClassView,
    CurrentClasses,
    add_copies,
    changed_loss,
    clear_view,
    find_surplus,
    new_view,
    open_label,
    part_of,
    put_in_view,
    remove_copies,
    show_class,
    update_class,
)
from anonymip.objectives.kernels.class_loss import pair_loss
from anonymip.orders.orders import stable_order
from anonymip.recodings.rules.diversity_counts import may_be_diverse, stays_diverse
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


@kernel
def split_class(work: MoveWork, neighbours: Ints, label: int) -> None:
    """Cut a class in two while that gains.

    Its rows are sorted by how much nearer they are to one of two rows far apart than to the other,
    and cut where the losses are least.
    """
    rules, current = work.rules, work.current
    while current.sizes[label] >= 2 * rules.k and current.following[current.head[label]] >= 0:
        show_class(rules, current, work.one, label)
        size = work.one.totals[1]
        cut = _best_cut(work, label)
        if cut == 0:
            return
        # The new class has the neighbours of the old one, and the old one among them.
        part = open_label(current)
        # One by one: numba compiles the assignment of a whole row for two seconds.
        last = neighbours.shape[1] - 1
        for at in range(last):
            neighbours[part, at] = neighbours[label, at]
        neighbours[part, last] = label
        work.checked[part] = -1
        old = part_of(rules, size, current.losses[label])
        for at in range(cut):
            remove_copies(current, label, work.order[at], 1)
            add_copies(current, part, work.order[at], 1)
        # A part of one type joins the surplus class of that type, and the view shows that one: its
        # rows lose as much each, so that the share of the part can be read off it.
        update_class(rules, current, work.other, part)
        new = part_of(rules, cut, changed_loss(rules, work.other, -1, -1))
        update_class(rules, current, work.one, label)
        rest = part_of(rules, size - cut, changed_loss(rules, work.one, -1, -1))
        work.gain[0] += old - new - rest if rules.summed else 0.0


@kernel
def _best_cut(work: MoveWork, label: int) -> int:
    """Sort the rows of the class in view and return how many are cut off; 0 if that gains nothing.

    Complexity: O(s log s + s m) for s rows; O(s^2) more under a diversity.
    """
    # Two types far apart: the farthest from the first, and the farthest from that.
    rules, view, size = work.rules, work.one, work.one.totals[1]
    entries = view.totals[0]
    row_types, copies = view.types[:entries].copy(), view.copies[:entries].copy()
    seed = far = row_types[0]
    for _ in range(2):
        seed, farthest = far, -np.inf
        for candidate in row_types:
            loss = pair_loss(rules.rows, seed, candidate)
            if loss > farthest:
                far, farthest = candidate, loss
    # The rows in the order from the one to the other, copy by copy.
    for at in range(entries):
        work.keys[at] = pair_loss(rules.rows, seed, row_types[at]) - pair_loss(
            rules.rows, far, row_types[at]
        )
    ranked = stable_order(work.keys[:entries])
    place = 0
    for at in ranked:
        for _ in range(copies[at]):
            work.order[place] = row_types[at]
            place += 1
    # `ends[at]` is what the rows from a place on lose, for each place with k rows before it.
    clear_view(rules, work.other)
    for at in range(size - 1, rules.k - 1, -1):
        put_in_view(rules, work.other, work.order[at], 1)
        work.ends[at] = part_of(rules, size - at, changed_loss(rules, work.other, -1, -1))
    # Now the beginning grows: the second view shows what would be cut off.
    clear_view(rules, work.other)
    old = part_of(rules, size, work.current.losses[label])
    best, cut = 0.0, 0
    for at in range(1, size - rules.k + 1):
        put_in_view(rules, work.other, work.order[at - 1], 1)
        if at < rules.k:
            continue
        begin = part_of(rules, at, changed_loss(rules, work.other, -1, -1))
        gain = gain_of(rules, old, 0.0 if rules.summed else old, begin, work.ends[at])
        # The diversity is asked only of cuts that would be the best.
        if gain <= best:
            continue
        if rules.diversity.values.shape[1] > 0:
            if not may_be_diverse(rules.diversity, work.other.counts, 0, at, at):
                continue
            # The first view is free to show the rows from there on.
            clear_view(rules, view)
            for end in range(at, size):
                put_in_view(rules, view, work.order[end], 1)
            if not may_be_diverse(rules.diversity, view.counts, 0, size - at, size - at):
                continue
        best, cut = gain, at
    return cut


#: Gains below this share of the losses that they are differences of are rounding.
ROUNDING = 1e-10
#: Where the largest loss counts, gains of all others together weigh so much.
_LESSER = 1e-6


class MoveWork(Packed):
    """The classes, and the workspace of the moves."""

    rules: ClassRules
    current: CurrentClasses
    #: Views of two classes.
    one: ClassView
    other: ClassView
    #: What each class could lose less, at best, without a copy of each type.
    relief: Annotated[Floats, "2, 2 * entries"]
    #: Of a class that is split: its rows sorted, what by, the losses of its ends.
    order: Annotated[Ints, "entries"]
    keys: Annotated[Floats, "entries"]
    ends: Annotated[Floats, "entries + 1"]
    #: Clock at which a class was last compared with its neighbours.
    checked: Annotated[Ints, "classes", -1]
    gain: Annotated[Floats, "1"]  # gained so far
    steps: Ints  # (2,) losses of an attribute worked out so far, and how many may be


def new_move_work(rules: ClassRules, current: CurrentClasses, entries: int) -> MoveWork:
    """Return the workspace for classes of up to so many rows."""
    return MoveWork.of_sizes(
        entries=entries,
        classes=len(current.sizes),
        rules=rules,
        current=current,
        one=new_view(rules, 2 * entries),
        other=new_view(rules, 2 * entries),
        steps=np.array([0, np.iinfo(np.int64).max]),
    )


@kernel
def count_steps(work: MoveWork, losses: int) -> None:
    """Count losses of whole classes that were worked out."""
    view = work.one
    work.steps[0] += losses * (len(view.low) + len(view.distinct) + len(view.pair_low))


@kernel
def gain_of(
    rules: ClassRules, old_one: float, old_other: float, new_one: float, new_other: float
) -> float:
    """Return what is gained when the parts of two classes change, 0 if that is rounding.

    Where the largest loss counts the larger one decides, and the sum if it stays: sorted from the
    largest down, the losses of the classes then fall with every gain, so that there is an end.
    """
    old, new = old_one + old_other, new_one + new_other
    slack = ROUNDING * (abs(old_one) + abs(old_other))
    if not rules.summed:
        fall = max(old_one, old_other) - max(new_one, new_other)
        if fall > slack:
            return fall
        return _LESSER * (old - new) if fall >= 0.0 and old - new > slack else 0.0
    return old - new if old - new > slack else 0.0


@kernel
def improve_class(work: MoveWork, neighbours: Ints, label: int) -> None:
    """Split a class if that gains, then do with each neighbour what gains most while it does."""
    rules, current = work.rules, work.current
    since, started = work.checked[label], current.cursor[CLOCK]
    own_changed = current.changed[label] > since
    if own_changed and current.sizes[label] >= 2 * rules.k:
        split_class(work, neighbours, label)
    # Neighbours first, then the surplus classes of the types that the class holds.
    known = neighbours.shape[1]
    at = 0
    while at < known + work.one.totals[0]:
        if current.sizes[label] == 0:
            return
        if at == known and not rules.borrows:
            break
        if at < known:
            other = neighbours[label, at]
        else:
            # Copies join the surplus class of their type for nothing.
            show_class(rules, current, work.one, label)
            if at - known >= work.one.totals[0]:
                break
            other = find_surplus(current, work.one.types[at - known])
        at += 1
        if other < 0 or other == label or current.sizes[other] == 0:
            continue
        # The two were compared since either changed, and nothing gained.
        if not own_changed and current.changed[other] <= since:
            continue
        while current.sizes[label] > 0 and current.sizes[other] > 0:
            show_class(rules, current, work.one, label)
            show_class(rules, current, work.other, other)
            loss, other_loss = current.losses[label], current.losses[other]
            gain, merges, first, second = best_move(work, loss, other_loss)
            if gain == 0.0:
                break
            if merges:
                for place in range(work.other.totals[0]):
                    row_type, copies = work.other.types[place], work.other.copies[place]
                    remove_copies(current, other, row_type, copies)
                    add_copies(current, label, row_type, copies)
            exchange(work, label, other, first, second)
            work.gain[0] += gain
            own_changed = True
    # If it changed meanwhile it is looked at again: the first neighbours saw it as it was.
    work.checked[label] = started


@kernel
def exchange(work: MoveWork, one: int, other: int, first: int, second: int) -> None:
    """Let a copy of the first type leave one class for the other, one of the second that for it.

    Either type may be -1: none.
    """
    current = work.current
    if first >= 0:
        remove_copies(current, one, first, 1)
    if second >= 0:
        remove_copies(current, other, second, 1)
        add_copies(current, one, second, 1)
    if first >= 0:
        add_copies(current, other, first, 1)
    update_class(work.rules, current, work.other, other)
    update_class(work.rules, current, work.one, one)


@kernel
def best_move(work: MoveWork, loss: float, other_loss: float) -> tuple[float, bool, int, int]:
    """Return the gain, whether all merge, and which type leaves the first and the second class.

    The classes are in view, and -1 stands for no type; the gain is 0 if nothing gains.

    Complexity: O(s^2 m) for classes of s types. With a monotone loss a swap is not looked at if the
    two classes would not gain enough even if nobody joined them.
    """
    rules, one, other = work.rules, work.one, work.other
    size, other_size, asked = one.totals[1], other.totals[1], rules.diversity
    old, other_old = part_of(rules, size, loss), part_of(rules, other_size, other_loss)
    best, first, second = 0.0, -1, -1
    most = 0.0  # what the other class could gain at most by a swap
    # A copy of each type of the second class may join the first, then the other way round. `relief`
    # keeps what a class would lose less without it: with a monotone loss no swap that gives it away
    # gains it more.
    for side in (1, 0):
        giver, taker = (other, one) if side == 1 else (one, other)
        giving, taking = giver.totals[1], taker.totals[1]
        given_old, taken_old = (other_old, old) if side == 1 else (old, other_old)
        for at in range(giver.totals[0]):
            row_type = giver.types[at]
            without = changed_loss(rules, giver, row_type, -1)
            work.relief[side, at] = given_old - part_of(rules, giving, without)
            if side == 1:
                most = max(most, work.relief[1, at])
            # The class must keep k rows; the diversity, which takes long, is asked only of what
            # would be the best move.
            if giving > rules.k:
                gain = gain_of(
                    rules,
                    given_old,
                    taken_old,
                    part_of(rules, giving - 1, without),
                    part_of(rules, taking + 1, changed_loss(rules, taker, -1, row_type)),
                )
                if (
                    gain > best
                    and stays_diverse(asked, giver.counts, giving, row_type, -1)
                    and stays_diverse(asked, taker.counts, taking, -1, row_type)
                ):
                    best = gain
                    first, second = (-1, row_type) if side == 1 else (row_type, -1)
    # Swaps keep both sizes. One is skipped if the reliefs of the two copies together are no more
    # than the best gain: whoever joins only makes the classes lose more.
    prune = rules.monotone and rules.summed
    swaps = 0
    for at in range(one.totals[0]):
        row_type = one.types[at]
        if prune and work.relief[0, at] + most <= best:
            continue
        for place in range(other.totals[0]):
            partner = other.types[place]
            if partner == row_type or (
                prune and work.relief[0, at] + work.relief[1, place] <= best
            ):
                continue
            swaps += 1
            new = part_of(rules, size, changed_loss(rules, one, row_type, partner))
            # The first class is known exactly here, the second by its relief.
            if prune and old - new + work.relief[1, place] <= best:
                continue
            other_new = part_of(rules, other_size, changed_loss(rules, other, partner, row_type))
            gain = gain_of(rules, old, other_old, new, other_new)
            if (
                gain > best
                and stays_diverse(asked, one.counts, size, row_type, partner)
                and stays_diverse(asked, other.counts, other_size, partner, row_type)
            ):
                best, first, second = gain, row_type, partner
    count_steps(work, 2 * (swaps + one.totals[0] + other.totals[0]))
    # A monotone loss is never less in one class than in two.
    if not rules.monotone:
        gain = _merge_gain(work, old, other_old)
        if gain > best:
            return gain, True, -1, -1
    return best, False, first, second


@kernel
def _merge_gain(work: MoveWork, old: float, other_old: float) -> float:
    """Return what one class of two gains; a monotone loss gains nothing by that.

    The first view then shows both classes together.
    """
    rules, one, other = work.rules, work.one, work.other
    for at in range(other.totals[0]):
        put_in_view(rules, one, other.types[at], other.copies[at])
    new = part_of(rules, one.totals[1], changed_loss(rules, one, -1, -1))
    if rules.summed:
        return gain_of(rules, old, other_old, new, 0.0)
    return gain_of(rules, old, other_old, new, new) if new < max(old, other_old) else 0.0


@kernel
def sweep_step(work: MoveWork, neighbours: Ints, cursor: Ints, amount: int) -> int:
    """Improve the next `amount` classes; return how many have been looked at."""
    last = min(cursor[0] + amount, work.current.cursor[CLASSES])
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        label = cursor[0]
        cursor[0] += 1
        if work.current.sizes[label] > 0:
            improve_class(work, neighbours, label)
    return int(cursor[0])


@kernel
def suppress_costly(work: MoveWork) -> None:
    """Suppress the rows of all classes that cost more than a row of stars; losses are summed."""
    rules, current, view = work.rules, work.current, work.one
    for label in range(current.cursor[CLASSES]):
        # One row after the other while the class loses more by it than a row of stars.
        while current.sizes[label] > rules.k:
            show_class(rules, current, view, label)
            size = view.totals[1]
            old = size * current.losses[label]
            best, row_type = 0.0, -1
            for at in range(view.totals[0]):
                candidate = view.types[at]
                new = (size - 1) * changed_loss(rules, view, candidate, -1)
                gain = gain_of(rules, old, 0.0, new, rules.suppression_price)
                if gain > best and stays_diverse(rules.diversity, view.counts, size, candidate, -1):
                    best, row_type = gain, candidate
            if row_type < 0:
                break
            remove_copies(current, label, row_type, 1)
            current.suppressed[row_type] += 1
            current.cursor[SUPPRESSED_COPIES] += 1
            update_class(rules, current, view, label)
            work.gain[0] += best


@kernel
def take_in(work: MoveWork, row_types: Ints, near: Ints) -> None:
    """Let suppressed rows join the near class whose loss rises least, if by less than a star row.

    Losses are summed. `row_types`: (types,) of suppressed rows. `near`: (types, candidates) classes
    near each type; -1 for none.
    """
    rules, current = work.rules, work.current
    for place in range(len(row_types)):
        row_type = row_types[place]
        while current.suppressed[row_type] > 0:
            best, label = 0.0, -1
            for candidate in near[place]:
                if candidate < 0 or current.sizes[candidate] == 0:
                    continue
                show_class(rules, current, work.one, candidate)
                size = current.sizes[candidate]
                new = (size + 1) * changed_loss(rules, work.one, -1, row_type)
                old = size * current.losses[candidate]
                gain = gain_of(rules, old, rules.suppression_price, new, 0.0)
                if gain > best and stays_diverse(
                    rules.diversity, work.one.counts, size, -1, row_type
                ):
                    best, label = gain, candidate
            if label < 0:
                break
            current.suppressed[row_type] -= 1
            current.cursor[SUPPRESSED_COPIES] -= 1
            add_copies(current, label, row_type, 1)
            update_class(rules, current, work.one, label)
            work.gain[0] += best
