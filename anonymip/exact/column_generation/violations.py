"""Two sets of records that show that a loss is not monotone or not superadditive."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anonymip.errors import UnsupportedObjective
from anonymip.problem import Problem
from anonymip.tolerances import LOSS_ABSOLUTE, LOSS_RELATIVE

#: Growing sets of records that are tried, and their size at most.
_CHAINS, _LONGEST = 500, 8


def falling_pair(problem: Problem) -> str:
    """Return as part of a sentence a set that costs a record more than one with a record more.

    Empty if none is found among random sets.
    """
    chains = _chains(problem.n)
    before = _record_losses(problem, chains[:, :1])
    for size in range(2, chains.shape[1] + 1):
        after = _record_losses(problem, chains[:, :size])
        worst = int(np.argmax(np.nan_to_num(before - after, nan=-np.inf)))
        if before[worst] - after[worst] > _slack(before[worst]):
            return (
                f" (a record of {_named(chains[worst, : size - 1])} loses {before[worst]:.6g}, "
                f"one of {_named(chains[worst, :size])} loses {after[worst]:.6g})"
            )
        before = after
    return ""


def subadditive_pair(problem: Problem) -> str:
    """Return as part of a sentence two sets that cost more than their union.

    Empty if none is found among random sets.
    """
    chains = _chains(problem.n)
    for size in range(2, chains.shape[1] + 1):
        whole = _class_losses(problem, chains[:, :size])
        for cut in range(1, size):
            parts = _class_losses(problem, chains[:, :cut])
            parts = parts + _class_losses(problem, chains[:, cut:size])
            worst = int(np.argmax(np.nan_to_num(parts - whole, nan=-np.inf)))
            if parts[worst] - whole[worst] > _slack(parts[worst]):
                return (
                    f" (the classes {_named(chains[worst, :cut])} and "
                    f"{_named(chains[worst, cut:size])} lose {parts[worst]:.6g}, their union "
                    f"{whole[worst]:.6g})"
                )
    return ""


def _record_losses(problem: Problem, sets: NDArray[np.int64]) -> NDArray[np.float64]:
    losses: NDArray[np.float64] = _class_losses(problem, sets) / sets.shape[1]
    return losses


def _class_losses(problem: Problem, sets: NDArray[np.int64]) -> NDArray[np.float64]:
    try:
        return problem.compiled.class_losses(sets)
    except UnsupportedObjective:
        # A loss of classes may be undefined for sets as small as these.
        return np.full(len(sets), np.nan)


def _slack(loss: float) -> float:
    return 1e3 * (LOSS_ABSOLUTE + LOSS_RELATIVE * abs(loss))


def _named(records: NDArray[np.int64]) -> str:
    return "{" + ", ".join(str(record + 1) for record in sorted(records.tolist())) + "}"


def _chains(n: int) -> NDArray[np.int64]:
    """Return (chains, length) distinct records each, in random order."""
    rng = np.random.default_rng(0)
    length = min(n, _LONGEST)
    return np.array([rng.choice(n, length, replace=False) for _ in range(_CHAINS)], np.int64)
