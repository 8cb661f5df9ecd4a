"""The objective of the equivalence model: losses of cells, linear or chosen among tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo

from anonymip.models.parts.equivalence_context import Context, linear
from anonymip.objectives.language.record import cells_of_sets
from anonymip.objectives.language.tables import square_losses
from anonymip.problem import Problem
from anonymip.runtime.arrays import Floats, Ints
from anonymip.tolerances import LOSS_RELATIVE

#: Sizes of losses at which rows that hold them need no unit of their own.
_SMALLEST, _LARGEST = 1e-2, 1e6


@dataclass(eq=False)
class Charge:
    """The loss of one record: a constant and multiples of variables."""

    constant: float
    coefficients: list[float] = field(default_factory=list)
    variables: list[Any] = field(default_factory=list)

    def add(self, coefficient: float, variable: Any) -> None:
        """Charge for a variable."""
        if coefficient:
            self.coefficients.append(float(coefficient))
            self.variables.append(variable)


def loss_size(context: Context) -> int:
    """Return how many binaries curved losses of ranges need, and rows the chains of nodes."""
    microdata = context.problem.microdata
    choices = 0
    for a in set(map(int, context.tables.pair_columns)) & set(context.ranges):
        codes = microdata.codes[:, a].astype(np.int64)
        choices += int(((codes + 1) * (len(microdata.levels[a]) - codes)).sum())
    return choices + sum(microdata.n * one.longest for one in context.ancestors)


def add_loss(model: pyo.ConcreteModel) -> None:
    """Add the objective to a model that has its variables.

    ``record_loss[i]`` is what record i loses; the objective is their sum, or ``worst``, the
    largest of them. ``loss_unit`` is the power of two in which rows with losses are measured, so
    that tolerances of solvers stay harmless for tiny and for huge losses.
    """
    context = model.context
    charges = _charges(model)
    model.loss_unit = _unit(charges)
    model.record_loss = pyo.Expression(
        model.rows,
        rule=lambda _, i: linear(
            charges[i].constant, charges[i].coefficients, charges[i].variables
        ),
        doc="loss of a record [unit of the objective]",
    )
    if context.problem.compiled.aggregate == "max":
        model.worst = pyo.Var(doc="largest loss of a record [loss_unit]")
        model.worst_at_least = pyo.Constraint(
            model.rows,
            rule=lambda model, i: (None, scaled_loss(model, i, model.worst), 0.0),
            doc="no record loses more than the worst",
        )
        model.loss = pyo.Objective(
            expr=linear(0.0, [model.loss_unit], [model.worst]),
            sense=pyo.minimize,
            doc="largest loss of a record [unit of the objective]",
        )
        return
    model.loss = pyo.Objective(
        expr=linear(
            float(sum(charge.constant for charge in charges)),
            [coefficient for charge in charges for coefficient in charge.coefficients],
            [variable for charge in charges for variable in charge.variables],
        ),
        sense=pyo.minimize,
        doc="(21), (34): loss summed over the records [unit of the objective]",
    )


def scaled_loss(model: pyo.ConcreteModel, i: int, variable: Any) -> Any:
    """Return the loss of a record minus a variable that holds it, in the unit of losses."""
    loss, unit = model.record_loss[i].expr, model.loss_unit
    return linear(
        loss.constant / unit,
        [*(coefficient / unit for coefficient in loss.linear_coefs), -1.0],
        [*loss.linear_vars, variable],
    )


def _unit(charges: list[Charge]) -> float:
    largest = 0.0
    for charge in charges:
        for coefficient, variable in zip(charge.coefficients, charge.variables, strict=True):
            low, high = variable.bounds
            largest = max(largest, abs(coefficient) * (high - low))
    if largest == 0.0 or _SMALLEST <= largest <= _LARGEST:
        return 1.0
    return float(2.0 ** np.rint(np.log2(largest)))


def _charges(model: pyo.ConcreteModel) -> list[Charge]:
    context = model.context
    tables, problem = context.tables, context.problem
    charges = [Charge(float(tables.constant)) for _ in range(problem.n)]
    for r, column in enumerate(tables.range_columns):
        low, high = tables.range_low[r], tables.range_high[r]
        origin, unit = context.scaling.origin[column], context.scaling.unit[column]
        for i, charge in enumerate(charges):
            charge.constant += float((low + high) * (origin - tables.range_origin[r]))
            charge.add(low * unit, model.scaled_lower[i, column])
            charge.add(high * unit, model.scaled_upper[i, column])
    _add_set_losses(model, charges)
    _add_curved_ranges(model, charges)
    # Nodes that are reached are charged for step by step on the way to the root.
    codes = problem.microdata.codes
    for one in context.ancestors:
        a = one.attribute
        for i, charge in enumerate(charges):
            code = int(codes[i, a])
            charge.constant += float(one.alone[code])
            for node, step in zip(one.chains[code], one.steps[code], strict=True):
                charge.add(step, model.reaches[i, a, node])
    if context.problem.may_suppress:
        # Publishing a record exactly is what a suppressed one saves.
        exact = cells_of_sets(problem.microdata, np.arange(problem.n)[:, None])
        alone = problem.compiled.record_losses(exact)
        for i, charge in enumerate(charges):
            charge.add(problem.compiled.suppression_price - alone[i], model.suppress[i])
    return charges


def _add_set_losses(model: pyo.ConcreteModel, charges: list[Charge]) -> None:
    """Charge for the number of published values."""
    tables = model.context.tables
    curved: dict[int, Floats] = {}
    for s, column in enumerate(map(int, tables.set_columns)):
        size, start = int(tables.set_sizes[s]), int(tables.set_start[s])
        losses = tables.set_losses[start + 1 : start + size + 1]
        steps = np.diff(losses)
        if size > 1 and np.ptp(steps) > LOSS_RELATIVE * np.abs(steps).max():
            curved[column] = losses
            continue
        step = float(steps.mean()) if size > 1 else 0.0
        for i, charge in enumerate(charges):
            charge.constant += float(losses[0]) - step
            for h in range(size):
                charge.add(step, model.included[i, column, h])
    if curved:
        _add_curved_sets(model, charges, curved)


def _add_curved_sets(
    model: pyo.ConcreteModel, charges: list[Charge], curved: dict[int, Floats]
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
    for i, charge in enumerate(charges):
        for a, losses in curved.items():
            for c, loss in enumerate(losses, start=1):
                charge.add(float(loss), model.set_size[i, a, c])


def _add_curved_ranges(model: pyo.ConcreteModel, charges: list[Charge]) -> None:
    """Choose the published range among all pairs of levels where the loss is not linear in it."""
    context = model.context
    tables, microdata, scaling = context.tables, context.problem.microdata, context.scaling
    levels = {
        a: scaling.levels(microdata, a)
        for a in map(int, tables.pair_columns)
        if a in context.ranges
    }
    if not levels:
        return
    choices = {
        (i, a): list(product(range(code + 1), range(code, len(levels[a]))))
        for i in range(microdata.n)
        for a in levels
        for code in [int(microdata.codes[i, a])]
    }
    model.range_choices = pyo.Set(
        initialize=[(*cell, *ends) for cell, listed in choices.items() for ends in listed],
        dimen=4,
        doc="records, attributes with a curved loss, ranks of possible ends",
    )
    model.range_choice = pyo.Var(
        model.range_choices, domain=pyo.Binary, doc="whether a record's range has these ends"
    )
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

        doc = f"the chosen range covers the {end} end"
        constraint = pyo.Constraint(model.rows, list(levels), rule=rule, doc=doc)
        model.add_component(f"{end}_chosen", constraint)
    for i, a in choices:
        if a in scaling.ranked:
            # In the unit of the attribute, which a rank is not.
            chosen = [model.range_choice[i, a, p, q] for p, q in choices[i, a]]
            for end, which in ((model.lower, 0), (model.upper, 1)):
                values = [float(scaling.ranked[a][pair[which]]) for pair in choices[i, a]]
                end[i, a].set_value(linear(0.0, values, chosen))
    for p_index, column in enumerate(map(int, tables.pair_columns)):
        if column in levels:
            losses = square_losses(tables, p_index)
            for i, charge in enumerate(charges):
                for ends in choices[i, column]:
                    charge.add(float(losses[ends]), model.range_choice[(i, column, *ends)])


def _pair_losses(problem: Problem) -> Floats:
    """Return (n, n) losses of a record published with another, lowered by their rounding."""
    n = problem.n
    first, second = np.triu_indices(n, 1)
    cells = cells_of_sets(problem.microdata, np.stack([first, second], axis=1))
    found = problem.compiled.record_losses(cells)
    found = found - LOSS_RELATIVE * np.abs(found).max(initial=0.0)
    losses = np.full((n, n), np.inf)
    losses[first, second] = losses[second, first] = found
    return losses


def charge_for_neighbours(
    model: pyo.ConcreteModel,
    sizes: Ints,
    published_with: Callable[[int, int], tuple[tuple[int, int], Any]],
) -> None:
    """Add that no record loses less than with its nearest neighbours, of (n,) sizes of their sets.

    Of a record and another `published_with` returns the index of their row and the binary variable
    that says that the one is published with the other. There is a row only where it says something:
    where the least loss is finite and small enough. If rounding is as large as the unit of the rows
    none does, and its numbers, of a huge constant, are more than solvers take.
    """
    context, unit = model.context, model.loss_unit
    price, losses = context.problem.compiled.suppression_price, _pair_losses(context.problem)
    losses[context.conflicts] = np.inf
    # Whoever may be published alone gets no row; the index is then of no meaning.
    nearest = np.sort(losses, axis=1)[np.arange(len(sizes)), np.maximum(sizes - 2, 0)]
    # Without enough records to be published with there is no release, and the loss has no bound.
    bound = np.flatnonzero((LOSS_RELATIVE * np.abs(nearest) < unit) & (sizes > 1)).tolist()
    farther = {}
    for i, other in product(bound, range(len(sizes))):
        if nearest[i] < losses[i, other] < np.inf:
            index, binary = published_with(i, other)
            farther[index] = i, float(losses[i, other] - nearest[i]), binary
    model.charged = pyo.Var(bound, doc="loss of a record [loss_unit]")
    model.charge = pyo.Constraint(
        bound,
        rule=lambda model, i: (0.0, scaled_loss(model, i, model.charged[i]), 0.0),
        doc="what a record is charged is its loss",
    )

    def rule(model: Any, i: int, step: float = 0.0, pair: Any = None) -> Any:
        coefficients, variables = [1.0], [model.charged[i]]
        if context.problem.may_suppress:
            coefficients.append(float(nearest[i] - price) / unit)
            variables.append(model.suppress[i])
        if pair is not None:
            coefficients.append(-step / unit)
            variables.append(pair)
        return (float(nearest[i]) / unit, linear(0.0, coefficients, variables), None)

    model.neighbours = pyo.Constraint(
        bound, rule=rule, doc="a record loses what its nearest neighbours cost"
    )
    model.farther_neighbour = pyo.Constraint(
        list(farther),
        rule=lambda model, *index: rule(model, *farther[index]),
        doc="a record loses what one costs that it is published with and that lies farther away",
    )


def set_losses(model: pyo.ConcreteModel) -> None:
    """Give the variables that hold losses of records their values."""
    if model.component("charged") is not None:
        for i, charged in model.charged.items():
            charged.set_value(pyo.value(model.record_loss[i]) / model.loss_unit)
    if model.component("worst") is not None:
        worst = max(pyo.value(model.record_loss[i]) for i in model.rows)
        model.worst.set_value(worst / model.loss_unit)
