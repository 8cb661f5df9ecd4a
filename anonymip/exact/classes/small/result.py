"""What the exact solver of small sub-problems answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class SmallResult:
    """The best classes found, and what is proven about them.

    Parameters
    ----------
    labels
        (n,) class of each record, numbered in the order in which they first appear; -1 for a
        suppressed record.
    objective
        Loss, recomputed by the objective's own function.
    bound
        Lower bound on the loss of any release; None if nothing is known.
    proven
        Whether the classes are proven best.
    nodes
        Partial sets and partial covers that were looked at.
    reason
        What kept it from a proof: ``"max_nodes"``, ``"max_sets"``, ``"size"`` (too many rows), or
        the value of :class:`~anonymip.status.Stopped`; None if it is proven.
    """

    labels: NDArray[np.int32]
    objective: float
    bound: float | None
    proven: bool
    nodes: int
    reason: str | None
