"""The MIP of a pattern problem on the pairs of records and rows that may still matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, vstack

from anonymip.bounds.patterns.pattern_duals import PatternDuals
from anonymip.errors import SolverError
from anonymip.runtime.budget import Budget
from anonymip.solvers import Named, SolverOptions, SolverResult, StandardForm, solve_form
from anonymip.solvers.linear_programs import solve_linear_program
from anonymip.status import Stopped
from anonymip.tolerances import INTEGRALITY


@dataclass(frozen=True, eq=False)
class RestrictedAnswer:
    """What a solver found.

    Parameters
    ----------
    amounts
        (pairs,) int64 records of the row type of each pair that are published as its row; None if
        nothing was found.
    bound
        On the loss of whatever uses these pairs alone; None if unknown, infinite if there is none.
    solver
        Its name and version.
    """

    amounts: NDArray[np.int64] | None
    bound: float | None
    solver: str


def solve_restricted(
    duals: PatternDuals,
    kept: NDArray[np.bool_],
    amounts: NDArray[np.int64] | None,
    solver: str,
    options: SolverOptions,
    budget: Budget,
) -> RestrictedAnswer:
    """Return the best way to use some of the pairs.

    Parameters
    ----------
    duals
        Names the pairs of a row type i and an output row r.
    kept
        (pairs,) those that may be used.
    amounts
        (pairs,) a start that uses no others; None without one.
    solver, options, budget
        Of the search.

    Notes
    -----
    With y the rows in use and x the records of a row type in a row: x_ir <= n_i y_r, the sum of
    x over a row at least k y_r, and the sum over the rows of a row type equal to n_i, or at most
    n_i if records may go without companions, at their cost. For fixed y this is a transportation
    problem, whose vertices are whole numbers: x is continuous in the model, and where a solver's
    point is no vertex, one is found by a linear program.

    Raises
    ------
    SolverError
        If what the solver returns contradicts itself or the start.
    """
    program = duals.program
    pairs = np.flatnonzero(kept)
    form = _form(duals, pairs)
    if amounts is not None:
        used = np.zeros(program.rows, np.bool_)
        used[duals.pair_rows[amounts > 0]] = True
        rows = np.unique(duals.pair_rows[pairs])
        values = np.concatenate([amounts[pairs], used[rows]]).tolist()
        for variable, value in zip(form.variables, values, strict=True):
            variable.value = value
    result = solve_form(form, solver, options, start=amounts is not None, budget=budget)
    bound = result.bound
    if result.stopped is Stopped.INFEASIBLE:
        if amounts is not None:
            refuse_infeasible(result)
        bound = np.inf
    if result.values is None:
        return RestrictedAnswer(None, bound, result.solver)
    found = np.zeros(len(duals.pair_rows), np.int64)
    found[pairs] = _whole(form, result.values, len(pairs), result.solver)
    return RestrictedAnswer(found, bound, result.solver)


def refuse_infeasible(result: SolverResult) -> NoReturn:
    """Raise the error of a solver that finds no point where a release is known."""
    raise SolverError(
        f"{result.solver} calls a feasible model infeasible", remedy="Use another solver"
    )


def _form(duals: PatternDuals, pairs: NDArray[np.int64]) -> StandardForm:
    program = duals.program
    types = duals.pair_types[pairs]
    rows, row = np.unique(duals.pair_rows[pairs], return_inverse=True)
    count, used = len(pairs), len(rows)
    width = count + used
    at = np.arange(count)
    most = program.counts[types].astype(np.float64)
    ones = np.ones(count)
    links = coo_array(
        (np.concatenate([ones, -most]), (np.tile(at, 2), np.concatenate([at, count + row]))),
        shape=(count, width),
    )
    filled = coo_array(
        (
            np.concatenate([ones, np.full(used, -float(program.k))]),
            (
                np.concatenate([row, np.arange(used)]),
                np.concatenate([at, count + np.arange(used)]),
            ),
        ),
        shape=(used, width),
    )
    given = coo_array((ones, (types, at)), shape=(program.type_count, width))
    records = program.counts.astype(np.float64)
    free = bool(np.isfinite(program.price))
    saved = program.price if free else 0.0
    cost = np.concatenate([program.costs[duals.pair_patterns[pairs]] - saved, np.zeros(used)])
    names = [f"x_{i}_{r}" for i, r in zip(types.tolist(), rows[row].tolist(), strict=True)]
    names += [f"y_{r}" for r in rows.tolist()]
    rows_named = [f"link_{i}" for i in range(count)]
    rows_named += [f"filled_{r}" for r in rows.tolist()] + [
        f"given_{i}" for i in range(program.type_count)
    ]
    return StandardForm(
        variables=tuple(Named(name) for name in names),
        constraints=tuple(Named(name) for name in rows_named),
        cost=cost,
        offset=saved * float(records.sum()),
        matrix=vstack([links, filled, given]).tocsr(),
        row_lower=np.concatenate(
            [
                np.full(count, -np.inf),
                np.zeros(used),
                np.full(program.type_count, -np.inf) if free else records,
            ]
        ),
        row_upper=np.concatenate([np.zeros(count), np.full(used, np.inf), records]),
        lower=np.zeros(width),
        upper=np.concatenate([most, np.ones(used)]),
        integer=np.concatenate([np.zeros(count, np.bool_), np.ones(used, np.bool_)]),
        maximize=False,
    )


def _whole(
    form: StandardForm, values: NDArray[np.float64], count: int, solver: str
) -> NDArray[np.int64]:
    """Return whole amounts for the rows that a point uses, no worse than the point's own."""
    amounts = values[:count]
    if np.abs(amounts - np.rint(amounts)).max(initial=0.0) > INTEGRALITY:
        used = np.rint(values[count:])
        fixed = replace(
            form,
            lower=np.concatenate([form.lower[:count], used]),
            upper=np.concatenate([form.upper[:count], used]),
        )
        amounts = _vertex(fixed)[:count]
        if np.abs(amounts - np.rint(amounts)).max(initial=0.0) > INTEGRALITY:
            raise SolverError(
                f"{solver} and a linear program give no whole number of records",
                remedy="Use another solver",
            )
    return np.rint(amounts).astype(np.int64)


def _vertex(form: StandardForm) -> NDArray[np.float64]:
    """Return an optimal vertex of a linear program that is known to have a point."""
    found = solve_linear_program(
        form.cost,
        form.matrix,
        form.row_lower,
        form.row_upper,
        lower=form.lower,
        upper=form.upper,
    )
    if found is None:
        raise SolverError(
            "the records of a point cannot be given to its rows", remedy="Use another solver"
        )
    return found.point
