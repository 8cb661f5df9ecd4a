"""A chain of sub-problems for covers: freeform generalization and the notions weaker than it.

One file, since its steps fill in, for covers, the one engine that drives chains.
"""

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
from anonymip.exact.split_carry.checkpoint import Checkpoint
from anonymip.exact.split_carry.clock import ChainClock
from anonymip.exact.split_carry.driving import drive_chain
from anonymip.exact.split_carry.freeform.cover_carrying import carry_components
from anonymip.exact.split_carry.freeform.cover_chain import CoverChain, resumed_covers
from anonymip.exact.split_carry.freeform.cover_windows import LICENCE, CoverPiece, CoverWindows
from anonymip.exact.split_carry.keeping import Keeper
from anonymip.exact.split_carry.options import EXACT, ChainOptions
from anonymip.exact.split_carry.reporting import tell_links
from anonymip.exact.split_carry.rest import MachineClock, links_budget
from anonymip.exact.split_carry.state import Link, reason_of
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped

#: A link gets so many seconds at least: with none left it keeps its start.
_LEAST = 1e-6


def chain_covers(
    problem: Problem,
    options: ChainOptions,
    checkpoint: Checkpoint | None = None,
    *,
    order: str = "variance",
    budget: Budget | None = None,
    seed: int = 0,
) -> tuple[Solution, tuple[Link, ...]]:
    """Solve a problem of covers by a chain of small ones: Split & Carry, for other recodings [1]_.

    As with classes the records are put in order, and each sub-problem takes k S new ones and those
    carried into it. What a class is there, a component is here: records connected by their sets.
    Components without any of the last records of the sub-problem are fixed; the others are
    carried over, whole or cut, see
    :func:`~anonymip.exact.split_carry.freeform.cover_carrying.carry_components`. What is left of a
    component that is cut is solved again.

    Parameters
    ----------
    problem
        With a recoding by covers: Freeform, OneK, KOne, KK or KConcealment, and an objective that
        ``freeform_mip`` takes, which solves the sub-problems.
    options
        Of the chain. The sub-solver ``"exact"`` is ``freeform_mip`` with the formulation that suits
        the problem; others are its formulations. Each starts from the better of what is carried
        into it, with rings of the new records, and of what the heuristics find.
    checkpoint
        Where the chain is kept, and where it goes on from.
    order
        Name of an order, see :func:`~anonymip.orders.orders.find_order`.
    budget
        Its time is divided evenly among the sub-problems. When it ends, the records left are put
        into a ring.
    seed
        Of heuristics and solver.

    Returns
    -------
    tuple of Solution and links
        With a bound only where one sub-problem was the whole problem.

    Notes
    -----
    Where records have degrees of their own, the largest takes the place of k. Under rules a
    sub-problem may have no cover: it then takes in the next chunk, and at the end of the table what
    was settled last. Where sets are to be reciprocal or diverse all have the size that a reciprocal
    or diverse ring through the table has, which may be above k.

    Sub-problems by sets (freeform, summed, without rules) and of pairs take milliseconds; the model
    of matches that all others need may take long for a dozen records, so give it a time limit.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security 93,
       2020, Sections 3.1 and 5.

    Raises
    ------
    InputError
        If an option is wrong, the sub-problems cannot be solved with this objective, or there is
        no going on from the checkpoint.
    SolverUnavailable
        If the solver is not installed.
    NoSolution
        If no cover keeps the rules, or time ended before one was found that does.
    """
    watch, budget, clock = Stopwatch(), budget or Budget(), MachineClock()
    _refuse_unfit(problem, options)
    kept = resumed_covers(checkpoint, problem.n)
    chain = CoverChain(find_order(problem, order, budget)) if kept is None else kept
    before = len(chain.links)
    formulation = "auto" if options.subsolver == EXACT else options.subsolver
    choices: dict[str, object] = {
        "formulation": formulation,
        "solver": options.solver,
        "gap": options.gap,
        "threads": options.threads,
        "solver_options": options.solver_options,
    }
    windows = CoverWindows.of(problem, chain.records, choices, seed)
    share = links_budget(problem, budget, clock)
    links = CoverLinks(windows, chain, options, share)
    stopped = None
    if not chain.done:
        stopped = drive_chain(links, options, share, Keeper(checkpoint, chain, share))
    quick = 0 if stopped is None else links.finish(order)
    described = {"order": order, **options.described()}
    remarks = [] if kept is None else [f"went on behind {before:,} links of an earlier run"]
    return links.solution(watch, described, stopped, remarks, quick), tuple(chain.links)


def _refuse_unfit(problem: Problem, options: ChainOptions) -> None:
    """Refuse what only chains of classes know.

    Raises
    ------
    InputError
        If the sub-solver or another option does not fit.
    """
    name = problem.recoding.name
    options.refuse_subsolver(name, "assignment")
    usual = ChainOptions()
    for option in ("carry", "fixed", "chains"):
        if getattr(options, option) != getattr(usual, option):
            raise InputError(
                f"option {option} of split-carry is for classes, {name} has none",
                remedy="Leave it out, or use the recoding classes",
            )


@dataclass(frozen=True, eq=False)
class _Step:
    """What a link makes of its places.

    Parameters
    ----------
    link
        How it went.
    settled
        What it settles.
    places, going
        The places that go on, and the sets that some of them go on with.
    bound
        Of the whole table, where the link holds all of it.
    """

    link: Link
    settled: list[CoverPiece]
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

    @property
    def loss(self) -> None:
        """Not known: the losses of links are those of what is carried over as well."""
        return

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
                chain.settled.append(step.settled)
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

        The last one takes back what was settled last where it has no cover of its own.
        """
        watch, last = Stopwatch(), int(places[-1]) == self.chain.n - 1
        solved, back = self._solve(places, self.chain.going, budget), 0
        while solved is None and last and back < len(self.chain.settled):
            if self.budget.stop_reason() is not None:
                return None
            back += 1
            again = np.sort(np.concatenate([self.chain.settled_places(back), places]))
            carried = len(again)
            solved = self._solve(again, self.chain.going, self.budget.share(1.0))
            if solved is not None:
                places = again
        if solved is None:
            return None
        if back:
            del self.chain.settled[-back:]
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
        """Return what is settled of a solved window, and what goes on."""
        found = CoverPiece(self.chain.records[places], cast(Cover, solved.assignment))
        settled, going, reason = [], [], _reason(solved)
        gone: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        bound = None
        if int(places[-1]) == self.chain.n - 1:
            settled.append(found)
            if len(places) == self.chain.n:
                bound = solved.bound
        else:
            degree = self.windows.degree
            boundary = self.options.boundary_of(degree)
            most = self.options.S * degree + boundary
            carry = carry_components(found.cover, boundary, degree, most)
            settled.append(found.part(carry.settled))
            going = [found.part(component) for component in carry.whole]
            gone += carry.whole
            for component in carry.cut:
                own = self.windows.solve(found.records[component.stay], [], budget)
                if own is None:
                    # What stays has no cover of its own under the rules: nothing goes.
                    both = np.sort(np.concatenate([component.stay, component.go]))
                    settled.append(found.part(both))
                    continue
                reason = reason or _reason(own)
                stays = found.records[component.stay]
                settled.append(CoverPiece(stays, cast(Cover, own.assignment)))
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
        return _Step(link, settled, places[np.sort(np.concatenate(gone))], going, bound)

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
                    chain.settled.clear()
                chain.settled.append([CoverPiece(chain.records[chosen], cover)])
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
        trace = [*trace, *tell_links(self.chain.table)]
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
    """Return whether the solver took the start, as the trace tells; None if it was not asked."""
    if "warm start accepted" in solved.trace:
        return True
    return False if "warm start not used" in solved.trace else None
