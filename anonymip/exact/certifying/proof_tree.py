"""Branch and bound over the sets that duals leave, every node with duals of its own.

What is searched is a proof, not a release: each leaf has duals that reach the goal, in whole
numbers, or no sets left. If the search is cut off, the least value of an open node is proven.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from anonymip.exact.certifying.relaxing import (
    Relaxed,
    Sets,
    Split,
    Vertex,
    covered,
    proven_by,
    solve_over,
)
from anonymip.exact.set_partitioning.rank_one_cuts import separate
from anonymip.runtime.budget import Budget

#: Share of what is left to prove that cuts must prove; otherwise the node is split.
_RISE = 0.1
#: Starts of the local search for cuts of each shape.
_STARTS = 20
#: Splits whose two sides are tried before one is chosen.
_TRIED = 8
#: Shares this near to whole numbers are whole.
_WHOLE = 1e-6


def prove_by_tree(
    sets: Sets, goal: int, budget: Budget, *, max_nodes: int = 5_000
) -> tuple[dict[str, Any], int] | None:
    """Return a tree over some sets, and what all its leaves prove; None without time for a root.

    Parameters
    ----------
    sets
        That a release which loses at most the goal can have.
    goal
        To be exceeded.
    budget
        Ends the search.
    max_nodes
        End it too.
    """
    scale = sets.table.scale
    vertex = solve_over(sets, (), (), budget)
    if vertex is None:
        return None
    root = proven_by(sets, (), (), vertex, goal)
    waiting: list[tuple[int, int, Relaxed, tuple[Split, ...]]] = []
    nodes = 0

    def wait(relaxed: Relaxed, splits: tuple[Split, ...]) -> None:
        nonlocal nodes
        nodes += 1
        if relaxed.value <= goal and relaxed.left.members:
            heapq.heappush(waiting, (relaxed.value, nodes, relaxed, splits))

    wait(root, ())
    while waiting:
        value, _, relaxed, splits = heapq.heappop(waiting)
        budget.report("proving by a tree", done=nodes, bound=value / scale)
        if nodes > max_nodes:
            return root.node, value
        tighter = _with_cuts(relaxed, splits, goal, budget, seed=nodes)
        if tighter is not None:
            relaxed.node["next"] = tighter.node
            wait(tighter, splits)
            continue
        children = _split(relaxed, splits, goal, budget)
        if children is None:
            return root.node, value
        (subset, most), sides = children
        relaxed.node["split"] = {"rows": sorted(subset.elements()), "most": most}
        for at_most, side in zip((True, False), sides, strict=True):
            relaxed.node["at_most" if at_most else "more"] = side.node
            wait(side, (*splits, (subset, most, at_most)))
    return root.node, goal + 1


def _with_cuts(
    relaxed: Relaxed, splits: Sequence[Split], goal: int, budget: Budget, *, seed: int
) -> Relaxed | None:
    """Return the relaxation with cuts that it breaks; None if they do not help enough."""
    sets, shares = relaxed.left, relaxed.shares
    new = separate(
        *(sets.held, shares, covered(sets.table)), known=relaxed.cuts, seed=seed, starts=_STARTS
    )
    cuts = [*relaxed.cuts, *new]
    vertex = solve_over(sets, splits, cuts, budget) if new else None
    if vertex is None:
        return None
    tighter = proven_by(sets, splits, cuts, vertex, goal)
    risen = tighter.value - relaxed.value
    return tighter if risen > _RISE * (goal + 1 - relaxed.value) else None


def _split(
    relaxed: Relaxed, splits: Sequence[Split], goal: int, budget: Budget
) -> tuple[tuple[Counter[int], int], list[Relaxed]] | None:
    """Return the best of some splits with its two sides; None if there is none, or no time."""
    sets, cuts = relaxed.left, relaxed.cuts
    enough = (goal + 1) / sets.table.scale
    best: tuple[Counter[int], int] | None = None
    best_sides: list[Vertex] = []
    best_score = (-np.inf, -np.inf)
    for subset, most in _candidates(relaxed):
        sides = []
        for at_most in (True, False):
            vertex = solve_over(sets, (*splits, (subset, most, at_most)), cuts, budget)
            if vertex is None:
                return None
            sides.append(vertex)
        low, high = sorted(min(side.value, enough) for side in sides)
        if (low, high) > best_score:
            best, best_sides, best_score = (subset, most), sides, (low, high)
        if low >= enough:
            break
    if best is None:
        return None
    return best, [
        proven_by(sets, (*splits, (*best, at_most)), cuts, vertex, goal)
        for at_most, vertex in zip((True, False), best_sides, strict=True)
    ]


def _candidates(relaxed: Relaxed) -> list[tuple[Counter[int], int]]:
    """Return sets of rows that occur a broken number of times together, and the whole part."""
    members, shares = relaxed.left.members, relaxed.shares
    taken: list[int] = np.flatnonzero(shares > _WHOLE).tolist()
    together: dict[tuple[int, int], float] = {}
    for at in taken:
        held = members[at]
        for pair in {(a, b) for place, a in enumerate(held) for b in held[place + 1 :]}:
            together[pair] = together.get(pair, 0.0) + float(shares[at])
    broken = {pair: share for pair, share in together.items() if not _is_whole(share)}
    if broken:
        nearest = sorted(broken, key=lambda pair: (abs(broken[pair] % 1.0 - 0.5), pair))
        return [(Counter(pair), int(broken[pair])) for pair in nearest[:_TRIED]]
    # Where all pairs are whole, the sets above a largest one that is taken in part are not.
    parts = [at for at in taken if not _is_whole(float(shares[at]))]
    if not parts:
        return []
    subset = Counter(members[max(parts, key=lambda at: len(members[at]))])
    share = sum(float(shares[at]) for at in taken if subset <= Counter(members[at]))
    return [(subset, int(share))]


def _is_whole(share: float) -> bool:
    return abs(share - round(share)) <= _WHOLE
