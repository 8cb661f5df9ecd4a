"""How much one cell can add to the loss of a record, attribute by attribute."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.tables import LossTables

#: Steps below this share of the largest effect are rounding.
_ROUNDING = 1e-11


def least_step(tables: LossTables, microdata: Microdata) -> float:
    """Return the least that a cell which takes in one more value costs more; infinite if nothing.

    What rounding makes of equal losses does not count, nor steps as small.
    """
    steps = [np.empty(0)]
    for r, column in enumerate(tables.range_columns):
        gaps = np.diff(microdata.levels[column].astype(float))
        steps += [abs(slope) * gaps for slope in (tables.range_low[r], tables.range_high[r])]
    for s in range(len(tables.set_columns)):
        first = tables.set_start[s] + 1
        steps.append(np.abs(np.diff(tables.set_losses[first : first + tables.set_sizes[s]])))
    for p in range(len(tables.pair_columns)):
        first, size = tables.pair_start[p], tables.pair_sizes[p]
        losses = tables.pair_losses[first : first + size * size].reshape(size, size)
        # Ranges from row to column, and what one more value at either end adds.
        wider = np.triu_indices(size, 1)
        whole = losses[wider]
        steps.append(np.abs(whole - losses[wider[0], wider[1] - 1]))
        steps.append(np.abs(whole - losses[wider[0] + 1, wider[1]]))
    every = np.concatenate(steps)
    every = every[every > _ROUNDING * effects_of_cells(tables, microdata).max(initial=0.0)]
    return float(every.min(initial=np.inf))


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


def size_of_exact(tables: LossTables, microdata: Microdata) -> float:
    """Return how large the terms are that the loss of an exactly published record is summed of.

    They may cancel, and what a record loses beyond them may be tiny; rounding follows their size.
    """
    size = abs(tables.constant)
    for r, column in enumerate(tables.range_columns):
        largest = float(np.abs(microdata.values[:, column] - tables.range_origin[r]).max())
        size += abs(float(tables.range_low[r] + tables.range_high[r])) * largest
    for s, start in enumerate(tables.set_start):
        size += abs(float(tables.set_losses[start + min(1, tables.set_sizes[s])]))
    for p, start in enumerate(tables.pair_start):
        width = int(tables.pair_sizes[p])
        exact = tables.pair_losses[start : start + width * width : width + 1]
        size += float(np.abs(exact).max(initial=0.0))
    return size
