"""Sub-problems of a chain of covers: what is asked of some of the records, and its solution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import (
    InputError,
    InvalidAssignment,
    LicenceLimit,
    NoSolution,
    SolverError,
)
from anonymip.exact.freeform.freeform_mip import freeform_mip
from anonymip.exact.freeform.pair_assignment import pair_obstacle
from anonymip.exact.freeform.warm_starts import begin_freeform
from anonymip.heuristics.freeform.ring import ring
from anonymip.heuristics.freeform.rings.diverse_rings import diverse_ring
from anonymip.heuristics.freeform.rings.ring_sets import reciprocal_degree, ring_degree, ring_sets
from anonymip.heuristics.freeform.sort_greedy import sort_greedy
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution

#: Remark on a window without a solver.
LICENCE = "the model is above the size of the solver's licence: the start is kept"

#: Formulations that solve pairs without a solver where they can.
_BY_PAIRS = ("auto", "assignment")


@dataclass(frozen=True, eq=False)
class CoverPiece:
    """A cover of some records, none of whose sets holds another record.

    Parameters
    ----------
    records
        Which they are.
    cover
        Their sets; record i of the cover is ``records[i]``.
    """

    records: NDArray[np.int64]
    cover: Cover

    def part(self, places: NDArray[np.int64]) -> CoverPiece:
        """Return the piece of some of its records, given by place and closed by themselves."""
        number = np.full(self.cover.n, -1, np.int64)
        number[places] = np.arange(len(places))
        sets = [number[self.cover.of_record(place)] for place in places]
        return CoverPiece(self.records[places], Cover.of(sets))


def join_pieces(n: int, pieces: Iterable[CoverPiece]) -> Cover:
    """Return the cover of n records that the pieces are together; no set for others."""
    return Cover.joined(n, ((piece.records, piece.cover) for piece in pieces))


@dataclass(frozen=True, eq=False)
class CoverWindows:
    """A problem of covers that is solved by the window; made by :meth:`of`.

    Parameters
    ----------
    problem
        With a recoding by covers.
    degree
        Records that the largest set asked for has.
    exact_degrees
        Whether all windows need sets of the very same sizes, and would else choose for themselves.
    solver_choices
        Further arguments of ``freeform_mip``.
    seed
        Of heuristics and solver.
    """

    problem: Problem
    degree: int
    exact_degrees: bool
    solver_choices: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0

    @classmethod
    def of(
        cls,
        problem: Problem,
        order: NDArray[np.int64],
        solver_choices: Mapping[str, object],
        seed: int,
    ) -> CoverWindows:
        """Return the windows of a problem.

        A regular cover of the whole has sets of one size. Where sets are to be reciprocal or
        diverse a window might do best with larger ones than another, so all get the size of a ring
        through the whole table: k wherever there is one.

        Raises
        ------
        NoSolution
            If there is no such ring.
        """
        recoding, degree = problem.recoding, problem.k
        exact = False
        if isinstance(recoding, Freeform):
            if recoding.degrees is not None:
                degree = max(recoding.degrees)
            elif recoding.reciprocal or problem.diversity is not None:
                degree, exact = _ring_size(problem, order), True
        return cls(problem, degree, exact, solver_choices, seed)

    def ask(self, records: NDArray[np.int64]) -> Problem | None:
        """Return the problem of some records; None if they cannot have what is asked for.

        All records are asked for what the whole problem asks for, whatever sets that needs.
        """
        problem = self.problem
        if len(records) == problem.n:
            return problem.replace(microdata=problem.microdata.take(records), **self._own(records))
        changes = self._own(records)
        if self.exact_degrees:
            assert isinstance(problem.recoding, Freeform)
            degrees = (self.degree,) * len(records)
            changes = {"k": self.degree, "recoding": Freeform(problem.recoding.reciprocal, degrees)}
        try:
            return problem.replace(microdata=problem.microdata.take(records), **changes)
        except InputError:
            # Too few records for their degrees, or not diverse as a whole.
            return None

    def _own(self, records: NDArray[np.int64]) -> dict[str, object]:
        """Return what a problem of some records asks for otherwise: its own part of degrees."""
        recoding = self.problem.recoding
        if not isinstance(recoding, Freeform) or recoding.degrees is None:
            return {}
        degrees = tuple(np.array(recoding.degrees)[records].tolist())
        return {"recoding": Freeform(recoding.reciprocal, degrees)}

    def solve(
        self, records: NDArray[np.int64], pieces: Iterable[CoverPiece], budget: Budget
    ) -> Solution | None:
        """Return the best cover of some records, or the best found in time.

        Parameters
        ----------
        records
            In their order.
        pieces
            Covers of some of them to start from; the other records are put into rings.
        budget
            When it ends, the better of the start and a heuristic's cover is the result.

        Returns
        -------
        Solution | None
            None if there is no cover, or none was found.

        Raises
        ------
        InputError
            If objective or options do not fit.
        """
        asked = self.ask(records)
        if asked is None:
            return None
        formulation = self.solver_choices.get("formulation", "auto")
        start = None
        if formulation not in _BY_PAIRS or pair_obstacle(asked) is not None:
            start = self._begin(asked, records, pieces, budget)
        try:
            return freeform_mip(
                asked,
                start=None if start is None else start.assignment,
                budget=budget,
                seed=self.seed,
                **self.solver_choices,  # type: ignore[arg-type]
            )
        except LicenceLimit:
            if start is None:
                start = self._begin(asked, records, pieces, budget)
            return None if start is None else replace(start, trace=(LICENCE,))
        except (NoSolution, SolverError):
            return None

    def _begin(
        self,
        asked: Problem,
        records: NDArray[np.int64],
        pieces: Iterable[CoverPiece],
        budget: Budget,
    ) -> Solution | None:
        """Return the better of what is carried over and a heuristic's cover; None without one."""
        best, _ = begin_freeform(asked, "best", None, self.seed, budget)
        carried = self._carried_start(records, pieces)
        if carried is None:
            return best
        try:
            other = Solution.of(asked, carried, method="start")
        except InvalidAssignment:
            return best
        return other if best is None or other.objective < best.objective else best

    def _carried_start(
        self, records: NDArray[np.int64], pieces: Iterable[CoverPiece]
    ) -> Cover | None:
        """Return the pieces carried over, with rings of the other records as they follow."""
        recoding = self.problem.recoding
        if isinstance(recoding, Freeform) and recoding.degrees is not None:
            return None
        place = np.full(self.problem.n, -1, np.int64)
        place[records] = np.arange(len(records))
        loose = np.ones(len(records), np.bool_)
        parts = []
        for piece in pieces:
            at = place[piece.records]
            loose[at] = False
            parts.append(CoverPiece(at, piece.cover))
        rest = np.flatnonzero(loose)
        if len(rest):
            if len(rest) < self.degree:
                return None
            reciprocal = isinstance(recoding, Freeform) and recoding.reciprocal
            starts = np.arange(len(rest) // self.degree) * self.degree
            own = ring_sets(np.arange(len(rest)), starts, self.degree, reciprocal)
            parts.append(CoverPiece(rest, Cover.of(own)))
        return join_pieces(len(records), parts)

    def cover_quickly(self, records: NDArray[np.int64], order: str) -> Cover | None:
        """Return a cover of some records that takes hardly any time; None if none is found."""
        asked = self.ask(records)
        if asked is None:
            return None
        if not isinstance(asked.recoding, Freeform):
            # A regular cover obeys every weaker notion.
            asked = asked.replace(recoding=Freeform())
        ended = Budget.of(1e-9)
        for heuristic in (ring, sort_greedy):
            try:
                options = {"order": order} if heuristic is ring else {}
                found = heuristic(asked, budget=ended, seed=self.seed, **options)
            except (NoSolution, InputError):
                continue
            assert isinstance(found.assignment, Cover)
            return found.assignment
        return None


def _ring_size(problem: Problem, order: NDArray[np.int64]) -> int:
    degree, reciprocal = ring_degree(problem, "split-carry")
    if problem.diversity is not None:
        degree = diverse_ring(problem, order, degree, "split-carry")[1]
    if reciprocal:
        degree = reciprocal_degree(problem, degree, problem.n, problem.n % 2 == 1)
    return degree
