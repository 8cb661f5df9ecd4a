"""The recoding protocol, what every recoding asks of an assignment first, whom it may suppress."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import floor
from numbers import Integral
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from anonymip.assignments import Assignment, Classes, Cover, Description, Levels, Patterns
from anonymip.errors import InputError, InvalidAssignment, argument, is_number
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.recodings.rules.diversity import Diversity
from anonymip.recodings.rules.limits import Limit
from anonymip.runtime.arrays import Flags


class SizeLimit(NamedTuple):
    """How large a class of some optimal assignment needs to be."""

    size: int | None  # None if no limit is proven
    reason: str


class ProblemView(Protocol):
    """What a recoding reads of a problem."""

    @property
    def microdata(self) -> Microdata:
        """The table."""

    @property
    def k(self) -> int:
        """The privacy parameter."""

    @property
    def recoding(self) -> Recoding:
        """Which releases are allowed."""

    @property
    def compiled(self) -> CompiledObjective:
        """The objective, traced on the table."""

    @property
    def diversity(self) -> Diversity | None:
        """What every class must hold of the sensitive columns."""

    @property
    def limits(self) -> tuple[Limit, ...]:
        """Which generalizations are forbidden."""


class Recoding(Protocol):
    """Which families of cover sets are allowed, and what they publish."""

    @property
    def name(self) -> str:
        """Name in results and on the command line."""

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Raise :class:`~anonymip.errors.InvalidAssignment` if the assignment breaks a rule."""

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published for each record."""

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return how large the sets of some optimal assignment need to be."""


_Kind = TypeVar("_Kind", Classes, Cover, Patterns, Levels)
#: What is said of an assignment of another kind, and of one of other records.
_TOLD: dict[type, tuple[str, str]] = {
    Classes: ("is no partition", "labels {} records, the table has {}"),
    Cover: ("is no cover", "covers {} records, the table has {}"),
    Patterns: ("gives no patterns", "names {} patterns, the table has {} records"),
    Levels: ("gives no levels", "marks {} records, the table has {}"),
}


def as_kind(kind: type[_Kind], assignment: Assignment, microdata: Microdata) -> _Kind:
    """Return an assignment that must be of a kind, and of the records of a table."""
    another_kind, other_records = _TOLD[kind]
    if not isinstance(assignment, kind):
        raise InvalidAssignment(None, f"{another_kind} but {type(assignment).__name__}")
    if assignment.n != microdata.n:
        raise InvalidAssignment(None, other_records.format(assignment.n, microdata.n))
    return assignment


@dataclass(frozen=True)
class MaySuppress:
    """Whether records may be left out of the release, and how many.

    Raises InputError if the limit is neither a number of records nor a share.
    """

    suppression: bool = False  # whether whole records may be suppressed
    #: Records that may be suppressed at most: a whole number, or a share of the table below 1; None
    #: for any number where suppression is allowed. A limit, also one of 0, allows suppression.
    most_suppressed: int | float | None = None

    def __post_init__(self) -> None:
        most = self.most_suppressed
        if most is None:
            return
        whole = isinstance(most, Integral)
        if not is_number(most, 0) or not (whole or most < 1):
            raise InputError(
                f"{argument('most_suppressed')} is {most!r}",
                remedy="Give a number of records, or a share of them from 0 to below 1",
            )
        object.__setattr__(self, "suppression", True)
        object.__setattr__(self, "most_suppressed", int(most) if whole else float(most))

    def within(self, most: int | float | None) -> Self:
        """Return the recoding with a limit, unless it has one or there is none."""
        if most is None or self.most_suppressed is not None:
            return self
        return replace(self, most_suppressed=most)

    def limit(self, n: int) -> int:
        """Return how many of n records may be suppressed."""
        if not self.suppression:
            return 0
        most = self.most_suppressed
        if most is None:
            return n
        if isinstance(most, int):
            return min(n, most)
        # 0.3 of 10 records are 3 although 0.3 * 10 may be rounded below.
        return min(n, floor(most * n + 1e-9))


@dataclass(frozen=True, repr=False)
class PricedSuppression(MaySuppress):
    """The same, at a price that may be set: records are left out for what their leaving saves.

    `suppression_price`: loss of a suppressed record, which allows suppression; None for what the
    objective charges for a row of stars. Raises InputError if limit or price is none.
    """

    suppression_price: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        price = self.suppression_price
        if price is None:
            return
        if not is_number(price, 0):
            raise InputError(
                f"{argument('suppression_price')} is {price!r}",
                remedy="Give the loss of a suppressed record, 0 or more",
            )
        object.__setattr__(self, "suppression", True)
        object.__setattr__(self, "suppression_price", float(price))

    def __repr__(self) -> str:
        """Return the arguments that are not left out: results are known by this text."""
        own = [one.name for one in fields(self) if one.name not in OF_SUPPRESSION]
        own += ["suppression"] * (self.suppression or not own)
        own += [name for name in OF_SUPPRESSION[1:] if getattr(self, name) is not None]
        return f"{type(self).__name__}({', '.join(f'{one}={getattr(self, one)!r}' for one in own)})"


#: The parameters of recodings that say who may be left out.
OF_SUPPRESSION = tuple(one.name for one in fields(PricedSuppression))


def check_suppressed(recoding: MaySuppress, records: Flags) -> None:
    """Raise InvalidAssignment, naming one of the records, if more are suppressed than may be."""
    count, most = int(records.sum()), recoding.limit(len(records))
    if count <= most:
        return
    reason = "is suppressed, which is not allowed"
    if recoding.suppression:
        reason = f"is one of {count} suppressed records, and {most} may be suppressed"
    raise InvalidAssignment(int(np.argmax(records)), reason)
