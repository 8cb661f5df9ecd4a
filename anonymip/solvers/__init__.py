"""Solver adapters: a Pyomo model goes in, a checked point with its bound comes out.

Only the light parts are imported here; Pyomo and the solvers load on first use.
"""

from anonymip.solvers.interface import Availability as Availability
from anonymip.solvers.interface import Solver as Solver
from anonymip.solvers.interface import SolverOptions as SolverOptions
from anonymip.solvers.interface import SolverResult as SolverResult
from anonymip.solvers.registry import availability as availability
from anonymip.solvers.registry import broken_by_values as broken_by_values
from anonymip.solvers.registry import get_solver as get_solver
from anonymip.solvers.registry import prepare_solver as prepare_solver
from anonymip.solvers.registry import refuse_unknown_solver as refuse_unknown_solver
from anonymip.solvers.registry import solve_form as solve_form
from anonymip.solvers.registry import solve_model as solve_model
from anonymip.solvers.registry import solver_names as solver_names
from anonymip.solvers.standard_form import Named as Named
from anonymip.solvers.standard_form import StandardForm as StandardForm
from anonymip.solvers.standard_form import compile_standard_form as compile_standard_form
