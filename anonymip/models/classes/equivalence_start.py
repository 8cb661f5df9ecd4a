"""Classes as values of an equivalence model's variables, and back."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import SUPPRESSED, Classes, Description
from anonymip.errors import InputError
from anonymip.problem import Problem


def set_start_equivalence(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply: a warm start.

    Raises
    ------
    InvalidAssignment
        If the classes break a rule of the problem.
    """
    problem: Problem = model.context.problem
    problem.recoding.check(problem, assignment)
    labels = assignment.labels
    starred = labels == SUPPRESSED
    for i, other in model.pairs:
        together = labels[i] == labels[other] and not starred[i]
        model.equivalent[i, other].set_value(int(together))
    if model.context.suppression:
        for i in model.rows:
            model.suppress[i].set_value(int(starred[i]))
    set_cells(model, problem.recoding.describe(problem, assignment), starred)
    if model.component("holds") is not None:
        codes = problem.microdata.sensitive_codes
        for i, column, value in model.holds:
            members = (labels == labels[i]) & (codes[:, column] == value)
            model.holds[i, column, value].set_value(float(not starred[i] and members.any()))
    if model.component("worst") is not None:
        worst = max(pyo.value(model.record_loss[i]) for i in model.rows)
        model.worst.set_value(worst / model.loss_unit)


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


def read_equivalence(model: pyo.ConcreteModel) -> Classes:
    """Return the classes of a solved model.

    Rows that are equivalent through others ("indirectly equivalent", Def. 6) share all cells, so
    a class is a connected component.

    Raises
    ------
    InputError
        If the model has no solution.
    """
    problem: Problem = model.context.problem
    if any(variable.value is None for variable in model.equivalent.values()):
        raise InputError(
            "the model has no values to read", remedy="Solve it, and load the solution"
        )
    edges = np.array(
        [pair for pair in model.pairs if model.equivalent[pair].value > 0.5], np.int64
    ).reshape(-1, 2)
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (problem.n, problem.n))
    _, labels = connected_components(graph, directed=False)
    labels = labels.astype(np.int64)
    if model.context.suppression:
        for i in model.rows:
            if model.suppress[i].value > 0.5:
                labels[i] = SUPPRESSED
    return Classes(labels)
