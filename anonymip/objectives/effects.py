"""How much one cell can add to the loss of a record, attribute by attribute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata
from anonymip.objectives.tables import LossTables


def effects_of_cells(tables: LossTables, microdata: Microdata) -> NDArray[np.float64]:
    """Return (m,) the most that a cell of each attribute can add to the loss of a record."""
    effects = np.zeros(microdata.m)
    for r, column in enumerate(tables.range_columns):
        levels = microdata.levels[column].astype(float)
        slope = max(abs(tables.range_low[r]), abs(tables.range_high[r]))
        effects[column] = max(effects[column], slope * (levels[-1] - levels[0]))
    for s, column in enumerate(tables.set_columns):
        first = tables.set_start[s] + 1
        losses = tables.set_losses[first : first + tables.set_sizes[s]]
        effects[column] = max(effects[column], losses.max() - losses.min())
    for p, column in enumerate(tables.pair_columns):
        first, size = tables.pair_start[p], tables.pair_sizes[p]
        losses = tables.pair_losses[first : first + size * size]
        effects[column] = max(effects[column], losses.max() - losses.min())
    return effects
