"""The calendar as a hierarchy: days in months, quarters, years and decades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from anonymip.errors import InputError
from anonymip.instances.hierarchies.hierarchy import Hierarchy
from anonymip.instances.scale import Scale, Unit, units_around

#: Units of a domain: a hundred years have 36,525 days.
_MOST = 1_000_000
_ROOT = "*"


class Calendar(Hierarchy):
    """The hierarchy of dates: from the precision of a column over coarser units to the root."""

    @classmethod
    def of(
        cls,
        scale: Scale,
        ends: tuple[float, float] | None,
        others: Sequence[str] = (),
        *,
        observed: bool = False,
    ) -> Calendar:
        """Return the hierarchy of all units of a domain.

        `scale`: that of the dates. What lies in an open group is one value, right below the root.
        `ends`: numbers of the first and the last unit; None where there are no dates. `others`:
        values that are no dates and lie below the root: what stands for missing ones. `observed`:
        whether the ends are those that a table holds. Raises InputError if the domain has more than
        a million units. Complexity: O(units).
        """
        first, last = (0, -1) if ends is None else map(int, ends)
        if last - first >= _MOST:
            raise InputError(
                f"a domain of dates has more than {_MOST:,} units",
                remedy="Declare a narrower domain, or a coarser precision",
            )
        paths = []
        for number in range(first, last + 1):
            label = scale.text(number, number, str)
            units = units_around(number, cast(Unit, scale.precision))
            paths.append([*(units if label == units[0] else [label] * len(units)), _ROOT])
        depth = max(map(len, paths), default=2) - 1
        return cls([*paths, *([one] * depth + [_ROOT] for one in others)], observed=observed)
