r"""Rows that no release breaks: what a published record loses with its neighbours.

With the loss :math:`c_{il}` of publishing records i and l together, and :math:`p_i` the
:math:`(s_i - 1)`-th smallest of them where record i covers :math:`s_i` originals at least:

- ``neighbours``: :math:`loss_i \ge p_i`, since one of the :math:`s_i - 1` others is no nearer than
  that, and the loss is monotone (the argument of the nearest-neighbour bound);
- ``farther_neighbour``: :math:`loss_i \ge p_i + (c_{il} - p_i)^+ x_{li}`.

The numbers are lowered by the rounding of losses, so that no release is cut off. ``charged[i]``
holds the loss of record i.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from anonymip.models.freeform.cover_context import CoverContext
from anonymip.models.parts.equivalence_context import linear
from anonymip.models.parts.equivalence_loss import scaled_loss
from anonymip.models.parts.pair_losses import pair_losses, with_rows


def neighbours_size(context: CoverContext) -> int:
    """Return about how many constraints these are."""
    return context.problem.n * (context.problem.n + 1)


def add_neighbour_losses(model: pyo.ConcreteModel) -> None:
    """Add that no record loses less than with its nearest neighbours."""
    context: CoverContext = model.context
    problem, unit = context.problem, model.loss_unit
    losses = pair_losses(problem)
    losses[context.conflicts] = np.inf
    # Whoever may cover the own record alone gets no row; the index is then of no meaning.
    least = np.maximum(context.least_sizes - 2, 0)
    nearest = np.sort(losses, axis=1)[np.arange(problem.n), least]
    # Without enough records to cover the model is infeasible, and the loss has no bound.
    bound = [i for i in with_rows(nearest, unit) if context.least_sizes[i] > 1]
    model.charged = pyo.Var(bound, doc="loss of a record [loss_unit]")
    model.charge = pyo.Constraint(
        bound,
        rule=lambda model, i: (0.0, scaled_loss(model, i, model.charged[i]), 0.0),
        doc="what a record is charged is its loss",
    )
    model.neighbours = pyo.Constraint(
        bound,
        rule=lambda model, i: (float(nearest[i]) / unit, model.charged[i], None),
        doc="a record loses what its nearest neighbours cost",
    )
    farther = [
        (original, i)
        for i in bound
        for original in range(problem.n)
        if np.isfinite(losses[i, original]) and losses[i, original] > nearest[i]
    ]

    def rule(model: Any, original: int, i: int) -> Any:
        step = float(losses[i, original] - nearest[i]) / unit
        pair = [model.charged[i], model.match[original, i]]
        return (float(nearest[i]) / unit, linear(0.0, [1.0, -step], pair), None)

    model.farther_neighbour = pyo.Constraint(
        farther, rule=rule, doc="a record loses what a match costs that lies farther away"
    )
