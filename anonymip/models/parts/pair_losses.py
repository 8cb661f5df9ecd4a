"""What a record loses that is published with one other, the coefficients of stronger rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.objectives.language.class_cells import cells_of_sets
from anonymip.problem import Problem
from anonymip.tolerances import LOSS_RELATIVE


def pair_losses(problem: Problem) -> NDArray[np.float64]:
    """Return (n, n) losses of a record published with another, lowered by their rounding."""
    n = problem.n
    first, second = np.triu_indices(n, 1)
    cells = cells_of_sets(problem.microdata, np.stack([first, second], axis=1))
    found = problem.compiled.record_losses(cells)
    found = found - LOSS_RELATIVE * np.abs(found).max(initial=0.0)
    losses = np.full((n, n), np.inf)
    losses[first, second] = losses[second, first] = found
    return losses


def with_rows(nearest: NDArray[np.float64], unit: float) -> list[int]:
    """Return the records for which a row on their nearest neighbours says something.

    Parameters
    ----------
    nearest
        (n,) least losses of the records; infinite without enough neighbours.
    unit
        Of the rows. Where rounding is as large as that a row says nothing, and its numbers, of a
        huge constant, are more than solvers take.
    """
    return np.flatnonzero(LOSS_RELATIVE * np.abs(nearest) < unit).tolist()
