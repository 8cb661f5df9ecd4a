"""From a problem through a model and a solver to a checked solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anonymip.assignments import Assignment
from anonymip.bounds.nearest_neighbour import nearest_neighbour_bound
from anonymip.budget import Budget
from anonymip.errors import InputError, NoSolution, SolverError
from anonymip.heuristics.greedy_search import greedy_search
from anonymip.heuristics.initial import initial
from anonymip.heuristics.k_member import k_member
from anonymip.heuristics.ordered_cut import ordered_cut
from anonymip.kernels import Stopwatch
from anonymip.models import build, model_size, read, set_start
from anonymip.problem import Problem
from anonymip.solution import Bound, Solution
from anonymip.solvers import SolverOptions, SolverResult, solve_model
from anonymip.status import Stopped
from anonymip.tolerances import FINE_LOSS, SOLVER_RESOLUTION, contradicts

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

#: Building and handing over a constraint takes at least this long.
SECONDS_A_CONSTRAINT = 1.5e-5

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
    described: dict[str, object] = {
        "formulation": formulation,
        "integer_ends": integer_ends,
        "warm_start": warm_start,
        "gap": gap,
        **({"solver_options": dict(solver_options)} if solver_options else {}),
    }
    # What cannot be modelled is refused before heuristics spend time on a start.
    size = model_size(problem, formulation)
    begun = None if start is None else Solution.of(problem, start, method="start")
    if begun is None:
        begun = _warm_start(problem, warm_start, seed, budget)
    remaining = budget.remaining()
    if begun is not None and remaining is not None:
        needed = SECONDS_A_CONSTRAINT * size
        if needed > remaining:
            return Solution.of(
                problem,
                begun.assignment,
                method="equivalence-mip",
                stopped=Stopped.TIME,
                options=described,
                seconds=watch.seconds,
                seed=seed,
                trace=("the model takes longer to build than there is time: the start is kept",),
            )
    budget.report("building the model")
    model = build(problem, formulation, integer_ends=integer_ends)
    if begun is not None:
        set_start(model, begun.assignment)
    result = solve_model(model, solver, options, start=begun is not None, budget=budget)
    return _read_result(problem, model, result, begun, described, watch, seed)


def _warm_start(problem: Problem, name: str, seed: int, budget: Budget) -> Solution | None:
    if name == "none":
        return None
    if name == "best":
        found = [heuristic(problem, seed=seed, budget=budget) for heuristic in _STARTS.values()]
        return min(found, key=lambda solution: solution.objective)
    if name not in _STARTS:
        raise InputError(
            f"unknown warm start {name!r}", remedy=f"Use best, none, {', '.join(_STARTS)}"
        )
    return _STARTS[name](problem, seed=seed, budget=budget)


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
    trace = []
    if result.start_accepted is not None:
        trace.append(f"warm start {'accepted' if result.start_accepted else 'not used'}")
    found = begun
    if result.values is not None:
        found = Solution.of(problem, read(model), method="equivalence-mip")
        _compare_losses(problem, result, found)
        if begun is not None and begun.objective < found.objective:
            found = begun
            trace.append("the start is better than what the solver returned")
    if found is None:
        raise NoSolution(
            f"{result.solver} found no solution before it stopped ({result.stopped.value})",
            remedy="Give it more time, or a warm start",
        )
    bound = None
    if result.bound is not None:
        value, remarks = _trusted_bound(problem, result.bound, found.objective, options)
        trace += remarks
        if value is not None:
            method = f"{options['formulation']} with {result.solver}"
            bound = Bound(value, method, "solver", result.seconds)
    solution = Solution.of(
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
    # Where the solver's word is not enough, plain arithmetic may be: for a loss of 0 it always is.
    own = None if solution.is_optimal else nearest_neighbour_bound(problem)
    return solution if own is None else solution.with_bound(own)


def _trusted_bound(
    problem: Problem, claimed: float, objective: float, options: dict[str, object]
) -> tuple[float | None, list[str]]:
    """Return what of a solver's bound can be relied on, and remarks.

    A solver keeps rows up to its tolerances, and the big-M rows turn these into a loss of
    `SOLVER_RESOLUTION` times the largest effect of one cell. Ordinary losses are far above that;
    a finer one is not proven by a solver's word.
    """
    if options.get("solver_options"):
        return None, ["the solver ran with options of its own: its bound is not relied on"]
    resolution = SOLVER_RESOLUTION * largest_effect(problem)
    excess = claimed - objective
    if excess > resolution:
        return None, ["the solver's bound lies above a solution that was found: it is not used"]
    if abs(objective) < FINE_LOSS * largest_effect(problem):
        return claimed - resolution, [
            "the loss is finer than the solver's tolerances resolve: its bound is lowered by them"
        ]
    return objective - excess if excess > 0 else claimed, []


def largest_effect(problem: Problem) -> float:
    """Return the most that one cell of the table can add to the loss of a record."""
    tables, microdata = problem.compiled.tables, problem.microdata
    effects = [0.0]
    for r, column in enumerate(tables.range_columns):
        levels = microdata.levels[column].astype(float)
        slope = max(abs(tables.range_low[r]), abs(tables.range_high[r]))
        effects.append(float(slope * (levels[-1] - levels[0])))
    for s in range(len(tables.set_columns)):
        first = tables.set_start[s] + 1
        losses = tables.set_losses[first : first + tables.set_sizes[s]]
        effects.append(float(losses.max() - losses.min()))
    for p in range(len(tables.pair_columns)):
        first, size = tables.pair_start[p], tables.pair_sizes[p]
        losses = tables.pair_losses[first : first + size * size]
        effects.append(float(losses.max() - losses.min()))
    return max(effects)


def _compare_losses(problem: Problem, result: SolverResult, found: Solution) -> None:
    """Refuse an objective far below the loss of the classes that the model's binaries mean.

    The tolerances of all cells may add up; beyond them the model or the solver is wrong.
    """
    cells = problem.n * problem.m
    slack = max(1.0, cells) * SOLVER_RESOLUTION * largest_effect(problem)
    claimed = result.objective
    if claimed is not None and contradicts(claimed + slack, found.objective):
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
    if getattr(model, "formulation", None) is None:
        raise InputError(
            "the model was not made by anonymip.build", remedy="Change and solve a built model"
        )
    return Solution.of(problem, read(model), method="adopted")
