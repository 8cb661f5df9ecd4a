"""Units of classes: whether the original can be handed out so that every class holds k of them.

A release shows no units. What can be held against the original is whether its records can be given
the published rows, each one that contains it, so that the rows of every class go to k units or
more. That is a flow: each record flows to a class, through a node for its unit and this class, and
from there either to one of the k places of the class that take a unit once, or to its other places.
Sensitive and kept values are looked at as far as that a class shows those of the record.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonymip.privacy.arrays import Ints
from anonymip.privacy.graph.consistency import PublishedMatches, joined_pairs
from anonymip.privacy.graph.regularity import largest_flow
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable, dense_rows, groups_of_pairs
from anonymip.privacy.reading.text_tables import distinct

#: Classes for each record, the tightest ones, in one flow after the other; the last are all.
_WIDTHS = (3, 24, 1 << 30)
#: Pairs of a record and a class that a flow has at most, and types of records listed at a time.
_MOST_PAIRS, _TYPES = 20_000_000, 1024


def units_by_class(labels: Ints, units: Ints) -> Ints:
    """Return (classes,) how many different units the rows of each class are of."""
    pairs = np.unique(np.stack([labels, units]), axis=1)
    return np.bincount(pairs[0], minlength=int(labels.max()) + 1)


def few_units(counts: Ints, k: int, name: str) -> list[str]:
    """Return a sentence about classes of fewer than k units, given those of each class."""
    few = int(np.sum(counts < k))
    if not few:
        return []
    return [f"{few} classes hold fewer than {k} units of {name!r}; the least {int(counts.min())}."]


def unit_problems(
    published: PublishedTable, original: Original, k: int, *, name: str, in_order: bool
) -> list[str] | None:
    """Return why the classes do not hold k units each; None if that was not found out.

    `in_order`: whether row i is made of record i, if there are as many. `name`: of the column with
    the units, which the original has. Complexity: O(n log n) in order; else that of a flow of n
    through up to `_MOST_PAIRS` arcs.
    """
    assert original.units is not None
    units = distinct(original.units.texts)[1]
    if in_order and published.n == original.n:
        return few_units(units_by_class(published.classes(), units), k, name)
    pairs = [*original.paired(published.untouched).values()]
    shown, shown_by = groups_of_pairs(pairs, original.n, published.n)
    # Types of records are those of one unit and one value, types of rows the classes.
    graph = PublishedMatches(original, published, dense_rows(np.stack([units, shown], axis=1)))
    first_of, sizes = graph.first_records, graph.row_units
    values = int(max(shown.max(), shown_by.max())) + 1
    known = np.unique(graph.row_type * values + shown_by)
    for width in _WIDTHS:
        found, listed = [], 0
        for begin in range(0, len(first_of), _TYPES):
            some = np.arange(begin, min(begin + _TYPES, len(first_of)))
            record, place = graph.rows_of(some, width)
            wanted = np.isin(place * values + shown[first_of[record]], known)
            found.append((record[wanted], place[wanted]))
            listed += len(record)
            if listed > _MOST_PAIRS:
                return None
        record, place = joined_pairs(found)
        placed = _placed(units[first_of], graph.record_units, record, place, sizes, k)
        # A class of fewer than k rows lacks rows as well.
        lacking = int(np.maximum(sizes, k).sum()) - placed
        if lacking <= 0:
            return []
    out = f"The original records cannot be handed out to the rows so that every class holds {k}"
    return [f"{out} units of {name!r}: {lacking} places are left over."]


def _placed(units: Ints, counts: Ints, record: Ints, place: Ints, sizes: Ints, k: int) -> int:
    """Return how many rows a largest flow hands out.

    `units, counts`: (t,) of each type of records. `record, place`: pairs of a type and a class.
    `sizes`: (classes,) rows; those with fewer than k have no other places.
    """
    keys, at = np.unique(place * (int(units.max()) + 1) + units[record], return_inverse=True)
    of_class = np.zeros(len(keys), np.int64)
    of_class[at] = place
    t, classes = len(units), len(sizes)
    # Nodes: the source, record types, units in classes, places for units, other places, the sink.
    middle, once = 1 + t, 1 + t + len(keys)
    others = once + classes
    sink = others + classes
    everyone, pairs = np.arange(classes), middle + np.arange(len(keys))
    arcs: Sequence[tuple[Ints, Ints, Ints]] = (
        (np.zeros(t, np.int64), 1 + np.arange(t), counts),
        (1 + record, middle + at, counts[record]),
        (pairs, once + of_class, np.ones(len(keys), np.int64)),
        (pairs, others + of_class, sizes[of_class]),
        (once + everyone, np.full(classes, sink), np.full(classes, k)),
        (others + everyone, np.full(classes, sink), np.maximum(sizes - k, 0)),
    )
    tail, head, capacity = (np.concatenate(part) for part in zip(*arcs, strict=True))
    tail, _, sent = largest_flow(tail, head, capacity, 0, sink)
    return int(sent[tail == 0].sum())
