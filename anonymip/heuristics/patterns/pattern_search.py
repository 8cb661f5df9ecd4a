"""Local search on releases by patterns: rows are opened, filled and given up while that gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Patterns
from anonymip.heuristics.growing.raised_price import found_or_known
from anonymip.heuristics.patterns.open_rows import open_rows, pattern_of_records
from anonymip.heuristics.patterns.pattern_greedy import PatternGreedy, pattern_greedy, solve_capped
from anonymip.heuristics.patterns.row_moves import MADE, find_others, try_all
from anonymip.problem import Problem
from anonymip.recodings.output_rows import recoding_of
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Prices that are tried at most to keep a limit of suppression: each is a search of its own.
_PRICES = 8
#: The greedy that makes the start gets at most this part of the time.
_SHARE = 0.5


def pattern_search(
    problem: Problem,
    *,
    passes: int = 20,
    start: Assignment | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Improve a release by patterns until no move gains anything, never making it worse.

    A move looks at all records that look alike through one pattern. Those that are published at a
    higher cost become this output row, as far as their rows can spare them; a row is given up as a
    whole if the rest of its records find room in other rows. If fewer than k come to a new row,
    those join that lose least. Only moves that gain, and that keep single use and the diversity,
    are made. Patterns are tried by ascending cost.

    `problem`: with patterns as its recoding. `passes`: most passes over all patterns. `start`:
    patterns to improve; those of pattern-greedy if none are given. `budget`: when it ends, what is
    reached is the result. `seed`: of the greedy. Raises InputError if the problem asks for another
    recoding; UnsupportedObjective if the loss of a pattern depends on the record; InvalidAssignment
    if the start breaks a rule of the problem; NoSolution if no start is found.

    Complexity of a pass: O(p n) time, O((p + n) m) memory.
    """
    watch, budget = Stopwatch(), budget or Budget()
    recoding_of(problem)  # refuses any other
    if start is None:
        first = pattern_greedy(problem, budget=budget.share(_SHARE), seed=seed)
    else:
        first = Solution.of(problem, start, method="start")
    if problem.is_capped:
        limited = _within_limit(problem, passes, first, budget, seed)
        return replace(limited, seconds=watch.seconds)
    assert isinstance(first.assignment, Patterns)
    shared = PatternGreedy.of(problem)
    state = open_rows(problem, shared.rows, first.assignment.index.astype(np.int64))
    work = shared.gathering(state, shared.order)
    made, stopped = -1, budget.stop_reason()
    done = 0
    while stopped is None and done < passes and made < work.numbers[MADE]:
        made = int(work.numbers[MADE])
        find_others(state, work)
        stopped = try_all(state, work, budget, "moving records")
        done += 1
    pattern_of = pattern_of_records(state)
    found = Patterns(np.where(pattern_of < 0, SUPPRESSED, pattern_of))
    return Solution.of(
        problem,
        found,
        method="pattern-search",
        stopped=stopped or Stopped.HEURISTIC,
        options={"passes": passes, **({} if start is None else {"from_method": "start"})},
        seconds=watch.seconds,
        seed=seed,
        trace=(
            f"start: {first.objective:.6g}",
            f"{int(work.numbers[MADE])} moves in {done} passes",
        ),
    )


def _within_limit(
    problem: Problem, passes: int, known: Solution, budget: Budget, seed: int
) -> Solution:
    """Return the best release found within a limit of suppression, never worse than the known."""

    def search(free: Problem, *, budget: Budget) -> Solution:
        may_start = known.assignment.suppressed <= free.most_suppressed
        first = known.assignment if may_start else None
        return pattern_search(free, passes=passes, start=first, budget=budget, seed=seed)

    known = replace(known, method="pattern-search")
    return found_or_known(lambda: solve_capped(problem, search, budget, prices=_PRICES), known)
