"""Compiled exact solver of sub-problems of up to some thirty rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.exact.classes.small.exact_cover import cheapest_cover, sort_found
from anonymip.exact.classes.small.first_release import cut_sorted_rows, nearest_duals
from anonymip.exact.classes.small.least_losses import class_losses_by_type, raise_duals
from anonymip.exact.classes.small.relaxation_duals import solve_relaxation
from anonymip.exact.classes.small.row_types import label_cover, merge_types
from anonymip.exact.classes.small.set_search import COMPLETE, list_sets, rank_types
from anonymip.exact.classes.small.swaps import swap_rows
from anonymip.exact.classes.small.workspace import SmallRules, SmallWork, new_small_work
from anonymip.objectives.kernels.class_loss import (
    KernelRows,
    join_class,
    open_class,
    record_loss,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.problem import Problem
from anonymip.recodings import EquivalenceClasses
from anonymip.recodings.rules.diversity_counts import diversity_rule
from anonymip.runtime.kernels import kernel
from anonymip.tolerances import DUAL_ROUNDING, VISIBLE_SLACK

__all__ = [
    "CAPPED",
    "INFEASIBLE",
    "PROVEN",
    "SmallRules",
    "SmallWork",
    "compiles",
    "new_small_work",
    "small_rules",
    "solve_rows",
]

#: What a call ends with.
PROVEN, CAPPED, INFEASIBLE = 0, 1, 2

#: Releases that are better by less than this share of the loss are not looked for.
_ROUNDING = 1e-12
#: The first width of the search as a share of the gap, and by what it grows.
_FIRST_WIDTH, _WIDER = 1 / 32, 2.0


def compiles(problem: Problem) -> bool:
    """Return whether the kernel solves the problem: classes, monotone tables, no limits."""
    compiled, recoding = problem.compiled, problem.recoding
    return (
        isinstance(recoding, EquivalenceClasses)
        and not recoding.suppression
        and compiled.has_tables
        and compiled.monotone
        and not problem.limits
    )


def small_rules(problem: Problem) -> SmallRules:
    """Return what classes must keep; all rows of the table."""
    return SmallRules(
        problem.k,
        problem.compiled.aggregate == "sum",
        diversity_rule(problem.diversity, problem.microdata),
    )


@kernel
def solve_rows(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    size: int,
    max_nodes: int,
) -> int:
    """Find the best classes of some rows and return PROVEN, CAPPED or INFEASIBLE.

    Parameters
    ----------
    tables, rows, rules
        Of a problem that :func:`compiles`.
    work
        For at least `size` rows. Holds the answer afterwards: `labels` the classes, numbered in
        the order in which they first appear; `result` the loss and a lower bound on it.
    chosen
        The rows of the sub-problem, the first `size` of them.
    size
        How many.
    max_nodes
        Partial sets and partial covers to look at before it ends with the best that it has.
    """
    work.nodes[0] = 0
    work.result[0], work.result[1] = np.inf, np.inf
    # A release by the best cut, and a bound by the nearest rows.
    types = merge_types(rows, rules, work, chosen, size)
    if not cut_sorted_rows(tables, rows, rules, work, chosen, size):
        return INFEASIBLE
    _number_classes(work, size)
    loss = labelled_loss(tables, rows, rules, work, chosen, size)
    bound = nearest_duals(tables, rows, rules, work, chosen, types)
    work.result[0], work.result[1] = loss, min(bound, loss)
    slack = _ROUNDING * (abs(loss) + abs(bound))
    if loss - bound <= slack:
        work.result[1] = loss
        return PROVEN
    # Better duals by the linear relaxation, unless its sets are too many or the largest loss
    # counts. Then swaps bring the loss down first, since the search for the least losses starts
    # from it.
    status, dual_bound = CAPPED, -np.inf
    fits = rank_types(rows, rules, work, chosen, types)
    if fits and rules.summed:
        dual_bound = solve_relaxation(tables, rules, work, types, loss)
    if dual_bound == -np.inf:
        _swap(tables, rows, rules, work, chosen, size, slack)
    if fits:
        if dual_bound == -np.inf:
            class_losses_by_type(work, types, size)
            dual_bound = raise_duals(tables, rules, work, types, max_nodes)
        status = _search(tables, rows, rules, work, chosen, size, types, dual_bound, max_nodes)
        if status == CAPPED:
            _swap(tables, rows, rules, work, chosen, size, slack)
    return status


@kernel
def _swap(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    size: int,
    slack: float,
) -> None:
    """Make the known release better by swaps."""
    swap_rows(tables, rows, rules, work, chosen, size, slack)
    _number_classes(work, size)
    work.result[0] = labelled_loss(tables, rows, rules, work, chosen, size)
    work.result[1] = min(work.result[1], work.result[0])


@kernel
def _search(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    size: int,
    count: int,
    dual_bound: float,
    max_nodes: int,
) -> int:
    """Search for a better release than the known one, or prove that there is none.

    The duals give `dual_bound`. A release that costs less than this and a width more is made of
    sets whose reduced costs are below the width, which grows until there is a release, or up to
    the gap.
    """
    loss, packing, found = work.result[0], work.packing, work.found
    # Sums of duals carry rounding errors: losses that differ by less than the slack count as equal,
    # and a slack that a user could see ends the search without a proof.
    total = 0.0
    for t in range(count):
        total += packing.counts[t] * abs(work.duals[work.types.rank[t]])
    slack = _ROUNDING * abs(loss) + DUAL_ROUNDING * total
    work.result[1] = max(work.result[1], min(dual_bound - slack, loss))
    if slack > VISIBLE_SLACK * abs(loss):
        return CAPPED
    if loss - work.result[1] <= 2.0 * slack:
        work.result[1] = loss
        return PROVEN
    # The duals have changed since the types were ranked.
    rank_types(rows, rules, work, chosen, count)
    width = (loss - dual_bound) * _FIRST_WIDTH
    # Where the largest loss counts the cost of a set is its record loss itself.
    if not rules.summed:
        work.types.duals[:count] = 0.0
        dual_bound, width = 0.0, loss
    while True:
        width = min(width, loss - dual_bound)
        # All sets that a release within the width can hold; the slack is on the safe side.
        if list_sets(tables, rules, work, count, size, width - slack, max_nodes) != COMPLETE:
            return CAPPED
        sort_found(found, count)
        sets, complete = cheapest_cover(
            rules.summed, packing, found, work.cover, count, width, slack, work.nodes, max_nodes
        )
        # The cover is better than the known release.
        if sets > 0:
            label_cover(work, count, sets)
            _number_classes(work, size)
            work.result[0] = labelled_loss(tables, rows, rules, work, chosen, size)
        if not complete:
            return CAPPED
        # The best release within the width is the best of all; and at the full gap none is better
        # than the known one.
        if sets > 0 or width == loss - dual_bound:
            work.result[1] = work.result[0]
            return PROVEN
        # No release lies within the width: its end is a bound.
        work.result[1] = max(work.result[1], dual_bound + width - slack)
        width *= _WIDER


@kernel
def _number_classes(work: SmallWork, size: int) -> None:
    """Give the classes numbers in the order in which they first appear."""
    new, count = work.scratch, 0
    for at in range(size):
        new[at] = -1
    for at in range(size):
        label = work.labels[at]
        if new[label] < 0:
            new[label] = count
            count += 1
        work.labels[at] = new[label]


@kernel
def labelled_loss(
    tables: LossTables,
    rows: KernelRows,
    rules: SmallRules,
    work: SmallWork,
    chosen: NDArray[np.int64],
    size: int,
) -> float:
    """Return the loss of the labelled classes."""
    total = 0.0 if rules.summed else -np.inf
    label, left = 0, size
    while left > 0:
        members = 0
        for at in range(size):
            if work.labels[at] != label:
                continue
            if members == 0:
                open_class(rows, work.state, chosen[at])
            else:
                join_class(rows, work.state, chosen[at])
            members += 1
        loss = record_loss(tables, work.state)
        total = total + members * loss if rules.summed else max(total, loss)
        left -= members
        label += 1
    return total
