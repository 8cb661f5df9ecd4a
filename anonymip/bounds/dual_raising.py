"""Kernels that raise duals of records: to the least loss in a set of k, or by what sets leave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.bounds.near_lists import NearLists, gather_near
from anonymip.bounds.set_search import least_slack
from anonymip.objectives.kernels.box_tree import BoxTree
from anonymip.objectives.kernels.class_loss import ClassState, KernelRows, open_class
from anonymip.objectives.kernels.growing_sets import TermRows, add_row, empty_set, losses_with
from anonymip.objectives.kernels.nearest_types import nearest_types
from anonymip.objectives.language.tables import LossTables
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: A search may compute so many times what there is for each row that is left.
_LENIENCE = 3.0


class NearSearch(Packed):
    """All that the search for sets around a row reads and writes.

    Parameters
    ----------
    tables, rows, terms, counts, tree
        The row types: their losses, values, numbers of rows, and a k-d tree over them.
    state, lists
        Workspaces.
    near, near_losses, nodes, node_bounds, looked
        Workspaces of the search for nearest types.
    reached
        (1,) the highest dual so far.
    binding
        (t, k) types of a set that kept the dual of each type from its cap; -1 comes first where
        there is none.
    """

    tables: LossTables
    rows: KernelRows
    terms: TermRows
    counts: NDArray[np.int64]
    tree: BoxTree
    state: ClassState
    lists: NearLists
    near: NDArray[np.int32]
    near_losses: NDArray[np.float64]
    nodes: NDArray[np.int64]
    node_bounds: NDArray[np.float64]
    looked: NDArray[np.int64]
    reached: NDArray[np.float64]
    binding: NDArray[np.int32]


@kernel
def raise_step(
    search: NearSearch,
    k: int,
    duals: NDArray[np.float64],
    spare: NDArray[np.float64],
    order: NDArray[np.int64],
    cursor: NDArray[np.int64],
    amount: int,
    caps: NDArray[np.float64],
    shares: NDArray[np.float64],
    alone: bool,
    most_each: int,
    most: float,
) -> int:
    """Raise the duals of up to `amount` further types; return how many are done, all if no more is.

    Parameters
    ----------
    spare
        (t,) zeros, or what each record loses at least.
    order, cursor
        The types, and how many are done.
    caps, shares
        (t,) most that each dual becomes, and the shares of the way at which it stands in between.
    alone
        Whether each dual becomes what its record loses at least in a set of k.
    most_each, most
        Losses computed, for a row and in all, at which to end.
    """
    counts, work, looked = search.counts, search.lists.work, search.looked
    for at in range(cursor[0], min(cursor[0] + amount, len(order))):
        if work[0] + looked[0] >= most:
            return len(order)
        row = order[at]
        # What earlier rows have left over is for the later ones, which lie in sparser places.
        rest = _LENIENCE * (most - work[0] - looked[0]) / (len(order) - at)
        each = int(min(float(most_each), rest))
        # Rows of a type that fills a set by itself lose what they lose when published exactly.
        if counts[row] < k:
            if alone:
                _raise_to_k_set(search, k, duals, spare, row, each)
            else:
                _raise_by_slack(search, k, duals, spare, row, caps[row], shares, each)
        search.reached[0] = max(search.reached[0], duals[row])
        cursor[0] = at + 1
    return cursor[0]


@kernel
def _raise_to_k_set(
    search: NearSearch,
    k: int,
    duals: NDArray[np.float64],
    zeros: NDArray[np.float64],
    row: int,
    most_each: int,
) -> None:
    """Raise a dual to what a record loses at least in a set of k."""
    lists, counts = search.lists, search.counts
    known = _nearest_set_loss(search, k, row)
    if known <= duals[row]:
        return
    near = gather_near(
        search.tables,
        search.rows,
        search.terms,
        search.tree,
        search.state,
        lists,
        duals,
        row,
        known,
    )
    slack = least_slack(
        search.tables,
        search.terms,
        counts,
        zeros,
        duals,
        lists,
        near,
        k,
        row,
        counts[row],
        k * known,
        lists.work[0] + most_each,
    )
    duals[row] = max(duals[row], slack / k)


@kernel
def _gather(search: NearSearch, floors: NDArray[np.float64], row: int, radius: float) -> int:
    """List the types near a row and return how many they are."""
    return gather_near(
        search.tables,
        search.rows,
        search.terms,
        search.tree,
        search.state,
        search.lists,
        floors,
        row,
        radius,
    )


@kernel
def _nearest_set_loss(search: NearSearch, k: int, row: int) -> float:
    """Return what a record loses in the set of its own and the nearest types."""
    tables, terms, lists, near = search.tables, search.terms, search.lists, search.near
    open_class(search.rows, search.state, row)
    held = nearest_types(
        tables,
        search.rows,
        search.tree,
        search.state,
        search.counts,
        k,
        row,
        near,
        search.near_losses,
        search.nodes,
        search.node_bounds,
        search.looked,
    )
    empty_set(lists.sets, 0)
    for at in range(held - 1):
        add_row(terms, lists.sets, 0, 0, near[at])
    lists.types[0] = near[held - 1]
    losses_with(tables, terms, lists.sets, 0, lists.types, 0, 1, lists.losses)
    return lists.losses[0]


@kernel
def _raise_by_slack(
    search: NearSearch,
    k: int,
    duals: NDArray[np.float64],
    floors: NDArray[np.float64],
    row: int,
    cap: float,
    shares: NDArray[np.float64],
    most_each: int,
) -> None:
    """Raise a dual, up to a cap, by what all sets leave that hold the row."""
    lists, counts = search.lists, search.counts
    start = duals[row]
    for share in shares:
        aim = start + share * (cap - start)
        rise = aim - duals[row]
        # What was not reached is not tried again with a higher aim.
        if not rise > 0.0:
            return
        radius, begun = max(aim, search.reached[0]), lists.work[0]
        near = gather_near(
            search.tables,
            search.rows,
            search.terms,
            search.tree,
            search.state,
            lists,
            floors,
            row,
            radius,
        )
        for copies in range(1, counts[row] + 1):
            slack = least_slack(
                search.tables,
                search.terms,
                counts,
                duals,
                floors,
                lists,
                near,
                k,
                row,
                copies,
                rise * copies,
                begun + most_each,
            )
            if slack / copies < rise:
                rise = slack / copies
                search.binding[row] = lists.best
            if rise <= 0.0:
                return
        duals[row] += rise
        if duals[row] < aim:
            return
