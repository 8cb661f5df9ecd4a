"""Claims of a manifest about loss and optimality, computed again from the published table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from anonymip.privacy.arrays import Codes, Floats
from anonymip.privacy.reading.cell_grammar import Cell
from anonymip.privacy.reading.manifest_entries import StarCosts
from anonymip.privacy.reading.original import Original
from anonymip.privacy.reading.published import PublishedTable
from anonymip.privacy.reading.release_manifest import Manifest

#: Two computations of one loss agree up to this, relatively: all terms of it are positive, so what
#: is small is as exact as what is large.
_SAME_LOSS = 1e-9
_CLOSED_GAP = 1e-6  # solvers stop within this, relatively; a wider gap is never optimal
_NCP_OBJECTIVES = ("gcp", "ncp")  # objectives whose value is the sum of the normalised penalties


def is_ncp(name: str) -> bool:
    """Return whether an objective's value follows from the ncp and the suppressed records."""
    return name.lower() in _NCP_OBJECTIVES


def normalised_penalty(
    published: PublishedTable, original: Original, left_out: int = 0, weights: Floats | None = None
) -> float:
    """Return the ncp: the sum over all cells of the share of the domain that they leave open.

    A numeric cell costs (upper - lower) / (U - L), a categorical one (values - 1) / (|A| - 1), a
    suppressed one 1; a domain of a single value costs 0. A missing number costs 0, and 1 where the
    cell may be any number as well. The `left_out` suppressed records without a row cost what a row
    of stars costs. `weights`: (n,) of the rows; a record without a row has their mean. None for 1.
    Complexity: O(n m).

    K. Doka et al., "k-anonymization by freeform generalization", 2015, equations 1 to 3.
    """
    total = float(left_out * published.m * (1 if weights is None else weights.mean()))
    for codes, penalties in _penalties(published, original):
        total += float(np.bincount(codes, weights, minlength=len(penalties)) @ penalties)
    return total


def loss_problems(manifest: Manifest, ncp: float, cells: int) -> list[str]:
    """Return where the manifest's losses differ from the recomputed ones.

    `ncp`: the recomputed sum of penalties. `cells`: n times m.
    """
    claims = [("ncp", manifest.loss.ncp, ncp), ("gcp", manifest.loss.gcp, ncp / cells)]
    if is_ncp(manifest.loss.name):
        price = manifest.loss.suppression_price
        hidden = manifest.left_out.suppressed + manifest.suppressed
        other = 0.0 if price is None else hidden * (manifest.m - price)
        claims.append(("objective value", manifest.loss.objective, ncp - other))
    return [
        f"The manifest claims {name} {claimed:.10g}; the published table gives {found:.10g}."
        for name, claimed, found in claims
        if not _same(claimed, found)
    ]


def weighted_problems(
    manifest: Manifest, published: PublishedTable, original: Original, weights: Floats
) -> list[str]:
    """Return where the loss by sampling weights differs from that of the published table.

    `weights`: (n,) as the rows show them. Complexity: O(n m).
    """
    hidden, claimed = manifest.left_out.suppressed, manifest.loss.weighted_gcp
    total = normalised_penalty(published, original, hidden, weights)
    found = total / (published.m * weights.mean() * (published.n + hidden))
    if claimed is not None and _same(claimed, found):
        return []
    return [f"The manifest claims a weighted gcp of {claimed}; the rows give {found:.10g}."]


def star_cost_problems(
    manifest: Manifest, costs: StarCosts, published: PublishedTable, original: Original
) -> list[str]:
    """Return where the objective value differs from what the cells that are not exact cost.

    A suppressed record without a row costs what a row of stars costs. Complexity: O(m n log n).

    R. Bredereck et al., "Pattern-Guided k-Anonymity", 2013, Section 1.
    """
    penalties = _penalties(published, original)
    lossy = np.stack([charged[codes] > 0 for codes, charged in penalties], axis=1)
    patterns, rows = np.unique(lossy, axis=0, return_counts=True)
    starred = [
        ([name for name, lost in zip(published.names, pattern, strict=True) if lost], count)
        for pattern, count in zip(patterns, rows.tolist(), strict=True)
    ]

    def cost(names: Sequence[str]) -> float:
        single = sum(costs.columns.get(name, 1.0) for name in names)
        return costs.patterns.get(frozenset(names), single)

    found = sum(count * cost(names) for names, count in starred)
    hidden, price = manifest.left_out.suppressed, manifest.loss.suppression_price
    found += hidden * cost(published.names)
    if price is not None:
        found -= (hidden + manifest.suppressed) * (cost(published.names) - price)
    if _same(manifest.loss.objective, found):
        return []
    claimed = f"The manifest claims objective value {manifest.loss.objective:.10g}"
    return [f"{claimed}; the published table gives {found:.10g}."]


def optimality_problems(manifest: Manifest) -> list[str]:
    """Return where bound, gap and status contradict each other or the objective value."""
    problems: list[str] = []
    value, bound, gap = manifest.loss.objective, manifest.loss.bound, manifest.loss.gap
    if bound is not None and bound - value > _CLOSED_GAP * abs(value):
        problems.append(f"The bound {bound:.10g} lies above the objective value {value:.10g}.")
    expected = relative_gap(value, bound)
    if (gap is None) != (expected is None):
        problems.append("The manifest has a gap without a bound, or a bound without a gap.")
    elif gap is not None and expected is not None and not _same(gap, expected):
        problems.append(
            f"The manifest claims a gap of {gap:.10g}; objective and bound give {expected:.10g}."
        )
    if manifest.loss.status == "optimal":
        if expected is None or expected > _CLOSED_GAP:
            problems.append("The status is optimal but the bound does not close the gap.")
        elif manifest.loss.proof is None:
            problems.append("The status is optimal but nothing proves the bound.")
    elif bound is not None and manifest.loss.proof is not None and bound >= value:
        problems.append("The bound reaches the objective value but the status is not optimal.")
    return problems


def relative_gap(value: float, bound: float | None) -> float | None:
    """Return (value - bound) / |value|; 0 if the bound reaches the value, None if undefined."""
    if bound is None:
        return None
    if bound >= value:
        return 0.0
    return (value - bound) / abs(value) if value else None


def _penalties(published: PublishedTable, original: Original) -> Iterator[tuple[Codes, Floats]]:
    """Yield of each column the cells of the rows, and what each distinct cell is charged."""
    for attribute, column in enumerate(published.columns):
        if column.is_numeric:
            low, high = original.bounds(attribute)
            width = high - low
        else:
            width = len(original.values(attribute)) - 1.0
        penalties = [_penalty(cell, width) for cell in published.cells[attribute]]
        yield published.codes[:, attribute], np.array(penalties, np.float64)


def _penalty(cell: Cell, width: float) -> float:
    if cell.suppressed:
        return 1.0
    if cell.upper == np.inf:
        return float(cell.lower < cell.upper)
    if width == 0:
        return 0.0
    if np.isnan(cell.lower):
        return (len(cell.members) - 1) / width
    return (cell.upper - cell.lower) / width


def _same(first: float, second: float) -> bool:
    return abs(first - second) <= _SAME_LOSS * max(abs(first), abs(second))
