"""From a problem through a model and a solver to a checked solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anonymip.assignments import Assignment
from anonymip.budget import Budget
from anonymip.errors import InputError, NoSolution, SolverError
from anonymip.heuristics.greedy_search import greedy_search
from anonymip.heuristics.initial import initial
from anonymip.heuristics.k_member import k_member
from anonymip.heuristics.ordered_cut import ordered_cut
from anonymip.kernels import Stopwatch
from anonymip.models import build, read, set_start
from anonymip.problem import Problem
from anonymip.solution import Bound, Solution
from anonymip.solvers import SolverOptions, SolverResult, solve_model
from anonymip.status import Stopped
from anonymip.tolerances import contradicts

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
    formulation: str = "bigm",
    integer_ends: bool = True,
    warm_start: str = "best",
    start: Assignment | None = None,
    solver: str = "highs",
    gap: float = 0.0,
    threads: int = 1,
    log: Path | None = None,
    solver_options: Mapping[str, object] | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Solve the MILP of equivalence classes [1]_ to optimality, or as far as the budget goes.

    Parameters
    ----------
    problem
        With equivalence classes and a monotone objective.
    formulation
        ``"bigm"``.
    integer_ends
        Whether ends of integer attributes are integer variables, eq. (27).
    warm_start
        Heuristic whose solution the solver starts from: ``initial`` as in the paper,
        ``ordered-cut``, ``greedy-search``, ``k-member``, ``best`` of these, or ``none``.
    start
        Assignment to start from instead.
    solver
        Name of a solver adapter.
    gap
        Relative gap to stop at; 0 proves optimality.
    threads, log, solver_options
        Handed to the solver, see :class:`~anonymip.solvers.SolverOptions`.
    budget
        Stops the solver; the incumbent or the start is returned.
    seed
        Of the solver.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Section 2.2.

    Raises
    ------
    InputError
        If objective or size do not fit the model, or an option is wrong.
    SolverUnavailable
        If the solver is not installed.
    SolverError
        If what the solver returns does not survive the checks.
    NoSolution
        If nothing was found within the budget and there was no start.
    """
    watch, budget = Stopwatch(), budget or Budget()
    options = SolverOptions(
        relative_gap=gap,
        threads=threads,
        seed=seed,
        log=log,
        solver_options=dict(solver_options or {}),
    )
    budget.report("building the model")
    model = build(problem, formulation, integer_ends=integer_ends)
    begun = None if start is None else Solution.of(problem, start, method="start")
    if begun is None:
        begun = _warm_start(problem, warm_start, seed)
    if begun is not None:
        set_start(model, begun.assignment)
    result = solve_model(model, solver, options, start=begun is not None, budget=budget)
    return _read_result(
        problem,
        model,
        result,
        begun,
        {"formulation": formulation, "integer_ends": integer_ends, "warm_start": warm_start},
        watch,
        seed,
    )


def _warm_start(problem: Problem, name: str, seed: int) -> Solution | None:
    if name == "none":
        return None
    if name == "best":
        found = [heuristic(problem, seed=seed) for heuristic in _STARTS.values()]
        return min(found, key=lambda solution: solution.objective)
    if name not in _STARTS:
        raise InputError(
            f"unknown warm start {name!r}", remedy=f"Use best, none, {', '.join(_STARTS)}"
        )
    return _STARTS[name](problem, seed=seed)


def _read_result(
    problem: Problem,
    model: ConcreteModel,
    result: SolverResult,
    begun: Solution | None,
    options: dict[str, object],
    watch: Stopwatch,
    seed: int,
) -> Solution:
    if result.stopped is Stopped.INFEASIBLE:
        # n >= k records always form one class, so this is never true.
        raise SolverError(
            f"{result.solver} calls a feasible model infeasible", remedy="Use another solver"
        )
    bound = None
    if result.bound is not None:
        method = f"{options['formulation']} with {result.solver}"
        bound = Bound(result.bound, method, "solver", result.seconds)
    assignment = None if result.values is None else read(model)
    trace = []
    if result.start_accepted is not None:
        trace.append(f"warm start {'accepted' if result.start_accepted else 'not used'}")
    found = begun
    if assignment is not None:
        found = Solution.of(problem, assignment, method="equivalence-mip")
        _compare_losses(result, found)
        if begun is not None and begun.objective < found.objective:
            found = begun
            trace.append("the start is better than what the solver returned")
    if found is None:
        raise NoSolution(
            f"{result.solver} found no solution before it stopped ({result.stopped.value})",
            remedy="Give it more time, or a warm start",
        )
    return Solution.of(
        problem,
        found.assignment,
        method="equivalence-mip",
        bound=bound,
        stopped=result.stopped,
        options=options,
        seconds=watch.seconds,
        seed=seed,
        trace=tuple(trace),
        solver=result.solver,
    )


def _compare_losses(result: SolverResult, found: Solution) -> None:
    """Refuse an objective below the loss of the classes that the model's binaries mean."""
    claimed = result.objective
    if claimed is not None and contradicts(claimed, found.objective):
        raise SolverError(
            f"{result.solver} returns objective {claimed!r}, but the classes it names lose "
            f"{found.objective!r}",
            remedy="Use another solver",
        )


def adopt(problem: Problem, model: ConcreteModel) -> Solution:
    """Return the checked solution of a model that the caller built on, solved with anything.

    The bound is unknown: constraints that the caller added may have raised the optimum.

    Parameters
    ----------
    problem
        The problem that the model was built from.
    model
        Built by :func:`anonymip.build`, changed and solved by the caller.

    Raises
    ------
    InputError
        If the model holds no solution.
    InvalidAssignment
        If the solution breaks a rule of the recoding.
    """
    return Solution.of(problem, read(model), method="adopted")
