"""Units in which a model measures ends of ranges, so that tolerances of solvers stay harmless."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata
from anonymip.objectives.effects import effects_of_cells
from anonymip.objectives.tables import LossTables

#: Ends of at most this magnitude, in columns at least as wide as the second number, are measured
#: as they are. Solvers let a row be violated by 1e-6 to 1e-7 whatever its unit: on timestamps that
#: is less than a digit, on a column 1e-6 wide it is more than the column.
_LARGEST_END = 1e5
_NARROWEST = 1.0
#: A step of 1 that costs less than this share of the largest effect of a cell is measured in
#: spans: presolve of HiGHS 1.15 substitutes by rows with coefficients of 1e-8 beside 1, and loses
#: optima.
_SMALLEST_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class Scaling:
    """An end is origin + unit * variable.

    Parameters
    ----------
    origin, unit
        (m,) float64, in the unit of each attribute.
    whole
        (m,) bool, whether whole numbers stay whole.
    """

    origin: NDArray[np.float64]
    unit: NDArray[np.float64]
    whole: NDArray[np.bool_]

    @classmethod
    def of(cls, microdata: Microdata, tables: LossTables) -> Scaling:
        """Return the scaling of a table: none, from the lowest value on, or to 0 to 1."""
        low, high = microdata.values.min(axis=0), microdata.values.max(axis=0)
        span = high - low
        whole = np.array([attribute.integer for attribute in microdata.attributes])
        plain = np.maximum(np.abs(low), np.abs(high)) <= _LARGEST_END
        plain &= (span >= _NARROWEST) | (span == 0)
        shifted = whole & (span <= _LARGEST_END)
        coarse = _is_step_visible(microdata, tables)
        plain, shifted = plain & coarse, shifted & coarse
        return cls(
            np.where(plain, 0.0, low),
            np.where(plain | shifted | (span == 0), 1.0, span),
            whole & (plain | shifted),
        )

    def scaled(self, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (n, m) values of variables for (n, m) ends."""
        return (ends - self.origin) / self.unit


def _is_step_visible(microdata: Microdata, tables: LossTables) -> NDArray[np.bool_]:
    """Return (m,) whether a range wider by 1 costs a visible share of the largest effect."""
    smallest = _SMALLEST_STEP * float(effects_of_cells(tables, microdata).max(initial=0.0))
    visible = np.ones(microdata.m, np.bool_)
    for r, column in enumerate(tables.range_columns):
        visible[column] = max(abs(tables.range_low[r]), abs(tables.range_high[r])) >= smallest
    return visible
