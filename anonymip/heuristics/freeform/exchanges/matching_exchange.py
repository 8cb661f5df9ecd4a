"""Lower the loss of a regular cover: take a whole matching out and assign it again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.errors import UnsupportedObjective
from anonymip.graphs import random_matchings
from anonymip.graphs.weighted.assignment import assign
from anonymip.heuristics.freeform.set_growth import (
    SetStates,
    fill_weights,
    new_states,
    new_table,
    rebuild,
)
from anonymip.heuristics.freeform.set_terms import SetTerms, set_terms
from anonymip.problem import Problem
from anonymip.problem_rules import are_diverse, losses_within_limits
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_ABSOLUTE

#: Most records for which a loss without tables is computed for all pairs.
LARGEST_UNTABLED = 1_000
#: Most records for which the costs are kept in double precision.
_LARGEST_DOUBLE = 2_000
#: In single precision a gain must be more than rounding.
_LEAST_SINGLE = 1e-4


@dataclass(frozen=True, eq=False)
class MatchingExchange:
    """The exchange of whole matchings of regular covers of one problem.

    Parameters
    ----------
    problem
        What is asked.
    terms, states
        Of its loss; None where it has no tables.
    costs
        (n, n) memory of the cost of each set with each original.
    rng
        Draws the decompositions.
    """

    problem: Problem
    terms: SetTerms | None
    states: SetStates | None
    costs: NDArray[np.floating]
    rng: np.random.Generator

    @classmethod
    def of(cls, problem: Problem, degree: int, rng: np.random.Generator) -> MatchingExchange:
        """Return the exchange for covers of a degree.

        Raises
        ------
        UnsupportedObjective
            If the objective has no tables and there are too many records for all pairs.
        """
        n = problem.n
        precision = np.float64 if n <= _LARGEST_DOUBLE else np.float32
        costs: NDArray[np.floating] = np.empty((n, n), precision)
        if problem.compiled.has_tables:
            terms = set_terms(problem)
            return cls(problem, terms, new_states(terms, degree), costs, rng)
        if n > LARGEST_UNTABLED:
            raise UnsupportedObjective(
                f"objective {problem.objective.name!r} has no tables, and {n} records are too many "
                "to compute it for all pairs",
                remedy=f"Use parts of at most {LARGEST_UNTABLED} records",
            )
        return cls(problem, None, None, costs, rng)

    def run_pass(self, cover: Cover, budget: Budget) -> tuple[Cover, float, Stopped | None]:
        """Draw a decomposition of a cover and assign each of its matchings again.

        Parameters
        ----------
        cover
            Regular.
        budget
            Asked between the matchings.

        Returns
        -------
        cover
            With every record in its own set, though not in the set that was its own before: a set
            costs the same whoever is published with it.
        gain
            By how much the sum of the losses has fallen, at least 0.
        stopped
            Why the pass ended early, if it did.
        """
        degree = int(cover.sizes[0])
        matchings = random_matchings(cover, degree, self.rng)
        sets = np.ascontiguousarray(matchings.T)
        gain, duals, stopped = 0.0, None, None
        for column in range(degree):
            stopped = self._fill_costs(sets, column, budget)
            if stopped is None:
                # The duals of one matching are nearly those of the next.
                chosen, duals, stopped = assign(self.costs, budget, duals=duals)
            if stopped is not None:
                break
            gain += self._exchange(sets, column, chosen)
        owned = np.empty_like(sets)
        owned[sets[:, 0]] = sets
        return Cover.of(np.sort(owned, axis=1)), gain, stopped

    def _exchange(self, sets: NDArray[np.int32], column: int, chosen: NDArray[np.int64]) -> float:
        """Replace one matching, cycle by cycle where that gains and keeps the diversity."""
        everyone = np.arange(len(sets))
        before = sets[:, column].copy()
        gains = self.costs[everyone, before].astype(np.float64)
        gains -= self.costs[everyone, chosen]
        after = sets.astype(np.int64)
        after[:, column] = chosen
        allowed = are_diverse(self.problem, after)
        cycles = _cycles(before, chosen)
        total = np.bincount(cycles, gains)
        spoiled = np.bincount(cycles[~allowed], minlength=len(total)) > 0
        least = LOSS_ABSOLUTE if self.costs.dtype == np.float64 else _LEAST_SINGLE
        taken = ((total > least) & ~spoiled)[cycles]
        sets[taken, column] = chosen[taken]
        return float(gains[taken].sum())

    def _fill_costs(self, sets: NDArray[np.int32], column: int, budget: Budget) -> Stopped | None:
        """Write what each set without one matching costs with each original in addition."""
        rest = np.delete(sets, column, axis=1)
        terms, states = self.terms, self.states
        if terms is None or states is None:
            return self._fill_by_batches(rest, budget)
        cursor, table = np.zeros(1, np.int64), new_table(terms)
        everyone = np.empty(0, np.int64)

        def step(amount: int) -> int:
            done = _fill_step(terms, states, rest, everyone, table, self.costs, cursor, amount)
            return int(done)

        return run_in_steps(step, len(sets), budget, "weighing matches", first=200)

    def _fill_by_batches(self, rest: NDArray[np.int32], budget: Budget) -> Stopped | None:
        n, size = len(rest), rest.shape[1] + 1
        shared = size if self.problem.compiled.aggregate == "sum" else 1
        for i in range(n):
            stopped = budget.stop_reason()
            if stopped is not None:
                return stopped
            others = np.ones(n, np.bool_)
            others[rest[i]] = False
            rows = np.empty((n - size + 1, size), np.int64)
            rows[:, :-1], rows[:, -1] = rest[i], np.flatnonzero(others)
            self.costs[i] = np.inf
            self.costs[i, others] = losses_within_limits(self.problem, rows) / shared
        return None


@kernel
def _fill_step(
    terms: SetTerms,
    states: SetStates,
    rest: NDArray[np.int32],
    everyone: NDArray[np.int64],
    table: NDArray[np.float64],
    costs: NDArray[np.floating],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Write the costs of the next `amount` sets."""
    n = len(rest)
    for i in range(cursor[0], min(cursor[0] + amount, n)):
        rebuild(terms, states, i, rest[i])
        fill_weights(terms, states, i, everyone, table, costs[i])
        for at in range(rest.shape[1]):
            costs[i, rest[i, at]] = np.inf
        cursor[0] = i + 1
    return cursor[0]


def _cycles(before: NDArray[np.int32], after: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (n,) numbers of the groups of sets that exchange originals among themselves."""
    owner = np.empty(len(before), np.int64)
    owner[before] = np.arange(len(before))
    # The least set number on each cycle, by doubling the steps.
    step, least = owner[after], np.arange(len(before))
    while True:
        lower = np.minimum(least, least[step])
        step = step[step]
        if np.array_equal(lower, least) and np.array_equal(least[owner[after]], least):
            return np.unique(least, return_inverse=True)[1].astype(np.int64).ravel()
        least = lower
