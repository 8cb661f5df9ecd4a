"""Covers that take little time: what a freeform method falls back on when it is cut off."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from anonymip.assignments import Assignment
from anonymip.errors import InputError, NoSolution
from anonymip.heuristics.freeform.nh import nh
from anonymip.heuristics.freeform.ring import ring
from anonymip.problem import Problem
from anonymip.recodings import Freeform
from anonymip.runtime.budget import Budget
from anonymip.solution import Solution
from anonymip.status import Stopped

#: Records of a part of the start; the work grows with the part, not with the table.
_PART = 1_000
#: Share of the time that a method works before it finds a start.
_BEGIN = 1 / 3
#: Share of the time left that the start may take.
_SHARE = 0.8
#: Seconds that must be left for each record: setting up many parts takes time, however little is
#: left.
_SECONDS_A_RECORD = 5e-5


@dataclass
class StartingBudget(Budget):
    """A budget that has a cheap start found once, when a third of its time is spent.

    Parameters
    ----------
    find_start
        Finds the start; called from where the budget is asked.
    """

    find_start: Callable[[], None] | None = None
    _moment: float = math.inf

    @classmethod
    def around(cls, budget: Budget, find_start: Callable[[], None]) -> StartingBudget:
        """Return a budget with the limits, the listener and the interrupt of another."""
        left = budget.remaining()
        moment = math.inf if left is None else time.monotonic() + left * _BEGIN
        return cls(
            budget.deadline,
            budget.progress,
            budget._interrupted,
            budget._whole,
            find_start,
            moment,
        )

    def stop_reason(self) -> Stopped | None:
        """Return why to stop now, or None to go on."""
        if self.find_start is not None and time.monotonic() >= self._moment:
            find_start, self.find_start = self.find_start, None
            find_start()
        return super().stop_reason()


def cheapest_start(
    problem: Problem,
    method: str,
    reciprocal: bool,
    budget: Budget,
    sort_greedy: Callable[..., Solution],
) -> tuple[Assignment, float, str] | None:
    """Return the best of some covers that take little time, its loss, and where it is from.

    Rings along a Hilbert curve and in lexicographic partitions; if time is left, SortGreedy on the
    table in parts.

    Parameters
    ----------
    problem
        With freeform covers.
    method
        What is cut off: SortGreedy is no start of itself on tables that need no parts.
    reciprocal
        Whether the covers are to be reciprocal.
    budget
        What is left of the time.
    sort_greedy
        The method of that name; it makes its rounds here too, and so it is handed in.

    Notes
    -----
    Complexity: O(n log n + n k), and what the budget allows for SortGreedy.
    """
    recoding = problem.recoding
    assert isinstance(recoding, Freeform)
    asked = problem.replace(recoding=Freeform(reciprocal, recoding.degrees))
    runs: list[tuple[str, Callable[[], Solution]]] = [
        ("a ring along the Hilbert curve", lambda: ring(asked)),
        ("a ring in each partition", lambda: nh(asked)),
    ]
    left, whole = budget.remaining(), problem.n <= _PART
    if left is None or left < _SECONDS_A_RECORD * problem.n or budget.is_interrupted:
        pass
    elif not whole and int(recoding.sizes(problem).max()) * 2 <= _PART:
        runs.append(
            (
                f"sort-greedy in parts of {_PART}",
                lambda: sort_greedy(
                    asked, part=_PART, jobs=1, budget=_silent(budget.share(_SHARE))
                ),
            )
        )
    elif whole and method != "sort-greedy":
        runs.append(
            ("sort-greedy", lambda: sort_greedy(asked, budget=_silent(budget.share(_SHARE))))
        )
    best: tuple[Assignment, float, str] | None = None
    for name, run in runs:
        try:
            cover = run().assignment
        except (InputError, NoSolution):
            continue  # rings have one size and look at no limits
        loss = problem.compiled.total(problem.recoding.describe(problem, cover), cover)
        if best is None or loss < best[1]:
            best = cover, loss, name
    return best


def _silent(budget: Budget) -> Budget:
    """Return the budget without its listener: progress of the start is not that of the method."""
    budget.progress = None
    return budget
