"""Costs of a record by its pattern of stars, or by the levels of its attributes, alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from anonymip.errors import UnsupportedObjective
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.objectives.language.protocol import declares
from anonymip.objectives.language.record import CellBatch, cells_between
from anonymip.objectives.language.tables import LossTables, exact_losses, losses_of_pairs
from anonymip.runtime.arrays import Codes, Flags, Floats
from anonymip.tolerances import same_loss

#: Record losses that are computed to see whether records of one pattern cost the same.
_MOST = 5_000_000
_BATCH = 100_000


def pattern_costs(compiled: CompiledObjective, stars: Flags) -> Floats:
    """Return (p,) the loss of a record published through each of (p, m) patterns of stars.

    Under a loss that is a sum of terms of one attribute each, exact cells of an attribute must all
    cost the same, which its tables tell. Other losses are computed for every distinct record under
    every pattern. Raises UnsupportedObjective if records of one pattern differ in loss, there are
    too many to tell, or the loss is not a sum over published records.
    """
    if compiled.tier == "members" or compiled.aggregate != "sum":
        raise UnsupportedObjective(
            f"objective {compiled.name!r} is no sum over published records",
            remedy="Use suppressions, gcp, or a sum of losses of records",
        )
    microdata = compiled.microdata
    costs = compiled.record_losses(_cells(microdata, microdata.codes[[0] * len(stars)], stars))
    if declares(compiled.objective, "by_pattern"):
        return costs
    if compiled.has_tables:
        if not _exact_cells_alike(compiled.tables, microdata):
            raise _differing(compiled.name)
        return costs
    first = microdata.row_types().first
    if len(first) * len(stars) > _MOST:
        raise UnsupportedObjective(
            f"objective {compiled.name!r} is of the general tier, and {len(first):,} distinct "
            f"records under {len(stars):,} patterns are too many to see whether it looks at the "
            "pattern alone",
            remedy="Use suppressions, or fewer patterns",
        )
    step = max(1, _BATCH // len(stars))
    largest = float(np.abs(costs).max())
    for at in range(0, len(first), step):
        rows = first[at : at + step]
        losses = compiled.record_losses(
            _cells(
                microdata,
                np.repeat(microdata.codes[rows], len(stars), axis=0),
                np.tile(stars, (len(rows), 1)),
            )
        )
        for own in losses.reshape(len(rows), -1).tolist():
            pairs = zip(own, costs.tolist(), strict=True)
            if not all(same_loss(one, other, largest) for one, other in pairs):
                raise _differing(compiled.name)
    return costs


def _differing(name: str) -> UnsupportedObjective:
    return UnsupportedObjective(
        f"objective {name!r} charges records of one pattern differently",
        remedy="Use suppressions, gcp, or a loss that is 0 for exact cells",
    )


def _cells(microdata: Microdata, codes: Codes, stars: Flags) -> CellBatch:
    """Return the cells of exactly published records, by the (B, m) ranks of values, with stars."""
    return cells_between(microdata, codes, codes, np.where(stars, 0, 1), stars)


def _exact_cells_alike(tables: LossTables, microdata: Microdata) -> bool:
    """Return whether every exact cell of an attribute costs the same."""
    for r, column in enumerate(tables.range_columns):
        slope = float(tables.range_low[r] + tables.range_high[r])
        if slope != 0 and len(microdata.levels[int(column)]) > 1:
            return False
    for p in range(len(tables.pair_columns)):
        largest = float(np.abs(losses_of_pairs(tables, p)).max())
        losses = cast(list[float], exact_losses(tables, p).tolist())
        if not all(same_loss(losses[0], loss, largest) for loss in losses):
            return False
    return True


def is_additive(compiled: CompiledObjective) -> bool:
    """Return whether the loss of records at any levels is a sum of terms of one attribute each."""
    if compiled.aggregate != "sum" or not compiled.has_tables:
        return False
    # Where no cell is a star the tables of a loss prove it to be such a sum.
    hierarchies = all(each.hierarchy is not None for each in compiled.microdata.attributes)
    return hierarchies or declares(compiled.objective, "additive")


def level_costs(compiled: CompiledObjective, cells: Sequence[Codes]) -> list[Floats]:
    """Return for each attribute (levels,) what a record pays for it on each level.

    `cells`: for each attribute (levels, L) the cell of each observed value: a node of its
    hierarchy; without one the value itself, or -1 for a star. Raises UnsupportedObjective if the
    loss is no sum over attributes, or what a level costs depends on the value.
    """
    if not is_additive(compiled):
        raise UnsupportedObjective(
            f"objective {compiled.name!r} is not known to be a sum over attributes, levels and "
            "stars included",
            remedy="Use suppressions without costs of patterns or a certainty penalty, or give all "
            "attributes hierarchies",
        )
    costs = []
    for a, own in enumerate(cells):
        losses = compiled.record_losses(_one_changed(compiled.microdata, a, own)).reshape(own.shape)
        for level in losses:
            if not all(same_loss(float(level[0]), float(loss)) for loss in level):
                raise UnsupportedObjective(
                    f"objective {compiled.name!r} charges values of "
                    f"{compiled.microdata.names[a]!r} differently on one level",
                    remedy="Use suppressions, or a hierarchy whose groups on a level are of one "
                    "size (gcp) and whose paths are of one length (hierarchy-loss)",
                )
        if losses[0, 0] != 0 or (np.diff(losses[:, 0]) < 0).any():
            raise UnsupportedObjective(
                f"objective {compiled.name!r} charges exact cells, or less for a higher level",
                remedy="Use suppressions, gcp or hierarchy-loss",
            )
        costs.append(losses[:, 0])
    return costs


def _one_changed(microdata: Microdata, a: int, own: Codes) -> CellBatch:
    """Return the first record with attribute `a` as each of its cells, all others exact."""
    codes = np.repeat(microdata.codes[:1], own.size, axis=0)
    codes[:, a] = np.tile(np.arange(own.shape[1]), len(own))
    stars = np.zeros(codes.shape, np.bool_)
    if microdata.attributes[a].hierarchy is None:
        stars[:, a] = own.ravel() < 0
        return _cells(microdata, codes, stars)
    cells = _cells(microdata, codes, stars)
    assert cells.nodes is not None
    cells.nodes[:, a] = own.ravel()
    return cells
