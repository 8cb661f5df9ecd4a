"""Patterns of records as values of a pattern model's variables, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Patterns
from anonymip.errors import InputError
from anonymip.models.patterns.pattern import used_rows
from anonymip.models.patterns.pattern_columns import PatternColumns
from anonymip.models.patterns.pattern_rules import set_rule_values
from anonymip.models.patterns.row_assignment import RowAssignment, assign_rows
from anonymip.tolerances import INTEGRALITY


def set_start_pattern(model: pyo.ConcreteModel, assignment: Patterns) -> None:
    """Give every variable the value that patterns imply: a warm start.

    Records of an output row that another stands for move there.

    Raises
    ------
    InputError
        If the model lacks an output row of the start.
    InvalidAssignment
        If the patterns break a rule of the problem.
    """
    columns: PatternColumns = model.context
    columns.problem.recoding.check(columns.problem, assignment)
    index = assignment.index
    shown = np.flatnonzero(index != SUPPRESSED)
    types = columns.type_of[shown]
    rows = columns.row_of[types, index[shown]]
    if (rows < 0).any():
        raise InputError(
            "the model has not all output rows of the start", remedy="Build it with all rows"
        )
    t = len(columns.counts)
    pairs = rows.astype(np.int64) * t + types
    amounts = np.zeros(len(columns.rows), np.int64)
    np.add.at(amounts, np.searchsorted(columns.rows * t + columns.types, pairs), 1)
    for variable, amount in zip(model.assigned.values(), amounts.tolist(), strict=True):
        variable.set_value(amount)
    in_use = np.zeros(columns.count, np.bool_)
    in_use[rows] = True
    for variable, used in zip(model.used.values(), in_use.tolist(), strict=True):
        variable.set_value(int(used))
    if np.isfinite(columns.price):
        hidden = np.bincount(columns.type_of[index == SUPPRESSED], minlength=t)
        for variable, amount in zip(model.suppressed.values(), hidden.tolist(), strict=True):
            variable.set_value(amount)
    set_rule_values(model, amounts)


def read_pattern(model: pyo.ConcreteModel) -> Patterns:
    """Return the patterns of a solved model; records of a type take theirs in the table's order.

    Fractional numbers of records are rounded to whole ones by a flow of least cost: within what is
    in use, numbers of types and output rows change by less than one. If tolerances of the solver
    leave none, all records are assigned again to the output rows in use.

    Raises
    ------
    InputError
        If the model has no solution, or its output rows hold not all records.
    """
    columns: PatternColumns = model.context
    variables = [*model.assigned.values(), *model.used.values()]
    if np.isfinite(columns.price):
        variables += list(model.suppressed.values())
    if any(variable.value is None for variable in variables):
        raise InputError(
            "the model has no values to read", remedy="Solve it, and load the solution"
        )
    amounts = _whole_amounts(model)
    e, t = len(columns.rows), len(columns.counts)
    index = np.full(columns.problem.n, SUPPRESSED, np.int32)
    order = np.argsort(columns.type_of, kind="stable")
    place = np.cumsum(columns.counts) - columns.counts
    types = np.concatenate([columns.types, np.arange(t)])
    patterns = np.append(columns.patterns[columns.rows], np.full(t, SUPPRESSED))
    for pair in np.flatnonzero(amounts).tolist():
        row_type, amount = types[pair], amounts[pair]
        index[order[place[row_type] : place[row_type] + amount]] = patterns[pair]
        place[row_type] += amount
    assert len(amounts) == e + t
    return Patterns(index)


def _whole_amounts(model: Any) -> NDArray[np.int64]:
    """Return (e + t,) records of each pair, and suppressed ones of each row type."""
    columns: PatternColumns = model.context
    e, t, r = len(columns.rows), len(columns.counts), columns.count
    given = np.zeros(e + t)
    given[:e] = [variable.value for variable in model.assigned.values()]
    if np.isfinite(columns.price):
        given[e:] = [variable.value for variable in model.suppressed.values()]
    in_use = np.append(used_rows(model), np.isfinite(columns.price))
    rows = np.append(columns.rows, np.full(t, r))
    types = np.append(columns.types, np.arange(t))
    given[~in_use[rows]] = 0.0
    below = np.floor(given + INTEGRALITY).astype(np.int64)
    held = np.bincount(types, weights=below, minlength=t).astype(np.int64)
    filled = np.bincount(rows, weights=below, minlength=r + 1).astype(np.int64)
    needed = np.where(in_use, columns.problem.k, 0)
    needed[r] = 0
    if (held == columns.counts).all() and (filled >= needed).all():
        return below
    costs = np.append(columns.costs[columns.patterns[columns.rows]], np.full(t, columns.price))
    open_pairs = np.flatnonzero(in_use[rows])
    split = open_pairs[(given - below)[open_pairs] > INTEGRALITY]
    if (held <= columns.counts).all():
        rounded = assign_rows(
            RowAssignment(
                columns.counts - held,
                np.maximum(needed - filled, 0),
                types[split],
                rows[split],
                costs[split],
                np.ones(len(split), np.int64),
            )
        )
        if rounded is not None:
            below[split] += rounded
            return below
    ends = types[open_pairs], rows[open_pairs]
    again = assign_rows(RowAssignment(columns.counts, needed, *ends, costs[open_pairs]))
    if again is None:
        raise InputError(
            "the output rows in use do not hold all records, k each",
            remedy="Solve the model to the end",
        )
    below[:] = 0
    below[open_pairs] = again
    return below
