"""A chain of sub-problems for covers: freeform generalization and the notions weaker than it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.budget import Budget
from anonymip.errors import InputError, NoSolution
from anonymip.exact.chain.cover_carrying import carry_components
from anonymip.exact.chain.cover_windows import CoverPiece, CoverWindows, join_pieces
from anonymip.exact.chain.options import EXACT, ChainOptions
from anonymip.exact.chain.rest import reserved_seconds
from anonymip.exact.chain.state import Link
from anonymip.heuristics.orders import find_order
from anonymip.kernels import Stopwatch
from anonymip.models import formulations_of
from anonymip.problem import Problem
from anonymip.solution import Solution
from anonymip.status import Stopped


def chain_covers(
    problem: Problem,
    options: ChainOptions,
    *,
    order: str = "variance",
    budget: Budget | None = None,
    seed: int = 0,
) -> tuple[Solution, tuple[Link, ...]]:
    """Solve a problem of covers by a chain of small ones: Split & Carry, for other recodings [1]_.

    As with classes the records are put in order, and each sub-problem takes k S new ones and those
    carried into it. What a class is there, a component is here: records connected by their sets.
    Components without any of the last records of the sub-problem are settled; the others are
    carried, whole or cut, see :func:`~anonymip.exact.chain.cover_carrying.carry_components`. What
    is left of a component that is cut is solved anew.

    Parameters
    ----------
    problem
        With a recoding by covers: Freeform, OneK, KOne, KK or KConcealment, and an objective that
        ``freeform_mip`` takes, which solves the sub-problems.
    options
        Of the chain. The sub-solver ``"exact"`` is ``freeform_mip`` with the formulation that suits
        the problem; others are its formulations. Each starts from the better of what is carried
        into it, with rings of the new records, and of what the heuristics find.
    order
        Name of an order, see :func:`~anonymip.heuristics.orders.find_order`.
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
        If an option is wrong, or the sub-problems cannot be solved with this objective.
    SolverUnavailable
        If the solver is not installed.
    NoSolution
        If no cover keeps the rules, or time ended before one was found that does.
    """
    watch, budget = Stopwatch(), budget or Budget()
    _refuse_unfit(problem, options)
    records = find_order(problem, order, budget)
    formulation = "auto" if options.subsolver == EXACT else options.subsolver
    choices: dict[str, object] = {
        "formulation": formulation,
        "solver": options.solver,
        "gap": options.gap,
        "threads": options.threads,
        "solver_options": options.solver_options,
    }
    windows = CoverWindows.of(problem, records, choices, seed)
    left = budget.remaining()
    # What remains is for the records that are left, and for the checks.
    reserved = 0.0 if not left else min(0.5, reserved_seconds(problem) / left)
    chain = _CoverChain(windows, records, order, options, budget.share(1.0 - reserved))
    stopped = chain.run()
    told = {"order": order, **options.described()}
    return chain.solution(watch, told, stopped), tuple(chain.links)


def _refuse_unfit(problem: Problem, options: ChainOptions) -> None:
    """Refuse what only chains of classes know.

    Raises
    ------
    InputError
        If the sub-solver or another option does not fit.
    """
    name = problem.recoding.name
    known = (EXACT, "auto", *formulations_of(name), "assignment")
    if options.subsolver not in known:
        raise InputError(
            f"sub-solver {options.subsolver!r} of split-carry does not solve {name}",
            remedy=f"Use {', '.join(known)}",
        )
    usual = ChainOptions()
    for option in ("carry", "fixed", "chains"):
        if getattr(options, option) != getattr(usual, option):
            raise InputError(
                f"option {option} of split-carry is for classes, {name} has none",
                remedy="Leave it out, or use the recoding classes",
            )


@dataclass(eq=False)
class _CoverChain:
    """A chain at work; places are positions in the order."""

    windows: CoverWindows
    order: NDArray[np.int64]
    name: str
    options: ChainOptions
    budget: Budget
    settled: list[list[CoverPiece]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    whole: Solution | None = None
    quick: int = 0

    def __post_init__(self) -> None:
        n, chunk = len(self.order), self.options.S * self.windows.degree
        # A tail of fewer than k records joins the last chunk.
        tail = n % chunk
        ends = list(range(chunk, n + 1, chunk))
        if not ends or tail >= self.windows.degree:
            ends.append(n)
        ends[-1] = n
        self.ends = ends
        self.seconds = self.budget.remaining()

    def run(self) -> Stopped | None:
        """Solve link after link; return why the chain ended early, None if it did not."""
        places = np.empty(0, np.int64)
        pieces: list[CoverPiece] = []
        begin = 0
        for at, end in enumerate(self.ends):
            carried = len(places)
            places = np.concatenate([places, np.arange(begin, end)])
            begin = end
            stopped = self.budget.stop_reason()
            if stopped is None:
                budget, watch = self._share(at), Stopwatch()
                is_last = end == len(self.order)
                solved = self._solve(places, pieces, budget)
                while solved is None and is_last and self.settled and not self._is_over():
                    places, carried = self._take_back(places)
                    solved = self._solve(places, pieces, self.budget.share(1.0))
                if solved is not None:
                    places, pieces = self._settle(
                        places, carried, solved, budget, watch, is_last=is_last
                    )
                    self.budget.report("links", done=at + 1, total=len(self.ends))
                    continue
                stopped = self.budget.stop_reason()
                if stopped is None and is_last:
                    raise NoSolution(
                        "no cover of the whole table was found that keeps the rules",
                        remedy="Loosen a rule, or use another recoding",
                    )
            if stopped is not None:
                self._finish(np.concatenate([places, np.arange(end, len(self.order))]))
                return stopped
        return None

    def _is_over(self) -> bool:
        return self.budget.stop_reason() is not None

    def _share(self, at: int) -> Budget:
        """Return the budget of a link: an even share of the time, and what was left of it."""
        left = self.budget.remaining()
        if left is None or self.seconds is None:
            part = self.budget.share(1.0)
        else:
            even = self.seconds / len(self.ends)
            later = even * (len(self.ends) - at - 1)
            part = self.budget.renewed(
                max(min(left - later if self.options.pass_time else even, left), 1e-6)
            )
        # The progress within a link is none of the whole.
        part.progress = None
        return part

    def _solve(
        self, places: NDArray[np.int64], pieces: list[CoverPiece], budget: Budget
    ) -> Solution | None:
        try:
            return self.windows.solve(self.order[places], pieces, budget)
        except InputError as error:
            if not self.links:
                raise
            raise NoSolution(
                f"a sub-problem of {len(places)} records cannot be solved: {error.message}",
                remedy=error.remedy,
            ) from error

    def _take_back(self, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        """Return the places of the last link together with those that were settled last."""
        number = np.empty(len(self.order), np.int64)
        number[self.order] = np.arange(len(self.order))
        before = [number[piece.records] for piece in self.settled.pop()]
        taken = np.sort(np.concatenate([*before, places]))
        return taken, len(taken)

    def _settle(
        self,
        places: NDArray[np.int64],
        carried: int,
        solved: Solution,
        budget: Budget,
        watch: Stopwatch,
        *,
        is_last: bool,
    ) -> tuple[NDArray[np.int64], list[CoverPiece]]:
        """Settle what is settled; return the places carried on, and the pieces among them."""
        cover = cast(Cover, solved.assignment)
        found = CoverPiece(self.order[places], cover)
        settled, going, proven = [], [], solved.is_optimal
        gone: list[NDArray[np.int64]] = []
        if is_last:
            settled.append(found)
            if len(places) == len(self.order):
                self.whole = solved
        else:
            degree = self.windows.degree
            boundary = self.options.boundary_of(degree)
            most = self.options.S * degree + boundary
            carry = carry_components(cover, boundary, degree, most)
            settled.append(found.part(carry.settled))
            going = [found.part(component) for component in carry.whole]
            gone = list(carry.whole)
            for component in carry.cut:
                own = self.windows.solve(found.records[component.stay], [], budget)
                if own is None:
                    # What stays has no cover of its own under the rules: nothing goes.
                    both = np.sort(np.concatenate([component.stay, component.go]))
                    settled.append(found.part(both))
                    continue
                proven &= own.is_optimal
                stays = found.records[component.stay]
                settled.append(CoverPiece(stays, cast(Cover, own.assignment)))
                gone.append(component.go)
        self.settled.append(settled)
        self.links.append(
            Link(
                size=len(places),
                carried=carried,
                objective=solved.objective,
                bound=None if solved.bound is None else solved.bound.value,
                proven=proven,
                start_accepted=_start_accepted(solved),
                seconds=watch.seconds,
            )
        )
        on = np.sort(np.concatenate(gone)) if gone else np.empty(0, np.int64)
        return places[on], going

    def _finish(self, places: NDArray[np.int64]) -> None:
        """Cover what is left without taking time; the whole table if that alone is possible."""
        rest = np.sort(places)
        for chosen in (rest, np.arange(len(self.order))):
            cover = self.windows.cover_quickly(self.order[chosen], self.name)
            if cover is not None:
                if chosen is not rest:
                    self.settled.clear()
                self.settled.append([CoverPiece(self.order[chosen], cover)])
                self.quick = len(chosen)
                return
        raise NoSolution(
            "time ended before a cover was found that keeps the rules",
            remedy="Give it more time, or loosen a rule",
        )

    def _trace(self) -> tuple[str, ...]:
        trace = []
        if self.links:
            proven = sum(link.proven for link in self.links)
            largest = max(link.size for link in self.links)
            count = (
                f"{len(self.links):,} links of up to {largest} records, {proven:,} of them proven"
            )
            trace.append(f"{count}; a proof of a link says nothing of the whole table")
        starts = [link.start_accepted for link in self.links if link.start_accepted is not None]
        if starts:
            trace.append(f"the start was accepted in {sum(starts):,} of {len(starts):,} links")
        if self.quick:
            n = len(self.order)
            trace.append(f"time ended: {self.quick:,} of {n:,} records were covered fast")
        return tuple(trace)

    def solution(
        self, watch: Stopwatch, options: dict[str, object], stopped: Stopped | None
    ) -> Solution:
        """Return the checked cover of the whole table."""
        problem = self.windows.problem
        cover = join_pieces(problem.n, [piece for link in self.settled for piece in link])
        trace = self._trace()
        solution = Solution.of(
            problem,
            cover,
            method="split-carry",
            stopped=stopped or Stopped.HEURISTIC,
            options=options,
            seconds=watch.seconds,
            seed=self.windows.seed,
            trace=trace,
        )
        bound = None if self.whole is None else self.whole.bound
        return solution if bound is None else solution.with_bound(bound)


def _start_accepted(solved: Solution) -> bool | None:
    """Return whether the solver took the start, as the trace tells; None if it was not asked."""
    if "warm start accepted" in solved.trace:
        return True
    return False if "warm start not used" in solved.trace else None
