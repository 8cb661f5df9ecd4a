"""Workspace of the moves between classes, and what counts as a gain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.heuristics.local_search.pool import ClassView, PoolRules, new_view
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Gains below this share of the losses that they are differences of are rounding.
ROUNDING = 1e-10
#: Where the largest loss counts, gains of all others together weigh so much.
_LESSER = 1e-6


class MoveWork(Packed):
    """Workspace of the moves.

    Parameters
    ----------
    one, other
        Views of two classes.
    relief
        (2, entries) what each class could lose less, at best, without a copy of each type.
    order, keys, ends
        Of a class that is split: its rows sorted, what by, the losses of its ends.
    checked
        (classes,) clock at which a class was last compared with its neighbours.
    gain
        (1,) gained so far.
    steps
        (2,) losses of an attribute worked out so far, and how many may be.
    """

    one: ClassView
    other: ClassView
    relief: NDArray[np.float64]
    order: NDArray[np.int64]
    keys: NDArray[np.float64]
    ends: NDArray[np.float64]
    checked: NDArray[np.int64]
    gain: NDArray[np.float64]
    steps: NDArray[np.int64]


def new_move_work(tables: LossTables, rules: PoolRules, entries: int, classes: int) -> MoveWork:
    """Return the workspace for classes of up to so many rows, and so many classes."""
    return MoveWork(
        new_view(tables, rules, 2 * entries),
        new_view(tables, rules, 2 * entries),
        np.zeros((2, 2 * entries)),
        np.zeros(entries, np.int64),
        np.zeros(entries),
        np.zeros(entries + 1),
        np.full(classes, -1, np.int64),
        np.zeros(1),
        np.array([0, np.iinfo(np.int64).max]),
    )


@kernel
def count_steps(work: MoveWork, losses: int) -> None:
    """Count losses of whole classes that were worked out."""
    view = work.one
    work.steps[0] += losses * (len(view.low) + len(view.distinct) + len(view.pair_low))


@kernel
def gain_of(
    rules: PoolRules, old_one: float, old_other: float, new_one: float, new_other: float
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
