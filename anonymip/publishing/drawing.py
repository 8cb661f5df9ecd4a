"""Assignments of originals to the rows of a cover, drawn at random, with diversity if asked for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip import graphs
from anonymip.assignments import Cover
from anonymip.errors import NoSolution
from anonymip.graphs import components, degree_of, effective_matches, random_matchings
from anonymip.graphs.effective import ring_successors
from anonymip.problem import Problem
from anonymip.publishing.diverse_exchanges import EFFORT, exchanged
from anonymip.recodings import Diversity
from anonymip.recodings.rules.diversity import RowsOfRecords, lacking_records
from anonymip.runtime.arrays import Flags, Ints
from anonymip.runtime.budget import Budget


def draw_matching(problem: Problem, cover: Cover, rng: np.random.Generator) -> NDArray[np.integer]:
    """Draw the assignment along which a cover is published.

    `problem`: what was asked; with a diversity only an assignment that keeps it is drawn. `cover`:
    every record lies in its own set. `rng`: source of randomness: who can repeat it can undo the
    release. Returns: (n,) the original of each published record.
    """
    if problem.diversity is not None:
        return draw_diverse(problem, cover, rng)
    return graphs.draw_matching(cover, rng)


def draw_diverse(
    problem: Problem, cover: Cover, rng: np.random.Generator, budget: Budget | None = None
) -> Ints:
    """Draw the assignment along which a cover is published, so that it keeps the diversity.

    The rows that an original record can be show no sensitive value in more than a share of 1/l, and
    as many values as asked for (Wong et al. [1]_, Definition 9). Sets that are diverse do not see
    to that: the rows of a record on a ring show values from 2k - 1 places. Each connected part of
    the cover is cut into k disjoint assignments all of which keep the diversity: drawn again until
    they do, else changed until they do, else the k shifts of a ring. One of them, drawn before, is
    published, so each of the k identities of a row is the true one with probability 1/k. Where no
    such cut is found, and where the cover is not regular, single assignments are drawn and changed
    until one keeps the diversity. `problem`: with a diversity. `cover`: every record lies in its
    own set, and all sets are diverse. `rng`: source of randomness. `budget`: ends the changing of
    assignments early; shifts are then published where there are some. Returns: (n,) original record
    of each published one.

    Who knows one true match of a ring that is published along a shift, and that it is one, knows
    the others. ``docs/diversity.md`` states the criterion, its reasons and its limits.

    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Section 6.
    """
    diversity, budget = problem.diversity, budget or Budget()
    assert diversity is not None
    drawing = _Drawing(diversity, problem.microdata.sensitive_codes, cover, rng)
    if drawing.degree is not None:
        drawing.permute_classes()
        drawing.draw_again()
        drawing.exchange(budget)
        drawing.shift()
    drawing.draw_single(budget)
    if drawing.open.any():
        raise NoSolution(
            f"no assignment is found in which the rows that record {int(drawing.open.argmax())} "
            f"can be show sensitive values with the {diversity}",
            remedy="Use ring or nh, or equivalence classes, or ask for a larger k",
        )
    return drawing.matching


class _Drawing:
    """The assignment of the parts that are done, and the records whose part is open."""

    def __init__(
        self,
        diversity: Diversity,
        sensitive: NDArray[np.integer],
        cover: Cover,
        rng: np.random.Generator,
    ) -> None:
        self._diversity = diversity
        self._sensitive = sensitive
        self._cover = _effective(cover)
        self._rng = rng
        self._part = np.unique(components(cover), return_inverse=True)[1].ravel()
        self._parts = int(self._part.max()) + 1
        self.degree = degree_of(cover)
        # Which assignment of each part is published does not depend on what they are.
        self._published = rng.integers(self.degree or 1, size=self._parts)
        self.matching = np.full(cover.n, -1, np.int64)
        self._last: Ints | None = None

    @property
    def open(self) -> Flags:
        """(n,) whether the record lies in a part without an assignment."""
        return self.matching < 0

    def permute_classes(self) -> None:
        """Permute the parts in which all sets are equal, which are classes."""
        part = self._part
        records = np.flatnonzero(np.bincount(part)[part] == self.degree)
        if not len(records):
            return
        drawn = np.lexsort((self._rng.random(len(part)), part))
        listed = np.argsort(part, kind="stable")
        permutation = np.empty(len(part), np.int64)
        permutation[listed] = drawn
        number = np.searchsorted(records, permutation[records])
        self._take(records, _restricted(self._cover, records), number[None, :])

    def draw_again(self) -> None:
        """Draw disjoint matchings of the open parts until all of them are diverse, a few times."""
        for _ in range(EFFORT.redrawn):
            records = np.flatnonzero(self.open)
            if not len(records):
                return
            cover = _restricted(self._cover, records)
            assert self.degree is not None
            matchings = random_matchings(cover, self.degree, self._rng).astype(np.int64)
            self._last = self._take(records, cover, matchings)

    def exchange(self, budget: Budget) -> None:
        """Change the last matchings of the open parts until all are diverse, or time is over."""
        records = np.flatnonzero(self.open)
        if len(records) and self._last is not None:
            cover = _restricted(self._cover, records)
            sensitive = self._sensitive[records]
            found = exchanged(self._diversity, sensitive, cover, self._last, self._rng, budget)
            self._take(records, cover, found)

    def shift(self) -> None:
        """Take the shifts of the open parts that are rings."""
        records = np.flatnonzero(self.open)
        if not len(records):
            return
        rings = [records]
        if ring_successors(_restricted(self._cover, records)) is None:
            rings = [
                records[self._part[records] == part] for part in np.unique(self._part[records])
            ]
        for ring in rings:
            cover = _restricted(self._cover, ring)
            following = ring_successors(cover)
            if following is not None:
                assert self.degree is not None
                shifts = [np.arange(cover.n)]
                while len(shifts) < self.degree:
                    shifts.append(following[shifts[-1]])
                self._take(ring, cover, np.stack(shifts))

    def draw_single(self, budget: Budget) -> None:
        """Draw one assignment of each open part and change it until it is diverse, a few times."""
        for _ in range(EFFORT.single):
            records = np.flatnonzero(self.open)
            if not len(records):
                return
            cover = _restricted(self._cover, records)
            drawn = graphs.draw_matching(cover, self._rng)[None, :]
            sensitive = self._sensitive[records]
            found = exchanged(self._diversity, sensitive, cover, drawn, self._rng, budget)
            self._take(records, cover, found)

    def _take(self, records: Ints, cover: Cover, matchings: Ints) -> Ints:
        """Assign the parts in which all matchings are diverse; return those of the others.

        `records`: those of the open parts. `cover, matchings`: of these records, numbered from 0.
        """
        rows = RowsOfRecords.of(cover)
        lacking = np.zeros(len(records), np.bool_)
        for matching in matchings:
            lacking |= lacking_records(self._diversity, self._sensitive[records], rows, matching)
        part = self._part[records]
        poor = np.zeros(self._parts, np.bool_)
        poor[part[lacking]] = True
        done = ~poor[part]
        number = np.minimum(self._published[part], len(matchings) - 1)
        self.matching[records[done]] = records[matchings[number, np.arange(len(records))]][done]
        rank = np.cumsum(~done) - 1
        return rank[matchings[:, ~done]]


def _effective(cover: Cover) -> Cover:
    """Return the cover without the matches that lie in no assignment."""
    kept = effective_matches(cover)
    sizes = np.bincount(cover.owners[kept], minlength=cover.n)
    return Cover(np.concatenate([[0], np.cumsum(sizes)]), cover.members[kept])


def _restricted(cover: Cover, records: Ints) -> Cover:
    """Return the cover of some records, ascending, whose sets hold no others."""
    if len(records) == cover.n:
        return cover
    number = np.full(cover.n, -1, np.int64)
    number[records] = np.arange(len(records))
    kept = number[cover.owners] >= 0
    start = np.concatenate([[0], np.cumsum(cover.sizes[records])])
    return Cover(start, number[cover.members[kept]])  # type: ignore[arg-type]
