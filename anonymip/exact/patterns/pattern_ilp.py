"""Pattern-guided k-anonymity by the ILP of Bredereck et al.: fixing, solution, second goal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING, Unpack

import numpy as np

from anonymip.assignments import Assignment
from anonymip.bounds.patterns.pattern_duals import pattern_duals
from anonymip.bounds.patterns.pattern_lagrangian import ascend, pattern_bound, pattern_row_bound
from anonymip.errors import InputError, InvalidAssignment, NoSolution, unknown_name
from anonymip.exact.model_run import (
    FAILURES,
    SECONDS_A_CONSTRAINT,
    ModelRun,
    SolverChoices,
    find_start,
    what_failed,
)
from anonymip.exact.patterns.proof import prove
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.exact.trust import Trust, TrustOfPatterns
from anonymip.heuristics.growing.raised_price import found_or_known
from anonymip.heuristics.patterns.pattern_greedy import PatternGreedy, pattern_greedy, solve_capped
from anonymip.heuristics.patterns.pattern_search import pattern_search
from anonymip.models import build, model_size, read, set_start
from anonymip.models.patterns.pattern import ask_for_rows, build_pattern_strong
from anonymip.models.patterns.pattern_columns import PatternColumns, pattern_columns
from anonymip.problem import Problem
from anonymip.recodings.output_rows import pack_rows, recoding_of, rows_alike
from anonymip.recodings.patterns import PatternGuided
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution, proves_optimal, retold
from anonymip.solvers import solve_model
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE, same_loss

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

_FORMULATIONS = ("auto", "pattern", "pattern-strong", "parts")
_STARTS: dict[str, Callable[..., Solution]] = {"greedy": pattern_greedy, "search": pattern_search}
_SECOND_GOALS = ("none", "rows")
#: Up to so many pairs of a type and an output row the strong model is solved as it is; with so
#: many times as many types under patterns they are not counted.
_FEW_PAIRS, _UNCOUNTED = 2_000, 20
#: With a limit of suppression, where parts leave a gap: up to so many times as many pairs the
#: strong model is tried too, and a price takes at most this share of the time that is left.
_LINKED, _A_PRICE = 10, 0.5
#: Share of the time that duals for leaving out output rows may take.
_DUALS = 0.2


def pattern_ilp(
    problem: Problem,
    *,
    formulation: str = "auto",
    second_goal: str = "none",
    warm_start: str = "greedy",
    nodes: int = 0,
    start: Assignment | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    **solving: Unpack[SolverChoices],
) -> Solution:
    """Solve the ILP of pattern-guided k-anonymity [1]_ to optimality, or as far as the budget goes.

    `problem`: with patterns as its recoding.
    `formulation`: ``"pattern"``: the ILP of the paper; ``"pattern-strong"``: with the same optimum
    and a much better relaxation, and without the output rows that duals of records rule out;
    ``"parts"``: duals, parts that share no output row, and small restricted MIPs, for large tables
    without single use and diversity; where k is 2 or 3, with duals of triples of records too;
    ``"auto"``: parts where they are possible and the table is not tiny, else the strong model. A
    limit of suppression is kept by parts through a price of suppressed records, which may leave a
    gap: ``"auto"`` then goes on with the strong model of tables that are not large.
    `second_goal`: ``"rows"``: once the least loss is proven, the most output rows among releases of
    this loss are asked for in a second solve, since many small classes say more than few large
    ones; ``"none"``: any release of least loss will do.
    `warm_start`: ``"greedy"``; ``"search"``, which improves that by local search; or ``"none"``.
    `nodes`: most nodes of the solver in each of its calls; 0: no limit.
    `start`: patterns to start from instead.
    `**solving`: see :class:`~anonymip.exact.model_run.SolverChoices`; with a log or options of its
    own ``"auto"`` takes the strong model, which is one call of the solver.
    `budget`: stops the solver; the incumbent or the start is returned.
    `seed`: of the solver.
    Raises InputError if the problem is too large for the model, or an option is wrong;
    UnsupportedObjective if the loss of a pattern depends on the record; SolverUnavailable if the
    solver is not installed; SolverError if the solver fails or what it returns does not survive the
    checks, and there is no start; NoSolution if no release exists, or nothing was found within the
    budget and there was no start.

    References
    ----------
    .. [1] R. Bredereck, A. Nichterlein, R. Niedermeier: Pattern-Guided k-Anonymity,
       Algorithms 6(4), 2013, Section 2.2.
    """
    run = ModelRun.begin(problem, "pattern-ilp", budget=budget, seed=seed, **solving)
    if nodes < 0:
        raise InputError(f"nodes is {nodes}", remedy="Give how many nodes, or 0 for no limit")
    run.settings = replace(run.settings, node_limit=nodes or None)
    run.arithmetic = pattern_bound
    for what, given, names in (
        ("formulation", formulation, _FORMULATIONS),
        ("second goal", second_goal, _SECOND_GOALS),
    ):
        if given not in names:
            raise unknown_name(what, given, names)
    recoding = recoding_of(problem)
    run.start_from(find_start(problem, warm_start, start, _STARTS, seed, run.budget, best=False))
    own_call = run.settings.log is not None or bool(run.settings.solver_options)
    ruled = recoding.single_use or problem.diversity is not None
    may_link = formulation == "auto" and not own_call
    if formulation == "auto":
        formulation = "pattern-strong" if own_call or ruled else _pick(problem, recoding)
    elif formulation == "parts" and own_call:
        raise InputError(
            "the formulation parts calls the solver many times, and takes no log and no options",
            remedy="Use pattern-strong",
        )
    elif formulation == "parts" and ruled:
        raise InputError(
            "parts of a pattern problem know neither single use nor diversity",
            remedy="Use the formulation pattern-strong of the whole problem",
        )
    run.describe(
        formulation=formulation, second_goal=second_goal, warm_start=warm_start, nodes=nodes
    )
    bound, known = pattern_row_bound(problem), run.incumbent
    if known is not None and proves_optimal(problem, known.objective, bound.value, strict=True):
        run.trace.append(
            "the start is optimal: no record shares a cheaper pattern with enough others"
        )
        found = known.with_bound(bound)
    elif formulation == "parts":
        by_parts = _within_limit if problem.is_capped else prove
        found = by_parts(problem, Mip(run.solver, run.settings, run.budget), known)
        run.trace += found.trace
        if problem.is_capped and may_link and not found.is_optimal:
            run.start_from((found, []))
            found = _solved(run, "pattern-strong", found.bound or bound, _LINKED * _FEW_PAIRS)
    else:
        found = _solved(run, formulation, bound)
    if second_goal == "rows":
        found, remark = with_most_rows(run, found)
        run.trace.append(remark)
    return replace(
        found,
        method=run.method,
        options=run.options,
        seconds=run.watch.seconds,
        seed=seed,
        trace=tuple(run.trace),
    )


def _pick(problem: Problem, recoding: PatternGuided) -> str:
    """Return the formulation for a problem without rules."""
    types = len(problem.microdata.row_types().first)
    if types * len(recoding.stars(problem)) > _UNCOUNTED * _FEW_PAIRS:
        return "parts"
    return "pattern-strong" if len(pattern_columns(problem).rows) <= _FEW_PAIRS else "parts"


def _within_limit(problem: Problem, mip: Mip, start: Solution | None) -> Solution:
    """Return the best release and bound that prices of a suppressed record lead to.

    Parts know no limit that all of them share. Raises NoSolution without a start if every release
    that is found suppresses more records.
    """

    def parts(free: Problem, *, budget: Budget) -> Solution:
        known = None
        if start is not None and start.assignment.suppressed <= free.most_suppressed:
            known = Solution.of(free, start.assignment, method=start.method)
        return prove(free, mip.within(budget.share(_A_PRICE)), known)

    return found_or_known(lambda: solve_capped(problem, parts, mip.budget), start)


def _solved(run: ModelRun, formulation: str, bound: Bound, most_pairs: float = np.inf) -> Solution:
    """Return the solution of one model, given a bound; the start if the model has many pairs."""
    problem, incumbent = run.problem, run.incumbent
    choices: dict[str, object] = {}
    if formulation == "pattern-strong":
        columns = pattern_columns(problem)
        if incumbent is not None:
            if len(columns.rows) > most_pairs:
                return incumbent
            before = len(columns.rows)
            columns, own = columns_within(columns, incumbent.objective, run.budget)
            bound = max(bound, own, key=lambda one: one.value)
            run.trace.append(
                f"{len(columns.rows):,} of {before:,} pairs of a type and an output row are left"
            )
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


def columns_within(
    columns: PatternColumns, loss: float, budget: Budget
) -> tuple[PatternColumns, Bound]:
    """Return the columns that a release of at most a loss may use, and a bound on any release.

    Dual values of records prove how much more than the bound any release costs that publishes a
    record of some row type as some output row (:mod:`anonymip.bounds.patterns.pattern_duals`);
    where that exceeds the loss, the pair is left out. Single use and diversity only raise these
    costs. Nothing is left out that a release of this very loss uses. The bound takes a share of the
    time. Complexity: that of the bound.
    """
    watch, program = Stopwatch(), columns.program
    duals = pattern_duals(program, program.cheapest)
    if duals.bound < loss:
        duals = ascend(program, None, budget.share(_DUALS), enough=loss)
    bound = Bound(min(duals.bound, loss), "pattern Lagrangian", "argument", watch.seconds)
    # The loss is a sum of floating-point numbers, the duals are whole ones.
    room = np.ceil((loss + LOSS_RELATIVE * abs(loss)) * duals.unit) - duals.value
    fits = duals.reduced_costs <= room
    kept = np.zeros(program.row_of.shape, np.bool_)
    kept[duals.pair_patterns[fits], duals.pair_types[fits]] = True
    return columns.only(kept), bound


def with_most_rows(run: ModelRun, solution: Solution) -> tuple[Solution, str]:
    """Return a release of the same loss with the most output rows, and a remark.

    Only solutions proven optimal are looked at. The loss is fixed by a row of the strong model that
    keeps all instances of equal cost, and the instances in use are counted. The gap asked for is
    that of the loss: here it is 0. A greedy that takes patterns of many rows first makes the start;
    n / k rows are the most there can be.
    """
    problem, budget, before = run.problem, run.budget, len(solution.sizes)
    if not solution.is_optimal:
        return solution, "the least loss is not proven: the most output rows were not asked for"
    if budget.stop_reason() is not None:
        return solution, "there was no time to ask for the most output rows"
    solution, most = _finer(solution, budget), problem.n // problem.k
    if len(solution.sizes) == most:
        return solution, f"{_rows_found(solution, before)}, the most that k records each allow"
    columns = pattern_columns(problem, keep_equal=True)
    columns, _ = columns_within(columns, solution.objective, budget)
    remaining = budget.remaining()
    if remaining is not None and SECONDS_A_CONSTRAINT * len(columns.rows) > remaining:
        return solution, f"{_rows_found(solution, before)}; there was no time to ask for the most"
    try:
        model = build_pattern_strong(problem, columns=columns)
    except InputError as refusal:
        return solution, f"the most output rows were not asked for: {refusal.message}"
    model.formulation = "pattern-strong"
    set_start(model, solution.assignment)
    ask_for_rows(model, solution.objective)
    finer, settings = solution, replace(run.settings, relative_gap=0.0)
    try:
        result = solve_model(model, run.solver, settings, start=True, budget=budget)
        if result.values is not None:
            finer = Solution.of(problem, read(model), method=solution.method)
    except FAILURES as failure:
        rows = _rows_found(solution, before)
        return solution, f"{rows}; the most are not known: {what_failed(failure)}"
    found = _rather(finer, solution)
    rows = _rows_found(found, before)
    if result.stopped is Stopped.OPTIMAL and not settings.solver_options:
        if len(finer.sizes) < len(found.sizes):
            return found, f"{rows}; {result.solver} calls fewer the most: it failed"
        if len(finer.sizes) == len(found.sizes):
            return found, f"{rows}, the most of all releases of this loss"
    if result.bound is not None and not settings.solver_options:
        most = min(most, floor(result.bound + 0.5))
    return found, f"{rows}; releases of this loss have {most} at most"


def _rows_found(solution: Solution, before: int) -> str:
    return f"{len(solution.sizes)} output rows ({before} at first)"


def _finer(solution: Solution, budget: Budget) -> Solution:
    """Return what the greedy finds if it takes patterns of many rows first, where that is finer."""
    problem = solution.problem
    greedy = PatternGreedy.of(problem)
    packed = pack_rows(problem.microdata.codes[problem.microdata.row_types().first], greedy.stars)
    rows = np.array([rows_alike(packed, at)[1] for at in range(len(greedy.stars))])
    order = np.lexsort((-rows, greedy.costs)).astype(np.int64)
    try:
        found = Solution.of(problem, greedy.run(order, "strict", budget)[0], method=solution.method)
    except (NoSolution, InvalidAssignment):
        # The greedy itself knows no limit of suppression.
        return solution
    return _rather(found, solution)


def _rather(found: Solution, known: Solution) -> Solution:
    """Return what was found if it has more output rows than the known, and is as good."""
    if len(found.sizes) <= len(known.sizes):
        return known
    finer = retold(known, known.problem, found.assignment, bound=known.bound)
    as_good = finer.objective <= known.objective or same_loss(finer.objective, known.objective)
    return finer if as_good else known
