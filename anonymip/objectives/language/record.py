"""The published record as an objective sees it: one of symbols, or a batch of numbers.

Objectives of the members tier see the original values of the members of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, partialmethod
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Description
from anonymip.errors import InputError, UnsupportedObjective, argument
from anonymip.instances.domains import Domains
from anonymip.instances.hierarchies.tree import Tree
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.expression import Expression
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints


class Feature(Mapping[str, Any]):
    """One property of the published record, by attribute name."""

    def __init__(self, names: tuple[str, ...], read: Callable[[str], Any]) -> None:
        self._names = names
        self._read = read

    def __getitem__(self, name: str) -> Any:
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _feature(names: tuple[str, ...], read: Callable[[int], Any]) -> Feature:
    """Return the feature that is read by the place of an attribute."""

    def read_by_name(name: str) -> Any:
        if name not in names:
            raise InputError(
                f"the objective reads attribute {name!r}, which is no quasi-identifier",
                remedy=f"Quasi-identifiers are {', '.join(names)}",
            )
        return read(names.index(name))

    return Feature(names, read_by_name)


class Record:
    """What is published for a record; the argument of every objective function.

    `attributes` are the names of the quasi-identifiers, all else is read by one of these:

    - `width`: published range over domain range, 0 to 1; `lower, upper`: its ends (numeric);
    - `distinct`: number of values (sets, ranges of whole numbers, values below a node);
    - `level`: of the published node, 0 for an exact value; `height`: of the root (hierarchical);
    - `spread`: normalised certainty penalty of any kind: the width of a numeric attribute,
      (count - 1) / (domain size - 1) of any other, 1 if suppressed;
    - `suppressed`: 1 where the cell is a star, else 0;
    - `weight, domain_size, kind`: constants of the attribute.
    """

    def __init__(self, domains: Domains, cells: CellBatch | SymbolicCells) -> None:
        self._domains = domains
        self._cells: Any = cells
        self.attributes = domains.names
        feature = partial(_feature, domains.names)
        self.width = feature(self._width)
        self.lower = feature(partial(self._end, "lower"))
        self.upper = feature(partial(self._end, "upper"))
        self.distinct = feature(self._distinct)
        self.level = feature(self._level)
        self.height = feature(lambda a: self._tree(a, "height").height)
        self.spread = feature(self._spread)
        self.suppressed = feature(cells.suppressed)
        self.weight = feature(lambda a: float(domains.weight[a]))
        self.domain_size = feature(lambda a: int(domains.size[a]))
        self.kind = feature(lambda a: domains.kinds[a])

    def _refuse_other_kind(self, a: int, feature: str) -> None:
        """Refuse to read of an attribute that is not numeric what only numbers have."""
        if self._domains.kinds[a] != "numeric":
            raise UnsupportedObjective(
                f"the objective reads {feature} of {self.attributes[a]!r}, which is not numeric",
                remedy="Use spread or distinct",
            )

    def _end(self, end: str, a: int) -> Any:
        self._refuse_other_kind(a, end)
        if self._domains.beyond[a] < np.inf:
            raise UnsupportedObjective(
                f"the objective reads the {end} end of {self.attributes[a]!r}, which a missing "
                "value does not have",
                remedy=f"Use spread or width, or {argument('missing', 'drop')} for that column",
            )
        bounds = self._domains.low if end == "lower" else self._domains.high
        return self._cells.unless_suppressed(a, getattr(self._cells, end)(a), float(bounds[a]))

    def _width(self, a: int) -> Any:
        self._refuse_other_kind(a, "width")
        span = float(self._domains.high[a] - self._domains.low[a])
        width = self._cells.upper(a) - self._cells.lower(a)
        if self._domains.beyond[a] < np.inf:
            # A number and a missing value are published as anything.
            scaled = np.minimum(width / (span or 1.0), 1.0)
        else:
            # An observed constant has no range to lose.
            scaled = width * 0.0 if span == 0 else width / span
        return self._cells.unless_suppressed(a, scaled, 1.0)

    def _tree(self, a: int, feature: str) -> Tree:
        tree = self._domains.trees[a]
        if tree is None:
            raise UnsupportedObjective(
                f"the objective reads {feature} of {self.attributes[a]!r}, which is not "
                "hierarchical",
                remedy="Use spread or distinct",
            )
        return tree

    def _level(self, a: int) -> Any:
        tree = self._tree(a, "level")
        return self._cells.unless_suppressed(a, self._cells.level(a, tree), float(tree.height))

    def _distinct(self, a: int) -> Any:
        size, tree = float(self._domains.size[a]), self._domains.trees[a]
        if tree is not None:
            count = self._cells.leaves(a, tree)
        elif self._domains.publish[a] == "set":
            count = self._cells.count(a)
        elif self._domains.integer[a]:
            count = self._cells.upper(a) - self._cells.lower(a) + 1.0
            if self._domains.beyond[a] < np.inf:
                count = np.minimum(count, size)
        else:
            raise UnsupportedObjective(
                f"the objective counts the values of {self.attributes[a]!r}, which is published "
                "as a range of real numbers",
                remedy="Publish it as a set (publish = 'set'), declare it integer, or use width",
            )
        return self._cells.unless_suppressed(a, count, size)

    def _spread(self, a: int) -> Any:
        if self._domains.kinds[a] == "numeric":
            return self._width(a)
        size, tree = int(self._domains.size[a]), self._domains.trees[a]
        count = self._cells.count(a) if tree is None else self._cells.leaves(a, tree)
        beyond_one = count - 1.0
        scaled = beyond_one * 0.0 if size == 1 else beyond_one / (size - 1)
        return self._cells.unless_suppressed(a, scaled, 1.0)


@dataclass(frozen=True, eq=False)
class CellBatch:
    """Cells of a batch of B published records, as numbers."""

    #: (B, m) float64, ends of the published ranges; NaN where there is none.
    lowers: Floats
    uppers: Floats
    counts: NDArray[Any]  # (B, m) numbers of published values
    stars: Flags  # (B, m) bool, suppressed cells
    #: (B, m) int32, published nodes of hierarchies, -1 where there is none; None for a table
    #: without hierarchies.
    nodes: Codes | None = None

    def lower(self, attribute: int) -> Floats:
        """Return the (B,) lower ends."""
        return self.lowers[:, attribute]

    def upper(self, attribute: int) -> Floats:
        """Return the (B,) upper ends."""
        return self.uppers[:, attribute]

    def count(self, attribute: int) -> Floats:
        """Return the (B,) numbers of published values."""
        return self.counts[:, attribute].astype(np.float64)

    def taken(self, at: slice | Ints) -> CellBatch:
        """Return the batch of some of the records, in the order given."""
        nodes = None if self.nodes is None else self.nodes[at]
        return CellBatch(self.lowers[at], self.uppers[at], self.counts[at], self.stars[at], nodes)

    def level(self, attribute: int, tree: Tree) -> Floats:
        """Return the (B,) levels of the published nodes."""
        return tree.level[self._nodes(attribute)].astype(np.float64)

    def leaves(self, attribute: int, tree: Tree) -> Floats:
        """Return the (B,) numbers of values below the published nodes."""
        return tree.leaves_below[self._nodes(attribute)].astype(np.float64)

    def _nodes(self, attribute: int) -> Codes:
        if self.nodes is None:
            raise UnsupportedObjective(
                "cells of a hierarchical attribute have no nodes",
                remedy="Give CellBatch the nodes of the description",
            )
        return self.nodes[:, attribute]

    def suppressed(self, attribute: int) -> Floats:
        """Return (B,) ones and zeros."""
        return self.stars[:, attribute].astype(np.float64)

    def unless_suppressed(self, attribute: int, value: Floats, price: float) -> Floats:
        """Return (B,) `value`, but `price` where the cell is a star."""
        return np.where(self.stars[:, attribute], price, value)


@dataclass(frozen=True)
class SymbolicCells:
    """Cells of one published, unsuppressed record, as symbols, with the methods of a batch."""

    origin: Floats  # (m,) what ends are counted from

    def _symbol(self, attribute: int, *_: Tree, kind: str) -> Expression:
        start = float(self.origin[attribute]) if kind in ("lower", "upper") else 0.0
        return Expression(start, {(attribute, kind): 1.0})

    lower, upper = partialmethod(_symbol, kind="lower"), partialmethod(_symbol, kind="upper")
    count = partialmethod(_symbol, kind="count")
    level, leaves = partialmethod(_symbol, kind="level"), partialmethod(_symbol, kind="leaves")

    def suppressed(self, attribute: int) -> Expression:
        """Return zero: suppressed records are priced separately."""
        return Expression(0.0, {})

    def unless_suppressed(self, attribute: int, value: Expression, price: float) -> Expression:
        """Return `value`."""
        return value


_MOST_COMPARED = 8  # records of a set up to which they are compared two at a time


def cells_of(description: Description) -> CellBatch:
    """Return the cells of a description, as an objective sees them."""
    return CellBatch(
        description.lower,
        description.upper,
        description.members.count,
        description.suppressed,
        description.nodes,
    )


def cells_of_sets(microdata: Microdata, rows: Ints) -> CellBatch:
    """Return the cells of one record of each set: the tight range, set or node.

    `rows`: (B, s) records of each set. Complexity: O(B s log s m) time and O(B s m) memory.
    """
    return cells_between(microdata, *_covered(microdata.codes, rows))


def cells_between(
    microdata: Microdata,
    lowest: NDArray[np.integer],
    highest: NDArray[np.integer],
    count: Ints,
    stars: Flags | None = None,
) -> CellBatch:
    """Return the cells that cover values from the lowest to the highest of some.

    `lowest, highest`: (B, m) ranks of the values. `count`: (B, m) how many values each cell
    publishes. `stars`: (B, m) suppressed cells; None for none.
    """
    stars = np.zeros(lowest.shape, np.bool_) if stars is None else stars
    lower, upper = np.full(lowest.shape, np.nan), np.full(lowest.shape, np.nan)
    nodes = np.full(lowest.shape, -1, np.int32)
    for a, attribute in enumerate(microdata.attributes):
        low, high = lowest[:, a], highest[:, a]
        if attribute.is_numeric:
            level = microdata.levels[a].astype(np.float64)
            lower[:, a], upper[:, a] = level[low], level[high]
        elif attribute.hierarchy is not None:
            leaf = microdata.leaves(a)
            nodes[:, a] = attribute.hierarchy.tree.common_ancestors(leaf[low], leaf[high])
    lower[stars], upper[stars], nodes[stars] = np.nan, np.nan, -1
    return CellBatch(lower, upper, count, stars, nodes)


def _covered(codes: Codes, rows: Ints) -> tuple[Codes, Codes, Ints]:
    """Return (B, m) lowest and highest codes of sets, and how many different ones there are.

    A few records are put in order by comparing two at a time, in all sets at once: far faster than
    sorting each set and attribute by itself.
    """
    size = rows.shape[1]
    if size > _MOST_COMPARED:
        ordered = np.sort(codes[rows], axis=1)
        return ordered[:, 0], ordered[:, -1], 1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)
    ranks = [codes[rows[:, member]] for member in range(size)]
    for end in range(size - 1, 0, -1):
        for at in range(end):
            one, other = ranks[at], ranks[at + 1]
            ranks[at], ranks[at + 1] = np.minimum(one, other), np.maximum(one, other)
    count = np.ones(ranks[0].shape, np.int64)
    for one, other in pairwise(ranks):
        count += other > one
    return ranks[0], ranks[-1], count


class Members:
    """The members of B classes of s records each.

    `rows`: (B, s) records of `microdata`. `attributes` are the names of the quasi-identifiers, by
    which are read `value`, (B, s) numbers of numeric attributes and of categories that are numbers,
    else ranks; `code`, (B, s) ranks among the observed values; and `kind`.
    """

    def __init__(self, microdata: Microdata, rows: Ints) -> None:
        self.microdata = microdata
        self.rows = rows
        self.attributes = microdata.names
        feature = partial(_feature, microdata.names)
        self.value = feature(self._value)
        self.code = feature(lambda a: microdata.codes[rows, a])
        self.kind = feature(lambda a: microdata.attributes[a].generalized)

    def _value(self, a: int) -> Floats:
        if self.microdata.beyond[a] < np.inf:
            raise UnsupportedObjective(
                f"the objective reads the numbers of {self.attributes[a]!r}, and some are missing",
                remedy=f"Use {argument('missing', 'drop')} for that column, or a loss of what is "
                "published, such as gcp",
            )
        return self.microdata.values[self.rows, a]
