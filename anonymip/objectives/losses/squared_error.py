"""The sum of squared errors of microaggregation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from anonymip.errors import InputError, UnsupportedObjective
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.protocol import MembersObjective
from anonymip.objectives.language.record import Members
from anonymip.runtime.arrays import Floats


@dataclass(frozen=True)
class SSE(MembersObjective):
    """Squared distances of the members to the mean of their class, summed [1]_.

    Superadditive: the mean of each part fits its members at least as well as the mean of all. Its
    mean per record is not monotone: a record at the centre of a class lowers it.

    Parameters
    ----------
    scale
        ``"deviation"``: every attribute is divided by its standard deviation; ``"domain"``: by the
        width of its domain; ``"none"``: by nothing. A constant attribute costs nothing.

    References
    ----------
    .. [1] J. Domingo-Ferrer, J. M. Mateo-Sanz: Practical data-oriented microaggregation for
       statistical disclosure control, IEEE TKDE 14(1), 2002, doi:10.1109/69.979982.

    Raises
    ------
    InputError
        If there is no such scale.
    """

    scale: str = "deviation"

    superadditive = True
    proof = "the mean of a part minimises the squared errors of its members"

    def __post_init__(self) -> None:
        if self.scale not in ("deviation", "domain", "none"):
            raise InputError(
                f"SSE: unknown scale {self.scale!r}", remedy="Use deviation, domain or none"
            )

    @property
    def name(self) -> str:
        """Name in results."""
        return "sse" if self.scale == "deviation" else f"sse-{self.scale}"

    def class_cost(self, members: Members) -> Any:
        """Return (B,) squared errors; attributes must be numeric."""
        total: Any = 0.0
        for a, attribute in enumerate(members.attributes):
            if members.kind[attribute] != "numeric":
                raise UnsupportedObjective(
                    f"SSE has no mean of {attribute!r}, which is not numeric",
                    remedy="Declare it numeric, or use gcp",
                )
            unit = self._unit(members.microdata, a)
            value = members.value[attribute]
            # From the lowest of the class on, differences are rounded once: a class that is narrow
            # beside the table or beside its values keeps its digits.
            above = (value - value.min(axis=1, keepdims=True)) / unit
            total = total + ((above - above.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
        return total

    def points(self, microdata: Microdata) -> Floats:
        """Return (n, m) records as points; a class costs its squared distances to their mean.

        Coordinates are rounded by up to ``eps`` of the largest, which narrow classes cost less
        than: whoever takes a bound from them has to lower it by that.
        """
        shifted = microdata.values - microdata.values.min(axis=0)
        return np.asarray(shifted / self.units(microdata), np.float64)

    def units(self, microdata: Microdata) -> Floats:
        """Return (m,) what the values of each attribute are divided by."""
        return np.array([self._unit(microdata, a) for a in range(microdata.m)])

    def _unit(self, microdata: Microdata, attribute: int) -> float:
        if self.scale == "deviation":
            unit = _deviations(microdata)[attribute]
        elif self.scale == "domain":
            low, high = microdata.domain_bounds(attribute)
            unit = high - low
        else:
            unit = 1.0
        if unit and not _SMALLEST < unit < _LARGEST:
            raise InputError(
                f"SSE: the values of {microdata.names[attribute]!r} spread by {unit:g}, the square "
                "of which is no number",
                remedy="Give them in another unit",
            )
        return unit or 1.0


#: What values may be divided by; the squares of others are 0 or infinite.
_SMALLEST, _LARGEST = 1e-150, 1e150


#: Of the tables in use: a heuristic asks for the loss of a class some hundred thousand times.
_known: WeakKeyDictionary[Microdata, tuple[float, ...]] = WeakKeyDictionary()


def _deviations(microdata: Microdata) -> tuple[float, ...]:
    """Return the standard deviation of each attribute, worked out once for a table."""
    known = _known.get(microdata)
    if known is None:
        # From the lowest value on: the mean of huge numbers is rounded as they are. Column by
        # column: sums of a whole table at once are rounded otherwise.
        values = microdata.values
        columns = (values[:, a] - values[:, a].min() for a in range(values.shape[1]))
        known = _known[microdata] = tuple(map(_deviation, columns))
    return known


def _deviation(above: Floats) -> float:
    """Return the standard deviation of values from 0 on, however large or small they are."""
    width = above.max()
    if _SMALLEST < width < _LARGEST or not width:
        return float(np.std(above))
    return float(width * np.std(above / width))
