"""Anatomy's groups as classes: random records of different sensitive values.

With the buckets of records by their sensitive values from which such groups are taken.
"""

from __future__ import annotations

import numpy as np

from anonymip.errors import InputError
from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import labels_of
from anonymip.problem import Problem, are_diverse
from anonymip.recodings.rules.diversity import of_rows
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution
from anonymip.status import Stopped


def anatomy(problem: Problem, *, budget: Budget | None = None, seed: int = 0) -> Solution:
    """Group random records of different sensitive values, one of each of the most frequent [1]_.

    The most frequent values come first, so that the records left over have different values;
    each of them joins a random group that stays diverse. Groups look at no quasi-identifier: the
    method is a yardstick for the loss of others, as in Section 7.4 of [2]_, where its groups are
    generalized.

    `problem`: with equivalence classes and a diversity. `budget`: when it ends, the records left
    are grouped by the repair. `seed`: of the draws. Raises InputError if no diversity is asked for;
    NoSolution if no classes are found that keep the rules.

    For k above l groups are joined until they have k records. With several sensitive columns the
    records of a group differ in each of them. Classes that break a limit are repaired, as are
    groups where no records of different values are left. Complexity: O(n v / l) for v values.

    References
    ----------
    .. [1] X. Xiao, Y. Tao: Anatomy: Simple and Effective Privacy Preservation, VLDB 2006.
    .. [2] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010.
    """
    watch, budget = Stopwatch(), budget or Budget()
    count = different_values(problem, "anatomy")
    rng = np.random.default_rng(seed)
    buckets = ValueBuckets(problem, rng.permutation(problem.n))
    groups: list[list[int]] = []
    stopped: Stopped | None = None
    while stopped is None:
        # Ties are broken at random, as a bucket is any of those with the most records.
        ties = rng.permutation(len(buckets.left))
        group = buckets.take(np.lexsort((ties, -buckets.left)), count)
        if not group:
            break
        groups.append(group)
        stopped = budget.stop_reason()
    groups = joined_groups(groups, problem.k)
    for record in buckets.rest() if stopped is None else []:
        # A random group that is diverse with it, if there is one.
        for number in rng.permutation(len(groups)).tolist():
            if are_diverse(problem, np.array([[*groups[number], record]]))[0]:
                groups[number].append(record)
                break
    return finish(
        problem,
        labels_of(groups, problem.n),
        "anatomy",
        watch,
        budget=budget,
        stopped=stopped,
        seed=seed,
    )


def different_values(problem: Problem, method: str) -> int:
    """Return how many records of different sensitive values make a diverse group.

    Raises InputError if the problem asks for no diversity of rows: units are none.
    """
    diversity = of_rows(problem.diversity)
    if diversity is None:
        raise InputError(
            f"method {method} makes classes diverse, and no diversity is asked for",
            remedy="Give the problem a Diversity, or use another method",
        )
    numerator, denominator = diversity.ratio
    return max(-(-numerator // denominator), diversity.distinct)


class ValueBuckets:
    """A bucket of records for each combination of sensitive values.

    `problem`: with sensitive columns. `order`: all records; those of a bucket are taken in this
    order.
    """

    def __init__(self, problem: Problem, order: Ints) -> None:
        codes = problem.microdata.sensitive_codes[order]
        self.values, kind = np.unique(codes, axis=0, return_inverse=True)
        by_kind = np.argsort(kind.ravel(), kind="stable")
        #: (buckets,) records left in each.
        self.left = np.bincount(kind.ravel())
        self._places = by_kind
        self._ends = np.cumsum(self.left)
        self._order = order

    def heads(self) -> Ints:
        """Return (buckets,) the place in the order of the next record of each; n if empty."""
        places = np.full(len(self.left), len(self._order), np.int64)
        filled = self.left > 0
        places[filled] = self._places[(self._ends - self.left)[filled]]
        return places

    def take(self, preference: Ints, count: int) -> list[int]:
        """Take the next records of so many buckets whose values differ in every column.

        `preference`: (buckets,) numbers of the buckets; the first ones are taken that differ.
        `count`: how many. Where there are fewer, nothing is taken and the list is empty.
        """
        chosen: list[int] = []
        for bucket in preference.tolist():
            if self.left[bucket] == 0:
                continue
            if (self.values[chosen] == self.values[bucket]).any():
                continue
            chosen.append(bucket)
            if len(chosen) == count:
                break
        if len(chosen) < count:
            return []
        heads = self.heads()[chosen]
        self.left[chosen] -= 1
        return [int(record) for record in self._order[heads]]

    def rest(self) -> list[int]:
        """Return the records that are left, in their order."""
        places = [
            self._places[end - left : end] for end, left in zip(self._ends, self.left, strict=True)
        ]
        return [int(record) for record in self._order[np.sort(np.concatenate(places))]]


def joined_groups(groups: list[list[int]], size: int) -> list[list[int]]:
    """Return groups of so many records or more, made of groups that follow each other.

    Fewer at the end join those before, or are in no group if there are none. The share of a value
    in groups that are joined is at most its largest share in one of them.
    """
    joined: list[list[int]] = []
    open_group: list[int] = []
    for group in groups:
        open_group = open_group + group
        if len(open_group) >= size:
            joined.append(open_group)
            open_group = []
    if open_group and joined:
        joined[-1] = joined[-1] + open_group
    return joined
