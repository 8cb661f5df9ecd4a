"""A generalization hierarchy as arrays: nodes, levels, lowest common ancestors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anonymip.runtime.arrays import Codes, Ints


@dataclass(frozen=True, eq=False)
class Tree:
    """The nodes of a hierarchy, leaves first, in depth-first order of the leaves.

    The leaves below a node are consecutive, so the lowest common ancestor of a set of leaves is
    that of its first and its last one: a node behaves like a range of leaves.
    """

    labels: tuple[str, ...]
    parent: Codes  # (nodes,), -1 for the root
    level: Ints  # (nodes,) the lowest at which all values below the node agree; 0 for leaves
    first: Codes  # (nodes,) the first and the last leaf below the node
    last: Codes

    @classmethod
    def of_paths(cls, paths: Sequence[Sequence[str]], parents: Mapping[str, str]) -> Tree:
        """Return the arrays of a hierarchy. Complexity: linear in the paths."""
        children: dict[str, list[str]] = {}
        level: dict[str, int] = {}
        for path in paths:
            for at, label in enumerate(path):
                if at and path[at - 1] == label:
                    continue
                level[label] = max(level.get(label, 0), at)
        for child, above in parents.items():
            children.setdefault(above, []).append(child)
        labels, spans = _depth_first(paths[0][-1], children)
        place = {label: at for at, label in enumerate(labels)}
        parent = np.array(
            [place[parents[label]] if label in parents else -1 for label in labels], np.int32
        )
        first, last = np.array(spans, np.int32).T.copy()
        return cls(labels, parent, np.array([level[label] for label in labels]), first, last)

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(self.last[-1]) + 1

    @property
    def root(self) -> int:
        """The root, which is the last node."""
        return len(self.labels) - 1

    @property
    def height(self) -> int:
        """Level of the root."""
        return int(self.level[-1])

    @cached_property
    def leaves_below(self) -> Ints:
        """(nodes,) number of leaves that a node covers."""
        return (self.last - self.first + 1).astype(np.int64)

    @cached_property
    def place(self) -> dict[str, int]:
        """Node of each label."""
        return {label: at for at, label in enumerate(self.labels)}

    def common_ancestors(self, some: NDArray[np.integer], others: NDArray[np.integer]) -> Codes:
        """Return the lowest node that covers each pair of leaves; the arrays are broadcast.

        Complexity: O(height) passes over the pairs.
        """
        low, high = np.minimum(some, others), np.maximum(some, others)
        nodes = np.broadcast_to(low, np.broadcast_shapes(low.shape, high.shape)).astype(np.int32)
        high = np.broadcast_to(high, nodes.shape)
        while True:
            short = self.last[nodes] < high
            if not short.any():
                return nodes
            nodes = np.where(short, self.parent[nodes], nodes).astype(np.int32)


def _depth_first(
    root: str, children: dict[str, list[str]]
) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
    """Return the leaves from left to right and the inner nodes in post-order, and their spans."""
    leaves: list[str] = []
    inner: list[str] = []
    spans: list[tuple[int, int]] = []
    stack = [(root, -1)]
    while stack:
        label, first = stack.pop()
        if label not in children:
            leaves.append(label)
        elif first >= 0:
            inner.append(label)
            spans.append((first, len(leaves) - 1))
        else:
            # It comes again when all below it have come.
            stack.append((label, len(leaves)))
            stack.extend((child, -1) for child in reversed(children[label]))
    return (*leaves, *inner), [*((at, at) for at in range(len(leaves))), *spans]
