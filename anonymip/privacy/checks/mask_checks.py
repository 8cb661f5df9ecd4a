"""Masks of stars, and levels of columns: whether the rows of a release keep to them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anonymip.privacy.arrays import Flags, Ints
from anonymip.privacy.reading.cell_grammar import Cell
from anonymip.privacy.reading.hierarchies import Nodes
from anonymip.privacy.reading.manifest_entries import Column, Mask
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable, dense_rows, groups_of_pairs, surplus


def inexact_problems(published: PublishedTable) -> list[str]:
    """Return a sentence for each column with a cell that is neither exact nor a star."""
    return [
        sentence
        for attribute, column in enumerate(published.columns)
        for sentence in published.cell_problems(
            attribute,
            [cell.suppressed or _is_exact(column, cell) for cell in published.cells[attribute]],
            "is neither exact nor a star",
        )
    ]


def mask_problems(published: PublishedTable, mask: Mask, exempt: Flags) -> list[str]:
    """Return which stars are none of the mask, and which rows of a pattern of single use differ.

    `exempt`: (n,) rows that were suppressed as a whole. Complexity: O(m n log n), and for each set
    of starred columns the length of the mask.
    """
    stars = published.suppressed
    labels = dense_rows(stars.astype(np.int8))
    _, first = np.unique(labels, return_index=True)
    allowed = np.array(
        [
            mask.allows(
                [name for name, star in zip(published.names, stars[row], strict=True) if star],
                published.m,
            )
            for row in first
        ],
        np.bool_,
    )
    problems = []
    wrong = np.flatnonzero(~allowed[labels] & ~exempt)
    if len(wrong):
        problems.append(
            f"The stars of {len(wrong)} rows are no pattern of the mask; published row "
            f"{wrong[0] + 1} is the first."
        )
    if mask.single_use:
        # A row that differs from the first one of its pattern.
        classes = published.classes()
        other = np.flatnonzero(classes != classes[first][labels])
        if len(other):
            problems.append(
                f"Published rows {first[labels[other[0]]] + 1} and {other[0] + 1} have stars in "
                "the same columns and differ, and a pattern may serve one row only."
            )
    return problems


def level_problems(
    published: PublishedTable,
    levels: Mapping[str, int],
    hierarchies: Mapping[str, Nodes],
    exempt: Flags,
) -> list[str]:
    """Return a sentence for each column with a cell that is not on the column's level.

    Level 0 is the exact value. Level l of a hierarchical column is the l-th label behind the value
    on its path, or the root where the path is shorter; of other columns level 1 is a star.
    `exempt`: (n,) rows that were suppressed as a whole.
    """
    problems: list[str] = []
    for attribute, column in enumerate(published.columns):
        level, nodes = levels[column.name], hierarchies.get(column.name)
        cells = published.cells[attribute]
        height = 1 if nodes is None else max(len(path) for path in nodes.paths) - 1
        if level > height:
            problems.append(
                f"The manifest declares level {level} of column {column.name!r}, which has "
                f"{height}."
            )
            continue
        if nodes is None:
            right = [cell.suppressed if level else _is_exact(column, cell) for cell in cells]
        else:
            labels = {path[min(level, len(path) - 1)] for path in nodes.paths}
            right = [cell.node in labels for cell in cells]
        problems += published.cell_problems(attribute, right, f"is not on level {level}", exempt)
    return problems


def recoded_problems(
    published: PublishedTable,
    records: Original,
    levels: Mapping[str, int],
    hierarchies: Mapping[str, Nodes],
    exempt: Flags,
) -> list[str]:
    """Return whether more rows than records look as the levels make a record look.

    A short path ends in the root, so that the root is on several levels: only the original says
    whether a cell is on the declared one for its record. `exempt`: (n,) rows that were suppressed
    as a whole. Complexity: O(m n log n).
    """
    rows = np.flatnonzero(~exempt)
    pairs: list[tuple[Ints, Ints]] = []
    for attribute, column in enumerate(published.columns):
        level, nodes = levels[column.name], hierarchies.get(column.name)
        cells, values = published.cells[attribute], records.levels[attribute].tolist()
        shown: list[object]
        if nodes is not None:
            path = {line[0]: line[min(level, len(line) - 1)] for line in nodes.paths}
            due, shown = [path.get(value) for value in values], [cell.node for cell in cells]
        elif level:
            due = ["*"] * len(values)
            shown = ["*" if cell.suppressed else None for cell in cells]
        else:
            due, shown = values, [next(iter(cell.members), None) for cell in cells]
        number = {one: place for place, one in enumerate(dict.fromkeys([*due, *shown]))}
        looks, are = (np.array([number[one] for one in some], np.int64) for some in (due, shown))
        pairs.append((looks[records.codes[:, attribute]], are[published.codes[rows, attribute]]))
    return [
        f"Published row {rows[place] + 1} is one of more rows than records that look so on the "
        "levels."
        for place in surplus(*groups_of_pairs(pairs, records.n, len(rows)))
    ]


def _is_exact(column: Column, cell: Cell) -> bool:
    """Return whether a cell shows a value as it is; a group of a single value does not."""
    if column.is_node:
        return cell.members == (cell.node,)
    return len(cell.members) == 1
