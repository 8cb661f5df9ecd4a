"""Nodes of a hierarchy above each value: at which of them a published cell costs more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonymip.instances.microdata import Microdata
from anonymip.objectives import LossTables


@dataclass(frozen=True, eq=False)
class Ancestors:
    """The ancestors of the values of one hierarchical attribute that matter to the loss.

    A cell that covers a value publishes the value or one of its ancestors, a chain. An ancestor
    matters if it is the lowest common one with another value of the table and costs more than the
    nodes below it in the chain. A monotone loss never falls along a chain.

    Two values have the same ancestors that matter strictly above their lowest common one, at the
    same steps of the loss: both chains go through the common node and agree from there on.

    Parameters
    ----------
    attribute
        Index of the attribute.
    common
        (L, L) lowest common node of two values, by their ranks.
    chains
        For each value its ancestors that matter, from the lowest on.
    alone
        (L,) loss of publishing each value itself.
    steps
        For each value the rise of the loss at each node of its chain.
    """

    attribute: int
    common: NDArray[np.int32]
    chains: tuple[tuple[int, ...], ...]
    alone: NDArray[np.float64]
    steps: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, microdata: Microdata, attribute: int, losses: NDArray[np.float64]) -> Ancestors:
        """Return the ancestors of a hierarchical attribute.

        Parameters
        ----------
        microdata
            The table.
        attribute
            Index of the attribute.
        losses
            (L, L) loss of the lowest node over the values from the first to the second rank.
        """
        hierarchy = microdata.attributes[attribute].hierarchy
        assert hierarchy is not None
        tree, leaf = hierarchy.tree, microdata.leaves(attribute)
        common = tree.common_ancestors(leaf[:, None], leaf[None, :])
        ranks = np.arange(len(leaf))
        both = losses[np.minimum.outer(ranks, ranks), np.maximum.outer(ranks, ranks)]
        chains: list[tuple[int, ...]] = []
        steps: list[tuple[float, ...]] = []
        for rank in ranks:
            # Common nodes on the way to the root cover more and more leaves.
            _, first = np.unique(tree.leaves_below[common[rank]], return_index=True)
            rises = np.diff(both[rank][first])
            rising = np.flatnonzero(rises > 0)
            chains.append(tuple(common[rank][first][rising + 1].tolist()))
            steps.append(tuple(rises[rising].tolist()))
        return cls(attribute, common, tuple(chains), np.diagonal(both).copy(), tuple(steps))

    @property
    def longest(self) -> int:
        """Number of nodes of the longest chain."""
        return max(map(len, self.chains))

    def reached(self, value: int, other: int) -> int | None:
        """Return the highest node of a value's chain that a cell with another value reaches."""
        top = self._place(value, int(self.common[value, other]))
        return None if top == 0 else self.chains[value][top - 1]

    def above(self, value: int, other: int) -> tuple[int, ...]:
        """Return the nodes of both values' chains above their lowest common node."""
        return self.chains[value][self._place(value, int(self.common[value, other])) :]

    def _place(self, value: int, node: int) -> int:
        """Return how many nodes of a chain lie at a node of the path or below it."""
        chain = self.chains[value]
        # Nodes are numbered in post-order, so they rise along a chain.
        return sum(one <= node for one in chain)


def ancestors_of(microdata: Microdata, tables: LossTables) -> tuple[Ancestors, ...]:
    """Return the ancestors of all hierarchical attributes that the loss looks at."""
    found = []
    for p, attribute in enumerate(map(int, tables.pair_columns)):
        if microdata.attributes[attribute].hierarchy is not None:
            start, size = int(tables.pair_start[p]), int(tables.pair_sizes[p])
            losses = tables.pair_losses[start : start + size * size].reshape(size, size)
            found.append(Ancestors.of(microdata, attribute, losses))
    return tuple(found)
