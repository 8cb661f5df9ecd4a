"""Two formulations that allow less than the problem does, and a method that adopts a solution."""

from __future__ import annotations

from typing import Any

from anonymip import Problem, Solution, adopt, build, register_method, solve_model
from anonymip.models import FORMULATIONS, Formulation

_BUILT_IN = FORMULATIONS["bigm"]


def build_together(problem: Problem, *, integer_ends: bool = True) -> Any:
    """Build big-M, and keep the first and the last record together."""
    import pyomo.environ as pyo

    model = build(problem, "bigm", integer_ends=integer_ends)
    model.together = pyo.Constraint(expr=model.equivalent[0, problem.n - 1] == 1)
    return model


def build_impossible(problem: Problem, *, integer_ends: bool = True) -> Any:
    """Build big-M, and forbid what it asks for."""
    import pyomo.environ as pyo

    model = build(problem, "bigm", integer_ends=integer_ends)
    model.together = pyo.Constraint(expr=model.equivalent[0, 1] == 1)
    model.apart = pyo.Constraint(expr=model.equivalent[0, 1] == 0)
    return model


def _like_bigm(name: str, build_model: Any) -> Formulation:
    return Formulation(
        name,
        "classes",
        _BUILT_IN.size,
        build_model,
        _BUILT_IN.set_start,
        _BUILT_IN.read,
        fitting=_BUILT_IN.fitting,
    )


TOGETHER = _like_bigm("together", build_together)
IMPOSSIBLE = _like_bigm("impossible", build_impossible)


@register_method("adopting", source="an example from outside", takes=("solver",))
def adopting(
    problem: Problem, *, solver: str = "highs", budget: Any = None, seed: int = 0
) -> Solution:
    """Solve a model with a constraint of its own, and adopt what comes out."""
    model = build(problem, "together")
    solve_model(model, solver, budget=budget)
    return adopt(problem, model)
