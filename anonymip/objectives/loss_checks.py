"""Checks of a loss on a table: the same answer when it is asked again, weights that it reads."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import Assignment, Description
from anonymip.errors import UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.compiled import (
    CompiledObjective,
    expression_losses,
    refuse_other_answer,
)
from anonymip.objectives.language.protocol import MembersObjective, Objective
from anonymip.objectives.language.record import Feature, Record, cells_of
from anonymip.objectives.language.tables import effects_of_cells, size_of_exact
from anonymip.objectives.language.tracing import sampled_cells
from anonymip.objectives.losses.squared_error import SSE
from anonymip.runtime.arrays import Floats
from anonymip.tolerances import LOSS_ABSOLUTE, LOSS_RELATIVE

_ROUNDINGS = 64  # roundings of an end of a domain that a traced loss may suffer


def refuse_changing_loss(
    compiled: CompiledObjective, description: Description, assignment: Assignment, losses: Floats
) -> None:
    """Refuse an objective that answers otherwise the second time, or than what was traced of it.

    A search works on what was traced once; the loss of its release is what the function says. If
    the function counts its calls, draws numbers or reads a clock, the two have nothing to do with
    each other, and a proof about the one says nothing of the other. Losses of this package are not
    asked. `losses`: (n,) what the objective said of the records of the release.
    """
    objective = getattr(compiled.objective, "inner", compiled.objective)
    if type(objective).__module__.startswith("anonymip.") and not hasattr(objective, "function"):
        return
    if compiled.tier == "members":
        refuse_other_answer(compiled.name, losses, compiled.losses_of(description, assignment))
        return
    cells = cells_of(description)
    refuse_other_answer(
        compiled.name, losses, compiled.record_losses(cells.taken(slice(None, None, -1)))[::-1]
    )
    if compiled.expression is None:
        return
    visible = np.flatnonzero(~description.suppressed.any(axis=1))
    traced = expression_losses(compiled.expression, compiled.domains, cells.taken(visible))
    if np.abs(traced - losses[visible]).max(initial=0.0) > _tolerance(compiled, losses):
        raise UnsupportedObjective(
            f"objective {compiled.name!r} gives another loss of a release than it was traced with",
            remedy="Keep it free of state and of chance",
        )


def _tolerance(compiled: CompiledObjective, losses: Floats) -> float:
    """Return how far rounding may put traced losses off."""
    if not compiled.has_tables:
        return 1e3 * (LOSS_ABSOLUTE + LOSS_RELATIVE * float(np.abs(losses).max(initial=0.0)))
    tables, microdata, domains = compiled.tables, compiled.microdata, compiled.domains
    size = size_of_exact(tables, microdata) + float(effects_of_cells(tables, microdata).sum())
    ends = 0.0
    for r, column in enumerate(tables.range_columns):
        slope = max(abs(float(tables.range_low[r])), abs(float(tables.range_high[r])))
        ends += slope * max(abs(float(domains.low[column])), abs(float(domains.high[column])))
    largest = size + float(np.abs(losses).max(initial=0.0))
    return LOSS_RELATIVE * largest + _ROUNDINGS * float(np.finfo(float).eps) * ends


def unread_weights(objective: Objective | MembersObjective, microdata: Microdata) -> str | None:
    """Return the caution that declared weights have no effect; None if they have, or are equal.

    What a user's function of the members of classes reads is not known.
    """
    weights = {attribute.name: attribute.weight for attribute in microdata.attributes}
    if len(set(weights.values())) < 2:
        return None
    if isinstance(objective, MembersObjective):
        if not isinstance(objective, SSE):
            return None
    else:
        domains = Domains.of(microdata)
        record = Record(domains, sampled_cells(microdata))
        read: list[str] = []

        def noted(name: str) -> float:
            read.append(name)
            return weights[name]

        record.weight = Feature(record.attributes, noted)
        objective.loss(record)
        if read:
            return None
    return (
        f"the attributes have different weights, which objective {objective.name!r} does not read: "
        "use weighted-loss, or hierarchy-loss for levels of hierarchies"
    )
