"""What a record costs by the levels on which its attributes are published."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import UnsupportedObjective
from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.objectives.language.record import CellBatch
from anonymip.objectives.losses.penalties import GCP, HierarchyLoss, LeafLoss, WeightedLoss
from anonymip.objectives.losses.suppressions import Suppressions
from anonymip.tolerances import same_loss

#: Losses that are sums of terms of one attribute each, stars included.
_ADDITIVE = (GCP, HierarchyLoss, LeafLoss, Suppressions, WeightedLoss)


def level_costs(
    compiled: CompiledObjective, cells: Sequence[NDArray[np.int32]]
) -> list[NDArray[np.float64]]:
    """Return for each attribute (levels,) what a record pays for it on each level.

    Parameters
    ----------
    compiled
        The objective on the table.
    cells
        For each attribute (levels, L) the cell of each observed value: a node of its hierarchy;
        without one the value itself, or -1 for a star.

    Raises
    ------
    UnsupportedObjective
        If the loss is no sum over attributes, or what a level costs depends on the value.
    """
    objective = compiled.objective
    if type(objective) not in _ADDITIVE or getattr(objective, "patterns", None):
        names = "gcp, hierarchy-loss, leaf-loss, suppressions without costs of patterns, and "
        raise UnsupportedObjective(
            f"objective {compiled.name!r} is not known to be a sum over attributes, levels and "
            "stars included",
            remedy=f"Use {names}weighted-loss",
        )
    costs = []
    for a, own in enumerate(cells):
        losses = compiled.record_losses(_batch(compiled, a, own)).reshape(own.shape)
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


def _batch(compiled: CompiledObjective, a: int, own: NDArray[np.int32]) -> CellBatch:
    """Return the first record with attribute `a` as each of its cells, all others exact."""
    microdata = compiled.microdata
    shape = (own.size, microdata.m)
    lower = np.full(shape, np.nan)
    nodes = np.full(shape, -1, np.int32)
    stars = np.zeros(shape, np.bool_)
    for b, attribute in enumerate(microdata.attributes):
        codes = np.full(own.size, microdata.codes[0, b])
        if b == a:
            codes = np.tile(np.arange(own.shape[1]), len(own))
        if attribute.hierarchy is not None:
            nodes[:, b] = own.ravel() if b == a else microdata.leaves(b)[codes]
            continue
        if b == a:
            stars[:, b] = own.ravel() < 0
        if attribute.is_numeric:
            lower[:, b] = microdata.levels[b].astype(np.float64)[codes]
    lower[stars] = np.nan
    return CellBatch(lower, lower.copy(), np.where(stars, 0, 1), stars, nodes)
