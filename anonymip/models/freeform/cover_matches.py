"""Matches of originals and published records, and how many of them each has: eq. (10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from anonymip.models.freeform.cover_context import CoverContext
from anonymip.models.freeform.effective_flow import add_effective_matches
from anonymip.models.parts.equivalence_context import linear
from anonymip.recodings import KK, KConcealment, KOne, OneK


def add_matches(model: pyo.ConcreteModel) -> None:
    """Add the matches, and the recoding's rule for their numbers."""
    context: CoverContext = model.context
    own = context.own_record == "fixed"
    apart = context.conflicts
    model.match = pyo.Var(
        model.rows,
        model.rows,
        domain=pyo.Binary,
        bounds=lambda _, l, i: (float(own and l == i), float(not apart[l, i])),  # noqa: E741
        doc="whether an original is among the matches of a published record",
    )
    if context.is_regular:
        _add_regularity(model)
    else:
        _add_least_numbers(model)
    if context.is_reciprocal:
        model.reciprocal = pyo.Constraint(
            [(l, i) for l in range(context.problem.n) for i in range(l)],  # noqa: E741
            rule=lambda model, l, i: (  # noqa: E741
                0.0,
                linear(0.0, [1.0, -1.0], [model.match[l, i], model.match[i, l]]),
                0.0,
            ),
            doc="two records cover each other, or neither does",
        )


def matches_size(context: CoverContext) -> int:
    """Return about how many constraints the matches need."""
    n = context.problem.n
    rows = 2 * n + (context.pairs if context.is_reciprocal else 0)
    return rows + (6 * context.pairs if isinstance(context.problem.recoding, KConcealment) else 0)


def _of_original(model: Any, original: int) -> list[Any]:
    return [model.match[original, i] for i in model.rows]


def _of_published(model: Any, published: int) -> list[Any]:
    return [model.match[original, published] for original in model.rows]


def _add_regularity(model: pyo.ConcreteModel) -> None:
    context: CoverContext = model.context
    problem = context.problem
    if context.is_open:
        model.degree = pyo.Var(
            domain=pyo.Integers,
            bounds=(problem.k, problem.n),
            doc="how many originals every published record covers",
        )
    ones = [1.0] * problem.n

    def numbered(matches: Any) -> Any:
        def rule(model: Any, record: int) -> Any:
            if context.is_open:
                return (0.0, linear(0.0, [*ones, -1.0], [*matches(model, record), model.degree]), 0)
            size = float(context.least_sizes[record])
            return (size, linear(0.0, ones, matches(model, record)), size)

        return rule

    model.lies_in = pyo.Constraint(
        model.rows, rule=numbered(_of_original), doc="(10): an original lies in k sets"
    )
    model.covers = pyo.Constraint(
        model.rows, rule=numbered(_of_published), doc="(10): a published record covers k originals"
    )


def _add_least_numbers(model: pyo.ConcreteModel) -> None:
    """Add the relaxed forms of (10): at least k, on one side or both."""
    problem = model.context.problem
    ones = np.ones(problem.n).tolist()

    def at_least(matches: Any) -> Any:
        return lambda model, record: (
            float(problem.k),
            linear(0.0, ones, matches(model, record)),
            None,
        )

    if isinstance(problem.recoding, OneK | KK):
        model.lies_in = pyo.Constraint(
            model.rows, rule=at_least(_of_original), doc="an original lies in k sets at least"
        )
    if isinstance(problem.recoding, KOne | KK):
        model.covers = pyo.Constraint(
            model.rows,
            rule=at_least(_of_published),
            doc="a published record covers k originals at least",
        )
    if isinstance(problem.recoding, KConcealment):
        add_effective_matches(model)
