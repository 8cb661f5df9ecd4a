"""The MIP of Doka et al. for covers: a model, a solver, a checked solution."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import numpy as np

from anonymip.assignments import Assignment, Cover
from anonymip.errors import InputError, unknown_name
from anonymip.exact.freeform.every_size import needs_every_size, solve_every_size, too_many_sets
from anonymip.exact.freeform.pair_assignment import (
    best_partners,
    dual_bound,
    pair_losses_within_limits,
    pair_obstacle,
)
from anonymip.exact.model_run import ModelRun, SolverChoices
from anonymip.exact.priced_sets import PricedSets, priced_sets
from anonymip.exact.trust import TrustOfLosses
from anonymip.exact.warm_starts import begin_freeform
from anonymip.models import build, formulations_of, model_size
from anonymip.models.freeform.set_cover import cover_degree
from anonymip.models.parts.set_columns import MAX_COLUMNS
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution, under_assumptions
from anonymip.status import Stopped

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
