"""Classes and freeform covers by column generation: releases with bounds, or proven optimal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from anonymip.assignments import Assignment
from anonymip.effort import check_effort
from anonymip.errors import NoSolution
from anonymip.exact.classes.small import compare_exactly
from anonymip.exact.column_generation.conditions import column_rules
from anonymip.exact.column_generation.proving import Proof
from anonymip.exact.column_generation.settings import Settings, Work
from anonymip.exact.column_generation.state import Run
from anonymip.exact.column_generation.warm_columns import starting_releases
from anonymip.exact.failed_solver import FAILURES, cheap_release
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.solvers import SolverOptions
from anonymip.status import Stopped
from anonymip.tolerances import closes_gap

#: Share of the time that heuristics may take.
_STARTING = 0.25

_WORK: Mapping[str, Work] = MappingProxyType(
    {
        "quick": Work(5, 20_000, nodes=1, deals=10, regions=0, branches=8_000, searched=1_000_000),
        "normal": Work(
            30, 300_000, nodes=1, deals=45, regions=100, branches=900_000, searched=10_000_000
        ),
        "thorough": Work(
            60,
            3_000_000,
            nodes=20,
            deals=200,
            regions=1_000,
            branches=50_000_000,
            searched=200_000_000,
        ),
    }
)


def column_generation(
    problem: Problem,
    *,
    bound_only: bool = False,
    start: Assignment | None = None,
    solver: str = "highs",
    gap: float = 0.0,
    threads: int = 1,
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Bound classes or freeform covers by the linear program over all sets, and prove optima.

    A master program of few sets of records grows by those that its duals undercut [1]_, found by
    an exact search. Its value bounds every release, and so does every round before it ends. Rank-1
    cuts raise it. Then targets between bound and loss are tried: all sets that a release below the
    target may hold are enumerated, and the best release of these is looked for, which either is an
    optimum or raises the bound to the target.

    Parameters
    ----------
    problem
        With classes or plain freeform covers, and a loss that is summed. Classes need a class loss
        that is superadditive, covers a record loss that is monotone. Losses without tables and
        losses that are not monotone are for few records: all their sets are listed.
    bound_only
        Whether to end when the linear program is solved: the release is that of the heuristics.
    start
        A release that is known.
    solver
        Of integer programs over few columns.
    gap
        Relative gap to stop at; 0 proves optimality.
    threads
        Of the solver.
    effort
        How many rounds of cuts, and how large the programs may become: ``quick``, ``normal``,
        ``thorough``; None: thorough within a time limit, else normal.
    budget
        When it ends, the best release and the best bound so far are the result.
    seed
        Of heuristics, cuts and solver: the same seed gives the same result where no time ends it.

    References
    ----------
    .. [1] C. Barnhart, E. Johnson, G. Nemhauser, M. Savelsbergh, P. Vance: Branch-and-Price: Column
       Generation for Solving Huge Integer Programs, Operations Research 46(3), 1998.

    Raises
    ------
    InputError
        If the recoding, a rule or an option does not fit, or there are too many sets to list.
    UnsupportedObjective
        If the objective lacks a property that is needed; two sets show it.
    SolverError
        If the solver fails before any release is found.
    NoSolution
        If no release was found, or none obeys the rules.
    """
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    # The gap is refused as in a solver's options, which do not get it: pools are solved for good.
    settings = Settings(
        solver=solver,
        options=SolverOptions(threads=threads, seed=seed),
        gap=SolverOptions(relative_gap=gap).relative_gap,
        work=_WORK[effort],
        seed=seed,
        bound_only=bound_only,
    )
    run = Run(problem, column_rules(problem), watch)
    releases = starting_releases(problem, start, effort, seed, budget.share(_STARTING))
    for release in releases[:1]:
        run.offer(release.assignment)
    try:
        stopped = Proof(run, settings, run.reporting(budget)).prove(releases)
    except FAILURES as failure:
        run.go_without_solver(failure, cheap_release(problem, budget, seed))
        if run.incumbent is None:
            raise
        stopped = Stopped.ERROR
    if run.incumbent is None:
        raise NoSolution(
            f"column generation found no release that obeys the rules ({stopped.value})",
            remedy="Loosen a rule, or give it more time",
        )
    within = closes_gap(run.loss, run.lower) and not gap
    if within and stopped is Stopped.GAP and not run.is_closed(gap):
        run.trace.append("some releases lose as much up to what the proof resolves")
        known = cheap_release(problem, budget, seed)
        if known is not None:
            run.offer(known.assignment)
    elif stopped is Stopped.GAP and not run.is_closed(gap):
        stopped = Stopped.NODES
        if not bound_only:
            further = "" if effort == "thorough" else "; thorough may prove more"
            run.trace.append(f"stopped by effort {effort}{further}")
    solution = Solution.of(
        problem,
        run.incumbent.assignment,
        method="column-generation",
        bound=run.bound,
        stopped=stopped,
        options={"gap": gap, "bound_only": bound_only, "effort": effort},
        seconds=watch.seconds,
        seed=seed,
        trace=tuple(run.trace),
        solver=run.solver,
    )
    return solution if gap or bound_only else compare_exactly(solution, budget, seed)
