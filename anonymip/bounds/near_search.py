"""Rows near a row: who may share a set of little loss with it, gathered by a k-d tree.

Beside them lies the workspace of :mod:`anonymip.bounds.slack_search`, which picks sets among them.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from anonymip.enumeration.rooted_search import put_top
from anonymip.instances.microdata import RowTypes
from anonymip.objectives.kernels.box_tree import (
    BoxTree,
    box_bound,
    build_tree,
    nearest_types,
    new_tree,
)
from anonymip.objectives.kernels.class_loss import (
    ClassState,
    KernelRows,
    kernel_rows,
    new_state,
    open_class,
)
from anonymip.objectives.kernels.growing_sets import (
    GrowingSets,
    TermRows,
    add_row,
    empty_set,
    losses_with,
    new_growing_sets,
    term_rows,
)
from anonymip.objectives.language.tables import LossTables
from anonymip.problem import Problem
from anonymip.runtime.arrays import Codes, Flags, Floats, Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Boxes that are kept at a time, at most; fewer where each takes many words, but not below the
#: least; and types that their lists hold beyond those of the whole table.
_MOST_BOXES, _FEWEST_BOXES, _BOX_WORDS, _ROOM = 8_192, 64, 1 << 20, 1 << 20


class NearLists(Packed):
    """Lists of near types, and the workspace of searches for sets of them."""

    #: The lists, one behind the other: types, the record loss of the partial set with each, and
    #: what sets leave at least in which it is the furthest, or that it is beyond.
    types: Annotated[Ints, "room"]
    losses: Annotated[Floats, "room"]
    bounds: Annotated[Floats, "room"]
    within: Annotated[Floats, "room"]
    #: Where the list lies of what a set of so many rows may take in, and the next.
    begin: Annotated[Ints, "k + 1"]
    end: Annotated[Ints, "k + 1"]
    at: Annotated[Ints, "k + 1"]
    duals: Annotated[Floats, "k + 1"]  # duals of the rows of the partial set, summed
    chosen: Annotated[Ints, "k + 1"]  # type that a set of so many rows has taken in
    sets: GrowingSets  # (k + 1, ...) what it covers
    used: Annotated[Ints, "t"]  # rows of each type in the partial set
    top: Annotated[Floats, "k"]  # highest duals


class Boxes(Packed):
    """Boxes of sets: what all sets of a box cover, and the list of who may be in them."""

    #: The list of each.
    begin: Annotated[Ints, "count"]
    end: Annotated[Ints, "count"]
    #: What its sets leave at least, and where it is divided: by the values of a side of a term on
    #: this or that side of the cut.
    bounds: Annotated[Floats, "count"]
    sides: Annotated[Ints, "count"]
    cuts: Annotated[Floats, "count"]
    #: (boxes + 1, ...) what all sets of each cover; in the last line what one set covers.
    sets: GrowingSets
    #: A heap of those to be divided, the least bound first, and those no longer in use.
    open: Annotated[Ints, "count"]
    free: Annotated[Ints, "count"]
    held: Annotated[Ints, "3"]  # how many are open, free, and were ever in use
    #: Members of a set beside the own rows and the furthest, and their duals, negated and rising.
    picked: Annotated[Ints, "k"]
    picked_duals: Annotated[Floats, "k"]
    #: The furthest member, and what a record of the set loses.
    last: Annotated[Ints, "1"]
    loss: Annotated[Floats, "1"]


class NearSearch(Packed):
    """All that the search for sets around a row reads and writes."""

    k: int  # rows of a set
    #: The row types: their values with the loss, numbers of rows, and a k-d tree over them.
    rows: KernelRows
    terms: TermRows
    counts: Ints
    tree: BoxTree
    #: Workspaces.
    state: ClassState
    lists: NearLists
    boxes: Boxes
    #: What the search in the tree finds.
    near: Annotated[Codes, "k"]
    near_losses: Annotated[Floats, "k + 1"]
    work: Annotated[Ints, "1"]  # losses computed, nodes of the tree among them
    #: Types of the set that leaves least; -1 comes first if none is known.
    best: Annotated[Ints, "k", -1]
    reached: Annotated[Floats, "1"]  # the highest dual so far
    #: Types of a set that kept the dual of each type from its cap, or loses least.
    binding: Annotated[Codes, "t, k"]
    open: Flags  # (t,) whether more work may find more of what a row of each type loses at least


def new_near_search(problem: Problem, tables: LossTables) -> tuple[NearSearch, RowTypes]:
    """Return what searches for sets of k rows need, and the row types.

    Types are rows that the tables do not tell apart; the tree over them is built.
    """
    types, k = problem.microdata.row_types(tables.columns), problem.k
    rows = kernel_rows(problem.microdata, tables, types.first)
    counts = types.counts.astype(np.int64)
    terms, t = term_rows(rows), len(counts)
    # Memory that is not written to is not taken.
    room, words = 4 * t + 64 * k + _ROOM, int(terms.set_words.max(initial=-1)) + 1
    count = max(_FEWEST_BOXES, min(_MOST_BOXES, _BOX_WORDS // (words + 1)))
    lists = NearLists.of_sizes(room=room, k=k, t=t, sets=new_growing_sets(tables, k + 1, words))
    boxes = Boxes.of_sizes(count=count, k=k, sets=new_growing_sets(tables, count + 1, words))
    search = NearSearch.of_sizes(
        t=t,
        k=k,
        rows=rows,
        terms=terms,
        counts=counts,
        tree=new_tree(tables, t),
        state=new_state(tables, 2),
        lists=lists,
        boxes=boxes,
        open=counts < k,
    )
    build_tree(search.tree, rows, counts)
    return search, types


@kernel
def find_nearest(search: NearSearch, row: int) -> int:
    """List in `search.near` the types of the k rows nearest to a row; return how many they are."""
    open_class(search.rows, search.state, row)
    return nearest_types(
        search.rows,
        search.tree,
        search.state,
        search.counts,
        search.k,
        row,
        search.near,
        search.near_losses,
        search.work,
    )


@kernel
def gather_near(search: NearSearch, floors: Floats, own: int, radius: float) -> int:
    """List the types that may lie with the own one in a set that loses less than `radius`.

    Their losses are those of the pair, or the type's floor if that is higher. Returns how many they
    are. Complexity: O(m) time for each of these and for each node of the tree whose box is within
    the radius.
    """
    tables, terms, tree, state = search.rows.tables, search.terms, search.tree, search.state
    lists, nodes, types = search.lists, search.tree.stack, search.lists.types
    open_class(search.rows, state, own)
    # Down the tree, into boxes within the radius; leaves list their types.
    held, depth = 0, 1
    nodes[0] = 0
    while depth > 0:
        depth -= 1
        node = nodes[depth]
        search.work[0] += 1
        if box_bound(tree, tables, state, node) >= radius:
            continue
        if tree.left[node] >= 0:
            nodes[depth], nodes[depth + 1] = tree.left[node] + 1, tree.left[node]
            depth += 2
            continue
        for at in range(tree.begin[node], tree.end[node]):
            if tree.items[at] != own and floors[tree.items[at]] < radius:
                types[held] = tree.items[at]
                held += 1
    # Of these the pairs within the radius stay.
    empty_set(lists.sets, 0)
    add_row(terms, lists.sets, 0, 1, own)
    losses_with(terms, lists.sets, 1, types, 0, held, lists.losses)
    search.work[0] += held
    kept = 0
    for at in range(held):
        loss = max(lists.losses[at], floors[types[at]])
        if loss < radius:
            types[kept], lists.losses[kept] = types[at], loss
            kept += 1
    return kept


@kernel
def sort_by_loss(lists: NearLists, begin: int, end: int) -> None:
    """Sort a part of the lists by rising losses; equal ones stay in their order."""
    types, losses = lists.types[begin:end], lists.losses[begin:end]
    order = np.argsort(losses, kind="mergesort")
    types[:], losses[:] = types[order], losses[order]


@kernel
def take_least(chosen: Ints, least: Floats, held: int, j: int, term: float, rows: int) -> int:
    """Take up to so many rows of a type among the k of the least terms; return how many are held.

    Rows of a type stand beside each other.
    """
    k = len(least)
    for _ in range(min(rows, k)):
        if held == k and term >= least[k - 1]:
            break
        place = min(held, k - 1)
        while place > 0 and least[place - 1] > term:
            least[place], chosen[place] = least[place - 1], chosen[place - 1]
            place -= 1
        least[place], chosen[place] = term, j
        held = min(held + 1, k)
    return held


@kernel
def _sum_of(top: Floats, filled: int) -> float:
    """Return the sum of the first duals."""
    total = 0.0
    for place in range(filled):
        total += top[place]
    return total


@kernel
def bound_each(
    search: NearSearch, duals: Floats, begin: int, end: int, need: int, base: float, limit: float
) -> int:
    """Set for each of a sorted list what sets cost at least in which it is the furthest.

    What is in no set within the limit, neither as the furthest nor as another, leaves the list.
    `base` are the duals of those that the sets hold already; so many rows are missing, `need`.
    Returns where the list ends.
    """
    lists, counts = search.lists, search.counts
    types, losses, bounds, within = lists.types, lists.losses, lists.bounds, lists.within
    others, filled, total, rows, top = need - 1, 0, 0.0, 0, lists.top
    for at in range(begin, end):
        row = types[at]
        left, dual = counts[row] - lists.used[row], duals[row]
        # Most are not among the highest: these stay as they are, and so does their sum.
        high = others > 0 and (filled < others or dual > top[others - 1])
        if high and left > 1:
            # Beside itself the furthest may bring along its own further rows.
            filled = put_top(top, filled, others, dual, min(left - 1, others))
            total = _sum_of(top, filled)
        rows += left
        reached = search.k * losses[at] - base
        bounds[at] = reached - dual - total if rows >= need else np.inf
        # The same with a place kept free for a given row that is nearer.
        short = total
        if filled == others and others > 0:
            short -= top[others - 1]
        within[at] = reached - dual - short if rows >= need else np.inf
        if high and left > 0:
            filled = put_top(top, filled, others, dual, 1)
            total = _sum_of(top, filled)
    least, held = np.inf, end
    for at in range(end - 1, begin - 1, -1):
        if bounds[at] < limit or least - duals[types[at]] < limit:
            held -= 1
            least = min(least, within[at])
            types[held], losses[held] = types[at], losses[at]
            bounds[held], within[held] = bounds[at], within[at]
        else:
            least = min(least, within[at])
    kept = end - held
    for place in range(kept):
        types[begin + place], losses[begin + place] = types[held + place], losses[held + place]
        bounds[begin + place], within[begin + place] = bounds[held + place], within[held + place]
    return begin + kept
