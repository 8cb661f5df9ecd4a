"""Simulated annealing of classes: moves and swaps of single rows that may lose a little.

A row and one of its nearest rows are drawn. If these lie in different classes, the row moves to the
other class, or changes places with a row there: the best of these if it loses less than was drawn,
which falls to nearly nothing in the course of the work. A trial of
:mod:`~anonymip.heuristics.local_search.iterated` changes some classes at once; here as many rows
change by themselves as there is work for. Each finds what the other does not, and so they take
turns: 20,640 houses with k = 10 come to 6347 in place of 6477 by trials alone, in the same time;
30,162 records of Adult with k = 5, where few changes of one row gain, to 3689 and 3695.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.spatial import cKDTree

from anonymip.heuristics.local_search.current_classes import changed_loss, part_of, show_class
from anonymip.heuristics.local_search.moves import MoveWork, exchange
from anonymip.recodings.rules.diversity_counts import stays_diverse
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


@dataclass(frozen=True)
class AnnealingNumbers:
    """The numbers that steer annealing, by runs on eleven tables of 2,000 to 73,000 rows."""

    #: What two classes may lose by a change at first and at last, about, as a share of what one of
    #: their records loses. Of seven tables 0.3 and 0.06 were best for k = 2, 3 and 20, 0.5 and 0.1
    #: for k = 5 and 10, but for houses with k = 10, which gain 0.1 % more with 0.8; others lose up
    #: to 1.4 % by that. Shares of what the classes lose together are too hot for k = 10, shares of
    #: the mean loss of all for tables whose losses differ much, as those of Adult.
    hot: float = 0.4
    cold: float = 0.08
    #: Nearest rows of a row, of which one is drawn: 4 or 15 came to as much.
    near: int = 7
    #: Steps, which count the losses of an attribute, that one here takes in time: views of classes
    #: are laid open for few of them.
    weight: int = 3
    #: With fewer steps for each row nothing is annealed: to find the nearest takes 2,000.
    least: int = 5_000
    #: Share of the steps of a cycle that are not left for trials. Chosen with another temperature:
    #: 20,640 houses with k = 10 came to 6352 with a half, 6344 with 0.7 and 6331 with 0.85, Adult
    #: with k = 5 to 3702, 3699 with 0.7, and 3695 without annealing.
    share: float = 0.7
    #: Share of these that changes have at most; the moves that follow have the others.
    changes: float = 0.95
    #: Pairs of rows that are drawn at a time, which bounds the memory.
    pairs: int = 50_000


ANNEALING = AnnealingNumbers()
_WEIGHT = ANNEALING.weight


class AnnealingWork(Packed):
    """What is drawn, and where the rows are."""

    near: Codes  # (t, q) types near each
    home: Ints  # (t,) the class that a copy of each type was put into last; -1 for none
    draws: Floats  # (pairs, 4) the row, the near one, what may be lost, where to begin
    made: Annotated[Ints, "1"]  # changes made


def near_types(points: Floats) -> Codes:
    """Return (t, q) the types nearest to each of (t, d) points, without itself."""
    t = len(points)
    q = min(ANNEALING.near, t - 1)
    # Cut at the middle and not at the median: 73,000 points in 54 dimensions took 3 s for 28.
    tree = cKDTree(points, balanced_tree=False, compact_nodes=False)
    found = tree.query(points, k=q + 1, p=1)[1].reshape(t, q + 1)
    own = found == np.arange(t)[:, None]
    # Beyond some twins it may not be among its own neighbours.
    own[~own.any(axis=1), -1] = True
    return np.ascontiguousarray(found[~own].reshape(t, q), dtype=np.int32)


@kernel
def _better_change(work: MoveWork, first: int, begin: int, allowed: float) -> tuple[bool, int]:
    """Return whether a type of the first class in view changes, and what it is swapped for.

    With -1 it only moves. The two classes lose less than is `allowed` after it, and least. Of equal
    ones the first counts, from the place `begin` in the second class on. Complexity: O(s m) for s
    types there.
    """
    rules, one, other, asked = work.rules, work.one, work.other, work.rules.diversity
    size, other_size, others = one.totals[1], other.totals[1], other.totals[0]
    found, second, losses = False, -1, 0
    if size > rules.k:
        new = part_of(rules, size - 1, changed_loss(rules, one, first, -1))
        new += part_of(rules, other_size + 1, changed_loss(rules, other, -1, first))
        losses += 2
        if (
            new < allowed
            and stays_diverse(asked, one.counts, size, first, -1)
            and stays_diverse(asked, other.counts, other_size, -1, first)
        ):
            found, allowed = True, new
    for turn in range(others):
        at = begin + turn
        partner = other.types[at if at < others else at - others]
        if partner == first:
            continue
        new = part_of(rules, size, changed_loss(rules, one, first, partner))
        losses += 1
        if new < allowed:
            new += part_of(rules, other_size, changed_loss(rules, other, partner, first))
            losses += 1
            if (
                new < allowed
                and stays_diverse(asked, one.counts, size, first, partner)
                and stays_diverse(asked, other.counts, other_size, partner, first)
            ):
                found, second, allowed = True, partner, new
    losses += one.totals[0] + others
    work.steps[0] += _WEIGHT * losses * (len(one.low) + len(one.distinct) + len(one.pair_low))
    return found, second


@kernel
def anneal_step(
    work: MoveWork,
    annealing: AnnealingWork,
    widest: int,
    heat: tuple[float, float],
    cursor: Ints,
    amount: int,
) -> int:
    """Look at the next `amount` pairs of rows; return how many have been looked at.

    `widest`: rows of the classes that are changed, at most; of copies of one type any number.
    `heat`: what a change may lose at first and at last, as a share of what a record loses.
    """
    rules, current, home = work.rules, work.current, annealing.home
    draws, types = annealing.draws, len(home)
    last, cooling = min(cursor[0] + amount, len(draws)), np.log(heat[1] / heat[0])
    while cursor[0] < last and work.steps[0] < work.steps[1]:
        at = cursor[0]
        cursor[0] += 1
        work.steps[0] += _WEIGHT
        first = int(draws[at, 0] * types)
        near = annealing.near[first, int(draws[at, 1] * annealing.near.shape[1])]
        one, other = home[first], home[near]
        if one == other or one < 0 or other < 0:
            continue
        changes = True
        for label in (one, other):
            head = current.head[label]
            mixed = head >= 0 and current.following[head] >= 0
            size = current.sizes[label]
            changes = changes and size > 0 and not (mixed and size > widest)
        if not changes:
            continue
        show_class(rules, current, work.one, one)
        show_class(rules, current, work.other, other)
        # Of a type with copies in several classes, this one may have none left.
        held = False
        for place in range(work.one.totals[0]):
            held = held or work.one.types[place] == first
        if not held:
            continue
        old = part_of(rules, current.sizes[one], current.losses[one])
        old += part_of(rules, current.sizes[other], current.losses[other])
        share = heat[0] * np.exp(cooling * work.steps[0] / work.steps[1])
        mean = abs(old) / (current.sizes[one] + current.sizes[other])
        # The logarithm of a draw lies below 0.
        allowed = old - share * mean * np.log(draws[at, 2])
        begin = int(draws[at, 3] * work.other.totals[0])
        found, second = _better_change(work, first, begin, allowed)
        if not found:
            continue
        annealing.made[0] += 1
        exchange(work, one, other, first, second)
        # A class of copies of one type may have joined the other one of that type.
        home[first] = other if current.sizes[other] > 0 else current.surplus[first]
        if second >= 0:
            home[second] = one if current.sizes[one] > 0 else current.surplus[second]
    return int(cursor[0])
