"""Flows of least cost in networks: the primal network simplex, in whole numbers."""

from __future__ import annotations

import numpy as np

from anonymip.errors import AnonymipError
from anonymip.runtime.arrays import Ints
from anonymip.runtime.kernels import kernel
from anonymip.runtime.packed import Packed

#: Pivots at a time, between which an interrupt is heard.
_PIVOTS = 2_000
#: Costs and potentials stay below this.
_LARGEST = 2**61


class Network(Packed):
    """A network with a spanning tree; the last node is its root."""

    #: (arcs,) int64. The last arcs tie each node to the root, at a cost that no path undercuts.
    tail: Ints
    head: Ints
    capacity: Ints
    cost: Ints
    flow: Ints  # (arcs,) int64, feasible at all times
    state: Ints  # (arcs,) int64: 0 in the tree, 1 empty, -1 full
    #: (nodes,) int64, next node towards the root and the arc to it.
    parent: Ints
    arc: Ints
    #: (nodes,) int64.
    depth: Ints
    potential: Ints
    #: (nodes,) int64 workspaces.
    seen: Ints
    path: Ints
    cursor: Ints  # (2,) where the search for an arc goes on; turn of the tree


def cheapest_flow(supply: Ints, tail: Ints, head: Ints, capacity: Ints, cost: Ints) -> Ints | None:
    """Return the flow of least cost that carries all supplies to the demands; None without one.

    `supply`: (v,) what each node sends, negative for what it receives; the sum is 0. `tail, head,
    capacity, cost`: (arcs,) where each arc leads, what it carries at most, and the cost of a unit.
    Raises AnonymipError if costs are too large for whole numbers of 64 bits.

    Primal network simplex [1]_. The tree is kept strongly feasible: of the arcs that block a pivot
    the last one seen from the top of the cycle leaves, so that degenerate pivots do not run in a
    circle. Complexity: O(v) a pivot beside the search for an arc; usually a few pivots an arc.

    References
    ----------
    .. [1] R. K. Ahuja, T. L. Magnanti, J. B. Orlin: Network Flows, 1993, Chapter 11.
    """
    nodes = len(supply)
    largest = int(np.abs(cost).max(initial=0))
    prohibitive = (nodes + 1) * largest + 1
    if 4 * prohibitive >= _LARGEST:
        raise AnonymipError(
            f"costs of up to {largest} are too large for a flow among {nodes} nodes",
            remedy="Scale them down",
        )
    network = _network(supply, tail, head, capacity, cost, prohibitive)
    while not _pivot(network, _PIVOTS):
        pass
    found = network.flow[: len(tail)]
    return None if network.flow[len(tail) :].any() else found


def _network(
    supply: Ints, tail: Ints, head: Ints, capacity: Ints, cost: Ints, prohibitive: int
) -> Network:
    """Return the network whose tree ties every node to the root."""
    arcs, nodes = len(tail), len(supply)
    own = np.arange(nodes, dtype=np.int64)
    root = np.full(nodes, nodes, np.int64)
    sends = supply >= 0
    largest = np.full(nodes, np.iinfo(np.int64).max // 4, np.int64)
    return Network(
        np.concatenate([tail, np.where(sends, own, root)]).astype(np.int64),
        np.concatenate([head, np.where(sends, root, own)]).astype(np.int64),
        np.concatenate([capacity, largest]).astype(np.int64),
        np.concatenate([cost, np.full(nodes, prohibitive)]).astype(np.int64),
        np.concatenate([np.zeros(arcs, np.int64), np.abs(supply)]).astype(np.int64),
        np.concatenate([np.ones(arcs, np.int64), np.zeros(nodes, np.int64)]),
        np.append(root, -1),
        np.append(arcs + own, -1),
        np.append(np.ones(nodes, np.int64), 0),
        np.append(np.where(sends, prohibitive, -prohibitive), 0).astype(np.int64),
        np.zeros(nodes + 1, np.int64),
        np.empty(nodes + 1, np.int64),
        np.zeros(2, np.int64),
    )


@kernel
def _entering(network: Network) -> int:
    """Return the arc of a block that lowers the cost most; -1 if none of all arcs does."""
    arcs = len(network.tail)
    block = max(16, int(np.sqrt(arcs)))
    best, best_gain, examined = -1, 0, 0
    at = network.cursor[0]
    for _ in range(arcs):
        reduced = (
            network.cost[at]
            - network.potential[network.tail[at]]
            + network.potential[network.head[at]]
        )
        gain = -network.state[at] * reduced
        if gain > best_gain:
            best, best_gain = at, gain
        examined += 1
        at = at + 1 if at + 1 < arcs else 0
        if examined >= block and best >= 0:
            break
        if examined >= block:
            examined = 0
    network.cursor[0] = at
    return best


@kernel
def _refresh(network: Network) -> None:
    """Recompute depths and potentials of all nodes."""
    network.cursor[1] += 1
    turn = network.cursor[1]
    nodes = len(network.parent)
    network.seen[nodes - 1] = turn
    for node in range(nodes - 1):
        length, at = 0, node
        while network.seen[at] != turn:
            network.path[length] = at
            length += 1
            at = network.parent[at]
        for back in range(length - 1, -1, -1):
            below = network.path[back]
            above, arc = network.parent[below], network.arc[below]
            network.depth[below] = network.depth[above] + 1
            step = network.cost[arc] if network.tail[arc] == below else -network.cost[arc]
            network.potential[below] = network.potential[above] + step
            network.seen[below] = turn


@kernel
def _pivot(network: Network, limit: int) -> bool:
    """Make so many pivots; return whether the flow is the cheapest."""
    for _ in range(limit):
        enters = _entering(network)
        if enters < 0:
            return True
        # More flow on an empty arc, or less on a full one: it runs from `first` to `second`.
        empty = network.state[enters] == 1
        first = network.tail[enters] if empty else network.head[enters]
        second = network.head[enters] if empty else network.tail[enters]
        amount = network.capacity[enters]
        # The cycle: down from the join to `first`, over the arc, up from `second` to the join.
        below, leaves, side = -1, -1, 0
        left, right = first, second
        while left != right:
            if network.depth[left] >= network.depth[right]:
                left = network.parent[left]
            else:
                right = network.parent[right]
        join = left
        # The least room on the cycle; of equal ones the last along it, seen from the join.
        for upwards in (False, True):
            at = second if upwards else first
            while at != join:
                arc = network.arc[at]
                along = (network.tail[arc] == at) == upwards
                room = network.capacity[arc] - network.flow[arc] if along else network.flow[arc]
                if room < amount or (upwards and room == amount):
                    amount, below, side = room, at, 1 + upwards
                at = network.parent[at]
        # Send that much around the cycle.
        network.flow[enters] += amount if empty else -amount
        for upwards in (False, True):
            at = second if upwards else first
            while at != join:
                arc = network.arc[at]
                network.flow[arc] += amount if (network.tail[arc] == at) == upwards else -amount
                at = network.parent[at]
        # The entering arc itself has the least room: it is full or empty now, the tree stays.
        if side == 0:
            network.state[enters] = -network.state[enters]
            continue
        # The arc above `below` is empty or full now, and leaves the tree.
        leaves = network.arc[below]
        network.state[enters] = 0
        network.state[leaves] = 1 if network.flow[leaves] == 0 else -1
        # The part of the tree below the leaving arc hangs on the entering one from now on.
        node = first if side == 1 else second
        above = second if side == 1 else first
        arc = enters
        while True:
            next_node, next_arc = network.parent[node], network.arc[node]
            network.parent[node], network.arc[node] = above, arc
            if node == below:
                break
            above, arc, node = node, next_arc, next_node
        _refresh(network)
    return False
