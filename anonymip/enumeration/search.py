"""Enumeration of the sets of records that may be classes."""

from __future__ import annotations

import math
import time
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymip.enumeration.batches import Found, Request, search_in_batches
from anonymip.enumeration.cluster_sets import ClusterSets, gather_sets
from anonymip.enumeration.depth_first import (
    DONE,
    FULL,
    MAX_NODES,
    MAX_SETS,
    MORE,
    Buffers,
    Rules,
    begin_search,
    new_path,
    search_step,
)
from anonymip.enumeration.merging import MergedRows, merge_rows
from anonymip.errors import InputError
from anonymip.objectives.kernels.class_loss import kernel_rows
from anonymip.objectives.language.tables import LossTables
from anonymip.problem import Problem
from anonymip.recodings.rules.limits import Cap, conflicts
from anonymip.runtime.budget import Budget
from anonymip.tolerances import LOSS_RELATIVE

#: Sets that an enumeration keeps unless told otherwise.
MAX_SETS_KEPT = 2_000_000

_SECONDS_A_STEP = 0.1
_UNLIMITED = 2**62


def enumerate_sets(
    problem: Problem,
    prices: ArrayLike | None = None,
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

    The reduced cost of a set is its loss as a class less the prices of its records. Sets keep the
    limits and have the diversity of the problem. Suppressed records are not sets of one.

    Parameters
    ----------
    problem
        Gives table, loss, k, limits and diversity.
    prices
        (n,) price of each record; None means 0.
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
        Whether records that price, loss, limits and diversity cannot tell apart are one row type.
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
        If prices are not n finite numbers, the threshold is NaN, or a limit is out of range.
    """
    prices = _checked_prices(problem, prices)
    if math.isnan(threshold):
        raise InputError("threshold is NaN", remedy="Give a number")
    largest = _largest(problem, max_size)
    for name, value in (("max_sets", max_sets), ("max_nodes", max_nodes)):
        if value is not None and not _is_whole(value, 1):
            raise InputError(f"{name} is {value!r}", remedy="Give a whole number of at least 1")
    budget = budget or Budget()
    rows = merge_rows(problem, prices, merge=merge)
    compiled = problem.compiled
    request = Request(
        largest,
        threshold + _slack(problem, prices, threshold, largest),
        compiled.monotone and threshold < math.inf,
        int(max_sets),
        _UNLIMITED if max_nodes is None else int(max_nodes),
    )
    search = _search_depth_first if compiled.has_tables else search_in_batches
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


def _checked_prices(problem: Problem, prices: ArrayLike | None) -> NDArray[np.float64]:
    if prices is None:
        return np.zeros(problem.n)
    given = np.asarray(prices, np.float64)
    if given.shape != (problem.n,) or not np.isfinite(given).all():
        raise InputError(
            f"prices are no {problem.n} finite numbers", remedy="Give one number a record"
        )
    return given + 0.0  # -0.0 and 0.0 are one price


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


def _slack(problem: Problem, prices: NDArray[np.float64], threshold: float, largest: int) -> float:
    """Return how far the search's own sums may be off."""
    scale = float(np.abs(prices).max()) + (abs(threshold) if math.isfinite(threshold) else 0.0)
    if problem.compiled.has_tables:
        tables, microdata = problem.compiled.tables, problem.microdata
        values = microdata.values[:, tables.range_columns] - tables.range_origin
        slopes = np.abs(tables.range_low + tables.range_high)
        scale += abs(tables.constant) + float((np.abs(values).max(axis=0) * slopes).sum())
        scale += float((np.ptp(values, axis=0) * np.abs(tables.range_high)).sum())
        for s, start in enumerate(tables.set_start):
            losses = tables.set_losses[start : start + tables.set_sizes[s] + 1]
            scale += float(np.abs(losses).max())
        for p, start in enumerate(tables.pair_start):
            losses = tables.pair_losses[start : start + tables.pair_sizes[p] ** 2]
            scale += float(np.abs(losses).max())
    return LOSS_RELATIVE * largest * scale


def _search_depth_first(
    problem: Problem, rows: MergedRows, request: Request, budget: Budget
) -> Found:
    tables, caps = _with_caps(problem)
    kernel = kernel_rows(problem.microdata, tables, rows.first)
    rules = _rules(problem, rows, request, caps)
    path = new_path(tables, rules)
    room = 4 * rows.types + 64
    buffers = Buffers(
        np.empty(room, np.int32),
        np.empty(room),
        np.empty(1_000, np.int64),
        np.empty(1_000),
        np.empty(8_000 + 2 * request.largest, np.int32),
    )
    begin_search(tables, kernel, rules, path, buffers)
    amount, status, reason = 100, MORE, None
    while status in (MORE, FULL):
        stopped = budget.stop_reason()
        if stopped is not None:
            reason = stopped.value
            break
        start = time.perf_counter()
        status = search_step(
            tables, kernel, rules, path, buffers, amount, request.max_sets, request.max_nodes
        )
        if status == FULL:
            buffers = _larger(buffers, path.end.max(), path.cursor)
        else:
            rate = amount / max(time.perf_counter() - start, 1e-6)
            amount = max(1, min(int(rate * _SECONDS_A_STEP), 4 * amount))
        budget.report("enumerating sets", done=int(path.cursor[2]))
    if status != DONE and reason is None:
        reason = {MAX_SETS: "max_sets", MAX_NODES: "max_nodes"}[status]
    sets, filled = int(path.cursor[2]), int(path.cursor[3])
    return Found(
        buffers.members[:filled].copy(),
        buffers.sizes[:sets].copy(),
        buffers.losses[:sets].copy(),
        reason,
        int(path.cursor[1]),
    )


def _with_caps(problem: Problem) -> tuple[LossTables, NDArray[np.int64]]:
    """Return the tables with a term for every set that is capped, and (s,) the caps.

    Sets that the loss ignores get terms that cost nothing.
    """
    tables, microdata = problem.compiled.tables, problem.microdata
    capped: dict[int, int] = {}
    for limit in problem.limits:
        a = microdata.names.index(limit.attribute)
        if isinstance(limit, Cap) and microdata.attributes[a].publish == "set":
            capped[a] = min(int(limit.most), capped.get(a, microdata.n))
    extra = [a for a in capped if a not in tables.set_columns]
    sizes = [len(microdata.levels[a]) for a in extra]
    ends = len(tables.set_losses) + np.cumsum(np.array(sizes, np.int64) + 1)
    starts = ends - np.array(sizes, np.int64) - 1
    tables = tables._replace(
        set_columns=_joined(tables.set_columns, extra),
        set_sizes=_joined(tables.set_sizes, sizes),
        set_start=_joined(tables.set_start, starts),
        set_losses=_joined(tables.set_losses, np.zeros(sum(sizes) + len(sizes))),
    )
    caps = [capped.get(int(a), microdata.n) for a in tables.set_columns]
    return tables, np.array(caps, np.int64)


def _joined(given: Any, more: ArrayLike) -> Any:
    array = np.concatenate([given, np.asarray(more, given.dtype)])
    array.setflags(write=False)
    return array


def _rules(problem: Problem, rows: MergedRows, request: Request, caps: NDArray[np.int64]) -> Rules:
    diversity, first = problem.diversity, rows.first
    sensitive = np.zeros((rows.types, 0), np.int64)
    numerator, denominator, distinct = 0, 1, 1
    if diversity is not None:
        codes = problem.microdata.sensitive_codes[first].astype(np.int64)
        widths = problem.microdata.sensitive_codes.max(axis=0).astype(np.int64) + 1
        sensitive = np.ascontiguousarray(codes + (np.cumsum(widths) - widths))
        numerator, denominator = diversity.ratio
        distinct = diversity.distinct
    forbidden = np.zeros((0, 0), np.bool_)
    if problem.limits:
        forbidden = conflicts(problem.microdata, problem.limits, first)
    return Rules(
        rows.prices,
        rows.counts,
        forbidden,
        caps,
        sensitive,
        problem.k,
        request.largest,
        request.cutoff,
        request.pruned,
        problem.compiled.aggregate == "sum",
        numerator,
        denominator,
        int(distinct),
    )


def _larger(buffers: Buffers, listed: int, cursor: NDArray[np.int64]) -> Buffers:
    """Return the buffers with twice the room where they are more than half full."""

    def grown(array: Any, filled: int) -> Any:
        if 2 * filled < len(array):
            return array
        return np.concatenate([array, np.empty_like(array)])

    return Buffers(
        grown(buffers.listed, listed),
        grown(buffers.listed_losses, listed),
        grown(buffers.sizes, int(cursor[2])),
        grown(buffers.losses, int(cursor[2])),
        grown(buffers.members, int(cursor[3])),
    )
