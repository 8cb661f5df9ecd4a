"""Classes as values of an equivalence model's variables, and back."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.errors import InputError
from anonymip.models.parts.cells_start import set_cells
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
