"""How much local search does at each effort, in steps of its kernels and never by the clock.

A step is the loss of one attribute of one class worked out once, some nanoseconds. What a run does
depends on the effort only by when it stops: a higher effort begins with all that a lower one does,
so that it never ends above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

#: Steps that efforts take a share of: for any table, and for each record up to a number.
_STEPS, _STEPS_A_RECORD, _MANY = 300_000_000, 36_000, 150_000
#: So many fewer for each record beyond, since steps take longer where less of the table is in the
#: processor's cache (8 ns with 200,000 records, 19 ns with a million), and the start takes 21 s.
_STEPS_LESS = 4_600


class WorkLimits(NamedTuple):
    """What ends the search.

    Parameters
    ----------
    share
        Steps, as a multiple of those above.
    idle
        A round that gains less than this share of the loss is idle.
    """

    share: float
    idle: float


#: Of each effort. The steps that `normal` leaves out gain 0.5 % on Adult with k = 5, in a third of
#: the time.
LIMITS: Mapping[str, WorkLimits] = MappingProxyType(
    {
        "quick": WorkLimits(0.2, 1e-3),
        "normal": WorkLimits(0.7, 1e-3),
        "thorough": WorkLimits(60.0, 2e-4),
    }
)


def most_steps(effort: str, n: int) -> int:
    """Return the steps that the search of n records may take."""
    few = min(n, _MANY)
    steps = few * _STEPS_A_RECORD - (n - few) * _STEPS_LESS
    return int(LIMITS[effort].share * (_STEPS + max(0, steps)))
