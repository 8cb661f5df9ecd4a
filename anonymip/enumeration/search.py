"""Enumeration of the sets of records that may be classes."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymip.enumeration.batches import Found, Request, search_in_batches
from anonymip.enumeration.cluster_sets import ClusterSets, gather_sets, lexicographic_order
from anonymip.enumeration.cut_duals import cuts_of_rows
from anonymip.enumeration.merging import MergedRows, merge_rows
from anonymip.enumeration.priced_columns import dual_sums, members_of
from anonymip.enumeration.rooted_run import UNLIMITED, RootedRun
from anonymip.enumeration.rooted_state import RootedRules, Roots
from anonymip.enumeration.search_inputs import capped_tables, loss_scale, search_rows
from anonymip.errors import InputError
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.tolerances import LOSS_RELATIVE

#: Sets that an enumeration keeps by default.
MAX_SETS_KEPT = 2_000_000


def enumerate_sets(
    problem: Problem,
    duals: ArrayLike | None = None,
    threshold: float = math.inf,
    *,
    max_size: int | None = None,
    max_sets: int = MAX_SETS_KEPT,
    max_nodes: int | None = None,
    merge: bool = True,
    exact_losses: bool = True,
    budget: Budget | None = None,
) -> ClusterSets:
    """Return all sets of k to `max_size` records whose reduced cost is below a threshold.

    The reduced cost of a set is its loss as a class less the duals of its records. Sets keep the
    limits and have the diversity of the problem. Suppressed records are not sets of one.

    Parameters
    ----------
    problem
        Gives table, loss, k, limits and diversity.
    duals
        (n,) dual value of each record; None means 0.
    threshold
        Reduced costs from here on are not wanted.
    max_size
        Most records of a set; None takes what some optimal release needs at most, see
        :meth:`~anonymip.recodings.Recoding.max_size`, or else n.
    max_sets
        Sets that end the search when there are more.
    max_nodes
        Partial sets that end the search; None for no limit.
    merge
        Whether records that are alike to duals, loss, limits and diversity are one row type.
        Under losses of the members tier they never are.
    exact_losses
        Whether losses are those of the objective's own function. Otherwise they are the search's
        own sums, which differ by rounding, and so does who is below the threshold.
    budget
        Ends the search.

    Returns
    -------
    ClusterSets
        The sets, and whether they are all.

    Notes
    -----
    Complexity: exponential in `max_size`. With a monotone record loss, partial sets that no rows
    can bring below the threshold are cut off.

    Raises
    ------
    InputError
        If duals are not n finite numbers, the threshold is NaN, or a limit is out of range.
    """
    duals = _checked_duals(problem, duals)
    if math.isnan(threshold):
        raise InputError("threshold is NaN", remedy="Give a number")
    largest = _largest(problem, max_size)
    for name, value in (("max_sets", max_sets), ("max_nodes", max_nodes)):
        if value is not None and not _is_whole(value, 1):
            raise InputError(f"{name} is {value!r}", remedy="Give a whole number of at least 1")
    budget = budget or Budget()
    rows = merge_rows(problem, duals, merge=merge)
    compiled = problem.compiled
    request = Request(
        largest,
        threshold + _slack(problem, duals, threshold, largest),
        compiled.monotone and threshold < math.inf,
        int(max_sets),
        UNLIMITED if max_nodes is None else int(max_nodes),
    )
    search = _search_by_roots if compiled.has_tables else search_in_batches
    found = search(problem, rows, request, budget)
    return gather_sets(
        problem,
        rows,
        found.members,
        found.sizes,
        found.losses,
        threshold=threshold,
        exact=exact_losses and compiled.has_tables,
        reason=found.reason,
        nodes=found.nodes,
    )


def _checked_duals(problem: Problem, duals: ArrayLike | None) -> NDArray[np.float64]:
    if duals is None:
        return np.zeros(problem.n)
    given = np.asarray(duals, np.float64)
    if given.shape != (problem.n,) or not np.isfinite(given).all():
        raise InputError(
            f"duals are no {problem.n} finite numbers", remedy="Give one number a record"
        )
    return given + 0.0  # -0.0 and 0.0 are one dual value


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def _largest(problem: Problem, max_size: int | None) -> int:
    if max_size is None:
        max_size = problem.recoding.max_size(problem).size
        return problem.n if max_size is None else min(max_size, problem.n)
    if not _is_whole(max_size, problem.k):
        raise InputError(
            f"max_size is {max_size!r}, and k is {problem.k}",
            remedy="Give a whole number of at least k",
        )
    return min(int(max_size), problem.n)


def _slack(problem: Problem, duals: NDArray[np.float64], threshold: float, largest: int) -> float:
    """Return how far the search's own sums may be off."""
    scale = float(np.abs(duals).max()) + (abs(threshold) if math.isfinite(threshold) else 0.0)
    if problem.compiled.has_tables:
        scale += loss_scale(problem)
    return LOSS_RELATIVE * largest * scale


def _search_by_roots(
    problem: Problem, merged: MergedRows, request: Request, budget: Budget
) -> Found:
    tables = capped_tables(problem)
    rows, t = search_rows(problem, merged, tables), merged.types
    run = RootedRun(tables, rows, request.largest)
    run.search(
        cuts_of_rows(t, None),
        RootedRules(
            problem.k,
            request.largest,
            request.pruned,
            problem.compiled.aggregate == "sum",
            UNLIMITED,
            UNLIMITED,
            False,
        ),
        Roots(
            np.arange(t),
            np.arange(t),
            np.full(t, t),
            np.arange(t),
            np.full(t, request.cutoff),
            np.zeros(t),
        ),
        budget,
        phase="enumerating sets",
        max_columns=request.max_sets,
        max_nodes=request.max_nodes,
    )
    count = min(int(run.found.held[0]), request.max_sets)
    sizes = run.found.sizes[:count].copy()
    members = run.found.members[: sizes.sum()]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    losses = run.found.reduced[:count] + dual_sums(merged.duals[members], starts)
    # Models take the sets in an order that does not depend on how they were found.
    order = lexicographic_order(members, sizes, t)
    members, sizes = members[members_of(starts, sizes, order)], sizes[order]
    reason = "max_sets" if run.reason == "max_columns" else run.reason
    return Found(members, sizes, losses[order], reason, run.nodes)
