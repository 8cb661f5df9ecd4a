"""Covers as values of a freeform model's variables, and back."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from anonymip.assignments import Cover
from anonymip.errors import InputError
from anonymip.graphs import perfect_matching, regular_subgraph
from anonymip.models.freeform.cover_context import CoverContext
from anonymip.models.freeform.effective_flow import set_start_effective
from anonymip.models.parts.cells_start import set_cells
from anonymip.problem import Problem


def set_start_freeform(model: pyo.ConcreteModel, assignment: Cover) -> None:
    """Give every variable the value that a cover implies: a warm start.

    Sets larger than the model's are made smaller, which loses nothing.

    Raises
    ------
    InvalidAssignment
        If the cover breaks a rule of the problem.
    """
    context: CoverContext = model.context
    problem: Problem = context.problem
    problem.recoding.check(problem, assignment)
    cover = assignment
    if context.is_regular and not context.is_open and cover.sizes[0] > context.least_sizes[0]:
        cover = of_degree(cover, problem.k)
    held = np.zeros((cover.n, cover.n), np.bool_)
    held[cover.members, cover.owners] = True
    for l, i in model.match:  # noqa: E741
        model.match[l, i].set_value(int(held[l, i]))
    if model.component("degree") is not None:
        model.degree.set_value(int(cover.sizes[0]))
    cells = problem.recoding.describe(problem, cover)
    set_cells(model, cells, np.zeros(cover.n, np.bool_))
    if model.component("covered") is not None:
        for i, a, t in model.covered:
            covered = cells.members.of(i, a)
            model.covered[i, a, t].set_value(float(covered[0] <= t < covered[-1]))
    if model.component("holds") is not None:
        codes = problem.microdata.sensitive_codes
        for i, column, value in model.holds:
            among = codes[cover.of_record(i), column] == value
            model.holds[i, column, value].set_value(float(among.any()))
    if model.component("flow") is not None:
        set_start_effective(model, cover)
    if model.component("charged") is not None:
        for i, charged in model.charged.items():
            charged.set_value(pyo.value(model.record_loss[i]) / model.loss_unit)
    if model.component("worst") is not None:
        worst = max(pyo.value(model.record_loss[i]) for i in model.rows)
        model.worst.set_value(worst / model.loss_unit)


def read_freeform(model: pyo.ConcreteModel) -> Cover:
    """Return the cover of a solved model.

    Where own records are free, each set is handed to a record in it, by a perfect matching.

    Raises
    ------
    InputError
        If the model has no solution.
    """
    context: CoverContext = model.context
    if any(variable.value is None for variable in model.match.values()):
        raise InputError(
            "the model has no values to read", remedy="Solve it, and load the solution"
        )
    sets = [[l for l in model.rows if model.match[l, i].value > 0.5] for i in model.rows]  # noqa: E741
    if context.own_record == "free" and any(i not in one for i, one in enumerate(sets)):
        return handed_over(Cover.of(sets))
    return Cover.of(sets)


def handed_over(cover: Cover) -> Cover:
    """Return the cover whose sets belong to records in them; as it is if that cannot be."""
    owner = perfect_matching(cover)
    if owner is None:
        return cover
    return Cover.of([cover.of_record(int(at)) for at in np.argsort(owner)])


def of_degree(cover: Cover, degree: int) -> Cover:
    """Return a regular cover within a regular one of larger sets."""
    loops = cover.members == cover.owners
    # Without its loops the graph is still regular, so it has regular subgraphs of all degrees.
    others = np.flatnonzero(~loops)
    start = cover.start - np.arange(cover.n + 1)
    chosen = regular_subgraph(Cover(start, cover.members[others]), degree - 1)
    assert isinstance(chosen, np.ndarray)
    kept = np.sort(np.concatenate([np.flatnonzero(loops), others[chosen]]))
    return Cover.of(cover.members[kept].reshape(cover.n, degree))
