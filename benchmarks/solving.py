"""Times until models reach a solver, and until solvers stop when time is up."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from anonymip import Problem, build, load_instance, solve, solve_model
from anonymip.models import model_size
from anonymip.solvers import SolverOptions, availability

#: Those whose terms leave it to us what we publish about their speed.
_FREE = ("highs", "cbc", "scip")
_SECONDS = 5.0


def hand_over() -> Iterator[dict[str, Any]]:
    """Build big-M models and give them to HiGHS, which stops at once."""
    solve_model(build(Problem(load_instance("health-records"), 3)), "highs")
    reference = None
    for n in (25, 50, 100):
        problem = Problem(load_instance(f"census:{n},8,1"), k=5)
        started = perf_counter()
        model = build(problem, "bigm")
        built = perf_counter()
        # The limit holds for the solver alone, after it has the model.
        result = solve_model(model, "highs", SolverOptions(time_limit=0.01))
        seconds = perf_counter() - started
        each = seconds / model_size(problem, "bigm")
        reference = reference or each
        yield {
            "n": n,
            "m": 8,
            "rows": model_size(problem, "bigm"),
            "build_seconds": round(built - started, 3),
            "hand_over_seconds": round(seconds - (built - started), 3),
            "seconds": round(seconds, 3),
            "stopped": result.stopped.value,
            "ratio": round(each / reference, 2),
            "reference": "seconds a row at 25 records in the same run",
        }


def time_limits() -> Iterator[dict[str, Any]]:
    """Stop every solver after five seconds of a proof that takes hours."""
    problem = Problem(load_instance("census:60,8,1"), k=5)
    start = solve(problem, "greedy-search", bound=False)
    for name in _FREE:
        if not availability(name).installed:
            continue
        started = perf_counter()
        solution = solve(
            problem,
            "equivalence-mip",
            solver=name,
            time_limit=_SECONDS,
            options={"formulation": "bigm"},
        )
        seconds = perf_counter() - started
        assert solution.objective <= start.objective
        yield {
            "solver": solution.solver,
            "n": problem.n,
            "k": problem.k,
            "ncp": round(solution.ncp, 6),
            "bound": None if solution.bound is None else round(solution.bound.value, 6),
            "gap": None if solution.gap is None else round(solution.gap, 4),
            "status": str(solution.status),
            "seconds": round(seconds, 3),
            "ratio": round(seconds / _SECONDS, 3),
            "loss_ratio": round(solution.ncp / start.ncp, 4),
            "reference": "time limit; loss of greedy-search",
        }
