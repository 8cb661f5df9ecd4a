"""Sets of row types with their losses: columns of programs, and what an enumeration finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from anonymip.enumeration.merging import MergedRows
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints

#: Sets whose losses are computed at a time.
_BATCH = 100_000


@dataclass(frozen=True, eq=False)
class Columns:
    """Multisets of row types with their costs.

    Members of a column begin at its place of `starts` (c + 1,) in `types`: ascending row types,
    repeated as often as they occur. A release pays `costs` (c,) for each.
    """

    starts: Ints
    types: Codes
    costs: Floats

    @classmethod
    def none(cls) -> Columns:
        """Return no columns."""
        return cls(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0))

    @classmethod
    def of_sets(cls, sets: Sequence[Ints], costs: Floats) -> Columns:
        """Return columns of the row types of their members, in any order, with their costs."""
        starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
        members = np.concatenate([np.empty(0, np.int64), *map(np.sort, sets)])
        return Columns(starts, members.astype(np.int32), costs)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.costs)

    @property
    def sizes(self) -> Ints:
        """(c,) members of each column."""
        return np.diff(self.starts)

    def of(self, column: int) -> Codes:
        """Return the members of one column."""
        return self.types[self.starts[column] : self.starts[column + 1]]

    def only(self, kept: Flags) -> Columns:
        """Return some of the columns, given (c,) which ones."""
        sizes = self.sizes
        starts = np.concatenate([[0], np.cumsum(sizes[kept])])
        return Columns(starts, self.types[np.repeat(kept, sizes)], self.costs[kept])

    def and_also(self, others: Columns) -> Columns:
        """Return these columns and, behind them, others."""
        if not len(others):
            return self
        return Columns(
            np.concatenate([self.starts, self.starts[-1] + others.starts[1:]]),
            np.concatenate([self.types, others.types]),
            np.concatenate([self.costs, others.costs]),
        )

    def incidence(self, types: int) -> csc_array:
        """Return (types, c) how many rows of each type each column holds."""
        ones = np.ones(len(self.types))
        # What is repeated is summed up in place, in copies.
        parts = (ones, self.types.copy(), self.starts.copy())
        matrix = csc_array(parts, shape=(types, len(self)))
        matrix.sum_duplicates()
        return matrix

    def reduced_costs(self, duals: Floats) -> Floats:
        """Return (c,) costs less the duals of the members."""
        if not len(self):
            return np.empty(0)
        return self.costs - np.add.reduceat(duals[self.types], self.starts[:-1])


@dataclass(frozen=True, eq=False)
class ClusterSets:
    """Sets of records that may be classes, as counts of row types."""

    rows: MergedRows  # the t row types
    offsets: Ints  # (c + 1,) int64, where each of the c sets begins in `types` and `counts`
    #: Row types of each set, ascending, and how many rows of each it holds (int32).
    types: Codes
    counts: Codes
    #: (c,) float64, the class's part of the loss; with the aggregate ``"max"`` the loss of one of
    #: its records.
    losses: Floats
    reduced_costs: Floats  # (c,) float64, losses less the duals of the rows
    complete: bool  # whether these are all sets that were asked for
    #: What ended the search early: ``"max_sets"``, or the value of
    #: :class:`~anonymip.status.Stopped`; None if it is complete.
    reason: str | None
    nodes: int  # partial sets that were looked at

    def __len__(self) -> int:
        """Return the number of sets."""
        return len(self.losses)

    @cached_property
    def sizes(self) -> Ints:
        """(c,) int64, records of each set."""
        total = np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])
        return total[self.offsets[1:]] - total[self.offsets[:-1]]

    @cached_property
    def incidence(self) -> csc_array:
        """(t, c) how many rows of each type each set holds."""
        shape = (self.rows.types, len(self))
        return csc_array((self.counts.astype(np.float64), self.types, self.offsets), shape)

    @cached_property
    def records(self) -> Ints:
        """Records that represent the sets, set by set; of a type the first ones are named."""
        return representatives(self.rows, np.repeat(self.types, self.counts), self.sizes)

    def only(self, kept: Flags) -> ClusterSets:
        """Return some of the sets. `kept`: (c,) which ones."""
        lengths = np.diff(self.offsets)
        places = np.repeat(kept, lengths)
        return replace(
            self,
            offsets=np.concatenate([[0], np.cumsum(lengths[kept])]),
            types=self.types[places],
            counts=self.counts[places],
            losses=self.losses[kept],
            reduced_costs=self.reduced_costs[kept],
        )

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"cut short by {self.reason}"
        return f"<ClusterSets: {len(self)} sets of {self.rows.types} row types, {state}>"


def representatives(rows: MergedRows, members: Codes, sizes: Ints) -> Ints:
    """Return a record for each member, different ones within a set.

    `members` are types, set by set, ascending within a set; `sizes` (c,) how many each set has.
    """
    begins = np.flatnonzero(_new_runs(members, sizes))
    lengths = np.diff(np.append(begins, len(members)))
    copies = np.arange(len(members)) - np.repeat(begins, lengths)
    return rows.records[rows.starts[members] + copies]


def lexicographic_order(members: Codes, sizes: Ints) -> Ints:
    """Return (c,) the sets in lexicographic order, a set before those that begin with it.

    Members and sizes as for :func:`representatives`.
    """
    begins = np.cumsum(sizes) - sizes
    # (most, c) members, and 0 behind the last.
    listed = np.zeros((int(sizes.max(initial=1)), len(sizes)), np.int32)
    for size in np.unique(sizes):
        sets = np.flatnonzero(sizes == size)
        listed[:size, sets] = members[begins[sets] + np.arange(size)[:, None]] + 1
    return np.lexsort(listed[::-1])


def _new_runs(members: Codes, sizes: Ints) -> Flags:
    """Return for each member whether it is the first of its type in its set."""
    new = np.ones(len(members), np.bool_)
    new[1:] = members[1:] != members[:-1]
    new[np.cumsum(sizes) - sizes] = True
    return new


@dataclass(frozen=True, eq=False)
class Found:
    """Sets found, not compressed yet.

    `members` are their types, set by set, ascending within a set; `sizes` and `losses` are (c,),
    None where the losses of the search are sums of its own. `reason` says what ended the search
    early, None if nothing did; `nodes` counts the partial sets looked at.
    """

    members: Codes
    sizes: Ints
    losses: Floats | None
    reason: str | None
    nodes: int


def gather_sets(problem: Problem, rows: MergedRows, found: Found, threshold: float) -> ClusterSets:
    """Return the sets below the threshold, with losses by the objective's own function."""
    members, sizes, losses = found.members, found.sizes, found.losses
    if losses is None:
        losses = exact_losses(problem, representatives(rows, members, sizes), sizes)
    begins = np.cumsum(sizes) - sizes
    dual_sum = np.add.reduceat(rows.duals[members], begins) if len(sizes) else np.empty(0)
    reduced = losses - dual_sum
    kept = reduced < threshold
    if not kept.all():
        members, sizes = members[np.repeat(kept, sizes)], sizes[kept]
        losses, reduced = losses[kept], reduced[kept]
        begins = np.cumsum(sizes) - sizes
    new = _new_runs(members, sizes)
    firsts = np.flatnonzero(new)
    runs = np.concatenate([[0], np.cumsum(new)])
    return ClusterSets(
        rows,
        np.append(runs[begins], len(firsts)).astype(np.int64),
        members[firsts],
        np.diff(np.append(firsts, len(members))).astype(np.int32),
        losses,
        reduced,
        found.reason is None,
        found.reason,
        found.nodes,
    )


def exact_losses(problem: Problem, records: Ints, sizes: Ints) -> Floats:
    """Return (c,) losses of sets as classes, by the objective's own function.

    `records` are the members of all sets, set by set, `sizes` (c,) how many each has.
    """
    losses = np.empty(len(sizes))
    begins = np.cumsum(sizes) - sizes
    for size in np.unique(sizes):
        sets = np.flatnonzero(sizes == size)
        for at in range(0, len(sets), _BATCH):
            part = sets[at : at + _BATCH]
            members = records[begins[part][:, None] + np.arange(size)]
            losses[part] = problem.compiled.class_losses(members)
    return losses
