"""Groups of records, what they lack to be classes, and where records without a class join them.

What grows classes, repairs them or leaves records out asks here: what a group loses with further
records, which companion it takes, and how many records it needs at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from anonymip.problem import Problem, are_diverse, losses_within_limits
from anonymip.recodings.rules.diversity_counts import (
    DiversityRule,
    ValueCounts,
    count_in,
    count_out,
    diversity_rule,
    forget_row,
    new_counts,
    rows_lacking,
    start_counts,
    stays_diverse,
)
from anonymip.runtime.arrays import Flags, Floats, Ints
from anonymip.runtime.kernels import kernel


class SensitiveMix:
    """Counts of the sensitive values of a set of records that grows or shrinks."""

    def __init__(self, problem: Problem, members: Ints) -> None:
        self._k = problem.k
        self.rule = diversity_rule(problem.diversity, problem.microdata)
        self.counts = new_counts(self.rule)
        self.size = len(members)
        _count_all(self.rule, self.counts, members)

    def add(self, record: int) -> None:
        """Count a record in."""
        self.size += 1
        count_in(self.rule, self.counts, record, 1, 0, 0)

    def remove(self, record: int) -> None:
        """Count a record out."""
        self.size -= 1
        count_out(self.rule, self.counts, record)

    def needed(self) -> int:
        """Return how many further records a class of these needs at least to be allowed."""
        lacking = int(rows_lacking(self.rule, self.counts, self.size, -1))
        return max(self._k - self.size, lacking)

    def needed_with(self, candidates: Ints) -> Ints:
        """Return (B,) the same once one of the candidates has joined."""
        lacking = _lacking_with(self.rule, self.counts, self.size, candidates)
        return np.maximum(self._k - self.size - 1, lacking)

    def diverse_without(self, candidates: Ints) -> Flags:
        """Return (B,) whether the set without one of the candidates would be diverse, or empty."""
        if self.size == 1:
            return np.ones(len(candidates), np.bool_)
        return _diverse_without(self.rule, self.counts, self.size, candidates)


@kernel
def _count_all(rule: DiversityRule, counts: ValueCounts, members: Ints) -> None:
    for record in members:
        count_in(rule, counts, record, 1, 0, 0)


@kernel
def _lacking_with(rule: DiversityRule, counts: ValueCounts, size: int, candidates: Ints) -> Ints:
    lacking = np.empty(len(candidates), np.int64)
    for at in range(len(candidates)):
        lacking[at] = rows_lacking(rule, counts, size, candidates[at])
    return lacking


@kernel
def _diverse_without(
    rule: DiversityRule, counts: ValueCounts, size: int, candidates: Ints
) -> Flags:
    diverse = np.empty(len(candidates), np.bool_)
    for at in range(len(candidates)):
        diverse[at] = stays_diverse(rule, counts, size, candidates[at], -1)
    return diverse


def needed_by_sets(problem: Problem, rows: Ints) -> Ints:
    """Return (B,) how many further records sets (B, s) need at least to be allowed."""
    rule = diversity_rule(problem.diversity, problem.microdata)
    lacking = _lacking_by_sets(rule, new_counts(rule), rows)
    return np.maximum(problem.k - rows.shape[1], lacking)


@kernel
def _lacking_by_sets(rule: DiversityRule, counts: ValueCounts, rows: Ints) -> Ints:
    lacking = np.empty(len(rows), np.int64)
    for at in range(len(rows)):
        start_counts(counts)
        for record in rows[at]:
            count_in(rule, counts, record, 1, 0, 0)
        lacking[at] = rows_lacking(rule, counts, rows.shape[1], -1)
        for record in rows[at]:
            forget_row(rule, counts, record)
    return lacking


def groups_by_size(groups: Sequence[Sequence[int] | Ints]) -> Iterator[tuple[Ints, Ints]]:
    """Yield the places (B,) of the groups of each size, ascending, and their members (B, size)."""
    sizes = np.array([len(group) for group in groups], np.int64)
    for size in np.unique(sizes[sizes > 0]):
        at = np.flatnonzero(sizes == size)
        yield at, np.array([groups[g] for g in at.tolist()], np.int64)


def joining_losses(
    problem: Problem,
    groups: list[list[int]],
    newcomers: list[int],
    *,
    by_increase: bool,
    keep_diverse: bool = True,
) -> Floats:
    """Return (groups,) losses of each class with all the newcomers, infinite where a rule breaks.

    `by_increase`: whether the loss of the class without them is subtracted. The maximum over all
    records grows by no class's increase, so with the aggregate ``"max"`` nothing is.
    `keep_diverse`: whether a diverse class must stay diverse.
    """
    losses = np.full(len(groups), np.inf)
    for at, members in groups_by_size(groups):
        joined = np.concatenate([members, np.tile(newcomers, (len(at), 1))], axis=1)
        found = losses_within_limits(problem, joined)
        if by_increase and problem.compiled.aggregate == "sum":
            found = found - problem.compiled.class_losses(members)
        if keep_diverse and problem.diversity is not None:
            spoiled = are_diverse(problem, members) & ~are_diverse(problem, joined)
            found = np.where(spoiled, np.inf, found)
        losses[at] = found
    return losses


def place_leftovers(
    problem: Problem, groups: list[list[int]], leftovers: list[int], *, by_increase: bool
) -> list[int]:
    """Put leftovers, in order, each into the class with the least new loss or increase.

    Returns: those that no class can take in under the rules.
    """
    unassigned: list[int] = []
    for record in leftovers:
        losses = joining_losses(problem, groups, [record], by_increase=by_increase)
        best = int(losses.argmin()) if len(losses) else -1
        if best < 0 or losses[best] == np.inf:
            unassigned.append(record)
        else:
            groups[best].append(record)
    return unassigned


def cut_in_order(labels: Ints, order: Ints, k: int, next_label: int) -> None:
    """Give the records without a label, in order, classes of k; the tail joins the last class.

    Fewer than k of them join the last class there is, or are a class if there is none.
    """
    rest = order[labels[order] < 0]
    sets = len(rest) // k
    if sets == 0:
        labels[rest] = max(next_label - 1, 0)
        return
    labels[rest] = next_label + np.minimum(np.arange(len(rest)) // k, sets - 1)


def labels_of(groups: list[list[int]], n: int) -> Ints:
    """Return (n,) the number of the group of each record; -1 for records in none."""
    labels = np.full(n, -1, np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def pick_companion(
    problem: Problem,
    members: list[int],
    mix: SensitiveMix,
    candidates: Ints,
    rest: SensitiveMix | None = None,
) -> int:
    """Return the place among the candidates of the one that joins a class, -1 if none can.

    `mix`: sensitive values of the members; `rest`: of all records without a class. Candidates whose
    leaving keeps these diverse come first: what is left can then still be a class.
    """
    useful = np.flatnonzero(mix.needed_with(candidates) < mix.needed())
    if not len(useful):
        return -1
    rows = np.empty((len(useful), len(members) + 1), np.int64)
    rows[:, :-1] = members
    rows[:, -1] = candidates[useful]
    losses = losses_within_limits(problem, rows)
    if rest is not None and problem.diversity is not None:
        preferred = np.where(rest.diverse_without(candidates[useful]), losses, np.inf)
        if np.isfinite(preferred).any():
            losses = preferred
    best = int(losses.argmin())
    return int(useful[best]) if losses[best] < np.inf else -1
