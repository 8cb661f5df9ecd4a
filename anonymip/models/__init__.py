"""Declarative Pyomo formulations: built here, solved elsewhere."""

from anonymip.models.formulations import (
    FORMULATIONS,
    Formulation,
    build,
    choices_of,
    formulations_of,
    model_size,
    read,
    relax,
    set_start,
)

__all__ = [
    "FORMULATIONS",
    "Formulation",
    "build",
    "choices_of",
    "formulations_of",
    "model_size",
    "read",
    "relax",
    "set_start",
]
