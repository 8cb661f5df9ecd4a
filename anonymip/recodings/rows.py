"""Published rows: what sets of records publish, rows that look alike, cells of each level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, CellSets, Classes, Description, by_size
from anonymip.instances.attribute import Attribute
from anonymip.instances.microdata import Microdata, row_keys
from anonymip.runtime.arrays import Codes, Flags, Ints


def describe_sets(microdata: Microdata, start: Ints, members: NDArray[np.integer]) -> Description:
    """Return what is published for each of the given sets of records.

    `start`: (sets + 1,) where each set begins in `members`; none is empty. `members`: records of
    all sets. Returns: one row for each set. Complexity: O(m e log s) for e members in all in sets
    of s.
    """
    count, m = len(start) - 1, microdata.m
    lower, upper = np.full((count, m), np.nan), np.full((count, m), np.nan)
    begin, end = np.zeros((count, m), np.int64), np.zeros((count, m), np.int64)
    nodes = np.full((count, m), -1, np.int32)
    flat: list[Codes] = [np.empty(0, np.int32)]
    offset = 0
    firsts = start[:-1]
    for a, attribute in enumerate(microdata.attributes if count else ()):
        # A column of its own is gathered faster than one of a table of rows.
        values = _sorted_within(np.ascontiguousarray(microdata.codes[:, a])[members], start)
        least, greatest = values[firsts], values[start[1:] - 1]
        if attribute.is_numeric:
            level = microdata.levels[a].astype(np.float64)
            lower[:, a], upper[:, a] = level[least], level[greatest]
            # Cells of numbers and missing values are alike: they tell nothing.
            tells_nothing = lower[:, a] < upper[:, a]
            tells_nothing &= upper[:, a] == microdata.beyond[a]
            if tells_nothing.any():
                lower[tells_nothing, a] = level[microdata.codes[:, a].min()]
        if attribute.hierarchy is not None:
            leaf = microdata.leaves(a)
            nodes[:, a] = attribute.hierarchy.tree.common_ancestors(leaf[least], leaf[greatest])
        is_first = np.ones(len(values), np.bool_)
        is_first[1:] = values[1:] != values[:-1]
        is_first[firsts] = True
        before = np.concatenate([[0], np.cumsum(is_first)])
        end[:, a], begin[:, a] = offset + before[start[1:]], offset + before[firsts]
        flat.append(values[is_first])
        offset += int(before[-1])
    return Description(
        lower,
        upper,
        CellSets(begin, end, np.concatenate(flat)),
        nodes,
        np.zeros((count, m), np.bool_),
    )


def starred_elsewhere(cells: Description, sets: NDArray[np.integer]) -> Description:
    """Return what records publish, each the cells of one of some sets, or stars.

    `cells`: of the sets. `sets`: (n,) the set of each record; -1 for stars. Complexity: O(n m).
    """
    n, m, kept = len(sets), cells.suppressed.shape[1], sets != SUPPRESSED

    def spread(of_sets: NDArray[Any], star: Any) -> NDArray[Any]:
        of_records = np.full((n, m), star, of_sets.dtype)
        of_records[kept] = of_sets[sets[kept]]
        return of_records

    members = cells.members
    return Description(
        spread(cells.lower, np.nan),
        spread(cells.upper, np.nan),
        CellSets(spread(members.start, 0), spread(members.stop, 0), members.codes),
        spread(cells.nodes, -1),
        np.repeat(~kept[:, None], m, axis=1),
    )


def _sorted_within(codes: Codes, start: Ints) -> Codes:
    """Return the codes, ascending within each set."""
    sizes = np.diff(start)
    if (sizes == sizes[0]).all():
        return np.sort(codes.reshape(-1, sizes[0]), axis=1).ravel()
    values = np.empty_like(codes)
    for _, places in by_size(start):
        values[places] = np.sort(codes[places], axis=1)
    return values


def equal_rows(cells: NDArray[np.integer], left_out: Flags | None = None) -> Classes:
    """Return the classes of records whose published cells are equal.

    `cells`: (n, m) number of each published cell: equal exactly where cells of a column are.
    `left_out`: (n,) records that are in no class; None for none. Complexity: O(m n log n).
    """
    from_zero = cells - cells.min(axis=0, initial=0)
    keys = row_keys(from_zero, (from_zero.max(axis=0, initial=0) + 1).tolist())
    labels = np.unique(keys, return_inverse=True)[1].ravel()
    if left_out is not None:
        labels[left_out] = SUPPRESSED
    return Classes(labels.astype(np.int32))


def published_numbers(
    attributes: Sequence[Attribute], cells: Description, records: NDArray[np.integer]
) -> Ints:
    """Return (records, m) numbers of published cells: equal exactly where cells of a column are.

    A range is told by its ends, a node by itself, a set by its values. Complexity: O(m n log n),
    and the values of all sets.
    """
    numbers = np.empty((len(records), len(attributes)), np.int64)
    for a, attribute in enumerate(attributes):
        if attribute.publish == "range":
            low = np.unique(cells.lower[records, a], return_inverse=True)[1].ravel()
            high = np.unique(cells.upper[records, a], return_inverse=True)[1].ravel()
            numbers[:, a] = low * (int(high.max(initial=0)) + 1) + high
        elif attribute.publish == "node":
            numbers[:, a] = cells.nodes[records, a]
        else:
            sets = [cells.members.of(record, a).tobytes() for record in records.tolist()]
            numbers[:, a] = pd.factorize(np.array(sets, dtype=object))[0]
        numbers[cells.suppressed[records, a], a] = -1
    return numbers


STAR = -1  # the cell of a star


@dataclass(frozen=True, eq=False)
class LevelMap:
    """The cells of an attribute at each of its levels."""

    #: (levels, L) what each of L observed values is published as: a node of the hierarchy; without
    #: one the value itself at level 0, a star (-1) at level 1.
    cells: Codes
    #: Whether values with one cell at a level have one at every level above it too. Paths of equal
    #: length whose groups each keep to one level are nested; padding may break it.
    nested: bool

    @classmethod
    def of(cls, microdata: Microdata, attribute: int) -> LevelMap:
        """Return the levels of an attribute.

        With a hierarchy level l of a value is the l-th label of its path, as the path is given:
        padded labels stand where they stand, and a path that is too short ends in the root.
        Complexity: O(values of the hierarchy times its height).
        """
        values = len(microdata.levels[attribute])
        hierarchy = microdata.attributes[attribute].hierarchy
        if hierarchy is None:
            exact = np.arange(values, dtype=np.int32)
            return cls(np.stack([exact, np.full(values, STAR, np.int32)]), nested=True)
        place, levels = hierarchy.tree.place, hierarchy.height + 1
        paths = {path[0]: path for path in hierarchy.paths}
        cells = np.empty((levels, values), np.int32)
        for code, value in enumerate(microdata.levels[attribute]):
            path = paths[str(value)]
            nodes = [place[label] for label in path]
            cells[:, code] = nodes + [nodes[-1]] * (levels - len(nodes))
        return cls(cells, all(map(_refines, cells, cells[1:])))

    @property
    def height(self) -> int:
        """The highest level."""
        return len(self.cells) - 1


def level_maps(microdata: Microdata) -> tuple[LevelMap, ...]:
    """Return the levels of all attributes."""
    return tuple(LevelMap.of(microdata, a) for a in range(microdata.m))


def describe_levels(
    microdata: Microdata,
    cells: Sequence[Codes],
    levels: NDArray[np.integer],
    hidden: Flags,
    codes: Codes | None = None,
) -> Description:
    """Return what is published on (n, m) levels, with (n, m) stars where cells are hidden.

    `cells` (levels, L) are those of the observed values of each attribute; the members of a node
    are the observed values whose cell it is. `codes`: (n, m) of the rows; None for those of the
    table. Complexity: O(m (n + levels L log L)).
    """
    n, m = levels.shape
    lower = np.full((n, m), np.nan)
    nodes = np.full((n, m), -1, np.int32)
    start, stop = np.zeros((n, m), np.int64), np.zeros((n, m), np.int64)
    values: list[Codes] = []
    offset = 0
    for a, attribute in enumerate(microdata.attributes):
        column = (microdata.codes if codes is None else codes)[:, a]
        if attribute.hierarchy is not None:
            nodes[:, a] = cells[a][levels[:, a], column]
        elif attribute.is_numeric:
            lower[:, a] = microdata.levels[a].astype(np.float64)[column]
        for level, of_value in enumerate(cells[a]):
            # Values of one cell side by side, so that each cell points at its own.
            order = np.argsort(of_value, kind="stable").astype(np.int32)
            first = np.searchsorted(of_value[order], of_value, "left")
            last = np.searchsorted(of_value[order], of_value, "right")
            here = slice(None) if len(cells[a]) == 1 else levels[:, a] == level
            start[here, a] = offset + first[column[here]]
            stop[here, a] = offset + last[column[here]]
            values.append(order)
            offset += len(order)
    lower[hidden], nodes[hidden] = np.nan, -1
    members = CellSets(start, np.where(hidden, start, stop), np.concatenate(values))
    return Description(lower, lower.copy(), members, nodes, hidden)


def _refines(fine: Codes, coarse: Codes) -> bool:
    """Return whether equal cells of the one are equal in the other."""
    distinct = len(np.unique(fine))
    return len(np.unique(np.stack([fine, coarse]), axis=1).T) == distinct
