"""Releases from the restricted master: whole numbers of its columns of low reduced cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, hstack, identity, vstack

from anonymip.errors import SolverError
from anonymip.exact.column_generation.conditions import ColumnRules
from anonymip.exact.column_generation.relaxation.columns import Columns
from anonymip.runtime.budget import Budget
from anonymip.solvers import Named, SolverOptions, StandardForm, solve_form


def whole_solution(
    rules: ColumnRules,
    columns: Columns,
    solver: str,
    options: SolverOptions,
    budget: Budget,
    *,
    start: NDArray[np.int64] | None = None,
) -> NDArray[np.int64] | None:
    """Return (c,) how often a cheap release uses the columns given; None if none was found.

    Parameters
    ----------
    rules
        Which sums of columns are releases.
    columns
        That may be used.
    solver, options, budget
        Of the search, which need not end.
    start
        (c,) how often a known release uses each.
    """
    form = _form(rules, columns)
    if start is not None:
        alone = rules.sides - columns.incidence(rules.types) @ start
        values = np.concatenate([start, alone]) if np.isfinite(rules.price) else start
        for variable, value in zip(form.variables, values.tolist(), strict=True):
            variable.value = value
    try:
        result = solve_form(form, solver, options, start=start is not None, budget=budget)
    except SolverError:
        return None
    if result.values is None:
        return None
    return np.rint(result.values[: len(columns)]).astype(np.int64)


def _form(rules: ColumnRules, columns: Columns) -> StandardForm:
    incidence = columns.incidence(rules.types)
    most = np.full(len(columns), float(rules.most))
    held = incidence.tocoo()
    np.minimum.at(most, held.col, np.floor(rules.sides[held.row] / held.data))
    cost, matrix, upper = columns.costs, incidence, most
    if np.isfinite(rules.price):
        matrix = csc_array(hstack([incidence, identity(rules.types)]))
        cost = np.append(cost, np.full(rules.types, rules.price))
        upper = np.append(upper, rules.sides)
    row_lower, row_upper = rules.sides, rules.sides
    if rules.counted:
        counted = (np.arange(len(cost)) < len(columns)).astype(np.float64)
        matrix = csc_array(vstack([matrix, csr_array(counted[None, :])]))
        row_lower, row_upper = np.append(row_lower, -np.inf), np.append(row_upper, rules.most)
    return StandardForm(
        variables=tuple(Named(f"column_{at}") for at in range(len(cost))),
        constraints=tuple(Named(f"rows_{at}") for at in range(len(row_lower))),
        cost=cost,
        offset=0.0,
        matrix=csr_array(matrix),
        row_lower=row_lower,
        row_upper=row_upper,
        lower=np.zeros(len(cost)),
        upper=upper,
        integer=np.ones(len(cost), np.bool_),
        maximize=False,
    )
