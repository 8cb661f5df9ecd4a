"""The recoding protocol, and what every recoding asks of an assignment first."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

from anonymip.assignments import Assignment, Classes, Cover, Description, Levels, Patterns
from anonymip.errors import InvalidAssignment
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.compiled import CompiledObjective
from anonymip.recodings.rules.diversity import Diversity
from anonymip.recodings.rules.limits import Limit


class SizeLimit(NamedTuple):
    """How large a class of some optimal assignment needs to be.

    `size`: largest size needed; None if no limit is proven. `reason`: why.
    """

    size: int | None
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
    """Return an assignment that must be of a kind, and of the records of a table.

    Raises InvalidAssignment if it is not.
    """
    another_kind, other_records = _TOLD[kind]
    if not isinstance(assignment, kind):
        raise InvalidAssignment(None, f"{another_kind} but {type(assignment).__name__}")
    if assignment.n != microdata.n:
        raise InvalidAssignment(None, other_records.format(assignment.n, microdata.n))
    return assignment
