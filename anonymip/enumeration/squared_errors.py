"""Pricing of squared errors: classes of least reduced cost under duals, cut off or not.

A search that is cut off knows what it left, so that any duals have a bound at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from anonymip.enumeration.pricing import (
    UNLIMITED,
    ColumnSearch,
    CutDuals,
    PricedColumns,
    Pricing,
    cuts_of_rows,
    highest_dual,
)
from anonymip.enumeration.rooted_search import CutsOfRows
from anonymip.enumeration.squared_search import (
    DEPTH,
    EVALUATIONS,
    FOUND,
    NODES,
    OVERFLOW,
    WORK,
    SquaredPath,
    SquaredRows,
    begin_search,
    least_open,
    root_terms,
    search_squares,
)
from anonymip.objectives.losses.squared_error import SSE
from anonymip.problem import Problem, has_rules
from anonymip.recodings.registry import published_form
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.tolerances import DUAL_ROUNDING, LOSS_RELATIVE, SEARCH_ROUNDING


@dataclass(frozen=True)
class Numbers:
    """The numbers that steer the search, chosen by the benchmark of microaggregation."""

    #: Records that may join a root at most, in a search that is cut off,
    few: int = 300
    #: and in one that is to go through.
    many: int = 2_000
    #: Nodes of a root in the first of the passes that are to end with all roots searched;
    first_nodes: int = 1_000
    #: each further one has so many times as many.
    raised: int = 6
    #: after so many it is left as it is: more may join it than are looked at.
    most_nodes: int = 1_000_000_000
    #: Between two of so many it is asked whether time is left.
    step: int = 100_000
    #: A pass that finds columns for this share of the roots is the last: their duals are wrong.
    many_found: float = 0.03
    #: Lower thresholds tried for a root that was cut off, as shares of what is left open.
    thresholds: tuple[float, ...] = (0.3, 0.6)
    #: Columns that there is room for first.
    columns: int = 1_000
    #: Sizes whose columns are kept of a root.
    sizes: int = 3


_NUMBERS = Numbers()


def are_priced(problem: Problem) -> bool:
    """Return whether classes of a problem are priced by squared errors."""
    classes = published_form(problem.recoding) == "classes"
    # A subclass may charge something else.
    return type(problem.objective) is SSE and classes and not has_rules(problem)


@dataclass(eq=False)
class _Call:
    """What one call is given, and the columns and the nodes that it comes to."""

    duals: Floats
    order: Ints
    rank: Ints
    cuts: CutsOfRows
    budget: Budget
    members: list[Ints] = field(default_factory=list)
    sizes: list[Ints] = field(default_factory=list)
    found: int = 0
    nodes: int = 0

    def take(self, path: SquaredPath) -> None:
        """Take the columns of a search."""
        count = int(path.state[FOUND])
        self.nodes += int(path.state[NODES]) + int(path.state[WORK]) // EVALUATIONS
        self.found += count
        if count:
            sizes = path.sizes[:count].copy()
            held = np.arange(path.columns.shape[1]) < sizes[:, None]
            members = np.where(held, path.columns[:count], np.iinfo(np.int64).max)
            self.members.append(np.sort(members, axis=1)[held])
            self.sizes.append(sizes)


class SquaredErrorPricing(ColumnSearch):
    """The search for classes of a problem with squared errors, as `Pricing` is for other losses.

    `problem`: plain classes with the objective SSE. `smallest, largest`: fewest and most rows of a
    column.
    """

    def __init__(self, problem: Problem, *, smallest: int, largest: int) -> None:
        assert isinstance(problem.objective, SSE)
        super().__init__(problem, smallest, largest, "size")
        first = self.types.first
        # (t, largest) sums of the least squared distances to other records, rounded down:
        # differences of coordinates are off by so much at most, and distances by its root of m.
        points = problem.objective.points(problem.microdata)
        error = 4 * np.finfo(np.float64).eps * float(np.abs(points).max()) * problem.m**0.5
        distances, _ = cKDTree(points).query(points[first], k=largest)
        lowered = np.maximum(0.0, distances * (1 - LOSS_RELATIVE) - error) ** 2
        lowered[:, 0] = 0.0
        near: Floats = np.cumsum(lowered, axis=1)
        self._rows = SquaredRows(
            np.ascontiguousarray(problem.microdata.values[first], np.float64),
            1.0 / problem.objective.units(problem.microdata),
            self.types.counts,
            near,
        )
        self._paths: dict[int, SquaredPath] = {}
        t = len(first)
        self._bounds, self._work, self._low = np.empty(t), np.empty((2, t)), np.empty(largest + 1)

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
        """Return the best columns of each root whose reduced cost is below a number.

        `max_nodes` are those of a root. Without it all roots are searched in passes with more and
        more nodes, until one finds many columns or `most_nodes` are used up.
        """
        given = self._ranked(duals)
        call = _Call(*given, cuts_of_rows(len(given[0]), cuts), budget or Budget())
        # Of roots that are never looked at nothing is proven.
        least = np.full(len(call.order), -np.inf)
        keep = per_root * min(_NUMBERS.sizes, self.largest - self.smallest + 1)
        most = math.inf if most_nodes is None else most_nodes
        cap, room = _NUMBERS.first_nodes if max_nodes is None else max_nodes, _NUMBERS.few
        rest = call.order.tolist()
        while rest:
            again, before = [], call.found
            for at, root in enumerate(rest):
                if call.nodes >= most or call.budget.stop_reason() is not None:
                    again += rest[at:]
                    break
                found, through = self._search(call, root, below, keep, cap, room)
                if not through:
                    again.append(root)
                    if max_nodes is None:
                        found = self._lower(call, root, below, found, cap, room)
                least[root] = max(least[root], found)
            rest = again
            call.budget.report("pricing", done=call.found)
            many = call.found - before >= _NUMBERS.many_found * len(call.order)
            ended = call.nodes >= most or call.budget.stop_reason() is not None
            if max_nodes is not None or many or ended or cap > _NUMBERS.most_nodes:
                break
            cap, room = cap * _NUMBERS.raised, _NUMBERS.many
        return self._priced(call, cuts, below, least, not rest)

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

        More than `max_columns`, or `max_nodes` nodes, end the search, as the budget does.
        """
        given = self._ranked(duals)
        call = _Call(*given, cuts_of_rows(len(given[0]), cuts), budget or Budget())
        # What rounding lifts above the threshold comes in, and is judged by its cost.
        below = threshold + self._rounding(call.duals, cuts, threshold)
        most, complete = UNLIMITED if max_nodes is None else max_nodes, True
        for root in call.order.tolist():
            ended = call.found > 2 * max_columns or call.budget.stop_reason() is not None
            if ended or call.nodes >= most:
                complete = False
                break
            left = most - call.nodes
            complete = self._search(call, root, below, UNLIMITED, left, _NUMBERS.many, max_columns)[
                1
            ]
            if not complete:
                break
        return self._priced(call, cuts, threshold, np.empty(0), complete, max_columns)

    def _search(
        self,
        call: _Call,
        root: int,
        below: float,
        keep: int,
        most: int,
        room: int,
        columns: int = UNLIMITED,
    ) -> tuple[float, bool]:
        """Search one root; return a bound of its reduced costs, and whether nothing was left."""
        rows, bounds = self._rows, self._bounds
        root_terms(
            rows, call.duals, call.rank, root, self.smallest, below, bounds, self._work, self._low
        )
        joining = np.flatnonzero(bounds < below)
        joining = joining[np.argsort(bounds[joining], kind="stable")]
        places = np.cumsum(np.minimum(rows.copies[joining], self.largest))
        fits = int(np.searchsorted(places, room, side="right"))
        left_out = float(bounds[joining[fits]]) if fits < len(joining) else np.inf
        room = min(room, max(1, int(places[-1]) if len(places) else 1))
        path = self._path(room)
        while True:
            begin_search(rows, call.duals, call.cuts, path, root, joining[:fits], self.smallest)
            least, looked_at = below, 0
            # In steps, since one root may take as long as all others.
            while path.state[DEPTH] and looked_at < most and not path.state[OVERFLOW]:
                looked_at = min(most, looked_at + _NUMBERS.step)
                least = search_squares(
                    call.cuts, path, self.smallest, below, least, keep, looked_at
                )
                if call.budget.stop_reason() is not None:
                    break
            held = len(path.sizes)
            if not path.state[OVERFLOW] or held > columns:
                break
            path = self._path(len(path.types), 4 * held)
        call.take(path)
        through = not path.state[DEPTH] and not path.state[OVERFLOW] and left_out >= below
        return min(float(least), float(least_open(path)), left_out), bool(through)

    def _lower(
        self, call: _Call, root: int, below: float, least: float, most: int, room: int
    ) -> float:
        """Return a better bound of a root that was cut off, by thresholds that leave less open."""
        for share in _NUMBERS.thresholds:
            threshold = below + share * (least - below)
            if not least < threshold < below:
                break
            found, through = self._search(call, root, threshold, 1, most, room)
            least = max(least, found)
            if through:
                break
        return least

    def _path(self, room: int, columns: int = 0) -> SquaredPath:
        """Return a workspace for so many that may join, made anew only where it is too small."""
        size = _NUMBERS.few if room <= _NUMBERS.few else _NUMBERS.many
        known = self._paths.get(size)
        if known is None or len(known.sizes) < columns:
            most = int(min(size, self.types.counts.clip(max=self.largest).sum()))
            known = SquaredPath.of_sizes(
                room=most,
                largest=self.largest,
                deep=self.largest + 1,
                most=max(columns, _NUMBERS.columns),
            )
            self._paths[size] = known
        return known

    def _rounding(self, duals: Floats, cuts: CutDuals | None, below: float) -> float:
        """Return how far the reduced costs of the kernel may be off."""
        # A column that is looked for costs no more than its duals and the threshold.
        size = self.largest * highest_dual(duals, cuts)
        size += abs(below) if math.isfinite(below) else 0.0
        return (SEARCH_ROUNDING + DUAL_ROUNDING) * size

    def _priced(
        self,
        call: _Call,
        cuts: CutDuals | None,
        threshold: float,
        least: Floats,
        complete: bool,
        max_columns: int = UNLIMITED,
    ) -> PricedColumns:
        members = np.concatenate([np.empty(0, np.int64), *call.members]).astype(np.int32)
        sizes = np.concatenate([np.empty(0, np.int64), *call.sizes])
        priced = self._judged(members, sizes, call.duals, cuts, threshold, max_columns)
        return replace(
            priced,
            least=least - self._rounding(call.duals, cuts, threshold),
            complete=complete and priced.complete,
            nodes=call.nodes,
        )


def pricing_of(
    problem: Problem, *, smallest: int, largest: int, weight: str
) -> Pricing | SquaredErrorPricing:
    """Return the search for columns of a problem, by squared errors or a monotone loss."""
    if are_priced(problem):
        return SquaredErrorPricing(problem, smallest=smallest, largest=largest)
    return Pricing(problem, smallest=smallest, largest=largest, weight=weight)
