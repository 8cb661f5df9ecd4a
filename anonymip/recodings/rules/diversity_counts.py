"""Diversity of a set of rows that grows and shrinks, for kernels: what is asked, and the counts.

Every kernel that makes classes or sets asks these few functions, so that all judge alike. What a
class shows of its sensitive columns is counted row by row; what one row more or less would change
is read off the counts.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata
from anonymip.recodings.rules.diversity import Diversity
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed


class DiversityRule(Packed):
    """What a diversity asks of the sensitive values of rows, closeness left out."""

    #: (rows, columns) int64, sensitive values, numbered through all columns; (rows, 0) without a
    #: diversity.
    values: Ints
    #: (columns + 1,) int64, where the numbers of each column begin; the last entry ends them.
    starts: Ints
    #: (columns, 3) int64, of each column a numerator, a denominator and a number: no value makes up
    #: more than denominator/numerator of a set, and a set has so many values at least.
    asked: Ints

    def of_rows(self, rows: NDArray[np.integer]) -> DiversityRule:
        """Return the rule for some of the rows, or for all in another order."""
        return self._replace(values=np.ascontiguousarray(self.values[rows]))


class ValueCounts(Packed):
    """How often a set holds each sensitive value; a set that only grows may keep its past."""

    held: Annotated[Ints, "values"]  # rows with each value
    #: Rows that share a most frequent value, how many values are as frequent, and how many values
    #: there are. A depth-first search has a level for each size, others one.
    most: Annotated[Ints, "levels, columns"]
    tied: Annotated[Ints, "levels, columns"]
    distinct: Annotated[Ints, "levels, columns"]


def diversity_rule(diversity: Diversity | None, microdata: Microdata) -> DiversityRule:
    """Return the rule for all records of a table; without a diversity one that any set keeps."""
    if diversity is None:
        nothing = np.zeros((microdata.n, 0), np.int64), np.zeros((0, 3), np.int64)
        return DiversityRule(nothing[0], np.zeros(1, np.int64), nothing[1])
    values, starts = microdata.counted_values
    asked = [diversity.asked_of(column) for column in range(values.shape[1])]
    return DiversityRule(values, starts, np.array(asked, np.int64))


def new_counts(rule: DiversityRule, levels: int = 1) -> ValueCounts:
    """Return the counts of an empty set."""
    starts = rule.starts
    return ValueCounts.of_sizes(values=starts[-1], levels=levels, columns=len(starts) - 1)


@kernel
def meets(rule: DiversityRule, c: int, most: int, distinct: int, size: int) -> bool:
    """Return whether a set is diverse in a column: its size and what is in its column."""
    over, under = rule.asked[c, 0], rule.asked[c, 1]
    if distinct < rule.asked[c, 2]:
        return False
    return bool(over <= under or most * over <= size * under)


@kernel
def start_counts(counts: ValueCounts) -> None:
    """Forget the most frequent values and how many there are; `held` must be zero."""
    for c in range(counts.most.shape[1]):
        counts.most[0, c] = counts.tied[0, c] = counts.distinct[0, c] = 0


@kernel
def count_in(
    rule: DiversityRule, counts: ValueCounts, row: int, copies: int, before: int, after: int
) -> None:
    """Count copies of a row in: from one level on, to the next one or to the same."""
    for c in range(rule.values.shape[1]):
        value = rule.values[row, c]
        old = counts.held[value]
        counts.held[value] = held = old + copies
        most, tied = counts.most[before, c], counts.tied[before, c]
        if held > most:
            most, tied = held, 1
        elif held == most:
            tied += 1
        counts.most[after, c], counts.tied[after, c] = most, tied
        counts.distinct[after, c] = counts.distinct[before, c] + (old == 0)


@kernel
def count_out(rule: DiversityRule, counts: ValueCounts, row: int) -> None:
    """Count a row out."""
    for c in range(rule.values.shape[1]):
        value = rule.values[row, c]
        old = counts.held[value]
        counts.held[value] = old - 1
        counts.distinct[0, c] -= old == 1
        # Without shares nobody asks how frequent a value is, and units are too many to look at.
        if rule.asked[c, 0] <= rule.asked[c, 1] or old < counts.most[0, c]:
            continue
        counts.tied[0, c] -= 1
        if counts.tied[0, c] > 0:
            continue
        # It was most frequent alone: the next ones are as frequent as it is now.
        counts.most[0, c] = old - 1
        for other in range(rule.starts[c], rule.starts[c + 1]):
            counts.tied[0, c] += counts.held[other] == old - 1


@kernel
def take_back(rule: DiversityRule, counts: ValueCounts, row: int) -> None:
    """Take back that a row was counted in: the level before has what it changed beside `held`."""
    for c in range(rule.values.shape[1]):
        counts.held[rule.values[row, c]] -= 1


@kernel
def forget_row(rule: DiversityRule, counts: ValueCounts, row: int) -> None:
    """Set the counts of a row's values to zero, as :func:`start_counts` wants them."""
    for c in range(rule.values.shape[1]):
        counts.held[rule.values[row, c]] = 0


@kernel
def may_be_diverse(
    rule: DiversityRule, counts: ValueCounts, level: int, size: int, reach: int
) -> bool:
    """Return whether the set may be diverse once it has grown from `size` to `reach` rows.

    With as many rows as it has, whether it is.
    """
    for c in range(rule.values.shape[1]):
        distinct = counts.distinct[level, c] + reach - size
        if not meets(rule, c, counts.most[level, c], distinct, reach):
            return False
    return True


@kernel
def rows_are_diverse(
    rule: DiversityRule, counts: ValueCounts, rows: Ints, begin: int, end: int
) -> bool:
    """Return whether the rows at a segment of places are diverse."""
    start_counts(counts)
    for at in range(begin, end):
        count_in(rule, counts, rows[at], 1, 0, 0)
    for at in range(begin, end):
        forget_row(rule, counts, rows[at])
    return may_be_diverse(rule, counts, 0, end - begin, end - begin)


@kernel
def stays_diverse(
    rule: DiversityRule, counts: ValueCounts, size: int, leaving: int, joining: int
) -> bool:
    """Return whether the set would be diverse without one row and with another; -1: none."""
    after = size - (1 if leaving >= 0 else 0) + (1 if joining >= 0 else 0)
    for c in range(rule.values.shape[1]):
        most, distinct = counts.most[0, c], counts.distinct[0, c]
        gone = rule.values[leaving, c] if leaving >= 0 else -1
        come = rule.values[joining, c] if joining >= 0 else -1
        if gone != come:
            if gone >= 0:
                distinct -= counts.held[gone] == 1
                # Only a value that is most frequent alone leaves a smaller maximum.
                most -= counts.held[gone] == most and counts.tied[0, c] == 1
            if come >= 0:
                distinct += counts.held[come] == 0
                most = max(most, counts.held[come] + 1)
        if not meets(rule, c, most, distinct, after):
            return False
    return True


@kernel
def rows_lacking(rule: DiversityRule, counts: ValueCounts, size: int, joining: int) -> int:
    """Return how many further rows the set needs at least once a row has joined it; -1: none."""
    lacking, after = 0, size + (1 if joining >= 0 else 0)
    for c in range(rule.values.shape[1]):
        most, distinct = counts.most[0, c], counts.distinct[0, c]
        if joining >= 0:
            held = counts.held[rule.values[joining, c]]
            most, distinct = max(most, held + 1), distinct + (held == 0)
        over, under = rule.asked[c, 0], rule.asked[c, 1]
        lacking = max(lacking, rule.asked[c, 2] - distinct)
        if over > under:
            wanted = -(-most * over // under)
            lacking = max(lacking, wanted - after)
    return lacking
