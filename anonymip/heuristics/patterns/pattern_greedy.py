"""The greedy heuristic of Bredereck et al.: cheap patterns first, all records that share a row."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from anonymip.assignments import SUPPRESSED, Patterns
from anonymip.errors import InputError, InvalidAssignment, NoSolution, argument, unknown_name
from anonymip.heuristics.growing.raised_price import PRICES, released, solve_within_limit
from anonymip.heuristics.patterns.open_rows import (
    OpenRows,
    is_diverse,
    open_rows,
    pattern_of_records,
)
from anonymip.heuristics.patterns.row_moves import Gathering, gather_under_stars, place_unassigned
from anonymip.heuristics.patterns.shared_rows import share_rows
from anonymip.problem import Problem
from anonymip.recodings.output_rows import (
    PackedRows,
    pack_rows,
    priced_patterns,
    recoding_of,
    refuse_isolated,
)
from anonymip.recodings.patterns import PatternGuided
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped
from anonymip.tolerances import same_loss

_MODES = ("strict", "paper")


def pattern_greedy(
    problem: Problem,
    *,
    mode: str = "strict",
    orders: int = 1,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Give records the cheapest pattern through which k records left look alike [1]_.

    Patterns are looked at by ascending cost; of every output row that at least k of the records
    left may become, all of them become it. Under single use a pattern gets its largest row alone;
    under a diversity only rows that keep it are made.

    `problem`: with patterns as its recoding.
    `mode`: what becomes of the records left. ``"strict"``: they join rows, or rows are opened for
    them by records that others can spare, whichever is cheapest; where the recoding allows
    suppression that competes, and patterns costlier than it are not used; a limit is kept by a
    higher price (:mod:`anonymip.heuristics.growing.raised_price`); where one finds no row, all
    records become a single one if some pattern allows that. ``"paper"``: they are suppressed as
    a whole, as in the paper, which is no k-anonymity in the strict sense, so the recoding must
    allow it.
    `orders`: so many orders of patterns of equal cost are tried, and the best result is kept: first
    that of the mask, fewest stars and leftmost first, then random ones. The trace tells the range.
    `budget`: when it ends, the records left are placed at once, or suppressed.
    `seed`: of the random orders.
    Raises InputError if the problem asks for another recoding, or an option is wrong;
    UnsupportedObjective if the loss of a pattern depends on the record; NoSolution if records are
    left that find no row.

    Factor m without diversity and single use, if the patterns hold that of stars only and a star
    costs 1 (Theorem 4). Complexity: O(p n m) time, O((n + p) m) memory.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Algorithm 1.
    """
    watch, budget = Stopwatch(), budget or Budget()
    recoding = recoding_of(problem)
    if mode not in _MODES:
        raise unknown_name("mode", mode, _MODES)
    if mode == "paper" and not recoding.suppression:
        raise InputError(
            "the paper's mode suppresses the records left, and the recoding does not allow it",
            remedy=f"Allow {argument('suppression', True)}, or use the mode strict",
        )
    if orders < 1:
        raise InputError(f"orders is {orders}", remedy="Give at least 1")
    if problem.is_capped:
        again = partial(pattern_greedy, mode=mode, orders=orders, seed=seed)
        # The mode of the paper looks at no price.
        limited = solve_capped(problem, again, budget, prices=PRICES if mode == "strict" else 1)
        return replace(limited, seconds=watch.seconds)
    greedy, rng = PatternGreedy.of(problem), np.random.default_rng(seed)
    best: Solution | None = None
    losses: list[float] = []
    stopped: Stopped | None = None
    for turn in range(orders):
        order = greedy.order if turn == 0 else greedy.shuffled(rng)
        found, left, stopped = greedy.run(order, mode, budget)
        solution = Solution.of(problem, found, method="pattern-greedy", trace=(left,))
        losses.append(solution.objective)
        if best is None or solution.objective < best.objective:
            best = solution
        if stopped is not None:
            break
        budget.report("greedy", done=turn + 1, total=orders, incumbent=best.objective)
    assert best is not None
    trace = list(best.trace)
    if orders > 1:
        trace.append(
            f"{len(losses)} orders of patterns of equal cost: loss {min(losses):g} to "
            f"{max(losses):g}, {losses[0]:g} in that of the mask"
        )
    return Solution.of(
        problem,
        best.assignment,
        method="pattern-greedy",
        stopped=stopped or Stopped.HEURISTIC,
        options={"mode": mode, "orders": orders},
        seconds=watch.seconds,
        seed=seed,
        trace=tuple(trace),
    )


def solve_capped(
    problem: Problem, solve: Callable[..., Solution], budget: Budget, *, prices: int = PRICES
) -> Solution:
    """Return the best release under a limit of suppression that a method finds without one.

    By raised prices of a suppressed record, as
    :func:`~anonymip.heuristics.growing.raised_price.solve_within_limit` has them. Where rows of
    stars only are allowed they cost as much as suppressed records, and take those that are too
    many. Where nothing is proven, releases without suppressed records are tried as well, so that a
    limit never loses more than none being suppressed. Raises NoSolution if every release that was
    found suppresses more records.
    """
    recoding = recoding_of(problem)
    starred = np.flatnonzero(recoding.stars(problem).all(axis=1))

    def without_limit(suppression: bool) -> Solution:
        # Where nobody is suppressed, or rows of stars only are allowed, there is no price.
        free = replace(
            recoding, suppression=suppression, most_suppressed=None, suppression_price=None
        )
        return solve(problem.replace(recoding=free), budget=budget)

    choices: list[Solution] = []
    refused: NoSolution | InputError | None = None
    if len(starred):
        found = without_limit(True)
        assert isinstance(found.assignment, Patterns)
        index = found.assignment.index
        shown = Patterns(np.where(index == SUPPRESSED, starred[0], index))
        bounds = [found.bound] if found.bound else []
        for assignment in (found.assignment, shown):
            with suppress(InvalidAssignment):
                choices.append(released(problem, replace(found, assignment=assignment), bounds))
        done = any(same_loss(one.objective, found.objective) for one in choices)
    else:
        refuse_isolated(problem)
        try:
            choices = [solve_within_limit(problem, solve, budget, prices=prices)]
        except NoSolution as refusal:
            refused = refusal
        done = any(one.is_optimal for one in choices)
        bounds = [one.bound for one in choices if one.bound]
    if not done:
        # A release without suppressed records keeps every limit; its bound does not hold here.
        try:
            bare = without_limit(False)
            choices.append(released(problem, bare, bounds))
        except (NoSolution, InputError) as refusal:
            # A diversity that a few may be left out for cannot be kept by all.
            refused = refused or refusal
    if not choices:
        assert refused is not None
        raise NoSolution(refused.message, remedy=refused.remedy)
    return min(choices, key=lambda one: one.objective)


@dataclass(frozen=True, eq=False)
class PatternGreedy:
    """What all runs of the greedy on one problem share."""

    #: What is asked.
    problem: Problem
    recoding: PatternGuided
    stars: Flags  # (p, m) the patterns
    costs: Floats  # (p,) cost of a record under each
    order: Ints  # patterns by ascending cost, in the order of the mask among equals
    price: float  # cost of a suppressed record; infinite where that is not allowed
    rows: PackedRows  # all records as words

    @classmethod
    def of(cls, problem: Problem) -> PatternGreedy:
        """Return what the runs on a problem need."""
        stars, costs, price = priced_patterns(problem)
        order = np.argsort(costs, kind="stable").astype(np.int64)
        rows = pack_rows(problem.microdata.codes, stars)
        return cls(problem, recoding_of(problem), stars, costs, order, price, rows)

    def gathering(self, state: OpenRows, order: Ints) -> Gathering:
        """Return the settings and workspace of a search for moves of records."""
        n, rows = len(state.row_of), len(state.rows)
        return Gathering.of_sizes(
            n=n,
            rows=rows,
            order=order,
            costs=self.costs,
            unassigned_costs=np.full(n, self.price),
            alone=self.price,
            numbers=np.array([self.problem.k, int(self.recoding.single_use), 0, 0, 0, 0], np.int64),
            space=np.empty((5, 1 << max(4, int(2 * (n + rows)).bit_length())), np.int64),
        )

    def shuffled(self, rng: np.random.Generator) -> Ints:
        """Return the patterns by ascending cost, at random among equals."""
        drawn = rng.permutation(len(self.costs))
        return drawn[np.argsort(self.costs[drawn], kind="stable")].astype(np.int64)

    def run(self, order: Ints, mode: str, budget: Budget) -> tuple[Patterns, str, Stopped | None]:
        """Return patterns, how many records were left, and why it stopped early.

        Raises NoSolution if records are left that find no row.
        """
        if mode == "strict":
            order = order[self.costs[order] <= self.price]
        pattern_of, stopped = self._shared(order, budget)
        left = int((pattern_of < 0).sum())
        remark = f"{left} records left by the greedy"
        if left and mode == "strict":
            pattern_of = self._placed(pattern_of, budget, stopped)
        return Patterns(np.where(pattern_of < 0, SUPPRESSED, pattern_of)), remark, stopped

    def _shared(self, order: Ints, budget: Budget) -> tuple[Ints, Stopped | None]:
        """Return the pattern of each record that gets one with at least k - 1 others."""
        problem, rows, single = self.problem, self.rows, self.recoding.single_use
        if problem.diversity is not None:
            return share_rows(problem, rows, order, np.ones(problem.n, np.int64), single, budget)
        types = problem.microdata.row_types()
        packed = PackedRows(np.ascontiguousarray(rows.words[types.first]), rows.masks)
        found, stopped = share_rows(problem, packed, order, types.counts.copy(), single, budget)
        return found[types.inverse], stopped

    def _placed(self, pattern_of: Ints, budget: Budget, stopped: Stopped | None) -> Ints:
        """Return the patterns once the records left have found rows."""
        problem, k = self.problem, self.problem.k
        state = open_rows(problem, self.rows, pattern_of)
        work = self.gathering(state, self.order[self.costs[self.order] <= self.price])
        # Without time only rows in use and that of stars are looked at.
        place_unassigned(state, work, budget)
        unassigned = np.flatnonzero(state.row_of < 0)
        if len(unassigned) and np.isinf(self.price):
            all_stars = np.flatnonzero(self.stars.all(axis=1))
            if not len(all_stars) or not gather_under_stars(state, work, int(all_stars[0]), k):
                common = self._common()
                if common is None:
                    raise self._failure(int(unassigned[0]), stopped or budget.stop_reason())
                return np.full(problem.n, common)
        return pattern_of_records(state)

    def _common(self) -> int | None:
        """Return the cheapest pattern that makes one row of all records, None if there is none."""
        words = self.rows.words
        for pattern in self.order.tolist():
            if not ((words ^ words[0]) & self.rows.masks[pattern]).any():
                every = np.full(self.problem.n, pattern)
                state = open_rows(self.problem, self.rows, every)
                return int(pattern) if is_diverse(state, int(state.row_of[0])) else None
        return None

    def _failure(self, record: int, stopped: Stopped | None) -> NoSolution:
        """Return what to raise for a record that finds no row; NoSolution if one shares no row."""
        refuse_isolated(self.problem)
        remedy = "Allow more patterns, such as the one of stars only, or suppression"
        if stopped is not None:
            return NoSolution(
                f"pattern-greedy: the time ended before record {record} had a row", remedy=remedy
            )
        return NoSolution(
            f"pattern-greedy finds no row for record {record}, which does not prove that there is "
            "none",
            remedy=f"Use pattern-ilp. {remedy}",
        )
