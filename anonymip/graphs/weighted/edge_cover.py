"""Edge covers of least weight, by a matching of greatest saving."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.graphs.weighted.assignment import assign
from anonymip.graphs.weighted.general_matching import heaviest_matching
from anonymip.runtime.budget import Budget
from anonymip.status import Stopped

#: A graph of more edges a node is thinned by the duals of an assignment first.
_DENSE = 25
#: So many edges a node, those of least slack, are tried first.
_FIRST = 6
#: The matrix of the assignment is kept up to so many nodes.
_LARGEST_MATRIX = 6_000


def saving_edges(
    nodes: int,
    ends: NDArray[np.int64],
    savings: NDArray[np.float64],
    budget: Budget | None = None,
) -> tuple[NDArray[np.int64], float, Stopped | None]:
    """Return the pairs whose common edge saves most in place of the lightest edge of each.

    An edge cover of least weight gives every node its lightest edge, of weight min_v, except
    where one edge serves two nodes and saves min_u + min_v - w_uv: these edges are a matching of
    greatest saving.

    Parameters
    ----------
    nodes
        Number of nodes.
    ends, savings
        (e, 2), (e,) the pairs with a saving above 0; others are of no use.
    budget
        Of the assignment; when it ends, no pair is returned.

    Returns
    -------
    pairs
        (p, 2) the matching.
    most
        No matching saves more than this.
    stopped
        Why it stopped early; None if it did not.

    Notes
    -----
    In a dense graph an assignment is solved first: half of its value is the greatest saving
    of a fractional matching, and its duals charge every edge a slack. A matching that uses an edge
    of slack s saves at least s less than the fractional one. So a matching among edges without
    slack leaves a gap, and only edges whose slack is within the gap can close it. Where the
    matrix of the assignment does not fit, the matching is only the heaviest among the 25 greatest
    savings of each node, and `most` is half of the sum of the nodes' greatest savings.
    """
    budget = budget or Budget()
    reason = budget.stop_reason()
    if reason is not None or not len(savings):
        return np.empty((0, 2), np.int64), float(savings.sum()), reason
    if len(savings) > _DENSE * nodes and nodes > _LARGEST_MATRIX:
        kept = _greatest(nodes, ends, savings)
        pairs, _ = heaviest_matching(nodes, ends[kept], savings[kept])
        return pairs, _half_of_maxima(nodes, ends, savings), None
    if len(savings) <= _DENSE * nodes:
        pairs, slack = heaviest_matching(nodes, ends, savings)
        return pairs, _value(nodes, ends, savings, pairs) + slack, None
    matrix = np.zeros((nodes, nodes))
    matrix[ends[:, 0], ends[:, 1]] = -savings
    matrix[ends[:, 1], ends[:, 0]] = -savings
    _, columns, stopped = assign(matrix, budget, phase="fractional matching")
    if stopped is not None:
        return np.empty((0, 2), np.int64), float(savings.sum()), stopped
    duals = np.maximum(-((matrix - columns).min(axis=1) + columns) / 2, 0.0)
    spare = duals[ends[:, 0]] + duals[ends[:, 1]] - savings
    # Rounding may have left an edge uncovered: all duals rise by what it lacks.
    duals += max(0.0, -float(spare.min())) / 2
    spare = duals[ends[:, 0]] + duals[ends[:, 1]] - savings
    rounding = 1e-9 * float(savings.max())
    gap, tolerated = np.inf, 0.0
    unit = 1.0 if (savings == np.floor(savings)).all() else 0.0
    fractional, ranked, count = float(duals.sum()), np.sort(spare), _FIRST * nodes
    while True:
        # No further than the gap, and not much further at a time: most edges are never needed.
        within = float(ranked[min(count, len(ranked) - 1)])
        tolerated = min(within, gap)
        kept = spare <= tolerated + rounding
        pairs, slack = heaviest_matching(nodes, ends[kept], savings[kept])
        value = _value(nodes, ends, savings, pairs)
        # A greater saving of whole numbers is greater by 1, which its slack must leave room for.
        gap = fractional - value - unit
        if gap <= tolerated or kept.all():
            return pairs, min(value + slack + rounding, fractional), None
        count *= 4


def _greatest(
    nodes: int, ends: NDArray[np.int64], savings: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which edges are among the greatest of one of their ends."""
    kept = np.zeros(len(savings), np.bool_)
    for side in (0, 1):
        order = np.lexsort((-savings, ends[:, side]))
        of_node = ends[order, side]
        rank = np.arange(len(order)) - np.searchsorted(of_node, of_node)
        kept[order[rank < _DENSE]] = True
    return kept


def _half_of_maxima(nodes: int, ends: NDArray[np.int64], savings: NDArray[np.float64]) -> float:
    """Return a limit of all matchings: each edge gives half of its saving to either end."""
    greatest = np.zeros(nodes)
    for side in (0, 1):
        np.maximum.at(greatest, ends[:, side], savings)
    return float(greatest.sum()) / 2


def _value(
    nodes: int,
    ends: NDArray[np.int64],
    savings: NDArray[np.float64],
    pairs: NDArray[np.int64],
) -> float:
    """Return what a matching saves."""
    keys = ends.min(axis=1) * nodes + ends.max(axis=1)
    order = np.argsort(keys)
    at = np.searchsorted(keys[order], pairs[:, 0] * nodes + pairs[:, 1])
    return float(savings[order[at]].sum())
