"""The objective protocol: a loss written once, traced once, used everywhere."""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import PathFinder
from types import FunctionType
from typing import Any, Protocol, Self, overload

from anonymip.errors import InputError
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.objectives.language.record import Members, Record
from anonymip.objectives.language.tracing import compile_members, compile_record_loss


class _HasMicrodata(Protocol):
    @property
    def microdata(self) -> Microdata: ...


class Objective(ABC):
    """Information loss of a published record; the release's loss is the sum over its records.

    Subclasses write :meth:`loss` once, for one record; it is traced with symbols and evaluated
    on batches of numbers.

    Attributes
    ----------
    monotone : bool or None
        Declares that the loss never falls when a cell covers more. It is needed only where the
        traced loss does not prove it, and is then checked on samples and reported as assumed.

    Notes
    -----
    The properties `additive`, `by_pattern` and `blind_to_domains` are believed of the class that
    states them, as ``additive = True`` in its body, and not of a subclass, which may charge what
    it likes: see :func:`declares`.
    """

    monotone: bool | None = None

    @property
    def additive(self) -> bool:
        """Whether the loss is a sum of terms of one attribute each, stars included."""
        return False

    @property
    def by_pattern(self) -> bool:
        """Whether the loss looks at nothing but which cells are exact."""
        return False

    @property
    def blind_to_domains(self) -> bool:
        """Whether a star costs the same whatever the domain is, and an exact cell nothing."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in results and manifests."""

    @abstractmethod
    def loss(self, record: Record) -> Any:
        """Return the loss of publishing a record as `record` shows it.

        Only sums, products with numbers, and element-wise NumPy functions apply to what `record`
        shows.
        """

    def compile(self, problem: _HasMicrodata | Microdata) -> CompiledObjective:
        """Trace the loss on a table.

        A sum of terms that look at one attribute each becomes tables, which every method reads.
        Anything else is called on batches of records, by the methods that can.

        Raises UnsupportedObjective if the loss can be neither traced nor called on a batch, reads
        what is not published, or is declared monotone and is not.
        """
        microdata = problem if isinstance(problem, Microdata) else problem.microdata
        return compile_record_loss(self, microdata)


def declares(objective: object, name: str) -> bool:
    """Return whether the class of an objective itself, no class above it, states a property."""
    return name in vars(type(objective)) and bool(getattr(objective, name))


class MembersObjective(ABC):
    """Information loss of an equivalence class as a function of its members' original values.

    For losses that the published cells do not determine, such as squared errors. The release's
    loss is the sum over its classes.

    Attributes
    ----------
    superadditive : bool or None
        Declares that a class of the members of two others costs at least as much as the two;
        optimal classes then have at most 2k - 1 records. Checked on samples.
    proof : str or None
        Why this holds; None reports it as assumed. Not believed of a subclass that charges
        something else, unless it states a proof of its own.
    suppression_price : float or None
        Loss of a suppressed record; None where records cannot be suppressed.
    """

    superadditive: bool | None = None
    proof: str | None = None
    suppression_price: float | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in results and manifests."""

    @abstractmethod
    def class_cost(self, members: Members) -> Any:
        """Return (B,) losses of B classes of s members each."""

    def compile(self, problem: _HasMicrodata | Microdata) -> CompiledObjective:
        """Bind the loss to a table and check it on samples.

        Raises UnsupportedObjective if the function does not give one finite number a class, or is
        declared superadditive and is not.
        """
        microdata = problem if isinstance(problem, Microdata) else problem.microdata
        return compile_members(self, microdata)


class _OfFunction:
    """The name of an objective that is a user's function, and what copies and pickles keep."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        """The function's name, or its type's if it has none."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a pickle keeps: the function's name, where it is of a module.

        The decorated function stands under its own name no more, so that pickle itself would not
        find it; who unpickles imports the objective. Raises InputError if no import finds it, and
        what pickles keeps functions by name.
        """
        function, whole = self.function, (type(self), tuple(vars(self).values()))
        # cloudpickle, which joblib and notebooks use, takes functions as they are.
        by_value = "cloudpickle" in str(sys._getframe(1).f_globals.get("__name__"))
        if by_value or not isinstance(function, FunctionType):
            return whole
        module, name = function.__module__, function.__qualname__
        # Another process has another main module, and none that a file was executed as.
        if module != "__main__" and PathFinder.find_spec(module.partition(".")[0]) is not None:
            found = _found(module, name)
            if found is function:
                return whole
            if found == self:
                return _imported, (module, name)
        raise InputError(
            f"the objective {self.name!r} is a function that no import finds, and cannot be "
            "pickled",
            remedy="Define it at the top level of a module of its own, or pickle with cloudpickle",
        )


@dataclass(frozen=True)
class FunctionObjective(_OfFunction, Objective):
    """A user's function as an objective."""

    function: Callable[[Record], Any]  # takes the published record, returns its loss
    monotone: bool | None = None  # whether its author declares it monotone

    def loss(self, record: Record) -> Any:
        """Call the function."""
        return self.function(record)


@dataclass(frozen=True)
class FunctionOfMembers(_OfFunction, MembersObjective):
    """A user's function of the members of a class as an objective."""

    function: Callable[[Members], Any]  # takes the members of B classes, returns their (B,) losses
    superadditive: bool | None = None  # whether its author declares it superadditive

    def class_cost(self, members: Members) -> Any:
        """Call the function."""
        return self.function(members)


def _found(module: str, name: str) -> Any:
    """Return what a loaded module calls by a dotted name; None if it has no such name."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _imported(module: str, name: str) -> Any:
    """Return an objective that was pickled by its name."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"the objective {name!r} was pickled by its name, and its module {module} cannot be "
            "imported",
            remedy="Put the module where Python finds it",
        ) from error
    found = _found(module, name)
    if found is None:
        raise InputError(
            f"the module {module} has no objective {name!r} any more",
            remedy="Take the version of the module that it was pickled with",
        )
    return found


@overload
def objective(function: Callable[[Record], Any]) -> FunctionObjective: ...


@overload
def objective(
    *, monotone: bool | None = None
) -> Callable[[Callable[[Record], Any]], FunctionObjective]: ...


def objective(
    function: Callable[[Record], Any] | None = None, *, monotone: bool | None = None
) -> FunctionObjective | Callable[[Callable[[Record], Any]], FunctionObjective]:
    """Turn a function of the published record into an objective (a decorator).

    Parameters
    ----------
    function
        The function.
    monotone
        Declare that its loss never falls when a cell covers more. Sums of one-attribute terms
        prove this by themselves.

    Examples
    --------
    >>> from anonymip import objective
    >>> @objective
    ... def protect_age(record):
    ...     return 4 * record.spread["age"] + record.spread["zip"]
    >>> protect_age.name
    'protect_age'
    >>> @objective(monotone=True)
    ... def together(record):
    ...     return record.spread["age"] * record.spread["zip"]
    """
    if function is None:
        return lambda decorated: FunctionObjective(decorated, monotone)
    return FunctionObjective(function, monotone)


@overload
def class_objective(function: Callable[[Members], Any]) -> FunctionOfMembers: ...


@overload
def class_objective(
    *, superadditive: bool | None = None
) -> Callable[[Callable[[Members], Any]], FunctionOfMembers]: ...


def class_objective(
    function: Callable[[Members], Any] | None = None, *, superadditive: bool | None = None
) -> FunctionOfMembers | Callable[[Callable[[Members], Any]], FunctionOfMembers]:
    """Turn a function of the members of classes into an objective (a decorator).

    Parameters
    ----------
    function
        Of the members, see :class:`MembersObjective`.
    superadditive
        Declare that joining two classes never costs less than the two.

    Examples
    --------
    >>> from anonymip import class_objective
    >>> @class_objective(superadditive=True)
    ... def pay_gap(members):
    ...     pay = members.value["pay"]
    ...     return pay.shape[1] * (pay.max(axis=1) - pay.min(axis=1))
    """
    if function is None:
        return lambda decorated: FunctionOfMembers(decorated, superadditive)
    return FunctionOfMembers(function, superadditive)
