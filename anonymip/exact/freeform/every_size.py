r"""Freeform covers under any loss of a set: set covering, once for each size that sets may have.

All sets of a cover have one size d of k or more, and every original lies in d of them. Where more
records never cost less, d = k suffices. Losses of members, such as a variance, and losses that
fall are cheaper for some larger sets: the best cover is then the best of those by sets of k, k + 1,
..., n records, each of which set covering finds, since it needs nothing of a loss but numbers. That
is for small tables: they have up to :math:`2^n` sets.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from anonymip.errors import InputError, NoSolution
from anonymip.exact.failed_solver import FAILURES
from anonymip.exact.model_run import ModelRun, read_result
from anonymip.exact.priced_sets import priced_sets
from anonymip.exact.trust import RefutedClaim, TrustOfLosses
from anonymip.models import build
from anonymip.models.parts.set_columns import count_multisets
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.solution import Bound, Solution, under_assumptions
from anonymip.solvers import solve_model
from anonymip.status import Stopped

#: Sets of all sizes together that are listed.
_MOST_SETS = 100_000


def needs_every_size(problem: Problem) -> bool:
    """Return whether sets larger than k may be cheaper, and nothing but their losses matters."""
    compiled = problem.compiled
    plain = problem.recoding == Freeform() and problem.diversity is None
    return plain and compiled.aggregate == "sum" and not compiled.monotone


def too_many_sets(problem: Problem) -> InputError | None:
    """Return the refusal of a table that has more sets than are listed; None if it has not."""
    # Rows that look alike may differ in what a loss of members reads.
    counts = np.ones(problem.n, np.int64)
    if problem.compiled.tier != "members":
        counts = problem.microdata.row_types().counts
    found = count_multisets(counts, problem.n)[problem.k :].sum()
    if found <= _MOST_SETS:
        return None
    return InputError(
        f"the loss {problem.objective.name!r} is not monotone ({problem.compiled.obstacle}), so "
        f"that covers by sets of every size from {problem.k} to {problem.n} are to be compared: "
        f"{found:.3g} sets, and {_MOST_SETS:,} at most are listed",
        remedy="Use a heuristic (reassign, ring), or fewer records",
    )


def unmet_by_sizes(problem: Problem) -> str | None:
    """Return what a loss that is not monotone lacks; None where sets of every size are compared."""
    compiled = problem.compiled
    needed = f"needs a monotone objective; of {compiled.name!r}, {compiled.obstacle}"
    if not needs_every_size(problem):
        return needed
    if too_many_sets(problem) is None:
        return None
    return f"{needed}; and the sets of every size of {problem.n:,} records are too many to list"


def solve_every_size(run: ModelRun) -> Solution:
    """Return the best cover by sets of any one size, with a bound where all sizes were decided.

    `run`: of a problem that :func:`needs_every_size`, and has not :func:`too_many_sets`. Raises
    NoSolution if there is no cover, or none was found in time; SolverError if a solver fails, and
    no release is known.
    """
    problem, best = run.problem, run.incumbent
    lowest, solver, decided = inf, None, True
    for size in range(problem.k, problem.n + 1):
        try:
            found, below, solver = _of_size(run, size, best, solver)
        except FAILURES as failure:
            run.incumbent = best
            return run.without_solver(failure, None)
        if found is not None and (best is None or found.objective < best.objective):
            best = found
        decided = decided and below is not None
        lowest = min(lowest, inf if below is None else below)
        if run.budget.stop_reason() is not None:
            break
    stopped = run.budget.stop_reason()
    if best is None:
        raise NoSolution(
            "no release obeys the rules: there is no cover by sets of one size"
            if decided and stopped is None
            else "no cover was found before the method stopped",
            remedy="Loosen a rule, or give it more time",
        )
    bound = None
    if decided and stopped is None:
        source = under_assumptions(problem, "set covering by sets of every size")
        proof = "argument"
        if solver is not None:
            source, proof = f"{source} with {solver}", "solver"
        bound = Bound(lowest, source, proof, run.watch.seconds)
        run.trace.append(f"sets of {problem.k} to {problem.n} records compared")
    return run.solution(best.assignment, stopped or Stopped.GAP, bound, solver)


def _of_size(
    run: ModelRun, size: int, best: Solution | None, solver: str | None
) -> tuple[Solution | None, float | None, str | None]:
    """Return a cover by sets of a size if it may be better, a bound on all such, and the solver.

    The bound is infinite where there is no such cover, and None where time ended.
    """
    part = run.problem.replace(k=size)
    own = replace(run, problem=part, incumbent=None)
    columns = priced_sets(part, None, max_sets=_MOST_SETS, budget=run.budget, degree=size)
    if not columns.sets.complete:
        return None, None, solver
    if not len(columns.sets):
        return None, inf, solver
    relaxed = -inf if columns.bound is None else columns.bound.value
    if best is not None and relaxed >= best.objective:
        return None, relaxed, solver
    model = build(part, "set-cover", sets=columns.sets, fixed_size=True)
    result = solve_model(model, run.solver, run.settings, budget=run.budget)
    if result.values is None and result.stopped is not Stopped.INFEASIBLE:
        return None, None, result.solver

    def compared() -> Solution | None:
        found = own.cheap_release()
        return found if found is not None and found.sizes.max() == size else None

    if result.stopped is Stopped.INFEASIBLE:
        known = compared()
        if known is not None:
            raise RefutedClaim.of_infeasible(result.solver, known)
        return None, inf, result.solver
    trust = TrustOfLosses.of(part, "set-cover")
    assignment, bound, remarks = read_result(own, model, result, trust, compared)
    run.trace += [remark for remark in remarks if remark not in run.trace]
    found = Solution.of(run.problem, assignment, method=run.method)
    below = max(relaxed, -inf if bound is None else bound.value)
    return found, None if below == -inf else below, result.solver
