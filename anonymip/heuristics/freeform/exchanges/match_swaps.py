"""Lower the loss of any cover: two sets exchange one original each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.assignments import Cover
from anonymip.heuristics.freeform.set_growth import (
    SetStates,
    fill_weights,
    new_states,
    new_table,
    rebuild,
    set_loss,
)
from anonymip.heuristics.freeform.set_terms import SetTerms, set_terms
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_ABSOLUTE

#: So many of the cheapest originals are tried in the place of each one.
_TRIED = 8


def swap_matches(
    problem: Problem, cover: Cover, reciprocal: bool, rng: np.random.Generator, budget: Budget
) -> tuple[Cover, float, Stopped | None]:
    """Go over all matches once and swap each with the best of a few others where that gains.

    Original a leaves the set of i for that of j, and b comes in its place. Own records stay. In a
    reciprocal cover i and a, j and b are pairs that separate and join crosswise, which changes the
    four sets; degrees and sizes stay in both cases.

    Parameters
    ----------
    problem
        Its objective has tables.
    cover
        Every record in its own set.
    reciprocal
        Whether the cover is reciprocal and must stay so.
    rng
        Draws the order of the records.
    budget
        When it ends, the swaps made stay.

    Returns
    -------
    cover, gain, stopped
        What is reached, by how much the sum of the losses has fallen, why it ended early.

    Notes
    -----
    Complexity: O(k n (n m + k)) time.
    """
    terms, n = set_terms(problem), problem.n
    largest = int(cover.sizes.max())
    members = np.full((n, largest), -1, np.int32)
    inside = np.arange(largest) < cover.sizes[:, None]
    members[inside] = cover.members
    states, spare = new_states(terms, largest), new_states(terms, largest)
    order, sizes = rng.permutation(n), cover.sizes.copy()
    table, weights = new_table(terms), np.empty(n)
    cursor, gain = np.zeros(1, np.int64), np.zeros(1)
    everyone = np.empty(0, np.int64)

    def step(amount: int) -> int:
        done = _swap_step(
            terms,
            states,
            spare,
            members,
            sizes,
            reciprocal,
            order,
            everyone,
            table,
            weights,
            gain,
            cursor,
            amount,
        )
        return int(done)

    stopped = run_in_steps(step, n, budget, "swapping matches", first=10)
    return Cover(cover.start, members[inside]), float(gain[0]), stopped


@kernel
def _swap_step(
    terms: SetTerms,
    states: SetStates,
    spare: SetStates,
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    reciprocal: bool,
    order: NDArray[np.int64],
    everyone: NDArray[np.int64],
    table: NDArray[np.float64],
    weights: NDArray[np.float64],
    gain: NDArray[np.float64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """Swap the matches of the next `amount` records where that gains."""
    n = len(order)
    for turn in range(cursor[0], min(cursor[0] + amount, n)):
        i = order[turn]
        for place in range(sizes[i]):
            leaving = members[i, place]
            if leaving == i or sizes[i] < 2:
                continue
            # The set without the leaving original: a member twice instead, which costs nothing.
            others = members[i, : sizes[i]].copy()
            others[place] = others[0] if place else others[1]
            rebuild(terms, states, i, others)
            fill_weights(terms, states, i, everyone, table, weights)
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
                    if j in (i, coming) or not _is_in(members, sizes, j, coming):
                        continue
                    found = _gain(terms, spare, members, sizes, reciprocal, i, leaving, coming, j)
                    if found > best:
                        best, first, second = found, coming, j
            # Sets i and `second` exchange originals: sizes stay, and in how many sets each one is.
            if first >= 0:
                gain[0] += best
                _put(members, sizes, i, leaving, first)
                _put(members, sizes, second, first, leaving)
                if reciprocal:
                    _put(members, sizes, leaving, i, second)
                    _put(members, sizes, first, second, i)
        cursor[0] = turn + 1
    return cursor[0]


@kernel
def _is_in(members: NDArray[np.int32], sizes: NDArray[np.int64], j: int, record: int) -> bool:
    for at in range(sizes[j]):  # noqa: SIM110 (numba is slower with any)
        if members[j, at] == record:
            return True
    return False


@kernel
def _put(members: NDArray[np.int32], sizes: NDArray[np.int64], i: int, old: int, new: int) -> None:
    for at in range(sizes[i]):
        if members[i, at] == old:
            members[i, at] = new
            return


@kernel
def _gain(
    terms: SetTerms,
    spare: SetStates,
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    reciprocal: bool,
    i: int,
    leaving: int,
    coming: int,
    j: int,
) -> float:
    """Return by how much the losses fall if two sets exchange originals; -inf if they cannot."""
    if j == leaving and reciprocal:
        return -np.inf
    if _is_in(members, sizes, j, leaving):
        return -np.inf
    gain = _fall(terms, spare, members, sizes, i, leaving, coming)
    gain += _fall(terms, spare, members, sizes, j, coming, leaving)
    if reciprocal:
        gain += _fall(terms, spare, members, sizes, leaving, i, j)
        gain += _fall(terms, spare, members, sizes, coming, j, i)
    return gain


@kernel
def _fall(
    terms: SetTerms,
    spare: SetStates,
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    i: int,
    old: int,
    new: int,
) -> float:
    """Return by how much the loss of one set falls if a member is replaced."""
    held = members[i, : sizes[i]].copy()
    # All in one place of the spare states: what is not comparable to others cancels out.
    rebuild(terms, spare, 0, held)
    before = set_loss(terms, spare, 0)
    held[held == old] = new
    rebuild(terms, spare, 0, held)
    return before - set_loss(terms, spare, 0)
