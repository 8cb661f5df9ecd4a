"""Non-homogeneous generalization of Wong et al.: partitions, a ring in each."""

from __future__ import annotations

import numpy as np

from anonymip.assignments import Cover
from anonymip.heuristics.freeform.left_out import leaves_out
from anonymip.heuristics.freeform.partitioned import finish_cover
from anonymip.heuristics.freeform.rings import (
    diverse_parts,
    reciprocal_degree,
    ring_degree,
    ring_sets,
)
from anonymip.orders.lexicographic_parts import Parts, lexicographic_parts
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Solution


@leaves_out
def nh(
    problem: Problem, *, order: str = "cardinality", budget: Budget | None = None, seed: int = 0
) -> Solution:
    """Partition the table; cover each record with the next k - 1 of its part [1]_.

    Within one partition a ring loses never more than one class: its sets are subsets. Where
    reciprocal sets are asked for, k is even and some part has an odd number of records, parts and
    sets have k + 1 records or more.

    Under a diversity parts are merged until each is diverse, and records move in their orders; sets
    have more than k records where the values leave no other way (Section 6 of [1]_).

    `problem`: with freeform generalization, any objective. `order`: name of the order of the
    records within each part; the default is the lexicographic one that the table is partitioned in.
    `budget`: of the order. Complexity: O(n (m + k + log n)). Raises InputError if there is no such
    order, or records are to have sets of different sizes; NoSolution if the sets break a limit, no
    parts are diverse, or there are no reciprocal sets.

    References
    ----------
    .. [1] W. K. Wong, N. Mamoulis, D. W. Cheung: Non-homogeneous Generalization in Privacy
       Preserving Data Publishing, SIGMOD 2010, Sections 5.1 and 5.3.
    """
    watch, budget = Stopwatch(), budget or Budget()
    degree, reciprocal = ring_degree(problem, "nh")
    parts = lexicographic_parts(problem, degree)
    if reciprocal:
        wanted = reciprocal_degree(problem, degree, bool((parts.sizes % 2).any()))
        if wanted > degree:
            degree, parts = wanted, lexicographic_parts(problem, wanted)
    if order != "cardinality":
        rank = np.empty(problem.n, np.int64)
        rank[find_order(problem, order, budget)] = np.arange(problem.n)
        parts = Parts(np.lexsort((rank, parts.labels)), parts.starts)
    if problem.diversity is not None:
        parts, degree = diverse_parts(problem, parts, degree, "nh")
    stopped = budget.stop_reason()
    sets = ring_sets(parts.order, parts.starts, degree, reciprocal)
    return finish_cover(
        problem, Cover.of(sets), "nh", watch, stopped=stopped, options={"order": order}
    )
