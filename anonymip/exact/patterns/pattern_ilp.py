"""From a pattern problem through the ILP of Bredereck et al. to a checked solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anonymip.assignments import Assignment
from anonymip.bounds.patterns.pattern_rows import pattern_row_bound
from anonymip.errors import InputError, unknown_name
from anonymip.exact.model_run import ModelRun
from anonymip.exact.patterns.more_rows import with_most_rows
from anonymip.exact.patterns.proof import prove
from anonymip.exact.patterns.reduced_cost_fixing import columns_within
from anonymip.exact.patterns.trust import TrustOfPatterns
from anonymip.exact.trust import Trust
from anonymip.exact.warm_starts import find_start
from anonymip.heuristics.patterns.pattern_greedy import pattern_greedy
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.models import build, model_size
from anonymip.models.patterns.pattern import strong_columns
from anonymip.models.patterns.pattern_columns import PatternColumns
from anonymip.optimality import proves_optimal
from anonymip.problem import Problem
from anonymip.recodings.rows.output_rows import recoding_of
from anonymip.runtime.budget import Budget
from anonymip.solution import Bound, Solution

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

_FORMULATIONS = ("auto", "pattern", "pattern-strong", "parts")
_STARTS: dict[str, Callable[..., Solution]] = {"greedy": pattern_greedy, "search": pattern_search}
_SECOND_GOALS = ("none", "rows")
#: Up to so many pairs of a type and an output row the strong model is solved as it is; with so
#: many times as many types under patterns they are not counted.
_FEW_PAIRS, _UNCOUNTED = 2_000, 20
#: Share of the time that duals for leaving out output rows may take.
_DUALS = 0.2


def pattern_ilp(
    problem: Problem,
    *,
    formulation: str = "auto",
    second_goal: str = "none",
    warm_start: str = "greedy",
    start: Assignment | None = None,
    solver: str = "highs",
    gap: float = 0.0,
    threads: int = 1,
    log: str | Path | None = None,
    solver_options: Mapping[str, object] | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Solve the ILP of pattern-guided k-anonymity [1]_ to optimality, or as far as the budget goes.

    Parameters
    ----------
    problem
        With patterns as its recoding.
    formulation
        ``"pattern"``: the ILP of the paper; ``"pattern-strong"``: with the same optimum and a much
        better relaxation, and without the output rows that duals of records rule out; ``"parts"``:
        duals, parts that share no output row, and small restricted MIPs, for large tables
        without single use and diversity; where k is 2 or 3, with duals of triples of records
        too; ``"auto"``: parts where they are possible and the table is not tiny, else the strong
        model.
    second_goal
        ``"rows"``: once the least loss is proven, the most output rows among releases of this loss
        are asked for in a second solve, since many small classes say more than few large ones;
        ``"none"``: any release of least loss will do.
    warm_start
        ``"greedy"``; ``"search"``, which improves that by local search; or ``"none"``.
    start
        Patterns to start from instead.
    solver
        Name of a solver adapter.
    gap
        Relative gap to stop at; 0 proves optimality.
    threads, log, solver_options
        Handed to the solver, see :class:`~anonymip.solvers.SolverOptions`; with a log or options of
        its own ``"auto"`` takes the strong model, which is one call of the solver.
    budget
        Stops the solver; the incumbent or the start is returned.
    seed
        Of the solver.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Section 2.2.

    Raises
    ------
    InputError
        If the problem is too large for the model, or an option is wrong.
    UnsupportedObjective
        If the loss of a pattern depends on the record.
    SolverUnavailable
        If the solver is not installed.
    SolverError
        If the solver fails or what it returns does not survive the checks, and there is no start.
    NoSolution
        If no release exists, or nothing was found within the budget and there was no start.
    """
    run = ModelRun.begin(
        problem,
        "pattern-ilp",
        solver=solver,
        gap=gap,
        threads=threads,
        log=log,
        solver_options=solver_options,
        budget=budget,
        seed=seed,
    )
    _refuse_unknown("formulation", formulation, _FORMULATIONS)
    _refuse_unknown("second goal", second_goal, _SECOND_GOALS)
    recoding_of(problem)
    run.start_from(find_start(problem, warm_start, start, _STARTS, seed, run.budget, best=False))
    own_call = log is not None or bool(solver_options)
    if formulation == "auto":
        formulation = _pick(problem, own_call)
    elif formulation == "parts" and own_call:
        raise InputError(
            "the formulation parts calls the solver many times, and takes no log and no options",
            remedy="Use pattern-strong",
        )
    run.describe(formulation=formulation, second_goal=second_goal, warm_start=warm_start)
    if formulation == "parts":
        found = prove(
            problem,
            start=run.incumbent,
            budget=run.budget,
            solver=solver,
            gap=gap,
            threads=threads,
            seed=seed,
        )
        run.trace += found.trace
    else:
        found = _solved(run, formulation)
    if second_goal == "rows":
        found, remarks = with_most_rows(found, solver, run.settings, run.budget)
        run.trace += remarks
    return replace(
        found,
        method=run.method,
        options=run.options,
        seconds=run.watch.seconds,
        seed=seed,
        trace=tuple(run.trace),
    )


def _refuse_unknown(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise unknown_name(what, given, known)


def _pick(problem: Problem, own_call: bool) -> str:
    """Return the formulation for a problem."""
    if own_call or recoding_of(problem).single_use or problem.diversity is not None:
        return "pattern-strong"
    types = len(problem.microdata.row_types().first)
    if types * len(recoding_of(problem).stars(problem)) > _UNCOUNTED * _FEW_PAIRS:
        return "parts"
    few = len(strong_columns(problem).rows) <= _FEW_PAIRS
    return "pattern-strong" if few else "parts"


def _solved(run: ModelRun, formulation: str) -> Solution:
    """Return the solution of one model."""
    problem, incumbent = run.problem, run.incumbent
    bound = pattern_row_bound(problem)
    if incumbent is not None and proves_optimal(
        problem, incumbent.objective, bound.value, strict=True
    ):
        run.trace.append(
            "the start is optimal: no record shares a cheaper pattern with enough others"
        )
        return incumbent.with_bound(bound)
    choices: dict[str, object] = {}
    if formulation == "pattern-strong":
        columns = strong_columns(problem)
        if incumbent is not None:
            columns, bound = _without_costly_rows(run, columns, incumbent)
        choices["columns"] = columns
        size = len(columns.rows)
    else:
        size = model_size(problem, formulation)
    kept = run.kept_without_time(size, bound)
    if kept is not None:
        return kept

    def make() -> tuple[ConcreteModel, Trust]:
        model = build(problem, formulation, **choices)
        return model, TrustOfPatterns(model.context)

    return run.solve(make, bound)


def _without_costly_rows(
    run: ModelRun, columns: PatternColumns, incumbent: Solution
) -> tuple[PatternColumns, Bound]:
    """Return the columns that are left below the start, and a bound."""
    left, bound = columns_within(columns, incumbent.objective, run.budget.share(_DUALS))
    run.trace.append(
        f"{len(left.rows):,} of {len(columns.rows):,} pairs of a type and an output row are left"
    )
    return left, bound
