"""Dual values as whole numbers, lowered where they exceed what a set costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from anonymip.certificates.check import Duals, Table
from anonymip.runtime.arrays import Floats

#: Small fractions of the unit are whole numbers of the scale: so duals at vertices are exact.
_PARTS = 2520
#: Bits of a dual of usual size, at least.
_BITS = 46


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
