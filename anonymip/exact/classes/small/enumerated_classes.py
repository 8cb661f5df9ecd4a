"""Small sub-problems of any loss and with any rules: exact cover by all possible classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.enumeration import ClusterSets
from anonymip.errors import NoSolution
from anonymip.exact.classes.small.exact_cover import (
    FoundSets,
    Packing,
    cheapest_cover,
    new_cover,
    new_packing,
    pack_counts,
)
from anonymip.exact.classes.small.result import SmallResult
from anonymip.exact.priced_sets import PricedSets, priced_sets
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.models.parts.set_columns import MAX_COLUMNS
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.tolerances import DUAL_ROUNDING, LOSS_RELATIVE, VISIBLE_SLACK

#: Releases that are better by less than this share of the loss are not looked for.
_ROUNDING = 1e-3 * LOSS_RELATIVE


@dataclass(frozen=True, eq=False)
class _PackedSets:
    """The sets in words, as the cover search reads them.

    Parameters
    ----------
    rank
        Types of the enumeration, highest duals first.
    packing, found
        Of the types in that order.
    dual_sum, dual_size
        Sum of the duals of all rows, and of their absolute values.
    fits
        Whether the counts fit in one word.
    """

    rank: NDArray[np.int64]
    packing: Packing
    found: FoundSets
    dual_sum: float
    dual_size: float
    fits: bool


def solve_enumerated(problem: Problem, budget: Budget, max_nodes: int, seed: int) -> SmallResult:
    """Return the best classes of a problem: list all possible ones, then search for a cover.

    Raises
    ------
    NoSolution
        If no release keeps the rules, or none was found before the search ended.
    """
    start = _start(problem, budget, seed)
    upper = None if start is None else start.objective
    columns = priced_sets(problem, upper, max_sets=MAX_COLUMNS, budget=budget)
    nodes = columns.sets.nodes
    bound = None if columns.bound is None else columns.bound.value
    if not columns.sets.complete:
        return _kept(start, bound, nodes, columns.sets.reason)
    packed = _packed(problem, columns)
    if not packed.fits:
        return _kept(start, bound, nodes, "size")
    summed, types = problem.compiled.aggregate == "sum", columns.sets.rows.types
    gap = np.inf if upper is None else upper - packed.dual_sum
    slack = 0.0 if upper is None else _ROUNDING * (abs(upper) + abs(packed.dual_sum))
    slack += DUAL_ROUNDING * packed.dual_size
    cover, looked = new_cover(problem.n), np.zeros(1, np.int64)
    sets, complete = cheapest_cover(
        summed, packed.packing, packed.found, cover, types, gap, slack, looked, max_nodes
    )
    nodes += int(looked[0])
    best = start if not sets else _labelled(problem, columns.sets, packed, cover.best[:sets])
    if not complete:
        return _kept(best, bound, nodes, "max_nodes")
    if best is None:
        raise NoSolution(
            "no classes keep the limits and the diversity", remedy="Ask for less, or suppress"
        )
    lost = max(abs(best.objective), abs(best.objective - problem.unavoidable))
    if slack > VISIBLE_SLACK * lost:
        return _kept(best, bound, nodes, "rounding")
    return SmallResult(
        best.assignment.labels,  # type: ignore[union-attr]
        best.objective,
        best.objective,
        True,
        nodes,
        None,
    )


def _start(problem: Problem, budget: Budget, seed: int) -> Solution | None:
    """Return the better of two quick releases; None if they find none that keeps the rules."""
    found = []
    for heuristic in (ordered_cut, greedy_search):
        try:
            found.append(heuristic(problem, budget=budget, seed=seed))
        except NoSolution:
            # Under limits a heuristic may fail where there is a release.
            continue
    return min(found, key=lambda solution: solution.objective, default=None)


def _kept(
    best: Solution | None, bound: float | None, nodes: int, reason: str | None
) -> SmallResult:
    """Return the best release so far."""
    if best is None:
        raise NoSolution(
            f"no classes were found before the search ended ({reason})",
            remedy="Give it more time or nodes, or fewer records",
        )
    labels = best.assignment.labels  # type: ignore[union-attr]
    bound = None if bound is None else min(bound, best.objective)
    return SmallResult(labels, best.objective, bound, False, nodes, reason)


def _packed(problem: Problem, columns: PricedSets) -> _PackedSets:
    """Return the sets in words; the cheapest ones of each first type come first."""
    sets = columns.sets
    types, counts = sets.rows.types, sets.rows.counts
    duals = np.zeros(types) if columns.duals is None else columns.duals
    rank = np.argsort(-duals, kind="stable")
    place = np.empty(types, np.int64)
    place[rank] = np.arange(types)
    packing = new_packing(types)
    packing.counts[:] = counts[rank]
    fits = bool(pack_counts(packing, types))
    words, first = np.empty(0, np.int64), np.empty(0, np.int64)
    if len(sets):
        begins = sets.offsets[:-1]
        bits = sets.counts.astype(np.int64) << packing.shift[place[sets.types]]
        words = np.add.reduceat(bits, begins)
        first = np.minimum.reduceat(place[sets.types], begins)
    costs = sets.losses - sets.incidence.T @ duals
    recoding = problem.recoding
    if isinstance(recoding, EquivalenceClasses) and recoding.suppression:
        words = np.concatenate([words, packing.ones])
        first = np.concatenate([first, np.arange(types)])
        costs = np.concatenate([costs, problem.compiled.suppression_price - duals[rank]])
    order = np.lexsort((costs, first))
    found = FoundSets(
        words[order],
        costs[order],
        np.searchsorted(first[order], np.arange(types + 1)).astype(np.int64),
        np.array([len(words)], np.int64),
    )
    dual_sum, dual_size = float(duals @ counts), float(np.abs(duals) @ counts)
    return _PackedSets(rank, packing, found, dual_sum, dual_size, fits)


def _labelled(
    problem: Problem, sets: ClusterSets, packed: _PackedSets, words: NDArray[np.int64]
) -> Solution:
    """Return the release of a cover; sets of one row are suppressed records."""
    rows = sets.rows
    following = rows.starts[:-1].copy()
    labels = np.full(problem.n, SUPPRESSED, np.int32)
    for label, word in enumerate(words):
        copies = (word & packed.packing.fields) >> packed.packing.shift
        alone = copies.sum() == 1
        for t, rank in enumerate(packed.rank):
            stop = following[rank] + copies[t]
            labels[rows.records[following[rank] : stop]] = SUPPRESSED if alone else label
            following[rank] = stop
    return Solution.of(problem, Classes(labels), method="small")
