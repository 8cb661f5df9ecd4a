"""Freeform generalization: regular covers, a set of k records for each published record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Assignment, Cover, Description
from anonymip.errors import InputError, InvalidAssignment
from anonymip.recodings.recoding import ProblemView, SizeLimit
from anonymip.recodings.rows.covering import checked_cover, describe_sets_of


@dataclass(frozen=True)
class Freeform:
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

    Raises
    ------
    InputError
        If a degree is no whole number.

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

    reciprocal: bool = False
    degrees: tuple[int, ...] | None = None

    #: Whole records cannot be suppressed.
    suppression: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.degrees is None:
            return
        given: Sequence[object] = tuple(self.degrees)
        for place, degree in enumerate(given):
            if isinstance(degree, bool) or not isinstance(degree, Integral):
                raise InputError(
                    f"the degree of record {place} is {degree!r}", remedy="Give whole numbers"
                )
        object.__setattr__(self, "degrees", tuple(int(degree) for degree in self.degrees))

    @property
    def name(self) -> str:
        """Name in results and on the command line."""
        return "freeform"

    def refuse_unfit(self, problem: ProblemView) -> None:
        """Refuse degrees that do not fit the table.

        Raises
        ------
        InputError
            If there is not one for each record, or one is below k or above the number of records.
        """
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

    def sizes(self, problem: ProblemView) -> NDArray[np.int64]:
        """Return (n,) how many originals each published record needs to cover."""
        if self.degrees is None:
            return np.full(problem.microdata.n, problem.k, np.int64)
        return np.array(self.degrees, np.int64)

    def check(self, problem: ProblemView, assignment: Assignment) -> None:
        """Check the cover: regular, own records, reciprocal if asked for, within the limits.

        Sets larger than k are accepted if all have one size.

        Raises
        ------
        InvalidAssignment
            Naming a record and the rule that it breaks.
        """
        cover = checked_cover(problem, assignment)
        wanted = self.sizes(problem)
        if self.degrees is None:
            wanted = np.full(cover.n, max(problem.k, int(cover.sizes[0])))
        for found, what in (
            (cover.sizes, "covers {} original records"),
            (cover.degrees, "lies in {} sets"),
        ):
            wrong = found != wanted
            if wrong.any():
                record = int(np.argmax(wrong))
                raise InvalidAssignment(
                    record, f"{what.format(found[record])} where {wanted[record]} are needed"
                )
        if self.reciprocal:
            one_way = _one_way(cover)
            if one_way is not None:
                raise InvalidAssignment(
                    one_way[0],
                    f"covers record {one_way[1]}, which does not cover it: not reciprocal",
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


def _one_way(cover: Cover) -> tuple[int, int] | None:
    """Return a published record and an original in its set that does not hold it, or None."""
    forth = cover.owners * cover.n + cover.members
    back = cover.members.astype(np.int64) * cover.n + cover.owners
    missing = ~np.isin(forth, back)
    if not missing.any():
        return None
    at = int(np.argmax(missing))
    return int(cover.owners[at]), int(cover.members[at])
