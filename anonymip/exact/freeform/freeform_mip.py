r"""Exact freeform covers: the MIP of Doka et al., an assignment of pairs, sets of every size.

**Pairs.** With k = 2 every published record covers itself and one other, and every original is the
other of one record: a permutation :math:`\sigma` without fixed points of least
:math:`\sum_i c(\{i, \sigma(i)\})`. (That own records lie inside loses nothing: see
:mod:`anonymip.models.freeform.freeform`.) For any duals v of the columns,
:math:`u_i = \min_l (c_{il} - v_l)` makes u, v feasible for the dual, so that
:math:`\sum_i u_i + \sum_l v_l` is a bound. Those that the algorithm of the assignment ends with
make the two equal but for rounding; that the bound holds does not rest on them. If limits leave no
such permutation they leave no release: a regular cover by larger sets contains one by pairs, which
keep what their supersets keep.

**Every size.** All sets of a cover have one size d of k or more, and every original lies in d of
them. Where more records never cost less, d = k suffices. Losses of members, such as a variance, and
losses that fall are cheaper for some larger sets: the best cover is then the best of those by sets
of k, k + 1, ..., n records, each of which set covering finds, since it needs nothing of a loss but
numbers. That is for small tables: they have up to :math:`2^n` sets.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum, inf
from typing import Unpack

import numpy as np

from anonymip.assignments import Assignment, Cover
from anonymip.errors import InputError, NoSolution, unknown_name
from anonymip.exact.model_run import (
    FAILURES,
    ModelRun,
    SolverChoices,
    begin_freeform,
    read_result,
)
from anonymip.exact.priced_sets import PricedSets, priced_sets
from anonymip.exact.trust import RefutedClaim, TrustOfLosses
from anonymip.graphs.weighted.assignment import assign
from anonymip.models import build, formulations_of, model_size
from anonymip.models.parts.set_columns import MAX_COLUMNS, count_multisets
from anonymip.problem import Problem, losses_within_limits
from anonymip.recodings import Freeform
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution, under_assumptions
from anonymip.solvers import solve_model
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE

_FORMULATIONS = ("auto", "freeform", "assignment", "set-cover")

#: How much longer a node of the MIP of the paper takes than one of other models of its size: with
#: k = 3 it took 11 to 22 ms at 12 records, 230 ms at 20; of the worst record's loss a third of it.
_NODE, _NODE_OF_MAXIMUM = 10.0, 3.0
#: Up to so many sets ``auto`` takes the model by sets.
_FEW_SETS = 200_000


def freeform_mip(
    problem: Problem,
    *,
    formulation: str = "auto",
    own_record: str = "fixed",
    ranges: str = "bounds",
    integer_ends: bool = True,
    strengthened: bool = True,
    warm_start: str = "best",
    start: Assignment | None = None,
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    **solving: Unpack[SolverChoices],
) -> Solution:
    """Solve the MIP of freeform generalization [1]_ to optimality, or as far as the budget goes.

    With k = 2 the problem is one of assignment, which needs no solver of MIPs.

    `problem`: with the recoding Freeform, or one of the weaker OneK, KOne, KK and KConcealment. The
    MIP needs a monotone objective with tables; sets and an assignment take any that is summed. Of
    small tables losses that are not monotone, such as those of members, are proven by sets of every
    size from k to n.
    `formulation`: ``"freeform"``: the MIP of the paper; ``"assignment"``: only for k = 2, without
    diversity and reciprocal sets; ``"set-cover"``: a variable for each set of k, the strongest
    where they are few; ``"auto"``: the first that fits of assignment, set-cover and freeform. Of
    these only the MIP of the paper knows the next four choices: where one of them is not the
    default, ``"auto"`` is that.
    `own_record`: ``"fixed"``: every record lies in its own set, which loses nothing; ``"free"`` as
    in the paper.
    `ranges`: ``"bounds"``: ends of ranges as in eqs. (4) to (7); ``"gaps"``: by the gaps between
    values, a stronger relaxation.
    `integer_ends`: whether ends of integer attributes are integer variables.
    `strengthened`: whether the model holds losses with nearest neighbours too.
    `warm_start`: heuristic whose solution the solver starts from: ``hungarian``, ``sort-greedy``,
    ``greedy``, ``ring``, the ``best`` of these lowered by ``reassign``, or ``none``.
    `start`: cover to start from instead.
    `effort`: limits the size of the model and the nodes of the solver; ``"thorough"`` and None do
    not.
    `budget`: stops the solver; the incumbent or the start is returned.
    `seed`: of the solver.
    `**solving`: see :class:`~anonymip.exact.model_run.SolverChoices`.
    Raises InputError if objective or size do not fit the model, or an option is wrong;
    SolverUnavailable if the solver is not installed; SolverError if the solver fails or what it
    returns does not survive the checks, and there is no start; NoSolution if nothing was found
    within the budget and there was no start, or no release obeys the rules.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015, Section 4.
    """
    run = ModelRun.begin(
        problem, "freeform-mip", budget=budget, seed=seed, effort=effort, **solving
    )
    if formulation not in _FORMULATIONS:
        known = formulations_of(problem.recoding.name, installed=True)
        if formulation not in known:
            raise unknown_name("formulation", formulation, dict.fromkeys((*_FORMULATIONS, *known)))
    if formulation in ("auto", "set-cover") and needs_every_size(problem):
        refusal = too_many_sets(problem)
        if refusal is None:
            run.start_from(begin_freeform(problem, warm_start, start, seed, run.budget))
            run.describe(formulation="set-cover", warm_start=warm_start)
            return solve_every_size(run)
        if formulation == "set-cover" or pair_obstacle(problem) is not None:
            raise refusal
    choices: dict[str, object] = {
        "own_record": own_record,
        "ranges": ranges,
        "integer_ends": integer_ends,
        "strengthened": strengthened,
    }
    if formulation == "auto" and [*choices.values()] != ["fixed", "bounds", True, True]:
        formulation = "freeform"
    if formulation in ("auto", "assignment"):
        obstacle = pair_obstacle(problem)
        if obstacle is None:
            solution = _assigned(problem, start, run.budget, run.watch)
            if solution is not None:
                return solution
            run.trace.append("the assignment of pairs was cut off")
        elif formulation == "assignment":
            raise InputError(
                f"the problem is no assignment of pairs: {obstacle}",
                remedy="Use the formulation freeform",
            )
    if formulation in ("auto", "assignment"):
        formulation = "set-cover" if _has_few_sets(problem) else "freeform"
    size = model_size(problem, formulation)
    incumbent = run.start_from(begin_freeform(problem, warm_start, start, seed, run.budget))
    asked = choices if formulation == "freeform" else {}
    run.describe(formulation=formulation, **asked, warm_start=warm_start)
    kept = run.kept_without_time(size)
    if kept is None and formulation == "set-cover":
        columns = _priced(problem, incumbent, run.budget)
        return run.solve_by_sets(formulation, columns, "sets")
    node = _NODE if problem.compiled.aggregate == "sum" else _NODE_OF_MAXIMUM
    kept = kept or run.kept_without_effort(size, node=node)
    if kept is not None:
        return kept
    trust = TrustOfLosses.of(problem, formulation)
    return run.solve(lambda: (build(problem, formulation, **asked), trust))


def _has_few_sets(problem: Problem) -> bool:
    """Return whether a variable for each set is the best model."""
    try:
        return model_size(problem, "set-cover") <= _FEW_SETS
    except InputError:
        return False


def _priced(problem: Problem, incumbent: Solution | None, budget: Budget) -> PricedSets:
    """Return the sets that a better cover than the start may hold."""
    # Imported late: whoever asks which method suits needs no Pyomo.
    from anonymip.models.freeform.set_cover import cover_degree

    degree = cover_degree(problem)
    loss = None if incumbent is None else incumbent.objective
    recoding = problem.recoding
    assert isinstance(recoding, Freeform)
    plain = problem.replace(k=degree, recoding=replace(recoding, degrees=None))
    return priced_sets(plain, loss, max_sets=MAX_COLUMNS, budget=budget, degree=degree)


def _assigned(
    problem: Problem, start: Assignment | None, budget: Budget, watch: Stopwatch
) -> Solution | None:
    """Return the solution by an assignment of pairs; None if it was cut off."""
    if start is not None:
        problem.recoding.check(problem, start)
    costs = pair_losses_within_limits(problem, budget)
    found = None if costs is None else best_partners(costs, budget)
    if costs is None or found is None:
        return None
    partners, duals = found
    trace = ["k = 2: solved as an assignment problem, without a solver"]
    bound = None
    if problem.compiled.monotone:
        source = under_assumptions(problem, "assignment")
        bound = Bound(dual_bound(costs, partners, duals), source, "argument", watch.seconds)
    else:
        trace.append(
            "best among sets of two records; larger ones are allowed, and may lose less since the "
            "loss is not monotone"
        )
    # Every record covers itself and its partner.
    cover: Assignment = Cover.of(np.stack([np.arange(problem.n), partners], axis=1))
    if start is not None:
        described = [problem.recoding.describe(problem, one) for one in (cover, start)]
        losses = list(map(problem.compiled.total, described, (cover, start)))
        if losses[1] < losses[0]:
            cover = start
            trace.append("the start is better")
    return Solution.of(
        problem,
        cover,
        method="freeform-mip",
        bound=bound,
        stopped=Stopped.OPTIMAL if bound is not None else Stopped.HEURISTIC,
        options={"formulation": "assignment"},
        seconds=watch.seconds,
        trace=tuple(trace),
    )


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


#: Most records for which the matrix of all pairs is made: 0.5 GB at this number.
LARGEST_ASSIGNMENT = 8_000

#: So many records are assigned in less time than it takes to load the kernels that do it.
_SOON_ASSIGNED = 1_000

#: Pairs whose losses are computed at a time.
_BATCH = 200_000


def pair_obstacle(problem: Problem) -> str | None:
    """Return why a problem is no assignment of pairs; None if it is one."""
    recoding = problem.recoding
    if not isinstance(recoding, Freeform) or recoding.reciprocal:
        return "the recoding is not freeform, or sets are to be reciprocal"
    if recoding.suppression:
        return "records may be suppressed"
    if (recoding.sizes(problem) != 2).any():
        return "sets have more than two records"
    if problem.compiled.aggregate != "sum":
        return "the loss is the largest of a record, not a sum"
    if problem.diversity is not None:
        return "sets must be diverse, so that more than two records may be needed"
    if problem.n > LARGEST_ASSIGNMENT:
        return f"the table has more than {LARGEST_ASSIGNMENT:,} records"
    return None


def pair_losses_within_limits(problem: Problem, budget: Budget) -> Floats | None:
    """Return (n, n) losses of a record published with another, infinite where none may be.

    None if the budget ended before.
    """
    n = problem.n
    costs = np.full((n, n), np.inf)
    at_once = max(1, _BATCH // n)
    for begin in range(0, n - 1, at_once):
        if budget.stop_reason() is not None:
            return None
        end = min(begin + at_once, n - 1)
        first, second = np.triu_indices(end - begin, begin + 1, n)
        first += begin
        losses = losses_within_limits(problem, np.stack([first, second], axis=1)) / 2.0
        costs[first, second] = costs[second, first] = losses
        budget.report("losses of pairs", done=end, total=n - 1)
    return costs


def best_partners(costs: Floats, budget: Budget) -> tuple[Ints, Floats] | None:
    """Return (n,) partners of an assignment of least cost, and (n,) duals of the columns.

    `costs`: (n, n), infinite where no pair is allowed. None if the budget ended before the
    assignment is complete; for few records only an interrupt ends it. Complexity: O(n^3) at worst.
    Raises NoSolution if limits leave no assignment.
    """
    if len(costs) <= _SOON_ASSIGNED:
        budget = budget.renewed(None)
    partners, duals, stopped = assign(costs, budget, phase="assignment of pairs")
    if (partners >= 0).all():
        return partners, duals
    if stopped is not None:
        return None
    raise NoSolution(
        "no release obeys the limits: the records cannot be covered in pairs",
        remedy="Loosen a limit",
    )


def dual_bound(costs: Floats, partners: Ints, duals: Floats) -> float:
    """Return a lower bound on the cost of every assignment, near the least for optimal duals.

    Any duals of the columns give a bound; the cost of the assignment to `partners` bounds the
    rounding of the costs and of this arithmetic, by which it is lowered. Complexity: O(n^2).
    """
    n = len(costs)
    own = costs[np.arange(n), partners]
    largest = float(np.abs(costs[np.isfinite(costs)]).max())
    # Row by row, since the difference of the whole would be a second matrix.
    lowest = [float((row - duals).min()) for row in costs]
    # An optimal assignment costs no less than the bound if no cost is negative.
    magnitude = fsum(own) if (costs >= 0).all() else n * largest
    rounding = LOSS_RELATIVE * magnitude
    rounding += 4.0 * n * np.finfo(float).eps * (largest + float(np.abs(duals).max()))
    return float(fsum(lowest) + fsum(duals) - rounding)
