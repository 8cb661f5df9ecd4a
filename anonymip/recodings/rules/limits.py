"""Limits of generalization: caps on single attributes, and values that must stay apart.

All are anti-monotone: what they forbid stays forbidden when a class grows. The bound of 2k - 1
records a class therefore stands under them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from anonymip.assignments import CellSets, Description
from anonymip.errors import InputError, InvalidAssignment, argument, is_number
from anonymip.instances.columns import unknown_column
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.record import CellBatch, cells_of, cells_of_sets
from anonymip.runtime.arrays import Flags, Ints
from anonymip.tolerances import LOSS_RELATIVE


@dataclass(frozen=True)
class Cap:
    """No published cell of an attribute covers more than this.

    Parameters
    ----------
    attribute
        Name of the quasi-identifier.
    most
        Numeric ranges: upper minus lower end, in the unit of the attribute; sets: number of
        values; nodes of a hierarchy: their level.

    Raises
    ------
    InputError
        If `most` is no number of at least 0.
    """

    attribute: str
    most: float

    def __post_init__(self) -> None:
        if not is_number(self.most, 0):
            raise InputError(
                f"cap of {self.attribute!r} is {self.most!r:.40}",
                remedy="Give a number of at least 0",
            )

    def met_by(self, microdata: Microdata, cells: CellBatch) -> Flags:
        """Return (B,) whether the cells keep the cap."""
        a = _index(microdata, self.attribute)
        attribute = microdata.attributes[a]
        within: Flags
        if attribute.publish == "range":
            width = cells.uppers[:, a] - cells.lowers[:, a]
            within = width <= self.most + LOSS_RELATIVE * abs(self.most)
        elif attribute.hierarchy is not None:
            within = cells.level(a, attribute.hierarchy.tree) <= self.most
        else:
            within = cells.counts[:, a] <= self.most
        return within | cells.stars[:, a]

    def __str__(self) -> str:
        return f"cap of {self.most:g} on {self.attribute!r}"


@dataclass(frozen=True)
class Apart:
    """No published cell of an attribute covers both of two values.

    Parameters
    ----------
    attribute
        Name of the quasi-identifier.
    one, other
        The two values. A set covers the values it lists, a range every number in it, a node every
        value below it.

    Raises
    ------
    InputError
        If the two values are one.
    """

    attribute: str
    one: object
    other: object

    def __post_init__(self) -> None:
        if str(self.one) == str(self.other):
            raise self._same()

    def met_by(self, microdata: Microdata, cells: CellBatch) -> Flags:
        """Return (B,) whether no cell covers both values.

        Sets need their members, so :meth:`conflicts` decides there; cells of a set with one value
        keep the limit in any case.
        """
        a = _index(microdata, self.attribute)
        attribute = microdata.attributes[a]
        covers_both = np.zeros(len(cells.lowers), np.bool_)
        if attribute.publish == "range":
            low, high = sorted(self._numbers())
            covers_both = (cells.lowers[:, a] <= low) & (cells.uppers[:, a] >= high)
        elif attribute.hierarchy is not None and cells.nodes is not None:
            tree = attribute.hierarchy.tree
            places = [self._leaf(microdata, value) for value in (self.one, self.other)]
            nodes = cells.nodes[:, a]
            covers_both = (tree.first[nodes] <= min(places)) & (tree.last[nodes] >= max(places))
        return ~covers_both | cells.stars[:, a]

    def _numbers(self) -> tuple[float, float]:
        try:
            numbers = float(str(self.one)), float(str(self.other))
        except ValueError:
            numbers = (np.nan, np.nan)
        if not np.isfinite(numbers).all():
            raise InputError(
                f"values of {self.attribute!r} that must stay apart are no finite numbers",
                remedy="Give two numbers",
            )
        if numbers[0] == numbers[1]:
            raise self._same()
        return numbers

    def _same(self) -> InputError:
        return InputError(
            f"two values of {self.attribute!r} that must stay apart are the same",
            remedy="Give two different values",
            value=str(self.one),
        )

    def _leaf(self, microdata: Microdata, value: object) -> int:
        tree_of = microdata.attributes[_index(microdata, self.attribute)].hierarchy
        assert tree_of is not None
        place = tree_of.tree.place.get(str(value), tree_of.tree.leaves)
        if place >= tree_of.tree.leaves:
            raise InputError(
                f"a value of {self.attribute!r} that must stay apart is no leaf of its hierarchy",
                remedy="Give two values of the domain",
                value=str(value),
            )
        return place

    def codes(self, microdata: Microdata) -> tuple[int, int] | None:
        """Return the ranks of the two values of a set; None if one of them does not occur."""
        a = _index(microdata, self.attribute)
        numeric = microdata.attributes[a].is_numeric
        wanted = self._numbers() if numeric else (str(self.one), str(self.other))
        level = list(microdata.levels[a])
        if any(value not in level for value in wanted):
            return None
        one, other = (level.index(value) for value in wanted)
        return one, other

    def __str__(self) -> str:
        return f"rule that two values of {self.attribute!r} stay apart"


Limit: TypeAlias = Cap | Apart


def _index(microdata: Microdata, name: str) -> int:
    if name not in microdata.names:
        raise unknown_column(name, "limited quasi-identifier", list(microdata.names))
    return microdata.names.index(name)


def refuse_unfit(microdata: Microdata, limits: Sequence[Limit]) -> None:
    """Refuse limits that do not fit the table.

    Raises InputError if an attribute or a value is unknown, or a limit is no limit.
    """
    for limit in limits:
        if not isinstance(limit, Cap | Apart):
            raise InputError(
                f"limits holds a {type(limit).__name__}", remedy="Give Cap(...) or Apart(...)"
            )
        attribute = microdata.attributes[_index(microdata, limit.attribute)]
        if microdata.beyond[_index(microdata, limit.attribute)] < np.inf:
            raise InputError(
                f"the {limit} limits a column whose missing values are a value of its own",
                remedy=f"Use {argument('missing', 'drop')} for that column, or no limit",
            )
        if isinstance(limit, Apart):
            if attribute.is_numeric:
                limit._numbers()
            elif attribute.hierarchy is not None:
                limit._leaf(microdata, limit.one)
                limit._leaf(microdata, limit.other)
            else:
                _refuse_unknown_values(microdata, limit)
        elif attribute.publish == "set" and limit.most < 1:
            raise InputError(
                f"cap of {limit.attribute!r} is below 1, which no set can keep",
                remedy="Give at least 1",
            )


def _refuse_unknown_values(microdata: Microdata, limit: Apart) -> None:
    a = _index(microdata, limit.attribute)
    declared = microdata.attributes[a].domain
    known = set(microdata.levels[a]) if declared is None else set(map(str, declared))
    for value in (limit.one, limit.other):
        if str(value) not in known:
            raise InputError(
                f"a value of {limit.attribute!r} that must stay apart is not in its domain",
                remedy="Give two values of the domain",
                value=str(value),
            )


def met_by_sets(
    microdata: Microdata, limits: Sequence[Limit], rows: Ints, cells: CellBatch
) -> Flags:
    """Return (B,) whether classes of records keep all limits.

    `rows`: (B, s) records of each class. `cells`: what the classes publish.
    """
    met = np.ones(len(rows), np.bool_)
    for limit in limits:
        a = _index(microdata, limit.attribute)
        if isinstance(limit, Apart) and microdata.attributes[a].publish == "set":
            pair = limit.codes(microdata)
            if pair is not None:
                codes = microdata.codes[rows, a]
                met &= ~((codes == pair[0]).any(axis=1) & (codes == pair[1]).any(axis=1))
        else:
            met &= limit.met_by(microdata, cells)
    return met


def check_limits(microdata: Microdata, limits: Sequence[Limit], description: Description) -> None:
    """Raise if what is published for a record breaks a limit.

    Raises InvalidAssignment naming the record and the limit.
    """
    cells = cells_of(description)
    for limit in limits:
        a = _index(microdata, limit.attribute)
        if isinstance(limit, Apart) and microdata.attributes[a].publish == "set":
            pair = limit.codes(microdata)
            if pair is None:
                continue
            bad = np.logical_and(*(_holding(description.members, a, code) for code in pair))
        else:
            bad = ~limit.met_by(microdata, cells)
        if bad.any():
            raise InvalidAssignment(int(bad.argmax()), f"its cells break the {limit}")


def _holding(sets: CellSets, attribute: int, code: int) -> Flags:
    """Return (n,) whether the set of each cell of an attribute holds a value."""
    before = np.concatenate([[0], np.cumsum(sets.codes == code)])
    found: Flags = before[sets.stop[:, attribute]] > before[sets.start[:, attribute]]
    return found


def conflicts(microdata: Microdata, limits: Sequence[Limit], rows: Ints) -> Flags:
    """Return (t, t) whether two records may never share a class.

    A cap on a range or a node, and two values apart, are kept by a class exactly if every two of
    its records keep them; a cap on the size of a set is not decided by pairs. Complexity: O(t^2)
    for each limit.
    """
    t = len(rows)
    forbidden = np.zeros((t, t), np.bool_)
    if not limits:
        return forbidden
    for at in range(t):
        pairs = np.stack([np.full(t, rows[at]), rows], axis=1)
        forbidden[at] = ~met_by_sets(microdata, limits, pairs, cells_of_sets(microdata, pairs))
    return forbidden
