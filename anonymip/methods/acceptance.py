"""Acceptance: what an objective can be used with, and the model that a method would solve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonymip.bounds.combinatorial import lower_bound_of
from anonymip.errors import InputError, UnsupportedObjective
from anonymip.instances import Microdata
from anonymip.methods.registry import METHODS, find_method, refuse_unfit
from anonymip.methods.spec import MethodSpec
from anonymip.models import build, formulations_of, model_size
from anonymip.models.formulations import choices_of, plain_formulation
from anonymip.objectives import CompiledObjective, MembersObjective, Objective
from anonymip.problem import Problem
from anonymip.recodings.registry import find_recoding

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


@dataclass(frozen=True)
class ObjectiveReport:
    """What an objective is on a table.

    `name`: of the objective. `attributes`: name and kind of the quasi-identifiers of the table.
    `tier`: ``"affine"``, ``"separable"``, ``"general"`` or ``"members"``. `aggregate`: ``"sum"``
    over the records, or ``"max"``. `monotone, superadditive`: ``"proven"``, ``"assumed"``,
    ``"refuted"`` or ``"unknown"``. `monotone_reason, superadditive_reason`: why.
    `suppression_price`: loss of a suppressed record; None where there is none. `methods`: by name
    of each method, why it refuses the objective; None if it accepts it. `formulations`: the same of
    each formulation of ``equivalence-mip``. `bound`: name of the combinatorial bound that holds for
    the objective; None if none does.
    """

    name: str
    attributes: dict[str, str]
    tier: str
    aggregate: str
    monotone: str
    monotone_reason: str
    superadditive: str
    superadditive_reason: str
    suppression_price: float | None
    methods: dict[str, str | None]
    formulations: dict[str, str | None]
    bound: str | None


def examine(objective: Objective | MembersObjective, microdata: Microdata) -> ObjectiveReport:
    """Return what an objective is on a table, and who accepts it.

    Raises UnsupportedObjective if it cannot be used on the table at all, such as one that is
    declared monotone and is not. Raises InputError if the table has fewer than two records.

    >>> import anonymip
    >>> from anonymip.methods.acceptance import examine
    >>> report = examine(anonymip.GCP(), anonymip.load_instance("health-records"))
    >>> report.tier, report.monotone, report.methods["equivalence-mip"]
    ('affine', 'proven', None)
    """
    if microdata.n < 2:
        raise InputError("the table has one record", remedy="Give a table of at least two")
    problem = Problem(microdata, 2, objective=objective)
    compiled = problem.compiled
    price = compiled.suppression_price
    # Its name alone is wanted.
    bound = lower_bound_of(problem, effort="quick")
    monotone, monotone_why = _monotone(compiled)
    superadditive, superadditive_why = _superadditive(compiled)
    return ObjectiveReport(
        objective.name,
        {attribute.name: attribute.kind for attribute in microdata.attributes},
        compiled.tier,
        compiled.aggregate,
        monotone,
        monotone_why,
        superadditive,
        superadditive_why,
        None if math.isnan(price) else price,
        {spec.name: spec.obstacle(_as_solved(problem, spec)) for spec in METHODS.values()},
        {name: _refusal(problem, name) for name in formulations_of("classes", installed=True)},
        None if bound is None else bound.method,
    )


def _as_solved(problem: Problem, spec: MethodSpec) -> Problem:
    """Return the problem with the recoding of a method, unless that refuses the objective."""
    try:
        return problem.replace(recoding=find_recoding(spec.recoding))
    except InputError:
        return problem


def _refusal(problem: Problem, formulation: str) -> str | None:
    """Return why a formulation does not take the objective; None if it does."""
    try:
        model_size(problem, formulation)
    except UnsupportedObjective as refusal:
        return refusal.message
    except InputError:  # the table is too large, which is no fault of the objective
        return None
    return None


def _monotone(compiled: CompiledObjective) -> tuple[str, str]:
    if compiled.monotone and compiled.tier == "affine":
        return "proven", "every coefficient has the sign that makes wider cells cost more"
    if compiled.monotone and compiled.has_tables:
        return "proven", "no term falls between any two cells of which one covers the other"
    if compiled.monotone and not compiled.assumed:
        return "proven", "all its parts go the same way, and its factors are not negative"
    if compiled.monotone:
        return "assumed", "its author declares it; no sample disproves it"
    return ("unknown" if compiled.decreasing is None else "refuted"), str(compiled.obstacle)


def _superadditive(compiled: CompiledObjective) -> tuple[str, str]:
    if compiled.aggregate != "sum":
        why = "the worst record counts once, however large its class"
        if compiled.superadditive:
            why += "; parts of a class are no worse, so 2k - 1 records suffice all the same"
        return "refuted", why
    if compiled.monotone:
        return _monotone(compiled)[0], "a class S of a monotone loss c costs |S| c(S)"
    if not compiled.superadditive:
        return "unknown", "it is neither monotone nor declared superadditive"
    if compiled.assumed:
        return "assumed", "its author declares it; no sample disproves it"
    return "proven", str(getattr(compiled.objective, "proof", None))


def model_of(
    problem: Problem, method: str, options: Mapping[str, object] | None = None
) -> ConcreteModel:
    """Return the Pyomo model that a method would solve.

    `method`: name of a method that solves a model. `options`: those of the method that shape the
    model: ``formulation`` and its choices. The formulation of the recoding's paper is written where
    none is asked for. Raises InputError if the method solves no model, or an option has no part in
    it.

    >>> import anonymip
    >>> from anonymip.methods.acceptance import model_of
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
