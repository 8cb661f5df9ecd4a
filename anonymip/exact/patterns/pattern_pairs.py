"""Patterns for k = 2, exactly: records are cut into pairs and triples that look alike.

Duals of records rule most pairs and triples out. Two loops list the others, and not the depth-first
search of `enumeration`: what a group costs is read from a table by the columns in which its members
differ, and no group of four is ever needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np
from scipy.sparse import block_array, csr_array

from anonymip.assignments import SUPPRESSED, Assignment, Patterns
from anonymip.bounds.patterns.pattern_lagrangian import pattern_row_bound
from anonymip.enumeration.cluster_sets import Columns
from anonymip.errors import InputError, NoSolution, SolverError
from anonymip.exact.model_run import (
    FAILED,
    FAILURES,
    ModelRun,
    SolverChoices,
    find_start,
    what_failed,
)
from anonymip.exact.set_partitioning.restricted_master import often_at_most, whole_form
from anonymip.exact.trust import RefutedClaim, best_of, refuse_refuted, slack_of
from anonymip.graphs.weighted.assignment import assign
from anonymip.heuristics.growing.raised_price import found_or_known
from anonymip.heuristics.patterns.pattern_greedy import solve_capped
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.models.patterns.pattern_columns import patterns_by_amounts
from anonymip.problem import Problem
from anonymip.recodings.output_rows import grid_of, priced_patterns, recoding_of
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.solution import Bound, Solution, proves_optimal
from anonymip.solvers import SolverResult, StandardForm, solve_form
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE, SOLVER_RESOLUTION, same_loss

#: All pairs of more records would take too much memory.
LARGEST_TABLE = 6_000
#: Sets of columns are numbers below two to this power.
MOST_COLUMNS = 20


@dataclass(frozen=True, eq=False)
class RecordPairs:
    """Row types with what pairs of them cost, and duals of their records."""

    #: (t,) records of each type, and (n,) type of each record.
    counts: Ints
    inverse: Ints
    differing: Ints  # (t, t) int64, the columns in which two types differ, as a set of bits
    #: (2^m,) cost of a record under the cheapest pattern with stars in such columns, infinite where
    #: there is none.
    cheapest: Floats
    pattern: Ints  # (2^m,) that pattern
    #: The cheapest pattern through which all records look alike; -1 if there is none, or
    #: suppression costs no more.
    common: int
    #: Cost of a record under that pattern, or of a suppressed one; infinite if there is neither.
    #: Pairs and triples cost less for each record.
    unpaired: float
    #: Cost of a suppressed record; infinite if none may be. Where it exceeds `unpaired`, one record
    #: at most is suppressed: two would become the row that all may become.
    suppressed: float
    #: (t,) dual value of each record: no pair or triple costs less than the duals of its records.
    duals: Floats
    bound: float  # sum of the duals of all records: no release costs less


def pairs_with_duals(problem: Problem, budget: Budget) -> tuple[RecordPairs, Stopped | None]:
    """Return pairs with duals of records, and why the duals are not the best.

    A fractional choice of pairs that covers every record once is half of an assignment of the
    records to each other; its duals are returned. A record that becomes the row that all may
    become, or is suppressed, is assigned to itself. Triples need no duals of their own: a triple
    costs as much as half of each of its three pairs does through the same pattern. Without time the
    duals are worse, but valid. InputError if the table has too many records or columns. Complexity:
    O(n^3) time at worst, O(n^2) memory.
    """
    microdata = problem.microdata
    if microdata.n > LARGEST_TABLE or microdata.m > MOST_COLUMNS:
        raise InputError(
            f"pattern-pairs looks at all pairs of {microdata.n:,} records and sets of "
            f"{microdata.m} columns, at most {LARGEST_TABLE:,} and {MOST_COLUMNS}",
            remedy="Use pattern-ilp",
        )
    stars, costs, price = priced_patterns(problem)
    cheapest, pattern = _cheapest(stars, costs)
    types = microdata.row_types()
    codes = np.ascontiguousarray(microdata.codes[types.first])
    differing = np.zeros((len(codes), len(codes)), np.int64)
    for a, column in enumerate(codes.T):
        np.add(differing, 1 << a, out=differing, where=column[:, None] != column)
    matrix = cheapest[differing][np.ix_(types.inverse, types.inverse)]
    common, unpaired = _common(codes, stars, costs, price)
    matrix = np.minimum(matrix, unpaired)
    np.fill_diagonal(matrix, unpaired)
    # Where records have no partner at all, a cost above all others stands for one.
    matrix = np.ascontiguousarray(np.minimum(matrix, 10.0 * (1.0 + costs.max()) * microdata.n))
    _, columns, stopped = assign(matrix, budget, phase="duals of records")
    records = (matrix - columns).min(axis=1) + columns
    # Two records of a type may change places, so their mean is a dual value for both.
    duals = np.bincount(types.inverse, weights=records) / types.counts
    # Those of the columns may be large and cancel.
    rounding = 4.0 * np.finfo(float).eps * float(matrix.max() + np.abs(columns).max())
    duals -= LOSS_RELATIVE * np.abs(duals) + rounding
    bound = float(duals @ types.counts)
    counts, inverse = types.counts.copy(), types.inverse
    known = counts, inverse, differing, cheapest, pattern, common, unpaired, price
    return RecordPairs(*known, duals, bound), stopped


def small_groups_within(pairs: RecordPairs, cutoff: float, most: int) -> Columns | None:
    """Return the groups whose cost exceeds the duals of their members by so much at most.

    Pairs and triples that become one output row, and single records, which are suppressed, or
    become the row that all may become. A release that uses another group costs more than the bound
    and the cutoff. The three pairs of a triple exceed their duals by twice what the triple does,
    together and at most: triples are looked for among pairs that exceed them by no more. None if
    there are more than `most`.
    """
    empty = np.empty((0, 3), np.int64)
    arguments = (pairs.counts, pairs.differing, pairs.cheapest, pairs.duals, pairs.unpaired)
    count = int(_list_groups(*arguments, float(cutoff), most, empty))
    if count > most:
        return None
    members = np.full((count, 3), -1, np.int64)
    _list_groups(*arguments, float(cutoff), most, members)
    first, second, third = members.T
    columns = pairs.differing[first, second]
    three = third >= 0
    columns[three] |= pairs.differing[first[three], third[three]]
    costs = pairs.cheapest[columns] * np.where(three, 3.0, 2.0)
    starts = np.concatenate([[0], np.cumsum(np.where(three, 3, 2))])
    groups = Columns(starts, members[members >= 0].astype(np.int32), costs)
    alone = np.flatnonzero(pairs.unpaired - pairs.duals <= cutoff).astype(np.int32)
    single = Columns(np.arange(len(alone) + 1), alone, np.full(len(alone), pairs.unpaired))
    return groups.and_also(single)


def _common(codes: Codes, stars: Flags, costs: Floats, suppressed: float) -> tuple[int, float]:
    """Return the cheapest pattern that makes all records equal, and its cost; -1 if none pays."""
    varied = (codes != codes[0]).any(axis=0)
    fitting = np.flatnonzero((stars | ~varied).all(axis=1))
    if not len(fitting):
        return -1, suppressed
    best = int(fitting[np.argmin(costs[fitting])])
    return (-1, suppressed) if suppressed <= costs[best] else (best, float(costs[best]))


def _cheapest(stars: Flags, costs: Floats) -> tuple[Floats, Ints]:
    """Return cost and number of the cheapest pattern with stars in each set of columns."""
    m = stars.shape[1]
    sets = stars @ (1 << np.arange(m, dtype=np.int64))
    cheapest = np.full(1 << m, np.inf)
    pattern = np.full(1 << m, -1, np.int64)
    cheapest[sets], pattern[sets] = costs, np.arange(len(costs))
    numbers = np.arange(1 << m)
    for a in range(m):
        without = numbers[(numbers >> a) & 1 == 0]
        better = without[cheapest[without | (1 << a)] < cheapest[without]]
        cheapest[better] = cheapest[better | (1 << a)]
        pattern[better] = pattern[better | (1 << a)]
    return cheapest, pattern


@kernel
def _list_groups(
    counts: Ints,
    differing: Ints,
    cheapest: Floats,
    duals: Floats,
    unpaired: float,
    cutoff: float,
    most: int,
    members: Ints,
) -> int:
    """Count pairs and triples, and write them as far as there is room; end above `most`."""
    t, count = len(counts), 0
    near = np.empty(t, np.int64)
    over = np.empty(t)
    for a in range(t):
        # Pairs of this type and one no smaller; a type pairs with itself if it has two records.
        found = 0
        for b in range(a, t):
            if a == b and counts[a] < 2:
                continue
            if cheapest[differing[a, b]] >= unpaired:
                continue
            # A pair of up to twice the cutoff may still be part of a triple.
            above = 2.0 * cheapest[differing[a, b]] - duals[a] - duals[b]
            if above <= 2.0 * cutoff:
                near[found] = b
                over[found] = above
                found += 1
        for i in range(found):
            b = near[i]
            if over[i] <= cutoff:
                if count < len(members):
                    members[count, 0] = a
                    members[count, 1] = b
                count += 1
            # The three pairs of a triple exceed their duals by twice what it does: two of them
            # that exceed more rule it out.
            for j in range(i, found):
                c = near[j]
                if over[i] + over[j] > 2.0 * cutoff:
                    continue
                if (b == c and counts[b] < 2) or (a == c and counts[a] < 3):
                    continue
                columns = differing[a, b] | differing[a, c]
                worth = duals[a] + duals[b] + duals[c]
                if cheapest[columns] < unpaired and 3.0 * cheapest[columns] - worth <= cutoff:
                    if count < len(members):
                        members[count, 0] = a
                        members[count, 1] = b
                        members[count, 2] = c
                    count += 1
            if count > most:
                return count
    return count


#: Groups that a program may have.
_MOST_GROUPS = 3_000_000
#: So many pairs a row type, those of least reduced cost, are in the first program.
_FIRST = 8
#: The heuristic that makes the start gets at most this part of the time.
_SHARE = 0.2


def pattern_pairs(
    problem: Problem,
    *,
    start: Assignment | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    **solving: Unpack[SolverChoices],
) -> Solution:
    """Cut the records into pairs and triples of least loss: the optimum for k = 2 [1]_.

    Theorem 2 of the paper: whatever looks alike can be cut into groups of two or three, so the
    optimum is the cheapest perfect matching in the hypergraph of all pairs and triples, each at the
    cost of the cheapest pattern that makes its records equal. It is a simplex matching, because a
    triple never costs less than its pairs allow, and so is found in polynomial time [2]_. Here it
    is an integer program instead: its relaxation on pairs alone is an assignment problem, whose
    duals are those of the records, and a group whose reduced cost is more than the distance of a
    known release from the bound is in no better release. A first program with the groups of least
    reduced cost gives such a release; a second one, if need be, all that may matter.

    `problem`: with patterns as its recoding, k = 2, without single use and diversity.
    `start`: patterns to start from, in place of those of pattern-search.
    `budget`: stops the solver; the best release so far is returned.
    `seed`: of the solver and the heuristic.
    `**solving`: see :class:`~anonymip.exact.model_run.SolverChoices`.
    Raises InputError if k is not 2, the problem has single use or a diversity, or the table is too
    large; UnsupportedObjective if the loss of a pattern depends on the record; SolverError if what
    the solver returns does not survive the checks; NoSolution if no release exists, or none was
    found within the budget.

    A limit of suppression is kept by a price, which may leave a gap.
    Equal records are one row type, of which a group may take several. Complexity: O(n^3) time at
    worst and O(n^2) memory for the duals, and the programs.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Theorem 2.
    .. [2] E. Anshelevich, A. Karagiozova: Terminal Backup, 3D Matching, and Covering Cubic Graphs,
       SIAM Journal on Computing 40(3), 2011.
    """
    if problem.k != 2:
        raise InputError(
            f"pattern-pairs makes pairs and triples for k = 2, and k is {problem.k}",
            remedy="Use pattern-ilp",
        )
    if recoding_of(problem).single_use or problem.diversity is not None:
        raise InputError(
            "pattern-pairs knows neither single use nor diversity", remedy="Use pattern-ilp"
        )
    if problem.is_capped:
        watch = Stopwatch()
        known = None if start is None else Solution.of(problem, start, method="pattern-pairs")
        again = partial(pattern_pairs, seed=seed, **solving)
        found = found_or_known(lambda: solve_capped(problem, again, budget or Budget()), known)
        return replace(found, seconds=watch.seconds)
    run = ModelRun.begin(problem, "pattern-pairs", budget=budget, seed=seed, **solving)
    run.describe()
    # Names a record that no pattern gives a companion, where there is one.
    pattern_row_bound(problem)
    share = run.budget.share(_SHARE)
    searches = {"search": pattern_search}
    best = run.start_from(find_start(problem, "search", start, searches, seed, share, best=False))
    if best is not None and start is None:
        run.trace.append(f"start: {best.objective:.6g}")
    pairs, stopped = pairs_with_duals(problem, run.budget)
    bound = Bound(pairs.bound, "assignment of the records to each other", "argument")
    search = _Search(run, pairs)
    if stopped is None and not (best is not None and _is_proven(best, bound.value)):
        best, stopped, proven = search.run(best)
        if proven is not None and proven.value > bound.value:
            bound = proven
    if best is None:
        raise NoSolution("pattern-pairs found no release in time", remedy="Give it more time")
    value = min(bound.value, best.objective)
    bound = Bound(value, bound.method, bound.proof, run.watch.seconds)
    return run.solution(best.assignment, stopped or Stopped.GAP, bound, search.named)


def _is_proven(best: Solution, bound: float) -> bool:
    return proves_optimal(best.problem, best.objective, bound, strict=True)


@dataclass(eq=False)
class _Search:
    """Programs on more and more groups, until no other group can matter."""

    own: ModelRun
    pairs: RecordPairs
    named: str | None = None

    def run(self, best: Solution | None) -> tuple[Solution | None, Stopped | None, Bound | None]:
        """Return the best release, why the search ended early, and a bound; NoSolution if none."""
        pairs, proven = self.pairs, None
        # The reduced cost of the last of the pairs in the first program, and one that no group
        # exceeds.
        one, other = np.triu_indices(len(pairs.counts), 1)
        over = 2.0 * pairs.cheapest[pairs.differing[one, other]]
        over -= pairs.duals[one] + pairs.duals[other]
        place = min(_FIRST * len(pairs.counts), len(over)) - 1
        cutoff = float(np.partition(over, place)[place]) if place >= 0 else np.inf
        costs = np.append(pairs.cheapest, [0.0, pairs.unpaired])
        dearest = float(costs[np.isfinite(costs)].max()) + float(np.abs(pairs.duals).max())
        everything = 3.0 * dearest + 1.0
        while True:
            if best is not None:
                cutoff = min(cutoff, max(0.0, best.objective - pairs.bound))
            cutoff = min(cutoff, everything)
            groups = small_groups_within(pairs, cutoff + SOLVER_RESOLUTION, _MOST_GROUPS)
            if groups is None:
                self.own.trace.append(
                    f"more than {_MOST_GROUPS:,} groups may matter: not all looked at"
                )
                return best, Stopped.NODES, proven
            try:
                found, result = self._solve(groups)
            except FAILURES as failure:
                return self._without_solver(failure, best), Stopped.ERROR, proven
            if found is not None and (best is None or found.objective < best.objective):
                best = found
            if result.stopped is Stopped.INFEASIBLE:
                # The program holds every release that is no worse than the best one.
                holds_best = best is not None and cutoff >= best.objective - pairs.bound
                if cutoff >= everything or holds_best:
                    known = best or self.own.cheap_release()
                    if known is not None:
                        claim = RefutedClaim.of_infeasible(result.solver, known)
                        return self._without_solver(claim, best), Stopped.ERROR, None
                    raise NoSolution(
                        f"the records cannot be cut into pairs and triples that some pattern makes "
                        f"equal, says {result.solver}",
                        remedy="Allow more patterns, such as the one of stars only, or suppression",
                    )
                value = pairs.bound + cutoff
            elif result.bound is None:
                return best, result.stopped, proven
            else:
                value = self._trusted(result.bound, groups)
                if cutoff < everything:
                    value = min(value, pairs.bound + cutoff)
            if not self.own.settings.solver_options:
                losses = np.append(pairs.cheapest, [pairs.unpaired, pairs.suppressed])
                slack = slack_of(losses[np.isfinite(losses)], self.own.problem.n)
                try:
                    for known in (best, self.own.cheap_release()):
                        if known is not None:
                            refuse_refuted(str(self.named), value, known.objective, slack, known)
                except RefutedClaim as claim:
                    return self._without_solver(claim, best), Stopped.ERROR, None
                proven = Bound(value, f"pairs and triples with {result.solver}", "solver")
            if best is not None and _is_proven(best, value):
                return best, None, proven
            if result.stopped not in (Stopped.OPTIMAL, Stopped.INFEASIBLE):
                return best, result.stopped, proven
            needed = everything
            if best is not None:
                needed = min(max(0.0, best.objective - pairs.bound), everything)
            if best is not None and same_loss(cutoff, needed):
                return best, Stopped.GAP, proven
            # More groups, or fewer: without the costliest a solver's bound is trusted farther.
            cutoff = needed

    def _without_solver(self, failure: BaseException, best: Solution | None) -> Solution:
        """Return the best release that is known when the solver fails."""
        refuting = failure.release if isinstance(failure, RefutedClaim) else None
        known = best_of(best, refuting)
        if known is None:
            raise failure
        self.own.trace.append(f"{what_failed(failure)}: {FAILED}the best release so far is kept")
        return known

    def _trusted(self, claimed: float, groups: Columns) -> float:
        """Return what of a solver's bound on the given groups is sure, on the grid of losses."""
        losses = groups.costs
        if np.isfinite(self.pairs.suppressed):
            losses = np.append(losses, self.pairs.suppressed)
        largest = float(np.abs(losses).max(initial=0.0))
        # Every row of the program may be off a little, and its dual is up to the largest loss.
        sure = claimed - SOLVER_RESOLUTION * largest * max(1.0, self.own.problem.n / 100)
        unit = grid_of(losses)
        return float(np.ceil(sure * unit)) / unit if unit else sure

    def _solve(self, groups: Columns) -> tuple[Solution | None, SolverResult]:
        """Return the best release of the groups, if one is found, and the solver's result."""
        form = _form(groups, self.pairs)
        self.own.trace.append(f"{len(groups.costs):,} pairs and triples in the program")
        self.own.budget.report("pairs and triples", total=len(groups.costs))
        result = solve_form(form, self.own.solver, self.own.settings, budget=self.own.budget)
        self.named = result.solver
        if result.values is None:
            return None, result
        times = np.rint(result.values[: len(groups.costs)]).astype(np.int64)
        found = self._patterns(groups, times)
        return Solution.of(self.own.problem, found, method="pattern-pairs"), result

    def _patterns(self, groups: Columns, times: Ints) -> Patterns:
        """Return the patterns that groups give their members, the last records of a type first."""
        pairs, used, times = self.pairs, groups.only(times > 0), times[times > 0]
        types, sizes, begin = used.types.astype(np.int64), used.sizes, used.starts[:-1]
        amounts = np.repeat(times, sizes)
        short = pairs.counts - np.bincount(types, amounts, minlength=len(pairs.counts))
        if short.any():
            what = "a record twice" if short.min() < 0 else "not all records"
            raise SolverError(f"{self.named} covers {what}", remedy="Use another solver")
        share_row = pairs.common >= 0 and times[sizes == 1].sum() > 1
        first = np.repeat(types[begin], sizes)
        columns = np.bitwise_or.reduceat(pairs.differing[first, types], begin)
        alone = pairs.common if share_row else SUPPRESSED
        patterns = np.repeat(np.where(sizes > 1, pairs.pattern[columns], alone), sizes)
        return patterns_by_amounts(pairs.inverse, types[::-1], patterns[::-1], amounts[::-1])


def _form(groups: Columns, pairs: RecordPairs) -> StandardForm:
    """Return the program: every record of a type lies in one group.

    Where single records become one row, none or at least two of them do, or the one is suppressed.
    """
    records = pairs.counts.astype(np.float64)
    held: Any = groups.incidence(len(records))
    costs, most = groups.costs, often_at_most(held, records)
    lower, upper = records, records
    if pairs.common >= 0 and (groups.sizes == 1).any():
        single = (groups.sizes == 1).astype(np.float64)[None]
        # The last variables say whether there are any, and whether one takes the place of a second.
        switches = np.array([[-2.0, 1.0], [-records.sum(), 0.0]])
        further = np.array([0.0, pairs.suppressed - pairs.unpaired])
        further, switches = further[np.isfinite(further)], switches[:, np.isfinite(further)]
        blocks: Any = [[held, None], [np.vstack([single, single]), switches]]
        held = block_array(blocks)
        costs, most = np.append(costs, further), np.append(most, np.ones(len(further)))
        lower, upper = np.append(records, [0.0, -np.inf]), np.append(records, [np.inf, 0.0])
    return whole_form(costs, csr_array(held), (lower, upper), most)
