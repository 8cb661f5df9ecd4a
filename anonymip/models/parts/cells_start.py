"""Published cells as values of a model's variables: what the warm starts of all models share."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from anonymip.assignments import Description


def set_cells(model: pyo.ConcreteModel, cells: Description, starred: np.ndarray) -> None:
    """Give the variables of cells the values of what is published.

    Parameters
    ----------
    model
        With these variables.
    cells
        What is published.
    starred
        (n,) whether a record is suppressed: its variables then stay at its own values.
    """
    _set_ends(model, cells, starred)
    _set_values(model, cells, starred)
    _set_nodes(model, cells, starred)


def _set_ends(model: pyo.ConcreteModel, cells: Description, starred: np.ndarray) -> None:
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


def _set_values(model: pyo.ConcreteModel, cells: Description, starred: np.ndarray) -> None:
    codes = model.context.problem.microdata.codes
    held = {
        (i, a): {int(codes[i, a])} if starred[i] else {int(c) for c in cells.members.of(i, a)}
        for i in model.rows
        for a in model.context.sets
    }
    for i, a, h in model.included:
        model.included[i, a, h].set_value(float(h in held[i, a]))
    if model.component("set_size") is not None:
        for i, a, c in model.set_size:
            model.set_size[i, a, c].set_value(int(c == len(held[i, a])))


def _set_nodes(model: pyo.ConcreteModel, cells: Description, starred: np.ndarray) -> None:
    for i, a, node in model.reaches:
        # Nodes are numbered from the leaves on, so they rise on the way to the root.
        published = -1 if starred[i] else int(cells.nodes[i, a])
        model.reaches[i, a, node].set_value(float(node <= published))
