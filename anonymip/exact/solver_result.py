"""What a solver's result means: a checked solution with the bound that can be relied on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonymip.bounds.combinatorial import lower_bound_of
from anonymip.errors import NoSolution, SolverError
from anonymip.exact.trust import compare_losses, trusted_bound
from anonymip.models import read
from anonymip.problem import Problem
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.solvers import SolverResult
from anonymip.status import Stopped
from anonymip.tolerances import same_loss

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

#: Building and handing over a constraint takes at least this long.
SECONDS_A_CONSTRAINT = 1.5e-5


def kept_start(
    problem: Problem,
    method: str,
    begun: Solution,
    options: dict[str, object],
    watch: Stopwatch,
    seed: int,
    trace: list[str],
    *,
    stopped: Stopped = Stopped.TIME,
) -> Solution:
    """Return the start where there is no time to build or solve a model."""
    kept = Solution.of(
        problem,
        begun.assignment,
        method=method,
        stopped=stopped,
        options=options,
        seconds=watch.seconds,
        seed=seed,
        trace=tuple(trace),
    )
    own = lower_bound_of(problem)
    return kept if own is None else kept.with_bound(own)


def read_result(
    problem: Problem,
    method: str,
    model: ConcreteModel,
    result: SolverResult,
    begun: Solution | None,
    options: dict[str, object],
    watch: Stopwatch,
    seed: int,
    trace: list[str],
) -> Solution:
    """Return the checked solution that a solver's result means.

    Parameters
    ----------
    problem, method, options, watch, seed, trace
        What was solved, how, and what is to be said about it; remarks are added to the trace.
    model
        Holds the result's values.
    result
        Of the solver.
    begun
        The solution that the solver started from, kept if it found nothing better.

    Raises
    ------
    SolverError
        If what the solver returns does not survive the checks.
    NoSolution
        If there is neither a result nor a start, or no release obeys the limits.
    """
    if result.stopped is Stopped.INFEASIBLE:
        raise _infeasible(problem, result, begun)
    if result.start_accepted is not None:
        trace.append(f"warm start {'accepted' if result.start_accepted else 'not used'}")
    found = begun
    if result.values is not None:
        found = Solution.of(problem, read(model), method=method)
        compare_losses(problem, result, found)
        if begun is not None and begun.objective < found.objective:
            if not same_loss(begun.objective, found.objective):
                trace.append("the start is better than what the solver returned")
            found = begun
    if found is None:
        raise NoSolution(
            f"{result.solver} found no solution before it stopped ({result.stopped.value})",
            remedy="Give it more time, or a warm start",
        )
    bound = None
    if result.bound is not None:
        own_options = "solver_options" in options
        value, remarks = trusted_bound(
            problem,
            result.bound,
            found.objective,
            own_options,
            by_cells=options["formulation"] not in ("set-partition", "set-cover"),
        )
        trace += remarks
        if value is not None:
            source = f"{options['formulation']} with {result.solver}"
            if assumed := problem.compiled.assumed:
                source += f" (assuming that {' and '.join(assumed)})"
            bound = Bound(value, source, "solver", result.seconds)
    solution = Solution.of(
        problem,
        found.assignment,
        method=method,
        bound=bound,
        stopped=result.stopped,
        options=options,
        seconds=watch.seconds,
        seed=seed,
        trace=tuple(trace),
        solver=result.solver,
    )
    # Where the solver's word is not enough, plain arithmetic may be: for a loss of 0 it always is.
    own = None if solution.is_optimal else lower_bound_of(problem)
    return solution if own is None else solution.with_bound(own)


def _infeasible(
    problem: Problem, result: SolverResult, begun: Solution | None
) -> SolverError | NoSolution:
    """Return what to raise: only limits and degrees can leave no release, if none is known."""
    if begun is None and problem.limits:
        return NoSolution(
            f"no release obeys the limits, says {result.solver}",
            remedy="Loosen a limit, or allow suppression where the recoding does",
        )
    if begun is None and getattr(problem.recoding, "degrees", None) is not None:
        return NoSolution(
            f"no release has these degrees, says {result.solver}",
            remedy="Ask for degrees that differ less, or for k alone",
        )
    return SolverError(
        f"{result.solver} calls a feasible model infeasible", remedy="Use another solver"
    )
