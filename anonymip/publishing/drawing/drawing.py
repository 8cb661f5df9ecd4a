"""Which original's sensitive and kept values each published record of a cover shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip import graphs
from anonymip.assignments import Cover
from anonymip.problem import Problem
from anonymip.publishing.drawing.diverse_drawing import draw_diverse


def draw_matching(problem: Problem, cover: Cover, rng: np.random.Generator) -> NDArray[np.integer]:
    """Draw the assignment along which a cover is published.

    Parameters
    ----------
    problem
        What was asked; with a diversity only an assignment that keeps it is drawn.
    cover
        Every record lies in its own set.
    rng
        Source of randomness: who can repeat it can undo the release.

    Returns
    -------
    matching
        (n,) the original of each published record.

    Raises
    ------
    NoSolution
        If no assignment that keeps the diversity is found.
    """
    if problem.diversity is not None:
        return draw_diverse(problem, cover, rng)
    return graphs.draw_matching(cover, rng)
