"""Pricing of squared errors: classes of least reduced cost under duals, cut off or not.

A search that is cut off knows what it left, so that any duals have a bound at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from anonymip.enumeration.pricing import (
    UNLIMITED,
    ColumnSearch,
    Pricing,
    Wanted,
)
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
from anonymip.runtime.arrays import Codes, Floats, Ints
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


class _Call:
    """What one call wants, and the columns and the nodes that it comes to."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.members, self.sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self.found = self.nodes = 0

    def take(self, path: SquaredPath) -> None:
        """Take the columns of a root."""
        count = int(path.state[FOUND])
        self.nodes += int(path.state[NODES]) + int(path.state[WORK]) // EVALUATIONS
        self.found += count
        if count:
            sizes = path.sizes[:count].copy()
            held = np.arange(path.columns.shape[1]) < sizes[:, None]
            members = np.where(held, path.columns[:count], np.iinfo(np.int64).max)
            self.members.append(np.sort(members, axis=1)[held])
            self.sizes.append(sizes)

    @property
    def is_over(self) -> bool:
        """Whether it has found or looked at enough, or time has ended."""
        wanted = self.wanted
        enough = self.nodes >= wanted.max_nodes or self.found > 2 * wanted.max_columns
        return enough or wanted.budget.stop_reason() is not None


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

    def _rounding(self, highest: float, below: float) -> float:
        # A column that is looked for costs no more than its duals and the threshold.
        size = self.largest * highest
        size += abs(below) if math.isfinite(below) else 0.0
        return (SEARCH_ROUNDING + DUAL_ROUNDING) * size

    def _search(self, wanted: Wanted) -> tuple[Codes, Ints, Floats, bool, int]:
        """Search root by root.

        Without nodes of a root for the best columns all roots are searched in passes with more and
        more nodes, until one finds many columns or all nodes are used up.
        """
        call, t, keep = _Call(wanted), len(wanted.order), UNLIMITED
        everything = wanted.per_root is None
        if wanted.per_root is not None:
            keep = wanted.per_root * min(_NUMBERS.sizes, self.largest - self.smallest + 1)
        passes = not everything and wanted.root_nodes is None
        cap = _NUMBERS.first_nodes if wanted.root_nodes is None else wanted.root_nodes
        room = _NUMBERS.many if everything else _NUMBERS.few
        # Of roots that are never looked at nothing is proven.
        least, rest = np.full(t, -np.inf), wanted.order.tolist()
        while rest:
            again, before = [], call.found
            for at, root in enumerate(rest):
                if call.is_over:
                    again += rest[at:]
                    break
                most = wanted.max_nodes - call.nodes if everything else cap
                bound, through = self._search_root(call, root, wanted.below, keep, most, room)
                if not through:
                    again.append(root)
                if everything and not through:
                    break
                if passes and not through:
                    bound = self._raised(call, root, bound, cap, room)
                least[root] = max(least[root], bound)
            rest = again
            wanted.budget.report("pricing", done=call.found)
            many = call.found - before >= _NUMBERS.many_found * t
            if not passes or many or call.is_over or cap > _NUMBERS.most_nodes:
                break
            cap, room = cap * _NUMBERS.raised, _NUMBERS.many
        members = np.concatenate(call.members).astype(np.int32)
        return members, np.concatenate(call.sizes), least, not rest, call.nodes

    def _search_root(
        self, call: _Call, root: int, below: float, keep: int, most: int, room: int
    ) -> tuple[float, bool]:
        """Search one root; return a bound of its reduced costs, and whether nothing was left."""
        rows, bounds, smallest = self._rows, self._bounds, self.smallest
        wanted, cuts = call.wanted, call.wanted.cuts
        given = rows, wanted.duals, wanted.rank, root, smallest, below
        root_terms(*given, bounds, self._work, self._low)
        joining = np.flatnonzero(bounds < below)
        joining = joining[np.argsort(bounds[joining], kind="stable")]
        places = np.cumsum(np.minimum(rows.copies[joining], self.largest))
        fits = int(np.searchsorted(places, room, side="right"))
        left_out = float(bounds[joining[fits]]) if fits < len(joining) else np.inf
        room = min(room, max(1, int(places[-1]) if len(places) else 1))
        path = self._path(room)
        while True:
            begin_search(rows, wanted.duals, cuts, path, root, joining[:fits], smallest)
            least, looked_at = below, 0
            # In steps, since one root may take as long as all others.
            while path.state[DEPTH] and looked_at < most and not path.state[OVERFLOW]:
                looked_at = min(most, looked_at + _NUMBERS.step)
                least = search_squares(cuts, path, smallest, below, least, keep, looked_at)
                if wanted.budget.stop_reason() is not None:
                    break
            held = len(path.sizes)
            if not path.state[OVERFLOW] or held > wanted.max_columns:
                break
            path = self._path(len(path.types), 4 * held)
        call.take(path)
        through = not path.state[DEPTH] and not path.state[OVERFLOW] and left_out >= below
        return min(float(least), float(least_open(path)), left_out), bool(through)

    def _raised(self, call: _Call, root: int, bound: float, most: int, room: int) -> float:
        """Return a better bound of a root that was cut off, by thresholds that leave less open."""
        below = call.wanted.below
        for share in _NUMBERS.thresholds:
            threshold = below + share * (bound - below)
            if not bound < threshold < below:
                break
            found, through = self._search_root(call, root, threshold, 1, most, room)
            bound = max(bound, found)
            if through:
                break
        return bound

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


def pricing_of(
    problem: Problem, *, smallest: int, largest: int, weight: str
) -> Pricing | SquaredErrorPricing:
    """Return the search for columns of a problem, by squared errors or a monotone loss."""
    if are_priced(problem):
        return SquaredErrorPricing(problem, smallest=smallest, largest=largest)
    return Pricing(problem, smallest=smallest, largest=largest, weight=weight)
