"""Pricing: the columns of least reduced cost under duals, for column generation and bounds.

A column is a multiset of row types that may share a class, or that a record may be published with.
Under duals of the rows and of rank-1 cuts its reduced cost is its cost, less the duals of its rows,
plus those of the cuts that it pays. Each column has a root: of its types the one with the highest
dual, the first one among equals. Duals bound the loss of all releases where no column of any root
has a negative reduced cost; :attr:`PricedColumns.least` says how far each root is from that.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anonymip.enumeration.cluster_sets import exact_losses
from anonymip.enumeration.cut_duals import CutDuals, cuts_of_rows, cuts_paid
from anonymip.enumeration.merging import row_types
from anonymip.enumeration.priced_columns import (
    PricedColumns,
    dual_sums,
    members_of,
)
from anonymip.enumeration.rooted_run import UNLIMITED, RootedRun
from anonymip.enumeration.rooted_state import RootedRules, Roots
from anonymip.enumeration.search_inputs import capped_tables, loss_scale, type_rows
from anonymip.errors import InputError, UnsupportedObjective
from anonymip.instances.microdata import RowTypes
from anonymip.problem import Problem
from anonymip.runtime.budget import Budget
from anonymip.tolerances import DUAL_ROUNDING, SEARCH_ROUNDING

__all__ = ["CutDuals", "PricedColumns", "Pricing"]


class Pricing:
    """The search for columns of a problem.

    Parameters
    ----------
    problem
        Gives table, loss, limits and diversity.
    smallest, largest
        Fewest and most rows of a column.
    weight
        What a column of s rows costs: ``"size"``, s times the loss of one of its records, as a
        class does; ``"one"``, that loss once.

    Attributes
    ----------
    types
        The row types: records that are alike to loss, limits and diversity.

    Raises
    ------
    InputError
        If the sizes are out of range, or the weight is unknown.
    UnsupportedObjective
        If the loss has no tables, is not monotone, or is no sum over the records.
    """

    def __init__(self, problem: Problem, *, smallest: int, largest: int, weight: str) -> None:
        if not 2 <= smallest <= largest <= problem.n:
            raise InputError(
                f"columns of {smallest} to {largest} rows are asked for, of {problem.n} records",
                remedy="Give 2 <= smallest <= largest <= n",
            )
        if weight not in ("size", "one"):
            raise InputError(f"weight is {weight!r}", remedy="Give 'size' or 'one'")
        _refuse_unfit(problem)
        self.problem, self.smallest, self.largest, self.weight = problem, smallest, largest, weight
        self.types: RowTypes = row_types(problem)
        tables = capped_tables(problem)
        self._run = RootedRun(tables, type_rows(problem, self.types, tables), largest)
        self._scale = loss_scale(problem) * (largest if weight == "size" else 1)

    def best(
        self,
        duals: ArrayLike,
        cuts: CutDuals | None = None,
        *,
        below: float = 0.0,
        per_root: int = 1,
        max_nodes: int | None = None,
        most_nodes: int | None = None,
        roots: ArrayLike | None = None,
        budget: Budget | None = None,
    ) -> PricedColumns:
        """Return the best columns of each root and size whose reduced cost is below a number.

        Where a class has a row whose dual is not above the record loss, the class without it is at
        least as good: of columns beyond the smallest size such ones are left out, unless a
        diversity is asked for, which the smaller ones may not have.

        Parameters
        ----------
        duals
            (t,) dual of a row of each type.
        cuts
            Rank-1 cuts with their duals.
        below
            Reduced costs from here on are not wanted.
        per_root
            Most columns of each root and size.
        max_nodes
            Partial sets looked at for a root and a size at which to go on to the next.
        most_nodes
            Partial sets that end the search.
        roots
            Types whose columns are looked for; None means all.
        budget
            Ends the search.
        """
        given, order = self._ranked(duals)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        asked = np.arange(len(order)) if roots is None else self._known(roots)
        at = _roots(asked, rank[asked], order, below)
        return self._search(
            given,
            cuts,
            at,
            below,
            keep=per_root,
            nodes_a_size=max_nodes,
            max_nodes=most_nodes,
            undominated=True,
            budget=budget,
        )

    def all_below(
        self,
        duals: ArrayLike,
        threshold: float,
        cuts: CutDuals | None = None,
        *,
        max_columns: int,
        max_nodes: int | None = None,
        budget: Budget | None = None,
    ) -> PricedColumns:
        """Return all columns whose reduced cost is below a threshold.

        Parameters
        ----------
        duals, cuts
            As for :meth:`best`.
        threshold
            Reduced costs from here on are not wanted.
        max_columns
            Columns that end the search when there are more.
        max_nodes
            Partial sets that end the search.
        budget
            Ends the search.
        """
        given, order = self._ranked(duals)
        # What rounding lifts above the threshold comes in, and is judged by its cost.
        below = threshold + self._rounding(given, cuts)
        at = _roots(order, np.arange(len(order)), order, below)
        return self._search(
            given,
            cuts,
            at,
            threshold,
            max_columns=max_columns,
            max_nodes=max_nodes,
            budget=budget,
        )

    def _ranked(self, duals: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the duals and the types by falling duals."""
        given = np.array(duals, np.float64)
        t = len(self.types.first)
        if given.shape != (t,) or not np.isfinite(given).all():
            raise InputError(
                f"duals are no {t} finite numbers", remedy="Give one number a row type"
            )
        return given, np.argsort(-given, kind="stable")

    def _known(self, types: ArrayLike) -> NDArray[np.int64]:
        given, t = np.asarray(types, np.int64).ravel(), len(self.types.first)
        if len(given) and not 0 <= given.min() <= given.max() < t:
            raise InputError("a row type is out of range", remedy=f"Give numbers from 0 to {t - 1}")
        return given

    def _rounding(self, duals: NDArray[np.float64], cuts: CutDuals | None) -> float:
        """Return how far the reduced costs of the kernel may be off."""
        highest = float(np.abs(duals).max())
        if cuts is not None:
            highest += float(np.abs(cuts.duals).sum())
        return SEARCH_ROUNDING * self._scale + DUAL_ROUNDING * self.largest * highest

    def _search(
        self,
        duals: NDArray[np.float64],
        cuts: CutDuals | None,
        roots: Roots,
        threshold: float,
        *,
        keep: int = UNLIMITED,
        nodes_a_size: int | None = None,
        undominated: bool = False,
        max_columns: int = UNLIMITED,
        max_nodes: int | None = None,
        budget: Budget | None,
    ) -> PricedColumns:
        """Search, and return the columns whose reduced cost is below the threshold."""
        run, summed = self._run, self.weight == "size"
        run.rows.duals[:] = duals
        run.search(
            cuts_of_rows(len(duals), cuts),
            RootedRules(
                self.smallest,
                self.largest,
                True,
                summed,
                max(1, int(keep)),
                UNLIMITED if nodes_a_size is None else int(nodes_a_size),
                undominated and summed and self.problem.diversity is None,
            ),
            roots,
            budget or Budget(),
            max_columns=max_columns,
            max_nodes=UNLIMITED if max_nodes is None else int(max_nodes),
        )
        count, filled = run.found.held.tolist()
        sizes = run.found.sizes[:count].copy()
        members = run.found.members[:filled].copy()
        starts = np.concatenate([[0], np.cumsum(sizes)])
        costs = exact_losses(self.problem, self.types.first[members], sizes)
        if not summed:
            costs /= sizes
        reduced = costs - dual_sums(duals[members], starts)
        if cuts is not None:
            reduced += cuts_paid(cuts, members, starts, len(duals))
        kept = np.flatnonzero(reduced < threshold)
        complete = run.complete and len(kept) <= max_columns
        kept = kept[:max_columns]
        return PricedColumns(
            np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64),
            members[members_of(starts, sizes, kept)],
            costs[kept],
            reduced[kept],
            roots.least - self._rounding(duals, cuts),
            complete,
            run.nodes,
        )


def _roots(
    types: NDArray[np.int64],
    begin: NDArray[np.int64],
    order: NDArray[np.int64],
    below: float,
) -> Roots:
    """Return where to search: roots, joined by all types from some place of an order on."""
    if math.isnan(below):
        raise InputError("below is NaN", remedy="Give a number")
    return Roots(
        types,
        begin,
        np.full(len(types), len(order)),
        order,
        np.full(len(types), float(below)),
        np.full(len(types), -math.inf),
    )


def _refuse_unfit(problem: Problem) -> None:
    compiled = problem.compiled
    _ = compiled.tables  # refuses losses without tables
    if not compiled.monotone:
        raise UnsupportedObjective(
            f"pricing needs a monotone objective, and {compiled.name!r} is not known to be one: "
            f"{compiled.obstacle}",
            remedy="Use an objective that never falls when a cell covers more",
        )
    if compiled.aggregate != "sum":
        raise UnsupportedObjective(
            f"pricing needs a sum over the records, and {compiled.name!r} is their largest loss",
            remedy="Use an objective that is summed over the records",
        )
