"""Classes and freeform covers by column generation: releases with bounds, or proven optimal."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from anonymip.assignments import Assignment
from anonymip.effort import EFFORTS, check_effort
from anonymip.enumeration.merging import row_types
from anonymip.enumeration.squared_errors import are_priced
from anonymip.errors import InputError, NoSolution
from anonymip.exact.classes.small import compare_exactly
from anonymip.exact.column_generation.conditions import column_rules, rules_of_relaxation
from anonymip.exact.column_generation.proving import Proof
from anonymip.exact.column_generation.run import Run
from anonymip.exact.column_generation.settings import FEW, WORK, Settings, Work
from anonymip.exact.model_run import FAILURES, cheap_release
from anonymip.exact.trust import TOO_FINE, is_too_fine
from anonymip.heuristics.growing.raised_price import found_or_known, solve_within_limit
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.solvers import SolverOptions, prepare_solver
from anonymip.status import Stopped
from anonymip.tolerances import closes_gap

#: Methods that are cheap, with their options, by recoding; the first one is for few records.
_STARTS: Mapping[str, tuple[tuple[str, Mapping[str, object]], ...]] = MappingProxyType(
    {
        "classes": (
            ("anonymip.heuristics.classes.initial:initial", {}),
            ("anonymip.heuristics.classes.ordered_cut:ordered_cut", {}),
            ("anonymip.heuristics.classes.k_member:k_member", {}),
            ("anonymip.heuristics.local_search.local_search:local_search", {}),
        ),
        "freeform": (
            ("anonymip.heuristics.freeform.ring:ring", {}),
            ("anonymip.heuristics.freeform.hungarian:hungarian", {}),
            ("anonymip.heuristics.freeform.reassign:reassign", {"from_method": "hungarian"}),
            ("anonymip.heuristics.freeform.reassign:reassign", {"from_method": "sort-greedy"}),
            ("anonymip.heuristics.freeform.ring:ring", {}),
        ),
    }
)
#: Records up to which a thorough proof looks for better releases by itself: its first ones are
#: those of normal effort, which take half of the time of 300 records with k = 3 otherwise.
_TRIED_BY_COLUMNS = 2_000


#: Covers of more records start in parts of so many: of 20,000 the starts took 53 s, where the
#: columns of their few types took three.
_WHOLE, _PART = 2_000, 1_000


def starting_releases(
    problem: Problem, start: Assignment | None, effort: str, seed: int, budget: Budget
) -> list[Solution]:
    """Return releases to start from, the best one first; none if nothing was found.

    Heuristics run beside a known start, which InvalidAssignment is raised of if it breaks a rule.
    """
    found = [] if start is None else [Solution.of(problem, start, method="start")]
    few = problem.n <= FEW
    first, *others = _STARTS[problem.recoding.name]
    if are_priced(problem):
        # The iterated search of squared errors forgets where it began.
        others = others[-1:]
    for target, options in [first, *others] if few else others:
        if found and (few or budget.stop_reason() is not None):
            break
        module, _, name = target.partition(":")
        heuristic = getattr(importlib.import_module(module), name)
        taken = dict(options)
        if name in ("local_search", "reassign"):
            taken["effort"] = effort
        if name in ("hungarian", "reassign") and problem.n > _WHOLE:
            taken["part"] = _PART
        if name == "local_search" and problem.n <= _TRIED_BY_COLUMNS and effort == EFFORTS[-1]:
            taken["effort"] = EFFORTS[-2]
        try:
            found.append(heuristic(problem, seed=seed, budget=budget, **taken))
        # What a heuristic may refuse that columns do not.
        except (NoSolution, InputError):
            continue
    return sorted(found, key=lambda solution: solution.objective)


#: Share of the time that heuristics may take.
_STARTING = 0.25


def column_generation(
    problem: Problem,
    *,
    bound_only: bool = False,
    memory: float = 1.0,
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

    `problem`: with classes or plain freeform covers, and a loss that is summed. Classes need a
    class loss that is superadditive, covers a record loss that is monotone. Losses without tables
    and losses that are not monotone are for few records: all their sets are listed.
    `bound_only`: whether to end when the linear program is solved: the release is that of the
    heuristics.
    `memory`: gigabytes (10^9 bytes) that a pool of sets may hold, at least 0.001; no more than a
    part of what there is. Where all sets below a target need more, fewer are looked at, or none.
    `start`: a release that is known.
    `solver`: of integer programs over few columns.
    `gap`: relative gap to stop at; 0 proves optimality.
    `threads`: of the solver.
    `effort`: how many rounds of cuts, and how large the programs may become: ``quick``, ``normal``,
    ``thorough``; None: thorough within a time limit, else normal.
    `budget`: when it ends, the best release and the best bound so far are the result.
    `seed`: of heuristics, cuts and solver: the same seed gives the same result where no time ends
    it.
    Raises InputError if the recoding, a rule or an option does not fit, or there are too many sets
    to list; UnsupportedObjective if the objective lacks a property that is needed; two sets show
    it; SolverError if the solver fails before any release is found; NoSolution if no release was
    found, or none obeys the rules.

    References
    ----------
    .. [1] C. Barnhart, E. Johnson, G. Nemhauser, M. Savelsbergh, P. Vance: Branch-and-Price: Column
       Generation for Solving Huge Integer Programs, Operations Research 46(3), 1998.
    """
    watch, budget = Stopwatch(), budget or Budget()
    effort = check_effort(effort, limited=budget.deadline is not None)
    # The gap is refused as in a solver's options, which do not get it: pools are solved for good.
    settings = Settings(
        solver=solver,
        options=SolverOptions(threads=threads, seed=seed),
        gap=SolverOptions(relative_gap=gap).relative_gap,
        work=WORK[effort],
        bound_only=bound_only,
        memory=1e9 * memory,
    )
    if not memory >= 0.001:
        raise InputError(f"memory is {memory} gigabytes", remedy="Give gigabytes, 0.001 at least")
    rules = column_rules(problem)
    if problem.is_capped:
        known = None if start is None else Solution.of(problem, start, method="column-generation")
        again = partial(
            column_generation,
            start=start,
            solver=solver,
            gap=gap,
            bound_only=bound_only,
            memory=memory,
            threads=threads,
            effort=effort,
            seed=seed,
        )
        found = found_or_known(lambda: solve_within_limit(problem, again, budget), known)
        # One of its runs tells of itself alone.
        return replace(found, seconds=watch.seconds)
    run = Run(problem, rules, settings, budget, watch)
    if not bound_only:
        prepare_solver(solver)
    releases = starting_releases(problem, start, effort, seed, budget.share(_STARTING))
    for release in releases[:1]:
        run.offer(release.assignment)
    try:
        stopped = Proof(run).prove(releases)
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
    fine = not (gap or bound_only) and is_too_fine(problem, run.loss, by_cells=False)
    if (within or fine) and stopped is Stopped.GAP and not run.is_closed():
        same = "some releases lose as much up to what the proof resolves"
        run.trace.append(same if within else TOO_FINE)
        known = cheap_release(problem, budget, seed)
        if known is not None:
            run.offer(known.assignment)
    elif stopped is Stopped.GAP and not run.is_closed():
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
        options={"gap": gap, "bound_only": bound_only, "memory": memory, "effort": effort},
        seconds=watch.seconds,
        seed=seed,
        trace=tuple(run.trace),
        solver=run.solver,
    )
    return solution if gap or bound_only else compare_exactly(solution, budget, seed)


#: Partial sets looked at, half a million a second.
_SEARCHED = {"quick": 500_000, "normal": 5_000_000, "thorough": 100_000_000}
#: Row types times the square of k up to which it is tried: 9,000 took 1.5 s with k = 3, 12,500 took
#: 9 s with k = 5 and 10,000 as long with k = 10; covers have sets of one size, and take a quarter.
_TRIED = {"quick": 4_000, "normal": 15_000, "thorough": 100_000}
_OF_COVERS = 0.25
#: The same of squared errors: 1,080 records took 4 s with k = 3, and 40 s with k = 5.
_SQUARED = {"quick": 2_500, "normal": 12_000, "thorough": 40_000}


def relaxation_bound(
    problem: Problem, releases: Sequence[Solution], *, effort: str, budget: Budget
) -> tuple[Bound | None, bool]:
    """Return the bound of column generation, and whether it is that of the linear program.

    `problem`: one that :func:`may_be_bounded`. `releases`: known ones, from whose sets the master
    starts. `effort`: how much is looked at. `budget`: ends the rounds; the bound of the last one
    holds. Returns: the bound is None if the problem does not meet the conditions of column
    generation, or no round ended. Complexity: exponential in k in the worst case, bounded by what
    the effort allows. 1,000 records of 8 attributes take 2 seconds with k = 3; 300 take 3 seconds
    with k = 5.
    """
    # What holds without rules holds under them.
    freed = problem.without_rules
    try:
        freed, rules = rules_of_relaxation(freed)
    except InputError:
        return None, False
    settings = Settings(work=Work(searched=_SEARCHED[effort]), bound_only=True)
    run = Run(freed, rules, settings, budget)
    if freed.recoding.name != problem.recoding.name:
        releases = ()
    for release in releases:
        run.offer(release.assignment)
    proof = Proof(run)
    proof.prove(releases)
    return run.bound, proof.relaxed


def may_be_bounded(problem: Problem, effort: str) -> bool:
    """Return whether loss, recoding and size of a problem are such that this is tried."""
    compiled = problem.compiled
    if problem.recoding.name not in ("classes", "freeform"):
        return False
    if are_priced(problem):
        return len(row_types(problem).first) * problem.k**2 <= _SQUARED[effort]
    if not compiled.has_tables or not compiled.monotone or compiled.aggregate != "sum":
        return False
    types = len(problem.microdata.row_types().first)
    share = _OF_COVERS if problem.recoding.name == "freeform" else 1.0
    return share * types * problem.k**2 <= _TRIED[effort]
