"""Domains of the attributes, known without the records: names, kinds, domains, weights."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, cast

import numpy as np

from anonymip.errors import InputError
from anonymip.instances.hierarchies.tree import Tree
from anonymip.instances.microdata import Microdata
from anonymip.instances.scale import Unit, unit_text
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.tolerances import OPTIMALITY_RELATIVE

#: Half widths between which a domain's width and its inverse are ordinary doubles.
_NARROWEST, _WIDEST = 1e-300, 1e300
#: What lies nearer to each other, as a share of the domain, has losses that underflow: they keep
#: less than the digits of a double, or none.
_NEAREST = 1e-290
_MOST_WHOLE = 2**53  # beyond so many, doubles do not distinguish one whole number from the next
_MANY_YEARS = 10  # years of dates from which on their domain is rounded to decades


@dataclass(frozen=True, eq=False)
class Domains:
    """Per attribute, in order."""

    #: (m,) texts, as in :class:`~anonymip.instances.attribute.Attribute`.
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    publish: tuple[str, ...]
    #: (m,) float64, ends of numeric domains, NaN for other kinds.
    low: Floats
    high: Floats
    size: Ints  # (m,) int64, permissible values: declared, else observed
    weight: Floats  # (m,) float64
    integer: Flags  # (m,) bool
    trees: tuple[Tree | None, ...]  # (m,) hierarchies, None where the attribute has none
    #: (m,) float64, what losses count the ends of ranges from: the lower end of the domain, or 0
    #: where values less that would not lie as far apart; NaN for other kinds.
    origin: Floats
    #: (m,) float64, what stands for missing numbers as the upper end of a range; infinite where
    #: none is missing.
    beyond: Floats

    @classmethod
    def of(cls, microdata: Microdata) -> Domains:
        """Return the domains of a table, refused where losses would be lost in rounding."""
        given = microdata.attributes
        ends = np.array(
            [
                microdata.domain_bounds(a) if attribute.is_numeric else (np.nan, np.nan)
                for a, attribute in enumerate(given)
            ]
        )
        columns = [*zip(given, microdata.levels, ends.tolist(), strict=True)]
        for one, levels, (low, high) in columns:
            if low < high and not _NARROWEST < high / 2 - low / 2 < _WIDEST:
                raise InputError(
                    f"the domain of column {one.name!r} is too wide or too narrow to scale by",
                    remedy="Change the unit of the column, or declare another domain",
                )
            gap = np.diff(levels.astype(np.float64)).min(initial=np.inf) if low < high else np.inf
            if gap < _NEAREST * (high - low):
                raise InputError(
                    f"column {one.name!r} holds values that lie too near to each other to be told "
                    "apart beside its domain",
                    remedy="Round them, or declare a narrower domain",
                )
            if one.is_whole and high - low > _MOST_WHOLE:
                raise InputError(
                    f"column {one.name!r} is of whole numbers, and its domain holds more of "
                    "them than can be distinguished",
                    remedy="Change its unit, or declare integer = false",
                )
        return cls(
            microdata.names,
            tuple(one.generalized for one in given),
            tuple(str(attribute.publish) for attribute in given),
            ends[:, 0],
            ends[:, 1],
            np.array([microdata.domain_size(a) for a in range(len(given))], np.int64),
            np.array([attribute.weight for attribute in given]),
            np.array([attribute.is_whole for attribute in given]),
            tuple(a.hierarchy.tree if a.hierarchy is not None else None for a in given),
            np.array(
                [
                    _origin(levels.astype(np.float64), low) if attribute.is_numeric else np.nan
                    for attribute, levels, (low, _) in columns
                ]
            ),
            microdata.beyond,
        )

    @property
    def m(self) -> int:
        """Number of attributes."""
        return len(self.names)


def _origin(levels: Floats, low: float) -> float:
    """Return the lower end of a domain if values keep their distances without it, else 0."""
    apart = np.diff(levels)
    kept = np.abs(np.diff(levels - low) - apart) <= OPTIMALITY_RELATIVE * apart
    return low if kept.all() else 0.0


def rounded_domain(data: Microdata) -> dict[str, Any]:
    """Return what a schema declares of the domain of a table's one column, rounded outwards.

    Numbers are rounded to the highest power of ten within their width, whole ones to tens at least;
    dates to years, or decades where these are many. Nothing is returned of other columns, and of
    those with a single value.
    """
    attribute = data.attributes[0]
    if not attribute.is_numeric or len(data.levels[0]) < 2:
        return {}
    if attribute.kind == "date":
        unit = cast(Unit, attribute.scale.precision)
        years = [int(unit_text(int(end), unit)[:4]) for end in data.domain_bounds(0)]
        step = 1 if years[1] - years[0] <= _MANY_YEARS else 10
        low, high = years[0] // step * step, years[1] // step * step + step - 1
        return {"domain": [f"{max(low, 1):04}-01-01", f"{high:04}-12-31"]}
    ends = [Decimal(repr(end)) for end in data.domain_bounds(0)]
    # Whole numbers that lie near to each other would not be rounded at all.
    digits = (ends[1] - ends[0]).adjusted()
    digits = max(digits, 1) if attribute.integer else digits
    power = Decimal(1).scaleb(digits)
    rounded = [
        float((end / power).to_integral_value(way) * power)
        for end, way in zip(ends, (ROUND_FLOOR, ROUND_CEILING), strict=True)
    ]
    return {"domain": [int(end) if end.is_integer() else end for end in rounded]}
