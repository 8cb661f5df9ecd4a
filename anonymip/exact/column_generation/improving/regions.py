"""Better releases region by region: a few neighbouring sets are chosen again from a pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from anonymip.exact.column_generation.pool.solving import solve_pool
from anonymip.exact.column_generation.relaxation.columns import Columns
from anonymip.exact.column_generation.relaxation.master import Master
from anonymip.exact.column_generation.relaxation.multipliers import Centre
from anonymip.exact.column_generation.relaxation.prices import Prices
from anonymip.exact.column_generation.state import Run
from anonymip.runtime.budget import Budget

#: Records of a region, about, and sets of it at least.
_RECORDS, _SETS = 60, 4
#: Columns of the pool at most; their reduced costs lie below the gap, divided by this as often as
#: there are more, up to so many times.
_POOL, _LESS, _TIMES = 30_000, 1.7, 10
#: Nodes of the branching in a region at most.
_NODES = 4
#: A region that gains less than this share of its cost stays as it is.
_GAIN = 1e-6


def improve_by_regions(
    run: Run, pool: Columns, centre: Centre, unit: float, most: int, budget: Budget
) -> bool:
    """Choose neighbouring sets of the best release again, and return whether that gains.

    Sets are neighbours that columns of low reduced cost touch both of. Those of the highest
    reduced cost are the seeds of regions first. Every region is searched shortly over the columns
    of low reduced cost within it.

    Parameters
    ----------
    run
        With a release.
    pool
        Columns of low reduced cost.
    centre, unit
        Give reduced costs and their scale.
    most
        Regions that are solved at most.
    budget
        Ends it.
    """
    own = run.incumbent_columns()
    complete = own.incidence(run.rules.types).sum() == run.rules.sides.sum()
    if not (complete or np.isfinite(run.rules.price)):
        return False
    region = _Regions(run.rules.types, pool.and_also(own), centre, unit)
    release = {place: own.of(place).astype(np.int64) for place in range(len(own))}
    costs = dict(enumerate(own.costs.tolist()))
    waiting = np.argsort(-own.reduced_costs(centre.multipliers.duals), kind="stable").tolist()
    solved = 0
    while waiting and solved < most and budget.stop_reason() is None:
        seed = waiting.pop(0)
        if seed not in release:
            continue
        solved += 1
        chosen = region.around(seed, release)
        before = sum(costs[place] for place in chosen)
        new = region.best([release[place] for place in chosen], before * (1.0 - _GAIN), budget)
        budget.report("neighbouring sets chosen again", done=solved)
        if new is None:
            continue
        for place in chosen:
            del release[place], costs[place]
        for column in new:
            place = len(own) + region.count
            region.count += 1
            release[place] = region.pool.of(column).astype(np.int64)
            costs[place] = float(region.pool.costs[column])
            # What is new may change with its own neighbours.
            waiting.append(place)
    members = [np.sort(release[place]).astype(np.int32) for place in sorted(release)]
    better = Columns(
        np.concatenate([[0], np.cumsum([len(one) for one in members])]).astype(np.int64),
        np.concatenate([np.empty(0, np.int32), *members]),
        np.array([costs[place] for place in sorted(release)]),
    )
    return bool(region.count) and run.offer_columns(better, np.ones(len(better), np.int64))


def columns_below(
    run: Run, prices: Prices, master: Master, centre: Centre, budget: Budget
) -> Columns:
    """Return columns of low reduced cost, all below some number, and those that the master knows.

    Parameters
    ----------
    run
        Its gap bounds the reduced costs.
    prices, master, centre
        Say which columns have a low reduced cost.
    budget
        Ends it.
    """
    threshold = run.loss - centre.value
    for _ in range(_TIMES):
        found = prices.all_below(
            centre.multipliers, master.cuts, threshold, max_columns=_POOL, budget=budget
        )
        if found.complete:
            return found.columns.and_also(master.known.all())
        if prices.spent or budget.stop_reason() is not None:
            break
        threshold /= _LESS
    return master.known.all()


class _Regions:
    """Parts of a release and the best columns for them.

    Parameters
    ----------
    types
        Number of row types.
    pool
        The columns.
    centre, unit
        Give reduced costs and their scale: who shares columns of low ones is near.
    """

    def __init__(self, types: int, pool: Columns, centre: Centre, unit: float) -> None:
        self.pool, self.count = pool, 0
        self._types = types
        self._incidence = csr_array(pool.incidence(types).T)
        self._by_type = csc_array(self._incidence)
        reduced = np.maximum(pool.reduced_costs(centre.multipliers.duals), 0.0)
        self._weights = np.exp(-reduced / unit)

    def around(self, seed: int, release: dict[int, NDArray[np.int64]]) -> list[int]:
        """Return a set of a release and those near it."""
        touching = np.unique(self._by_type[:, np.unique(release[seed])].indices)
        shared = self._incidence[touching].T @ self._weights[touching]
        places = [place for place in release if place != seed]
        if not places:
            return [seed]
        sizes = np.array([len(release[place]) for place in places])
        members = np.concatenate([release[place] for place in places])
        starts = np.cumsum(sizes) - sizes
        scores = np.add.reduceat(shared[members], starts) / sizes
        order = np.argsort(-scores, kind="stable")
        room = _RECORDS - len(release[seed])
        most = max(_SETS, int(np.searchsorted(np.cumsum(sizes[order]), room, side="right")))
        return [seed, *(places[at] for at in order[:most].tolist() if scores[at] > 0)]

    def best(self, sets: list[NDArray[np.int64]], below: float, budget: Budget) -> list[int] | None:
        """Return cheaper columns that cover what some sets do; None if there are none."""
        covered = np.zeros(self._types, np.int64)
        np.add.at(covered, np.concatenate(sets), 1)
        types = np.flatnonzero(covered)
        touching = np.unique(self._by_type[:, types].indices)
        held = self._incidence[touching]
        excess = (held.data > covered[held.indices]).astype(np.float64)
        beyond = np.bincount(np.repeat(np.arange(len(touching)), np.diff(held.indptr)), excess)
        inside = touching[beyond == 0]
        answer = solve_pool(
            csr_array(self._incidence[inside][:, types]).astype(np.int64),
            self.pool.costs[inside],
            covered[types],
            upper_bound=below,
            solver=None,
            max_nodes=_NODES,
            budget=budget,
        )
        return None if answer.chosen is None else inside[answer.chosen].tolist()
