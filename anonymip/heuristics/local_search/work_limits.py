"""How much local search does at each effort, in steps of its kernels and never by the clock.

A step is the loss of one attribute of one class worked out once, some nanoseconds. What a run does
depends on the effort only by when it stops: a higher effort begins with all that a lower one does,
so that it never ends above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

#: Steps of `normal`: for any table, and for each record up to a number, and beyond it.
_STEPS, _STEPS_A_RECORD, _MANY, _STEPS_BEYOND = 300_000_000, 36_000, 150_000, 2_500


class WorkLimits(NamedTuple):
    """What ends the search.

    Parameters
    ----------
    share
        Steps, as a multiple of those of `normal`.
    idle
        A round that gains less than this share of the loss is idle.
    """

    share: float
    idle: float


#: Of each effort.
LIMITS: Mapping[str, WorkLimits] = MappingProxyType(
    {
        "quick": WorkLimits(0.2, 1e-3),
        "normal": WorkLimits(1.0, 1e-3),
        "thorough": WorkLimits(60.0, 2e-4),
    }
)


def most_steps(effort: str, n: int) -> int:
    """Return the steps that the search of n records may take."""
    few = min(n, _MANY)
    steps = _STEPS + few * _STEPS_A_RECORD + (n - few) * _STEPS_BEYOND
    return int(LIMITS[effort].share * steps)
