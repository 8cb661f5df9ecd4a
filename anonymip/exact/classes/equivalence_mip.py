"""The MILP of equivalence classes: a model, a solver, a checked solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from anonymip.assignments import Assignment
from anonymip.errors import InputError
from anonymip.exact.classes.small import compare_exactly
from anonymip.exact.model_run import ModelRun, SolverChoices, find_start
from anonymip.exact.priced_sets import PricedSets, priced_sets
from anonymip.exact.trust import TrustOfLosses
from anonymip.heuristics.classes.greedy_search import greedy_search
from anonymip.heuristics.classes.initial import initial
from anonymip.heuristics.classes.k_member import k_member
from anonymip.heuristics.classes.ordered_cut import ordered_cut
from anonymip.models import FORMULATIONS, build, choices_of, model_size, read
from anonymip.models.parts.set_columns import MAX_COLUMNS
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.solvers import broken_by_values

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

_STARTS: dict[str, Callable[..., Solution]] = {
    "initial": initial,
    "ordered-cut": ordered_cut,
    "greedy-search": greedy_search,
    "k-member": k_member,
}


def equivalence_mip(
    problem: Problem,
    *,
    formulation: str = "auto",
    integer_ends: bool = True,
    warm_start: str = "best",
    start: Assignment | None = None,
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
    **solving: Unpack[SolverChoices],
) -> Solution:
    """Solve the MILP of equivalence classes [1]_ to optimality, or as far as the budget goes.

    `problem`: with equivalence classes. The formulations of pairs of records need a monotone
    objective with tables; ``"set-partition"`` takes any.
    `formulation`: ``"bigm"`` as in the paper, ``"hull"``, ``"indicator"``, ``"strengthened"``,
    ``"set-partition"``; ``"auto"`` picks set partitioning where there are few possible classes,
    else big-M.
    `integer_ends`: whether ends of integer attributes are integer variables, eq. (27); for
    formulations of pairs of records.
    `warm_start`: heuristic whose solution the solver starts from: ``initial`` as in the paper,
    ``ordered-cut``, ``greedy-search``, ``k-member``, ``best`` of these, or ``none``.
    `start`: assignment to start from instead.
    `effort`: limits the size of the model and the nodes of the solver; ``"thorough"`` and None do
    not.
    `budget`: stops the solver; the incumbent or the start is returned.
    `seed`: of the solver.
    `**solving`: see :class:`~anonymip.exact.model_run.SolverChoices`.
    Raises InputError if objective or size do not fit the model, or an option is wrong;
    SolverUnavailable if the solver is not installed; SolverError if the solver fails or what it
    returns does not survive the checks, and there is no start; NoSolution if nothing was found
    within the budget or the effort and there was no start.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Section 2.2.
    """
    run = ModelRun.begin(
        problem, "equivalence-mip", budget=budget, seed=seed, effort=effort, **solving
    )
    if formulation != "auto":
        # What cannot be modelled is refused before heuristics spend time on a start.
        model_size(problem, formulation)
    incumbent = run.start_from(find_start(problem, warm_start, start, _STARTS, seed, run.budget))
    columns = None
    if formulation in ("auto", "set-partition"):
        loss = None if incumbent is None else incumbent.objective
        columns = priced_sets(problem, loss, max_sets=MAX_COLUMNS, budget=run.budget)
    if formulation == "auto" and columns is not None:
        formulation, reason = _pick(problem, columns)
        run.trace.append(f"auto picked the formulation {formulation}: {reason}")
    run.describe(formulation=formulation, integer_ends=integer_ends, warm_start=warm_start)
    if columns is not None and formulation == "set-partition":
        solution = run.solve_by_sets(formulation, columns, "classes")
    else:
        known = {"integer_ends": integer_ends}
        choices = {name: known[name] for name in known if name in choices_of(formulation)}
        size = model_size(problem, formulation)
        kept = run.kept_without_time(size) or run.kept_without_effort(size)
        if kept is not None:
            return kept
        trust = TrustOfLosses.of(problem, formulation)
        solution = run.solve(lambda: (build(problem, formulation, **choices), trust))
    # Who brings a formulation wants to see what it finds.
    if run.settings.relative_gap or formulation not in FORMULATIONS:
        return solution
    return compare_exactly(solution, run.budget, seed)


def _pick(problem: Problem, columns: PricedSets) -> tuple[str, str]:
    """Return the formulation for a problem, and why.

    Raises InputError if there are too many possible classes and too many pairs of records.
    """
    if columns.sets.complete:
        return "set-partition", f"{columns.found:,} possible classes"
    many = f"more than {MAX_COLUMNS:,} possible classes"
    if columns.ended is not None:
        many = "there was no time to find all possible classes"
    try:
        model_size(problem, "bigm")
    except InputError as refusal:
        if columns.ended is not None:
            return "set-partition", many
        raise InputError(
            f"no formulation fits: set partitioning has {many}; {refusal.message}",
            remedy="Use a heuristic (greedy-search, ordered-cut) with its bound, or fewer records",
        ) from refusal
    return "bigm", many


def adopt(problem: Problem, model: ConcreteModel, *, method: str = "adopted") -> Solution:
    """Return the checked solution of a model that the caller built on, solved with anything.

    The bound is unknown: constraints that the caller added may have raised the optimum.

    Parameters
    ----------
    problem
        The problem that the model was built from.
    model
        Built by :func:`anonymip.build`, changed and solved by the caller.
    method
        What the solution calls what found it.

    Raises
    ------
    InputError
        If the model holds no solution, or values that break its constraints, bounds or whole
        numbers by more than solvers' tolerances.
    InvalidAssignment
        If the solution breaks a rule of the recoding.
    """
    if getattr(model, "formulation", None) is None:
        raise InputError(
            "the model was not made by anonymip.build", remedy="Change and solve a built model"
        )
    assignment = read(model)
    broken = broken_by_values(model)
    if broken is not None:
        raise InputError(
            f"the values that the model holds are no solution of it: {broken}",
            remedy="Solve it, and load the solution",
        )
    return Solution.of(problem, assignment, method=method)
