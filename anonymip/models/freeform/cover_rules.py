"""Rules for the sets of published records: diversity and limits.

====================  ========================================================================
``diverse``           l times the matches with value v <= number of matches, for each published
                      record, sensitive column and value
``holds_value``       a set holds a sensitive value only if a match has it
``distinct_values``   a set holds at least so many sensitive values
``kept_apart``        two originals that a limit keeps apart are not matches of one record
``range_cap``,        published ranges and sets are within the caps
``set_cap``
====================  ========================================================================

Matches that a limit keeps apart from the published record itself have upper bound 0. Caps on ranges
and nodes, and values apart, are decided by pairs; ``range_cap`` and the bounds of ``reaches`` only
tighten the relaxation. If no release keeps the limits, the model is infeasible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from anonymip.models.freeform.cover_context import CoverContext
from anonymip.models.parts.class_rules import add_caps
from anonymip.models.parts.equivalence_context import linear


def cover_rules_size(context: CoverContext) -> int:
    """Return about how many constraints the rules need."""
    problem = context.problem
    rows = problem.n * len(problem.limits) + int(_triples(context).sum())
    if problem.diversity is not None:
        codes = problem.microdata.sensitive_codes
        rows += 2 * problem.n * int((codes.max(axis=0) + 1).sum())
    return rows


def add_cover_rules(model: pyo.ConcreteModel) -> None:
    """Add diversity and limits to a model that has its matches and cells."""
    if model.context.problem.diversity is not None:
        _add_shares_of_values(model)
        _add_distinct_values(model)
    _add_pairs_apart(model)
    add_caps(model)


def _triples(context: CoverContext) -> NDArray[np.int64]:
    """Return (n,) how many pairs kept apart could both be matches of a published record."""
    apart = context.conflicts.astype(np.int64)
    free = 1 - apart
    pairs: NDArray[np.int64] = ((free @ apart) * free).sum(axis=1) // 2
    return pairs


def _add_pairs_apart(model: pyo.ConcreteModel) -> None:
    apart = model.context.conflicts
    pairs = np.argwhere(np.triu(apart, 1)).tolist()
    model.kept_apart = pyo.Constraint(
        [
            (one, other, i)
            for one, other in pairs
            for i in range(len(apart))
            if not apart[one, i] and not apart[other, i]
        ],
        rule=lambda model, one, other, i: (
            None,
            linear(0.0, [1.0, 1.0], [model.match[one, i], model.match[other, i]]),
            1.0,
        ),
        doc="originals that a limit keeps apart are not covered together",
    )


def _sensitive_values(codes: NDArray[np.integer]) -> list[tuple[int, int]]:
    return [
        (column, value)
        for column in range(codes.shape[1])
        for value in np.unique(codes[:, column]).tolist()
    ]


def _add_shares_of_values(model: pyo.ConcreteModel) -> None:
    problem = model.context.problem
    numerator, denominator = problem.diversity.ratio
    if numerator <= denominator:
        return
    codes = problem.microdata.sensitive_codes

    def rule(model: Any, i: int, column: int, value: int) -> Any:
        shares = denominator - numerator * (codes[:, column] == value)
        matches = [model.match[original, i] for original in model.rows]
        return (0.0, linear(0.0, shares.astype(float).tolist(), matches), None)

    model.diverse = pyo.Constraint(
        model.rows,
        pyo.Set(initialize=_sensitive_values(codes), dimen=2),
        rule=rule,
        doc="no sensitive value makes up more than 1/l of a set [records]",
    )


def _add_distinct_values(model: pyo.ConcreteModel) -> None:
    problem = model.context.problem
    distinct = problem.diversity.distinct
    if distinct <= 1:
        return
    codes = problem.microdata.sensitive_codes
    values = _sensitive_values(codes)
    model.holds = pyo.Var(
        model.rows,
        pyo.Set(initialize=values, dimen=2),
        bounds=(0.0, 1.0),
        doc="whether the set of a published record holds the value",
    )

    def holds_value(model: Any, i: int, column: int, value: int) -> Any:
        members = [
            model.match[original, i]
            for original in np.flatnonzero(codes[:, column] == value).tolist()
        ]
        held = model.holds[i, column, value]
        return (0.0, linear(0.0, [1.0] * len(members) + [-1.0], [*members, held]), None)

    model.holds_value = pyo.Constraint(
        model.rows,
        pyo.Set(initialize=values, dimen=2),
        rule=holds_value,
        doc="a set holds the values of its members",
    )

    def distinct_values(model: Any, i: int, column: int) -> Any:
        held = [model.holds[i, c, value] for c, value in values if c == column]
        return (float(distinct), linear(0.0, [1.0] * len(held), held), None)

    model.distinct_values = pyo.Constraint(
        model.rows,
        range(codes.shape[1]),
        rule=distinct_values,
        doc="a set holds at least so many sensitive values",
    )
