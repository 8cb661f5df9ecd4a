"""Dual values that prove a bound, as methods hand them on and certificates write them down.

A release by classes or covers is a choice of *admissible sets*: each record lies in as many of the
chosen ones as the coverage says. Where no set costs less than its records' duals, nor does their
sum over a release. Certificates round these numbers and prove them again; nothing here is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anonymip.runtime.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class CutDual:
    """A rank-1 cut with its dual.

    Over the chosen sets, floor(members among the records / divisor) adds up to at most
    floor(coverage * records / divisor).

    `records`: those that are counted, with each all records that are alike. `divisor`: at least 2.
    `dual`: at least 0.
    """

    records: Ints
    divisor: int
    dual: float


@dataclass(frozen=True, eq=False)
class ColumnPool:
    """All admissible sets that a release below a target can consist of.

    `target`: sets whose reduced cost is below the target less the value of the duals are in the
    pool: releases that hold another one lose at least the target. `offsets, records`: (c + 1,)
    where each set begins in the records; of records that are alike any may be named.
    """

    target: float
    offsets: Ints
    records: Ints

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class DualProof:
    """Duals under which no admissible set has a negative reduced cost, up to rounding.

    The reduced cost of a set is its cost less the duals of its members, plus for every cut its
    dual times floor(members among its records / divisor), plus the dual of the number of sets.
    """

    duals: Floats  # (n,) of the records; alike records have equal ones
    #: Records of an admissible set.
    smallest: int
    largest: int
    #: What a set costs: ``"size"``, its record loss once for every member (classes), or ``"one"``,
    #: once (covers).
    weight: Literal["size", "one"]
    coverage: int  # how many of the chosen sets each record lies in
    count_dual: float = 0.0  # of there being at most `count_limit` sets; at least 0
    count_limit: int | None = None  # None where nothing is known
    cuts: tuple[CutDual, ...] = ()  # with their duals
    #: Where the bound is more than the value of the duals: the sets that are left, over which an
    #: integer program was solved. Otherwise None.
    pool: ColumnPool | None = None

    @property
    def value(self) -> float:
        """What the duals bound every release by, up to rounding."""
        value = self.coverage * float(self.duals.sum())
        for cut in self.cuts:
            value -= cut.dual * (self.coverage * len(cut.records) // cut.divisor)
        return value - self.count_dual * (self.count_limit or 0)
