"""Optimal releases of small tables by full enumeration, in plain Python.

Written after the definitions alone: nothing of the package is used, so that an error in it cannot
hide behind the same error here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Column:
    """One quasi-identifier with all its values."""

    values: tuple[Any, ...]  # one a record
    numeric: bool = True  # whether the values are numbers; else texts
    #: Lowest and highest permissible number, or all permissible texts; None takes the observed.
    domain: tuple[Any, ...] | None = None
    as_set: bool = False  # whether a published cell lists its values; else it is a range
    integer: bool = False  # whether the numbers are whole
    weight: float = 1.0  # importance
    #: Generalization hierarchy: for each permissible value its path to the root.
    paths: tuple[tuple[str, ...], ...] = ()

    @property
    def kind(self) -> str:
        """Name of the attribute's kind."""
        if self.paths:
            return "hierarchical"
        return "numeric" if self.numeric else "categorical"


class Cell(NamedTuple):
    """What is published of one attribute, and what is known of the attribute."""

    #: Of the attribute; `size` is the number of permissible values.
    numeric: bool
    weight: float
    size: int
    #: Ends of the published range; 0 where there is none.
    lower: float
    upper: float
    distinct: int | None  # number of published values; None for a range of real numbers
    width: float  # published range over the domain's; 0 where there is none
    starred: bool  # whether the cell is suppressed
    #: Of the published node and of the root of a hierarchy; 0 where there is none.
    level: int = 0
    height: int = 0

    @property
    def spread(self) -> float:
        """The normalised certainty penalty."""
        if self.starred:
            return 1.0
        if self.numeric:
            return self.width
        assert self.distinct is not None
        return (self.distinct - 1) / (self.size - 1) if self.size > 1 else 0.0


Table = Sequence[Column]
Groups = tuple[tuple[int, ...], ...]
#: Loss of one record from its published cells.
NaiveLoss = Callable[[Sequence[Cell]], float]


def published(column: Column, records: Sequence[int]) -> Cell:
    """Return the cell of a class of records."""
    return _cell(column, [column.values[record] for record in records])


def starred(column: Column) -> Cell:
    """Return the cell of a suppressed record: it covers the whole domain."""
    cell = _cell(column, column.values)
    lower, upper = _ends(column)
    count = None if cell.distinct is None else cell.size
    return cell._replace(
        lower=lower, upper=upper, distinct=count, width=1.0, starred=True, level=cell.height
    )


def _ends(column: Column) -> tuple[float, float]:
    if not column.numeric:
        return 0.0, 0.0
    low, high = column.domain or (min(column.values), max(column.values))
    return float(low), float(high)


def node(column: Column, covered: Sequence[Any]) -> str:
    """Return the lowest label that lies on the paths of all covered values."""
    paths = {path[0]: path for path in column.paths}
    return next(
        label for label in paths[covered[0]] if all(label in paths[value] for value in covered)
    )


def level_of(column: Column, label: str) -> int:
    """Return the lowest level at which all values below a node agree."""
    return max(path.index(label) for path in column.paths if label in path)


def _size(column: Column) -> int:
    if column.paths:
        return len(column.paths)
    low, high = _ends(column)
    if column.numeric and column.integer and (column.domain is not None or not column.as_set):
        return int(high - low) + 1
    if not column.numeric and column.domain is not None:
        return len(column.domain)
    return len(set(column.values))


def _cell(column: Column, covered: Sequence[Any]) -> Cell:
    count: int | None
    size, (low, high) = _size(column), _ends(column)
    if column.paths:
        label = node(column, covered)
        count = sum(label in path for path in column.paths)
        height = level_of(column, column.paths[0][-1])
        level = level_of(column, label)
        return Cell(False, column.weight, size, 0.0, 0.0, count, 0.0, False, level, height)
    if not column.numeric:
        return Cell(False, column.weight, size, 0.0, 0.0, len(set(covered)), 0.0, False)
    lower, upper = float(min(covered)), float(max(covered))
    width = (upper - lower) / (high - low) if high > low else 0.0
    if column.as_set:
        count = len(set(covered))
    else:
        count = int(upper - lower) + 1 if column.integer else None
    return Cell(True, column.weight, size, lower, upper, count, width, False)


def gcp(cells: Sequence[Cell]) -> float:
    """Return the penalty of Doka et al., eqs. (1)-(3)."""
    return sum(cell.spread for cell in cells)


def set_gcp(cells: Sequence[Cell]) -> float:
    """Return the penalty of Wong et al., Def. 8: values are counted."""
    total = 0.0
    for cell in cells:
        assert cell.distinct is not None
        total += (cell.distinct - 1) / (cell.size - 1) if cell.size > 1 else 0.0
    return total


def liang_gcp(cells: Sequence[Cell]) -> float:
    """Return the penalty of Liang & Samavi, Defs. 8, 9: sets are scaled by the domain's size."""
    total = 0.0
    for cell in cells:
        if cell.numeric:
            total += cell.width
        else:
            assert cell.distinct is not None
            total += (cell.distinct - 1) / cell.size
    return total


def weighted_loss(cells: Sequence[Cell]) -> float:
    """Return the loss of Liang & Samavi, eq. (34), weights scaled to sum 1."""
    return sum(cell.weight * cell.spread for cell in cells) / sum(cell.weight for cell in cells)


def weighted_loss_binary(cells: Sequence[Cell]) -> float:
    """Return the same with a binary column a category: those published both ways cost."""
    total = 0.0
    for cell in cells:
        if cell.numeric:
            total += cell.weight * cell.spread
        else:
            columns = [0.0] * cell.size
            assert cell.distinct is not None
            if cell.distinct > 1:
                columns[: cell.distinct] = [1.0] * cell.distinct
            total += cell.weight * sum(columns) / cell.size
    return total / sum(cell.weight for cell in cells)


def record_loss(table: Table, loss: NaiveLoss, records: Sequence[int]) -> float:
    """Return the loss of each record of a class."""
    return loss([published(column, records) for column in table])


def hierarchy_loss(cells: Sequence[Cell]) -> float:
    """Return Aggarwal's loss: weighted levels over height; without a hierarchy one level."""
    return sum(
        cell.weight * (cell.level / cell.height if cell.height else float(cell.spread > 0))
        for cell in cells
    )


@dataclass(frozen=True)
class Rules:
    """What a class must obey beside its size."""

    sensitive: tuple[tuple[Any, ...], ...] = ()  # columns of sensitive values
    #: No value in more than 1/l of a class; so many values at least.
    l: Fraction = Fraction(1)  # noqa: E741
    distinct: int = 1
    #: Attribute and the most its cell may cover: range, number of values, or level.
    caps: tuple[tuple[int, float], ...] = ()
    #: Attribute and two values that no cell may cover both.
    apart: tuple[tuple[int, Any, Any], ...] = ()
    #: Whom each record is about, and how many of these a class must hold; 0 for any number.
    units: tuple[Any, ...] = ()
    of_units: int = 0

    def met_by(self, table: Table, records: Sequence[int]) -> bool:
        """Return whether a class obeys all rules."""
        if self.units and len({self.units[record] for record in records}) < self.of_units:
            return False
        for values in self.sensitive:
            held = [values[record] for record in records]
            if len(set(held)) < self.distinct:
                return False
            if any(held.count(value) * self.l > len(held) for value in held):
                return False
        for a, most in self.caps:
            if _covered(table[a], records) > most:
                return False
        return not any(_covers(table[a], records, one, two) for a, one, two in self.apart)


def _covered(column: Column, records: Sequence[int]) -> float:
    cell = published(column, records)
    if column.paths:
        return cell.level
    if column.as_set or not column.numeric:
        assert cell.distinct is not None
        return cell.distinct
    return cell.upper - cell.lower


def _covers(column: Column, records: Sequence[int], one: Any, two: Any) -> bool:
    held = [column.values[record] for record in records]
    if column.paths:
        label = node(column, held)
        below = {path[0] for path in column.paths if label in path}
        return one in below and two in below
    if column.as_set or not column.numeric:
        return one in held and two in held
    return min(held) <= min(one, two) and max(held) >= max(one, two)


def release_loss(table: Table, loss: NaiveLoss, groups: Groups) -> float:
    """Return the loss of a release; the records in no group are suppressed."""
    suppressed = len(table[0].values) - sum(map(len, groups))
    total = suppressed * loss([starred(column) for column in table]) if suppressed else 0.0
    return total + sum(len(group) * record_loss(table, loss, group) for group in groups)


def partitions(n: int, k: int, suppression: bool = False) -> Iterator[Groups]:
    """Yield all partitions of n records into groups of k or more.

    `suppression`: whether records may be left out.
    """
    yield from _partitions(tuple(range(n)), k, suppression)


def _partitions(rest: tuple[int, ...], k: int, suppression: bool) -> Iterator[Groups]:
    if not rest:
        yield ()
        return
    first, others = rest[0], rest[1:]
    if suppression:
        yield from _partitions(others, k, suppression)
    for size in range(k - 1, len(others) + 1):
        for companions in combinations(others, size):
            left = tuple(record for record in others if record not in companions)
            for groups in _partitions(left, k, suppression):
                yield ((first, *companions), *groups)


def optimum(
    table: Table,
    k: int,
    loss: NaiveLoss,
    suppression: bool = False,
    rules: Rules | None = None,
    worst: bool = False,
) -> float:
    """Return the least loss of all releases; infinite if none obeys the rules.

    `worst`: whether the largest loss of a record counts, instead of the sum.
    """
    n = len(table[0].values)
    known: dict[tuple[int, ...], float] = {}
    price = loss([starred(column) for column in table]) if suppression else 0.0

    def group_loss(group: tuple[int, ...]) -> float:
        if group not in known:
            allowed = rules is None or rules.met_by(table, group)
            times = 1 if worst else len(group)
            known[group] = times * record_loss(table, loss, group) if allowed else math.inf
        return known[group]

    def total(groups: Groups) -> float:
        losses = [group_loss(group) for group in groups]
        losses += [price] * (n - sum(map(len, groups)))
        return max(losses) if worst else sum(losses)

    return min(map(total, partitions(n, k, suppression)))


def least_cost_of_classes(
    n: int, k: int, cost: Callable[[tuple[int, ...]], float], rules: Rules, table: Table
) -> float:
    """Return the least sum of class costs over all partitions that obey the rules."""
    known: dict[tuple[int, ...], float] = {}

    def group_cost(group: tuple[int, ...]) -> float:
        if group not in known:
            known[group] = cost(group) if rules.met_by(table, group) else math.inf
        return known[group]

    return min(sum(map(group_cost, groups)) for groups in partitions(n, k))


def consecutive_cuts(order: Sequence[int], k: int) -> Iterator[Groups]:
    """Yield all cuts of an order into consecutive groups of k or more."""
    if not order:
        yield ()
        return
    for size in range(k, len(order) + 1):
        for groups in consecutive_cuts(order[size:], k):
            yield (tuple(order[:size]), *groups)


def nearest_neighbour_sum(
    table: Table, k: int, loss: NaiveLoss, suppression: bool = False
) -> float:
    """Return what all records pay at least to be hidden with their (k-1)-th neighbours."""
    n = len(table[0].values)
    total = 0.0
    for record in range(n):
        others = sorted(
            record_loss(table, loss, (record, other)) for other in range(n) if other != record
        )
        term = others[k - 2]
        if suppression:
            term = min(term, loss([starred(column) for column in table]))
        total += term
    return total
