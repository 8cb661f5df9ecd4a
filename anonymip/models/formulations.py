"""All formulations by name, behind three functions: build, set_start, read."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from anonymip.assignments import Assignment
from anonymip.errors import InputError
from anonymip.problem import Problem

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


@dataclass(frozen=True)
class Formulation:
    """Where the functions of a formulation are found, as ``module:function``.

    Parameters
    ----------
    name
        Name of the formulation.
    recoding
        Name of the recoding it models.
    size, build, set_start, read
        Its functions; the first refuses what the formulation does not model.
    """

    name: str
    recoding: str
    size: str
    build: str
    set_start: str
    read: str


#: All formulations.
FORMULATIONS = MappingProxyType(
    {
        "bigm": Formulation(
            "bigm",
            "classes",
            "anonymip.models.equivalence:bigm_size",
            "anonymip.models.equivalence:build_bigm",
            "anonymip.models.equivalence:set_start_bigm",
            "anonymip.models.equivalence:read_bigm",
        )
    }
)


def _function(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _find(formulation: str) -> Formulation:
    if formulation not in FORMULATIONS:
        raise InputError(
            f"unknown formulation {formulation!r}", remedy=f"Use {', '.join(FORMULATIONS)}"
        )
    return FORMULATIONS[formulation]


def model_size(problem: Problem, formulation: str = "bigm") -> int:
    """Return about how many constraints the model would have, without building it.

    Raises
    ------
    InputError
        If there is no such formulation, or it does not fit recoding, objective or size.
    """
    size: int = _function(_find(formulation).size)(problem)
    return size


def build(problem: Problem, formulation: str = "bigm", **choices: Any) -> ConcreteModel:
    """Return a Pyomo model of the problem; it is not solved.

    Parameters
    ----------
    problem
        What to model.
    formulation
        ``"bigm"``: Liang & Samavi's MILP, eqs. (21)-(32).
    **choices
        Of the formulation, such as ``integer_ends``.

    Raises
    ------
    InputError
        If there is no such formulation, or it does not fit recoding, objective or size.
    """
    model = _function(_find(formulation).build)(problem, **choices)
    model.formulation = formulation
    return model


def set_start(model: ConcreteModel, assignment: Assignment) -> None:
    """Give the variables of a built model the values of an assignment: a warm start.

    Raises
    ------
    InvalidAssignment
        If the assignment breaks a rule of the recoding.
    """
    _function(FORMULATIONS[model.formulation].set_start)(model, assignment)


def read(model: ConcreteModel) -> Assignment:
    """Return the assignment that the values of a built model's variables mean.

    Raises
    ------
    InputError
        If variables have no values.
    """
    assignment: Assignment = _function(FORMULATIONS[model.formulation].read)(model)
    return assignment
