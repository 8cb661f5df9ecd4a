"""The search for the cheapest selection from a pool: cuts, fixing, integer programs, branching."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.column_generation.cuts import (
    RankOneCut,
    coefficients,
    right_sides,
    separate,
)
from anonymip.exact.column_generation.pool.branching import Branch, branches
from anonymip.exact.column_generation.pool.integer_program import solve_integer
from anonymip.exact.column_generation.pool.pool import Pool
from anonymip.exact.column_generation.pool.relaxation import PoolRelaxation, Relaxed
from anonymip.runtime.budget import Budget
from anonymip.solvers import SolverOptions

#: Up to so many columns are left to a solver: at the root, and at other nodes of the search.
SOLVER_COLUMNS, NODE_COLUMNS = 4_000, 1_500

#: Rounds of cuts at the root; rounds that close less than this share of the gap end them.
_ROUNDS, _STALLED, _LEAST_SHARE = 30, 3, 0.01

#: With so few columns left, a solver needs no more cuts.
_FEW = 500

#: Selections that are cheaper by less than this share are not looked for.
RESOLUTION = 1e-7

#: Duals above this make a row worth its place.
_BINDING = 1e-9


@dataclass(frozen=True, eq=False)
class PoolAnswer:
    """What is known of the selections from a pool.

    Parameters
    ----------
    chosen
        The cheapest selection that was found, as numbers of columns, ascending and repeated; None
        if none was found that costs less than the upper bound.
    value
        Its cost.
    bound
        No selection costs less. Never above the upper bound or the value, and below them by a
        share of `RESOLUTION` where the search is complete.
    complete
        Whether the search came to its end: `chosen` is optimal up to `RESOLUTION`, or nothing
        costs less than the upper bound.
    by_solver
        The solver whose report the bound rests on, with its version; None if it rests on duals
        that were checked in arithmetic of its own.
    cuts
        That were binding at the root, for the next pool.
    duals
        (t,) of the types at the root.
    columns_left
        That the search could not exclude at the root.
    nodes
        Of the branching.
    """

    chosen: NDArray[np.int64] | None
    value: float | None
    bound: float
    complete: bool
    by_solver: str | None
    cuts: tuple[RankOneCut, ...]
    duals: NDArray[np.float64]
    columns_left: int
    nodes: int


@dataclass(frozen=True, eq=False)
class _Node:
    """Columns that a selection may still hold, rows that it keeps, and the relaxation there."""

    active: NDArray[np.int64]
    rows: frozenset[int]
    relaxed: Relaxed
    bound: float


class PoolSearch:
    """One search, in units of costs of order 1."""

    def __init__(
        self,
        pool: Pool,
        upper_bound: float,
        cuts: tuple[RankOneCut, ...],
        solver: str | None,
        options: SolverOptions,
        budget: Budget,
    ) -> None:
        self._pool, self._solver, self._options, self._budget = pool, solver, options, budget
        self._upper_bound = self._best = upper_bound
        self._chosen: NDArray[np.int64] | None = None
        self._relaxation = PoolRelaxation(pool, upper_bound)
        self._cuts: list[RankOneCut] = []
        self._cut_rows: list[int] = []
        self._add_cuts(cuts)
        # The least bound of all that was closed, and who reported it.
        self._closed = np.inf
        self._reporter: str | None = None
        self._undecided = np.inf
        self._nodes = 0
        self._root: Relaxed | None = None
        self._left = len(pool.costs)

    @property
    def _floor(self) -> float:
        """What the search looks for costs less."""
        return self._best - RESOLUTION * abs(self._best)

    def run(self, start: NDArray[np.int64] | None) -> PoolAnswer:
        """Return the answer."""
        lowest = self._search(start)
        complete = lowest is None and self._undecided == np.inf
        bound = min(
            self._floor, self._closed, self._undecided, np.inf if lowest is None else lowest
        )
        root = self._root
        binding: tuple[RankOneCut, ...] = tuple(self._cuts)
        duals = np.zeros(len(self._pool.coverage))
        if root is not None:
            used = np.abs(root.extra_duals) > _BINDING
            rows = self._cut_rows
            binding = tuple(
                cut
                for cut, row in zip(self._cuts, rows, strict=True)
                if row >= len(used) or used[row]
            )
            duals = root.row_duals
        return PoolAnswer(
            self._chosen,
            None,
            bound,
            complete,
            self._reporter,
            binding,
            duals,
            self._left,
            self._nodes,
        )

    def _search(self, start: NDArray[np.int64] | None) -> float | None:
        """Search; return None when through, or the bound of what is open when time ended."""
        if not len(self._pool.costs):
            return None
        self._relaxation.add_columns(_first_columns(self._pool, start))
        root = self._root_node()
        if root is None or isinstance(root, float):
            return root
        self._left = len(root.active)
        left = self._decided(root, SOLVER_COLUMNS)
        return None if left is None else self._branch(left)

    def _root_node(self) -> _Node | float | None:
        """Return the root after all cuts; None if it is closed, its bound if time ended."""
        active = np.arange(len(self._pool.costs))
        bound, stalled = 0.0, 0
        for round_ in range(_ROUNDS + 1):
            relaxed = self._relaxation.solve(active, self._budget)
            if relaxed is None:
                return bound
            self._root = relaxed
            before, bound = bound, max(bound, relaxed.bound)
            node = self._open(active, frozenset(), relaxed, bound)
            if node is None:
                return None
            active = node.active
            self._budget.report("pool", done=round_, bound=None)
            stalled = 0 if bound - before > _LEAST_SHARE * (self._floor - bound) else stalled + 1
            if (len(active) <= _FEW and self._solver is not None) or stalled >= _STALLED:
                break
            if round_ == _ROUNDS or self._budget.stop_reason() is not None:
                break
            taken = node.relaxed
            new = separate(
                self._pool.incidence[taken.columns],
                taken.weights,
                self._pool.coverage,
                known=self._cuts,
                seed=self._options.seed + round_,
            )
            if not new:
                break
            self._add_cuts(new)
        return node

    def _add_cuts(self, cuts: Sequence[RankOneCut]) -> None:
        if not cuts:
            return
        sides = right_sides(cuts, self._pool.coverage).astype(np.float64)
        held = coefficients(cuts, self._pool.incidence).astype(np.float64)
        self._cut_rows += self._relaxation.add_rows(held, sides, least=False).tolist()
        self._cuts += cuts

    def _open(
        self, active: NDArray[np.int64], rows: frozenset[int], relaxed: Relaxed, bound: float
    ) -> _Node | None:
        """Return a node with the columns that may still matter; None if it is closed."""
        bound = max(bound, relaxed.bound)
        if not relaxed.artificial:
            chosen = self._pool.selection(relaxed.columns, relaxed.weights)
            if chosen is not None:
                self._improve(chosen)
        if bound >= self._floor:
            return None
        kept = relaxed.reduced <= self._floor - relaxed.bound
        return _Node(active[kept], rows, replace(relaxed, reduced=relaxed.reduced[kept]), bound)

    def _improve(self, chosen: NDArray[np.int64]) -> None:
        cost = self._pool.cost(chosen)
        if cost < self._best:
            self._best, self._chosen = cost, chosen

    def _decided(self, node: _Node, most: int) -> _Node | None:
        """Have a solver decide a node if it is small; return what is left to branch on."""
        if self._solver is None or len(node.active) > most:
            return node
        if not len(node.active):
            return None
        rows = self._rows_of(node)
        answer = solve_integer(
            self._pool,
            node.active,
            csr_array(self._relaxation.extra[node.active][:, rows]),
            self._relaxation.row_bounds(rows),
            self._best,
            self._solver,
            self._options,
            self._budget,
        )
        if answer.chosen is not None:
            self._improve(answer.chosen)
        if answer.bound is not None and (answer.complete or answer.bound > node.bound):
            self._reporter = answer.solver
            node = replace(node, bound=max(node.bound, answer.bound))
        if answer.bound is None or not answer.complete:
            return node
        self._closed = min(self._closed, node.bound)
        return None

    def _rows_of(self, node: _Node) -> NDArray[np.int64]:
        """Return the further rows that a solver is given: of the node, and those that bind."""
        binding = np.flatnonzero(np.abs(node.relaxed.extra_duals) > _BINDING)
        needed = {0} if self._pool.count_limit is not None else set()
        return np.array(sorted(needed | set(binding.tolist()) | node.rows), np.int64)

    def _branch(self, root: _Node) -> float | None:
        """Branch, best bound first; return None when through, or the least bound that is open."""
        queue: list[tuple[float, int, _Node]] = [(root.bound, 0, root)]
        pushed = 0
        while queue:
            bound, _, node = queue[0]
            if bound >= self._floor:
                return None
            if self._budget.stop_reason() is not None:
                return bound
            self._nodes += 1
            self._budget.report("pool", done=self._nodes, bound=None)
            node = self._reopened(node)
            self._hold(node.rows)
            sides = branches(
                self._pool, self._relaxation, node.relaxed, node.active, self._best, self._budget
            )
            if sides is None:
                # A whole point that is no selection: the solver's tolerances hide one.
                self._undecided = min(self._undecided, bound)
                heapq.heappop(queue)
                continue
            children = []
            for side in sides:
                child = self._child(node, side)
                if isinstance(child, float):
                    return bound
                if child is not None:
                    children.append(self._decided(child, NODE_COLUMNS))
            heapq.heappop(queue)
            for child in filter(None, children):
                pushed += 1
                heapq.heappush(queue, (child.bound, pushed, child))
        return None

    def _reopened(self, node: _Node) -> _Node:
        """Return a node without the columns that have become too costly since."""
        kept = node.relaxed.reduced <= self._floor - node.relaxed.bound
        relaxed = replace(node.relaxed, reduced=node.relaxed.reduced[kept])
        return replace(node, active=node.active[kept], relaxed=relaxed)

    def _hold(self, rows: frozenset[int]) -> None:
        """Let the rows of a node hold beside those that always do."""
        held = np.zeros(len(self._relaxation.sides), np.bool_)
        held[self._always] = True
        held[list(rows)] = True
        self._relaxation.hold_rows(held)

    @property
    def _always(self) -> list[int]:
        return ([0] if self._pool.count_limit is not None else []) + self._cut_rows

    def _child(self, node: _Node, side: Branch) -> _Node | float | None:
        """Return one side of a branching; None if it is closed, its bound if time ended."""
        active, rows = node.active[side.kept], node.rows
        if side.row is not None:
            column = csr_array(side.row.astype(np.float64)[:, None])
            row = self._relaxation.add_rows(column, np.array([side.side]), least=side.least)
            rows = rows | {int(row[0])}
        self._hold(rows)
        relaxed = self._relaxation.solve(active, self._budget)
        if relaxed is None:
            return node.bound
        return self._open(active, rows, relaxed, node.bound)


def _first_columns(pool: Pool, start: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the columns that the relaxation begins with: given ones, and the cheapest of types."""
    share = pool.costs / pool.sizes
    order = np.argsort(share, kind="stable")
    members = csr_array(pool.incidence[order])
    first = np.repeat(np.arange(len(order)), np.diff(members.indptr))
    _, at = np.unique(members.indices, return_index=True)
    cheapest = np.unique(order[first[at]])
    if start is None:
        return cheapest
    return np.concatenate([start, np.setdiff1d(cheapest, start)])
