"""Covers: freeform generalization, and the notions weaker than k-anonymity.

A regular cover gives each published record a set of k records. The weaker notions count only one
side, or only matches; they are surveyed in Section 5 of [1]_, and none of them gives k disjoint
assignments. A diversity counts the rows that can be a person's own; of them it goes with
k-concealment alone.

References
----------
.. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security 93,
   2020, Section 5.
.. [2] A. Gionis, A. Mazza, T. Tassa: k-Anonymization Revisited, ICDE 2008.
.. [3] T. Tassa, A. Mazza, A. Gionis: k-Concealment: An Alternative Model of k-Type Anonymity,
   Transactions on Data Privacy 5, 2012.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from anonymip.assignments import SUPPRESSED, Assignment, Cover, Description, by_size
from anonymip.errors import InputError, InvalidAssignment, argument, is_number
from anonymip.graphs import effective_sizes
from anonymip.recodings.recoding import (
    PricedSuppression,
    ProblemView,
    SizeLimit,
    as_kind,
    check_suppressed,
)
from anonymip.recodings.rows import describe_sets, starred_elsewhere
from anonymip.recodings.rules.limits import check_limits
from anonymip.runtime.arrays import Ints


def checked_cover(problem: ProblemView, assignment: Assignment, suppression: bool = False) -> Cover:
    """Return the assignment if it is a cover of the table that obeys what binds every cover.

    Every record lies in its own set, but for those suppressed where that is allowed; every set has
    the diversity asked for, the cells keep the limits.
    """
    cover = as_kind(Cover, assignment, problem.microdata)
    own = np.zeros(cover.n, np.bool_)
    own[cover.owners[cover.members == cover.owners]] = True
    if suppression:
        own |= cover.sizes == 0
    if not own.all():
        raise InvalidAssignment(int(np.argmin(own)), "does not lie in its own set")
    if problem.diversity is not None:
        sensitive = problem.microdata.sensitive_codes
        for records, places in by_size(cover.start):
            met = problem.diversity.met_by(sensitive[cover.members[places]])
            if not met.all():
                raise InvalidAssignment(
                    int(records[np.argmin(met)]), f"covers a set without the {problem.diversity}"
                )
    if problem.limits:
        check_limits(problem.microdata, problem.limits, describe_sets_of(problem, cover))
    return cover


def describe_sets_of(problem: ProblemView, assignment: Assignment) -> Description:
    """Return what is published: the tight range, set or node of each record's set."""
    cover = as_kind(Cover, assignment, problem.microdata)
    filled = cover.sizes > 0
    if filled.all():
        return describe_sets(problem.microdata, cover.start, cover.members)
    start = np.append(cover.start[:-1][filled], cover.start[-1])
    cells = describe_sets(problem.microdata, start, cover.members)
    return starred_elsewhere(cells, np.where(filled, np.cumsum(filled) - 1, SUPPRESSED))


@dataclass(frozen=True)
class _Sets:
    """The fields of :class:`Freeform` that come before those of suppression."""

    reciprocal: bool = False
    degrees: tuple[int, ...] | None = None


@dataclass(frozen=True, repr=False)
class Freeform(PricedSuppression, _Sets):
    """Every published record covers k originals, and every original lies in k sets [1]_.

    The generalization graph is regular, so it falls into k disjoint perfect matchings: k ways to
    hand out the originals, no match of which occurs twice. Sensitive values are published along
    one that is drawn at random.

    Parameters
    ----------
    reciprocal
        Whether l must lie in the set of i if i lies in that of l (symmetric generalization,
        Section 2.2 of [1]_). Published along the identity, c known true matches then leave k - c
        of the others, as with classes; along an assignment that is drawn there may be fewer.
    degrees
        Records that each record hides among, itself included (adaptive anonymity, Section 2.2);
        None: k for all.
    suppression, most_suppressed, suppression_price
        Whether records may be suppressed, how many at most, and at which price: see
        :class:`~anonymip.EquivalenceClasses`. The others keep all that is said above among
        themselves: no set holds a suppressed record. Not together with a diversity.

    Raises
    ------
    InputError
        If a degree is no whole number, or a limit or a price is none.

    Notes
    -----
    With `degrees` the published record i covers as many originals as published records cover the
    original i. The graph without its loops then has as many edges into each node as out of it, so
    every edge closes a cycle and is an effective match: record i keeps ``degrees[i]`` possible
    identities, though not as disjoint matchings.

    References
    ----------
    .. [1] K. Doka, M. Xue, D. Tsoumakos, P. Karras: k-Anonymization by Freeform Generalization,
       ASIACCS 2015.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degrees is None:
            return
        for place, degree in enumerate(self.degrees):
            if not is_number(degree, kind=Integral):
                raise InputError(
                    f"the degree of record {place} is {degree!r}", remedy="Give whole numbers"
                )
        object.__setattr__(self, "degrees", tuple(int(degree) for degree in self.degrees))

    name = "freeform"

    def refuse_unfit(self, problem: ProblemView) -> None:
        """Refuse degrees that do not fit the table, and what does not go with suppression.

        Raises InputError if there is not one for each record, or one is below k or above the number
        of records.
        """
        if self.suppression and problem.diversity is not None:
            raise InputError(
                f"recoding freeform does not keep the {problem.diversity} of sets where records "
                "may be suppressed: who lacks a row could have shown any value",
                remedy=f"Leave out the diversity or {argument('suppression')}, or use "
                f"{argument('recoding', 'classes')}",
            )
        if self.degrees is None:
            return
        n = problem.microdata.n
        if len(self.degrees) != n:
            raise InputError(
                f"{len(self.degrees)} degrees for {n} records", remedy="Give one for each record"
            )
        low, high = min(self.degrees), max(self.degrees)
        if low < problem.k or high > n:
            raise InputError(
                f"degrees are {low} to {high}, allowed are k = {problem.k} to {n}",
                remedy="Give k as the least of them",
            )
        if self.suppression and low < high:
            raise InputError(
                "records that may be suppressed have sets of one size, and the degrees differ",
                remedy=f"Leave out the degrees or {argument('suppression')}",
            )

    def of_some(self, records: Ints) -> Freeform:
        """Return the recoding of some records, ascending, none of whom may be suppressed."""
        degrees = None if self.degrees is None else tuple(np.array(self.degrees)[records].tolist())
        return Freeform(self.reciprocal, degrees)

    def sizes(self, problem: ProblemView) -> Ints:
        """Return (n,) how many originals each published record needs to cover."""
        if self.degrees is None:
            return np.full(problem.microdata.n, problem.k, np.int64)
        return np.array(self.degrees, np.int64)

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the cover: regular, own records, reciprocal if asked for, within the limits.

        Sets larger than k are accepted if all have one size.

        Raises InvalidAssignment naming a record and the rule that it breaks.
        """
        cover = checked_cover(problem, assignment, self.suppression)
        left_out = cover.sizes == 0
        check_suppressed(self, left_out)
        wanted = self.sizes(problem)
        if self.degrees is None:
            first = int(cover.sizes[np.argmin(left_out)])
            wanted = np.full(cover.n, max(problem.k, first))
        wanted[left_out] = 0
        for found, what in _counts(cover, ("sizes", "degrees")):
            wrong = found != wanted
            if wrong.any():
                record = int(np.argmax(wrong))
                raise InvalidAssignment(
                    record, f"{what.format(found[record])} where {wanted[record]} are needed"
                )
        if self.reciprocal:
            forth = cover.owners * cover.n + cover.members
            back = cover.members.astype(np.int64) * cover.n + cover.owners
            one_way = np.flatnonzero(~np.isin(forth, back))
            if len(one_way):
                raise InvalidAssignment(
                    int(cover.owners[one_way[0]]),
                    f"covers record {cover.members[one_way[0]]}, which does not cover it: not "
                    "reciprocal",
                )

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: the tight range, set or node of each record's set."""
        return describe_sets_of(problem, assignment)

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return the largest degree: with a monotone loss larger sets are never cheaper."""
        most = int(self.sizes(problem).max())
        if problem.diversity is not None:
            return SizeLimit(None, "under a diversity larger sets may be needed")
        if self.reciprocal:
            return SizeLimit(None, "a reciprocal cover need not contain a smaller one")
        if problem.compiled.monotone:
            return SizeLimit(most, "a regular graph contains regular graphs of lower degree")
        return SizeLimit(None, f"the record loss is not monotone: {problem.compiled.obstacle}")


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


def _counts(cover: Cover, names: Sequence[str]) -> Iterator[tuple[Ints, str]]:
    """Yield (n,) numbers of what records have, with what each says of one."""
    for name in names:
        if name == "sizes":
            yield cover.sizes, "covers {} original records"
        elif name == "degrees":
            yield cover.degrees, "lies in {} sets"
        else:
            yield effective_sizes(cover)[1], "has {} effective matches"


@dataclass(frozen=True)
class _Weaker:
    """A notion by which records need k of something in their cover."""

    suppression: ClassVar[bool] = False  # whole records cannot be suppressed
    name: ClassVar[str]  # name in results and on the command line
    owed: ClassVar[tuple[str, ...]]  # what of every record has to be k, as `_counts` has it

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the cover. Raises InvalidAssignment naming a record and the rule that it breaks."""
        for found, what in _counts(checked_cover(problem, assignment), self.owed):
            few = found < problem.k
            if few.any():
                record = int(np.argmax(few))
                raise InvalidAssignment(
                    record, f"{what.format(found[record])}, fewer than k = {problem.k}"
                )

    def describe(self, problem: ProblemView, assignment: Assignment) -> Description:
        """Return what is published: the tight range, set or node of each record's set."""
        return describe_sets_of(problem, assignment)

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return that no limit is proven: one set may serve many originals."""
        return SizeLimit(None, "one set may serve many originals")


@dataclass(frozen=True)
class OneK(_Weaker):
    """(1, k)-anonymity [2]_: every original lies in the sets of k published records."""

    name: ClassVar[str] = "one-k"
    owed: ClassVar[tuple[str, ...]] = ("degrees",)


@dataclass(frozen=True)
class KOne(_Weaker):
    """(k, 1)-anonymity [2]_: every published record covers k originals."""

    name: ClassVar[str] = "k-one"
    owed: ClassVar[tuple[str, ...]] = ("sizes",)

    def max_size(self, problem: ProblemView) -> SizeLimit:
        """Return k: with a monotone loss larger sets are never cheaper."""
        if problem.compiled.monotone:
            return SizeLimit(problem.k, "records can be taken out of a set without loss")
        return SizeLimit(None, f"the record loss is not monotone: {problem.compiled.obstacle}")


@dataclass(frozen=True)
class KK(_Weaker):
    """(k, k)-anonymity [2]_: both (1, k) and (k, 1)."""

    name: ClassVar[str] = "k-k"
    owed: ClassVar[tuple[str, ...]] = ("sizes", "degrees")


@dataclass(frozen=True)
class KConcealment(_Weaker):
    """k-concealment [3]_: every original has k matches that lie in some assignment.

    Stronger than (1, k)-anonymity, in which matches count that cannot be true.
    """

    name: ClassVar[str] = "k-concealment"
    owed: ClassVar[tuple[str, ...]] = ("effective",)
