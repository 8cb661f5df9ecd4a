"""The truth of a published table about the original records."""

from __future__ import annotations

import numpy as np

from anonymip.privacy.arrays import Ints
from anonymip.privacy.graph.consistency import WORK, PublishedMatches, containments_of
from anonymip.privacy.graph.regularity import GraphPart
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import (
    NAMED_PROBLEMS,
    PublishedTable,
    groups_of_pairs,
    surplus,
)

_BLOCK = 256  # rows that are compared with records at once, where some records are left out


def range_problems(published: PublishedTable, original: Original) -> list[str]:
    """Return a sentence for each column with a published cell that leaves the domain."""
    problems: list[str] = []
    for attribute, (column, cells) in enumerate(
        zip(published.columns, published.cells, strict=True)
    ):
        if column.is_numeric:
            low, high = original.bounds(attribute)
            misses = np.inf in original.levels[attribute]
            inside = [
                misses if cell.upper == np.inf else not (cell.lower < low or cell.upper > high)
                for cell in cells
            ]
        else:
            permissible = original.values(attribute)
            inside = [permissible.issuperset(map(str, cell.members)) for cell in cells]
        problems += published.cell_problems(attribute, inside, "leaves the domain")
    return problems


def truth_problems(
    published: PublishedTable, original: Original, *, in_order: bool, is_cover: bool = False
) -> list[str]:
    """Return why the original records cannot be handed out to the published rows.

    If the release has fewer rows, every row still needs a record of its own; the other records are
    left out. `in_order`: whether published row i belongs to original record i, or to the i-th one
    that is not left out; else any one-to-one assignment of records to rows will do. `is_cover`:
    whether sensitive and kept values follow an assignment of their own: then only the cells of row
    i are tied to record i.
    """
    untouched = original.paired(published.untouched)
    if in_order:
        tied = {} if is_cover else untouched
        check = _row_by_row if published.n == original.n else _in_turn
        problems = check(published, original, tied)
        if problems or not is_cover:
            return problems
    problems = [
        f"Column {name!r}, published row {row + 1}: the value occurs more often than in the "
        "original."
        for name, (before, after) in untouched.items()
        for row in surplus(before, after)
    ]
    if problems:
        return problems
    before, after = groups_of_pairs([*untouched.values()], original.n, published.n)
    problems = [
        f"Published row {row + 1}: the combination of sensitive and kept values occurs more "
        "often than in the original."
        for row in surplus(before, after)
    ]
    if problems:
        return problems
    # A row of stars takes any record: one is added for each record that is left out, to the rows
    # with its sensitive and kept values.
    count = original.n - published.n
    left_out = np.bincount(before) - np.bincount(after, minlength=int(before.max()) + 1)
    padded = published.with_rows_of_stars(count)
    after = np.concatenate([after, np.repeat(np.arange(len(left_out)), left_out)])
    part = GraphPart(
        PublishedMatches(original, padded, before, after, alike=True), first=WORK.first_edges
    )
    short = part.lacking(1)
    if not len(short):
        return []
    found = part.deficient_records(short[0], 1)
    row, spare = int(original.rows[found.example]) + 1, int(left_out[before[found.example]])
    if not found.available:
        shown = "that shows its sensitive and kept values"
        return [f"Original row {row} fits into no published row {shown}."]
    return [
        f"{found.size} original records, row {row} among them, fit into only "
        f"{found.available - spare} published rows that show their sensitive and kept values"
        + (f", and no more than {spare} of them may be left out." if spare else ".")
    ]


def _row_by_row(
    published: PublishedTable, original: Original, untouched: dict[str, tuple[Ints, Ints]]
) -> list[str]:
    containments = containments_of(published, original)
    cells = zip(containments, original.codes.T, published.codes.T, strict=True)
    wrong = [~containment.holds(before, after) for containment, before, after in cells]
    wrong += [before != after for before, after in untouched.values()]
    names = (*published.names, *untouched)
    return [
        f"Column {name!r}, published row {row + 1}: the cell "
        f"{'is not' if name in untouched else 'does not contain'} the original value."
        for name, rows in zip(names, wrong, strict=True)
        for row in np.flatnonzero(rows)[:NAMED_PROBLEMS]
    ]


def _in_turn(
    published: PublishedTable, original: Original, untouched: dict[str, tuple[Ints, Ints]]
) -> list[str]:
    """Give every row, in order, the first record behind the last one given that fits it.

    If any choice of records in order works, this one does: a record that comes earlier leaves no
    fewer for the rows that follow. Rows and records are compared a block at a time; complexity
    O(m n) and a block for each record that is left out.
    """
    containments = containments_of(published, original)
    row, skipped = 0, 0
    most = original.n - published.n
    while row < published.n:
        rows = np.arange(row, min(row + _BLOCK, published.n))
        records = rows + skipped
        fits = np.ones(len(rows), np.bool_)
        for attribute, containment in enumerate(containments):
            fits &= containment.holds(
                original.codes[records, attribute], published.codes[rows, attribute]
            )
        for before, after in untouched.values():
            fits &= before[records] == after[rows]
        if fits.all():
            row += len(rows)
            continue
        row += int(np.argmin(fits))
        skipped += 1
        if skipped > most:
            behind = f"Published row {row + 1}: no original record behind those of the rows before"
            return [f"{behind} it fits, if only {most} are left out."]
    return []
