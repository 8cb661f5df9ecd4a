"""Published cells as variables: ends of ranges, values of sets, nodes.

Formulations differ in what makes records share them; the loss (:mod:`.equivalence_loss`) reads only
these.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyomo.environ as pyo

from anonymip.assignments import Description
from anonymip.models.parts.equivalence_context import linear, no_less


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
    # The ends in the units of the attributes have names of their own.
    scaling = context.scaling
    for end in ("lower", "upper"):

        def rule(model: Any, i: int, j: int, end: str = end) -> Any:
            scaled = getattr(model, f"scaled_{end}")[i, j]
            return linear(float(scaling.origin[j]), [float(scaling.unit[j])], [scaled])

        doc = f"{end} end published for a record [unit of the attribute]"
        model.add_component(end, pyo.Expression(model.rows, model.ranges, rule=rule, doc=doc))
    model.included = pyo.Var(
        model.rows,
        model.attribute_values,
        bounds=lambda _, i, j, h: (1.0 if microdata.codes[i, j] == h else 0.0, 1.0),
        doc="whether the set published for a record holds a value",
    )
    model.reaches = pyo.Var(
        model.ancestors,
        bounds=(0.0, 1.0),
        doc="whether the node published for a record is this one or above it",
    )
    steps = [
        (i, one.attribute, lower, higher)
        for i in range(context.problem.n)
        for one in context.ancestors
        for lower, higher in pairwise(one.chains[microdata.codes[i, one.attribute]])
    ]
    model.on_the_way = pyo.Constraint(
        steps,
        rule=lambda model, i, a, lower, higher: no_less(
            model.reaches[i, a, lower], model.reaches[i, a, higher]
        ),
        doc="who reaches a node has reached those on the way to it",
    )


#: Index of two records -> who is published, whose value that covers, and the binary variable that
#: says so.
Coverings = Mapping[tuple[int, int], tuple[int, int, Any]]


def add_covering_ends(
    model: pyo.ConcreteModel, end: str, name: str, coverings: Coverings, doc: str
) -> None:
    """Add that the lower or upper end of a record covers another's value where the binary is 1.

    Nothing is said where the own value lies beyond the other.
    """
    context, ends = model.context, getattr(model, f"scaled_{end}")
    values, sign = context.observed, 1.0 if end == "upper" else -1.0
    beyond: dict[tuple[int, ...], tuple[int, float, Any, int]] = {
        (*index, a): (i, float(values[other, a] - values[i, a]), binary, a)
        for index, (i, other, binary) in coverings.items()
        for a in context.ranges
        if sign * (values[other, a] - values[i, a]) > 0
    }

    def rule(_: Any, *index: int) -> Any:
        i, step, binary, a = beyond[index]
        own, body = float(values[i, a]), linear(0.0, [1.0, -step], [ends[i, a], binary])
        return (own, body, None) if sign > 0 else (None, body, own)

    model.add_component(name, pyo.Constraint(list(beyond), rule=rule, doc=doc))


def add_covering_values(
    model: pyo.ConcreteModel, name: str, coverings: Coverings, doc: str
) -> None:
    """Add that the set of a record holds another's value where the binary is 1."""
    codes = model.context.problem.microdata.codes
    rows: dict[tuple[int, ...], Any] = {
        (*index, a): no_less(model.included[i, a, int(codes[other, a])], binary)
        for index, (i, other, binary) in coverings.items()
        for a in model.context.sets
        if codes[i, a] != codes[other, a]
    }
    constraint = pyo.Constraint(list(rows), rule=lambda _, *index: rows[index], doc=doc)
    model.add_component(name, constraint)


def set_cells(model: pyo.ConcreteModel, cells: Description, starred: np.ndarray) -> None:
    """Give the variables of cells the values of what is published.

    Those of records that are `starred`, (n,), which are suppressed, stay at their own values.
    """
    context = model.context
    codes = context.problem.microdata.codes
    for end, ends in (("lower", cells.lower), ("upper", cells.upper)):
        scaled = np.where(starred[:, None], context.observed, context.scaling.scaled(ends))
        variables = getattr(model, f"scaled_{end}")
        for i, a in variables:
            variables[i, a].set_value(float(scaled[i, a]))
    if model.component("range_choice") is not None:
        for i, a, p, q in model.range_choice:
            covered = codes[i, [a]] if starred[i] else cells.members.of(i, a)
            chosen = p == covered[0] and q == covered[-1]
            model.range_choice[i, a, p, q].set_value(int(chosen))
    held = {
        (i, a): {int(codes[i, a])} if starred[i] else {int(c) for c in cells.members.of(i, a)}
        for i in model.rows
        for a in context.sets
    }
    for i, a, h in model.included:
        model.included[i, a, h].set_value(float(h in held[i, a]))
    if model.component("set_size") is not None:
        for i, a, c in model.set_size:
            model.set_size[i, a, c].set_value(int(c == len(held[i, a])))
    for i, a, node in model.reaches:
        # Nodes are numbered from the leaves on, so they rise on the way to the root.
        published = -1 if starred[i] else int(cells.nodes[i, a])
        model.reaches[i, a, node].set_value(float(node <= published))
