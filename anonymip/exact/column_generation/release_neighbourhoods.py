"""Neighbourhood search: sets of a release near each other are chosen again; classes perturbed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.exact.column_generation.pricing import Centre, Master, Prices
from anonymip.exact.column_generation.run import Run
from anonymip.exact.column_generation.settings import NUMBERS
from anonymip.exact.set_partitioning.branch_and_bound import solve_pool
from anonymip.exact.set_partitioning.restricted_master import Columns
from anonymip.heuristics.local_search.neighbours import embedding
from anonymip.heuristics.local_search.rounds import Settings, improve_pool
from anonymip.heuristics.local_search.state import PooledClasses
from anonymip.problem import Problem, is_plain
from anonymip.runtime.budget import Budget

_NEAR = NUMBERS.neighbourhoods

#: Moves alone: windows would take most of the time and undo the perturbation.
_MOVES = Settings(window=0, near=0, patience=1, effort="normal")


def iterated_local_search(
    problem: Problem,
    labels: NDArray[np.integer],
    *,
    rounds: int,
    patience: int | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return labels of classes, no worse than the given (n,) ones; -1 for suppressed records.

    Classes around a random record exchange their records at random, moves improve all classes, and
    the release that results is gone on from unless it is worse; rounds that gain nothing end it
    once `patience` of them followed each other. Under limits or a diversity, and for a loss without
    tables, the labels are returned as they are. The same seed gives the same labels. Complexity of
    a round: O(n k m).
    """
    budget, best = budget or Budget(), np.asarray(labels, np.int64)
    if not (is_plain(problem) and problem.compiled.has_tables):
        return best
    points, random = _points(problem, best), np.random.default_rng(seed)
    loss, idle = _loss(problem, best), 0
    for done in range(rounds):
        if budget.stop_reason() is not None or idle == patience:
            break
        shuffled = _shuffled(best, points, random)
        found, _, _ = improve_pool(problem, shuffled, _MOVES, budget, seed + done)
        new = _loss(problem, found)
        idle = idle + 1 if new >= loss else 0
        if new <= loss:
            best, loss = found, new
    return best


def _points(problem: Problem, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return (n, d) points of the records whose distance is about their loss."""
    state = PooledClasses.of(problem, labels)
    of_types = embedding(state.tables, state.rows)
    points = np.empty((problem.n, of_types.shape[1]))
    points[state.records] = np.repeat(of_types, np.diff(state.first), axis=0)
    return points


def _shuffled(
    labels: NDArray[np.int64], points: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Return labels after some classes around a record have exchanged records at random."""
    kept = np.flatnonzero(labels != SUPPRESSED)
    if not len(kept):
        return labels
    centre = points[kept[random.integers(len(kept))]]
    wanted = int(random.integers(_NEAR.fewest, _NEAR.most + 1))
    near = labels[kept[np.argsort(np.abs(points[kept] - centre).sum(axis=1), kind="stable")]]
    _, first = np.unique(near, return_index=True)
    chosen = near[np.sort(first)[:wanted]]
    inside = np.flatnonzero(np.isin(labels, chosen))
    shuffled = labels.copy()
    shuffled[inside] = labels[random.permutation(inside)]
    return shuffled


def _loss(problem: Problem, labels: NDArray[np.int64]) -> float:
    classes = Classes(labels)  # type: ignore[arg-type]
    description = problem.recoding.describe(problem, classes)
    compiled = problem.compiled
    return float(compiled.aggregated(compiled.losses_of(description, classes)))


def improve_by_neighbourhoods(
    run: Run, pool: Columns, centre: Centre, unit: float, most: int, budget: Budget
) -> bool:
    """Choose neighbouring sets of the best release again, and return whether that gains.

    Sets are neighbours that columns of low reduced cost, the pool, touch both of. Those of the
    highest reduced cost are the seeds of neighbourhoods first. Every neighbourhood, `most` of them,
    is searched shortly over the columns of low reduced cost within it.
    """
    own = run.incumbent_columns()
    complete = own.incidence(run.rules.types).sum() == run.rules.sides.sum()
    if not (complete or np.isfinite(run.rules.price)):
        return False
    parts = _Neighbourhoods(run.rules.types, pool.and_also(own), centre, unit)
    release = {place: own.of(place).astype(np.int64) for place in range(len(own))}
    costs = dict(enumerate(own.costs.tolist()))
    seeds = np.argsort(-own.reduced_costs(centre.multipliers.duals), kind="stable").tolist()
    solved = 0
    while seeds and solved < most and budget.stop_reason() is None:
        seed = seeds.pop(0)
        if seed not in release:
            continue
        solved += 1
        chosen = parts.around(seed, release)
        before = sum(costs[place] for place in chosen)
        new = parts.best(
            [release[place] for place in chosen],
            before * (1.0 - _NEAR.gain),
            budget,
        )
        budget.report("neighbouring sets chosen again", done=solved)
        if new is None:
            continue
        for place in chosen:
            del release[place], costs[place]
        for column in new:
            place = len(own) + parts.count
            parts.count += 1
            release[place] = parts.pool.of(column).astype(np.int64)
            costs[place] = float(parts.pool.costs[column])
            # What is new may change with its own neighbours.
            seeds.append(place)
    members = [np.sort(release[place]).astype(np.int32) for place in sorted(release)]
    better = Columns(
        np.concatenate([[0], np.cumsum([len(one) for one in members])]).astype(np.int64),
        np.concatenate([np.empty(0, np.int32), *members]),
        np.array([costs[place] for place in sorted(release)]),
    )
    return bool(parts.count) and run.offer_columns(better, np.ones(len(better), np.int64))


def columns_below(
    run: Run, prices: Prices, master: Master, centre: Centre, budget: Budget
) -> Columns:
    """Return all columns below some reduced cost, and those that the master knows."""
    threshold = run.loss - centre.value
    for _ in range(_NEAR.times):
        found = prices.all_below(
            centre.multipliers,
            master.cuts,
            threshold,
            max_columns=_NEAR.pool,
            budget=budget,
        )
        if found.complete:
            return found.columns.and_also(master.known.all())
        if prices.spent or budget.stop_reason() is not None:
            break
        threshold /= _NEAR.less
    return master.known.all()


class _Neighbourhoods:
    """Parts of a release and the best columns for them; who shares cheap columns is near."""

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
        room = _NEAR.records - len(release[seed])
        most = max(
            _NEAR.sets,
            int(np.searchsorted(np.cumsum(sizes[order]), room, side="right")),
        )
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
            max_nodes=_NEAR.nodes,
            budget=budget,
        )
        return None if answer.chosen is None else inside[answer.chosen].tolist()
