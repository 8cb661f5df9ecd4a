"""Conditions under which the factors of Aggarwal et al. are true of an answer, and how it ends."""

from __future__ import annotations

from math import fsum

import numpy as np

from anonymip.heuristics.growing.finish import finish
from anonymip.heuristics.growing.groups import cut_in_order
from anonymip.objectives import GCP
from anonymip.objectives.language.tables import (
    CAPPED,
    LossTables,
    exact_losses,
    losses_of_pairs,
    square_losses,
    whole_loss,
)
from anonymip.orders.orders import find_order
from anonymip.problem import Problem, has_rules, named_rules
from anonymip.runtime.arrays import Floats, Ints
from anonymip.runtime.budget import Budget
from anonymip.runtime.kernels import Stopwatch
from anonymip.solution import Bound, Solution
from anonymip.status import Stopped
from anonymip.tolerances import LOSS_RELATIVE, SEARCH_ROUNDING

#: Ranges with a curved loss are checked triple by triple up to so many values.
_TRIPLES = 600


def factor_obstacle(problem: Problem) -> str | None:
    """Return why no factor can be claimed, whatever the method; None if the conditions hold.

    The factors need a release that has to keep nothing but k, and a monotone record loss c that is
    0 for a single record and obeys c(S u T) <= c(S) + c(T) for classes S, T with a common record:
    then a class loses on each record no more than any tree that spans it weighs.

    Decided from the tables, one attribute at a time, up to rounding. Ranges charged by their width
    and nodes of hierarchies qualify always; sets and curved losses of ranges are checked.
    Complexity: O(L^2) for a set of L values, O(L^3) for a curved range of up to 600.
    """
    if has_rules(problem):
        return f"the classes must keep {named_rules(problem)}"
    return loss_obstacle(problem)


def loss_obstacle(problem: Problem) -> str | None:
    """Return what the loss lacks for a factor or for the bound that goes with it; or None."""
    compiled = problem.compiled
    if compiled.aggregate != "sum":
        return "the loss is the largest of a record, not the sum over the records"
    if not compiled.has_tables:
        return f"the loss is no sum of terms of one attribute each ({compiled.tier} tier)"
    if not compiled.monotone:
        return f"the loss is not known to be monotone: {compiled.obstacle}"
    tables = compiled.tables
    if not _singles_are_free(tables):
        return "a record published exactly has a loss"
    column = _first_superadditive(problem, tables)
    if column is not None:
        name = problem.microdata.names[column]
        return f"the loss of {name!r} may exceed that of two overlapping classes together"
    return None


def guide(problem: Problem) -> Problem:
    """Return the problem whose loss weighs pairs: GCP where it has no tables or is not monotone."""
    known = problem.compiled.has_tables and problem.compiled.monotone
    return problem if known else Problem(problem.microdata, problem.k, objective=GCP())


def concluded(
    problem: Problem,
    labels: Ints,
    method: str,
    watch: Stopwatch,
    budget: Budget,
    stopped: Stopped | None,
    *,
    factor: str,
    lacks: str | None,
    everyone: bool,
    bound: tuple[float, str] | None,
) -> Solution:
    """Return the solution of labels, with its bound, and a remark that tells its factor or why not.

    `labels`: (n,); records with -1 are cut into sets of k in the variance order. `lacks`: what the
    answer or the table lacks for the `factor` beside the conditions of all factors. `everyone`:
    whether it holds only where no record may be suppressed. `bound`: rounded down, and its source.
    """
    obstacle = factor_obstacle(problem) or lacks
    if stopped is not None:
        obstacle = "it was stopped early"
    elif everyone and problem.may_suppress:
        obstacle = "whole records may be suppressed"
    claim = f"no factor is claimed: {obstacle}" if obstacle else f"loss at most {factor}"
    if (labels < 0).any():
        cut_in_order(labels, find_order(problem, "variance", Budget()), problem.k, 0)
    solution = finish(
        problem, labels, method, watch, budget=budget, stopped=stopped, trace=(claim,)
    )
    if bound is None:
        return solution
    return solution.with_bound(Bound(*bound, "argument", watch.seconds))


def cell_costs(problem: Problem) -> tuple[Ints, Floats] | None:
    """Return columns and what a cell of each costs, whatever values it covers from two on.

    Suppression of cells over any alphabet; attributes with two observed values always do. None if
    the cost of some attribute depends on what is covered.
    """
    tables = problem.compiled.tables
    columns: list[int] = []
    costs: list[float] = []
    for r, column in enumerate(tables.range_columns):
        levels = problem.microdata.levels[column]
        if len(levels) > 2:
            return None
        columns.append(int(column))
        costs.append(tables.range_high[r] * float(levels[-1] - levels[0]))
    for s, column in enumerate(tables.set_columns):
        start = tables.set_start[s] + 1
        losses = tables.set_losses[start : start + tables.set_sizes[s]]
        if not (losses[1:] == losses[1:2]).all():
            return None
        columns.append(int(column))
        costs.append(losses[-1] - losses[0])
    for p, column in enumerate(tables.pair_columns):
        if tables.pair_strides[p] == CAPPED:
            return None
        if tables.pair_strides[p] == 0:
            distance = losses_of_pairs(tables, p)[int(tables.pair_sizes[p]) :]
        else:
            table = square_losses(tables, p)
            distance = table[np.triu_indices(len(table), 1)]
        if not (distance == distance[:1]).all():
            return None
        columns.append(int(column))
        costs.append(whole_loss(tables, p) - float(exact_losses(tables, p)[0]))
    return np.array(columns, np.int64), np.array(costs, np.float64)


def is_binary(problem: Problem) -> bool:
    """Return whether no attribute that the loss reads has more than two observed values."""
    levels = problem.microdata.levels
    return all(len(levels[column]) <= 2 for column in problem.compiled.tables.columns)


def _singles_are_free(tables: LossTables) -> bool:
    """Return whether every record published exactly costs 0: constants and terms cancel."""
    if not (tables.range_low == -tables.range_high).all():
        return False
    parts = [tables.constant, *tables.set_losses[tables.set_start + 1]]
    for p in range(len(tables.pair_columns)):
        diagonal = exact_losses(tables, p)
        if (diagonal != diagonal[0]).any():
            return False
        parts.append(diagonal[0])
    return abs(fsum(parts)) <= SEARCH_ROUNDING * float(np.abs(parts).max())


def _first_superadditive(problem: Problem, tables: LossTables) -> int | None:
    """Return an attribute whose loss does not split over overlapping classes, or None.

    Two overlapping classes of a and b values have a + b - 1 together at most. Overlapping ranges
    cover a range that some value of both cuts in two. Of the nodes over two overlapping classes
    one lies above the other, and above all their values.
    """
    for s, column in enumerate(tables.set_columns):
        start = tables.set_start[s] + 1
        losses = tables.set_losses[start : start + tables.set_sizes[s]]
        losses = losses - losses[0]
        slack = LOSS_RELATIVE * losses[-1]
        for more in range(1, len(losses)):
            if (losses[more:] > losses[more] + losses[: len(losses) - more] + slack).any():
                return int(column)
    for p, column in enumerate(tables.pair_columns):
        # Widths of which none counts for more than the most split wherever widths do.
        is_capped = tables.pair_strides[p] == CAPPED
        if problem.microdata.attributes[column].hierarchy is None and not is_capped:
            losses = square_losses(tables, p)
            losses = losses - losses[0, 0]
            distance = losses[np.triu_indices(len(losses), 1)]
            if len(losses) < 3 or 2 * distance.min() >= distance.max():
                continue
            if len(losses) > _TRIPLES:
                return int(column)
            slack = LOSS_RELATIVE * distance.max()
            for middle in range(1, len(losses) - 1):
                cut = losses[:middle, middle, None] + losses[middle, middle + 1 :]
                if (losses[:middle, middle + 1 :] > cut + slack).any():
                    return int(column)
    return None
