"""Limits of generalization: caps on single attributes, and values that must stay apart.

All are anti-monotone: what they forbid stays forbidden when a class grows. The bound of 2k - 1
records a class therefore stands under them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from anonymip.assignments import Description
from anonymip.errors import InputError, InvalidAssignment, argument, is_number
from anonymip.instances.columns import unknown_column
from anonymip.instances.hierarchies.tree import Tree
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
            tree, nodes = attribute.hierarchy.tree, cells.nodes[:, a]
            first, last = self._leaves(tree)
            covers_both = (tree.first[nodes] <= first) & (tree.last[nodes] >= last)
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

    def _leaves(self, tree: Tree) -> list[int]:
        values = str(self.one), str(self.other)
        for value in values:
            if tree.place.get(value, tree.leaves) >= tree.leaves:
                raise self._foreign(value, "no leaf of its hierarchy")
        return sorted(tree.place[value] for value in values)

    def _foreign(self, value: object, what: str) -> InputError:
        return InputError(
            f"a value of {self.attribute!r} that must stay apart is {what}",
            remedy="Give two values of the domain",
            value=str(value),
        )

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
    """Refuse limits that do not fit the table."""
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
                limit._leaves(attribute.hierarchy.tree)
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
            raise limit._foreign(value, "not in its domain")


def met_by_sets(
    microdata: Microdata, limits: Sequence[Limit], rows: Ints, cells: CellBatch
) -> Flags:
    """Return (B,) whether the classes of (B, s) records, which publish `cells`, keep all limits."""
    met = np.ones(len(rows), np.bool_)
    for limit in limits:
        met &= _kept(
            microdata, limit, cells, lambda a, code: (microdata.codes[rows, a] == code).any(axis=1)
        )
    return met


def _kept(
    microdata: Microdata, limit: Limit, cells: CellBatch, holds: Callable[[int, int], Flags]
) -> Flags:
    """Return (B,) whether cells keep a limit; `holds` tells which sets hold a code of a column."""
    a = _index(microdata, limit.attribute)
    if isinstance(limit, Apart) and microdata.attributes[a].publish == "set":
        one, other = limit.codes(microdata) or (-1, -1)  # which no set holds
        return ~(holds(a, one) & holds(a, other))
    return limit.met_by(microdata, cells)


def check_limits(microdata: Microdata, limits: Sequence[Limit], description: Description) -> None:
    """Raise InvalidAssignment if what is published for a record breaks a limit."""
    cells, sets = cells_of(description), description.members

    def holds(a: int, code: int) -> Flags:
        before = np.concatenate([[0], np.cumsum(sets.codes == code)])
        found: Flags = before[sets.stop[:, a]] > before[sets.start[:, a]]
        return found

    for limit in limits:
        kept = _kept(microdata, limit, cells, holds)
        if not kept.all():
            raise InvalidAssignment(int(kept.argmin()), f"its cells break the {limit}")


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
