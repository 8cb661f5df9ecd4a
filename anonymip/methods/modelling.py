"""The model that a method would solve, for those who want to solve it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from anonymip.errors import InputError
from anonymip.methods.registry import METHODS, find_method, refuse_unfit
from anonymip.methods.spec import MethodSpec
from anonymip.models import build
from anonymip.models.formulations import choices_of, plain_formulation
from anonymip.problem import Problem

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


def model_of(
    problem: Problem, method: str, options: Mapping[str, object] | None = None
) -> ConcreteModel:
    """Return the Pyomo model that a method would solve.

    Parameters
    ----------
    problem
        What is asked.
    method
        Name of a method that solves a model.
    options
        Those of the method that shape the model: ``formulation`` and its choices. The formulation
        of the recoding's paper is written where none is asked for.

    Raises
    ------
    InputError
        If the method solves no model, or an option has no part in it.

    Examples
    --------
    >>> import anonymip
    >>> from anonymip.methods.modelling import model_of
    >>> problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    >>> model_of(problem, "equivalence-mip", {"integer_ends": "no"}).formulation
    'bigm'
    """
    spec = find_method(method)
    refuse_unfit(spec, problem)
    if not _solves_model(spec):
        modelling = [known.name for known in METHODS.values() if _solves_model(known)]
        raise InputError(f"method {method} solves no model", remedy=f"Use {', '.join(modelling)}")
    given = spec.parse_options(options or {})
    defaults = {option.name: option.default for option in spec.options}
    formulation = str(given.pop("formulation", "auto"))
    if formulation == "auto":
        formulation = plain_formulation(problem.recoding.name)
    known = choices_of(formulation)
    for name in given:
        if name not in known:
            raise InputError(
                f"option {method}.{name} has no part in the model {formulation}",
                remedy="Leave it out",
            )
    choices = {name: value for name, value in defaults.items() if name in known}
    return build(problem, formulation, **{**choices, **given})


def _solves_model(spec: MethodSpec) -> bool:
    return spec.role == "exact" and any(option.name == "formulation" for option in spec.options)
