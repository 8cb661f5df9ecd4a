"""A release out of the relaxation: columns used most are kept, and the rest is solved again.

Columns are kept in steps. Those that the linear program uses nearly as whole are kept together, at
least one each time; then it is solved again with them, and new columns are priced for the rows that
are left, which the old ones suit less and less.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Assignment, Classes
from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.exact.column_generation.relaxation.columns import Columns
from anonymip.exact.column_generation.relaxation.loop import HEURISTIC_NODES
from anonymip.exact.column_generation.relaxation.master import Master, MasterPoint
from anonymip.exact.column_generation.relaxation.multipliers import Multipliers
from anonymip.exact.column_generation.relaxation.prices import Prices
from anonymip.exact.column_generation.releases import release_of
from anonymip.heuristics.growing.joining import place_leftovers
from anonymip.runtime.budget import Budget

#: Rounds of pricing after each step.
_ROUNDS = 15
#: A column counts from this share on; reduced costs this near to 0 are none, in units.
_USED, _NEGATIVE = 1e-6, 1e-9


def dive(master: Master, prices: Prices, budget: Budget, share: float = 0.5) -> Assignment | None:
    """Return a release made of columns that the master uses; None if none came out.

    Parameters
    ----------
    master
        Gets further columns, and is left as it was otherwise.
    prices
        Of its columns.
    budget
        Ends it, without a release.
    share
        Columns used at least so much are kept together.
    """
    kept = _Kept(master, share)
    try:
        complete = _dive(kept, prices, budget)
    finally:
        kept.free()
    if not complete:
        return None
    columns = master.known.all()
    times = np.zeros(len(columns), np.int64)
    times[: len(kept.times)] = kept.times
    return _completed(master.rules, columns, times)


def _dive(kept: _Kept, prices: Prices, budget: Budget) -> bool:
    """Keep columns until none is left to keep; return whether there was time."""
    point = kept.master.solve(budget)
    while point is not None and budget.stop_reason() is None:
        if not kept.extend(point):
            return True
        point = kept.master.solve(budget)
        for _ in range(_ROUNDS):
            if point is None or not kept.rows_left() or not kept.price(prices, point, budget):
                break
            point = kept.master.solve(budget)
    return False


class _Kept:
    """Columns that are kept, and what they leave."""

    def __init__(self, master: Master, share: float) -> None:
        self.master, self._share = master, share
        self.times = np.zeros(len(master.known), np.int64)
        self._left = master.rules.coverage.copy()

    def rows_left(self) -> int:
        """Return how many rows no column kept holds."""
        return int(self._left.sum())

    def extend(self, point: MasterPoint) -> bool:
        """Keep the columns that are used most and fit, and return whether there are any."""
        rules, columns = self.master.rules, self.master.known.all()
        self.times = np.append(self.times, np.zeros(len(columns) - len(self.times), np.int64))
        more = point.shares - self.times
        found = False
        for column in np.argsort(-more, kind="stable").tolist():
            if more[column] < (self._share if found else _USED):
                break
            types, counts = np.unique(columns.of(column), return_counts=True)
            fits = int((self._left[types] // counts).min())
            rest = self.rows_left() - int(counts.sum())
            # Fewer rows than a column holds would be left without one.
            if not fits or 0 < rest < rules.smallest:
                continue
            often = min(fits, max(1, int(more[column] + _USED)))
            self._left[types] -= often * counts
            self.times[column] += often
            found = True
        self.master.require(self.times)
        return found

    def price(self, prices: Prices, point: MasterPoint, budget: Budget) -> bool:
        """Add columns of the rows left, and return whether there are new ones."""
        rules, given = self.master.rules, point.multipliers
        # No column with a row that has been dealt with pays.
        least = -rules.largest * max(float(given.duals.max()), self.master.unit)
        duals = np.where(self._left > 0, given.duals, least)
        priced = prices.best(
            Multipliers(duals, given.cuts, given.count),
            self.master.cuts,
            below=-_NEGATIVE * self.master.unit,
            max_nodes=HEURISTIC_NODES,
            budget=budget,
        )
        return bool(self.master.add(priced.columns))

    def free(self) -> None:
        """Let the master use the columns as it likes again."""
        self.master.require(np.zeros_like(self.times))


def _completed(rules: ColumnRules, columns: Columns, times: NDArray[np.int64]) -> Assignment | None:
    """Return the release of some columns, rows that are left over being put into classes."""
    if rules.freeform:
        held = columns.incidence(rules.types) @ times
        return release_of(rules, columns, times) if (held == rules.sides).all() else None
    classes = release_of(rules, columns, times)
    assert isinstance(classes, Classes)
    left = np.flatnonzero(classes.labels == SUPPRESSED)
    if np.isfinite(rules.price) or not len(left):
        return classes
    groups = [group.tolist() for group in classes.groups()]
    if place_leftovers(rules.problem, groups, left.tolist(), by_increase=True):
        return None
    labels = np.empty(rules.problem.n, np.int64)
    for label, group in enumerate(groups):
        labels[group] = label
    return Classes(labels)  # type: ignore[arg-type]
