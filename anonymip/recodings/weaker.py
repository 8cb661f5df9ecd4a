"""Notions weaker than k-anonymity: covers of which only one side, or only matches, count.

They are surveyed in Section 5 of [1]_; none of them gives k disjoint assignments. A diversity
counts the rows that can be a person's own, and goes with k-concealment alone.

References
----------
.. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security 93,
   2020, Section 5.
.. [2] A. Gionis, A. Mazza, T. Tassa: k-Anonymization Revisited, ICDE 2008.
.. [3] T. Tassa, A. Mazza, A. Gionis: k-Concealment: An Alternative Model of k-Type Anonymity,
   Transactions on Data Privacy 5, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Assignment, Description
from anonymip.errors import InvalidAssignment
from anonymip.graphs import effective_sizes
from anonymip.recodings.recoding import ProblemView, SizeLimit
from anonymip.recodings.rows.covering import checked_cover, describe_sets_of

_RULED_OUT = (
    "its k counts matches that no assignment of records to rows contains, so that a record may be "
    "left one row that can be its own, whose sensitive value is then certain"
)
#: Why a release of some form has no diversity; ``docs/diversity.md`` says it at length.
WITHOUT_DIVERSITY: MappingProxyType[str, str] = MappingProxyType(
    {
        "one-k": _RULED_OUT,
        "k-k": _RULED_OUT,
        "k-one": "it promises nothing of the rows that can be a record's own, which a diversity "
        "counts",
    }
)


@dataclass(frozen=True)
class _Weaker:
    """What the weaker notions have in common."""

    #: Whole records cannot be suppressed.
    suppression: ClassVar[bool] = False

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: the tight range, set or node of each record's set."""
        return describe_sets_of(problem, assignment)

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return that no limit is proven: one set may serve many originals."""
        return SizeLimit(None, "one set may serve many originals")


@dataclass(frozen=True)
class OneK(_Weaker):
    """(1, k)-anonymity [2]_: every original lies in the sets of k published records."""

    @property
    def name(self) -> str:
        """Name in results and on the command line."""
        return "one-k"

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the cover.

        Raises
        ------
        InvalidAssignment
            Naming a record and the rule that it breaks.
        """
        _need(checked_cover(problem, assignment).degrees, problem.k, "lies in {} sets")


@dataclass(frozen=True)
class KOne(_Weaker):
    """(k, 1)-anonymity [2]_: every published record covers k originals."""

    @property
    def name(self) -> str:
        """Name in results and on the command line."""
        return "k-one"

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the cover.

        Raises
        ------
        InvalidAssignment
            Naming a record and the rule that it breaks.
        """
        _need(checked_cover(problem, assignment).sizes, problem.k, "covers {} original records")

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return k: with a monotone loss larger sets are never cheaper."""
        if problem.compiled.monotone:
            return SizeLimit(problem.k, "records can be taken out of a set without loss")
        return SizeLimit(None, f"the record loss is not monotone: {problem.compiled.obstacle}")


@dataclass(frozen=True)
class KK(_Weaker):
    """(k, k)-anonymity [2]_: both (1, k) and (k, 1)."""

    @property
    def name(self) -> str:
        """Name in results and on the command line."""
        return "k-k"

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the cover.

        Raises
        ------
        InvalidAssignment
            Naming a record and the rule that it breaks.
        """
        cover = checked_cover(problem, assignment)
        _need(cover.sizes, problem.k, "covers {} original records")
        _need(cover.degrees, problem.k, "lies in {} sets")


@dataclass(frozen=True)
class KConcealment(_Weaker):
    """k-concealment [3]_: every original has k matches that lie in some assignment.

    Stronger than (1, k)-anonymity, in which matches count that cannot be true.
    """

    @property
    def name(self) -> str:
        """Name in results and on the command line."""
        return "k-concealment"

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the cover.

        Raises
        ------
        InvalidAssignment
            Naming a record and the rule that it breaks.
        """
        cover = checked_cover(problem, assignment)
        _need(effective_sizes(cover)[1], problem.k, "has {} effective matches")


def _need(found: NDArray[np.int64], k: int, what: str) -> None:
    """Refuse records that have fewer of something than k."""
    few = found < k
    if few.any():
        record = int(np.argmax(few))
        raise InvalidAssignment(record, f"{what.format(found[record])}, fewer than k = {k}")
