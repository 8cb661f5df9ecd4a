"""The second goal of pattern problems: among releases of the least loss the most output rows."""

from __future__ import annotations

from dataclasses import replace
from math import floor

import numpy as np

from anonymip.errors import InputError, NoSolution
from anonymip.exact.failed_solver import FAILURES, what_failed
from anonymip.exact.model_run import SECONDS_A_CONSTRAINT
from anonymip.exact.patterns.reduced_cost_fixing import columns_within
from anonymip.heuristics.patterns.pattern_greedy import PatternGreedy
from anonymip.models import read, set_start
from anonymip.models.patterns.pattern import ask_for_rows, build_pattern_strong, strong_columns
from anonymip.recodings.rows.output_rows import rows_alike
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.solvers import SolverOptions, solve_model
from anonymip.status import Stopped
from anonymip.tolerances import same_loss

#: Share of the time that duals for leaving out output rows may take.
_DUALS = 0.2


def with_most_rows(
    solution: Solution, solver: str, options: SolverOptions, budget: Budget
) -> tuple[Solution, list[str]]:
    """Return a release of the same loss with the most output rows, and remarks.

    Parameters
    ----------
    solution
        Proven optimal; others are returned as they are.
    solver, options, budget
        Of the second solve.

    Notes
    -----
    The loss is fixed by a row of the strong model that keeps all instances of equal cost, and the
    instances in use are counted. The gap asked for is that of the loss: here it is 0. A greedy that
    takes patterns of many rows first makes the start; n / k rows are the most there can be.
    """
    if not solution.is_optimal:
        return solution, ["the least loss is not proven: the most output rows were not asked for"]
    if budget.stop_reason() is not None:
        return solution, ["there was no time to ask for the most output rows"]
    problem, before = solution.problem, len(solution.sizes)
    solution = _finer(solution, budget)
    if len(solution.sizes) == problem.n // problem.k:
        return solution, [f"{_rows_found(solution, before)}, the most that k records each allow"]
    columns = strong_columns(problem, keep_equal=True)
    columns, _ = columns_within(columns, solution.objective, budget.share(_DUALS))
    remaining = budget.remaining()
    if remaining is not None and SECONDS_A_CONSTRAINT * len(columns.rows) > remaining:
        return solution, [f"{_rows_found(solution, before)}; there was no time to ask for the most"]
    try:
        model = build_pattern_strong(problem, columns=columns)
    except InputError as refusal:
        return solution, [f"the most output rows were not asked for: {refusal.message}"]
    model.formulation = "pattern-strong"
    set_start(model, solution.assignment)
    ask_for_rows(model, solution.objective)
    found = solution
    try:
        result = solve_model(
            model, solver, replace(options, relative_gap=0.0), start=True, budget=budget
        )
        finer = found
        if result.values is not None:
            finer = Solution.of(problem, read(model), method=solution.method)
    except FAILURES as failure:
        return found, [
            f"{_rows_found(found, before)}; the most are not known: {what_failed(failure)}"
        ]
    if len(finer.sizes) > len(found.sizes) and _as_good(finer, solution):
        found = replace(solution, assignment=finer.assignment, objective=finer.objective)
    rows = _rows_found(found, before)
    if result.stopped is Stopped.OPTIMAL and not options.solver_options:
        if len(finer.sizes) < len(found.sizes):
            return found, [f"{rows}; {result.solver} calls fewer the most: it failed"]
        return found, [f"{rows}, the most of all releases of this loss"]
    most = problem.n // problem.k
    if result.bound is not None and not options.solver_options:
        most = min(most, floor(result.bound + 0.5))
    return found, [f"{rows}; releases of this loss have {most} at most"]


def _rows_found(solution: Solution, before: int) -> str:
    return f"{len(solution.sizes)} output rows ({before} at first)"


def _finer(solution: Solution, budget: Budget) -> Solution:
    """Return what the greedy finds if it takes patterns of many rows first, where that is finer."""
    problem = solution.problem
    greedy = PatternGreedy.of(problem)
    codes = np.ascontiguousarray(problem.microdata.codes[problem.microdata.row_types().first])
    rows = np.array([rows_alike(codes, stars)[1] for stars in greedy.stars])
    order = np.lexsort((-rows, greedy.costs)).astype(np.int64)
    try:
        patterns, _, _ = greedy.run(order, "strict", budget)
        found = Solution.of(problem, patterns, method=solution.method)
    except NoSolution:
        return solution
    if len(found.sizes) <= len(solution.sizes) or not _as_good(found, solution):
        return solution
    return replace(solution, assignment=found.assignment, objective=found.objective)


def _as_good(found: Solution, solution: Solution) -> bool:
    return found.objective <= solution.objective or same_loss(found.objective, solution.objective)
