"""Bands: how often the values of a column occur, in groups of at least k records.

Shares before and after publication for a report that may be published. No band holds fewer than k
originals, and none is named by a value that fewer than k records have: band ends are round numbers,
outer bands are open. Suppressed records are in none: what they had is told by no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import cast

import numpy as np
from numpy.typing import NDArray

from anonymip.instances import Attribute
from anonymip.instances.hierarchies.tree import Tree
from anonymip.instances.scale import Unit, unit_of, unit_text
from anonymip.runtime.arrays import Codes, Floats
from anonymip.solution import Solution

#: Bands of a column at most: more are no picture. A linear scale of which one band holds a larger
#: share of the records gives way to a scale by ranks.
_MOST_BANDS, _CROWDED = 8, 0.5
#: Units of a date in a year.
_A_YEAR = {"day": 365.25, "month": 12.0, "quarter": 4.0, "year": 1.0, "decade": 0.1}


@dataclass(frozen=True)
class Band:
    """A group of values: what it is called, and the shares of the records that lie in it.

    `before`: of the originals, None for what no original is: a cell that is not told. `after`: of
    the published cells, each of which counts evenly for all values that it may stand for.
    """

    name: str
    before: float | None
    after: float


def least_records(solution: Solution) -> int:
    """Return how many records a count by value needs: k, or so many that k persons have them."""
    microdata, k = solution.problem.microdata, solution.problem.k
    rows = 1 if microdata.unit is None else int(np.bincount(microdata.counted_codes[:, 0]).max())
    return k * rows


def bands(solution: Solution, a: int, records: NDArray[np.integer]) -> list[Band]:
    """Return the bands of a quasi-identifier; none if there would be one alone.

    `records`: those that are published, none of them suppressed as a whole. Complexity: O(n log n),
    and the values of published sets.
    """
    microdata, cells, k = solution.problem.microdata, solution.description, least_records(solution)
    attribute = microdata.attributes[a]
    starred, bands_of = cells.suppressed[records, a], _of_values
    if attribute.publish == "range":
        # Numbers and missing values together are published as anything.
        lower, upper, beyond = cells.lower[records, a], cells.upper[records, a], microdata.beyond[a]
        starred = starred | ((upper == beyond) & (lower < beyond))
        bands_of = _of_numbers
    found = bands_of(solution, a, records, records[~starred], k)
    if len(found) < 2:
        return []
    if starred.any():
        found.append(Band("not told", None, float(starred.mean())))
    return found


def _of_numbers(
    solution: Solution, a: int, records: NDArray[np.integer], shown: NDArray[np.integer], k: int
) -> list[Band]:
    """Return the bands of numbers or dates, rising."""
    microdata, cells = solution.problem.microdata, solution.description
    attribute = microdata.attributes[a]
    originals = microdata.levels[a].astype(np.float64)[microdata.codes[records, a]]
    # Missing values are a band of their own, or of the last one if too few would be either.
    beyond = microdata.beyond[a]
    absent, numbers = int(np.sum(originals == beyond)), originals[originals != beyond]
    together = 0 < absent < k or 0 < len(numbers) < k
    told = shown[cells.lower[shown, a] != beyond]
    if not len(told) or not len(numbers):
        return []
    ends, counts = np.unique(
        np.stack([cells.lower[told, a], cells.upper[told, a]]), axis=1, return_counts=True
    )
    # A whole number or a step takes the room up to the next one.
    step = attribute.scale.precision if attribute.kind == "numeric" else 1.0
    step = float(step or attribute.is_whole or bool(np.all(numbers == np.rint(numbers))))
    lower, upper = ends[0], ends[1] + step
    cuts = _merged(_linear(attribute, lower.min(), upper.max(), step), numbers, k)
    if attribute.kind == "numeric" and _largest(cuts, numbers) > _CROWDED:
        middles = np.repeat((lower + upper) / 2, counts)
        by_rank = _merged(_by_rank(middles, step), numbers, k)
        cuts = min(cuts, by_rank, key=lambda one: _largest(one, numbers))
    width = np.where(upper > lower, upper - lower, 1.0)
    below = np.clip((cuts[:, None] - lower) / width, 0, 1)
    below = np.where(upper > lower, below, cuts[:, None] > lower)
    after = np.diff(np.concatenate([[0.0], below @ counts, [counts.sum()]]))
    place = np.searchsorted(cuts, numbers, side="right")
    before = np.bincount(place, minlength=len(cuts) + 1)
    values = [np.unique(numbers[place == band]) for band in range(len(cuts) + 1)]
    names = _names(attribute, cuts, step, values)
    label, unseen = microdata.table.label, len(shown) - len(told)
    if together:
        names[-1] += f", or {label}"
        before[-1], after[-1] = before[-1] + absent, after[-1] + unseen
    elif absent:
        names.append(label)
        before, after = np.append(before, absent), np.append(after, unseen)
    n = len(records)
    return list(map(Band, names, (before / n).tolist(), (after / n).tolist()))


def _largest(cuts: Floats, originals: Floats) -> float:
    """Return the share of the fullest band."""
    return float(np.bincount(np.searchsorted(cuts, originals, side="right")).max() / len(originals))


def _linear(attribute: Attribute, low: float, high: float, step: float) -> Floats:
    """Return round ends of bands of one width, of dates by the calendar."""
    if attribute.kind == "date":
        return _calendar(cast(Unit, attribute.scale.precision), int(low), int(high) - 1)
    width = step or 0.0
    least = (high - low) / _MOST_BANDS
    if least > width:
        power = 10.0 ** np.floor(np.log10(least))
        width = power * next(digit for digit in (1, 2, 5, 10) if digit * power >= least * 0.9999)
        if step:
            width = max(step, np.ceil(width / step) * step)
    if not width:
        return np.empty(0)
    return np.arange(np.floor(low / width) + 1, np.ceil(high / width)) * width


def _calendar(unit: Unit, low: int, high: int) -> Floats:
    """Return the first units of months, quarters, years or decades, whichever are few enough."""
    years = [int(unit_text(end, unit)[:4]) for end in (low, high)]
    months = 12 * (high - low) / _A_YEAR[unit] / _MOST_BANDS
    widths = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
    width = next((width for width in widths if width >= months), 6000)
    begin = 12 * years[0] // width * width
    starts = range(begin, 12 * (years[1] + 1), width)
    days = [date(month // 12, month % 12 + 1, 1) for month in starts if 12 <= month < 119988]
    numbers = np.unique(np.array([unit_of(day, unit) for day in days], np.float64))
    return numbers[(numbers > low) & (numbers <= high)]


def _by_rank(middles: Floats, step: float) -> Floats:
    """Return ends between which as many published cells lie each, rounded to two digits."""
    ranks = np.quantile(middles, np.arange(1, _MOST_BANDS) / _MOST_BANDS)
    rounded = np.array([float(f"{value:.1e}") for value in ranks])
    if step:
        rounded = np.ceil(rounded / step) * step
    return np.unique(rounded)


def _merged(cuts: Floats, originals: Floats, k: int) -> Floats:
    """Return the ends that leave at least k originals in every band."""
    counts = np.bincount(np.searchsorted(cuts, originals, side="right"), minlength=len(cuts) + 1)
    kept: list[float] = []
    held = 0
    for cut, count in zip(cuts.tolist(), counts.tolist(), strict=False):
        held += count
        if held >= k:
            kept.append(cut)
            held = 0
    if kept and held + counts[-1] < k:
        kept.pop()
    return np.array(kept, np.float64)


def _names(attribute: Attribute, cuts: Floats, step: float, values: list[Floats]) -> list[str]:
    """Return what the bands are called; the outer ones are open, so that nobody learns extremes."""
    if not len(cuts):
        return ["any number"]

    def text(number: float) -> str:
        if attribute.kind == "date":
            return unit_text(int(number), cast(Unit, attribute.scale.precision))
        return f"{number:.10g}"

    names = [f"{'before' if attribute.kind == 'date' else 'below'} {text(cuts[0])}"]
    for low, high in pairwise(cuts.tolist()):
        last = high - step
        to = f"to {text(last)}" if step else f"to below {text(high)}"
        names.append(text(low) if step and low == last else f"{text(low)} {to}")
    names.append(f"{text(cuts[-1])} or {'later' if attribute.kind == 'date' else 'more'}")
    # Open bands that hold no more than one number are called by it.
    if step and (attribute.scale.is_plain or attribute.kind == "date"):
        for band, end in ((0, cuts[0] - step), (-1, cuts[-1])):
            if len(values[band]) == 1 and values[band][0] == end:
                names[band] = text(end)
    return names


def _grouped(tree: Tree, held: NDArray[np.integer]) -> Codes:
    """Return (leaves,) the node each value counts with: few, but not one, for those `held`."""
    nodes = np.arange(tree.leaves, dtype=np.int32)
    for level in range(1, tree.height):
        if len(np.unique(nodes[held])) <= _MOST_BANDS:
            break
        above = tree.parent[nodes]
        coarser = np.where(tree.level[above] <= level, above, nodes)
        if len(np.unique(coarser[held])) > 1:
            nodes = coarser
    return nodes


def _of_values(
    solution: Solution, a: int, records: NDArray[np.integer], shown: NDArray[np.integer], k: int
) -> list[Band]:
    """Return the bands of texts: the commonest values that k records have, and all others."""
    microdata, cells = solution.problem.microdata, solution.description
    attribute, level = microdata.attributes[a], microdata.levels[a]
    codes = microdata.codes[records, a].astype(np.int64)
    if attribute.hierarchy is not None:
        tree, leaf = attribute.hierarchy.tree, microdata.leaves(a)
        codes = leaf[codes]
        nodes, counts = np.unique(cells.nodes[shown, a], return_counts=True)
        first, last = tree.first[nodes], tree.last[nodes]
        edges = np.zeros(tree.leaves + 1)
        np.add.at(edges, first, counts / (last - first + 1))
        np.subtract.at(edges, last + 1, counts / (last - first + 1))
        after = np.cumsum(edges)[:-1]
        nodes, group = np.unique(_grouped(tree, np.unique(codes)), return_inverse=True)
        names, codes = np.array(tree.labels, dtype=object)[nodes], group[codes]
        after = np.bincount(group, after).astype(np.float64)
    else:
        names = np.array([f"{one:.10g}" if attribute.is_numeric else one for one in level], object)
        spans = np.stack([cells.members.start[shown, a], cells.members.stop[shown, a]])
        (start, stop), counts = np.unique(spans, axis=1, return_counts=True)
        sizes = stop - start
        places = np.arange(sizes.sum()) + np.repeat(start - np.cumsum(sizes) + sizes, sizes)
        weights = np.repeat(counts / np.maximum(sizes, 1), sizes)
        shared = cells.members.codes[places]
        after = np.bincount(shared, weights, len(names)).astype(np.float64)
    before = np.bincount(codes, minlength=len(names))
    order = np.argsort(-before, kind="stable")
    told = int((before[order[: _MOST_BANDS - (len(names) > _MOST_BANDS)]] >= k).sum())
    # Too few others are hidden by one more value.
    while told and 0 < before[order[told:]].sum() < k:
        told -= 1
    n, chosen, rest = len(records), order[:told], order[told:]
    if attribute.kind == "date":
        chosen = np.sort(chosen)
    found = [Band(str(names[one]), float(before[one] / n), float(after[one] / n)) for one in chosen]
    if before[rest].sum() or after[rest].sum() > 1e-9 * n:
        others = Band("all others", float(before[rest].sum() / n), float(after[rest].sum() / n))
        found.append(others)
    return found
