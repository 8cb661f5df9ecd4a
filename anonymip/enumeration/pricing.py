"""Pricing: the columns of least reduced cost under duals, for column generation and bounds.

A column is a multiset of row types that may share a class, or that a record may be published with.
Under duals of the rows and of rank-1 cuts its reduced cost is its cost, less the duals of its rows,
plus those of the cuts that it pays. Each column has a root: of its types the one with the highest
dual, the first one among equals. Duals bound the loss of all releases where no column of any root
has a negative reduced cost; :attr:`PricedColumns.least` says how far each root is from that.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from anonymip.enumeration.cluster_sets import Columns, exact_losses
from anonymip.enumeration.merging import capped_tables, loss_scale, row_types, search_rows
from anonymip.enumeration.rooted_search import (
    COMPLETE,
    CRAMPED,
    FULL,
    ROOT,
    SIZE,
    ColumnsFound,
    CutsOfRows,
    RootedFollowers,
    RootedRules,
    RootedSearch,
    Roots,
    SearchRows,
    new_rooted_path,
    search_columns,
)
from anonymip.errors import InputError, UnsupportedObjective
from anonymip.instances.microdata import RowTypes
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.tolerances import DUAL_ROUNDING, SEARCH_ROUNDING

#: No limit of columns or nodes.
UNLIMITED = 2**62

_SECONDS_A_STEP = 0.1

#: Columns whose costs are computed at a time: cuts hold many entries of each.
_JUDGED = 50_000
#: Room for columns that stays between searches.
_KEPT_ROOM = 100_000


class RootedRun:
    """Searches for columns of up to `largest` rows, one after the other; the memory stays.

    `found`, `nodes`: columns of the last search, and the partial sets that it looked at.
    `complete`: whether it went through and gave no root up.
    """

    def __init__(self, rows: SearchRows, largest: int) -> None:
        self.rows, self._largest = rows, largest
        self.found = ColumnsFound.of_sizes(columns=1_000, room=1_000 * largest)
        #: What ended it early: ``"max_columns"``, ``"max_nodes"``, or the value of
        #: :class:`~anonymip.status.Stopped`; None if nothing did.
        self.reason: str | None = None
        self.complete, self.nodes = False, 0
        self._path = new_rooted_path(rows, largest)
        self._followers = RootedFollowers.of_sizes(room=4 * len(rows.copies) + 64)

    def search(
        self,
        cuts: CutsOfRows,
        rules: RootedRules,
        roots: Roots,
        budget: Budget,
        *,
        phase: str = "pricing",
        max_columns: int = UNLIMITED,
        max_nodes: int = UNLIMITED,
    ) -> None:
        """Search all roots, until something ends it.

        Of roots that were not searched to the end nothing is proven: `least` is minus infinity.
        """
        path = self._path
        for begun in (path.place, path.nodes, path.used, path.counts.held, self.found.held):
            begun[:] = 0
        path.place[ROOT], path.place[SIZE] = -1, rules.largest
        self.complete, self.reason = False, None
        given = self.rows, cuts, rules, roots, path
        state = RootedSearch(*given, self._followers, self.found)
        amount, searched = 100, 0
        while self.reason is None:
            stopped = budget.stop_reason()
            if stopped is not None:
                self.reason = stopped.value
                break
            start, before = time.perf_counter(), int(path.nodes[0])
            most = min(before + amount, max_nodes)
            status = search_columns(state, most)
            searched = int(path.place[ROOT])
            budget.report(phase, done=int(self.found.held[0]))
            if self.found.held[0] > max_columns:
                self.reason = "max_columns"
            elif status == COMPLETE:
                self.complete, searched = int(path.nodes[2]) == 0, len(roots.types)
                break
            elif status == FULL:
                held, *arrays = self.found
                self.found = ColumnsFound(held, *map(_larger, arrays))
                state = state._replace(found=self.found)
            elif status == CRAMPED:
                self._followers = RootedFollowers(*map(_larger, self._followers))
                state = state._replace(followers=self._followers)
            elif most == max_nodes:
                self.reason = "max_nodes"
            else:
                rate = amount / max(time.perf_counter() - start, 1e-6)
                amount = max(1, min(int(rate * _SECONDS_A_STEP), 4 * amount))
        roots.least[max(0, searched) :] = -math.inf
        self.nodes = int(path.nodes[0])

    def forget(self) -> None:
        """Give up what was found, and the room of many columns."""
        if len(self.found.sizes) > _KEPT_ROOM:
            self.found = ColumnsFound.of_sizes(columns=1_000, room=1_000 * self._largest)


def _larger(array: Any) -> Any:
    """Return an array with twice the room."""
    return np.concatenate([array, np.empty_like(array)])


@dataclass(frozen=True, eq=False)
class PricedColumns(Columns):
    """Columns found, with their costs by the objective's own function."""

    reduced: Floats  # (c,) reduced costs
    #: Where only the best columns of each root were asked for: for each root that was asked for a
    #: lower bound on the reduced costs of its columns, no higher than `below` was. Minus infinity
    #: where the search did not get that far.
    least: Floats
    complete: bool  # whether the search went through
    nodes: int  # partial sets that were looked at


def members_of(starts: Ints, sizes: Ints, columns: Ints) -> Ints:
    """Return the places of the members of some columns, one column behind the other.

    `starts` and `sizes` say where the members of each column begin, and how many they are.
    """
    lengths = sizes[columns]
    ends = np.cumsum(lengths)
    places: Ints = np.repeat(starts[columns] - ends + lengths, lengths)
    return places + np.arange(len(places))


@dataclass(frozen=True, eq=False)
class CutDuals:
    """Rank-1 cuts and their duals, which are at least 0.

    A column pays the dual of a cut once for every `divisor` of its members in the cut, rounded
    down. Row types of the cut q are types[starts[q]:starts[q + 1]], different ones.
    """

    starts: Ints
    types: Ints
    divisors: Ints
    duals: Floats

    @classmethod
    def of(cls, cuts: Iterable[tuple[Sequence[int], int, float]]) -> CutDuals:
        """Return cuts of row types, a divisor and a dual each."""
        listed = list(cuts)
        return cls(
            np.cumsum([0, *(len(types) for types, _, _ in listed)], dtype=np.int64),
            np.array([one for types, _, _ in listed for one in types], np.int64),
            np.array([divisor for _, divisor, _ in listed], np.int64),
            np.array([dual for _, _, dual in listed]),
        )


def cuts_of_rows(types: int, cuts: CutDuals | None) -> CutsOfRows:
    """Return the cuts that cost anything, type by type."""
    if cuts is None:
        nothing = np.zeros(0, np.int64)
        return CutsOfRows(np.zeros(types + 1, np.int64), nothing, nothing, np.zeros(0), nothing)
    divisors = np.asarray(cuts.divisors, np.int64)
    duals = np.asarray(cuts.duals, np.float64)
    if not (np.isfinite(duals).all() and (duals >= 0).all() and (divisors >= 1).all()):
        raise InputError(
            "duals of cuts are negative or infinite, or divisors below 1",
            remedy="Give duals of at least 0 and divisors of at least 1",
        )
    kept = np.flatnonzero(duals > 0)
    by_type = _membership(cuts, types)[kept].tocsc()
    return CutsOfRows(
        by_type.indptr.astype(np.int64),
        by_type.indices.astype(np.int64),
        divisors[kept],
        duals[kept],
        np.zeros(len(kept), np.int64),
    )


def _membership(cuts: CutDuals, types: int) -> csr_array:
    """Return (cuts, t) which types each cut holds."""
    listed = np.asarray(cuts.types, np.int64)
    shape = len(cuts.duals), types
    return csr_array((np.ones(len(listed), np.int64), listed, np.asarray(cuts.starts)), shape)


@dataclass(frozen=True, eq=False)
class Wanted:
    """What a search looks for: columns whose reduced cost is below a number."""

    duals: Floats  # (t,) of a row of each type
    order: Ints  # (t,) the types by falling duals, the first one first among equals
    rank: Ints  # (t,) place of each type in the order
    cuts: CutsOfRows
    below: float
    #: The best columns of each root and size that are wanted; None if all are.
    per_root: int | None
    root_nodes: int | None  # nodes of a root, or of a root and a size, at which to go on
    #: Nodes and columns at which to end.
    max_nodes: int
    max_columns: int
    budget: Budget


class ColumnSearch(ABC):
    """The search for columns of a problem under duals, whose losses a subclass knows to bound.

    `problem`: gives table and loss. `smallest, largest`: fewest and most rows of a column.
    `weight`: what a column of s rows costs: ``"size"``, s times the loss of one of its records, as
    a class does; ``"one"``, that loss once.
    """

    def __init__(self, problem: Problem, smallest: int, largest: int, weight: str) -> None:
        self.problem, self.smallest, self.largest, self.weight = problem, smallest, largest, weight
        #: The row types: records that are alike to loss, limits and diversity.
        self.types: RowTypes = row_types(problem)

    @abstractmethod
    def _search(self, wanted: Wanted) -> tuple[Codes, Ints, Floats, bool, int]:
        """Return members and sizes of the columns found, and what `PricedColumns` tells of them.

        Members come column by column, ascending. Of all columns nothing is said of the roots.
        """

    @abstractmethod
    def _rounding(self, highest: float, below: float) -> float:
        """Return how far the reduced costs of the search may be off.

        `highest`: what the dual of a row and those of all cuts are at most, without their signs.
        """

    def best(
        self,
        duals: ArrayLike,
        cuts: CutDuals | None = None,
        *,
        below: float = 0.0,
        per_root: int = 1,
        max_nodes: int | None = None,
        most_nodes: int | None = None,
        budget: Budget | None = None,
    ) -> PricedColumns:
        """Return the best columns of each root and size whose reduced cost is below a number.

        `duals`: (t,) of a row of each type. `per_root`: most columns of each root and size.
        `max_nodes, most_nodes`: partial sets looked at for a root, or a root and a size, at which
        to go on to the next, and in all at which to end.
        """
        keep = max(1, int(per_root))
        return self._priced(duals, cuts, below, keep, max_nodes, most_nodes, UNLIMITED, budget)

    def all_below(
        self,
        duals: ArrayLike,
        threshold: float,
        cuts: CutDuals | None = None,
        *,
        max_columns: int,
        max_nodes: int | None = None,
        budget: Budget | None = None,
    ) -> PricedColumns:
        """Return all columns with reduced costs below a threshold; duals as for :meth:`best`.

        More than `max_columns`, or `max_nodes` partial sets, end the search, as the budget does.
        """
        return self._priced(duals, cuts, threshold, None, None, max_nodes, max_columns, budget)

    def _priced(
        self,
        duals: ArrayLike,
        cuts: CutDuals | None,
        threshold: float,
        per_root: int | None,
        root_nodes: int | None,
        max_nodes: int | None,
        max_columns: int,
        budget: Budget | None,
    ) -> PricedColumns:
        """Return what a search finds whose reduced cost, by the cost of the objective, is below."""
        given = np.array(duals, np.float64)
        t = len(self.types.first)
        if given.shape != (t,) or not np.isfinite(given).all():
            raise InputError(
                f"duals are no {t} finite numbers", remedy="Give one number a row type"
            )
        if math.isnan(threshold):
            raise InputError("below is NaN", remedy="Give a number")
        highest = float(np.abs(given).max())
        if cuts is not None:
            highest += float(np.abs(cuts.duals).sum())
        rounding, order = self._rounding(highest, threshold), np.argsort(-given, kind="stable")
        members, sizes, least, complete, nodes = self._search(
            Wanted(
                given,
                order,
                np.argsort(order),
                cuts_of_rows(t, cuts),
                # Of all, what rounding lifts above the threshold comes in, and is judged by its
                # cost.
                threshold + rounding if per_root is None else threshold,
                per_root,
                root_nodes,
                UNLIMITED if max_nodes is None else max_nodes,
                max_columns,
                budget or Budget(),
            )
        )
        costs, reduced = self._costs(members, sizes, given, cuts)
        kept = np.flatnonzero(reduced < threshold)
        complete = complete and len(kept) <= max_columns
        kept = kept[:max_columns]
        if len(kept) < len(sizes):
            starts = np.concatenate([[0], np.cumsum(sizes)])
            members = members[members_of(starts, sizes, kept)]
        starts = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        return PricedColumns(
            starts, members, costs[kept], reduced[kept], least - rounding, complete, nodes
        )

    def _costs(
        self, members: Codes, sizes: Ints, duals: Floats, cuts: CutDuals | None
    ) -> tuple[Floats, Floats]:
        """Return (c,) costs of columns by the objective, and their reduced costs."""
        starts, count = np.concatenate([[0], np.cumsum(sizes)]), len(sizes)
        costs, reduced = np.empty(count), np.empty(count)
        for begin in range(0, count, _JUDGED):
            end = min(begin + _JUDGED, count)
            own, own_starts = members[starts[begin] : starts[end]], starts[begin : end + 1]
            own_starts = own_starts - own_starts[0]
            cost = exact_losses(self.problem, self.types.first[own], sizes[begin:end])
            if self.weight == "one":
                cost /= sizes[begin:end]
            costs[begin:end] = cost
            cost = cost - np.add.reduceat(duals[own], own_starts[:-1])
            if cuts is not None:
                # What the columns pay of the duals of cuts.
                shape = end - begin, len(duals)
                columns = csr_array((np.ones(len(own), np.int64), own, own_starts), shape)
                held = (columns @ _membership(cuts, len(duals)).T).tocoo()
                paid = held.data // cuts.divisors[held.col] * cuts.duals[held.col]
                cost += np.bincount(held.row, paid, end - begin)
            reduced[begin:end] = cost
        return costs, reduced


class Pricing(ColumnSearch):
    """The search for columns of a problem with a monotone loss, its limits and its diversity.

    Where a class has a row whose dual is not above the record loss, the class without it is at
    least as good: of the best columns beyond the smallest size such ones are left out, unless a
    diversity is asked for, which the smaller ones may not have.

    Raises InputError if the sizes are out of range, or the weight is unknown; UnsupportedObjective
    if the loss has no tables, is not monotone, or is no sum over the records.
    """

    def __init__(self, problem: Problem, *, smallest: int, largest: int, weight: str) -> None:
        if not 2 <= smallest <= largest <= problem.n:
            raise InputError(
                f"columns of {smallest} to {largest} rows are asked for, of {problem.n} records",
                remedy="Give 2 <= smallest <= largest <= n",
            )
        if weight not in ("size", "one"):
            raise InputError(f"weight is {weight!r}", remedy="Give 'size' or 'one'")
        compiled = problem.compiled
        _ = compiled.tables  # refuses losses without tables
        if not compiled.monotone:
            raise UnsupportedObjective(
                f"pricing needs a monotone objective, and {compiled.name!r} is not known to be "
                f"one: {compiled.obstacle}",
                remedy="Use an objective that never falls when a cell covers more",
            )
        if compiled.aggregate != "sum":
            raise UnsupportedObjective(
                f"pricing needs a sum over the records, and {compiled.name!r} is their largest "
                "loss",
                remedy="Use an objective that is summed over the records",
            )
        super().__init__(problem, smallest, largest, weight)
        rows = search_rows(problem, self.types, capped_tables(problem))
        self._run = RootedRun(rows, largest)
        self._scale = loss_scale(problem) * (largest if weight == "size" else 1)

    def _rounding(self, highest: float, below: float) -> float:
        return SEARCH_ROUNDING * self._scale + DUAL_ROUNDING * self.largest * highest

    def _search(self, wanted: Wanted) -> tuple[Codes, Ints, Floats, bool, int]:
        run, order, best = self._run, wanted.order, wanted.per_root is not None
        run.rows.duals[:] = wanted.duals
        places, summed = np.arange(len(order)), self.weight == "size"
        # Roots whose best columns are wanted come in the order of the types.
        types, begin = (places, wanted.rank) if best else (order, places)
        roots = roots_of(types, begin, order, wanted.below)
        rules = RootedRules(
            self.smallest,
            self.largest,
            True,
            summed,
            UNLIMITED if wanted.per_root is None else wanted.per_root,
            UNLIMITED if wanted.root_nodes is None else int(wanted.root_nodes),
            best and summed and self.problem.diversity is None,
        )
        run.search(
            wanted.cuts,
            rules,
            roots,
            wanted.budget,
            max_columns=wanted.max_columns,
            max_nodes=int(wanted.max_nodes),
        )
        count, filled = run.found.held.tolist()
        members, sizes = run.found.members[:filled].copy(), run.found.sizes[:count].copy()
        run.forget()
        return members, sizes, roots.least, run.complete, run.nodes


def roots_of(types: Ints, begin: Ints, order: Ints, below: float) -> Roots:
    """Return where to search: roots, joined by all types from some place of an order on."""
    return Roots(
        types,
        begin,
        np.full(len(types), len(order)),
        order,
        np.full(len(types), float(below)),
        np.full(len(types), -math.inf),
    )
