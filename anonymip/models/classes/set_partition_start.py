"""Classes as values of the set-partition model, and back: a warm start, and what a solve means."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from anonymip.assignments import SUPPRESSED, Classes
from anonymip.enumeration import ClusterSets
from anonymip.errors import InputError, InvalidAssignment
from anonymip.models.classes.set_partition import SetContext
from anonymip.problem import Problem


def set_start_set_partition(model: pyo.ConcreteModel, assignment: Classes) -> None:
    """Give every variable the value that the classes imply: a warm start.

    Classes larger than the sets of the model, which are never needed, are cut.

    Raises
    ------
    InvalidAssignment
        If the classes break a rule of the recoding.
    InputError
        If a class is no set of the model, since the loss of these classes is above the upper
        bound that the model was built with.
    """
    context: SetContext = model.context
    problem, sets = context.problem, context.sets
    problem.recoding.check(problem, assignment)
    number = {_key(sets, c): c for c in range(len(sets))}
    chosen = np.zeros(len(sets), np.int64)
    for group in _cut_to_size(problem, assignment):
        c = number.get(tuple(np.sort(sets.rows.type_of[group]).tolist()))
        if c is None:
            raise InputError(
                "a class of the start is no set of the model",
                remedy="Build the model with an upper_bound of at least the loss of the start",
            )
        chosen[c] += 1
    for c, variable in model.chosen.items():
        variable.set_value(int(chosen[c]))
    starred = assignment.labels == SUPPRESSED
    if context.suppression:
        counts = np.bincount(sets.rows.type_of[starred], minlength=sets.rows.types)
        for first, count in zip(sets.rows.first.tolist(), counts.tolist(), strict=True):
            model.suppress[first].set_value(int(count))
    if not context.summed:
        for c, variable in model.used.items():
            variable.set_value(int(chosen[c] > 0))
        losses = sets.losses[chosen > 0].tolist()
        if context.suppression:
            model.stars.set_value(int(starred.any()))
            losses += [context.price] * int(starred.any())
        model.worst.set_value(max(losses))


def _key(sets: ClusterSets, c: int) -> tuple[int, ...]:
    part = slice(sets.offsets[c], sets.offsets[c + 1])
    return tuple(np.repeat(sets.types[part], sets.counts[part]).tolist())


def _cut_to_size(problem: Problem, assignment: Classes) -> list[NDArray[np.int64]]:
    """Return the groups, those above the largest size needed cut into parts of k or more."""
    largest = problem.recoding.max_size(problem).size
    groups = []
    for group in assignment.groups():
        parts = 1 if largest is None or len(group) <= largest else len(group) // problem.k
        groups += np.array_split(group, parts)
    return groups


def read_set_partition(model: pyo.ConcreteModel) -> Classes:
    """Return the classes of a solved model; rows of one type are dealt out in their order.

    Raises
    ------
    InputError
        If the model has no solution.
    InvalidAssignment
        If the sets that it chose hold a row too often.
    """
    context: SetContext = model.context
    sets, rows = context.sets, context.sets.rows
    values = [variable.value for variable in model.chosen.values()]
    if any(value is None for value in values) or (context.suppression and _unread(model)):
        raise InputError(
            "the model has no values to read", remedy="Solve it, and load the solution"
        )
    often = np.rint(np.array(values, np.float64)).astype(np.int64)
    dealt = np.zeros(rows.types, np.int64)
    labels = np.full(context.problem.n, SUPPRESSED, np.int64)
    for label, c in enumerate(np.repeat(np.arange(len(often)), np.maximum(often, 0))):
        for at in range(sets.offsets[c], sets.offsets[c + 1]):
            t, count = sets.types[at], sets.counts[at]
            if dealt[t] + count > rows.counts[t]:
                raise InvalidAssignment(int(rows.first[t]), "lies in several chosen sets")
            begin = rows.starts[t] + dealt[t]
            labels[rows.records[begin : begin + count]] = label
            dealt[t] += count
    return Classes(labels)  # type: ignore[arg-type]


def _unread(model: pyo.ConcreteModel) -> bool:
    return any(variable.value is None for variable in model.suppress.values())
