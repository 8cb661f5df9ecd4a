"""A few neighbouring classes made again at the least loss, with copies borrowed from elsewhere.

Where a table repeats its rows, many classes hold copies of one row only; what such a class holds
beyond k rows, its surplus, any other class can borrow, and it comes back for nothing. A window with
donors has to place only the rows of types without such a class outside. Its best classes are found
by listing sets, since donors leave the bounds of the search row by row little to cut; windows
without them are solved by that search, in a third of the time for two classes.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from anonymip.heuristics.local_search.borrowed_classes import (
    MOST_DONORS,
    MOST_LISTED,
    ListedWork,
    best_classes,
    new_listed_work,
    read_classes,
)
from anonymip.heuristics.local_search.current_classes import (
    CLASSES,
    CLOCK,
    ClassRules,
    CurrentClasses,
    add_copies,
    find_surplus,
    open_label,
    part_of,
    remove_copies,
    show_class,
    update_class,
)
from anonymip.heuristics.local_search.moves import ROUNDING, MoveWork, count_steps
from anonymip.heuristics.local_search.regroup import RegroupWork, new_regroup_work, regroup
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Most classes of a window, and sets of rows that one with donors looks at.
MOST_CLASSES, _MAX_SETS = 16, 20_000


class Near(NamedTuple):
    """What lies near.

    `neighbours`: (classes, q) of each class; -1 for none. `width`: of these so many are in a window
    with it, alone and two at a time. `lenders`: (types, d) types with a surplus near each type; -1
    for none.
    """

    neighbours: Ints
    width: int
    lenders: Ints


class WindowsWork(Packed):
    """Workspace of the windows."""

    labels: Annotated[Ints, "MOST_CLASSES"]  # classes of the window
    #: Types of its rows, and which of the classes found each belongs to.
    types: Annotated[Ints, "room"]
    groups: Annotated[Ints, "room"]
    #: Type of the copies that fill up each class found, -1 for none; its number.
    fillers: Annotated[Ints, "room"]
    found: Annotated[Ints, "room"]
    #: Clock at which the windows around a class were last solved.
    checked: Annotated[Ints, "classes", -1]
    #: Clock at which the window with donors around a class was last solved, and which window that
    #: was.
    borrowed: Annotated[Ints, "classes", -1]
    known: Annotated[Ints, "classes"]
    #: The best classes of the rows, alone and with donors.
    regroup: RegroupWork
    listed: ListedWork


def new_windows_work(rules: ClassRules, most_rows: int, classes: int) -> WindowsWork:
    """Return the workspace for windows of up to so many rows, and so many class numbers."""
    room = max(most_rows, MOST_LISTED)
    return WindowsWork.of_sizes(
        room=room,
        classes=classes,
        regroup=new_regroup_work(rules, most_rows),
        listed=new_listed_work(rules.rows.tables, rules.k),
    )


@kernel
def in_window(labels: Ints, classes: int, label: int) -> bool:
    """Return whether a class is among the first so many of a window."""
    found = False
    for at in range(classes):
        found = found or labels[at] == label
    return found


@kernel
def any_changed(current: CurrentClasses, labels: Ints, classes: int, since: int) -> bool:
    """Return whether a class of the window changed after a moment of the clock."""
    newest = current.changed[labels[0]]
    for at in range(1, classes):
        newest = max(newest, current.changed[labels[at]])
    return bool(newest > since)


@kernel
def rows_to_place(current: CurrentClasses, label: int, unplaced: bool) -> int:
    """Return the rows of a class; of one of several types perhaps not those of surplus classes."""
    entry = current.head[label]
    if not unplaced or current.following[entry] < 0:
        return int(current.sizes[label])
    count = 0
    while entry >= 0:
        if find_surplus(current, current.types[entry]) < 0:
            count += current.copies[entry]
        entry = current.following[entry]
    return count


@kernel
def gather_window(
    current: CurrentClasses,
    labels: Ints,
    neighbours: Ints,
    label: int,
    most_rows: int,
    unplaced: bool,
) -> int:
    """Write a class and its first neighbours that fit; return how many classes that are.

    `current`: the classes. `labels`: (classes,) the window. `neighbours`: (classes, q) of each
    class; -1 for none. `label`: the class in the middle. `most_rows`: rows that the window may
    have. `unplaced`: whether only rows of types without a surplus class are counted.
    """
    labels[0] = label
    count, rows = 1, rows_to_place(current, label, unplaced)
    for at in range(neighbours.shape[1]):
        other = neighbours[label, at]
        if other < 0 or current.sizes[other] == 0 or count == len(labels):
            continue
        if in_window(labels, count, other):
            continue
        more = rows_to_place(current, other, unplaced)
        if rows + more <= most_rows:
            labels[count] = other
            count += 1
            rows += more
    return count


@kernel
def _home(current: CurrentClasses, windows: WindowsWork, classes: int, row_type: int) -> int:
    """Return the surplus class of a type outside the window; -1 if there is none."""
    surplus = find_surplus(current, row_type)
    return -1 if in_window(windows.labels, classes, surplus) else surplus


@kernel
def _list_rows(
    current: CurrentClasses, windows: WindowsWork, classes: int, borrows: bool, most_rows: int
) -> int:
    """Write the rows to place; return how many, -1 if too many.

    With donors these are the rows that no surplus class outside takes.
    """
    count = 0
    for at in range(classes):
        entry = current.head[windows.labels[at]]
        while entry >= 0:
            row_type = current.types[entry]
            if not borrows or _home(current, windows, classes, row_type) < 0:
                if count + current.copies[entry] > most_rows:
                    return -1
                for _ in range(current.copies[entry]):
                    windows.types[count] = row_type
                    count += 1
            entry = current.following[entry]
    return count


@kernel
def _list_donors(
    current: CurrentClasses, windows: WindowsWork, classes: int, lenders: Ints, count: int, k: int
) -> None:
    """Write the types near the window's rows that can spare copies, each once."""
    listed, found = windows.listed, 0
    for at in range(count):
        for candidate in lenders[windows.types[at]]:
            if candidate < 0:
                break
            place = 0
            while place < found and listed.donors.types[place] != candidate:
                place += 1
            if place < found:
                listed.donors.near[place] |= np.int64(1) << at
                continue
            # The donor keeps k rows, and classes of the window itself are about to be dissolved.
            surplus = _home(current, windows, classes, candidate)
            if surplus < 0 or current.sizes[surplus] <= k or found == MOST_DONORS:
                continue
            listed.donors.types[found] = candidate
            listed.donors.near[found] = np.int64(1) << at
            listed.donors.spare[found] = current.sizes[surplus] - k
            listed.donors.surplus_losses[found] = current.losses[surplus]
            found += 1
    listed.size[0], listed.size[1] = count, found


@kernel
def _solve_window(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    windows: WindowsWork,
    near: Near,
    classes: int,
    max_nodes: int,
    borrows: bool,
) -> bool:
    """Rebuild the first so many classes of the window if that gains.

    With donors, copies whose surplus class lies outside go back there, and from such classes others
    are borrowed.
    """
    rows_of = windows.listed.row_types if borrows else windows.regroup.row_types
    count = _list_rows(current, windows, classes, borrows, len(rows_of))
    if count < (1 if borrows else 2 * rules.k):
        return False
    # What the window loses now; `returned` is what copies that go back lose then.
    old, returned, slack = 0.0 if rules.summed else -np.inf, 0.0, 0.0
    for at in range(classes):
        inside = windows.labels[at]
        part = part_of(rules, current.sizes[inside], current.losses[inside])
        old = old + part if rules.summed else max(old, part)
        slack += abs(part)
        entry = current.head[inside]
        while borrows and rules.summed and entry >= 0:
            home = _home(current, windows, classes, current.types[entry])
            if home >= 0:
                returned += current.copies[entry] * current.losses[home]
            entry = current.following[entry]
    wanted = old - returned
    cutoff = wanted - ROUNDING * slack
    # One by one: to assign parts of arrays takes numba two seconds to compile.
    for at in range(count):
        rows_of[at] = windows.types[at]
    if borrows:
        _list_donors(current, windows, classes, near.lenders, count, rules.k)
        new = best_classes(rules, windows.listed, wanted, _MAX_SETS)
        count_steps(work, windows.listed.nodes[0])
    else:
        new = regroup(rules, windows.regroup, count, cutoff, max_nodes)
        # At each node about half of the rows have to be placed, and each looks at the class
        # changed.
        count_steps(work, count * (count + windows.regroup.nodes[0] // 2))
    # Each class looked for its donors by itself: together they may want more than there is.
    if new >= cutoff or (borrows and not read_classes(rules, windows.listed)):
        return False
    for at in range(count):
        windows.groups[at] = windows.listed.group[at] if borrows else windows.regroup.found[at]
        windows.fillers[at] = windows.listed.lender[at] if borrows else -1
    _rebuild(rules, current, work, windows, near.neighbours, classes, count, borrows)
    work.gain[0] += wanted - new
    return True


@kernel
def _rebuild(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    windows: WindowsWork,
    neighbours: Ints,
    classes: int,
    count: int,
    borrows: bool,
) -> None:
    """Make the classes that were found."""
    near = neighbours[windows.labels[0]].copy()
    for at in range(classes):
        inside = windows.labels[at]
        # Surplus classes are looked up before anything moves: an emptied one is none any more.
        show_class(rules, current, work.one, inside)
        for place in range(work.one.totals[0]):
            row_type, copies = work.one.types[place], work.one.copies[place]
            home = _home(current, windows, classes, row_type) if borrows else -1
            remove_copies(current, inside, row_type, copies)
            if home >= 0:
                add_copies(current, home, row_type, copies)
                update_class(rules, current, work.other, home)
        update_class(rules, current, work.other, inside)
    # The window is empty: its rows go into the classes found.
    made = 0
    for at in range(count):
        made = max(made, windows.groups[at] + 1)
    for at in range(made):
        windows.found[at] = open_label(current)
    for at in range(count):
        add_copies(current, windows.found[windows.groups[at]], windows.types[at], 1)
    for at in range(made):
        label, filler = windows.found[at], windows.fillers[at]
        # Borrowed copies fill it up to k rows.
        if filler >= 0:
            missing, surplus = rules.k - current.sizes[label], find_surplus(current, filler)
            remove_copies(current, surplus, filler, missing)
            add_copies(current, label, filler, missing)
            update_class(rules, current, work.other, surplus)
        for place in range(len(near)):  # compiles in less time than the row at once
            neighbours[label, place] = near[place]
        # What took part is among the neighbours under its new number.
        if not borrows:
            neighbours[label, neighbours.shape[1] - 1] = windows.found[(at + 1) % made]
        # The class is new: nothing that was known of its number holds.
        work.checked[label] = windows.checked[label] = windows.borrowed[label] = -1
        update_class(rules, current, work.other, label)


@kernel
def _borrow_around(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    windows: WindowsWork,
    near: Near,
    label: int,
) -> None:
    """Solve the window around a class whose rows may borrow copies, if it may gain."""
    since, known, labels = windows.borrowed[label], windows.known[label], windows.labels
    classes = gather_window(
        current, labels, near.neighbours, label, len(windows.listed.row_types), True
    )
    # A number that hardly any other window around the same class has, in whatever order its classes
    # come: a product would wrap around, as it may.
    total = np.int64(0)
    for at in range(1, classes):
        total += (labels[at] + 1) * (labels[at] + 0x9E3779B1)
    windows.borrowed[label], windows.known[label] = current.cursor[CLOCK], total
    # The window was solved before, and none of its classes changed since.
    if known != total or any_changed(current, labels, classes, since):
        _solve_window(rules, current, work, windows, near, classes, 0, True)


@kernel
def _known(
    current: CurrentClasses, windows: WindowsWork, neighbours: Ints, width: int, classes: int
) -> bool:
    """Return whether a window of two or three was solved around another of its classes before."""
    for one in range(classes):
        inside = windows.labels[one]
        if any_changed(current, windows.labels, classes, windows.checked[inside]):
            continue
        near = 0
        for at in range(width):
            if neighbours[inside, at] != inside and in_window(
                windows.labels, classes, neighbours[inside, at]
            ):
                near += 1
        if near == classes - 1:
            return True
    return False


@kernel
def _improve_around(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    windows: WindowsWork,
    near: Near,
    label: int,
    max_nodes: int,
) -> bool:
    """Solve the windows of a class with one and with two near ones; whether one gained."""
    labels, started = windows.labels, current.cursor[CLOCK]
    neighbours, width = near.neighbours, near.width
    labels[0] = label
    # Windows of two: the class and each of its neighbours.
    for first in range(width):
        labels[1] = neighbours[label, first]
        if labels[1] < 0 or labels[1] == label or current.sizes[labels[1]] == 0:
            continue
        if not _known(current, windows, neighbours, width, 2) and _solve_window(
            rules, current, work, windows, near, 2, max_nodes, False
        ):
            return True
    # Windows of three: it and each pair of neighbours. A gain changes the class, so its caller
    # begins again.
    for first in range(width):
        labels[1] = neighbours[label, first]
        if labels[1] < 0 or labels[1] == label or current.sizes[labels[1]] == 0:
            continue
        for second in range(first):
            labels[2] = neighbours[label, second]
            if labels[2] < 0 or current.sizes[labels[2]] == 0 or in_window(labels, 2, labels[2]):
                continue
            if not _known(current, windows, neighbours, width, 3) and _solve_window(
                rules, current, work, windows, near, 3, max_nodes, False
            ):
                return True
    # The widest window last: the class with as many neighbours as fit; those of two or three have
    # been solved above.
    since = windows.checked[label]
    windows.checked[label] = started
    most = len(windows.regroup.row_types)
    if current.sizes[label] > most:
        return False
    classes = gather_window(current, labels, neighbours, label, most, False)
    if classes in (2, 3) or not any_changed(current, labels, classes, since):
        return False
    return _solve_window(rules, current, work, windows, near, classes, max_nodes, False)


@kernel
def is_mixed(current: CurrentClasses, label: int) -> bool:
    """Return whether a class is there and has rows of several types."""
    return bool(current.sizes[label] > 0 and current.following[current.head[label]] >= 0)


@kernel
def windows_step(
    rules: ClassRules,
    current: CurrentClasses,
    work: MoveWork,
    windows: WindowsWork,
    near: Near,
    max_nodes: int,
    borrows: bool,
    cursor: Ints,
    amount: int,
) -> int:
    """Solve the windows around the next `amount` classes of several types; return how many."""
    last = min(cursor[0] + amount, current.cursor[CLASSES])
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        label = cursor[0]
        cursor[0] += 1
        if borrows and is_mixed(current, label):
            _borrow_around(rules, current, work, windows, near, label)
        while not borrows and work.steps[0] < work.steps[1] and is_mixed(current, label):
            if not _improve_around(rules, current, work, windows, near, label, max_nodes):
                break
    return int(cursor[0])
