"""Anatomy's groups as classes: random records of different sensitive values."""

from __future__ import annotations

import numpy as np

from anonymip.heuristics.classes.value_buckets import (
    ValueBuckets,
    different_values,
    joined_groups,
    labels_of,
)
from anonymip.heuristics.growing.finish import finish
from anonymip.problem import Problem
from anonymip.problem_rules import are_diverse
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

    Parameters
    ----------
    problem
        With equivalence classes and a diversity.
    budget
        When it ends, the records left are grouped by the repair.
    seed
        Of the draws.

    Notes
    -----
    For k above l groups are joined until they have k records. With several sensitive columns the
    records of a group differ in each of them. Classes that break a limit are repaired, as are
    groups where no records of different values are left. Complexity: O(n v / l) for v values.

    References
    ----------
    .. [1] X. Xiao, Y. Tao: Anatomy: Simple and Effective Privacy Preservation, VLDB 2006.
    .. [2] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010.

    Raises
    ------
    InputError
        If no diversity is asked for.
    NoSolution
        If no classes are found that keep the rules.
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
        _join_random(problem, groups, record, rng)
    return finish(
        problem,
        labels_of(groups, problem.n),
        "anatomy",
        watch,
        budget=budget,
        stopped=stopped,
        seed=seed,
    )


def _join_random(
    problem: Problem, groups: list[list[int]], record: int, rng: np.random.Generator
) -> None:
    """Put a record into a random group that is diverse with it, if there is one."""
    for number in rng.permutation(len(groups)).tolist():
        if are_diverse(problem, np.array([[*groups[number], record]]))[0]:
            groups[number].append(record)
            return
