"""Parts of a table: cuts by values, chosen on a sample, and what no class across a cut costs less.

A cut sends the rows whose value is at most a threshold one way and all others the other way, those
that miss the value among the others. Values are numbers; those of categories are the first twelve
hexadecimal digits of the SHA-256 of their text, so that a published cut names no value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anonymip.instances import Attribute, TableFormat
from anonymip.instances.columns import missing_rows, numeric_column, text_column
from anonymip.objectives.language.record import CellBatch, cells_of_sets
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.tolerances import LOSS_RELATIVE


@dataclass(frozen=True)
class CutNumbers:
    """Numbers that steer where a table is cut; chosen by ``python -m benchmarks parts``."""

    #: Share of a domain within which rows feel a cut: classes lose where they would cross it, and
    #: the bound where a neighbour may lie beyond it.
    felt: float = 0.25
    #: The least share of the rows on one side of a cut.
    least_side: float = 0.2
    #: Rows of the sample that cuts are chosen on.
    sample: int = 200_000


NUMBERS = CutNumbers()


@dataclass(frozen=True)
class Cut:
    """A cut of an attribute, and what lies on its two sides: cuts, or numbers of parts.

    `at_most`: highest value of the lower side. `below, above`: the values next to it on either side
    among all that the table holds; the threshold itself where that is not known.
    """

    attribute: int
    at_most: float
    lower: Cut | int
    higher: Cut | int
    below: float = np.nan
    above: float = np.nan

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the cut as a manifest has it."""
        sides = {
            side: {"part": one} if isinstance(one, int) else one.to_dict(names)
            for side, one in (("lower", self.lower), ("higher", self.higher))
        }
        return {"column": names[self.attribute], "at_most": self.at_most, **sides}


Tree = Cut | int


def keys_of(
    frame: pd.DataFrame, attributes: Sequence[Attribute], table: TableFormat
) -> NDArray[np.float64]:
    """Return (n, m) what cuts compare: numbers as they are counted, digests of texts.

    What is missing is infinite, and so are values of hierarchies, which are not cut. Domains do not
    matter: rows that are left out may hold other values. Raises InputError naming column and row of
    a value that is no number where numbers belong.
    """
    keys = np.full((len(frame), len(attributes)), np.inf)
    plain = table.pointed_columns(frame, [one.name for one in attributes if one.kind == "numeric"])
    for a, declared in enumerate(attributes):
        if declared.hierarchy is not None:
            continue
        attribute = replace(declared, domain=None)
        present = np.flatnonzero(~missing_rows(frame[attribute.name], table.missing))
        series = plain[attribute.name].iloc[present]
        if attribute.is_numeric:
            keys[present, a] = attribute.scale.coarsened(numeric_column(series, attribute))
        else:
            place, texts = pd.factorize(text_column(series, attribute))
            if len(texts):
                keys[present, a] = np.array([digest(str(text)) for text in texts])[place]
    return keys


def digest(text: str) -> float:
    """Return the number that a cut compares of a text."""
    return float(int(hashlib.sha256(text.encode()).hexdigest()[:12], 16))


@dataclass(frozen=True)
class Sample:
    """Rows of a table that cuts are chosen on, and what is known of its values."""

    attributes: tuple[Attribute, ...]  # each with all that the table holds as its domain
    keys: Floats  # (s, m)
    weights: Floats  # (s,) rows of the table that each stands for
    #: By attribute the keys of all values, sorted; only some with their ends where it is shortened.
    levels: tuple[Floats, ...]
    shortened: frozenset[int]  # attributes of so many numbers that not all are kept


def choose_cuts(sample: Sample, rows: int) -> tuple[Tree, int]:
    """Return cuts into parts of at most about so many rows, and the number of parts.

    A part whose rows are all alike, or of which no cut leaves a fifth on either side, stays whole.
    """
    parts = iter(range(len(sample.keys) + 1))

    def grow(some: Ints) -> Tree:
        if sample.weights[some].sum() > rows:
            found = _best_cut(sample, some)
            if found is not None:
                low = sample.keys[some, found.attribute] <= found.at_most
                lower, higher = grow(some[low]), grow(some[~low])
                return replace(found, lower=lower, higher=higher)
        return next(parts)

    tree = grow(np.arange(len(sample.keys)))
    return tree, next(parts)


def _best_cut(sample: Sample, some: Ints) -> Cut | None:
    """Return the cut that the fewest of some rows feel, for its balance; None if there is none."""
    best, least = None, np.inf
    keys, weights = sample.keys[some], sample.weights[some]
    for a, attribute in enumerate(sample.attributes):
        values, place = np.unique(keys[:, a], return_inverse=True)
        mass = np.bincount(place.ravel(), weights) / weights.sum()
        share = np.cumsum(mass)[:-1]
        able = np.flatnonzero(
            (np.minimum(share, 1 - share) >= NUMBERS.least_side) & np.isfinite(values[:-1])
        )
        if not len(able):
            continue
        known = sample.levels[a][np.isfinite(sample.levels[a])]
        width = float(known[-1] - known[0]) or 1.0
        # Ties are those nearest the middle.
        for at in able[np.argsort(np.abs(share[able] - 0.5), kind="stable")][:64].tolist():
            low, high = float(values[at]), float(values[at + 1])
            if attribute.is_numeric:
                gaps = np.where(
                    values <= low, (high if np.isfinite(high) else low) - values, values - low
                )
                near = np.maximum(0.0, 1 - np.abs(gaps) / width / NUMBERS.felt)
                near[~np.isfinite(values)] = 0.0
            else:
                near = np.full(len(values), max(0.0, 1 - 1 / max(1, len(known) - 1) / NUMBERS.felt))
            cost = (float(near @ mass) + 1e-3) / (4 * share[at] * (1 - share[at]))
            if cost < least:
                all_known = None if a in sample.shortened else known
                best = _cut_between(a, attribute, low, high, all_known)
                least = cost
    return best


def _cut_between(
    a: int, attribute: Attribute, low: float, high: float, known: Floats | None
) -> Cut:
    """Return the cut above a value of the sample, with the values of the table next to it.

    `known`: all values of the table; None where not all are known, and any may lie at the cut.
    """
    # Of all that is not missing: no value either, least of all the largest one.
    at_most = float(np.finfo(np.float64).max)
    if np.isfinite(high):
        # No value of the table: what lies between those of a sample.
        at_most = (
            float(np.floor((low + high) / 2)) if not attribute.is_numeric else (low + high) / 2
        )
    at_most = at_most if low <= at_most < high else low
    if not attribute.is_numeric or attribute.publish == "set":
        return Cut(a, at_most, 0, 0)
    if not np.isfinite(high):
        # What is missing has no place in a range: cells count it alone.
        return Cut(a, at_most, 0, 0, at_most, -np.inf)
    if known is None:
        return Cut(a, at_most, 0, 0, at_most, at_most)
    lower, higher = known[known <= at_most], known[known > at_most]
    below = float(lower[-1]) if len(lower) else at_most
    above = float(higher[0]) if len(higher) else at_most
    return Cut(a, at_most, 0, 0, below, above)


def part_numbers(keys: Floats, tree: Tree) -> NDArray[np.int64]:
    """Return (n,) the part of each row."""
    numbers = np.empty(len(keys), np.int64)

    def send(rows: Ints, node: Tree) -> None:
        if isinstance(node, int):
            numbers[rows] = node
            return
        low = keys[rows, node.attribute] <= node.at_most
        send(rows[low], node.lower)
        send(rows[~low], node.higher)

    send(np.arange(len(keys)), tree)
    return numbers


def pruned(tree: Tree, counts: Ints, least: int) -> tuple[Tree, list[list[int]]]:
    """Return cuts without those that leave a side fewer rows than `least`, and what is joined.

    `counts`: (parts,) rows of each part. The second is, by new part, the old ones in it.
    """
    members: list[list[int]] = []

    def below(node: Tree) -> list[int]:
        return [node] if isinstance(node, int) else below(node.lower) + below(node.higher)

    def kept(node: Tree) -> Tree:
        if not isinstance(node, int):
            sides = (below(node.lower), below(node.higher))
            if all(counts[side].sum() >= least for side in sides):
                return replace(node, lower=kept(node.lower), higher=kept(node.higher))
        members.append(below(node))
        return len(members) - 1

    return kept(tree), members


def way_to(tree: Tree, part: int) -> list[tuple[Cut, bool]]:
    """Return the cuts between the whole table and a part, with whether it is on the lower side."""

    def find(node: Tree) -> Iterator[list[tuple[Cut, bool]]]:
        if isinstance(node, int):
            if node == part:
                yield []
            return
        for side, low in ((node.lower, True), (node.higher, False)):
            for rest in find(side):
                yield [(node, low), *rest]

    return next(find(tree))


def losses_across(problem: Problem, way: Sequence[tuple[Cut, bool]]) -> Floats:
    """Return (n,) what a record of a part loses at least in a set with one beyond a cut.

    A set that holds record i and one beyond the cut of attribute a covers in a both i's value and
    one of the other side: with a monotone loss it costs i no less than its exact cells do, spread
    in a to the next value of the other side, or of texts to one more. The least over the cuts,
    lowered by its rounding; infinite without cuts.

    `problem`: a part of the table, under the domains of the whole, with a monotone objective.
    """
    microdata = problem.microdata
    types = microdata.row_types()
    exact = cells_of_sets(microdata, types.first[:, None])
    least = np.full(len(types.first), np.inf)
    for cut, low in way:
        lower, upper, count = exact.lowers.copy(), exact.uppers.copy(), exact.counts.copy()
        a = cut.attribute
        count[:, a] = 2
        if microdata.attributes[a].publish == "range":
            if low:
                upper[:, a] = np.maximum(upper[:, a], cut.above)
            else:
                lower[:, a] = np.minimum(lower[:, a], cut.below)
        cells = CellBatch(lower, upper, count, exact.stars, exact.nodes)
        least = np.minimum(least, problem.compiled.record_losses(cells))
    with np.errstate(invalid="ignore"):
        least = np.where(np.isfinite(least), least - LOSS_RELATIVE * np.abs(least), least)
    found: Floats = least[types.inverse]
    return found
