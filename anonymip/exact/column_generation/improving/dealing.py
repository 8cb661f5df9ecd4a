"""Iterated local search: a few neighbouring classes are dealt again at random, and moves follow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.heuristics.local_search.neighbours import embedding
from anonymip.heuristics.local_search.rounds import Settings, improve_pool
from anonymip.heuristics.local_search.state import PooledClasses
from anonymip.problem import Problem
from anonymip.problem_rules import is_plain
from anonymip.runtime.budget import Budget

#: Classes that are dealt again together: so many, drawn with equal chances.
_FEWEST, _MOST = 2, 4
#: Moves alone: windows would take most of the time and undo what was dealt.
_MOVES = Settings(window=0, near=0, patience=1, effort="normal")


def deal_again(
    problem: Problem,
    labels: NDArray[np.integer],
    *,
    rounds: int,
    patience: int | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return labels of classes that are no worse than the given ones.

    Parameters
    ----------
    problem
        With equivalence classes. Under limits or a diversity, and for a loss without tables, the
        labels are returned as they are.
    labels
        (n,) classes that the problem allows; -1 for suppressed records.
    rounds
        How often classes are dealt again.
    patience
        So many rounds in a row that gain nothing end it; None for no such limit.
    budget
        When it ends, what is reached is returned.
    seed
        Of what is drawn: the same seed gives the same labels.

    Notes
    -----
    Classes around a random record exchange their records at random, moves improve all classes, and
    the release that results is gone on from unless it is worse. Complexity of a round: O(n k m).
    """
    budget, best = budget or Budget(), np.asarray(labels, np.int64)
    if not (is_plain(problem) and problem.compiled.has_tables):
        return best
    points, random = _points(problem, best), np.random.default_rng(seed)
    loss, idle = _loss(problem, best), 0
    for done in range(rounds):
        if budget.stop_reason() is not None or idle == patience:
            break
        dealt = _dealt(best, points, random)
        found, _, _ = improve_pool(problem, dealt, _MOVES, budget, seed + done)
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


def _dealt(
    labels: NDArray[np.int64], points: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.int64]:
    """Return labels after some classes around a record have exchanged records at random."""
    kept = np.flatnonzero(labels != SUPPRESSED)
    if not len(kept):
        return labels
    centre = points[kept[random.integers(len(kept))]]
    wanted = int(random.integers(_FEWEST, _MOST + 1))
    near = labels[kept[np.argsort(np.abs(points[kept] - centre).sum(axis=1), kind="stable")]]
    _, first = np.unique(near, return_index=True)
    chosen = near[np.sort(first)[:wanted]]
    inside = np.flatnonzero(np.isin(labels, chosen))
    dealt = labels.copy()
    dealt[inside] = labels[random.permutation(inside)]
    return dealt


def _loss(problem: Problem, labels: NDArray[np.int64]) -> float:
    classes = Classes(labels)  # type: ignore[arg-type]
    description = problem.recoding.describe(problem, classes)
    compiled = problem.compiled
    return float(compiled.aggregated(compiled.losses_of(description, classes)))
