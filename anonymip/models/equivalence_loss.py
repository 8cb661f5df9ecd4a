"""The objective of the equivalence model: losses of cells, linear or chosen among tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from anonymip.assignments import Classes
from anonymip.models.equivalence_context import linear
from anonymip.objectives import cells_of
from anonymip.problem import Problem
from anonymip.tolerances import LOSS_RELATIVE

#: Adds coefficient times variable to the objective.
Add = Callable[[float, Any], None]


def add_loss(model: pyo.ConcreteModel) -> None:
    """Add the objective to a model that has its variables."""
    context = model.context
    tables, problem = context.tables, context.problem
    n = problem.n
    constant = tables.constant * n
    coefficients: list[float] = []
    variables: list[Any] = []

    def add(coefficient: float, variable: Any) -> None:
        if coefficient:
            coefficients.append(float(coefficient))
            variables.append(variable)

    for r, column in enumerate(tables.range_columns):
        low, high = tables.range_low[r], tables.range_high[r]
        origin, unit = context.scaling.origin[column], context.scaling.unit[column]
        constant += n * (low + high) * (origin - tables.range_origin[r])
        for i in range(n):
            add(low * unit, model.scaled_lower[i, column])
            add(high * unit, model.scaled_upper[i, column])
    constant += _add_set_losses(model, add)
    _add_pair_losses(model, add)
    if context.suppression:
        alone = _losses_alone(problem)
        for i in range(n):
            add(problem.compiled.suppression_price - alone[i], model.suppress[i])
    model.loss = pyo.Objective(
        expr=linear(float(constant), coefficients, variables),
        sense=pyo.minimize,
        doc="(21), (34): loss summed over the records [unit of the objective]",
    )


def _losses_alone(problem: Problem) -> NDArray[np.float64]:
    """Return (n,) the loss of publishing each record exactly, which a suppressed one saves."""
    alone = Classes(np.arange(problem.n, dtype=np.int32))
    return problem.compiled.record_losses(cells_of(problem.recoding.describe(problem, alone)))


def _add_set_losses(model: pyo.ConcreteModel, add: Add) -> float:
    """Charge for the number of published values; return the constant part."""
    tables, n = model.context.tables, model.context.problem.n
    constant = 0.0
    curved: dict[int, NDArray[np.float64]] = {}
    for s, column in enumerate(map(int, tables.set_columns)):
        size, start = int(tables.set_sizes[s]), int(tables.set_start[s])
        losses = tables.set_losses[start + 1 : start + size + 1]
        steps = np.diff(losses)
        if size > 1 and np.ptp(steps) > LOSS_RELATIVE * np.abs(steps).max():
            curved[column] = losses
            continue
        step = float(steps.mean()) if size > 1 else 0.0
        constant += n * (float(losses[0]) - step)
        for i in range(n):
            for h in range(size):
                add(step, model.included[i, column, h])
    if curved:
        _add_curved_sets(model, add, curved)
    return constant


def _add_curved_sets(
    model: pyo.ConcreteModel, add: Add, curved: dict[int, NDArray[np.float64]]
) -> None:
    """Choose the number of published values where the loss is not linear in it."""
    model.set_sizes = pyo.Set(
        initialize=[(a, c) for a, losses in curved.items() for c in range(1, len(losses) + 1)],
        dimen=2,
        doc="attributes with a curved loss, and possible numbers of values",
    )
    model.set_size = pyo.Var(
        model.rows,
        model.set_sizes,
        domain=pyo.Binary,
        doc="whether the set published for a record has so many values",
    )
    columns = list(curved)
    model.one_set_size = pyo.Constraint(
        model.rows,
        columns,
        rule=lambda model, i, a: (
            sum(model.set_size[i, a, c] for c in range(1, len(curved[a]) + 1)) == 1
        ),
        doc="a set has one size",
    )
    model.set_size_counts = pyo.Constraint(
        model.rows,
        columns,
        rule=lambda model, i, a: (
            sum(c * model.set_size[i, a, c] for c in range(1, len(curved[a]) + 1))
            >= sum(model.included[i, a, h] for h in range(len(curved[a])))
        ),
        doc="the size counts the published values",
    )
    for i in model.rows:
        for a, losses in curved.items():
            for c, loss in enumerate(losses, start=1):
                add(float(loss), model.set_size[i, a, c])


def _add_pair_losses(model: pyo.ConcreteModel, add: Add) -> None:
    """Choose the published range among all pairs of levels where the loss is not linear in it."""
    tables, microdata = model.context.tables, model.context.problem.microdata
    if not len(tables.pair_columns):
        return
    scaling = model.context.scaling
    levels = {
        int(a): (microdata.levels[a].astype(np.float64) - scaling.origin[a]) / scaling.unit[a]
        for a in tables.pair_columns
    }
    model.range_choices = pyo.Set(
        initialize=[
            (i, a, p, q)
            for i in range(microdata.n)
            for a in levels
            for p in range(int(microdata.codes[i, a]) + 1)
            for q in range(int(microdata.codes[i, a]), len(levels[a]))
        ],
        dimen=4,
        doc="records, attributes with a curved loss, ranks of possible ends",
    )
    model.range_choice = pyo.Var(
        model.range_choices, domain=pyo.Binary, doc="whether a record's range has these ends"
    )
    choices: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for i, a, p, q in model.range_choices:
        choices.setdefault((i, a), []).append((p, q))
    model.one_range = pyo.Constraint(
        model.rows,
        list(levels),
        rule=lambda model, i, a: sum(model.range_choice[i, a, p, q] for p, q in choices[i, a]) == 1,
        doc="a range has one pair of ends",
    )
    for end, which in (("lower", 0), ("upper", 1)):
        # Ends may lie inside the chosen range only: a monotone loss then chooses the tight one.
        def rule(model: Any, i: int, a: int, end: str = end, which: int = which) -> Any:
            chosen = sum(
                float(levels[a][ends[which]]) * model.range_choice[i, a, ends[0], ends[1]]
                for ends in choices[i, a]
            )
            variable = getattr(model, f"scaled_{end}")[i, a]
            return chosen <= variable if end == "lower" else chosen >= variable

        model.add_component(
            f"{end}_chosen",
            pyo.Constraint(
                model.rows, list(levels), rule=rule, doc=f"the chosen range covers the {end} end"
            ),
        )
    for p_index, column in enumerate(map(int, tables.pair_columns)):
        start, size = int(tables.pair_start[p_index]), int(tables.pair_sizes[p_index])
        losses = tables.pair_losses[start : start + size * size].reshape(size, size)
        for i in model.rows:
            for p, q in choices[i, column]:
                add(float(losses[p, q]), model.range_choice[i, column, p, q])
