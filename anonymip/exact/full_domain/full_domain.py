"""The best levels of a full-domain generalization, by a search of the lattice of levels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anonymip.errors import NoSolution
from anonymip.exact.full_domain.lattice import LevelLattice, Place
from anonymip.problem import Problem
from anonymip.recodings.full_domain import FullDomain
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped


def full_domain(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Find the levels of least loss among all that the problem allows.

    Parameters
    ----------
    problem
        With full-domain generalization as its recoding.
    budget
        When it ends, the best levels found are returned, with the bound of those not looked at.
    seed
        Not used: nothing is drawn.

    Notes
    -----
    The place with the least lower bound is either excluded or judged, until no bound is below the
    loss of the best release. To exclude it, a chain of places above it is halved for the highest
    one that does so, as in [1]_: a place where too many records are left alone excludes all below
    it. Bounds sharpen what tagging of k-anonymous places knows, so that releases with suppressed
    records are told apart as well; the proof is that of
    :class:`~anonymip.exact.full_domain.lattice.LevelLattice`. Losses that are no sum over
    attributes have no bounds: every place that is not excluded by a rule is judged.

    Complexity: O(P (t m + P)) for P places and t distinct rows at worst; of the places a few per
    cent are judged, as a rule.

    References
    ----------
    .. [1] F. Kohlmayer, F. Prasser, C. Eckert, A. Kemper, K. A. Kuhn: Flash: Efficient, Stable and
       Optimal K-Anonymity, PASSAT 2012.

    Raises
    ------
    InputError
        If the problem asks for another recoding, or has too many combinations of levels.
    NoSolution
        If no levels are allowed, or none were found within the budget.
    """
    watch, budget = Stopwatch(), budget or Budget()
    search = _Search(LevelLattice(problem))
    lattice, stopped = search.lattice, Stopped.OPTIMAL
    search.judge(lattice.top)
    while True:
        place = lattice.lowest()
        least = float(lattice.bounds[place])
        if least >= search.loss:
            break
        reason = budget.stop_reason()
        if reason is not None:
            stopped = reason
            break
        search.settle(place)
        budget.report(
            "searching the lattice of levels",
            done=len(search.judged),
            incumbent=search.loss if search.best is not None else None,
            bound=least if np.isfinite(least) else None,
        )
    return _answer(problem, search, min(least, search.loss), stopped, watch.seconds)


@dataclass(eq=False)
class _Search:
    """The best place so far."""

    lattice: LevelLattice
    best: Place | None = None
    loss: float = np.inf
    judged: set[Place] = field(default_factory=set)

    def judge(self, place: Place) -> None:
        """Judge a place, once."""
        if place in self.judged:
            return
        self.judged.add(place)
        loss = self.lattice.judge(place)
        if loss < self.loss:
            self.best, self.loss = place, loss

    def settle(self, place: Place) -> None:
        """Exclude a place by one above it, the highest of a chain that can, or judge it."""
        chain = self.lattice.chain(place)
        low, high = 0, len(chain) - 1
        while low <= high:
            middle = (low + high) // 2
            self.judge(chain[middle])
            if self.lattice.bounds[place] >= self.loss:
                low = middle + 1
            else:
                high = middle - 1


def _answer(
    problem: Problem, search: _Search, least: float, stopped: Stopped, seconds: float
) -> Solution:
    recoding = problem.recoding
    assert isinstance(recoding, FullDomain)
    if search.best is None:
        most = recoding.limit(problem.n)
        if stopped is Stopped.OPTIMAL:
            raise NoSolution(
                f"no levels leave at most {most} records to be suppressed",
                remedy="Allow more suppressed records, or ask for less diversity",
            )
        raise NoSolution(
            f"no levels were found before the search stopped ({stopped.value})",
            remedy="Give it more time",
        )
    size = int(np.prod(search.lattice.shape))
    bound = Bound(least, "full-domain", "argument", seconds) if np.isfinite(least) else None
    return Solution.of(
        problem,
        recoding.assignment(problem, search.lattice.levels(search.best)),
        method="full-domain",
        bound=bound,
        stopped=stopped,
        seconds=seconds,
        trace=(f"{len(search.judged):,} of {size:,} combinations of levels were judged",),
    )
