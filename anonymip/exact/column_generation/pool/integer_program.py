"""A small pool as an integer program for a solver."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from anonymip.exact.column_generation.pool.pool import Pool
from anonymip.runtime.budget import Budget
from anonymip.solvers import Named, SolverOptions, StandardForm, solve_form
from anonymip.status import Stopped


@dataclass(frozen=True, eq=False)
class IntegerAnswer:
    """What a solver found.

    Parameters
    ----------
    chosen
        Columns of a selection cheaper than the cutoff, repeated; None if none was found.
    bound
        Reported by the solver, on every selection and at most the cutoff; None if unknown.
    complete
        Whether the solver reports that nothing cheaper exists.
    solver
        Its name and version.
    """

    chosen: NDArray[np.int64] | None
    bound: float | None
    complete: bool
    solver: str


def solve_integer(
    pool: Pool,
    columns: NDArray[np.int64],
    extra: csr_array,
    row_bounds: tuple[NDArray[np.float64], NDArray[np.float64]],
    cutoff: float,
    solver: str,
    options: SolverOptions,
    budget: Budget,
) -> IntegerAnswer:
    """Return the cheapest selection from some columns of a pool, if it costs less than a cutoff.

    Parameters
    ----------
    pool
        Says costs and coverage.
    columns
        (a,) that may be used.
    extra
        (a, e) coefficients of these columns in further rows.
    row_bounds
        (e,) lower and (e,) upper sides of those.
    cutoff
        What costs as much is not looked for.
    solver, options, budget
        Of the search.

    Notes
    -----
    One artificial column covers everything at the cost of the cutoff. It is where the solver
    starts from, so that no solver is asked to say "infeasible", and none needs an option for
    cutoffs.
    """
    # Where there is no upper side, the artificial column has the lower one.
    sides = np.where(np.isfinite(row_bounds[1]), row_bounds[1], row_bounds[0])
    held = csr_array(pool.incidence[columns].T)
    coverage = pool.coverage.astype(np.float64)
    matrix = vstack(
        [
            hstack([csr_array(coverage[:, None]), held]),
            hstack([csr_array(sides[:, None]), csr_array(extra.T)]),
        ]
    )
    count = len(columns)
    rows = len(coverage) + len(sides)
    form = StandardForm(
        variables=tuple(Named(f"column_{at}", 0.0) for at in range(count + 1)),
        constraints=tuple(Named(f"row_{at}") for at in range(rows)),
        cost=np.concatenate([[cutoff], pool.costs[columns]]),
        offset=0.0,
        matrix=csr_array(matrix).astype(np.float64),
        row_lower=np.concatenate([coverage, row_bounds[0]]),
        row_upper=np.concatenate([coverage, row_bounds[1]]),
        lower=np.zeros(count + 1),
        upper=np.concatenate([[1.0], pool.limits[columns].astype(np.float64)]),
        integer=np.ones(count + 1, np.bool_),
        maximize=False,
    )
    form.variables[0].value = 1.0
    result = solve_form(form, solver, options, start=True, budget=budget)
    chosen = None
    if result.values is not None and result.values[0] < 0.5:
        chosen = pool.selection(columns, result.values[1:])
    complete = result.stopped is Stopped.OPTIMAL
    return IntegerAnswer(chosen, result.bound, complete, result.solver)
