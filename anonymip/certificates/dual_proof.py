"""Dual values that prove a bound, as methods hand them on and certificates write them down.

A release by classes or covers is a choice of *admissible sets*: each record lies in as many of the
chosen ones as the coverage says. Where no set costs less than its records' duals, nor does their
sum over a release. Certificates round these numbers to whole ones and prove them again; nothing
here is checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from anonymip.certificates.check import Duals, Table
from anonymip.runtime.arrays import Floats, Ints

#: Small fractions of the unit are whole numbers of the scale: so duals at vertices are exact.
_PARTS = 2520
#: Bits of a dual of usual size, at least.
_BITS = 46


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


def finer_scale(unit: int, size: float, records: int) -> int:
    """Return a scale for duals of about some size: a multiple of the unit.

    What the rounding of the duals of so many records takes off is less than a unit.
    """
    scale = unit * _PARTS
    while 0 < Fraction(size) * scale < 2**_BITS or scale < unit * _PARTS * records:
        scale *= 2
    return scale


def whole_duals(
    table: Table,
    duals: Sequence[float] | Floats,
    count: float = 0.0,
    cuts: Sequence[tuple[Sequence[int], int, float]] = (),
    splits: Sequence[float] = (),
) -> dict[str, Any]:
    """Return a node of a certificate with the whole numbers next to duals.

    `table`: gives the scale. `duals`: of the distinct records. `count`: of the number of classes.
    `cuts`: numbers of distinct records, divisor and dual of each. `splits`: duals of the splits
    above the node.
    """

    def whole(number: float) -> int:
        return round(Fraction(float(number)) * table.scale)

    positive = [([int(t) for t in rows], divisor, whole(dual)) for rows, divisor, dual in cuts]
    return {
        "duals": [whole(dual) for dual in duals],
        "count": max(whole(count), 0) if table.classes else 0,
        "cuts": [[*cut] for cut in positive if cut[2] > 0],
        "splits": [max(whole(dual), 0) for dual in splits],
    }


def lowered(
    table: Table, node: dict[str, Any], columns: Mapping[tuple[int, ...], int], splits: Any = ()
) -> dict[str, Any]:
    """Return the node with duals that exceed the cost of none of some sets.

    Of a set that costs too little, the member whose dual counts least is lowered.
    """
    duals = Duals(table, node, splits)
    reduced = {members: duals.reduced(members, cost) for members, cost in columns.items()}
    for members in sorted((m for m in reduced if reduced[m] < 0), key=lambda m: (reduced[m], m)):
        lacking = -duals.reduced(members, columns[members])
        if lacking > 0:
            row = min(members, key=lambda t: (table.counts[t] / members.count(t), t))
            duals.of[row] -= -(-lacking // members.count(row))
    return {**node, "duals": duals.of}
