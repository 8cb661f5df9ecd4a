"""All formulations by name, behind four functions: build, set_start, relax, read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from anonymip.assignments import Assignment
from anonymip.errors import InputError, unknown_name
from anonymip.extensions import Extensions
from anonymip.problem import Problem

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel


@dataclass(frozen=True)
class Formulation:
    """A formulation: what it models, and its functions, as ``module:function`` or themselves."""

    name: str  # name of the formulation
    recoding: str  # name of the recoding it models
    #: Its functions, or where they are found; the first refuses what the formulation does not
    #: model.
    size: str | Callable[..., int]
    build: str | Callable[..., ConcreteModel]
    set_start: str | Callable[..., None]
    read: str | Callable[..., Assignment]
    also: tuple[str, ...] = ()  # names of further recodings that it models
    #: Makes of a problem what its size is asked of, and refuses others; None: the problem itself.
    fitting: str | Callable[..., Any] | None = None

    def models(self, recoding: str) -> bool:
        """Return whether it models the problems of a recoding."""
        return recoding in (self.recoding, *self.also)


def _of_pairs(name: str, set_start: str = "equivalence:set_start_equivalence") -> Formulation:
    """Return a formulation by pairs of records."""
    here = "anonymip.models.classes."
    return Formulation(
        name,
        "classes",
        f"{here}pairs:{name}_size",
        f"{here}pairs:build_{name}",
        f"{here}{set_start}",
        f"{here}equivalence:read_equivalence",
        fitting=f"{here}equivalence:fitting_context",
    )


def _of_module(
    name: str,
    recoding: str,
    module: str,
    size: str = "",
    also: tuple[str, ...] = (),
    kind: str = "",
) -> Formulation:
    """Return a formulation whose functions bear the name of their module."""
    own = module.rpartition(".")[2]
    here, built = f"anonymip.models.{module}", f"{own}_{kind}" if kind else own
    return Formulation(
        name,
        recoding,
        size or f"{here}:{built}_size",
        f"{here}:build_{built}",
        f"{here}:set_start_{own}",
        f"{here}:read_{own}",
        also,
    )


#: All formulations; those of classes from the weakest linear relaxation to the strongest.
FORMULATIONS = MappingProxyType(
    {
        formulation.name: formulation
        for formulation in (
            _of_pairs("indicator"),
            _of_pairs("bigm"),
            _of_pairs("hull", set_start="pairs:set_start_hull"),
            _of_pairs("strengthened", set_start="pairs:set_start_strengthened"),
            _of_module(
                "set-partition",
                "classes",
                "classes.set_partition",
                "anonymip.models.parts.set_columns:set_partition_size",
            ),
            _of_module(
                "freeform",
                "freeform",
                "freeform.freeform",
                also=("one-k", "k-one", "k-k", "k-concealment"),
            ),
            _of_module("set-cover", "freeform", "freeform.set_cover"),
            _of_module("pattern", "pattern", "patterns.pattern"),
            _of_module("pattern-strong", "pattern", "patterns.pattern", kind="strong"),
        )
    }
)


def _function(target: str | Callable[..., Any]) -> Any:
    return resolve_name(target) if isinstance(target, str) else target


def _read(name: str, load: Callable[[], object]) -> Formulation:
    """Return the formulation that an entry point registers."""
    found = load()
    if not isinstance(found, Formulation):
        raise InputError(
            f"it registers an object of type {type(found).__name__}",
            remedy="Register a Formulation of anonymip.models",
        )
    if found.name != name:
        raise InputError(
            f"the formulation calls itself {found.name!r}", remedy="Register it by this name"
        )
    return found


_OUTSIDE = Extensions(
    "anonymip.formulations", "formulation", _read, lambda: frozenset(FORMULATIONS)
)


def _find(formulation: str) -> Formulation:
    found = FORMULATIONS.get(formulation) or _OUTSIDE.find(formulation)
    if found is None:
        raise unknown_name("formulation", formulation, (*FORMULATIONS, *_OUTSIDE.all()))
    return found


def formulations_of(recoding: str, *, installed: bool = False) -> tuple[str, ...]:
    """Return the names of the formulations of a recoding.

    `recoding`: its name. `installed`: whether to import the packages that register some as well.
    """
    known = {**FORMULATIONS, **(_OUTSIDE.all() if installed else {})}
    return tuple(name for name, one in known.items() if one.models(recoding))


def plain_formulation(recoding: str) -> str:
    """Return the formulation of a recoding that its paper gives.

    Raises InputError if no formulation models the recoding.
    """
    known = formulations_of(recoding)
    if not known:
        raise InputError(
            f"no formulation models the recoding {recoding}",
            remedy=f"Use a recoding of {', '.join(FORMULATIONS)}",
        )
    return "bigm" if "bigm" in known else known[0]


def choices_of(formulation: str) -> frozenset[str]:
    """Return the names of a formulation's choices, the keyword arguments that `build` takes.

    Raises InputError if there is no such formulation.
    """
    parameters = inspect.signature(_function(_find(formulation).build)).parameters.values()
    return frozenset(one.name for one in parameters if one.kind is one.KEYWORD_ONLY)


def model_size(problem: Problem, formulation: str | None = None) -> int:
    """Return about how many constraints the model would have, without building it.

    `formulation`: its name; None: the plain one of the problem's recoding. Raises InputError if
    there is no such formulation, or it does not fit recoding, objective or size.
    """
    name = plain_formulation(problem.recoding.name) if formulation is None else formulation
    found = _find(name)
    asked = problem if found.fitting is None else _function(found.fitting)(problem)
    size: int = _function(found.size)(asked)
    return size


def build(problem: Problem, formulation: str | None = None, **choices: Any) -> ConcreteModel:
    """Return a Pyomo model of the problem; it is not solved.

    Parameters
    ----------
    formulation
        Of equivalence classes ``"bigm"``, the default: Liang & Samavi's MILP, eqs. (21)-(32);
        ``"strengthened"``: the same with stronger rows; ``"hull"`` and ``"indicator"``: by
        Disjuncts of :mod:`pyomo.gdp`. All have the same optima and name their variables alike.
        Of freeform generalization and weaker notions ``"freeform"``: the MIP of Doka et al.,
        eqs. (4)-(11); of freeform generalization ``"set-cover"`` too, with a variable a set.
        Of patterns ``"pattern"``: the ILP of Bredereck et al., eqs. (5)-(8), and
        ``"pattern-strong"``, smaller and with a much better linear relaxation.
    **choices
        Of the formulation, such as ``integer_ends``.

    Raises
    ------
    InputError
        If there is no such formulation, or it does not fit recoding, objective or size.
    """
    name = plain_formulation(problem.recoding.name) if formulation is None else formulation
    model = _function(_find(name).build)(problem, **choices)
    model.formulation = name
    return model


def set_start(model: ConcreteModel, assignment: Assignment) -> None:
    """Give the variables of a built model the values of an assignment: a warm start.

    Raises
    ------
    InvalidAssignment
        If the assignment breaks a rule of the recoding.
    """
    _function(_find(model.formulation).set_start)(model, assignment)


def read(model: ConcreteModel) -> Assignment:
    """Return the assignment that the values of a built model's variables mean.

    Raises
    ------
    InputError
        If variables have no values.
    """
    assignment: Assignment = _function(_find(model.formulation).read)(model)
    return assignment


def relax(model: ConcreteModel) -> None:
    """Turn a built model into its linear relaxation, in place.

    Integer variables become continuous. Constraints that hold only where an indicator is 1 are
    switched off: a linear program knows no such rows.
    """
    from pyomo.environ import Block, Constraint, TransformationFactory
    from pyomo.gdp import Disjunct

    inside = (Block, Disjunct)
    conditional = [
        constraint
        for disjunct in model.component_data_objects(Disjunct, active=True, descend_into=inside)
        for constraint in disjunct.component_objects(Constraint, active=True, descend_into=inside)
    ]
    for constraint in conditional:
        constraint.deactivate()
    TransformationFactory("core.relax_integer_vars").apply_to(model)
