"""Classes under improvement: how many copies of each row type every class holds.

Identical rows need no distinguishing, and a class of thousands of copies of one row is one entry.
What a class loses when a copy leaves it or joins it is read off a view of the class in time that
does not grow with its size.

One file, since each kernel leaves all arrays of the classes true for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.enumeration.merging import limited_tables
from anonymip.objectives.kernels.class_loss import KernelRows, ends_loss, range_loss
from anonymip.orders.arrangement import in_type_order
from anonymip.problem import Problem
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    diversity_rule,
    forget_row,
    new_counts,
    start_counts,
)
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Places of `CurrentClasses.cursor`: class numbers in use, the first free entry, the clock of
#: changes, copies without a class, classes freed, changes noted.
CLASSES, FREE_ENTRY, CLOCK, SUPPRESSED_COPIES, FREED, NOTED = 0, 1, 2, 3, 4, 5
#: Changes that are noted: copies put into a class, a number taken into use, one freed, another
#: surplus class of a type, a class brought up to date.
_PUT, _OPENED, _FREED, _SURPLUS, UPDATED = 0, 1, 2, 3, 4


class ClassRules(Packed):
    """What classes lose, and what they must keep."""

    rows: KernelRows  # the row types, and the loss
    k: int  # fewest rows of a class
    summed: bool  # whether the losses of the records are summed; else the largest counts
    monotone: bool  # whether a row can only raise the record loss of the class that it joins
    #: Whether classes borrow copies that their own class can spare: a monotone loss, no diversity.
    borrows: bool
    suppression_price: float  # loss of a suppressed record; infinite where none may be
    #: What classes must hold of the sensitive columns; its rows are the types.
    diversity: DiversityRule


class CurrentClasses(Packed):
    """The classes, each a list of entries: a type and how many copies of it."""

    #: (entries,) type, copies, and the next entry of the class; -1 ends a list.
    types: Annotated[Ints, "room"]
    copies: Annotated[Ints, "room"]
    following: Ints
    #: (classes,) first entry, number of rows, record loss. Size 0: a number to be used again.
    head: Annotated[Ints, "numbers", -1]
    sizes: Annotated[Ints, "numbers"]
    losses: Annotated[Floats, "numbers"]
    changed: Annotated[Ints, "numbers", 1]  # clock of the last change
    #: (t,) class that holds copies of the type and nothing else; -1 if there is none.
    surplus: Annotated[Ints, "t", -1]
    suppressed: Ints  # (t,) copies without a class
    freed: Annotated[Ints, "numbers"]  # numbers to be used again
    cursor: Annotated[Ints, "6"]  # see the constants above
    #: What was changed, in order, so that it can be taken back; no places where that is not wanted.
    notes: Annotated[Ints, "0, 4"]
    old_losses: Annotated[Floats, "0"]


class ClassView(Packed):
    """One class laid open: what is published of it if one copy leaves, one joins, or both."""

    #: What it holds.
    types: Annotated[Ints, "entries"]
    copies: Annotated[Ints, "entries"]
    totals: Annotated[Ints, "2"]  # number of entries, of rows
    #: The two lowest and the two highest values, each row counted.
    low: Annotated[Floats, "ranges, 2"]
    high: Annotated[Floats, "ranges, 2"]
    pair_low: Annotated[Ints, "pairs, 2"]
    pair_high: Annotated[Ints, "pairs, 2"]
    #: Rows that hold each level of the set attributes, and where each attribute begins.
    held: Ints
    set_start: Ints
    distinct: Annotated[Ints, "sets"]  # values in each set
    counts: ValueCounts  # of the sensitive values


def new_view(rules: ClassRules, entries: int) -> ClassView:
    """Return a view of no class yet, for classes of up to so many entries."""
    starts = np.concatenate([[0], np.cumsum(rules.rows.tables.set_sizes)]).astype(np.int64)
    ranges, sets, pairs = rules.rows.tables.term_counts
    return ClassView.of_sizes(
        entries=entries,
        ranges=ranges,
        sets=sets,
        pairs=pairs,
        held=np.zeros(int(starts[-1]), np.int64),
        set_start=starts[:-1].copy(),
        counts=new_counts(rules.diversity),
    )


@kernel
def clear_view(rules: ClassRules, view: ClassView) -> None:
    """Make it the view of an empty class."""
    for at in range(view.totals[0]):
        row_type = view.types[at]
        for s in range(len(view.distinct)):
            view.held[view.set_start[s] + rules.rows.set_codes[row_type, s]] = 0
        forget_row(rules.diversity, view.counts, row_type)
    start_counts(view.counts)
    view.totals[0] = 0
    view.totals[1] = 0
    view.low[:] = np.inf
    view.high[:] = -np.inf
    view.pair_low[:] = np.iinfo(np.int64).max
    view.pair_high[:] = -1
    view.distinct[:] = 0


@kernel
def _put_between(low: NDArray[Any], high: NDArray[Any], at: int, value: Any) -> None:
    """Enter a value into the two lowest and the two highest of an attribute."""
    if value < low[at, 0]:
        low[at, 1], low[at, 0] = low[at, 0], value
    elif value < low[at, 1]:
        low[at, 1] = value
    if value > high[at, 0]:
        high[at, 1], high[at, 0] = high[at, 0], value
    elif value > high[at, 1]:
        high[at, 1] = value


@kernel
def put_in_view(rules: ClassRules, view: ClassView, row_type: int, copies: int) -> None:
    """Add an entry to the class in view."""
    at = view.totals[0]
    view.types[at] = row_type
    view.copies[at] = copies
    view.totals[0] += 1
    view.totals[1] += copies
    # The two lowest and the two highest values are kept, each copy counted, so that it is known
    # what the ends are when one copy has left. Further copies change neither.
    twice = min(copies, 2)
    for r in range(len(view.low)):
        for _ in range(twice):
            _put_between(view.low, view.high, r, rules.rows.range_values[row_type, r])
    for p in range(len(view.pair_low)):
        for _ in range(twice):
            _put_between(
                view.pair_low, view.pair_high, p, np.int64(rules.rows.pair_codes[row_type, p])
            )
    # `held` counts copies: a set loses a value only when the last copy with it leaves.
    for s in range(len(view.distinct)):
        place = view.set_start[s] + rules.rows.set_codes[row_type, s]
        if view.held[place] == 0:
            view.distinct[s] += 1
        view.held[place] += copies
    count_in(rules.diversity, view.counts, row_type, copies, 0, 0)


@kernel
def show_class(rules: ClassRules, current: CurrentClasses, view: ClassView, label: int) -> None:
    """Make it the view of a current class."""
    clear_view(rules, view)
    entry = current.head[label]
    while entry >= 0:
        put_in_view(rules, view, current.types[entry], current.copies[entry])
        entry = current.following[entry]


@kernel
def changed_loss(rules: ClassRules, view: ClassView, leaving: int, joining: int) -> float:
    """Return the record loss of the class without a copy of one type and with one of another.

    Either type may be -1: none. Where only a copy leaves, there must be a row left.
    """
    loss = rules.rows.tables.constant
    for r in range(len(view.low)):
        low, high = view.low[r, 0], view.high[r, 0]
        # If the copy that leaves is at an end, the next value is the end; with a second copy there
        # that is the same value.
        if leaving >= 0:
            gone = rules.rows.range_values[leaving, r]
            low = view.low[r, 1] if gone == low else low
            high = view.high[r, 1] if gone == high else high
        if joining >= 0:
            come = rules.rows.range_values[joining, r]
            low, high = min(low, come), max(high, come)
        loss += range_loss(rules.rows.tables, r, low, high)
    for s in range(len(view.distinct)):
        # The set shrinks if the only copy with a value leaves, and grows if a copy brings a value
        # that nobody has once the other one has left.
        count = view.distinct[s]
        gone_code = rules.rows.set_codes[leaving, s] if leaving >= 0 else np.int32(-1)
        if leaving >= 0 and view.held[view.set_start[s] + gone_code] == 1:
            count -= 1
        if joining >= 0:
            code = rules.rows.set_codes[joining, s]
            left = view.held[view.set_start[s] + code] - (1 if code == gone_code else 0)
            count += 1 if left == 0 else 0
        loss += rules.rows.tables.set_losses[rules.rows.tables.set_start[s] + count]
    for p in range(len(view.pair_low)):
        first, last = view.pair_low[p, 0], view.pair_high[p, 0]
        if leaving >= 0:
            gone_rank = rules.rows.pair_codes[leaving, p]
            first = view.pair_low[p, 1] if gone_rank == first else first
            last = view.pair_high[p, 1] if gone_rank == last else last
        if joining >= 0:
            rank = np.int64(rules.rows.pair_codes[joining, p])
            first, last = min(first, rank), max(last, rank)
        loss += ends_loss(rules.rows.tables, p, first, last)
    return loss


@kernel
def part_of(rules: ClassRules, size: int, loss: float) -> float:
    """Return what a class adds to the objective: its rows' losses, or the loss of one of them."""
    return size * loss if rules.summed else loss


@kernel
def _note(current: CurrentClasses, what: int, one: int, other: int, third: int) -> None:
    """Note a change, as long as there is room."""
    at = current.cursor[NOTED]
    if at >= len(current.notes):
        return
    current.notes[at, 0], current.notes[at, 1] = what, one
    current.notes[at, 2], current.notes[at, 3] = other, third
    current.cursor[NOTED] += 1


@kernel
def take_back_changes(current: CurrentClasses) -> None:
    """Take back all changes noted: classes, losses, clocks and free numbers are as they were."""
    while current.cursor[NOTED] > 0:
        noted = current.cursor[NOTED] - 1
        what, one = current.notes[noted, 0], current.notes[noted, 1]
        other, third = current.notes[noted, 2], current.notes[noted, 3]
        if what == _PUT and third > 0:
            remove_copies(current, one, other, third)
        elif what == _PUT:
            add_copies(current, one, other, -third)
        elif what == _OPENED and other > 0:
            current.freed[current.cursor[FREED]] = one
            current.cursor[FREED] += 1
        elif what == _OPENED:
            current.cursor[CLASSES] -= 1
        elif what == _FREED:
            current.cursor[FREED] -= 1
        elif what == _SURPLUS:
            current.surplus[one] = other
        else:
            current.changed[one] = other
            current.losses[one] = current.old_losses[noted]
        # What taking it back has noted itself is forgotten with it.
        current.cursor[NOTED] = noted


@kernel
def add_copies(current: CurrentClasses, label: int, row_type: int, copies: int) -> None:
    """Put copies of a type into a class; :func:`update_class` is to follow."""
    _note(current, _PUT, label, row_type, copies)
    current.sizes[label] += copies
    entry = current.head[label]
    while entry >= 0:
        if current.types[entry] == row_type:
            current.copies[entry] += copies
            return
        entry = current.following[entry]
    entry = current.cursor[FREE_ENTRY]
    current.cursor[FREE_ENTRY] = current.following[entry]
    current.types[entry] = row_type
    current.copies[entry] = copies
    current.following[entry] = current.head[label]
    current.head[label] = entry


@kernel
def remove_copies(current: CurrentClasses, label: int, row_type: int, copies: int) -> None:
    """Take copies of a type out of a class; :func:`update_class` is to follow."""
    _note(current, _PUT, label, row_type, -copies)
    current.sizes[label] -= copies
    before, entry = -1, current.head[label]
    while current.types[entry] != row_type:
        before, entry = entry, current.following[entry]
    current.copies[entry] -= copies
    if current.copies[entry] > 0:
        return
    if before < 0:
        current.head[label] = current.following[entry]
    else:
        current.following[before] = current.following[entry]
    current.following[entry] = current.cursor[FREE_ENTRY]
    current.cursor[FREE_ENTRY] = entry


@kernel
def open_label(current: CurrentClasses) -> int:
    """Return the number of a new, empty class."""
    freed = current.cursor[FREED]
    if freed > 0:
        current.cursor[FREED] -= 1
        label = current.freed[current.cursor[FREED]]
    else:
        label = current.cursor[CLASSES]
        current.cursor[CLASSES] += 1
    _note(current, _OPENED, label, freed, 0)
    current.head[label] = -1
    current.sizes[label] = 0
    current.losses[label] = 0.0
    return int(label)


@kernel
def _stamp(current: CurrentClasses, label: int) -> None:
    """Let the clock say when a class was changed."""
    if current.cursor[NOTED] < len(current.notes):
        current.old_losses[current.cursor[NOTED]] = current.losses[label]
    _note(current, UPDATED, label, current.changed[label], current.cursor[CLOCK])
    current.changed[label] = current.cursor[CLOCK]


@kernel
def _free(current: CurrentClasses, label: int) -> None:
    """Let the number of an empty class be used again."""
    _note(current, _FREED, label, 0, 0)
    current.freed[current.cursor[FREED]] = label
    current.cursor[FREED] += 1


@kernel
def update_class(rules: ClassRules, current: CurrentClasses, view: ClassView, label: int) -> None:
    """Bring loss, clock and surplus classes up to date after a class changed; `view` shows it then.

    A class of one type joins the other one of that type: it is worth more together, since all
    copies beyond k can be borrowed.
    """
    current.cursor[CLOCK] += 1
    _stamp(current, label)
    entry = current.head[label]
    if entry < 0:
        _free(current, label)
        clear_view(rules, view)
        return
    row_type = current.types[entry]
    if rules.borrows and current.following[entry] < 0:
        surplus = find_surplus(current, row_type)
        if surplus >= 0 and surplus != label:
            copies = current.copies[entry]
            remove_copies(current, label, row_type, copies)
            _free(current, label)
            add_copies(current, surplus, row_type, copies)
            _stamp(current, surplus)
            label = surplus
        else:
            _note(current, _SURPLUS, row_type, current.surplus[row_type], 0)
            current.surplus[row_type] = label
    show_class(rules, current, view, label)
    current.losses[label] = changed_loss(rules, view, -1, -1)


@kernel
def find_surplus(current: CurrentClasses, row_type: int) -> int:
    """Return the class that holds copies of a type and nothing else; -1 if there is none."""
    label = current.surplus[row_type]
    if label < 0 or current.sizes[label] <= 0:
        return -1
    entry = current.head[label]
    alone = entry >= 0 and current.types[entry] == row_type and current.following[entry] < 0
    return label if alone else -1


#: Class numbers beyond the most classes that there can be.
_SPARE_LABELS = 64


@dataclass(frozen=True, eq=False)
class CurrentRelease:
    """A release as the kernels improve it.

    `rules`: what classes lose, and must keep. `current`: the classes.
    `records`: (n,) records, type by type. `first`: (t + 1,) where each type begins in them.
    """

    rules: ClassRules
    current: CurrentClasses
    records: Ints
    first: Ints

    @property
    def types(self) -> int:
        """Number of row types."""
        return len(self.first) - 1

    @classmethod
    def of(cls, problem: Problem, labels: NDArray[np.integer]) -> CurrentRelease:
        """Return the classes of the labels; classes of copies of one row are put together.

        Complexity: O(n log n).
        """
        records, row_types = in_type_order(problem, np.arange(problem.n))
        types = int(row_types[-1]) + 1
        first = np.searchsorted(row_types, np.arange(types + 1))
        compiled, rows = problem.compiled, records[first[:-1]]
        may_suppress = problem.may_suppress
        rules = ClassRules(
            limited_tables(problem, rows),
            problem.k,
            compiled.aggregate == "sum",
            compiled.monotone,
            compiled.monotone and problem.diversity is None,
            float(compiled.suppression_price) if may_suppress else np.inf,
            diversity_rule(problem.diversity, problem.microdata).of_rows(rows),
        )
        own = np.asarray(labels, np.int64)[records]
        kept = own != SUPPRESSED
        suppressed = np.bincount(row_types[~kept], minlength=types).astype(np.int64)
        held, label, copies = _entries(own[kept], row_types[kept], types)
        if rules.borrows:
            # One class for all classes of copies of one row.
            alone = np.bincount(label)[label] == 1
            _, ahead, same = np.unique(held[alone], return_index=True, return_inverse=True)
            label[alone] = label[alone][ahead][same.ravel()]
            held, label, copies = _entries(np.repeat(label, copies), np.repeat(held, copies), types)
        current = _filled_lists(problem, held, label, copies, suppressed)
        view = new_view(rules, types)
        _update_all(rules, current, view)
        return cls(rules, current, records, first)

    def labels(self) -> Ints:
        """Return (n,) labels of the records as the classes are now."""
        labels = np.full(len(self.records), SUPPRESSED, np.int64)
        _write_labels(self.current, self.records, self.first[:-1].copy(), labels)
        return labels

    def living(self) -> Ints:
        """Return the numbers of the classes that there are."""
        return np.flatnonzero(self.current.sizes[: self.current.cursor[CLASSES]] > 0)


def _entries(labels: Ints, row_types: Ints, types: int) -> tuple[Ints, Ints, Ints]:
    """Return type, label and copies of each entry, class by class; labels 0, 1, ..."""
    dense = np.unique(labels, return_inverse=True)[1].ravel()
    key, copies = np.unique(dense * np.int64(types) + row_types, return_counts=True)
    return key % types, key // types, copies.astype(np.int64)


def _filled_lists(
    problem: Problem, held: Ints, label: Ints, copies: Ints, suppressed: Ints
) -> CurrentClasses:
    entries, count = len(held), int(label[-1]) + 1 if len(label) else 0
    following = np.arange(1, problem.n + 5)
    following[-1] = -1
    following[np.flatnonzero(np.diff(label, append=-1) != 0)] = -1
    current = CurrentClasses.of_sizes(
        numbers=problem.n // problem.k + _SPARE_LABELS,
        room=len(following),
        t=len(suppressed),
        following=following,
        suppressed=suppressed,
    )
    current.types[:entries], current.copies[:entries] = held, copies
    current.head[:count] = np.searchsorted(label, np.arange(count))
    current.sizes[:count] = np.bincount(label, copies, count).astype(np.int64)
    current.cursor[[CLASSES, FREE_ENTRY, CLOCK]] = count, entries, 1
    current.cursor[SUPPRESSED_COPIES] = suppressed.sum()
    return current


@kernel
def _update_all(rules: ClassRules, current: CurrentClasses, view: ClassView) -> None:
    """Compute all losses and find all surplus classes."""
    for label in range(current.cursor[CLASSES]):
        show_class(rules, current, view, label)
        current.losses[label] = changed_loss(rules, view, -1, -1)
        if current.following[current.head[label]] < 0:
            current.surplus[current.types[current.head[label]]] = label


@kernel
def _write_labels(current: CurrentClasses, records: Ints, next_record: Ints, labels: Ints) -> None:
    """Hand out the records of each type to the classes; those left stay as they are."""
    for label in range(current.cursor[CLASSES]):
        entry = current.head[label]
        while entry >= 0:
            row_type = current.types[entry]
            for _ in range(current.copies[entry]):
                labels[records[next_record[row_type]]] = label
                next_record[row_type] += 1
            entry = current.following[entry]
