"""Greedy Search of Liang & Samavi: classes that grow from a seed by the record that costs least.

The engine is that of k-member too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated

import numpy as np

from anonymip.effort import check_effort
from anonymip.errors import InputError, argument, unknown_name
from anonymip.heuristics.growing.batch_growth import batch_engine, grow_classes_in_batches
from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import cut_in_order, labels_of, place_leftovers
from anonymip.objectives.kernels.box_tree import (
    BoxTree,
    build_tree,
    cheapest_row,
    delete_row,
    new_tree,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    join_class,
    new_state,
    open_class,
    pair_loss,
)
from anonymip.orders.arrangement import Arrangement, arrange
from anonymip.orders.orders import find_order
from anonymip.problem import Problem
from anonymip.runtime.arrays import Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch, kernel
from anonymip.runtime.packed import Packed
from anonymip.runtime.stepping import run_in_steps
from anonymip.solution import Solution
from anonymip.status import Stopped

#: The tree beats the scan from this many row types on and up to this many loss terms.
_TREE_TYPES = 2_000
_TREE_TERMS = 15


def greedy_search(
    problem: Problem,
    *,
    order: str = "variance",
    search: str = "auto",
    effort: str | None = None,
    budget: Budget | None = None,
    seed: int = 0,
) -> Solution:
    """Grow each class from the first record left by the record that costs least [1]_.

    Fewer than k records left at the end join, one by one, the class whose new loss is least.
    Under limits only records that keep them join; under a diversity a class grows until it has
    k records and is diverse.

    `problem`: with equivalence classes.
    `order`: name of the order that seeds are taken in and ties are broken by: ``variance`` as in
    the paper, ``cardinality``, ``snake``, ``hilbert``, ``neighbour``; each with ``+2opt``.
    `search`: how the cheapest record is found: ``scan`` looks at all, ``tree`` at few of them
    through a k-d tree (monotone objectives), ``auto`` picks. The result is the same.
    `effort`: how much work where batches are evaluated: with less, large tables have fewer
    candidates.
    `budget`: when it ends, the records left are cut into sets of k in order.
    Raises InputError if order or search is unknown, or the tree does not fit the problem;
    NoSolution if no classes are found that keep the limits.

    Complexity: O(t n m) time with the scan for t distinct rows, identical rows being merged.
    Losses without tables, limits and diversities are evaluated in batches of NumPy, which takes
    O(n min(n, 2000) k m) time; with tables and more than 20 000 records the classes are grown
    without the rules and then repaired.

    References
    ----------
    .. [1] Y. Liang, R. Samavi: Optimization-based k-anonymity algorithms, Computers & Security
       93, 2020, Section 3.2, Algorithm 2 and Table 7.
    """
    watch, budget = Stopwatch(), budget or Budget()
    given = problem, find_order(problem, order, budget), "greedy-search", watch, budget
    return grow(*given, search=search, effort=effort, options={"order": order})


def grow(
    problem: Problem,
    order: Ints,
    method: str,
    watch: Stopwatch,
    budget: Budget,
    *,
    search: str,
    effort: str | None,
    drawn: np.random.Generator | None = None,
    options: Mapping[str, object] | None = None,
    seed: int | None = None,
) -> Solution:
    """Return the classes that one of the two engines grows, repaired and checked.

    `drawn`: as for :func:`~anonymip.heuristics.growing.batch_growth.grow_classes_in_batches`;
    leftovers then join the class whose loss rises least, else the one whose new loss is least.
    """
    effort = check_effort(effort, limited=budget.deadline is not None)
    told: dict[str, object] = {**(options or {}), "search": search}
    candidates, remarks = batch_engine(problem, effort)
    if candidates:
        told["effort"] = effort
        labels, stopped = grow_classes_in_batches(
            problem, order, budget, search=search, drawn=drawn, candidates=candidates
        )
    else:
        arranged = arrange(problem, order)
        first = None if drawn is None else int(drawn.integers(arranged.types))
        labels, stopped = grow_classes(
            problem, arranged, budget, search=search, farthest_from=first
        )
    return finish(
        *(problem, labels, method, watch),
        budget=budget,
        stopped=stopped,
        options=told,
        seed=seed,
        trace=remarks,
    )


class Growth(Packed):
    """Where the growing stands."""

    alive: Ints  # (t,) int64, rows of each type without a class
    #: Types and classes of the rows placed so far.
    picked: Annotated[Ints, "n"]
    labels: Annotated[Ints, "n"]
    #: Rows placed; classes made; first type that may be alive; types in the tree when it was built;
    #: last row placed.
    cursor: Annotated[Ints, "5"]


def grow_classes(
    problem: Problem,
    arranged: Arrangement,
    budget: Budget,
    *,
    search: str,
    farthest_from: int | None,
) -> tuple[Ints, Stopped | None]:
    """Return (n,) labels and why it stopped early, if it did: the records left are cut in order.

    `farthest_from`: None: the next seed is the first record left, and leftovers join the class
    whose new loss is least. Otherwise the record farthest from the last one placed, at first from
    this type, and they join the one whose loss rises least.
    """
    n, k = problem.n, problem.k
    tables, rows = problem.compiled.tables, arranged.rows
    growth = Growth.of_sizes(n=n, alive=arranged.counts.copy())
    growth.cursor[4] = -1 if farthest_from is None else farthest_from
    tree = new_tree(tables, arranged.types, split=_use_tree(problem, arranged, search))
    state = new_state(tables, k)
    farthest = farthest_from is not None
    step = partial(_grow_step, rows, tree, state, growth, k, farthest)
    stopped = run_in_steps(step, n // k, budget, "growing classes")
    placed, classes = int(growth.cursor[0]), int(growth.cursor[1])
    growth.picked[placed:] = np.repeat(np.arange(arranged.types), growth.alive)
    growth.labels[placed:] = -1
    labels = arranged.labels(growth.picked, growth.labels)
    if stopped is not None:
        cut_in_order(labels, arranged.records, k, classes)
        return labels, stopped
    # Every class has k records so far; those left over, labelled -1, come first.
    groups = np.argsort(labels, kind="stable")[n - placed :].reshape(classes, k).tolist()
    left = arranged.records[labels[arranged.records] < 0].tolist()
    place_leftovers(problem, groups, left, by_increase=farthest)
    return labels_of(groups, n), None


def _use_tree(problem: Problem, arranged: Arrangement, search: str) -> bool:
    if search not in ("auto", "tree", "scan"):
        raise unknown_name("search", search, ("auto", "tree", "scan"))
    if not problem.compiled.monotone:
        if search == "tree":
            raise InputError(
                "search 'tree' needs a monotone objective, and the loss can fall in "
                f"{problem.compiled.decreasing!r} when a cell covers more",
                remedy=f"Use {argument('search', 'scan', option='the option search=scan')}",
            )
        return False
    if search != "auto":
        return search == "tree"
    tables = problem.compiled.tables
    terms = sum(tables.term_counts)
    return arranged.types >= _TREE_TYPES and terms <= _TREE_TERMS


@kernel
def _grow_step(
    rows: KernelRows,
    tree: BoxTree,
    state: ClassState,
    growth: Growth,
    k: int,
    farthest: bool,
    amount: int,
) -> int:
    """Make up to `amount` further classes; return how many there are."""
    for _ in range(amount):
        if len(growth.picked) - growth.cursor[0] < k:
            break
        # The tree is built at first, and again when half of it is dead; of a leaf, a quarter.
        dead = growth.cursor[3] - tree.alive[0]
        if growth.cursor[3] == 0 or (2 if len(tree.left) > 1 else 4) * dead > growth.cursor[3]:
            build_tree(tree, rows, growth.alive)
            growth.cursor[3] = tree.alive[0]
        for size in range(k):
            if size == 0:
                # The seed: the first row left, or the one farthest from the last one placed.
                while not farthest and growth.alive[growth.cursor[2]] == 0:
                    growth.cursor[2] += 1
                row, most = growth.cursor[2] if not farthest else -1, -np.inf
                for at in range(tree.end[0] if farthest else 0):
                    other = tree.items[at]
                    if growth.alive[other] > 0:
                        loss = pair_loss(rows, growth.cursor[4], other)
                        if loss > most or (loss == most and other < row):
                            row, most = other, loss
                open_class(rows, state, row)
            else:
                row = cheapest_row(tree, rows, state, growth.alive)
                join_class(rows, state, row)
            placed = growth.cursor[0]
            growth.picked[placed], growth.labels[placed] = row, growth.cursor[1]
            growth.cursor[0], growth.cursor[4] = placed + 1, row
            growth.alive[row] -= 1
            if growth.alive[row] == 0:
                delete_row(tree, row)
        growth.cursor[1] += 1
    return growth.cursor[1]
