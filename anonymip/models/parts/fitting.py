"""Which objectives a model of published cells takes."""

from __future__ import annotations

from anonymip.errors import UnsupportedObjective
from anonymip.problem import Problem


def refuse_unfit_objective(problem: Problem, model: str, remedy: str) -> None:
    """Refuse losses that are no sum of monotone terms of one attribute each.

    Parameters
    ----------
    problem
        What is to be modelled.
    model
        Name of the model, for the message.
    remedy
        What accepts the objective instead.

    Raises
    ------
    UnsupportedObjective
        If the objective has no tables, or is not proven monotone: the model could then publish
        more than a record needs to cover.
    """
    compiled = problem.compiled
    if not compiled.has_tables:
        raise UnsupportedObjective(
            f"the {model} model needs an objective that is a sum of terms of one attribute each; "
            f"{problem.objective.name!r} is of the {compiled.tier} tier",
            remedy=remedy,
        )
    if not compiled.monotone:
        raise UnsupportedObjective(
            f"the {model} model needs a monotone objective, and {problem.objective.name!r} is "
            f"none: {compiled.obstacle}",
            remedy=remedy,
        )
