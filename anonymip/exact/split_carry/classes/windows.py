"""The windows of a chain: what the next one holds, and what is carried over from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED
from anonymip.exact.split_carry.classes.carrying import Outcome
from anonymip.exact.split_carry.state import CARRIED, NEXT_LABEL, OPEN, READ, Chain
from anonymip.runtime.kernels import kernel


class Plan(NamedTuple):
    """How windows are filled.

    Parameters
    ----------
    k
        Least rows of a class. Fewer rows than k at the end belong to the window before.
    new
        New rows of a window.
    rows
        0, or rows of a window: as many new ones as fill it up.
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
def fill_window(chain: Chain, size: int, places: NDArray[np.int64]) -> None:
    """Write the places of a window of so many rows: those carried over, then new ones."""
    carried = chain.cursor[CARRIED]
    for at in range(carried):
        places[at] = chain.carried[at]
    for at in range(carried, size):
        places[at] = chain.cursor[READ] + at - carried


@kernel
def move_on(chain: Chain, size: int, places: NDArray[np.int64], outcome: Outcome) -> None:
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
