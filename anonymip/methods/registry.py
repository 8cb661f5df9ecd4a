"""All methods as data: what each solves, needs and takes, without importing any of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from anonymip.errors import InputError, UnsupportedObjective
from anonymip.extensions import Extensions
from anonymip.problem import Problem

Method = Callable[..., Any]
Registered = TypeVar("Registered", bound=Method)


@dataclass(frozen=True)
class MethodOption:
    """An option of one method.

    Parameters
    ----------
    name
        As the method's function names it.
    default
        Its default, whose type is the option's type.
    meaning
        In a few words.
    """

    name: str
    default: bool | int | float | str
    meaning: str

    def parse(self, method: str, value: object) -> object:
        """Return a value given as text or as the right type.

        Raises
        ------
        InputError
            If it cannot be read as the option's type.
        """
        kind = type(self.default)
        if kind is bool:
            known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
            parsed = known.get(str(value).lower())
            if parsed is not None:
                return parsed
        else:
            try:
                return kind(str(value))
            except (TypeError, ValueError):
                pass
        expected = {"bool": "true or false", "int": "a whole number", "float": "a number"}
        raise InputError(
            f"option {method}.{self.name} is {value!r}",
            remedy=f"Give {expected.get(kind.__name__, 'a text')}",
        )


@dataclass(frozen=True)
class MethodSpec:
    """A method.

    Parameters
    ----------
    name
        Name on the command line.
    recoding
        Name of the recoding whose problems it solves.
    role
        ``"heuristic"``, ``"exact"`` or ``"selection"``.
    target
        Its function: ``module:name``, or the function itself.
    source
        Where it comes from.
    needs
        What the objective must be: ``"monotone"``; ``"tables"``, a sum of terms that look at one
        attribute each; ``"sum"``, summed over the records; ``"diversity"``, a problem that asks
        for one.
    takes
        Common settings that it reads: ``"solver"``, ``"gap"``, ``"threads"``, ``"log"``,
        ``"solver_options"``.
    options
        Its own options.
    also
        Names of further recodings whose problems it solves.
    """

    name: str
    recoding: str
    role: str
    target: str | Method
    source: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    options: tuple[MethodOption, ...] = ()
    also: tuple[str, ...] = ()

    def solves(self, recoding: str) -> bool:
        """Return whether it solves the problems of a recoding."""
        return recoding in (self.recoding, *self.also)

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with this package."""
        return _methods.get(self.name) is self and self.name in _BUILT_IN

    def load(self) -> Method:
        """Return the method's function, importing it."""
        if callable(self.target):
            return self.target
        module, _, name = self.target.partition(":")
        function: Method = getattr(importlib.import_module(module), name)
        return function

    def parse_options(self, given: Mapping[str, object]) -> dict[str, object]:
        """Return the method's own options, checked.

        Raises
        ------
        InputError
            If an option is unknown or has the wrong type.
        """
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                has = ", ".join(known) if known else "none"
                raise InputError(
                    f"method {self.name} has no option {name!r}", remedy=f"Its options: {has}"
                )
        return {name: known[name].parse(self.name, value) for name, value in given.items()}

    def refuse_unfit(self, problem: Problem) -> None:
        """Refuse problems that the method cannot solve, with the methods that can.

        Raises
        ------
        InputError
            If the problem has another recoding.
        UnsupportedObjective
            If the objective lacks what the method needs.
        """
        if not self.solves(problem.recoding.name):
            solved = ", ".join((self.recoding, *self.also))
            raise InputError(
                f"method {self.name} solves {solved}, the problem asks for {problem.recoding.name}",
                remedy=f"Use {_names(problem.recoding.name)}",
            )
        obstacle = self.obstacle(problem)
        if obstacle is not None:
            raise UnsupportedObjective(
                f"method {self.name} {obstacle}",
                remedy=f"Methods that accept it: {_accepting(problem)}",
            )

    def obstacle(self, problem: Problem) -> str | None:
        """Return what the objective lacks that the method needs; None if it accepts it."""
        compiled = problem.compiled
        if "tables" in self.needs and not compiled.has_tables:
            return (
                f"needs a loss that is a sum of terms of one attribute each; {compiled.name!r} is "
                f"of the {compiled.tier} tier"
            )
        if "sum" in self.needs and compiled.aggregate != "sum":
            return f"needs a loss summed over the records; {compiled.name!r} is the largest"
        if "diversity" in self.needs and problem.diversity is None:
            return "needs a diversity"
        if "monotone" in self.needs and not compiled.monotone:
            return f"needs a monotone objective; of {compiled.name!r}, {compiled.obstacle}"
        return None


def _accepting(problem: Problem) -> str:
    """Return the names of the methods of the problem's recoding that accept its objective."""
    recoding = problem.recoding.name
    fitting = [spec for spec in METHODS.values() if spec.solves(recoding)]
    names = [spec.name for spec in fitting if spec.obstacle(problem) is None]
    return ", ".join(names) or "none of this version"


def _names(recoding: str) -> str:
    """Return the names of the methods of a recoding."""
    fitting = [spec.name for spec in METHODS.values() if spec.solves(recoding)]
    return ", ".join(fitting) or "none of this version"


_ORDER = MethodOption(
    "order", "variance", "variance, cardinality, snake, hilbert, neighbour; with +2opt"
)
_SEARCH = MethodOption("search", "auto", "auto, tree or scan: same result, other speed")
_RING_ORDER = MethodOption(
    "order", "hilbert", "hilbert, variance, cardinality, snake, neighbour; with +2opt"
)
_RECIPROCAL = MethodOption("reciprocal", False, "symmetric sets")
_PART = MethodOption("part", 0, "records of a part, solved one by one; 0: the whole table")
_JOBS = MethodOption("jobs", 0, "processes for parts; 0: as many as there are cores, two at most")
_LIANG = "Liang & Samavi 2020"
_WONG = "Wong et al. 2010"
_DOKA = "Doka et al. 2015"

_methods: dict[str, MethodSpec] = {
    spec.name: spec
    for spec in (
        MethodSpec(
            "auto",
            "classes",
            "selection",
            "anonymip.methods.selection:auto",
            "picks by size and says what it picked",
            takes=("solver", "gap", "threads", "log", "solver_options"),
            also=("freeform", "one-k", "k-one", "k-k", "k-concealment"),
        ),
        MethodSpec(
            "equivalence-mip",
            "classes",
            "exact",
            "anonymip.exact.model_solve:equivalence_mip",
            f"{_LIANG}, Section 2.2",
            takes=("solver", "gap", "threads", "log", "solver_options"),
            options=(
                MethodOption(
                    "formulation",
                    "auto",
                    "auto, indicator, bigm, hull, strengthened, set-partition",
                ),
                MethodOption("integer_ends", True, "integer variables for integer ends, eq. (27)"),
                MethodOption(
                    "warm_start",
                    "best",
                    "best, none, initial, ordered-cut, greedy-search, k-member",
                ),
            ),
        ),
        MethodSpec(
            "initial",
            "classes",
            "heuristic",
            "anonymip.heuristics.initial:initial",
            f"{_LIANG}, Section 2.3",
            options=(_ORDER,),
        ),
        MethodSpec(
            "ordered-cut",
            "classes",
            "heuristic",
            "anonymip.heuristics.ordered_cut:ordered_cut",
            "Hansen & Mukherjee 2003, any order",
            options=(_ORDER,),
        ),
        MethodSpec(
            "greedy-search",
            "classes",
            "heuristic",
            "anonymip.heuristics.greedy_search:greedy_search",
            f"{_LIANG}, Algorithm 2",
            options=(_ORDER, _SEARCH),
        ),
        MethodSpec(
            "k-member",
            "classes",
            "heuristic",
            "anonymip.heuristics.k_member:k_member",
            "Byun et al. 2007",
            options=(_SEARCH,),
        ),
        MethodSpec(
            "mondrian",
            "classes",
            "heuristic",
            "anonymip.heuristics.mondrian:mondrian",
            "LeFevre et al. 2006",
            options=(MethodOption("strict", True, "equal values stay together"),),
        ),
        MethodSpec(
            "hilbert",
            "classes",
            "heuristic",
            "anonymip.heuristics.hilbert:hilbert",
            f"HR and HS of {_WONG}, Section 7.1",
            options=(MethodOption("cells", "objective", "what the cut counts: objective, HR, HS"),),
        ),
        MethodSpec(
            "hp",
            "classes",
            "heuristic",
            "anonymip.heuristics.hp:hp",
            f"{_WONG}, Fig. 8, one class a partition",
        ),
        MethodSpec(
            "anatomy",
            "classes",
            "heuristic",
            "anonymip.heuristics.anatomy:anatomy",
            "Xiao & Tao 2006, groups generalized; needs a diversity",
            needs=("diversity",),
        ),
        MethodSpec(
            "hilbert-diversity",
            "classes",
            "heuristic",
            "anonymip.heuristics.hilbert_diversity:hilbert_diversity",
            "Ghinita et al. 2007; needs a diversity",
            needs=("diversity",),
            options=(_RING_ORDER,),
        ),
        MethodSpec(
            "freeform-mip",
            "freeform",
            "exact",
            "anonymip.exact.freeform_solve:freeform_mip",
            f"{_DOKA}, eqs. (4)-(11)",
            needs=("monotone",),
            takes=("solver", "gap", "threads", "log", "solver_options"),
            options=(
                MethodOption("formulation", "auto", "auto, assignment, set-cover, freeform"),
                MethodOption("own_record", "fixed", "fixed: own record in its set, or free"),
                MethodOption("ranges", "bounds", "bounds as in the paper, or gaps: stronger"),
                MethodOption("integer_ends", True, "integer variables for integer ends"),
                MethodOption("strengthened", True, "rows for what neighbours cost at least"),
                MethodOption("warm_start", "best", "best, none, or the name of a heuristic"),
            ),
            also=("one-k", "k-one", "k-k", "k-concealment"),
        ),
        MethodSpec(
            "greedy",
            "freeform",
            "heuristic",
            "anonymip.heuristics.greedy:greedy",
            f"{_DOKA}, Algorithm 1",
            options=(
                MethodOption("chooser", "published", "who chooses: published, originals"),
                _RECIPROCAL,
                _PART,
                _JOBS,
            ),
        ),
        MethodSpec(
            "sort-greedy",
            "freeform",
            "heuristic",
            "anonymip.heuristics.sort_greedy:sort_greedy",
            f"{_DOKA}, Algorithm 2",
            options=(_RECIPROCAL, _PART, _JOBS),
        ),
        MethodSpec(
            "hungarian",
            "freeform",
            "heuristic",
            "anonymip.heuristics.hungarian:hungarian",
            f"{_DOKA}, Section 7",
            options=(_RECIPROCAL, _PART, _JOBS),
        ),
        MethodSpec(
            "min-cost-flow",
            "freeform",
            "heuristic",
            "anonymip.heuristics.min_cost_flow:min_cost_flow",
            f"{_DOKA}, Section 8",
        ),
        MethodSpec(
            "ring",
            "freeform",
            "heuristic",
            "anonymip.heuristics.ring:ring",
            f"{_WONG}, Section 5.1, whole table",
            options=(_RING_ORDER,),
        ),
        MethodSpec(
            "nh",
            "freeform",
            "heuristic",
            "anonymip.heuristics.nh:nh",
            f"{_WONG}, Section 5.3, a ring a partition",
            options=(MethodOption("order", "cardinality", "as for ring, within each partition"),),
        ),
        MethodSpec(
            "k-concealment",
            "k-concealment",
            "heuristic",
            "anonymip.heuristics.k_concealment:k_concealment",
            "Tassa et al. 2012, Gionis et al. 2008",
            needs=("tables",),
        ),
        MethodSpec(
            "reassign",
            "freeform",
            "heuristic",
            "anonymip.heuristics.reassign:reassign",
            f"improves a cover of {_DOKA} by assignments",
            options=(
                MethodOption(
                    "from_method", "sort-greedy", "start: sort-greedy, greedy, hungarian, ring, nh"
                ),
                MethodOption("patience", 3, "passes without gain before it stops"),
                _PART,
                _JOBS,
            ),
        ),
    )
}

_BUILT_IN = frozenset(_methods)


def _read(name: str, load: Callable[[], object]) -> MethodSpec:
    """Return the method that an entry point registers: a spec, or a registered function.

    Importing a package runs its decorators.
    """
    before = set(_methods)
    try:
        found = load()
    except BaseException:
        _forget_failed_modules(before)
        raise
    if not isinstance(found, MethodSpec):
        registered = [spec for spec in _methods.values() if spec.target is found]
        if not registered:
            raise InputError(
                f"it registers an object of type {type(found).__name__}",
                remedy="Register a MethodSpec, or a function decorated by @register_method",
            )
        found = next((spec for spec in registered if spec.name == name), registered[0])
    if found.name != name:
        raise InputError(
            f"the method calls itself {found.name!r}", remedy="Register it by this name"
        )
    if _methods.get(name, found) is not found:
        raise InputError(f"there is a method {name!r} already", remedy="Choose another name")
    _refuse_role(found.role)
    return found


def _forget_failed_modules(before: set[str]) -> None:
    """Forget methods of modules whose import failed after the decorator had run."""
    for name in set(_methods) - before:
        module = getattr(_methods[name].target, "__module__", None)
        if module not in sys.modules:
            del _methods[name]


_OUTSIDE = Extensions("anonymip.methods", "method", _read, lambda: _BUILT_IN)


class _Methods(Mapping[str, MethodSpec]):
    """Built-in methods, those registered in this process, and those of installed packages.

    Packages are imported when all methods are listed, or one is looked up that is not known.
    """

    def __getitem__(self, name: str) -> MethodSpec:
        spec = _methods.get(name) or _OUTSIDE.get(name)
        if spec is None:
            raise KeyError(name)
        return spec

    def __iter__(self) -> Iterator[str]:
        outside = _OUTSIDE.all()
        return iter(dict.fromkeys((*_methods, *outside)))

    def __len__(self) -> int:
        return sum(1 for _ in self)


#: All methods by name, in the order of ``anonymip methods``.
METHODS: Mapping[str, MethodSpec] = _Methods()


def find_method(name: str) -> MethodSpec:
    """Return the method of a name.

    Raises
    ------
    InputError
        If there is none, or the package that registers it cannot be used.
    """
    spec = _methods.get(name) or _OUTSIDE.find(name)
    if spec is None:
        raise InputError(f"unknown method {name!r}", remedy=f"Use {', '.join(METHODS)}")
    return spec


def _refuse_role(role: str) -> None:
    if role not in ("heuristic", "exact"):
        raise InputError(f"unknown role {role!r}", remedy="Use heuristic or exact")


def register_method(
    name: str,
    *,
    recoding: str = "classes",
    role: str = "heuristic",
    source: str = "registered from outside",
    needs: tuple[str, ...] = (),
    takes: tuple[str, ...] = (),
    options: tuple[MethodOption, ...] = (),
) -> Callable[[Registered], Registered]:
    """Register a function as a method (a decorator).

    The function takes a problem, and the keywords ``budget``, ``seed``, those in `takes` and its
    options; it returns a :class:`~anonymip.Solution`, best made by :meth:`Solution.of`, which
    checks it.

    Raises
    ------
    InputError
        If the name is taken, or the role is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from anonymip import Classes, Solution, register_method
    >>> @register_method("one-class", source="the trivial release")
    ... def one_class(problem, *, budget=None, seed=0):
    ...     labels = np.zeros(problem.n, dtype=int)
    ...     return Solution.of(problem, Classes(labels), method="one-class")
    """
    # Not all of METHODS is asked: a package may be registering while it is looked up there.
    if name in _methods or name in _OUTSIDE.known():
        raise InputError(f"there is a method {name!r} already", remedy="Choose another name")
    _refuse_role(role)

    def register(function: Registered) -> Registered:
        _methods[name] = MethodSpec(name, recoding, role, function, source, needs, takes, options)
        return function

    return register
