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

from anonymip.effort import EFFORTS


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
    #: Where the largest loss counts, a class weighs e times as much as one that loses less by this
    #: share of the largest loss: the worst classes are most of what a trial gains.
    steep: float = 0.05
    #: Share of the trials that make one class less. Where all have k rows, moves never do: 100
    #: census records with k = 5 ended at 127.60 for 126.48, which has 19 classes in place of 20.
    fewer: float = 0.05
    #: The same where the largest loss counts: the rows of the worst class may all fit elsewhere.
    fewer_of_largest: float = 0.3
    #: Share of the trials whose classes have less than k rows and borrow the others, where rows
    #: repeat.
    borrowing: float = 0.25
    lenders: int = 4  # row types that may lend copies to a row
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

#: Steps of each effort for each record, and at most.
_STEPS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "quick": (40_000, 400_000_000),
        "normal": (300_000, 1_500_000_000),
        "thorough": (5_000_000, 28_000_000_000),
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
_STEPS_BY_SIZE = 560_000_000_000_000


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
