"""Solver adapters: a Pyomo model goes in, a checked point with its bound comes out.

Only the light parts are imported here; Pyomo and the solvers load on first use.
"""

from anonymip.solvers.interface import Availability, Solver, SolverOptions, SolverResult
from anonymip.solvers.modelling.checked_results import broken_by_values
from anonymip.solvers.modelling.standard_form import Named, StandardForm
from anonymip.solvers.modelling.standard_form_compiler import compile_standard_form
from anonymip.solvers.registry import (
    availability,
    get_solver,
    refuse_unknown_solver,
    solve_form,
    solve_model,
    solver_names,
)

__all__ = [
    "Availability",
    "Named",
    "Solver",
    "SolverOptions",
    "SolverResult",
    "StandardForm",
    "availability",
    "broken_by_values",
    "compile_standard_form",
    "get_solver",
    "refuse_unknown_solver",
    "solve_form",
    "solve_model",
    "solver_names",
]
