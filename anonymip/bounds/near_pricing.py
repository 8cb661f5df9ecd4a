"""Sets of near rows that cost less than their duals, for tables too large to look at all rows.

Sets are searched root by root, the root being the member with the highest dual. A set that costs
less than its duals loses less for each record than the root's dual: all its members are near. Of
these only the nearest ones are looked at, and of their sets only some. So what is found need not be
all: duals become feasible by the ascent alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.dual_raising import NearSearch
from anonymip.bounds.near_lists import gather_near, sort_by_loss
from anonymip.enumeration.cut_duals import cuts_of_rows
from anonymip.enumeration.rooted_run import RootedRun
from anonymip.enumeration.rooted_state import RootedRules, Roots
from anonymip.enumeration.search_inputs import type_rows
from anonymip.instances.microdata import RowTypes
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import kernel
from anonymip.runtime.stepping import run_in_steps

#: Sets taken of each root in a round.
_KEEP = 3
#: Roots that are searched at a time, which bounds the memory.
_ROOTS = 20_000
#: Types listed for all roots together, at most.
_LISTED = 40_000_000
#: What looking at a partial set costs in losses, as a share of the nearest types.
_NODE = 0.4
#: Of two types as near the one with the higher dual pays more of a set: how much nearer that is.
_WORTH = 0.25


class NearPricing:
    """The search for sets of k rows among the nearest types of each root.

    Parameters
    ----------
    problem
        With a monotone loss that has tables.
    types
        The row types.
    search
        Says what lies near.
    """

    def __init__(self, problem: Problem, types: RowTypes, search: NearSearch) -> None:
        self._k, self._search, self._counts = problem.k, search, search.counts
        # What holds without rules holds under them.
        freed = problem.replace(diversity=None, limits=())
        self._run = RootedRun(
            search.tables, type_rows(freed, types, search.tables), largest=problem.k
        )
        self._near = np.empty((0, 0), np.int32)
        self._held = np.zeros(0, np.int64)

    def look_near(
        self,
        floors: NDArray[np.float64],
        radii: NDArray[np.float64],
        aims: NDArray[np.float64],
        most: int,
        budget: Budget,
    ) -> None:
        """List the nearest types of each.

        Parameters
        ----------
        floors
            (t,) what a record of each type loses in any set of k rows at least.
        radii
            (t,) how far to look around each.
        aims
            (t,) how high the duals are about.
        most
            Types listed for each, fewer where there are very many.
        budget
            What it leaves unlisted has no sets.
        """
        t = len(self._counts)
        self._near = np.empty((t, min(most, t, max(self._k, _LISTED // t))), np.int32)
        self._held = np.zeros(t, np.int64)
        cursor, worth = np.zeros(1, np.int64), _WORTH * aims

        def step(amount: int) -> int:
            return int(
                _near_step(
                    self._search,
                    self._k,
                    floors,
                    radii,
                    worth,
                    self._near,
                    self._held,
                    cursor,
                    amount,
                )
            )

        run_in_steps(step, t, budget, "neighbours of each record", first=20)

    def undercutting(
        self, duals: NDArray[np.float64], below: float, nodes: int, budget: Budget
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return (c, k) sets that cost less than their duals, and (c,) what they cost.

        Parameters
        ----------
        duals
            (t,) of a row of each type.
        below
            What their costs less their duals are below, at most 0.
        nodes
            Partial sets looked at for a root.
        budget
            Ends the search; what was found until then is returned.
        """
        t, k, run = len(duals), self._k, self._run
        run.rows.duals[:] = duals
        rank = np.empty(t, np.int64)
        rank[np.argsort(-duals, kind="stable")] = np.arange(t)
        rules = RootedRules(
            k, k, pruned=True, summed=True, keep=_KEEP, nodes_a_size=nodes, undominated=False
        )
        members, costs = [np.empty((0, k), np.int32)], [np.empty(0)]
        for first in range(0, t, _ROOTS):
            roots = self._roots(rank, first, min(t, first + _ROOTS), below)
            run.search(cuts_of_rows(t, None), rules, roots, budget)
            self._search.lists.work[0] += int(run.nodes * _NODE * self._near.shape[1])
            count, filled = run.found.held.tolist()
            found = run.found.members[:filled].reshape(count, k).copy()
            members.append(found)
            costs.append(run.found.reduced[:count] + duals[found].sum(axis=1))
            if budget.stop_reason() is not None:
                break
        return np.concatenate(members), np.concatenate(costs)

    def _roots(self, rank: NDArray[np.int64], first: int, last: int, below: float) -> Roots:
        """Return some roots with what lies near and comes behind them, the highest duals first."""
        near, types = self._near[first:last], np.arange(first, last)
        listed = np.arange(near.shape[1]) < self._held[first:last, None]
        listed &= rank[np.where(listed, near, 0)] > rank[types, None]
        own, others = np.repeat(types, listed.sum(axis=1)), near[listed].astype(np.int64)
        # Further rows of the root's own type.
        several = types[(self._counts[types] > 1) & (self._counts[types] < self._k)]
        own, others = np.concatenate([own, several]), np.concatenate([others, several])
        order = np.lexsort((rank[others], own))
        begin = np.searchsorted(own[order], np.arange(first, last + 1))
        limits, least = np.full(len(types), below), np.full(len(types), -np.inf)
        return Roots(types, begin[:-1].copy(), begin[1:].copy(), others[order], limits, least)


@kernel
def _near_step(
    search: NearSearch,
    k: int,
    floors: NDArray[np.float64],
    radii: NDArray[np.float64],
    worth: NDArray[np.float64],
    near: NDArray[np.int32],
    held: NDArray[np.int64],
    cursor: NDArray[np.int64],
    amount: int,
) -> int:
    """List the nearest types of up to `amount` further ones; return how many are done."""
    lists = search.lists
    for row in range(cursor[0], min(cursor[0] + amount, len(held))):
        # Who fills a set by itself needs no others.
        if search.counts[row] < k:
            found = gather_near(
                search.tables,
                search.rows,
                search.terms,
                search.tree,
                search.state,
                lists,
                floors,
                row,
                radii[row],
            )
            for at in range(found):
                lists.losses[at] -= worth[lists.types[at]]
            sort_by_loss(lists.types, lists.losses, 0, found)
            held[row] = min(found, near.shape[1])
            for at in range(held[row]):
                near[row, at] = lists.types[at]
        cursor[0] = row + 1
    return cursor[0]
