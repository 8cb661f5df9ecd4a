"""Whether a loss gives the same answer when it is asked again, and when its trace is asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.objectives.language.expression import Expression
from anonymip.objectives.language.record import CellBatch

#: Element-wise functions may differ in their last digits with the place in a batch.
_LAST_DIGITS = 1e-12


def refuse_other_answer(name: str, losses: NDArray[np.float64], again: NDArray[np.float64]) -> None:
    """Refuse losses that differ from those of the same records asked again.

    Raises
    ------
    UnsupportedObjective
        If they differ by more than their last digits.
    """
    largest = float(np.abs(losses).max(initial=0.0))
    if not np.allclose(losses, again, rtol=0.0, atol=_LAST_DIGITS * largest):
        raise UnsupportedObjective(
            f"objective {name!r} gives another loss when it is asked again",
            remedy="Keep it free of state and of chance",
        )


def expression_losses(
    expression: Expression, domains: Domains, cells: CellBatch
) -> NDArray[np.float64]:
    """Return the (B,) losses of unsuppressed records that a traced loss gives."""
    values = {}
    for a, tree in enumerate(domains.trees):
        values[a, "lower"] = cells.lowers[:, a] - domains.origin[a]
        values[a, "upper"] = cells.uppers[:, a] - domains.origin[a]
        values[a, "count"] = cells.count(a)
        if tree is not None:
            values[a, "level"], values[a, "leaves"] = cells.level(a, tree), cells.leaves(a, tree)
    return np.broadcast_to(expression.evaluate(values), len(cells.lowers)).astype(np.float64)
