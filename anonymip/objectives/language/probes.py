"""A few calls that show whether an objective means the same for one record and for a batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.calls import (
    as_expression,
    call_class_loss,
    call_record_loss,
    trace,
)
from anonymip.objectives.language.expression import Expression
from anonymip.objectives.language.repeated import expression_losses, refuse_other_answer
from anonymip.objectives.language.sampling import sampled_cells
from anonymip.objectives.language.signatures import ClassLoss, RecordLoss
from anonymip.objectives.language.tables import NotSeparable
from anonymip.tolerances import LOSS_ABSOLUTE, LOSS_RELATIVE


def probe_traced(
    objective: RecordLoss, expression: Expression, domains: Domains, microdata: Microdata
) -> None:
    """Compare the traced loss with the function on a few possible records.

    Catches functions that mean something else for a batch, such as one that sums over it, and those
    that answer otherwise when they are asked again, in another order.
    """
    cells = sampled_cells(domains, microdata)
    called = call_record_loss(objective, domains, cells)
    traced = expression_losses(expression, domains, cells)
    _refuse_difference(objective.name, called, traced)
    backwards = call_record_loss(objective, domains, cells.taken(slice(None, None, -1)))
    refuse_other_answer(objective.name, called, backwards[::-1])
    again = as_expression(objective, trace(objective, domains))
    refuse_other_answer(objective.name, traced, expression_losses(again, domains, cells))


def probe_general(
    objective: RecordLoss, domains: Domains, microdata: Microdata, refusal: UnsupportedObjective
) -> None:
    """Compare a batch with its records one by one; what cannot be called is refused as before."""
    cells = sampled_cells(domains, microdata)
    try:
        called = call_record_loss(objective, domains, cells)
        single = [call_record_loss(objective, domains, cells.only(at)) for at in range(len(called))]
        _refuse_difference(objective.name, called, np.concatenate(single))
    except UnsupportedObjective as failure:
        # A function that gives numbers has to be mended if they are infinite or change.
        changes = isinstance(refusal, NotSeparable) and "different losses" in str(failure)
        own_fault = changes or "infinite" in str(failure)
        raise (failure if own_fault else refusal) from None


def probe_members(objective: ClassLoss, microdata: Microdata) -> None:
    """Compare classes with each of them alone, and with their members in another order."""
    rng = np.random.default_rng(0)
    size = min(3, microdata.n)
    rows = np.array([rng.permutation(microdata.n)[:size] for _ in range(4)], np.int64)
    called = call_class_loss(objective, microdata, rows)
    single = np.concatenate([call_class_loss(objective, microdata, row[None, :]) for row in rows])
    _refuse_difference(objective.name, called, single)
    _refuse_difference(objective.name, called, call_class_loss(objective, microdata, rows[:, ::-1]))


def _refuse_difference(name: str, called: NDArray[np.float64], again: NDArray[np.float64]) -> None:
    scale = 1e3 * (LOSS_ABSOLUTE + LOSS_RELATIVE * np.abs(called).max())
    if not np.allclose(called, again, rtol=0.0, atol=scale):
        raise UnsupportedObjective(
            f"objective {name!r} gives different losses for one record and for a batch, or for "
            "another order of the members",
            remedy="Keep it free of state, chance and functions that look at the whole batch",
        )
