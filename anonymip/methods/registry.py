"""All methods by name: those of the package, of this process, and of installed packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import TypeVar

from anonymip.errors import InputError, UnsupportedObjective, unknown_name
from anonymip.extensions import EXACT_STARTS, Extensions
from anonymip.methods.built_in import BUILT_IN
from anonymip.methods.spec import Method, MethodOption, MethodSpec
from anonymip.problem import Problem

Registered = TypeVar("Registered", bound=Method)

_methods: dict[str, MethodSpec] = dict(BUILT_IN)

# Local search lies below what proves, and takes such starts from here.
EXACT_STARTS["split-carry"] = BUILT_IN["split-carry"].load


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


_OUTSIDE = Extensions("anonymip.methods", "method", _read, lambda: frozenset(BUILT_IN))


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

    Raises InputError if there is none, or the package that registers it cannot be used.
    """
    spec = _methods.get(name) or _OUTSIDE.find(name)
    if spec is None:
        raise unknown_name("method", name, METHODS)
    return spec


def is_built_in(spec: MethodSpec) -> bool:
    """Return whether a method comes with this package."""
    return BUILT_IN.get(spec.name) is spec


def is_installed(spec: MethodSpec) -> bool:
    """Return whether a method is known to every process: built in, or of an installed package."""
    return is_built_in(spec) or _OUTSIDE.find(spec.name) is not None


def refuse_unfit(spec: MethodSpec, problem: Problem) -> None:
    """Refuse problems that a method cannot solve, with the methods that can.

    Raises InputError if the problem has another recoding, or another k than the method is for.
    Raises UnsupportedObjective if the objective lacks what the method needs.
    """
    recoding, k = problem.recoding.name, problem.k
    if not spec.solves(recoding):
        solved = ", ".join((spec.recoding, *spec.also))
        raise InputError(
            f"method {spec.name} solves {solved}, the problem asks for {recoding}",
            remedy=f"Use {_names(recoding)}",
        )
    if not spec.solves_for(k):
        only = ", ".join(need.removeprefix("k=") for need in spec.needs if "k=" in need)
        raise InputError(
            f"method {spec.name} is for k = {only}, and k is {k}",
            remedy=f"Use {_names(recoding, lambda one: one.solves_for(k))}",
        )
    obstacle = spec.obstacle(problem)
    if obstacle is not None:
        able = _names(recoding, lambda one: one.solves_for(k) and one.obstacle(problem) is None)
        raise UnsupportedObjective(
            f"method {spec.name} {obstacle}", remedy=f"Methods that accept it: {able}"
        )


def _names(recoding: str, fits: Callable[[MethodSpec], bool] = lambda _: True) -> str:
    """Return the names of the methods of a recoding that fit."""
    names = [spec.name for spec in METHODS.values() if spec.solves(recoding) and fits(spec)]
    return ", ".join(names) or "none of this version"


def _refuse_role(role: str) -> None:
    if role not in ("heuristic", "exact"):
        raise unknown_name("role", role, ("heuristic", "exact"))


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
    checks it. Where its file or notebook cell is run again, it takes its own place.

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
    _refuse_role(role)

    def register(function: Registered) -> Registered:
        known = _methods.get(name)
        # Not all of METHODS is asked: a package may be registering while it is looked up there.
        if name in _OUTSIDE.known() or (known and not _is_same(known.target, function)):
            raise InputError(f"there is a method {name!r} already", remedy="Choose another name")
        _methods[name] = MethodSpec(name, recoding, role, function, source, needs, takes, options)
        return function

    return register


def _is_same(known: object, function: object) -> bool:
    """Return whether both are the function of the same lines, which were run again."""
    if not (isinstance(known, FunctionType) and isinstance(function, FunctionType)):
        return False
    files = [os.path.realpath(one.__code__.co_filename) for one in (known, function)]
    together = known.__module__ == function.__module__ or files[0] == files[1]
    return together and known.__qualname__ == function.__qualname__
