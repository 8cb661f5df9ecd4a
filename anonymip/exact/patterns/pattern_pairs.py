"""Patterns for k = 2, exactly: records are cut into pairs and triples that look alike."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array

from anonymip.assignments import SUPPRESSED, Assignment, Patterns
from anonymip.bounds.patterns.pattern_lagrangian import pattern_row_bound
from anonymip.errors import InputError, NoSolution, SolverError
from anonymip.exact.failed_solver import FAILED, FAILURES, cheap_release, what_failed
from anonymip.exact.patterns.pairs_and_triples import (
    RecordPairs,
    SmallGroups,
    pairs_with_duals,
    small_groups_within,
)
from anonymip.exact.trust import RefutedClaim, refuse_refuted, slack_of
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.optimality import proves_optimal
from anonymip.problem import Problem
from anonymip.recodings.rows.output_rows import recoding_of
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.solvers import Named, SolverOptions, SolverResult, StandardForm, solve_form
from anonymip.status import Stopped
from anonymip.tolerances import SOLVER_RESOLUTION, same_loss

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
    solver: str = "highs",
    gap: float = 0.0,
    threads: int = 1,
    log: str | Path | None = None,
    solver_options: Mapping[str, object] | None = None,
    budget: Budget | None = None,
    seed: int = 0,
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

    Parameters
    ----------
    problem
        With patterns as its recoding, k = 2, without single use and diversity.
    start
        Patterns to start from, in place of those of pattern-search.
    solver
        Name of a solver adapter.
    gap
        Relative gap to stop at; 0 proves optimality.
    threads, log, solver_options
        Handed to the solver, see :class:`~anonymip.solvers.SolverOptions`.
    budget
        Stops the solver; the best release so far is returned.
    seed
        Of the solver and the heuristic.

    Notes
    -----
    Equal records are one row type, of which a group may take several. Complexity: O(n^3) time at
    worst and O(n^2) memory for the duals, and the programs.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Theorem 2.
    .. [2] E. Anshelevich, A. Karagiozova: Terminal Backup, 3D Matching, and Covering Cubic Graphs,
       SIAM Journal on Computing 40(3), 2011.

    Raises
    ------
    InputError
        If k is not 2, the problem has single use or a diversity, or the table is too large.
    UnsupportedObjective
        If the loss of a pattern depends on the record.
    SolverError
        If what the solver returns does not survive the checks.
    NoSolution
        If no release exists, or none was found within the budget.
    """
    _refuse_unfit(problem)
    watch, budget = Stopwatch(), budget or Budget()
    options = SolverOptions(
        relative_gap=gap,
        threads=threads,
        seed=seed,
        log=log,
        solver_options=dict(solver_options or {}),
    )
    trace: list[str] = []
    # Names a record that no pattern gives a companion, where there is one.
    pattern_row_bound(problem)
    best = _begin(problem, start, budget, seed, trace)
    pairs, stopped = pairs_with_duals(problem, budget)
    bound = Bound(pairs.bound, "assignment of the records to each other", "argument")
    search = _Search(problem, pairs, solver, options, budget, trace)
    if stopped is None and not (best is not None and _is_proven(best, bound.value)):
        best, stopped, proven = search.run(best)
        if proven is not None and proven.value > bound.value:
            bound = proven
    if best is None:
        raise NoSolution("pattern-pairs found no release in time", remedy="Give it more time")
    return Solution.of(
        problem,
        best.assignment,
        method="pattern-pairs",
        bound=Bound(min(bound.value, best.objective), bound.method, bound.proof, watch.seconds),
        stopped=stopped or Stopped.GAP,
        options={
            "gap": gap,
            **({"solver_options": dict(solver_options)} if solver_options else {}),
        },
        seconds=watch.seconds,
        seed=seed,
        trace=tuple(trace),
        solver=search.named,
    )


def _refuse_unfit(problem: Problem) -> None:
    if problem.k != 2:
        raise InputError(
            f"pattern-pairs makes pairs and triples for k = 2, and k is {problem.k}",
            remedy="Use pattern-ilp",
        )
    if recoding_of(problem).single_use or problem.diversity is not None:
        raise InputError(
            "pattern-pairs knows neither single use nor diversity", remedy="Use pattern-ilp"
        )


def _begin(
    problem: Problem, start: Assignment | None, budget: Budget, seed: int, trace: list[str]
) -> Solution | None:
    """Return the release to start from; None if none is found."""
    if start is not None:
        return Solution.of(problem, start, method="start")
    try:
        incumbent = pattern_search(problem, budget=budget.share(_SHARE), seed=seed)
    except NoSolution:
        trace.append("the heuristic found no solution to start from")
        return None
    trace.append(f"start: {incumbent.objective:.6g}")
    return incumbent


def _is_proven(best: Solution, bound: float) -> bool:
    return proves_optimal(best.problem, best.objective, bound, strict=True)


class _Search:
    """Programs on more and more groups, until no other group can matter."""

    def __init__(
        self,
        problem: Problem,
        pairs: RecordPairs,
        solver: str,
        options: SolverOptions,
        budget: Budget,
        trace: list[str],
    ) -> None:
        self.named: str | None = None
        self._problem = problem
        self._pairs = pairs
        self._solver = solver
        self._options = options
        self._budget = budget
        self._trace = trace

    def run(self, best: Solution | None) -> tuple[Solution | None, Stopped | None, Bound | None]:
        """Return the best release, why the search ended early, and a bound.

        Raises
        ------
        NoSolution
            If there is none.
        """
        pairs, proven = self._pairs, None
        cutoff, everything = self._first_cutoff(), self._everything()
        while True:
            if best is not None:
                cutoff = min(cutoff, max(0.0, best.objective - pairs.bound))
            cutoff = min(cutoff, everything)
            groups = small_groups_within(pairs, self._slackened(cutoff), _MOST_GROUPS)
            if groups is None:
                self._trace.append(
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
                if cutoff >= everything:
                    known = best or self._compared()
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
            if not self._options.solver_options:
                try:
                    self._hold_against_releases(value, best)
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

    def _compared(self) -> Solution | None:
        """Return a release that needs no solver."""
        return cheap_release(self._problem, self._budget, self._options.seed)

    def _hold_against_releases(self, claimed: float, best: Solution | None) -> None:
        """Refuse a bound above a release that is known or found soon.

        Raises
        ------
        RefutedClaim
            With the release.
        """
        losses = np.append(self._pairs.cheapest, self._pairs.unpaired)
        slack = slack_of(losses[np.isfinite(losses)], self._problem.n)
        for known in (best, self._compared()):
            if known is not None:
                refuse_refuted(str(self.named), claimed, known.objective, slack, known)

    def _without_solver(self, failure: BaseException, best: Solution | None) -> Solution:
        """Return the best release that is known when the solver fails."""
        refuting = failure.release if isinstance(failure, RefutedClaim) else None
        known = [release for release in (best, refuting) if release is not None]
        if not known:
            raise failure
        self._trace.append(f"{what_failed(failure)}: {FAILED}the best release so far is kept")
        return min(known, key=lambda release: release.objective)

    def _first_cutoff(self) -> float:
        """Return the reduced cost of the last of the pairs in the first program."""
        pairs = self._pairs
        upper = np.triu_indices(len(pairs.counts), 1)
        over = 2.0 * pairs.cheapest[pairs.differing[upper]]
        over -= pairs.duals[upper[0]] + pairs.duals[upper[1]]
        place = min(_FIRST * len(pairs.counts), len(over)) - 1
        return float(np.partition(over, place)[place]) if place >= 0 else np.inf

    def _everything(self) -> float:
        """Return a reduced cost that no group exceeds."""
        costs = self._pairs.cheapest[np.isfinite(self._pairs.cheapest)]
        most = max(0.0, float(costs.max(initial=0.0)))
        if np.isfinite(self._pairs.unpaired):
            most = max(most, self._pairs.unpaired)
        return 3.0 * (most + float(np.abs(self._pairs.duals).max())) + 1.0

    def _slackened(self, cutoff: float) -> float:
        return cutoff + SOLVER_RESOLUTION

    def _trusted(self, claimed: float, groups: SmallGroups) -> float:
        """Return what of a solver's bound on the given groups is sure: whole if all losses are."""
        losses = groups.costs
        largest = float(np.abs(losses).max(initial=0.0))
        # Every row of the program may be off a little, and its dual is up to the largest loss.
        sure = claimed - SOLVER_RESOLUTION * largest * max(1.0, self._problem.n / 100)
        return float(np.ceil(sure)) if np.array_equal(np.rint(losses), losses) else sure

    def _solve(self, groups: SmallGroups) -> tuple[Solution | None, SolverResult]:
        """Return the best release of the groups, if one is found, and the solver's result."""
        form = _form(groups, self._pairs)
        self._trace.append(f"{len(groups.costs):,} pairs and triples in the program")
        self._budget.report("pairs and triples", total=len(groups.costs))
        result = solve_form(form, self._solver, self._options, budget=self._budget)
        self.named = result.solver
        if result.values is None:
            return None, result
        times = np.rint(result.values[: len(groups.costs)]).astype(np.int64)
        found = self._patterns(groups, times)
        return Solution.of(self._problem, found, method="pattern-pairs"), result

    def _patterns(self, groups: SmallGroups, times: NDArray[np.int64]) -> Patterns:
        """Return the patterns that groups give their members."""
        pairs = self._pairs
        waiting = [
            part.tolist()
            for part in np.split(
                np.argsort(pairs.inverse, kind="stable"), np.cumsum(pairs.counts)[:-1]
            )
        ]
        index = np.full(self._problem.n, SUPPRESSED, np.int32)
        for at in np.flatnonzero(times):
            members = groups.members[at][groups.members[at] >= 0]
            pattern = pairs.common if pairs.common >= 0 else SUPPRESSED
            if len(members) > 1:
                columns = np.bitwise_or.reduce(pairs.differing[members[0], members])
                pattern = int(pairs.pattern[columns])
            for _ in range(int(times[at])):
                for type_ in members:
                    if not waiting[type_]:
                        raise SolverError(
                            f"{self.named} covers a record twice", remedy="Use another solver"
                        )
                    index[waiting[type_].pop()] = pattern
        if any(waiting):
            raise SolverError(f"{self.named} covers not all records", remedy="Use another solver")
        return Patterns(index)


def _form(groups: SmallGroups, pairs: RecordPairs) -> StandardForm:
    """Return the program: every record of a type lies in one group.

    Where single records become one row, none or at least two of them do.
    """
    counts = pairs.counts
    group, place = np.nonzero(groups.members >= 0)
    types = groups.members[group, place]
    width, rows = len(groups.costs), len(counts)
    held = np.full(groups.members.shape, np.inf)
    held[group, place] = counts[types]
    values, row, column = [np.ones(len(group))], [types], [group]
    single = np.flatnonzero(groups.members[:, 1] < 0) if pairs.common >= 0 else np.empty(0, int)
    shared = int(len(single) > 0)
    if shared:
        ones = np.ones(len(single))
        values += [ones, np.array([-2.0]), ones, np.array([-float(counts.sum())])]
        for extra in (rows, rows + 1):
            row += [np.full(len(single), extra), np.array([extra])]
            column += [single, np.array([width])]
    matrix = coo_array(
        (np.concatenate(values), (np.concatenate(row), np.concatenate(column))),
        shape=(rows + 2 * shared, width + shared),
    ).tocsr()
    matrix.sum_duplicates()
    records = counts.astype(np.float64)
    return StandardForm(
        variables=tuple(Named(f"g_{at}") for at in range(width + shared)),
        constraints=tuple(Named(f"c_{at}") for at in range(rows + 2 * shared)),
        cost=np.concatenate([groups.costs, np.zeros(shared)]),
        offset=0.0,
        matrix=matrix,
        row_lower=np.concatenate([records, [0.0, -np.inf][: 2 * shared]]),
        row_upper=np.concatenate([records, [np.inf, 0.0][: 2 * shared]]),
        lower=np.zeros(width + shared),
        upper=np.concatenate([held.min(axis=1), np.ones(shared)]),
        integer=np.ones(width + shared, np.bool_),
        maximize=False,
    )
