"""The agglomerative k-concealment algorithm of Gionis, Mazza and Tassa."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from anonymip.assignments import Cover
from anonymip.errors import NoSolution, unknown_name
from anonymip.graphs import components
from anonymip.heuristics.freeform.partitioned import finish_cover
from anonymip.heuristics.freeform.rings import ring_of_all
from anonymip.heuristics.freeform.set_growth import (
    SetStates,
    fill_weights,
    increase,
    new_states,
    new_table,
    set_terms,
    take,
)
from anonymip.instances.microdata import Microdata
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_over
from anonymip.solution import Solution
from anonymip.status import Stopped

_JOINS = ("increase", "loss")


def k_concealment(
    problem: Problem, *, join: str = "increase", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Generalize each record until k others hide it, then each original until k hide it [1]_ [2]_.

    First every published record takes in, k - 1 times, the original that costs it least
    ((k, 1)-anonymity). Then every original that fewer than k published records are consistent with
    goes into those that it costs least ((1, k)-anonymity). Last, an original with fewer than k
    effective matches makes matches effective that are not: if it is consistent with the published
    record j, and its own published record takes in original j, the two can change places. It takes
    those that cost it least. Every original consistent with what is published lies in the set of
    the published record, whether it was taken in or not: that costs nothing.

    `problem`: with k-concealment, an objective with tables. `join`: what an original that too few
    published records cover minimizes: ``increase``, by how much the loss of the record that takes
    it in grows; ``loss``, the loss that this record then has. The latter spares records that are
    wide already, and loses more in total. `budget`: when it ends, a ring along a Hilbert curve is
    the result. Raises UnsupportedObjective if the objective has no tables; InputError if the join
    is unknown; NoSolution if it finds no sets that keep the limits, or its sets are not diverse.

    No generalization is taken back that later ones made superfluous, as in the papers. Ties go to
    the first record. Complexity: O(n^2 k m) time, and O(n + edges) more for each original that
    lacks effective matches.

    References
    ----------
    .. [1] A. Gionis, A. Mazza, T. Tassa: k-Anonymization Revisited, ICDE 2008.
    .. [2] T. Tassa, A. Mazza, A. Gionis: k-Concealment: An Alternative Model of k-Type Anonymity,
       Transactions on Data Privacy 5, 2012.
    """
    if join not in _JOINS:
        raise unknown_name("join", join, _JOINS)
    watch, budget = Stopwatch(), budget or Budget()
    growth = Growth(problem, by_loss=join == "loss")
    stopped = growth.run(budget)
    cover, options = growth.cover(stopped), {"join": join}
    return finish_cover(problem, cover, "k-concealment", watch, stopped=stopped, options=options)


class Growth:
    """The published records and the three phases of their growth.

    `problem`: of covers, its objective with tables. `by_loss`: whether originals go to the records
    that lose least then, instead of those whose loss grows least.
    """

    def __init__(self, problem: Problem, *, by_loss: bool) -> None:
        self._problem, self._by_loss = problem, by_loss
        self._n, self._k = problem.n, problem.k
        self._losses = np.zeros(problem.n)  # since the records were exact
        self._states = new_states(set_terms(problem), problem.n)
        self._cells = exact_cells(problem.microdata)
        self._rows: list[Codes] = []
        #: (n,) the record through which a way leads from each, and what taking it in costs.
        self.next_ones, self.costs = np.arange(problem.n), np.zeros(problem.n)

    def run(self, budget: Budget) -> Stopped | None:
        """Grow until every original has k effective matches; return why it stopped earlier."""
        for work in (self.expand, self.hide, self._connect):
            stopped = work(budget)
            if stopped is not None:
                return stopped
        return None

    def cover(self, stopped: Stopped | None = None) -> Cover:
        """Return the originals that each published record is consistent with.

        If it `stopped` before the end, they are those of a ring along a Hilbert curve: its graph is
        regular, so that all matches are effective.
        """
        if stopped is not None:
            order = find_order(self._problem, "hilbert", Budget())
            return ring_of_all(self._problem, order, "k-concealment")
        return Cover.of(self._rows or [self._row(i) for i in range(self._n)])

    def take_all(self, sets: Mapping[int, Ints]) -> None:
        """Let published records take in originals."""
        for i, records in sets.items():
            for record in records:
                self._losses[i] += increase(self._states, i, record)
                take(self._states, i, record)
                widen(self._cells, i, record)

    def expand(self, budget: Budget) -> Stopped | None:
        """Let published records take in the k - 1 originals that cost them least, one by one."""
        table, weights = new_table(self._states.terms), np.empty(self._n)
        step = partial(_expand, self._states, self._cells, self._k, self._losses, table, weights)
        return run_over(
            lambda *records: _check(step(*records)), self._n, budget, "expanding records"
        )

    def hide(self, budget: Budget) -> Stopped | None:
        """Let k published records take in each original, those that it costs least."""
        step = partial(
            _hide,
            *(self._states, self._cells, self._k, self._losses, self._by_loss, np.empty(self._n)),
        )
        return run_over(
            lambda *records: _check(step(*records)), self._n, budget, "covering originals"
        )

    def reach(self, wide: Ints, budget: Budget) -> Stopped | None:
        """Let published records take in one original each, so that a way leads from all to `wide`.

        The next record is the one that it costs least to take in one from which a way leads
        already, as in Prim's algorithm. Complexity: O(n^2 m) time.
        """
        cost, through = np.full(self._n, np.inf), self.next_ones
        through[:] = -1
        reached = np.zeros(self._n, np.bool_)
        step = partial(_reach_step, self._states, self._cells, self._losses, cost, through, reached)
        for record in wide:
            through[record] = record
            step(record)

        def lead(begin: int, end: int) -> None:
            for _ in range(begin, end):
                nearest = int(cost.argmin())
                _check(cost[nearest] < np.inf)
                self.costs[nearest] = cost[nearest]
                step(nearest)

        return run_over(lead, self._n - len(wide), budget, "leading ways to wide records")

    def _connect(self, budget: Budget) -> Stopped | None:
        self._rows = [self._row(i) for i in range(self._n)]
        component = components(self.cover())

        def connect(begin: int, end: int) -> None:
            nonlocal component
            for original in range(begin, end):
                while True:
                    holders = _consistent(self._cells, original, False)
                    effective = component[holders] == component[original]
                    if np.count_nonzero(effective) >= self._k:
                        break
                    others = holders[~effective]
                    costs = np.array([increase(self._states, original, one) for one in others])
                    best = int(costs.argmin())
                    _check(costs[best] < np.inf)
                    take(self._states, original, others[best])
                    widen(self._cells, original, others[best])
                    self._rows[original] = self._row(original)
                    component = components(self.cover())

        return run_over(connect, self._n, budget, "making matches effective")

    def _row(self, i: int) -> Codes:
        return _consistent(self._cells, i, True).astype(np.int32)


def _check(found: bool) -> None:
    """Raise if a limit stood in the way."""
    if not found:
        raise NoSolution(
            "k-concealment finds no sets that keep the limits, which does not prove that there "
            "are none",
            remedy="Loosen the limits",
        )


@kernel
def _expand(
    states: SetStates,
    cells: PublishedCells,
    k: int,
    losses: Floats,
    table: Floats,
    weights: Floats,
    begin: int,
    end: int,
) -> bool:
    """Let some published records take in the k - 1 originals that cost them least, if they can."""
    members = np.empty(k, np.int64)
    for i in range(begin, end):
        members[0] = i
        for size in range(1, k):
            fill_weights(states, i, table, weights)
            for at in range(size):
                weights[members[at]] = np.inf
            best = int(np.argmin(weights))
            if weights[best] == np.inf:
                return False
            members[size] = best
            losses[i] += weights[best]
            take(states, i, best)
            widen(cells, i, best)
    return True


@kernel
def _hide(
    states: SetStates,
    cells: PublishedCells,
    k: int,
    losses: Floats,
    by_loss: bool,
    weights: Floats,
    begin: int,
    end: int,
) -> bool:
    """Let the published records that it costs least take in each of some originals, if any can."""
    n = len(cells.codes)
    for original in range(begin, end):
        # Published records that already hide the original do not count again.
        missing = k
        for i in range(n):
            if is_consistent(cells, i, original):
                missing -= 1
                weights[i] = np.inf
            elif missing > 0:
                weights[i] = increase(states, i, original)
                if by_loss:
                    weights[i] += losses[i]
        for _ in range(missing):
            best = int(np.argmin(weights))
            if weights[best] == np.inf:
                return False
            losses[best] += weights[best] - (losses[best] if by_loss else 0.0)
            take(states, best, original)
            widen(cells, best, original)
            weights[best] = np.inf
    return True


@kernel
def _reach_step(
    states: SetStates,
    cells: PublishedCells,
    losses: Floats,
    cost: Floats,
    through: Ints,
    reached: Flags,
    record: int,
) -> None:
    """Let a record take in the one that its way leads through, and others find theirs over it."""
    if through[record] != record:
        losses[record] += cost[record]
        take(states, record, through[record])
        widen(cells, record, through[record])
    reached[record], cost[record] = True, np.inf
    for i in range(len(cost)):
        if not reached[i]:
            grown = increase(states, i, record)
            if grown < cost[i]:
                cost[i], through[i] = grown, record


@kernel
def _consistent(cells: PublishedCells, record: int, published: bool) -> Ints:
    """Return the originals that a published record is consistent with, or the other way round."""
    n = len(cells.codes)
    found = np.empty(n, np.int64)
    count = 0
    for other in range(n):
        i, original = (record, other) if published else (other, record)
        if is_consistent(cells, i, original):
            found[count] = other
            count += 1
    return found[:count]


class PublishedCells(Packed):
    """Cells of n published records, in ranks of the levels."""

    codes: Codes  # (n, m) int32, the originals
    #: (n, m) int32, lowest and highest rank covered by a range or a node.
    low: Codes
    high: Codes
    #: (m,) where the flags of an attribute published as sets begin; -1 for ranges and nodes.
    flag_start: Ints
    flags: Flags  # (n, values) bool, whether a set has a value
    #: (n, m) int32, what is published of a hierarchical attribute: a place in what follows.
    node: Codes
    #: Of the nodes of all hierarchies: parent, lowest and highest rank below.
    parent: Codes
    first: Codes
    last: Codes


def exact_cells(microdata: Microdata) -> PublishedCells:
    """Return the cells of records published as they are."""
    n, m = microdata.n, microdata.m
    flag_start, node = np.full(m, -1, np.int64), np.full((n, m), -1, np.int32)
    values, nodes = 0, 0
    parents, lows, highs = ([np.empty(0, np.int32)] for _ in range(3))
    for a, attribute in enumerate(microdata.attributes):
        if attribute.hierarchy is not None:
            leaf, tree = microdata.leaves(a), attribute.hierarchy.tree
            node[:, a] = nodes + leaf[microdata.codes[:, a]]
            # The levels follow the leaves, so those below a node are a range of ranks.
            lows.append(np.searchsorted(leaf, tree.first).astype(np.int32))
            highs.append((np.searchsorted(leaf, tree.last, "right") - 1).astype(np.int32))
            parents.append((tree.parent + nodes).astype(np.int32))
            nodes += len(tree.parent)
        elif attribute.publish == "set":
            flag_start[a] = values
            values += len(microdata.levels[a])
    flags = np.zeros((n, values), np.bool_)
    for column in np.flatnonzero(flag_start >= 0):
        flags[np.arange(n), flag_start[column] + microdata.codes[:, column]] = True
    codes = np.ascontiguousarray(microdata.codes)
    return PublishedCells(
        codes,
        codes.copy(),
        codes.copy(),
        flag_start,
        flags,
        node,
        np.concatenate(parents),
        np.concatenate(lows),
        np.concatenate(highs),
    )


@kernel
def is_consistent(cells: PublishedCells, i: int, record: int) -> bool:
    """Return whether published record i is consistent with an original record."""
    for a in range(len(cells.flag_start)):
        code = cells.codes[record, a]
        if cells.flag_start[a] >= 0:
            if not cells.flags[i, cells.flag_start[a] + code]:
                return False
        elif code < cells.low[i, a] or code > cells.high[i, a]:
            return False
    return True


@kernel
def widen(cells: PublishedCells, i: int, record: int) -> None:
    """Let published record i cover an original record."""
    for a in range(len(cells.flag_start)):
        code = cells.codes[record, a]
        if cells.flag_start[a] >= 0:
            cells.flags[i, cells.flag_start[a] + code] = True
            continue
        low, high = min(cells.low[i, a], code), max(cells.high[i, a], code)
        node = cells.node[i, a]
        if node >= 0:
            # The lowest node over both: nodes above cover ever more, the root everything.
            while cells.first[node] > low or cells.last[node] < high:
                node = cells.parent[node]
            cells.node[i, a], low, high = node, cells.first[node], cells.last[node]
        cells.low[i, a], cells.high[i, a] = low, high
