"""Samples of records and classes that test what an objective's author declares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import UnsupportedObjective
from anonymip.instances.domains import Domains
from anonymip.instances.microdata import Microdata
from anonymip.objectives.language.record import CellBatch
from anonymip.tolerances import LOSS_ABSOLUTE, LOSS_RELATIVE

#: Losses of (B,) classes of (B, s) records.
Losses = Callable[[NDArray[np.int64]], NDArray[np.float64]]

_CHAINS = 200
_LARGEST = 8


def sampled_cells(domains: Domains, microdata: Microdata) -> CellBatch:
    """Return the cells of five possible records, an exact one and the widest among them."""
    rng = np.random.default_rng(0)
    batch = 5
    low = np.full((batch, domains.m), np.nan)
    high = low.copy()
    count = np.ones((batch, domains.m))
    nodes = np.full((batch, domains.m), -1, np.int32)
    for a, level in enumerate(microdata.levels):
        picked = np.sort(rng.integers(len(level), size=(batch, 2)), axis=1)
        picked[0], picked[1] = (0, 0), (0, len(level) - 1)
        tree = domains.trees[a]
        if tree is not None:
            leaf = microdata.leaves(a)[picked]
            nodes[:, a] = tree.common_ancestors(leaf[:, 0], leaf[:, 1])
        elif domains.kinds[a] == "numeric":
            ends = level.astype(np.float64)[picked]
            low[:, a], high[:, a] = ends[:, 0], ends[:, 1]
        count[:, a] = picked[:, 1] - picked[:, 0] + 1
    return CellBatch(low, high, count, np.zeros((batch, domains.m), np.bool_), nodes)


def refuse_falling(name: str, losses: Losses, n: int) -> None:
    """Refuse a record loss that falls along some chain of growing sets of records.

    Parameters
    ----------
    name
        Of the objective.
    losses
        Record losses of sets of records.
    n
        Number of records.

    Raises
    ------
    UnsupportedObjective
        Naming the records.
    """
    chains = _chains(n)
    before = losses(chains[:, :1])
    for size in range(2, chains.shape[1] + 1):
        after = losses(chains[:, :size])
        falls = after < before - _slack(before)
        if falls.any():
            at = int(falls.argmax())
            raise UnsupportedObjective(
                f"objective {name!r} is declared monotone, but falls from {before[at]:.6g} to "
                f"{after[at]:.6g} when the records {(chains[at, : size - 1] + 1).tolist()} are "
                f"published with record {chains[at, size - 1] + 1}",
                remedy="Correct the loss, or leave the declaration out",
            )
        before = after


def refuse_subadditive(name: str, costs: Losses, n: int) -> None:
    """Refuse a class loss under which some class costs less than the two of a cut of it.

    Parameters
    ----------
    name
        Of the objective.
    costs
        Losses of classes of records.
    n
        Number of records.

    Raises
    ------
    UnsupportedObjective
        Naming the records.
    """
    chains = _chains(n)
    for size in range(2, chains.shape[1] + 1):
        whole = costs(chains[:, :size])
        for cut in range(1, size):
            parts = costs(chains[:, :cut]) + costs(chains[:, cut:size])
            falls = whole < parts - _slack(parts)
            if falls.any():
                at = int(falls.argmax())
                raise UnsupportedObjective(
                    f"objective {name!r} is declared superadditive, but the class of the records "
                    f"{(chains[at, :size] + 1).tolist()} costs {whole[at]:.6g}, less than the "
                    f"{parts[at]:.6g} of its first {cut} and the others",
                    remedy="Correct the loss, or leave the declaration out",
                )


def _slack(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    slack: NDArray[np.float64] = 1e3 * (LOSS_ABSOLUTE + LOSS_RELATIVE * np.abs(losses))
    return slack


def _chains(n: int) -> NDArray[np.int64]:
    """Return (chains, length) distinct records each, in random order."""
    rng = np.random.default_rng(0)
    length = min(n, _LARGEST)
    return np.array([rng.choice(n, length, replace=False) for _ in range(_CHAINS)], np.int64)
