"""Exact solver of small problems of equivalence classes: some twenty records, any loss and rules.

Where the loss has monotone tables and there are no limits, a compiled search does the work, which
proves tables of up to about twenty records, and more where many are alike; what it leaves open,
local search improves. Every other loss and rule goes through the enumeration of all possible
classes and an exact cover by them. Larger tables are for column generation.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.enumeration import ClusterSets
from anonymip.enumeration.merging import loss_scale
from anonymip.errors import InputError, NoSolution
from anonymip.exact.classes.best_classes import PROVEN, compiles, small_rules, solve_rows
from anonymip.exact.classes.set_search import (
    CoverSearch,
    FoundSets,
    Packing,
    cheapest_cover,
    new_small_work,
    pack_counts,
)
from anonymip.exact.priced_sets import priced_sets
from anonymip.exact.trust import best_of
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.heuristics.local_search.local_search import improve
from anonymip.models.parts.set_columns import MAX_COLUMNS
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.solution import Bound, Solution, retold, under_assumptions
from anonymip.status import Stopped
from anonymip.tolerances import DUAL_ROUNDING, LOSS_RELATIVE, VISIBLE_SLACK

#: Partial sets and partial covers that one search looks at by default, half a second: windows of 25
#: to 32 records take up to so many, column generation several times as long (`benchmarks.chains`).
MAX_NODES = 4_000_000
#: Records up to which losses are compared exactly after another proof, and nodes of that.
_COMPARED, _COMPARED_NODES = 16, 200_000
#: Nodes that a kernel looks at in a second at least, on the sizes that it is made for.
_NODES_A_SECOND = 200_000
#: Releases that are better by less than this share of the loss are not looked for.
_ROUNDING = 1e-3 * LOSS_RELATIVE
#: A loss below this share of what one record may lose is no more than rounding of the others.
_FINEST = 1e-15


@dataclass(frozen=True, eq=False)
class SmallResult:
    """The best classes found, and what is proven about them."""

    #: (n,) class of each record, numbered in the order in which they first appear; -1 for a
    #: suppressed record.
    labels: Codes
    objective: float  # loss, recomputed by the objective's own function
    bound: float | None  # lower bound on the loss of any release; None if nothing is known
    proven: bool  # whether the classes are proven best
    #: What kept it from a proof: ``"max_nodes"``, ``"max_sets"``, ``"size"`` (too many rows),
    #: ``"rounding"``, or the value of `Stopped`; None if it is proven.
    reason: str | None


def solve_small(
    problem: Problem, *, budget: Budget | None = None, max_nodes: int = MAX_NODES, seed: int = 0
) -> SmallResult:
    """Return the best classes of a small problem, or the best found and a lower bound.

    `problem`: with equivalence classes. Up to about twenty records are proven as a rule; more where
    many are alike. `budget`: ends the search; it is asked between searches, each of which looks at
    no more nodes than there is time for. `max_nodes`: partial sets and partial covers that one
    search looks at. `seed`: of the heuristics that the search starts from. Raises InputError if the
    problem has another recoding or asks for t-closeness, or `max_nodes` is below 1; NoSolution if
    no release keeps the rules, or none was found before the search ended.

    Complexity: exponential in the worst case. A sub-problem of 12 to 18 records with k = 3 takes
    microseconds where many records are alike, mostly less than half a millisecond else.
    """
    if not isinstance(problem.recoding, EquivalenceClasses):
        raise InputError(
            f"the recoding is {problem.recoding.name}", remedy="Use equivalence classes"
        )
    if problem.diversity is not None and problem.diversity.t is not None:
        raise InputError(
            f"the search of small tables cannot keep the {problem.diversity}",
            remedy="Use another method",
        )
    if max_nodes < 1:
        raise InputError(f"max_nodes is {max_nodes}", remedy="Give a whole number of at least 1")
    budget = budget or Budget()
    if problem.is_capped:
        free = problem.replace(recoding=replace(problem.recoding, most_suppressed=None))
        found = solve_small(free, budget=budget, max_nodes=max_nodes, seed=seed)
        if int((found.labels == SUPPRESSED).sum()) > problem.most_suppressed:
            raise NoSolution(
                "the search of small tables suppresses more records than may be",
                remedy="Use another method",
            )
        return found
    remaining = budget.remaining()
    if remaining is not None:
        max_nodes = max(1, min(max_nodes, int(remaining * _NODES_A_SECOND)))
    if compiles(problem):
        return _solve_compiled(problem, budget, max_nodes)
    return _solve_enumerated(problem, budget, max_nodes, seed)


def _solve_compiled(problem: Problem, budget: Budget, max_nodes: int) -> SmallResult:
    every = np.arange(problem.n)
    rules = small_rules(problem, every)
    work = new_small_work(rules, problem.n)
    status = solve_rows(rules, work, every, problem.n, max_nodes)
    # Whole problems have a release: the class of all records keeps k and the diversity.
    proven, labels = status == PROVEN, work.labels
    if not proven:
        labels = improve(problem, labels, effort="quick", budget=budget)
    release = Classes(labels.astype(np.int32))
    loss = Solution.of(problem, release, method="small").objective
    if 0.0 < abs(loss) < _FINEST * loss_scale(problem):
        # What sets lose beside what others lose is rounding: neither proof nor bound holds.
        return SmallResult(release.labels, loss, None, False, "rounding")
    if proven:
        return SmallResult(release.labels, loss, loss, True, None)
    stopped, bound = budget.stop_reason(), min(float(work.result[1]), loss)
    reason = "max_nodes" if stopped is None else stopped.value
    return SmallResult(release.labels, loss, bound, False, reason)


def compare_exactly(solution: Solution, budget: Budget, seed: int) -> Solution:
    """Return the best release by exact sums of losses, where tolerances leave a gap.

    A solver, and duals that are repaired, take losses for equal that differ by less than their
    tolerances; in a small table they are told apart by a search that has none.

    `solution`: of a method that went on until its proof ended. `budget, seed`: of the search.
    """
    bound, problem = solution.bound, solution.problem
    ended = solution.status.stopped is Stopped.GAP and budget.stop_reason() is None
    fits = isinstance(problem.recoding, EquivalenceClasses) and problem.n <= _COMPARED
    if bound is None or not ended or not fits:
        return solution
    try:
        small = solve_small(problem, budget=budget, max_nodes=_COMPARED_NODES, seed=seed)
    except NoSolution:
        return solution
    best = solution
    if small.objective < solution.objective:
        stopped = solution.status.stopped
        best = retold(solution, problem, Classes(small.labels), bound=bound, stopped=stopped)
    if not small.proven or small.bound is None:
        return best
    source = under_assumptions(problem, "search of all classes")
    remark = "losses within tolerances were compared by a search of all classes"
    # The duals prove less, and a certificate goes on from them.
    proven = best.with_bound(Bound(small.bound, source, "argument", duals=bound.duals))
    return replace(proven, trace=(*best.trace, remark))


def _solve_enumerated(problem: Problem, budget: Budget, max_nodes: int, seed: int) -> SmallResult:
    """Return the best classes of a problem: list all possible ones, then search for a cover.

    Raises NoSolution if no release keeps the rules, or none was found before the search ended.
    """
    starts = []
    for heuristic in (ordered_cut, greedy_search):
        with suppress(NoSolution):
            starts.append(heuristic(problem, seed=seed, budget=budget))
    start = best_of(*starts)
    upper = None if start is None else start.objective
    columns = priced_sets(problem, upper, max_sets=MAX_COLUMNS, budget=budget)
    bound = None if columns.bound is None else columns.bound.value
    if not columns.sets.complete:
        return _kept(start, bound, columns.sets.reason)
    rows = columns.sets.rows
    duals = columns.duals
    if duals is None:
        # The search for a cover is cut off by costs, none of which may be below zero.
        least = min(0.0, float((columns.sets.losses / columns.sets.sizes).min(initial=0.0)))
        if problem.may_suppress:
            least = min(least, problem.compiled.suppression_price)
        duals = np.full(rows.types, least if problem.compiled.aggregate == "sum" else 0.0)
    packed = _packed(problem, columns.sets, duals)
    if packed is None:
        return _kept(start, bound, "size")
    rank, packing, found = packed
    summed, types = problem.compiled.aggregate == "sum", rows.types
    dual_sum = float(duals @ rows.counts)
    gap = np.inf if upper is None else upper - dual_sum
    slack = 0.0 if upper is None else _ROUNDING * (abs(upper) + abs(dual_sum))
    slack += DUAL_ROUNDING * float(np.abs(duals) @ rows.counts)
    cover, looked = CoverSearch.of_sizes(deep=problem.n + 1), np.zeros(1, np.int64)
    sets, complete = cheapest_cover(
        summed, packing, found, cover, types, gap, slack, looked, max_nodes
    )
    best = start
    if sets:
        best = _labelled(problem, columns.sets, rank, packing, cover.best[:sets])
    if not complete:
        return _kept(best, bound, "max_nodes")
    if best is None:
        raise NoSolution(
            "no classes keep the limits and the diversity", remedy="Ask for less, or suppress"
        )
    lost = max(abs(best.objective), abs(best.objective - problem.unavoidable))
    if slack > VISIBLE_SLACK * lost:
        # What is better by less was not looked for.
        return _kept(best, best.objective - slack, "rounding")
    labels = best.assignment.labels  # type: ignore[union-attr]
    return SmallResult(labels, best.objective, best.objective, True, None)


def _kept(best: Solution | None, bound: float | None, reason: str | None) -> SmallResult:
    """Return the best release so far."""
    if best is None:
        raise NoSolution(
            f"no classes were found before the search ended ({reason})",
            remedy="Give it more time or nodes, or fewer records",
        )
    labels = best.assignment.labels  # type: ignore[union-attr]
    bound = None if bound is None else min(bound, best.objective)
    return SmallResult(labels, best.objective, bound, False, reason)


def _packed(
    problem: Problem, sets: ClusterSets, duals: Floats
) -> tuple[Ints, Packing, FoundSets] | None:
    """Return the types, highest duals first, and the sets in words, as the cover search reads them.

    The cheapest sets of each first type come first. None if the counts do not fit in one word.
    """
    types = sets.rows.types
    rank = np.argsort(-duals, kind="stable")
    place = np.empty(types, np.int64)
    place[rank] = np.arange(types)
    packing = Packing.of_sizes(most=types)
    packing.counts[:] = sets.rows.counts[rank]
    if not pack_counts(packing, types):
        return None
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
    return rank, packing, found


def _labelled(
    problem: Problem, sets: ClusterSets, ranked: Ints, packing: Packing, words: Ints
) -> Solution:
    """Return the release of a cover; sets of one row are suppressed records."""
    rows = sets.rows
    following = rows.starts[:-1].copy()
    labels = np.full(problem.n, SUPPRESSED, np.int32)
    for label, word in enumerate(words):
        copies = (word & packing.fields) >> packing.shift
        alone = copies.sum() == 1
        for t, rank in enumerate(ranked):
            stop = following[rank] + copies[t]
            labels[rows.records[following[rank] : stop]] = SUPPRESSED if alone else label
            following[rank] = stop
    return Solution.of(problem, Classes(labels), method="small")
