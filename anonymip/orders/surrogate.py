"""A loss with tables in place of one without, where only directions are wanted."""

from __future__ import annotations

from anonymip.objectives import GCP
from anonymip.problem import Problem


def with_surrogate_loss(problem: Problem) -> Problem:
    """Return the problem, with GCP as its objective if its own has no tables.

    Raises
    ------
    UnsupportedObjective
        When tables are read, if an attribute has too many nodes or values even for those of GCP.
    """
    if problem.compiled.has_tables:
        return problem
    return Problem(problem.microdata, problem.k, objective=GCP())
