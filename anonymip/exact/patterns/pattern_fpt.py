"""The exact algorithm of pattern-guided suppression for few output rows: guess which are used."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Patterns
from anonymip.errors import InputError, NoSolution
from anonymip.models.patterns.pattern_columns import (
    PatternColumns,
    pattern_columns,
    patterns_by_amounts,
)
from anonymip.models.patterns.row_assignment import RowAssignment, assign_rows, whole_costs
from anonymip.problem import Problem
from anonymip.recodings.output_rows import recoding_of
from anonymip.runtime.arrays import Flags
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped
from anonymip.tolerances import equals_bound

#: Output rows that are guessed at most, unless the caller asks for more.
MOST_ROWS = 20


def pattern_fpt(
    problem: Problem,
    *,
    most_rows: int = MOST_ROWS,
    start: Assignment | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Guess the used output rows, and solve Row Assignment for each guess [1]_.

    It needs no solver of MIPs, and is meant for tiny tables and as a check of what is faster.

    `problem`: with patterns as its recoding, without diversity: under such a rule the assignment of
    records to given output rows is no transportation problem. `most_rows`: output rows at most, of
    which all subsets are guesses. `start`: a known release: guesses that cannot be cheaper are left
    out. `budget`: when it ends, the best release found is returned, without a bound. Raises
    InputError if the problem has a diversity or another recoding, or more output rows than are
    guessed; NoSolution if no release exists, or none was found before the budget ended.

    Of the t p output rows that the theorem speaks of only those that k records may become are ever
    used, and of those that the same records may become the cheapest (not so under single use).
    Guesses are made row by row; a branch ends where the rows left hold not all records, need more
    records than there are, or cost no less, every record in the cheapest, than what is known.
    Complexity: O(2^r) network simplexes for r output rows.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Theorem 3.
    """
    watch, budget = Stopwatch(), budget or Budget()
    if problem.diversity is not None:
        raise InputError(
            "pattern-fpt knows no diversity: its records are assigned row by row, whatever their "
            "sensitive values",
            remedy="Use pattern-ilp",
        )
    columns = pattern_columns(problem)
    if columns.count > most_rows:
        raise InputError(
            f"{columns.program.type_count:,} row types under {len(columns.program.costs):,} "
            f"patterns make {columns.count:,} output rows of at least {problem.k} records, which "
            f"are 2^{columns.count:,} guesses; pattern-fpt takes up to {most_rows:,} rows",
            remedy="Use pattern-ilp",
        )
    known = None if start is None else Solution.of(problem, start, method="start")
    guesses = _Guesses(columns, budget)
    guesses.search(known)
    stopped = budget.stop_reason()
    if guesses.best is None:
        if stopped is not None:
            raise NoSolution(
                f"no release was found before the method stopped ({stopped.value})",
                remedy="Give it more time, or a start",
            )
        raise NoSolution(
            "no set of output rows holds all records, k in each",
            remedy="Allow more patterns, such as the one of stars only, or suppression",
        )
    remark = (
        f"{guesses.assigned:,} of 2^{columns.count} sets of output rows were assigned, the others "
        "left out by their cost"
    )
    solution = Solution.of(
        problem,
        guesses.best,
        method="pattern-fpt",
        stopped=stopped or Stopped.HEURISTIC,
        options={"most_rows": most_rows},
        seconds=watch.seconds,
        trace=(remark,),
    )
    if stopped is not None:
        return solution
    # Costs far below the largest are lost in whole numbers: by as much another set may be cheaper.
    bound = solution.objective - 2 * problem.n * guesses.rounding
    if equals_bound(solution.objective, bound):
        bound = solution.objective
    told = Bound(bound, "all sets of output rows", "argument", watch.seconds)
    return solution.with_bound(told)


class _Guesses:
    """A depth-first search through the sets of output rows.

    Records that are suppressed as a whole take one more row, which needs none and is always used.
    """

    def __init__(self, columns: PatternColumns, budget: Budget) -> None:
        t, r = len(columns.program.counts), columns.count
        self._columns, self._budget = columns, budget
        self._may_hide = bool(np.isfinite(columns.program.price))
        self._single_use = recoding_of(columns.problem).single_use
        own = columns.program.costs[columns.patterns]
        costs, self.rounding = whole_costs(
            np.append(own, columns.program.price if self._may_hide else 0.0),
            # The potentials of the network, and sums over all records, fit into 64 bits.
            max(t + r + 2, columns.problem.n),
        )
        #: (t, r + 1) cost of a record of a row type in a row; out of reach where it does not fit.
        self._never = int(costs.max(initial=0)) + 1
        self._cost = np.full((t, r + 1), self._never, np.int64)
        self._cost[columns.types, columns.rows] = costs[columns.rows]
        if self._may_hide:
            self._cost[:, r] = costs[r]
        self._best_cost: int | None = None
        self.best: Patterns | None = None
        self.assigned = 0

    def search(self, known: Solution | None) -> None:
        """Find the cheapest assignment, cheaper than a known one if that is given."""
        columns = self._columns
        if known is not None:
            index = known.assignment.index  # type: ignore[union-attr]
            shown = index != SUPPRESSED
            rows = np.full(len(index), columns.count)
            rows[shown] = columns.asked[index[shown], columns.program.type_of[shown]]
            self._best_cost = int(self._cost[columns.program.type_of, rows].sum())
            # The start may publish some records by a dearer pattern than that of their row.
            self.best = Patterns(np.append(columns.patterns, SUPPRESSED)[rows].astype(np.int32))
        available = np.ones(columns.count + 1, np.bool_)
        self._decide(0, available, 0)

    def _decide(self, row: int, available: Flags, used: int) -> None:
        """Try all ways to use the rows from one on, given which of those before are used."""
        columns = self._columns
        if self._budget.stop_reason() is not None or not self._may_pay(available):
            return
        if row == columns.count:
            self._assign(available)
            return
        doubled = self._single_use and bool(
            (available[:row] & (columns.patterns[:row] == columns.patterns[row])).any()
        )
        if not doubled and (used + 1) * columns.problem.k <= columns.problem.n:
            self._decide(row + 1, available, used + 1)
        available[row] = False
        self._decide(row + 1, available, used)
        available[row] = True

    def _may_pay(self, available: Flags) -> bool:
        """Return whether every record fits a row, and the cheapest of each cost less than known."""
        cheapest = self._cost[:, available].min(axis=1)
        if (cheapest == self._never).any():
            return False
        total = int((cheapest * self._columns.program.counts).sum())
        return self._best_cost is None or total < self._best_cost

    def _assign(self, used: Flags) -> None:
        columns = self._columns
        self.assigned += 1
        fits = used & (self._cost < self._never)
        types, rows = np.nonzero(fits)
        least = np.where(used, columns.problem.k, 0)
        least[columns.count] = 0
        costs = self._cost[types, rows]
        room = np.full(len(least), columns.problem.n)
        room[columns.count] = columns.problem.most_suppressed
        ends = types, rows, costs.astype(np.float64)
        task = RowAssignment(columns.program.counts, least, *ends, room=room)
        amounts = assign_rows(task)
        if amounts is None:
            return
        total = int((amounts * costs).sum())
        if self._best_cost is None or total < self._best_cost:
            patterns = np.append(columns.patterns, SUPPRESSED)[rows]
            self._best_cost = total
            self.best = patterns_by_amounts(columns.program.type_of, types, patterns, amounts)
