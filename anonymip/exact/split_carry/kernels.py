"""Split & Carry as one compiled loop: fill a window, solve it, fix classes, carry the rest over."""

from __future__ import annotations

from typing import NamedTuple

from anonymip.assignments import SUPPRESSED
from anonymip.exact.classes.best_classes import PROVEN as SOLVED
from anonymip.exact.classes.best_classes import labelled_loss, solve_rows
from anonymip.exact.classes.set_search import SmallRules, SmallWork
from anonymip.exact.split_carry.carrying import CarryRule, Outcome, divide_window
from anonymip.exact.split_carry.state import (
    BOUND,
    CARRIED,
    FROM_BEFORE,
    LINKS,
    LOSS,
    NEXT_LABEL,
    NO_START,
    OBJECTIVE,
    OPEN,
    PROVEN,
    READ,
    SIZE,
    START,
    Chain,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    open_class,
    record_loss,
)
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.kernels import kernel


class Plan(NamedTuple):
    """How windows are filled.

    `k`: least rows of a class. Fewer rows than k at the end belong to the window before. `new`: new
    rows of a window. `rows`: 0, or rows of a window: as many new ones as fill it up.
    """

    k: int
    new: int
    rows: int


@kernel
def window_size(plan: Plan, chain: Chain, chunks: int) -> int:
    """Return the number of rows of the next window if it takes in so many chunks of new rows."""
    carried: int = chain.cursor[CARRIED]
    unread: int = len(chain.records) - chain.cursor[READ]
    new = plan.new
    if plan.rows > 0:
        new = max(plan.k, plan.rows - carried)
    new = min(unread, new + (chunks - 1) * plan.new)
    if unread - new < plan.k:
        new = unread
    return carried + new


@kernel
def fill_window(chain: Chain, size: int, places: Ints) -> None:
    """Write the places of a window of so many rows: those carried over, then new ones."""
    carried = chain.cursor[CARRIED]
    for at in range(carried):
        places[at] = chain.carried[at]
    for at in range(carried, size):
        places[at] = chain.cursor[READ] + at - carried


@kernel
def move_on(chain: Chain, size: int, places: Ints, outcome: Outcome) -> None:
    """Label the fixed rows of a window and carry the others over."""
    fixed, joint, number = outcome.fixed, outcome.joint, outcome.marks
    read = chain.cursor[READ] + size - chain.cursor[CARRIED]
    # A class gets the chain's next label at its first fixed row; suppressed rows are fixed as such.
    number[:size] = -1
    for at in range(size):
        label = fixed[at]
        if label >= 0:
            if number[label] < 0:
                number[label] = chain.cursor[NEXT_LABEL]
                chain.cursor[NEXT_LABEL] += 1
            chain.labels[places[at]] = number[label]
        elif label == SUPPRESSED:
            chain.labels[places[at]] = SUPPRESSED
    # Rows carried over keep their order, oldest first, and are numbered by class among themselves.
    number[:size] = -1
    carried, classes = 0, 0
    for at in range(size):
        if fixed[at] != OPEN:
            continue
        chain.carried[carried] = places[at]
        chain.started[carried] = SUPPRESSED
        if joint[at] >= 0:
            if number[joint[at]] < 0:
                number[joint[at]] = classes
                classes += 1
            chain.started[carried] = number[joint[at]]
        carried += 1
    chain.cursor[CARRIED] = carried
    chain.cursor[READ] = read


#: What a step ends with: its work is done, or the next window needs another solver.
ADVANCED, STUCK = 0, 1


@kernel
def advance_links(
    rules: SmallRules,
    work: SmallWork,
    state: ClassState,
    rule: CarryRule,
    plan: Plan,
    chain: Chain,
    outcome: Outcome,
    places: Ints,
    max_nodes: int,
    amount: int,
) -> int:
    """Solve up to `amount` links; stop in front of a window that is not solved within max_nodes."""
    n = len(chain.records)
    for _ in range(amount):
        # Here all links so far are in the table, and all their rows are fixed or carried over; a
        # step that ends here leaves the chain as the next one needs it.
        carried = chain.cursor[CARRIED]
        size = window_size(plan, chain, 1)
        if size == 0:
            break
        # Too large a window, or one that the search does not prove, is left to another engine.
        if size > len(places):
            return STUCK
        fill_window(chain, size, places)
        if solve_rows(rules, work, places, size, max_nodes) != SOLVED:
            return STUCK
        # The last window fixes everything, so nobody asks what its classes lose.
        last = places[size - 1] == n - 1
        if (rule.least or rule.cheapest) and not last:
            fill_losses(rules.rows, state, rule, places, size, work.labels, outcome.losses)
        divide_window(rule, places, size, work.labels, last, outcome)
        # The link's objective is that of all its rows; the chain sums up what is fixed alone.
        link = chain.table[chain.cursor[LINKS]]
        link[SIZE], link[FROM_BEFORE], link[START] = size, carried, NO_START
        link[OBJECTIVE], link[BOUND], link[PROVEN] = work.result[0], work.result[1], 1.0
        chain.cursor[LINKS] += 1
        loss = labelled_loss(rules.rows, state, rules.summed, places, size, outcome.fixed)
        if rules.summed:
            chain.sums[LOSS] += loss
        else:
            chain.sums[LOSS] = max(chain.sums[LOSS], loss)
        move_on(chain, size, places, outcome)
    return ADVANCED


@kernel
def fill_losses(
    rows: KernelRows,
    state: ClassState,
    rule: CarryRule,
    places: Ints,
    size: int,
    labels: Ints,
    losses: Floats,
) -> None:
    """Write what the carry rule asks for: record losses of the classes, whole or without a row."""
    for at in range(size):
        if labels[at] < 0:
            continue
        members = 0
        for other in range(size):
            if labels[other] != labels[at] or (rule.least and other == at):
                continue
            if members == 0:
                open_class(rows, state, places[other])
            else:
                join_class(rows, state, places[other])
            members += 1
        losses[at] = record_loss(rows.tables, state)
