"""The cheapest selection from a pool of columns: cuts, fixing, integer programs, branching.

Given all columns that a release cheaper than some value may hold, the pool decides whether there
is one. Its relaxation is solved with rank-1 cuts and mixed-integer ones; columns whose reduced
costs lie above what is left of the gap are dropped; what is left goes to a solver as an integer
program where it is small, and is branched on elsewhere, best bound first.

One file, since all steps of a search share its program, its columns and its best selection.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from anonymip.exact.set_partitioning.column_pool import (
    Branch,
    Pool,
    PoolRelaxation,
    Relaxed,
    Start,
    branches,
    solve_integer,
)
from anonymip.exact.set_partitioning.rank_one_cuts import (
    RankOneCut,
    coefficients,
    right_sides,
    separate,
)
from anonymip.exact.set_partitioning.restricted_master import Mip
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.memory import memory_at_hand
from anonymip.solvers import SolverOptions
from anonymip.solvers.linear_programs import Simplex
from anonymip.status import Stopped


@dataclass(frozen=True)
class SearchNumbers:
    """The numbers that steer a pool search, by the proofs of docs/results/exact_engine.md."""

    #: Up to so many columns are left to a solver. With 1,500 100 records of census, k = 5, take
    #: twice the time; 100 mixed ones, k = 3, for the same bound 60 s with 700 and 26 with 400.
    solver_columns: int = 400
    #: The same where most types are covered more than once, since branches settle no pairs of them:
    #: 236,000 columns of 220 rows of 51 types, k = 5, take 25 s, and branched on 157 for no proof.
    #: That is columns times types, or so many columns: 46,000 of 1,000 types take two minutes;
    solver_entries_of_covers: int = 20_000_000
    solver_columns_of_covers: int = 20_000
    #: and columns for each node that is allowed, times types: the fewer types, the more often a
    #: column may be taken, and 20,400 of 19 types take 100 s at the root alone.
    columns_a_node: float = 1.0
    #: Columns that take the solver as long as a node takes: 5 to 130 s for 46,000 to 53,000.
    given_a_node: int = 100
    #: Iterations of its simplex method that take as long, beyond that: 110,000 of 11,700 columns of
    #: 300 types 250 s, 104,000 of 9,000 of 200 types 133 s.
    iterations_a_node: int = 50
    #: With so many columns a node of the solver takes twice as long as one of few: 0.05 s in the
    #: second, 0.2 in the first. 6,189 of 200 types, k = 5, are proven with 3,495 nodes in 140 s.
    long_nodes: int = 10_000
    given_freely: int = 1_000  # columns that take it no longer than the node that they are of
    light: int = 2_000  # columns up to which a node takes as long as any there
    #: Most nodes there, whatever is allowed: after six minutes 6,300 were done of those rows.
    most_of_covers: int = 5_000
    #: Where most types are covered once, a node of fewer types takes as long as one of so many:
    #: 1,430 of 69 types took 100 s.
    few_types: int = 300
    #: Rounds of cuts at the root; rounds that close less than a share of the gap end them.
    rounds: int = 30
    stalled: int = 3
    least_share: float = 0.01
    #: Rounds of mixed-integer cuts at the root, while more columns than `solver_columns` are left:
    #: 100 mixed records of census, k = 3, have their 4,499 columns decided in 0.6 s in place of 49.
    mixed_rounds: int = 30
    patience: int = 2  # so many rounds in sequence end them
    fewer: float = 0.95  # that leave more than this share of the columns
    worth: float = 0.7  # they stay where they leave less than this: dense rows make nodes slow
    narrowed: float = 0.5  # share of its columns from which on a program is made anew
    #: Rounds of cuts at every other node, with so many triples and so many starts.
    node_rounds: int = 4
    node_cuts: int = 40
    node_starts: int = 80
    broken: float = 0.02  # cuts that are not tight leave a relaxation until they are broken by this
    binding: float = 1e-9  # duals above this make a row worth its place
    resolution: float = 1e-7  # selections that are cheaper by less than this share are not wanted
    #: Most bytes that a search holds, and the share of the memory that there is, if that is less. A
    #: pool of 200 records of ten amounts, k = 5, held 4.1 GB before there was a limit.
    most_held: int = 2**30
    share_of_memory: float = 0.4
    #: Bytes of an open node beside its arrays, and of an entry of the further rows.
    node_bytes: int = 1_500
    entry_bytes: int = 12
    copies: int = 3  # of the further rows while they grow and of the columns of a node, about
    sample: int = 1_000  # columns by which it is told how much cuts will hold


NUMBERS = SearchNumbers()


@dataclass(frozen=True, eq=False)
class PoolAnswer:
    """What is known of the selections from a pool."""

    #: The cheapest selection that was found, as numbers of columns, ascending and repeated, and its
    #: cost; None if none was found that costs less than the upper bound.
    chosen: Ints | None
    value: float | None
    #: No selection costs less. Never above the upper bound or the value, and below them by a share
    #: of `resolution` where the search is complete: `chosen` is optimal up to that, or nothing
    #: costs less than the upper bound.
    bound: float
    complete: bool
    by_solver: str | None  # whose report the bound rests on; None if on duals that were checked
    cuts: tuple[RankOneCut, ...]  # binding at the root, or found at other nodes: for the next pool
    columns_left: int  # that could not be excluded at the root
    nodes: int
    work: float  # what nodes and the solver took, as nodes of few columns
    iterations: int  # of the simplex method at nodes but the root
    was_full: bool = False  # whether it held as much as it may, and went on with less


@dataclass(frozen=True, eq=False)
class _Node:
    """Columns that a selection may still hold, rows that it keeps, and what its duals prove."""

    active: Ints
    rows: frozenset[int]
    relaxed: Relaxed
    bound: float
    start: Start


@dataclass(frozen=True, eq=False)
class _OpenNode:
    """A node that is not branched on yet, as small as it can be: there may be thousands.

    Its relaxation is solved again, so that nothing of that is kept: reduced costs of all columns
    and duals of all cuts would be.
    """

    active: NDArray[np.uint8]
    rows: frozenset[int]
    start: Start

    @classmethod
    def of(cls, node: _Node, columns: int) -> _OpenNode:
        """Return a node of a pool of so many columns."""
        held = np.zeros(columns, np.bool_)
        held[node.active] = True
        start = replace(
            node.start,
            columns=node.start.columns.astype(np.int32),
            rows=node.start.rows.astype(np.int32),
        )
        return cls(np.packbits(held), node.rows, start)

    @property
    def columns(self) -> Ints:
        """Numbers of the columns that a selection may still hold."""
        return np.flatnonzero(np.unpackbits(self.active))

    @property
    def bytes(self) -> int:
        """What it holds."""
        start, basis = self.start, self.start.basis
        arrays = (self.active, start.columns, start.rows, basis.columns, basis.rows)
        return NUMBERS.node_bytes + sum(array.nbytes for array in arrays)


class _OutOfTime(Exception):
    """Time has ended; its argument is the least bound of what is open."""


@dataclass(eq=False)
class PoolSearch:
    """The search for the cheapest selection from a pool, if one costs less than a bound.

    Every column of the pool has a member, and costs are finite; the search divides them by a unit.
    What costs as much as the upper bound is not looked for: the loss of a known release, or a
    target.

    The relaxation begins with some cuts, and with the columns of a start, such as those of a
    master's optimum. The solver is for what is small; None to branch only. After the work of
    `max_nodes` nodes of few columns, or `max_iterations` of the simplex method at nodes, the answer
    is not complete; after the nodes of `known_after` a better upper bound is asked for. Of
    `memory`, in bytes, cuts take what columns leave, and open nodes what both leave: where nothing
    is left, the search goes on depth first and without new cuts, which takes longer and proves as
    much.

    The bound is that of the duals, lowered by what reduced costs below zero and rounding take from
    it, not the value that the solver of the linear programs reports. The seed of the
    options is of the cuts too: the same one gives the same answer, unless time ends it.
    """

    pool: Pool
    _: KW_ONLY
    upper_bound: float
    cuts: Sequence[RankOneCut] = ()
    start: Ints | None = None
    solver: str | None = "highs"
    options: SolverOptions = field(default_factory=SolverOptions)
    max_nodes: int | None = None
    max_iterations: int | None = None
    known_after: tuple[int, Callable[[], float]] | None = None
    memory: float | None = None
    budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        self._unit = _unit(self.pool.costs)
        pool = replace(self.pool, costs=self.pool.costs / self._unit)
        # Columns that the duals of all rounds have left are not worth a presolve of the solver:
        # probing of 6,000 took 23 s of HiGHS's 33, and what it did without it 0.6 s in all.
        if self.options.presolve is None:
            self.options = replace(self.options, presolve=False)
        self._most = np.inf if self.max_nodes is None else self.max_nodes
        iterations = self.max_iterations
        self._most_iterations = np.inf if iterations is None else iterations
        self._simplex = Simplex()
        self._plain = bool((pool.coverage == 1).mean() > 0.5) if len(pool.coverage) else True
        self._few = NUMBERS.solver_columns
        if not self._plain:
            self._most = min(self._most, NUMBERS.most_of_covers)
            most = max(
                NUMBERS.solver_columns_of_covers,
                NUMBERS.solver_entries_of_covers / len(pool.coverage),
            )
            allowed = NUMBERS.columns_a_node * self._most * len(pool.coverage)
            self._few = int(min(most, allowed))
        if self.solver is None:
            self._few = -1
        self._best = self.upper_bound / self._unit
        self._chosen: Ints | None = None
        # What columns of the pool are called outside.
        self._numbers = np.arange(len(pool.costs))
        left = memory_at_hand()
        self._most_held = NUMBERS.most_held if self.memory is None else self.memory
        if left is not None:
            self._most_held = min(self._most_held, NUMBERS.share_of_memory * left.bytes)
        # What open nodes hold, in bytes, and whether there is room for no more.
        self._open_bytes, self._is_full = 0, False
        #: Whether it came to what it may hold.
        self.was_full = False
        self._begin(pool, self.cuts)
        # The least bound of all that was closed by a solver, and which one; and of all nodes that
        # nobody could decide.
        self._closed = self._undecided = np.inf
        self._reporter: str | None = None
        self._nodes, self._left = 0, len(pool.costs)
        # Iterations of the simplex method when branching began.
        self._first_iterations = 0
        self._work = 0.0

    def _begin(self, pool: Pool, cuts: Sequence[RankOneCut]) -> None:
        """Take up a pool with an empty program."""
        self._pool = pool
        self._relaxation = PoolRelaxation(pool, self._best, self._simplex)
        self._cuts: list[RankOneCut] = []
        # Rows that hold at every node.
        self._counted = frozenset(range(len(self._relaxation.sides)))
        self._cut_rows: list[int] = []
        # Rows of mixed-integer cuts.
        self._mixed_rows: list[int] = []
        self._add_cuts(cuts)

    @property
    def _floor(self) -> float:
        """What the search looks for costs less."""
        return self._best - NUMBERS.resolution * abs(self._best)

    @property
    def _free(self) -> float:
        """Bytes that it may still hold, beside columns, further rows and open nodes."""
        entries = self._pool.incidence.nnz + self._relaxation.extra.nnz
        return self._most_held - self._open_bytes - NUMBERS.copies * NUMBERS.entry_bytes * entries

    @property
    def _iterations_of_nodes(self) -> int:
        return self._simplex.iterations - self._first_iterations if self._nodes else 0

    def _that_fit(self, cuts: Sequence[RankOneCut]) -> Sequence[RankOneCut]:
        """Return as many of some cuts as there is memory for, by what a sample of columns holds."""
        columns, free = len(self._pool.costs), max(0.0, self._free)
        if NUMBERS.copies * NUMBERS.entry_bytes * columns * len(cuts) <= free:
            return cuts
        sample = self._pool.incidence[:: max(1, columns // NUMBERS.sample)]
        entries = coefficients(cuts, sample).nnz * columns / sample.shape[0] / len(cuts)
        fit = free / max(1.0, NUMBERS.copies * NUMBERS.entry_bytes * entries)
        self.was_full |= fit < len(cuts)
        return cuts[: int(min(fit, len(cuts)))]

    def run(self) -> PoolAnswer:
        """Return the answer."""
        try:
            lowest = self._search()
        except _OutOfTime as ended:
            lowest = float(ended.args[0])
        complete = lowest is None and self._undecided == np.inf
        still_open = np.inf if lowest is None else lowest
        bound = min(self._floor, self._closed, self._undecided, still_open) * self._unit
        value = None
        if self._chosen is not None:
            value = self.pool.cost(self._chosen)
            bound = min(bound, value)
        return PoolAnswer(
            self._chosen,
            value,
            float(bound),
            complete,
            self._reporter,
            tuple(self._cuts),
            self._left,
            self._nodes,
            self._work,
            self._iterations_of_nodes,
            self.was_full,
        )

    def _search(self) -> float | None:
        """Search; return None when through, or the bound of what is open when work ended."""
        if not len(self._pool.costs):
            return None
        self._relaxation.add_columns(_first_columns(self._pool, self.start))
        root = self._root()
        if root is None:
            return None
        self._left = len(root.active)
        self._narrow(root)
        opened = self._solved(np.arange(self._left), self._counted, root.bound)
        node = None if opened is None else self._strengthened(opened)
        left = None if node is None else self._decided(node)
        if left is None:
            return None
        # Where a solver gave up, branches on rows do not end either.
        given_up = not self._plain and len(left.active) <= self._few
        return left.bound if given_up else self._branch(left)

    def _root(self) -> _Node | None:
        """Return the root after all cuts; None if it is closed."""
        active = np.arange(len(self._pool.costs))
        # As many of the columns that cost least as a selection holds, where these cost below zero.
        bound = min(0.0, self._pool.most * float(self._pool.costs.min(initial=0.0)))
        stalled = 0
        for round_ in range(NUMBERS.rounds + 1):
            before, node = bound, self._solved(active, self._counted, bound)
            if node is None:
                return None
            active, bound = node.active, node.bound
            self.budget.report("pool", done=round_)
            stalled = (
                0 if bound - before > NUMBERS.least_share * (self._floor - bound) else stalled + 1
            )
            if len(active) <= self._few or stalled >= NUMBERS.stalled or round_ == NUMBERS.rounds:
                break
            if self.budget.stop_reason() is not None:
                raise _OutOfTime(bound)
            new = self._broken(node.relaxed, round_)
            if not new or self.was_full:
                break
            self._add_cuts(new)
        return node

    def _strengthened(self, root: _Node) -> _Node | None:
        """Return the root after mixed-integer cuts; None if it is closed.

        Each round leaves fewer columns to the next.
        """
        first, stalled, counted = root, 0, np.array(sorted(self._counted), np.int64)
        is_renumbered = False
        for round_ in range(NUMBERS.mixed_rounds):
            if len(root.active) <= NUMBERS.solver_columns or stalled >= NUMBERS.patience:
                break
            if self.budget.stop_reason() is not None:
                raise _OutOfTime(root.bound)
            whole = np.append(counted, np.array(self._cut_rows, np.int64))
            cuts, sides = self._relaxation.mixed_integer_cuts(root.active, root.relaxed, whole)
            held = NUMBERS.copies * NUMBERS.entry_bytes * len(root.active)
            fit = int(max(0.0, self._free) // held)
            self.was_full |= fit < len(sides)
            cuts, sides = cuts[:fit], sides[:fit]
            new = self._broken(root.relaxed, round_)
            if not (len(sides) or new) or self.was_full:
                break
            active = root.active
            if len(active) < NUMBERS.narrowed * len(self._pool.costs):
                self._narrow(root)
                active, is_renumbered = np.arange(len(active)), True
            # Columns that are gone have no part in the cuts.
            shape = (len(self._pool.costs), len(active))
            places = csr_array((np.ones(len(active)), (active, np.arange(len(active)))), shape)
            self._add_mixed(csr_array(places @ csr_array(-cuts.T)), -sides)
            self._add_cuts([cut for cut in new if cut not in self._cuts])
            again = self._solved(active, self._counted, root.bound)
            if again is None:
                return None
            self.budget.report("pool", done=round_)
            less = len(again.active) < NUMBERS.fewer * len(root.active)
            stalled = 0 if less else stalled + 1
            root = again
        # The first node counts the columns of the pool as it was.
        if is_renumbered or len(root.active) <= NUMBERS.worth * len(first.active):
            return root
        self._mixed_rows = []
        return replace(first, bound=root.bound)

    def _narrow(self, root: _Node) -> None:
        """Go on with the columns and cuts that matter: the program of the root has far more."""
        pool, inside = self._pool, self._relaxation.inside(root.active)
        binds = np.abs(root.relaxed.extra_duals) > NUMBERS.binding
        cuts = [cut for cut, row in zip(self._cuts, self._cut_rows, strict=True) if binds[row]]
        mixed = np.array([row for row in self._mixed_rows if binds[row]], np.int64)
        matrix = csr_array(self._relaxation.extra[mixed][:, root.active].T)
        sides = self._relaxation.sides[mixed]
        self._numbers = self._numbers[root.active]
        self._begin(pool.only(root.active), cuts)
        self._relaxation.add_columns(np.flatnonzero(inside))
        self._add_mixed(matrix, sides)

    def _add_mixed(self, matrix: csr_array, sides: Floats) -> None:
        """Add mixed-integer cuts, of (c, q) coefficients and (q,) upper sides."""
        rows = self._relaxation.add_rows(matrix, sides, least=False)
        self._relaxation.hold_rows(rows)
        self._mixed_rows += rows.tolist()

    def _add_cuts(self, cuts: Sequence[RankOneCut]) -> None:
        cuts = self._that_fit(cuts)
        if not cuts:
            return
        sides = right_sides(cuts, self._pool.coverage).astype(np.float64)
        held = coefficients(cuts, self._pool.incidence).astype(np.float64)
        rows = self._relaxation.add_rows(held, sides, least=False)
        self._relaxation.hold_rows(rows)
        self._cut_rows += rows.tolist()
        self._cuts += cuts

    def _broken(self, relaxed: Relaxed, turn: int, **limits: Any) -> list[RankOneCut]:
        """Return cuts that an optimum breaks, by random numbers of a turn."""
        return separate(
            self._pool.incidence[relaxed.columns],
            relaxed.weights,
            self._pool.coverage,
            known=self._cuts,
            seed=self.options.seed + turn,
            **limits,
        )

    def _improve(self, chosen: Ints) -> None:
        cost = self._pool.cost(chosen)
        if cost < self._best:
            self._best, self._chosen = cost, self._numbers[chosen]

    def _decided(self, node: _Node) -> _Node | None:
        """Have a solver decide a node if it is small; return what is left to branch on."""
        if self.solver is None or len(node.active) > self._few:
            return node
        if not len(node.active):
            return None
        is_counted = not self._plain and len(node.active) > NUMBERS.given_freely
        if is_counted and self._work >= self._most:
            return node
        options = self.options
        if self.max_nodes is not None and not self._plain:
            # Its nodes take longer the more columns they have, with many the more so.
            many = len(node.active) / NUMBERS.long_nodes
            longer = max(1.0, 2.0 * many * max(1.0, many))
            options = replace(options, node_limit=max(1, int(self._most / longer)))
        binding = np.flatnonzero(np.abs(node.relaxed.extra_duals) > NUMBERS.binding)
        rows = np.array(sorted(set(binding.tolist()) | node.rows), np.int64)
        result, chosen = solve_integer(
            self._pool,
            node.active,
            csr_array(self._relaxation.extra[rows][:, node.active].T),
            self._relaxation.row_bounds(rows),
            self._best,
            Mip(self.solver, options, self.budget),
        )
        if is_counted:
            self._work += len(node.active) / NUMBERS.given_a_node
            self._work += (result.iterations or 0) / NUMBERS.iterations_a_node
        if chosen is not None:
            self._improve(chosen)
        complete = result.stopped is Stopped.OPTIMAL
        if result.bound is not None and (complete or result.bound > node.bound):
            self._reporter = result.solver
            node = replace(node, bound=max(node.bound, result.bound))
        if result.bound is None or not complete:
            return node
        self._closed = min(self._closed, node.bound)
        return None

    def _branch(self, root: _Node) -> float | None:
        """Branch, best bound first; return None when through, or the least bound that is open."""
        columns, self._first_iterations = len(self._pool.costs), self._simplex.iterations
        queue = [(root.bound, 0, _OpenNode.of(root, columns))]
        pushed, self._open_bytes = 0, queue[0][2].bytes
        while queue:
            lowest = queue[0][0]
            if lowest >= self._floor:
                return None
            is_spent = self._iterations_of_nodes >= self._most_iterations
            if is_spent or self._work >= self._most or self.budget.stop_reason() is not None:
                return lowest
            self._is_full = self._free < 0
            if self._is_full:
                self.was_full = True
                queue = [one for one in queue if one[0] < self._floor]
                heapq.heapify(queue)
                self._open_bytes = sum(one[2].bytes for one in queue)
            # The node next to the floor leaves fewest behind it: depth first, few nodes wait.
            place = max(range(len(queue)), key=queue.__getitem__) if self._is_full else 0
            bound, _, node = queue[place]
            self._nodes += 1
            active = node.columns
            few = NUMBERS.few_types / len(self._pool.coverage)
            self._work += max(1.0, few if self._plain else len(active) / NUMBERS.light)
            if self.known_after is not None and self._nodes == self.known_after[0]:
                known = self.known_after[1]() / self._unit
                if known < self._best:
                    self._best, self._chosen = known, None
                    continue
            self.budget.report("pool", done=self._nodes)
            try:
                children = self._children(node, active, bound)
            except _OutOfTime:
                return lowest
            self._open_bytes -= node.bytes
            if place:
                queue[place] = queue[-1]
                queue.pop()
                heapq.heapify(queue)
            else:
                heapq.heappop(queue)
            for child in children:
                pushed += 1
                later = _OpenNode.of(child, columns)
                self._open_bytes += later.bytes
                heapq.heappush(queue, (child.bound, pushed, later))
        return None

    def _children(self, waiting: _OpenNode, active: Ints, bound: float) -> list[_Node]:
        """Return what is left of both sides of a node."""
        # The program stands at another node.
        self._relaxation.restart(waiting.start)
        node = self._solved(active, waiting.rows, bound)
        for round_ in range(NUMBERS.node_rounds):
            node = None if node is None else self._cut(node, round_)
        node = None if node is None else self._decided(node)
        if node is None:
            return []
        sides = branches(self._pool, self._relaxation, node.relaxed, node.active, self._best)
        if sides is None:
            # A whole point that is no selection: the solver's tolerances hide one.
            self._undecided = min(self._undecided, bound)
        children = []
        for side in sides or ():
            child = self._child(node, side)
            left = None if child is None else self._decided(child)
            children += [] if left is None else [left]
        return children

    def _cut(self, node: _Node, round_: int) -> _Node | None:
        """Return a node after one round of cuts, those that were switched off before new ones."""
        shares = np.zeros(len(self._pool.costs))
        shares[node.relaxed.columns] = node.relaxed.weights
        excess = self._relaxation.extra @ shares - self._relaxation.sides
        held = np.array(self._cut_rows + self._mixed_rows, np.int64)
        back = held[excess[held] > NUMBERS.broken]
        back = np.setdiff1d(back, self._relaxation.rows)
        if len(back):
            self._relaxation.hold_rows(back)
            return self._solved(node.active, node.rows, node.bound)
        if self._is_full:
            return node
        turn = NUMBERS.node_rounds * self._nodes + round_
        new = self._broken(node.relaxed, turn, most=NUMBERS.node_cuts, starts=NUMBERS.node_starts)
        if not new:
            return node
        self._add_cuts(new)
        return self._solved(node.active, node.rows, node.bound)

    def _child(self, node: _Node, side: Branch) -> _Node | None:
        """Return one side of a branching; None if it is closed."""
        rows = node.rows
        self._relaxation.restart(node.start)
        if side.row is not None:
            column = csr_array(side.row.astype(np.float64)[:, None])
            row = self._relaxation.add_rows(column, np.array([side.side]), least=side.least)
            self._relaxation.hold_rows(row)
            rows = rows | {int(row[0])}
        return self._solved(node.active[side.kept], rows, node.bound)

    def _solved(self, active: Ints, rows: frozenset[int], bound: float) -> _Node | None:
        """Return a node after its relaxation, with the columns that matter; None if it is closed.

        Raises _OutOfTime with the bound that is known.
        """
        relaxed = self._relaxation.solve(active, self.budget)
        if relaxed is None:
            raise _OutOfTime(bound)
        bound = max(bound, relaxed.bound)
        if not relaxed.artificial:
            chosen = self._pool.selection(relaxed.columns, relaxed.weights)
            if chosen is not None:
                self._improve(chosen)
        if bound >= self._floor:
            return None
        active = active[relaxed.reduced <= self._floor - relaxed.bound]
        start = self._relaxation.start(active, np.array(sorted(rows), np.int64))
        return _Node(active, rows, relaxed, bound, start)


def _first_columns(pool: Pool, start: Ints | None) -> Ints:
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


def solve_pool(pool: Pool, **asked: Any) -> PoolAnswer:
    """Return what a :class:`PoolSearch` finds; it says what is asked."""
    return PoolSearch(pool, **asked).run()


def _unit(costs: Floats) -> float:
    """Return the power of two next below the mean cost: solvers' tolerances suit costs of 1."""
    mean = float(costs.mean()) if len(costs) else 0.0
    return 2.0 ** np.floor(np.log2(mean)) if mean > 0 else 1.0
