"""One link of a chain of covers after the other: what the engine of chains asks for."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import InputError, NoSolution
from anonymip.exact.failed_solver import has_failed
from anonymip.exact.split_carry.clock import ChainClock
from anonymip.exact.split_carry.freeform.cover_carrying import carry_components
from anonymip.exact.split_carry.freeform.cover_chain import CoverChain
from anonymip.exact.split_carry.freeform.cover_windows import LICENCE, CoverPiece, CoverWindows
from anonymip.exact.split_carry.options import ChainOptions
from anonymip.exact.split_carry.reporting import remarks_on_links
from anonymip.exact.split_carry.state import Link, reason_of
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped

#: A link gets so many seconds at least: with none left it keeps its start.
_LEAST = 1e-6


@dataclass(frozen=True, eq=False)
class _Step:
    """What a link makes of its places.

    Parameters
    ----------
    link
        How it went.
    fixed
        What it fixes.
    places, going
        The places carried over, and the sets that some of them are carried over with.
    bound
        Of the whole table, where the link holds all of it.
    """

    link: Link
    fixed: list[CoverPiece]
    places: NDArray[np.int64]
    going: list[CoverPiece]
    bound: Bound | None = None


@dataclass(eq=False)
class CoverLinks:
    """Solves the links of a chain of covers.

    Parameters
    ----------
    windows
        What is asked.
    chain
        Goes on in place.
    options
        How.
    budget
        Of all links.
    bound
        Of the whole table, where one link holds all of it.
    """

    windows: CoverWindows
    chain: CoverChain
    options: ChainOptions
    budget: Budget
    bound: Bound | None = None

    @property
    def done(self) -> bool:
        """Whether all records are fixed."""
        return self.chain.done

    @property
    def solved(self) -> int:
        """Number of links solved so far."""
        return len(self.chain.links)

    @property
    def expected(self) -> int:
        """Number of links that are expected in all; a window without a cover is none."""
        return self.solved + len(self.ends) - bisect_right(self.ends, self.chain.read)

    def advance(self, clock: ChainClock, amount: int) -> None:
        """Solve the next link, which takes in the next window while it has no cover.

        Raises
        ------
        InputError
            If objective or options do not fit.
        NoSolution
            If no cover of the whole table is found.
        """
        chain = self.chain
        places, begin = chain.places, chain.read
        for at in range(bisect_right(self.ends, begin), len(self.ends)):
            end = self.ends[at]
            carried = len(places)
            places = np.concatenate([places, np.arange(begin, end)])
            begin = end
            watch = Stopwatch()
            budget = clock.budget_of_link(_LEAST)
            assert budget is not None
            step = self._next(places, carried, budget)
            clock.spend(1, watch.seconds)
            if step is not None:
                chain.read, chain.places, chain.going = end, step.places, step.going
                chain.fixed.append(step.fixed)
                chain.links.append(step.link)
                self.bound = step.bound
                return
            if self.budget.stop_reason() is not None:
                return
        raise NoSolution(
            "no cover of the whole table was found that keeps the rules",
            remedy="Loosen a rule, or use another recoding",
        )

    @cached_property
    def ends(self) -> list[int]:
        """Places at which windows end; a tail of fewer than k records joins the last."""
        n, chunk = self.chain.n, self.options.S * self.windows.degree
        ends = list(range(chunk, n + 1, chunk))
        if not ends or n % chunk >= self.windows.degree:
            ends.append(n)
        return [*ends[:-1], n]

    def _next(self, places: NDArray[np.int64], carried: int, budget: Budget) -> _Step | None:
        """Solve the link of some places; None if they have no cover, or time ended before one.

        The last one takes back what was fixed last where it has no cover of its own.
        """
        watch, last = Stopwatch(), int(places[-1]) == self.chain.n - 1
        solved, back = self._solve(places, self.chain.going, budget), 0
        while solved is None and last and back < len(self.chain.fixed):
            if self.budget.stop_reason() is not None:
                return None
            back += 1
            again = np.sort(np.concatenate([self.chain.fixed_places(back), places]))
            carried = len(again)
            solved = self._solve(again, self.chain.going, self.budget.share(1.0))
            if solved is not None:
                places = again
        if solved is None:
            return None
        if back:
            del self.chain.fixed[-back:]
        return self._divided(places, carried, solved, budget, watch)

    def _solve(
        self, places: NDArray[np.int64], pieces: list[CoverPiece], budget: Budget
    ) -> Solution | None:
        try:
            return self.windows.solve(self.chain.records[places], pieces, budget)
        except InputError as error:
            if not self.chain.links:
                raise
            raise NoSolution(
                f"a sub-problem of {len(places)} records cannot be solved: {error.message}",
                remedy=error.remedy,
            ) from error

    def _divided(
        self,
        places: NDArray[np.int64],
        carried: int,
        solved: Solution,
        budget: Budget,
        watch: Stopwatch,
    ) -> _Step:
        """Return what is fixed of a solved window, and what is carried over."""
        found = CoverPiece(self.chain.records[places], cast(Cover, solved.assignment))
        fixed, going, reason = [], [], _reason(solved)
        gone: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        bound = None
        if int(places[-1]) == self.chain.n - 1:
            fixed.append(found)
            if len(places) == self.chain.n:
                bound = solved.bound
        else:
            degree = self.windows.degree
            boundary = self.options.boundary_of(degree)
            most = self.options.S * degree + boundary
            carry = carry_components(found.cover, boundary, degree, most)
            fixed.append(found.part(carry.fixed))
            going = [found.part(component) for component in carry.whole]
            gone += carry.whole
            for component in carry.cut:
                own = self.windows.solve(found.records[component.stay], [], budget)
                if own is None:
                    # What stays has no cover of its own under the rules: all of it is fixed.
                    both = np.sort(np.concatenate([component.stay, component.go]))
                    fixed.append(found.part(both))
                    continue
                reason = reason or _reason(own)
                stays = found.records[component.stay]
                fixed.append(CoverPiece(stays, cast(Cover, own.assignment)))
                gone.append(component.go)
        link = Link(
            size=len(places),
            carried=carried,
            objective=solved.objective,
            bound=None if solved.bound is None else solved.bound.value,
            proven=not reason,
            start_accepted=_start_accepted(solved),
            seconds=watch.seconds,
            reason=reason,
        )
        return _Step(link, fixed, places[np.sort(np.concatenate(gone))], going, bound)

    def finish(self, order: str) -> int:
        """Cover what is left without taking time; the whole table if that alone is possible.

        Returns how many records these are.
        """
        chain = self.chain
        rest = np.concatenate([chain.places, np.arange(chain.read, chain.n)])
        for chosen in (rest, np.arange(chain.n)):
            cover = self.windows.cover_quickly(chain.records[chosen], order)
            if cover is not None:
                if chosen is not rest:
                    chain.fixed.clear()
                chain.fixed.append([CoverPiece(chain.records[chosen], cover)])
                return len(chosen)
        raise NoSolution(
            "time ended before a cover was found that keeps the rules",
            remedy="Give it more time, or loosen a rule",
        )

    def solution(
        self,
        watch: Stopwatch,
        options: dict[str, object],
        stopped: Stopped | None,
        trace: list[str],
        quick: int,
    ) -> Solution:
        """Return the checked cover of the whole table, of which so many records had no link."""
        trace = [*trace, *remarks_on_links(self.chain.table)]
        if quick:
            ended = "interrupted" if stopped is Stopped.INTERRUPT else "time ended"
            trace.append(f"{ended}: {quick:,} of {self.chain.n:,} records were covered fast")
        solution = Solution.of(
            self.windows.problem,
            self.chain.cover(),
            method="split-carry",
            stopped=stopped or Stopped.HEURISTIC,
            options=options,
            seconds=watch.seconds,
            seed=self.windows.seed,
            trace=tuple(trace),
        )
        return solution if self.bound is None else solution.with_bound(self.bound)


def _reason(solved: Solution) -> str:
    """Return what kept a sub-problem from a proof; empty if it is proven."""
    if LICENCE in solved.trace:
        return "licence"
    if has_failed(solved):
        return "failed"
    return "" if solved.is_optimal else reason_of(solved.status.stopped.value)


def _start_accepted(solved: Solution) -> bool | None:
    """Return whether the solver took the start, by its remarks; None if it was not asked."""
    if "warm start accepted" in solved.trace:
        return True
    return False if "warm start not used" in solved.trace else None
