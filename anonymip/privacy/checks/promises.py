"""Promises beside k: diversity and t-closeness of the classes, limits of generalization."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from anonymip.privacy.arrays import Flags, Ints
from anonymip.privacy.reading.cell_grammar import Cell
from anonymip.privacy.reading.hierarchies import Nodes
from anonymip.privacy.reading.manifest_entries import Column, Diversity, Limit
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable
from anonymip.privacy.reading.text_tables import aligned, distinct

_ROUNDING = 1e-9  # a range may exceed its cap by this share, which is rounding


def diversity_problems(
    published: PublishedTable, original: Original, promised: Diversity, sensitive: tuple[str, ...]
) -> list[str]:
    """Return a sentence for each sensitive column with a class that is not diverse.

    Rows of stars only are one class: who finds a person in no other looks among them. Where values
    have to be close, those of a class are compared with those of the original. Complexity: O(n log
    n) for each column.
    """
    if not sensitive:
        return ["The manifest promises a diversity, but names no sensitive column."]
    labels = published.classes()
    sizes = np.bincount(labels)
    problems = []
    for name in sensitive:
        before, after = aligned(original.untouched[name], published.untouched[name])
        poor = _poor_classes(labels, sizes, distinct(after)[1], promised)
        if promised.t is not None:
            poor |= far_classes(before, after, labels, promised.t, ordered=promised.ordered)
        if poor.any():
            row = int(np.argmax(poor[labels])) + 1
            problems.append(
                f"{int(poor.sum())} classes lack the promised diversity of {name!r}; published row "
                f"{row} lies in one."
            )
    return problems


def _poor_classes(labels: Ints, sizes: Ints, values: Ints, promised: Diversity) -> Flags:
    """Return (classes,) whether a class has too few values, or too much of one."""
    pairs, counts = np.unique(np.stack([labels, values]), axis=1, return_counts=True)
    kinds = np.bincount(pairs[0], minlength=len(sizes))
    largest = np.zeros(len(sizes), np.int64)
    np.maximum.at(largest, pairs[0], counts)
    # No class meets an l above its size; a larger one would not fit into the products below.
    over, under = min(promised.l, Fraction(int(sizes.max(initial=0)) + 1)).as_integer_ratio()
    # Whole numbers, so that a share of exactly 1/l passes.
    return np.asarray((kinds < promised.distinct) | (largest * over > sizes * under), np.bool_)


def cap_problems(
    published: PublishedTable, limits: tuple[Limit, ...], hierarchies: Mapping[str, Nodes]
) -> list[str]:
    """Return a sentence for each cap that a published cell exceeds; stars exceed none."""
    problems: list[str] = []
    for limit in limits:
        if limit.most is None:
            continue
        attribute = published.names.index(limit.attribute)
        column = published.columns[attribute]
        nodes = hierarchies.get(column.name)
        most = limit.most + _ROUNDING * abs(limit.most)
        within = [
            cell.suppressed or not _covered(column, cell, nodes) > most
            for cell in published.cells[attribute]
        ]
        problems += published.cell_problems(attribute, within, "exceeds its cap")
    return problems


def _covered(column: Column, cell: Cell, nodes: Nodes | None) -> float:
    """Return what a cap counts: the width of a range, the level of a node, values of a set."""
    if nodes is not None and cell.node is not None:
        return float(nodes.level[cell.node])
    if column.publish == "range":
        return cell.upper - cell.lower
    return float(len(cell.members))


def far_classes(
    everybody: NDArray[np.object_],
    published: NDArray[np.object_],
    labels: Ints,
    most: Fraction,
    *,
    ordered: bool,
) -> Flags:
    """Return (classes,) whether the values of a class lie farther than `most` from all values.

    `everybody`: (n,) sensitive values of all records, those left out included. `published, labels`:
    (rows,) values of the published rows, and their classes, from 0. `most`: the distance allowed,
    compared without rounding. `ordered`: whether numbers lie on a line, if all values are numbers;
    equal numbers are one value.

    The distance is half the sum of the differences between the shares of the values. On a line of v
    values it is the sum of the differences between the shares of values up to each, divided by
    v - 1. Complexity: O(n + classes x values), in whole numbers of any size.
    """
    values, codes = distinct(np.concatenate([everybody, published]))
    scale = _numbers(values) if ordered else None
    if scale is not None:
        line = sorted(set(scale))
        place = {number: at for at, number in enumerate(line)}
        codes = np.array([place[number] for number in scale], np.int64)[codes]
    n = len(everybody)
    totals = Counter(codes[:n].tolist())
    held: dict[int, Counter[int]] = {}
    for code, label in zip(codes[n:].tolist(), labels.tolist(), strict=True):
        held.setdefault(label, Counter())[code] += 1
    far = np.zeros(len(held), np.bool_)
    for label, own in held.items():
        size = sum(own.values())
        differences = [own[value] * n - totals[value] * size for value in sorted(totals)]
        if scale is None:
            distance = Fraction(sum(map(abs, differences)), 2 * size * n)
        else:
            total = sum(map(abs, accumulate(differences)))
            distance = Fraction(total, max(1, len(totals) - 1) * size * n)
        far[label] = distance > most
    return far


def _numbers(texts: list[str]) -> list[float] | None:
    """Return texts as numbers; None if one is none."""
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None
