"""Units in which a model measures ends of ranges, so that tolerances of solvers stay harmless.

An end that enters the loss as it is may be off by a tolerance: so is the loss, by no more. Where a
table gives the loss of every range, an end that is off by a tolerance may stand for another range,
and 0 cannot be told from 1 beside a billion: the ends of such columns are counted in ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata
from anonymip.objectives.kernels.effects import effects_of_cells
from anonymip.objectives.language.tables import LossTables

#: Ends of at most this magnitude, in columns at least as wide as the second number, are measured
#: as they are. Solvers let a row be violated by 1e-6 to 1e-7 whatever its unit: on timestamps that
#: is less than a digit, on a column 1e-6 wide it is more than the column.
_LARGEST_END = 1e5
_NARROWEST = 1.0
#: A step of 1 that costs less than this share of the largest effect of a cell is measured in
#: spans: presolve of HiGHS 1.15 substitutes by rows with coefficients of 1e-8 beside 1, and loses
#: optima.
_SMALLEST_STEP = 1e-4
#: Values nearer to each other than this share of the span are told apart by their ranks.
_NEAR = 1e-3


@dataclass(frozen=True, eq=False)
class Scaling:
    """An end is origin + unit * variable; in ranked columns, the level of this rank.

    Parameters
    ----------
    origin, unit
        (m,) float64, in the unit of each attribute.
    whole
        (m,) bool, whether whole numbers stay whole.
    ranked
        For each ranked column its levels, ascending.
    """

    origin: NDArray[np.float64]
    unit: NDArray[np.float64]
    whole: NDArray[np.bool_]
    ranked: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)

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
        ranked = _ranked(microdata, tables)
        counted = np.isin(np.arange(microdata.m), list(ranked))
        return cls(
            np.where(plain | counted, 0.0, low),
            np.where(plain | shifted | counted | (span == 0), 1.0, span),
            whole & (plain | shifted) & ~counted,
            ranked,
        )

    def scaled(self, ends: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (n, m) values of variables for (n, m) ends."""
        scaled: NDArray[np.float64] = (ends - self.origin) / self.unit
        for column, levels in self.ranked.items():
            scaled[:, column] = np.searchsorted(levels, ends[:, column])
        return scaled

    def levels(self, microdata: Microdata, column: int) -> NDArray[np.float64]:
        """Return (levels,) values of variables for the levels of a column of numbers."""
        levels = microdata.levels[column].astype(np.float64)
        if column in self.ranked:
            return np.arange(len(levels), dtype=np.float64)
        return np.asarray((levels - self.origin[column]) / self.unit[column], np.float64)


def _ranked(microdata: Microdata, tables: LossTables) -> dict[int, NDArray[np.float64]]:
    """Return the levels of the columns whose ends are counted in ranks."""
    linear = set(map(int, tables.range_columns))
    ranked = {}
    for column in map(int, tables.pair_columns):
        attribute = microdata.attributes[column]
        if column in linear or attribute.hierarchy is not None:
            continue
        levels = microdata.levels[column].astype(np.float64)
        if len(levels) > 1 and np.diff(levels).min() < _NEAR * (levels[-1] - levels[0]):
            ranked[column] = levels
    return ranked


def _is_step_visible(microdata: Microdata, tables: LossTables) -> NDArray[np.bool_]:
    """Return (m,) whether a range wider by 1 costs a visible share of the largest effect."""
    smallest = _SMALLEST_STEP * float(effects_of_cells(tables, microdata).max(initial=0.0))
    visible = np.ones(microdata.m, np.bool_)
    for r, column in enumerate(tables.range_columns):
        visible[column] = max(abs(tables.range_low[r]), abs(tables.range_high[r])) >= smallest
    return visible
