"""What is published for each record, as variables: ends of ranges, values of sets, nodes.

Formulations differ in what makes records share them; the loss (:mod:`.equivalence_loss`) reads only
these.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from anonymip.models.parts.equivalence_context import linear


def add_cell_sets(model: pyo.ConcreteModel) -> None:
    """Add the sets that the variables of cells run over to a model that has its context."""
    context = model.context
    codes = context.problem.microdata.codes
    model.rows = pyo.RangeSet(0, context.problem.n - 1, doc="records of the table")
    model.ranges = pyo.Set(initialize=context.ranges, doc="attributes published by their ends")
    model.attribute_values = pyo.Set(
        initialize=[
            (a, h) for a in context.sets for h in range(len(context.problem.microdata.levels[a]))
        ],
        dimen=2,
        doc="attributes published as sets, and the ranks of their observed values",
    )
    model.ancestors = pyo.Set(
        initialize=[
            (i, one.attribute, node)
            for i in range(context.problem.n)
            for one in context.ancestors
            for node in one.chains[codes[i, one.attribute]]
        ],
        dimen=3,
        doc="records, hierarchical attributes, nodes above the record's value that cost more",
    )


def add_cell_variables(model: pyo.ConcreteModel) -> None:
    """Add ends, value indicators and nodes of all records, bounded by the record's own values.

    The own values are inside: these bounds are eqs. (5), (7) and (9) of Doka et al.
    """
    context = model.context
    microdata = context.problem.microdata
    values = context.observed
    low, high = values.min(axis=0), values.max(axis=0)

    def domain(model: Any, row: int, attribute: int) -> Any:
        whole = context.integer_ends and context.scaling.whole[attribute]
        return pyo.Integers if whole else pyo.Reals

    model.scaled_lower = pyo.Var(
        model.rows,
        model.ranges,
        domain=domain,
        bounds=lambda _, i, j: (float(low[j]), float(values[i, j])),
        doc="lower end published for a record, shifted and scaled",
    )
    model.scaled_upper = pyo.Var(
        model.rows,
        model.ranges,
        domain=domain,
        bounds=lambda _, i, j: (float(values[i, j]), float(high[j])),
        doc="upper end published for a record, shifted and scaled",
    )
    _add_ends(model)
    model.included = pyo.Var(
        model.rows,
        model.attribute_values,
        bounds=lambda _, i, j, h: (1.0 if microdata.codes[i, j] == h else 0.0, 1.0),
        doc="whether the set published for a record holds a value",
    )
    _add_reaches(model)


def _add_ends(model: pyo.ConcreteModel) -> None:
    """Give the ends in the units of the attributes names of their own."""
    scaling = model.context.scaling
    for end in ("lower", "upper"):
        scaled = getattr(model, f"scaled_{end}")

        def rule(model: Any, i: int, j: int, scaled: Any = scaled) -> Any:
            return linear(float(scaling.origin[j]), [float(scaling.unit[j])], [scaled[i, j]])

        model.add_component(
            end,
            pyo.Expression(
                model.rows,
                model.ranges,
                rule=rule,
                doc=f"{end} end published for a record [unit of the attribute]",
            ),
        )


def _add_reaches(model: pyo.ConcreteModel) -> None:
    context = model.context
    codes = context.problem.microdata.codes
    model.reaches = pyo.Var(
        model.ancestors,
        bounds=(0.0, 1.0),
        doc="whether the node published for a record is this one or above it",
    )
    steps = [
        (i, one.attribute, lower, higher)
        for i in range(context.problem.n)
        for one in context.ancestors
        for lower, higher in zip(
            one.chains[codes[i, one.attribute]],
            one.chains[codes[i, one.attribute]][1:],
            strict=False,
        )
    ]
    model.on_the_way = pyo.Constraint(
        steps,
        rule=lambda model, i, a, lower, higher: (
            0.0,
            linear(0.0, [1.0, -1.0], [model.reaches[i, a, lower], model.reaches[i, a, higher]]),
            None,
        ),
        doc="who reaches a node has reached those on the way to it",
    )
