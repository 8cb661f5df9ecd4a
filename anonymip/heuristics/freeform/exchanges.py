"""Exchanges that lower the loss of a cover: of whole matchings, or one original of two sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonymip.assignments import Cover
from anonymip.errors import UnsupportedObjective
from anonymip.graphs import random_matchings
from anonymip.graphs.weighted.assignment import assign
from anonymip.heuristics.freeform.rounds.growing_cover import GrowingCover, covers, replace
from anonymip.heuristics.freeform.set_growth import (
    NUMBERS,
    SetStates,
    fill_weights,
    losses_with_each,
    new_states,
    new_table,
    rebuild,
    set_loss,
    set_terms,
)
from anonymip.problem import Problem, are_diverse
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_over
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_ABSOLUTE


@dataclass(frozen=True, eq=False)
class MatchingExchange:
    """The exchange of whole matchings of regular covers of one problem.

    `states`: of the sets, for its loss; None where it has no tables. `costs`: (n, n) memory of the
    cost of each set with each original. `rng`: draws the decompositions.
    """

    problem: Problem
    states: SetStates | None
    costs: NDArray[np.floating]
    rng: np.random.Generator

    @classmethod
    def of(cls, problem: Problem, degree: int, rng: np.random.Generator) -> MatchingExchange:
        """Return the exchange for covers of a degree.

        Raises UnsupportedObjective if the objective has no tables and there are too many records
        for all pairs.
        """
        n = problem.n
        precision = np.float64 if n <= NUMBERS.double else np.float32
        costs: NDArray[np.floating] = np.empty((n, n), precision)
        if problem.compiled.has_tables:
            return cls(problem, new_states(set_terms(problem), degree), costs, rng)
        if n > NUMBERS.untabled:
            raise UnsupportedObjective(
                f"objective {problem.objective.name!r} has no tables, and {n} records are too many "
                "to compute it for all pairs",
                remedy=f"Use parts of at most {NUMBERS.untabled} records",
            )
        return cls(problem, None, costs, rng)

    def run_pass(self, cover: Cover, budget: Budget) -> tuple[Cover, float, Stopped | None]:
        """Draw a decomposition of a regular cover and assign each of its matchings again.

        Returns: a cover with every record in its own set, though not in the set that was its own
        before: a set costs the same whoever is published with it; by how much the sum of the losses
        has fallen, at least 0; why the pass ended early, if it did.
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

    def _exchange(self, sets: Codes, column: int, chosen: Ints) -> float:
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
        least = LOSS_ABSOLUTE if self.costs.dtype == np.float64 else NUMBERS.least_single
        taken = ((total > least) & ~spoiled)[cycles]
        sets[taken, column] = chosen[taken]
        return float(gains[taken].sum())

    def _fill_costs(self, sets: Codes, column: int, budget: Budget) -> Stopped | None:
        """Write what each set without one matching costs with each original in addition."""
        rest = np.delete(sets, column, axis=1)
        states = self.states
        if states is None:
            for i in range(len(rest)):
                stopped = budget.stop_reason()
                if stopped is not None:
                    return stopped
                self.costs[i] = losses_with_each(self.problem, rest[i])
            return None
        step = partial(_fill_costs, states, rest, new_table(states.terms), self.costs)
        return run_over(step, len(sets), budget, "weighing matches", first=200)


@kernel
def _fill_costs(
    states: SetStates,
    rest: Codes,
    table: Floats,
    costs: NDArray[np.floating],
    begin: int,
    end: int,
) -> None:
    """Write the costs of some sets."""
    for i in range(begin, end):
        rebuild(states, i, rest[i])
        fill_weights(states, i, table, costs[i])
        for at in range(rest.shape[1]):
            costs[i, rest[i, at]] = np.inf


def _cycles(before: Codes, after: Ints) -> Ints:
    """Return (n,) numbers of the groups of sets that exchange originals among themselves."""
    n = len(before)
    owner = np.argsort(before)
    graph = csr_array((np.ones(n, np.int8), owner[after], np.arange(n + 1)), (n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


#: So many of the cheapest originals are tried in the place of each one.
_TRIED = 8


def swap_matches(
    problem: Problem, cover: Cover, reciprocal: bool, rng: np.random.Generator, budget: Budget
) -> tuple[Cover, float, Stopped | None]:
    """Go over all matches once and swap each with the best of a few others where that gains.

    Original a leaves the set of i for that of j, and b comes in its place. Own records stay. In a
    reciprocal cover i and a, j and b are pairs that separate and join crosswise, which changes the
    four sets; degrees and sizes stay in both cases.

    `cover`: every record in its own set; it stays `reciprocal` if it is. `rng`: draws the order of
    the records. When the budget ends, the swaps made stay. Returns: what is reached, by how much
    the sum of the losses has fallen, why it ended early. Complexity: O(k n (n m + k)) time.
    """
    terms, n = set_terms(problem), problem.n
    largest = int(cover.sizes.max())
    members = np.full((n, largest), -1, np.int32)
    inside = np.arange(largest) < cover.sizes[:, None]
    members[inside] = cover.members
    states = new_states(terms, largest)
    sets = GrowingCover(members, cover.sizes.copy(), cover.degrees.copy(), cover.sizes.copy())
    order, gain = rng.permutation(n), np.zeros(1)
    table, weights = new_table(terms), np.empty(n)
    step = partial(_swap, states, sets, reciprocal, order, table, weights, gain)
    stopped = run_over(step, n, budget, "swapping matches", first=10)
    return Cover(cover.start, members[inside]), float(gain[0]), stopped


@kernel
def _swap(
    states: SetStates,
    cover: GrowingCover,
    reciprocal: bool,
    order: Ints,
    table: Floats,
    weights: Floats,
    gain: Floats,
    begin: int,
    end: int,
) -> None:
    """Swap the matches of some records of the order where that gains."""
    members, sizes, n = cover.members, cover.sizes, len(order)
    for i in order[begin:end]:
        for place in range(sizes[i]):
            leaving = members[i, place]
            if leaving == i or sizes[i] < 2:
                continue
            # The set without the leaving original: a member twice instead, which costs nothing.
            others = members[i, : sizes[i]].copy()
            others[place] = others[0] if place else others[1]
            rebuild(states, i, others)
            fill_weights(states, i, table, weights)
            # What the set holds, the leaving original too, cannot come in.
            for at in range(sizes[i]):
                weights[members[i, at]] = np.inf
            # The best swap of a few: the cheapest originals, and each set that has one of them.
            best, first, second = LOSS_ABSOLUTE, -1, -1
            for _ in range(_TRIED):
                coming = int(np.argmin(weights))
                if weights[coming] == np.inf:
                    break
                weights[coming] = np.inf
                for j in range(n):
                    if j in (i, coming) or (j == leaving and reciprocal):
                        continue
                    if not covers(cover, j, coming) or covers(cover, j, leaving):
                        continue
                    # By how much the losses fall if the two sets exchange originals.
                    found = _fall(states, cover, i, leaving, coming)
                    found += _fall(states, cover, j, coming, leaving)
                    if reciprocal:
                        found += _fall(states, cover, leaving, i, j)
                        found += _fall(states, cover, coming, j, i)
                    if found > best:
                        best, first, second = found, coming, j
            # Sets i and `second` exchange originals: sizes stay, and in how many sets each one is.
            if first >= 0:
                gain[0] += best
                replace(cover, i, leaving, first)
                replace(cover, second, first, leaving)
                if reciprocal:
                    replace(cover, leaving, i, second)
                    replace(cover, first, second, i)


@kernel
def _fall(states: SetStates, cover: GrowingCover, i: int, old: int, new: int) -> float:
    """Return by how much the loss of one set falls if a member is replaced."""
    held = cover.members[i, : cover.sizes[i]].copy()
    # All in the place of the first set, which is made anew before it is read: what is not
    # comparable to others cancels out.
    rebuild(states, 0, held)
    before = set_loss(states, 0)
    held[held == old] = new
    rebuild(states, 0, held)
    return before - set_loss(states, 0)
